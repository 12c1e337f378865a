/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/replay_workers.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "hold/replay.h"

#define LOOK_NS      (60 * GP_NS_PER_MS)  /* for work of a process that was put back */
#define STALL_NS     (100 * GP_NS_PER_MS) /* a slower worker gets help of another */
#define REMIND_NS    (60 * GP_NS_PER_S)   /* before the same warning is logged again */
#define WARNINGS_MAX 4

/* Stored in the lowest 8 bits of a job's state. In DOING, the bits above hold the worker's index.
 */
enum job_state { IDLE, TODO, DOING, DONE };

/* A warning about a record that was logged. */
struct warning {
	uint64_t hash, at_ns;
};

struct job {
	uint32_t state;
	int32_t result;
	uint64_t heartbeats;
	bool is_repetition;                   /* of an undo that only the driver confirmed */
	struct warning warning[WARNINGS_MAX]; /* since the last undo that succeeded */
	unsigned nwarnings;                   /* the next one's index */
	struct gp_undo_entry entry;
};

struct gp_replay_board {
	uint64_t since_ns[GP_REPLAY_WORKERS]; /* when it began a record; 0: idle */
	struct job job[GP_UNDO_SLOTS];
};

static uint32_t state_of(const struct job *job)
{
	return __atomic_load_n(&job->state, __ATOMIC_ACQUIRE);
}

static void set_state(struct job *job, uint32_t state)
{
	__atomic_store_n(&job->state, state, __ATOMIC_RELEASE);
}

static uint64_t since_ns(const struct gp_replay *r, unsigned worker)
{
	return __atomic_load_n(&r->board->since_ns[worker], __ATOMIC_ACQUIRE);
}

/* In a worker. */

uint64_t gp_replay_heartbeats(const struct gp_undo_file *file, unsigned slot,
			      const struct gp_undo_entry *e)
{
	struct gp_undo_scheduler scheduler;

	gp_undo_scheduler(file, &scheduler);
	if (e->owner == scheduler.pid && e->owner_start_time == scheduler.start_time)
		return scheduler.heartbeats;
	return gp_undo_record_heartbeat_ns(file, slot);
}

/* FNV-1a. */
static uint64_t hash_of(const char *line)
{
	uint64_t hash = 0xcbf29ce484222325ull;

	for (; *line; line++)
		hash = (hash ^ (unsigned char)*line) * 0x100000001b3ull;
	return hash;
}

/* A failed undo is tried every second: its warnings are logged when they change. */
static bool is_repeated(struct job *job, const char *line)
{
	uint64_t hash = hash_of(line), now_ns = gp_monotonic_ns();

	for (unsigned i = 0; i < WARNINGS_MAX; i++)
		if (job->warning[i].hash == hash && now_ns < job->warning[i].at_ns + REMIND_NS)
			return true;
	job->warning[job->nwarnings++ % WARNINGS_MAX] = (struct warning){hash, now_ns};
	return false;
}

/* The log of a worker. */
struct filter {
	struct job *job; /* being done; NULL: none */
	gp_log_sink *sink;
	void *sink_arg;
};

static void log_changes(void *arg, enum gp_log_level level, const char *line)
{
	const struct filter *filter = arg;

	if (level < GP_LOG_WARN || !filter->job || !is_repeated(filter->job, line))
		filter->sink(filter->sink_arg, level, line);
}

/* A process that is not seen to work may have nothing to do, or the driver's answers are wrong. The
 * undo is made once more later, unless an owner that lives may hold the process again. */
static int confirm(struct job *job)
{
	const struct gp_undo_entry *e = &job->entry;
	bool seen = gp_record_look(e, LOOK_NS) == GP_EVIDENCE_ENOUGH;

	if (!job->is_repetition)
		gp_log(GP_LOG_INFO, "undone", "pid=%d backend=%s%s", e->undo.pid, e->backend,
		       seen ? "" : " confirmed_by=driver");
	return seen || !e->claimed || job->is_repetition ? 0 : -EINPROGRESS;
}

static int undo(const struct gp_replay *r, unsigned slot, struct job *job)
{
	const struct gp_undo_entry *e = &job->entry;
	uint64_t began_ns = gp_monotonic_ns();
	struct gp_error err = {0};
	char why[300];
	int code;

	if (!e->claimed && !e->release_asked &&
	    gp_replay_heartbeats(r->file, slot, e) != job->heartbeats)
		return -ECANCELED;
	code = gp_record_undo(e, &err);
	if (!code && !e->claimed)
		gp_undo_note_undone(r->file, slot, began_ns);
	if (!code)
		return confirm(job);
	gp_log(GP_LOG_WARN, "undo.failed", "pid=%d owner=%d errno=%d why=%s", e->undo.pid, e->owner,
	       -code, gp_log_quote(why, sizeof why, err.text));
	/* -ETIMEDOUT means to the keeper that the worker had to be killed. */
	return code == -ETIMEDOUT ? -EIO : code;
}

