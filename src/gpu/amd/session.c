/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/amd/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/process.h"
#include "gpu/amd/handshake.h"
#include "gpu/amd/ptrace_link.h"

/* The driver reports all other exceptions to the program's own runtime. */
#define EXCEPTIONS    (KFD_EC_PROCESS_RUNTIME | KFD_EC_QUEUE_NEW | KFD_EC_QUEUE_DELETE)

#define FIRST_QUEUES  16
#define END_TRIES     3
#define ENABLE_TRIES  10 /* while signals interrupt the call */
#define REFUSALS_MAX  3
#define DYING_MS      100
#define CLOSE_MS      20 /* for the driver to close the pipe of a session that has ended */
#define LOOKS         4  /* before a snapshot that differs from sysfs counts as wrong */
#define LOOK_PAUSE_US 1000
#define EVENTS_MAX \
	64 /* in one call: a target that raises events all the time must not block the thread */

bool gp_amd_computes(const struct kfd_queue_snapshot_entry *queue)
{
	return queue->queue_type == KFD_QUEUE_COMPUTE || queue->queue_type == KFD_QUEUE_COMPUTE_AQL;
}

static int make_room(struct gp_amd_session *s, unsigned n)
{
	unsigned capacity = s->capacity ? s->capacity : FIRST_QUEUES;
	struct gp_amd_queue *queue;
	struct kfd_queue_snapshot_entry *entry;
	struct gp_amd_sysfs_queue *listed;
	uint32_t *id;

	while (capacity < n)
		capacity *= 2;
	if (capacity == s->capacity)
		return 0;
	queue = realloc(s->queue, capacity * sizeof *queue);
	if (queue)
		s->queue = queue;
	entry = realloc(s->entry, capacity * sizeof *entry);
	if (entry)
		s->entry = entry;
	listed = realloc(s->listed, capacity * sizeof *listed);
	if (listed)
		s->listed = listed;
	id = realloc(s->id, capacity * sizeof *id);
	if (id)
		s->id = id;
	if (!queue || !entry || !listed || !id)
		return -ENOMEM;
	s->capacity = capacity;
	return 0;
}

/* Queue ids are reused. The same queue also has the same ring. */
static const struct gp_amd_queue *find_same(const struct gp_amd_session *s,
					    const struct kfd_queue_snapshot_entry *entry)
{
	for (unsigned i = 0; i < s->nqueues; i++) {
		const struct kfd_queue_snapshot_entry *is = &s->queue[i].is;

		if (is->queue_id == entry->queue_id && is->gpu_id == entry->gpu_id &&
		    is->ring_base_address == entry->ring_base_address &&
		    !(entry->exception_status & KFD_EC_QUEUE_NEW))
			return &s->queue[i];
	}
	return NULL;
}

/* Takes over the snapshot. The state of a queue that is still there is kept. */
static void take_snapshot(struct gp_amd_session *s, unsigned n)
{
	bool changed = n != s->nqueues;

	for (unsigned i = 0; i < n; i++) {
		const struct gp_amd_queue *same = find_same(s, &s->entry[i]);

		changed |= !same;
		s->id[i] = same ? (uint32_t)same->suspended | (uint32_t)same->doubtful << 1 |
					   (uint32_t)same->blamed << 2
				: 0;
	}
	for (unsigned i = 0; i < n; i++)
		s->queue[i] = (struct gp_amd_queue){.is = s->entry[i],
						    .suspended = s->id[i] & 1,
						    .doubtful = s->id[i] & 2,
						    .blamed = s->id[i] & 4};
	s->nqueues = n;
	s->changed |= changed;
}

static const struct kfd_queue_snapshot_entry *find_entry(const struct gp_amd_session *s, unsigned n,
							 uint32_t id)
{
	for (unsigned i = 0; i < n; i++)
		if (s->entry[i].queue_id == id)
			return &s->entry[i];
	return NULL;
}

