/* SPDX-License-Identifier: Apache-2.0 */
#include "kfd_world.h"

int set_up_with(void **state, const char *model, const char *more, const char *value)
{
	struct world *w = calloc(1, sizeof(*w));

	*state = w;
	if (!w || kfd_emu_start(&w->emu, "--gpu", model, more, value, NULL))
		return -1;
	w->fd = open(w->emu.kfd, O_RDWR | O_CLOEXEC);
	return w->fd < 0 || pipe2(w->pipe, O_CLOEXEC | O_NONBLOCK) ? -1 : 0;
}

int kfd_tear_down(void **state)
{
	struct world *w = *state;
	int result;

	if (w->has_queue)
		queue_close(w->fd, &w->queue);
	kfd_load_kill(&w->load);
	close(w->fd);
	close(w->pipe[0]);
	close(w->pipe[1]);
	result = kfd_emu_stop(&w->emu);
	free(w);
	return result;
}

/* Skips the tests where there is no FUSE. */
TEST_BEGIN
{
	struct kfd_emu emu;
	int result = kfd_emu_start(&emu, NULL);

	if (result == -ENODEV)
		exit(KFD_EMU_SKIP);
	if (result || kfd_emu_stop(&emu))
		exit(1);
}

int call(int fd, unsigned long cmd, void *args)
{
	int result = ioctl(fd, cmd, args);

	return result < 0 ? -errno : result;
}

int dbg(int fd, pid_t pid, uint32_t op, struct kfd_dbg_trap *args)
{
	args->pid = (uint32_t)pid;
	args->op = op;
	return call(fd, KFD_IOC_DBG_TRAP, args);
}

int dbg_plain(const struct world *w, pid_t pid, uint32_t op)
{
	struct kfd_dbg_trap args = {0};

	return dbg(w->fd, pid, op, &args);
}

int dbg_enable(const struct world *w, pid_t pid, struct kfd_runtime_info *info)
{
	struct kfd_dbg_trap args = {.enable = {.exception_mask = EVENTS,
					       .rinfo_ptr = (uint64_t)(uintptr_t)info,
					       .rinfo_size = sizeof(*info),
					       .dbg_fd = (uint32_t)w->pipe[1]}};

	return dbg(w->fd, pid, KFD_DBG_ENABLE, &args);
}

int dbg_snapshot(const struct world *w, pid_t pid, uint64_t clear,
		 struct kfd_queue_snapshot_entry *entries, uint32_t room)
{
	struct kfd_dbg_trap args = {
		.queue_snapshot = {.exception_mask = clear,
				   .snapshot_buf_ptr = (uint64_t)(uintptr_t)entries,
				   .num_queues = room,
				   .entry_size = sizeof(*entries)}};
	int result = dbg(w->fd, pid, KFD_DBG_GET_QUEUE_SNAPSHOT, &args);

	return result < 0 ? result : (int)args.queue_snapshot.num_queues;
}

void clear_new(const struct world *w, pid_t pid)
{
	struct kfd_queue_snapshot_entry entries[64];

	assert_in_range(dbg_snapshot(w, pid, KFD_EC_QUEUE_NEW, entries, 64), 0, 64);
}

int dbg_suspend(const struct world *w, pid_t pid, uint64_t clear, uint32_t *ids, uint32_t count)
{
	struct kfd_dbg_trap args = {.suspend_queues = {.exception_mask = clear,
						       .queue_array_ptr = (uint64_t)(uintptr_t)ids,
						       .num_queues = count,
						       .grace_period = KFD_GRACE_MIN}};

	return dbg(w->fd, pid, KFD_DBG_SUSPEND_QUEUES, &args);
}

int dbg_resume(const struct world *w, pid_t pid, uint32_t *ids, uint32_t count)
{
	struct kfd_dbg_trap args = {.resume_queues = {.queue_array_ptr = (uint64_t)(uintptr_t)ids,
						      .num_queues = count}};

	return dbg(w->fd, pid, KFD_DBG_RESUME_QUEUES, &args);
}

int64_t dbg_query(const struct world *w, pid_t pid, uint64_t clear)
{
	struct kfd_dbg_trap args = {.query_debug_event = {.exception_mask = clear}};
	int result = dbg(w->fd, pid, KFD_DBG_QUERY_DEBUG_EVENT, &args);

	return result ? result : (int64_t)args.query_debug_event.exception_mask;
}

int dbg_answer(const struct world *w, pid_t pid)
{
	struct kfd_dbg_trap args = {
		.send_runtime_event = {.exception_mask = KFD_EC_PROCESS_RUNTIME}};

	return dbg(w->fd, pid, KFD_DBG_SEND_RUNTIME_EVENT, &args);
}

void detach(pid_t pid)
{
	int status;

	assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, 0, 0), 0);
	assert_int_equal(waitpid(pid, &status, __WALL), pid);
	assert_int_equal(ptrace(PTRACE_DETACH, pid, 0, 0), 0);
}

void attach(const struct world *w, pid_t pid)
{
	struct kfd_runtime_info info = {0};

	seize(pid);
	assert_int_equal(dbg_enable(w, pid, &info), 0);
	assert_int_equal(info.runtime_state, KFD_RUNTIME_ENABLED);
	detach(pid);
}

pid_t attach_load(struct world *w, const char *queues)
{
	assert_int_equal(kfd_load_start(&w->load, "--queues", queues, NULL), 0);
	attach(w, w->load.pid);
	return w->load.pid;
}

pid_t attach_seen_load(struct world *w, const char *queues)
{
	pid_t pid = attach_load(w, queues);

	clear_new(w, pid);
	return pid;
}

struct load_queue *own_queue(struct world *w)
{
	struct gpu gpu = load_gpu(w->fd, 0);

	assert_false(w->has_queue);
	queue_open(w->fd, &gpu, &w->queue, KFD_QUEUE_COMPUTE_AQL, 7);
	w->has_queue = true;
	return &w->queue;
}

void enable_self(const struct world *w)
{
	struct kfd_runtime_info info = {0};

	assert_int_equal(dbg_enable(w, getpid(), &info), 0);
}

bool has_ended(pid_t pid)
{
	siginfo_t info = {0};

	return !waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid;
}

int stop_load(struct world *w)
{
	pid_t pid = w->load.pid;

	kill(pid, SIGTERM);
	for (int i = 0; i < 12000 && !has_ended(pid); i++) {
		int64_t raised = dbg_query(w, pid, UINT64_MAX);

		if (raised > 0 && raised & (int64_t)KFD_EC_PROCESS_RUNTIME)
			dbg_answer(w, pid);
		else if (raised < 0)
			emulator_sleep_ms(5);
	}
	return kfd_load_wait(&w->load);
}

void wait_sum(const struct world *w, pid_t pid, const char *field, uint64_t at_least)
{
	TEST_WAIT(kfd_emu_process_sum(&w->emu, pid, field) >= at_least);
}

void assert_stands_still(const struct world *w, pid_t pid)
{
	uint64_t before = kfd_emu_process_sum(&w->emu, pid, "run_ns");

	emulator_sleep_ms(50);
	assert_int_equal(kfd_emu_process_sum(&w->emu, pid, "run_ns"), before);
}