/*
 * Takes the job if its process lives, or if it has ended. The job is taken before the process is
 * examined: the kernel may answer only when an execve of the process is complete. The worker then
 * hangs with this job and not as an idle worker, which would keep the others from being started.
 */
static bool take(const struct gp_replay *r, unsigned worker, struct job *job, bool ended)
{
	uint32_t todo = TODO;

	if (state_of(job) != TODO)
		return false;
	__atomic_store_n(&r->board->since_ns[worker], gp_monotonic_ns(), __ATOMIC_RELEASE);
	if (!__atomic_compare_exchange_n(&job->state, &todo, DOING | worker << 8, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	if (gp_process_gone(job->entry.undo.pid, job->entry.undo.start_time) == ended)
		return true;
	set_state(job, TODO);
	return false;
}

/* The jobs of processes that live, or of those that have ended. */
static void work_on(const struct gp_replay *r, unsigned worker, struct filter *filter, bool ended)
{
	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++) {
		struct job *job = &r->board->job[i];

		if (!take(r, worker, job, ended))
			continue;
		filter->job = job;
		job->result = undo(r, i, job);
		filter->job = NULL;
		if (!job->result)
			memset(job->warning, 0, sizeof job->warning);
		set_state(job, DONE);
		eventfd_write(r->done_fd, 1);
	}
}

/* Living processes first: the search for the heirs of an ended one looks at all processes. */
static void work(const struct gp_replay *r, unsigned worker)
{
	struct filter filter = {0};

	filter.sink = gp_log_get_sink(&filter.sink_arg);
	if (!filter.sink)
		filter.sink = gp_log_if_possible;
	gp_log_set_sink(log_changes, &filter);
	work_on(r, worker, &filter, false);
	work_on(r, worker, &filter, true);
	__atomic_store_n(&r->board->since_ns[worker], 0, __ATOMIC_RELEASE);
}

/* A worker must not outlive the keeper: another process would undo the same record. */
static void start_worker(struct gp_replay *r, unsigned worker)
{
	pid_t keeper = getpid(), pid;
	sigset_t none;

	__atomic_store_n(&r->board->since_ns[worker], 0, __ATOMIC_RELEASE);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "gpreempt-undo");
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		if (getppid() == keeper)
			work(r, worker);
		_exit(0);
	}
	if (pid < 0)
		return; /* the next call of gp_replay_run tries again */
	r->worker[worker].pid = pid;
	r->worker[worker].pidfd = gp_pidfd_open(pid);
	r->worker[worker].killed = false;
}

/* In the keeper. */

int gp_replay_begin(struct gp_replay *r, struct gp_undo_file *file, struct gp_error *err)
{
	*r = (struct gp_replay){.file = file};
	r->board = mmap(NULL, sizeof *r->board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (r->board == MAP_FAILED)
		return gp_fail(err, -errno, "not enough memory for the workers of the keeper");
	r->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return r->done_fd < 0
		       ? gp_fail(err, -errno, "cannot create an eventfd: %s", gp_error_name(-errno))
		       : 0;
}

static void forget_worker(struct gp_replay *r, unsigned worker)
{
	if (r->worker[worker].pidfd >= 0)
		close(r->worker[worker].pidfd);
	r->worker[worker].pid = 0;
}

void gp_replay_end(struct gp_replay *r)
{
	for (unsigned i = 0; i < GP_REPLAY_WORKERS; i++)
		if (r->worker[i].pid) {
			kill(r->worker[i].pid, SIGKILL);
			waitpid(r->worker[i].pid, NULL,
				WNOHANG); /* the worker may be blocked in a driver */
			forget_worker(r, i);
		}
	close(r->done_fd);
	munmap(r->board, sizeof *r->board);
}

void gp_replay_ask(struct gp_replay *r, unsigned slot, const struct gp_undo_entry *entry,
		   uint64_t heartbeats, bool is_repetition)
{
	struct job *job = &r->board->job[slot];

	job->entry = *entry;
	job->heartbeats = heartbeats;
	job->is_repetition = is_repetition;
	set_state(job, TODO);
}

bool gp_replay_has(const struct gp_replay *r, unsigned slot)
{
	return state_of(&r->board->job[slot]) != IDLE;
}

bool gp_replay_is_busy(const struct gp_replay *r)
{
	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++)
		if (gp_replay_has(r, i))
			return true;
	return false;
}