static int contradict(struct gp_amd_session *s, const struct kfd_queue_snapshot_entry *entry,
		      const struct gp_amd_sysfs_queue *listed)
{
	static const char *const does[] = {"copies", "computes"};

	return gp_fail(&s->outdated, -EBADMSG,
		       "the driver contradicts itself about queue %u of process %d, so the process "
		       "is left alone: it %s (type %u) on GPU %u by the snapshot, and %s (type %u) "
		       "on GPU %u by sysfs",
		       entry->queue_id, s->pid, does[gp_amd_computes(entry)], entry->queue_type,
		       entry->gpu_id, does[listed->type == KFD_SYSFS_QUEUE_COMPUTE], listed->type,
		       listed->gpu_id);
}

/*
 * Compares the `n` queues of a snapshot with sysfs, where the driver lists them too. A queue that
 * is thought to copy, or to be on another GPU, would not be suspended. A queue that is created or
 * destroyed at this moment may be in one list only. Without a registered runtime no queue can be
 * suspended, and gp_amd_session_check says so.
 */
static int compare(struct gp_amd_session *s, unsigned n)
{
	int listed = s->runtime_state == KFD_RUNTIME_ENABLED
			     ? gp_amd_sysfs_queues(s->pid, s->listed, s->capacity)
			     : 0;

	if (listed > (int)n)
		return gp_fail(&s->outdated, -EPROTO,
			       "the driver's answer about process %d cannot be true: it lists %d "
			       "queues in sysfs and %u in the snapshot",
			       s->pid, listed, n);
	for (int i = 0; i < listed; i++) {
		const struct gp_amd_sysfs_queue *is = &s->listed[i];
		const struct kfd_queue_snapshot_entry *entry = find_entry(s, n, is->id);

		if (entry && (entry->gpu_id != is->gpu_id ||
			      gp_amd_computes(entry) != (is->type == KFD_SYSFS_QUEUE_COMPUTE)))
			return contradict(s, entry, is);
	}
	return 0;
}

/* Reads the queues into s->entry, with room for all of them. Returns their number, or -errno. */
static int read_snapshot(struct gp_amd_session *s)
{
	for (;;) {
		int n = gp_kfd_snapshot(s->kfd, s->pid, KFD_EC_QUEUE_NEW, s->entry, s->capacity);
		int r;

		if (n < 0 || (unsigned)n <= s->capacity)
			return n;
		r = make_room(s, (unsigned)n);
		if (r)
			return r;
	}
}

static int fail_untrue(const struct gp_amd_session *s, struct gp_error *err)
{
	return gp_fail(err, -EPROTO,
		       "the driver's answer about process %d cannot be true, so the process is "
		       "left alone; see the kernel log (dmesg), or reload amdgpu",
		       s->pid);
}

static int fail_snapshot(struct gp_amd_session *s, int code)
{
	if (code == -EPROTO)
		return fail_untrue(s, &s->outdated);
	return gp_fail(&s->outdated, code, "the queues of process %d cannot be read: %s", s->pid,
		       gp_error_name(code));
}

int gp_amd_session_refresh(struct gp_amd_session *s)
{
	int n = 0, r = -EPROTO;

	for (int i = 0; i < LOOKS && r; i++) {
		if (i)
			usleep(LOOK_PAUSE_US);
		s->outdated = (struct gp_error){0};
		n = read_snapshot(s);
		if (n < 0)
			return fail_snapshot(s, n);
		r = compare(s, (unsigned)n);
	}
	if (!r)
		take_snapshot(s, (unsigned)n);
	return r;
}

static bool is_meant(const struct gp_amd_choice *choice, const struct gp_amd_queue *q)
{
	return gp_amd_computes(&q->is) && choice->is_meant(choice->arg, &q->is);
}

/* Collects the ids of the selected queues that are not suspended, or of those that are or may be.
 */
static uint32_t gather(struct gp_amd_session *s, const struct gp_amd_choice *choice, bool suspended)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < s->nqueues && n < KFD_DBG_QUEUES_MAX; i++) {
		struct gp_amd_queue *q = &s->queue[i];

		if (!is_meant(choice, q))
			continue;
		q->failed = q->refused = false;
		if (q->suspended == suspended || q->doubtful)
			s->id[n++] = q->is.queue_id;
	}
	return n;
}

static struct gp_amd_queue *find_queue(const struct gp_amd_session *s, uint32_t id)
{
	for (unsigned i = 0; i < s->nqueues; i++)
		if (s->queue[i].is.queue_id == (id & KFD_DBG_QUEUE_ID_MASK))
			return &s->queue[i];
	return NULL;
}

/* The call failed, and may have had an effect all the same. */
static void doubt_all(struct gp_amd_session *s, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct gp_amd_queue *q = find_queue(s, s->id[i]);

		if (q)
			q->doubtful = true;
	}
}

static bool is_done(uint32_t id)
{
	return !(id & (KFD_DBG_QUEUE_ERROR | KFD_DBG_QUEUE_INVALID));
}

/*
 * Evaluates a call for the ids in s->id: `answer` is its result. It has taken effect for a queue
 * without an error bit, if the driver counts as many queues as have none. A suspend that failed
 * leaves the queue marked as suspended in the driver, a resume that failed as running; whether it
 * is on the hardware is not known. A refused queue should be unchanged, which is not relied on.
 * -EIO: a queue failed; -EPROTO: count and bits differ.
 */
static int evaluate(struct gp_amd_session *s, uint32_t n, bool suspended, int answer)
{
	bool failed = false;

	s->expected = 0;
	for (uint32_t i = 0; i < n; i++)
		s->expected += is_done(s->id[i]);
	s->answered = (unsigned)answer;
	for (uint32_t i = 0; i < n; i++) {
		struct gp_amd_queue *q = find_queue(s, s->id[i]);

		if (!q)
			continue;
		q->failed = s->id[i] & KFD_DBG_QUEUE_ERROR;
		q->refused = !q->failed && !is_done(s->id[i]);
		failed |= q->failed;
		if (is_done(s->id[i]) && s->answered == s->expected) {
			q->suspended = suspended;
			q->doubtful = false;
		} else {
			q->doubtful = true;
		}
	}
	return failed ? -EIO : s->answered != s->expected ? -EPROTO : answer;
}

/* The session has ended: the driver finds this before it changes anything. */
static bool is_over(int code)
{
	return code == -ESRCH || code == -EINVAL || code == -EPERM;
}

static int resume_once(struct gp_amd_session *s, const struct gp_amd_choice *choice)
{
	uint32_t n = gather(s, choice, true);
	int r = n ? gp_kfd_resume(s->kfd, s->pid, s->id, n) : 0;

	if (r < 0)
		doubt_all(s, n);
	return r < 0 || !n ? r : evaluate(s, n, false, r);
}

/* Any error may be untrue: the driver may have suspended the queues before. Only EPERM is believed,
 * if an event of the driver has said before that the runtime has ended. */
static int suspend_once(struct gp_amd_session *s, const struct gp_amd_choice *choice,
			uint32_t grace)
{
	uint32_t n = gather(s, choice, false);
	int r = n ? gp_kfd_suspend(s->kfd, s->pid, s->id, n, grace) : 0;

	if (r < 0 && !(r == -EPERM && s->runtime_state == KFD_RUNTIME_DISABLED))
		doubt_all(s, n);
	return r < 0 || !n ? r : evaluate(s, n, true, r);
}

static bool any_refused(const struct gp_amd_session *s, const struct gp_amd_choice *choice)
{
	for (unsigned i = 0; i < s->nqueues; i++)
		if (s->queue[i].refused && is_meant(choice, &s->queue[i]))
			return true;
	return false;
}

/* Keeps the queues that failed, or were refused, for the message: the next call overwrites the
 * bits. */
static void blame(struct gp_amd_session *s, const struct gp_amd_choice *choice, bool refused)
{
	for (unsigned i = 0; i < s->nqueues; i++)
		if (is_meant(choice, &s->queue[i]))
			s->queue[i].blamed = refused ? s->queue[i].refused : s->queue[i].failed;
}

/* Makes the call, and again if it refused a queue: the queue is gone or new, so the list is read
 * first. A suspend must not miss a queue because the list is old. -EAGAIN: a queue was refused each
 * time. */
static int insist(struct gp_amd_session *s, const struct gp_amd_choice *choice, bool suspend,
		  uint32_t grace)
{
	int total = 0, r = suspend && s->outdated.code ? gp_amd_session_refresh(s) : 0;

	for (int i = 0; i < REFUSALS_MAX && r >= 0; i++) {
		r = suspend ? suspend_once(s, choice, grace) : resume_once(s, choice);
		total += r > 0 ? r : 0;
		if (r >= 0 && !any_refused(s, choice))
			return total;
		if (r >= 0 && i < REFUSALS_MAX - 1)
			r = gp_amd_session_refresh(s); /* forgets the refusal */
	}
	return r < 0 ? r : -EAGAIN;
}