/* Marks the job of a worker that was killed or has crashed as failed. Returns its slot, or -1. */
static int fail_job_of(struct gp_replay *r, unsigned worker)
{
	int slot = -1;

	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++) {
		struct job *job = &r->board->job[i];

		if (state_of(job) != (DOING | worker << 8))
			continue;
		slot = (int)i;
		job->result = r->worker[worker].killed ? -ETIMEDOUT : -EIO;
		set_state(job, DONE);
		gp_log(GP_LOG_WARN, "undo.failed", "pid=%d owner=%d errno=%d", job->entry.undo.pid,
		       job->entry.owner, -job->result);
	}
	return slot;
}

/* Goes on without a killed worker that does not end, if there is room to remember it. */
static void lose_worker(struct gp_replay *r, unsigned worker)
{
	for (unsigned i = 0; i < GP_REPLAY_LOST; i++) {
		int slot;

		if (r->lost[i].pid)
			continue;
		slot = fail_job_of(r, worker);
		r->lost[i].pid = r->worker[worker].pid;
		r->lost[i].slot = slot < 0 ? GP_UNDO_SLOTS : (unsigned)slot;
		gp_log(GP_LOG_ERROR, "worker.stuck", "pid=%d", r->lost[i].pid);
		forget_worker(r, worker);
		return;
	}
}

static void reap_lost(struct gp_replay *r)
{
	for (unsigned i = 0; i < GP_REPLAY_LOST; i++)
		if (r->lost[i].pid && waitpid(r->lost[i].pid, NULL, WNOHANG))
			r->lost[i].pid = 0;
}

bool gp_replay_is_stuck(const struct gp_replay *r, unsigned slot)
{
	for (unsigned i = 0; i < GP_REPLAY_LOST; i++)
		if (r->lost[i].pid && r->lost[i].slot == slot)
			return true;
	return false;
}

static void check_worker(struct gp_replay *r, unsigned worker, uint64_t now_ns)
{
	uint64_t began_ns = since_ns(r, worker);

	if (waitpid(r->worker[worker].pid, NULL, WNOHANG)) {
		fail_job_of(r, worker);
		forget_worker(r, worker);
	} else if (began_ns && now_ns > began_ns + GP_REPLAY_LIMIT_NS &&
		   !r->worker[worker].killed) {
		kill(r->worker[worker].pid, SIGKILL);
		r->worker[worker].killed = true;
	} else if (r->worker[worker].killed && began_ns &&
		   now_ns > began_ns + GP_REPLAY_LIMIT_NS + GP_REPLAY_END_NS) {
		lose_worker(r, worker);
	}
}

static bool is_free(const struct gp_replay *r, unsigned worker, uint64_t now_ns)
{
	uint64_t began_ns = since_ns(r, worker);

	return r->worker[worker].pid && !r->worker[worker].killed &&
	       (!began_ns || now_ns < began_ns + STALL_NS);
}

/* A worker that is not stalled will find the job. Otherwise another worker is started, if there is
 * room. */
static void provide_worker(struct gp_replay *r, uint64_t now_ns)
{
	for (unsigned i = 0; i < GP_REPLAY_WORKERS; i++)
		if (is_free(r, i, now_ns))
			return;
	for (unsigned i = 0; i < GP_REPLAY_WORKERS; i++)
		if (!r->worker[i].pid) {
			start_worker(r, i);
			return;
		}
}

uint64_t gp_replay_run(struct gp_replay *r, uint64_t now_ns, gp_replay_done_fn *done, void *arg)
{
	bool todo = false, doing = false;
	eventfd_t ignored;

	eventfd_read(r->done_fd, &ignored);
	reap_lost(r);
	for (unsigned i = 0; i < GP_REPLAY_WORKERS; i++)
		if (r->worker[i].pid)
			check_worker(r, i, now_ns);
	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++) {
		struct job *job = &r->board->job[i];

		switch (state_of(job) & 0xff) {
		case TODO: todo = true; break;
		case DOING: doing = true; break;
		case DONE:
			set_state(job, IDLE);
			done(arg, i, &job->entry, job->result);
			break;
		default: break;
		}
	}
	if (todo)
		provide_worker(r, now_ns);
	return todo || doing ? now_ns + STALL_NS : GP_NEVER;
}

void gp_replay_poll(const struct gp_replay *r, struct pollfd *p)
{
	for (unsigned i = 0; i < GP_REPLAY_WORKERS; i++)
		p[i] = (struct pollfd){.fd = r->worker[i].pid ? r->worker[i].pidfd : -1,
				       .events = POLLIN};
	p[GP_REPLAY_WORKERS] = (struct pollfd){.fd = r->done_fd, .events = POLLIN};
}