int gp_amd_session_resume(struct gp_amd_session *s, const struct gp_amd_choice *choice)
{
	int r = insist(s, choice, false, 0);

	blame(s, choice, r == -EAGAIN);
	return r;
}

int gp_amd_session_suspend(struct gp_amd_session *s, const struct gp_amd_choice *choice,
			   uint32_t grace)
{
	int r = insist(s, choice, true, grace), resumed;
	unsigned answered = s->answered, expected = s->expected;

	s->untrue = 0;
	blame(s, choice, r == -EAGAIN);
	if (r >= 0)
		return r;
	resumed = insist(s, choice, false, 0); /* a partial hold, or a call that failed late */
	s->answered = answered;                /* for the message */
	s->expected = expected;
	if (resumed <= 0 || !is_over(r))
		return r;
	s->untrue = r; /* a session that is over resumes nothing */
	return -EPROTO;
}

bool gp_amd_session_is_doubtful(const struct gp_amd_session *s)
{
	for (unsigned i = 0; i < s->nqueues; i++)
		if (s->queue[i].doubtful)
			return true;
	return false;
}

void gp_amd_session_doubt(struct gp_amd_session *s, const struct gp_amd_choice *choice)
{
	for (unsigned i = 0; i < s->nqueues; i++)
		if (is_meant(choice, &s->queue[i]))
			s->queue[i].doubtful = true;
}

/* The target starts or ends its runtime, and waits for the answer. */
static int answer_runtime(struct gp_amd_session *s)
{
	int r = gp_kfd_send_runtime_event(s->kfd, s->pid);

	if (r < 0)
		return r;
	s->owes_answer = false;
	r = gp_kfd_try_suspend(s->kfd, s->pid);
	s->runtime_state = r == -EPERM ? KFD_RUNTIME_DISABLED : KFD_RUNTIME_ENABLED;
	if (r == -EPERM) /* the end of the runtime resumed all queues */
		for (unsigned i = 0; i < s->nqueues; i++)
			s->queue[i].suspended = s->queue[i].doubtful = false;
	return 1;
}

int gp_amd_session_events(struct gp_amd_session *s)
{
	char ignored[64];
	bool changed = false;
	ssize_t n;
	int r = 0;

	s->again = false;
	do
		n = read(s->event_fd, ignored, sizeof ignored);
	while (n > 0);
	if (!n) /* the driver closed the pipe: the target ended or runs another program */
		return -ESRCH;
	if (s->owes_answer) { /* the driver does not repeat this event */
		r = answer_runtime(s);
		changed = r > 0;
	}
	for (unsigned i = 0; r >= 0 && i < EVENTS_MAX; i++) {
		uint64_t raised;

		/* The snapshot clears QUEUE_NEW; the queue can be suspended afterwards. */
		r = gp_kfd_query_event(s->kfd, s->pid, EXCEPTIONS & ~KFD_EC_QUEUE_NEW, &raised);
		if (r < 0)
			break;
		s->owes_answer |= (raised & KFD_EC_PROCESS_RUNTIME) != 0;
		if (s->owes_answer)
			r = answer_runtime(s);
		if (r >= 0)
			r = gp_amd_session_refresh(s);
		if (r < 0)
			break;
		changed = true;
	}
	if (r >= 0 || r == -EAGAIN)
		return changed;
	s->again = !is_over(r); /* the event was read, but not answered */
	return r;
}

/* Whether the driver has closed the pipe of the session, within `ms`. It does so when the session
 * ends: an answer of the driver cannot hide that. */
static bool closes_within(const struct gp_amd_session *s, int ms)
{
	struct pollfd pipe = {.fd = s->event_fd};

	return poll(&pipe, 1, ms) > 0 && pipe.revents & POLLHUP;
}

static bool is_closed(const struct gp_amd_session *s)
{
	return closes_within(s, 0);
}

/* A session that was begun without a pipe shows nothing. */
static bool may_be_over(const struct gp_amd_session *s)
{
	return s->event_fd < 0 || closes_within(s, CLOSE_MS);
}

/* Enables a session with a pipe. Only the driver has the writing end, and closes it at the end of
 * the session. */
static int enable_with_pipe(struct gp_amd_session *s, struct kfd_runtime_info *info)
{
	struct gp_amd_session begun = {.event_fd = -1};
	int fd[2], r = -EINTR;

	if (pipe2(fd, O_NONBLOCK | O_CLOEXEC))
		return -errno;
	for (int i = 0; i < ENABLE_TRIES && r == -EINTR; i++) {
		r = gp_kfd_enable(s->kfd, s->pid, EXCEPTIONS, fd[1], info);
		/* A call that failed may have begun the session. */
		if (r < 0 && r != -EALREADY && gp_kfd_has_session(s->kfd, s->pid) > 0)
			gp_kfd_disable(s->kfd, s->pid);
	}
	close(fd[1]);
	begun.event_fd = fd[0];
	if (r < 0) {
		/* Only a session of this process keeps the pipe open, whatever the driver says. */
		bool is_ours = !closes_within(&begun, r == -EALREADY ? CLOSE_MS : 0);

		if (is_ours)
			gp_kfd_disable(s->kfd, s->pid);
		close(fd[0]);
		return is_ours && r == -EALREADY ? -EIO : r;
	}
	if (s->event_fd >= 0)
		close(s->event_fd);
	s->event_fd = fd[0];
	return 0;
}

static int fail_slot_in_use(const struct gp_amd_session *s, pid_t other, struct gp_error *err)
{
	if (other)
		return gp_fail(
			err, -EBUSY,
			"process %d cannot be suspended beside process %d: a GPU here debugs "
			"one process at a time; choose one of them",
			s->pid, other);
	return gp_fail(
		err, -EBUSY,
		"process %d cannot be suspended: a GPU here debugs one process at a time, "
		"and another process is attached; end its debugger, or run gpreempt resume on it",
		s->pid);
}

int gp_amd_session_check(const struct gp_amd_session *s, pid_t other, struct gp_error *err)
{
	switch (s->runtime_state) {
	case KFD_RUNTIME_ENABLED: return 0;
	case KFD_RUNTIME_BUSY: return fail_slot_in_use(s, other, err);
	case KFD_RUNTIME_ERROR:
		return gp_fail(
			err, -EIO,
			"process %d cannot be suspended: the driver could not set up the GPU "
			"for this process; the kernel's log (dmesg) says more",
			s->pid);
	default:
		return gp_fail(
			err, -ENOTSUP,
			"process %d cannot be suspended: its runtime has not registered with "
			"the driver; ROCm 6 does so if the firmware of every GPU can "
			"debug (see gpreempt doctor)",
			s->pid);
	}
}

/* The driver does not know the process, which has ended or has not opened the device: it has no
 * session. If sysfs lists queues of the process, this answer is untrue. */
static bool is_unknown(const struct gp_amd_session *s, int code)
{
	return code == -ESRCH && gp_amd_has_no_queues(s->pid);
}

/* A process that debugs itself needs no link, and cannot have one. */
static int link_to(struct gp_amd_session *s, struct gp_error *err)
{
	return s->pid == getpid() || s->link == GP_AMD_LINKED ? 0 : gp_amd_link(s, err);
}

int gp_amd_not_a_user(pid_t pid, int code, struct gp_error *err)
{
	return gp_fail(err, code,
		       "process %d does not use an AMD GPU; gpreempt ps lists those that do", pid);
}

/* A process that dies has no memory, which the driver reports, a moment before it has ended. */
static bool is_dying(const struct gp_amd_session *s, int code)
{
	struct pollfd end = {.fd = s->pidfd, .events = POLLIN};

	return poll(&end, 1, code == -ESRCH || code == -EINVAL ? DYING_MS : 0) > 0;
}

static int explain_enable(const struct gp_amd_session *s, int code, struct gp_error *err)
{
	if (is_dying(s, code))
		return gp_fail(err, -ESRCH, "process %d has ended", s->pid);
	switch (code) {
	case -EPROTO: return fail_untrue(s, err);
	case -ESRCH:
		if (!gp_amd_has_no_queues(s->pid))
			return gp_fail(err, -EIO,
				       "the driver does not find process %d (ESRCH), although it "
				       "lists queues of it; try again",
				       s->pid);
		return gp_amd_not_a_user(s->pid, code, err);
	case -EALREADY:
		return gp_fail(err, -EBUSY,
			       "process %d is attached to another debugger or scheduler; end "
			       "that first",
			       s->pid);
	case -EBUSY:
		return gp_fail(err, code,
			       "process %d uses cooperative launches (GWS), which its GPU cannot "
			       "suspend: start it without them, or leave it unmanaged",
			       s->pid);
	case -ENODEV:
		return gp_fail(err, code,
			       "process %d can see a GPU that is too old to suspend: "
			       "start it in a container without that GPU",
			       s->pid);
	default:
		return gp_fail(err, code, "the driver refuses to attach to process %d: %s", s->pid,
			       gp_error_name(code));
	}
}

/* There is a session, or it is not known whether there is one. */
static int explain_look(const struct gp_amd_session *s, int code, struct gp_error *err)
{
	if (code > 0 || code == -EPROTO || code == -ESRCH || is_dying(s, code))
		return explain_enable(s, code > 0 ? -EALREADY : code, err);
	return gp_fail(err, code,
		       "it is not known whether another debugger or scheduler is attached to "
		       "process %d (%s), so the process is left alone; try again",
		       s->pid, gp_error_name(code));
}

static int enable(struct gp_amd_session *s, enum gp_amd_rule *rule, struct gp_error *err)
{
	struct kfd_runtime_info info = {0};
	int r;

	/* Trap: even a failed ENABLE takes the session from its owner, because the driver records
	 * the last process that tried. When that process ends, the session has no owner, and its
	 * queues stay suspended. So the driver has to say first that there is no session. */
	r = gp_kfd_has_session(s->kfd, s->pid);
	if (r && !is_unknown(s, r))
		return explain_look(s, r, err);
	r = enable_with_pipe(s, &info);
	if (r < 0)
		return explain_enable(s, r, err);
	s->enabled = true;
	s->runtime_state = info.runtime_state;
	if (*rule == GP_AMD_RULE_UNKNOWN)
		*rule = gp_amd_find_rule(s->kfd, s->pid);
	if (make_room(s, FIRST_QUEUES))
		return gp_fail(err, -ENOMEM, "no memory");
	r = gp_amd_session_refresh(s);
	if (r == -EINVAL || r == -ESRCH) /* there is no session */
		return explain_enable(s, r == -EINVAL ? -EPROTO : r, err);
	return r ? gp_fail(err, r, "%s", s->outdated.text) : 0;
}

int gp_amd_session_open(struct gp_amd_session *s, int kfd, pid_t pid, enum gp_amd_rule *rule,
			struct gp_error *err)
{
	int r;

	*s = (struct gp_amd_session){.kfd = kfd, .pid = pid, .pidfd = -1, .event_fd = -1};
	s->pidfd = gp_pidfd_open(pid);
	r = gp_process_find(pid, &s->start_time, err);
	if (!r && s->pidfd < 0)
		r = gp_fail(err, -ESRCH, "there is no process %d", pid);
	if (!r)
		r = link_to(s, err);
	if (!r)
		r = enable(s, rule, err);
	if (!r && *rule == GP_AMD_RULE_DEBUGGER)
		gp_amd_unlink_now(s);
	/* A session that does not end stays open, for the caller to end it later. */
	if (r && !gp_amd_session_end(s))
		gp_amd_session_close(s);
	return r;
}

int gp_amd_end_as_tracer(int kfd, pid_t pid)
{
	int r = -EIO;

	for (int i = 0; i < END_TRIES && r; i++) {
		struct gp_amd_session s = {.kfd = kfd, .pid = pid, .event_fd = -1};
		struct kfd_runtime_info ignored;
		int begun = enable_with_pipe(&s, &ignored), ended = gp_kfd_disable(kfd, pid);

		/* Only a session that begins shows that none was left. */
		if (!begun && is_closed(&s) && !gp_kfd_has_session(kfd, pid))
			r = 0;
		else
			r = begun && begun != -EALREADY ? begun : ended ? ended : -EIO;
		if (s.event_fd >= 0)
			close(s.event_fd);
	}
	return r;
}

/*
 * The driver does not know this process any more as the debugger, although its session exists: the
 * failed ENABLE of another process has taken it. A tracer can end it.
 */
static int take_back(struct gp_amd_session *s)
{
	int r;

	if (s->link != GP_AMD_UNLINKED)
		return -EPERM;
	r = gp_amd_link(s, NULL);
	if (r)
		return r;
	r = gp_kfd_has_session(s->kfd, s->pid);
	if (r > 0 && !is_closed(s)) {
		gp_log(GP_LOG_WARN, "session.taken", "pid=%d", s->pid);
		r = gp_amd_end_as_tracer(s->kfd, s->pid);
	}
	if (is_closed(s))
		r = 0; /* a session that exists is of another process */
	gp_amd_unlink_now(s);
	return r > 0 ? -EIO : r;
}

/* The driver finds no session, but has not closed its pipe. A new session shows whether there is
 * one: ENABLE fails then. The next try ends the new session. */
static int begin_another(struct gp_amd_session *s)
{
	bool was_linked = s->link != GP_AMD_UNLINKED;
	struct kfd_runtime_info ignored;
	int r = link_to(s, NULL);

	if (!r)
		enable_with_pipe(s, &ignored);
	if (!was_linked)
		gp_amd_unlink_now(s);
	gp_log(GP_LOG_WARN, "session.pipe-open", "pid=%d", s->pid);
	return -EIO;
}

/* Ends the session, and verifies it: 0 or -errno. */
static int disable(struct gp_amd_session *s)
{
	int r = gp_kfd_disable(s->kfd, s->pid), seen = gp_kfd_has_session(s->kfd, s->pid);

	if (is_unknown(s, seen) || (seen < 0 && is_closed(s)))
		return 0;
	if (!seen)
		return may_be_over(s) ? 0 : begin_another(s);
	if (seen > 0)
		return r < 0 ? r : -EIO;
	/* This process may not look. If the session has ended, there is nothing to end. */
	if (r >= 0)
		r = gp_kfd_disable(s->kfd, s->pid);
	if (r == -EPERM)
		return take_back(s);
	if (is_unknown(s, r) || (r == -EINVAL && may_be_over(s)))
		return 0;
	return r < 0 && r != -EINVAL ? r : -EIO;
}

static int disable_surely(struct gp_amd_session *s)
{
	int r = -EIO;

	for (int i = 0; i < END_TRIES && r; i++)
		r = disable(s);
	return r;
}

/*
 * Trap: the end of the session does not wake a target whose runtime waits for an answer. If the
 * target began to wait between the last answer and the end, a short second session answers it.
 */
static void answer_late(struct gp_amd_session *s)
{
	struct kfd_runtime_info info;

	if (!gp_amd_is_in_handshake(s->pid) || link_to(s, NULL))
		return;
	if (gp_kfd_has_session(s->kfd, s->pid) || enable_with_pipe(s, &info) < 0)
		return;
	gp_kfd_send_runtime_event(s->kfd, s->pid);
	disable_surely(s);
}

int gp_amd_session_end(struct gp_amd_session *s)
{
	int r;

	if (!s->enabled)
		return 0;
	if (s->event_fd >= 0)
		gp_amd_session_events(s);
	r = disable_surely(s);
	if (r && gp_pidfd_ended(s->pidfd))
		r = 0; /* a process that has ended has no queues */
	if (r)
		return r;
	s->enabled = false;
	for (unsigned i = 0; i < s->nqueues; i++)
		s->queue[i].suspended = s->queue[i].doubtful = false;
	answer_late(s);
	return 0;
}

int gp_amd_session_close(struct gp_amd_session *s)
{
	int r = gp_amd_session_end(s);

	gp_amd_unlink_now(s);
	if (s->pidfd >= 0 && s->link == GP_AMD_UNLINKED) {
		close(s->pidfd);
		s->pidfd = -1;
	}
	if (s->event_fd >= 0)
		close(s->event_fd);
	free(s->queue);
	free(s->entry);
	free(s->listed);
	free(s->id);
	*s = (struct gp_amd_session){.kfd = -1,
				     .pid = s->pid,
				     .link = s->link,
				     .is_child = s->is_child,
				     .pidfd = s->pidfd,
				     .event_fd = -1};
	return r;
}
