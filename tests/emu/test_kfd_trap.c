/* SPDX-License-Identifier: Apache-2.0 */
/* Which call is refused why: dispatch, the ladder of DBG_TRAP, ENABLE and DISABLE. */
#include "kfd_world.h"

WORLD_TEST(an_unknown_number_is_no_ioctl)
{
	uint64_t data[16] = {0};

	assert_int_equal(call(w->fd, _IO('K', 0), NULL), -ENOTTY);
	assert_int_equal(call(w->fd, _IOWR('K', 0x27, data), data), -ENOTTY);
}

WORLD_TEST(only_number_and_size_of_a_cmd_are_looked_at)
{
	struct kfd_version version = {0, 77};
	char longer[64];

	assert_int_equal(call(w->fd, _IOR('x', 1, version), &version), 0);
	assert_int_equal(version.minor, 17);
	version = (struct kfd_version){0, 77};
	assert_int_equal(call(w->fd, _IOR('K', 1, uint32_t), &version), 0);
	assert_int_equal(version.major, 1);
	assert_int_equal(version.minor, 77);
	assert_int_equal(call(w->fd, _IOR('K', 1, longer), longer), 0);
	version = (struct kfd_version){0};
	assert_int_equal(call(w->fd, _IOC(_IOC_NONE, 'K', 1, 8), &version), 0);
	assert_int_equal(version.minor, 17);
}

/* dbg_fd is 0 then, which is open, and rinfo_size 0: a success. */
WORLD_TEST(what_a_short_argument_does_not_say_is_zero)
{
	uint32_t args[4] = {(uint32_t)getpid(), KFD_DBG_ENABLE, 0, 0};

	assert_int_equal(call(w->fd, _IOWR('K', 0x26, args), args), 0);
	assert_int_equal(dbg_disable(w, getpid()), 0);
}

WORLD_TEST(arguments_come_back_also_from_a_failure)
{
	struct kfd_dbg_trap args = {.queue_snapshot = {.num_queues = 9}};

	enable_self(w);
	assert_int_equal(dbg(w->fd, getpid(), KFD_DBG_GET_QUEUE_SNAPSHOT, &args), -EINVAL);
	assert_int_equal(args.queue_snapshot.num_queues, 0);
}

WORLD_TEST(a_child_cannot_use_its_parents_file)
{
	struct kfd_version version;
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(-call(w->fd, KFD_IOC_GET_VERSION, &version));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), EBADF);
}

WORLD_TEST(without_hws_nothing_can_be_debugged)
{
	assert_int_equal(dbg_plain(w, 0, KFD_DBG_ENABLE), -ESRCH);
	assert_int_equal(kfd_emu_control(&w->emu, "sched_policy 2"), 0);
	assert_int_equal(dbg_plain(w, 0, KFD_DBG_ENABLE), -EINVAL);
}

static pid_t start_bystander(void)
{
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	return pid;
}

WORLD_TEST(who_has_no_memory_or_no_kfd_is_not_found)
{
	pid_t zombie = fork(), bystander;

	if (!zombie)
		_exit(0);
	while (!has_ended(zombie))
		emulator_sleep_ms(1);
	assert_int_equal(dbg_plain(w, zombie, KFD_DBG_ENABLE), -ESRCH);
	waitpid(zombie, NULL, 0);
	assert_int_equal(dbg_plain(w, zombie, KFD_DBG_ENABLE), -ESRCH);
	bystander = start_bystander();
	assert_int_equal(dbg_plain(w, bystander, KFD_DBG_ENABLE), -ESRCH);
	kill(bystander, SIGKILL);
	waitpid(bystander, NULL, 0);
}

WORLD_TEST(even_root_must_trace_the_target)
{
	struct kfd_runtime_info info = {0};

	assert_int_equal(kfd_load_start(&w->load, "--idle", NULL), 0);
	for (uint32_t op = KFD_DBG_ENABLE; op <= 20; op++)
		assert_int_equal(dbg_plain(w, w->load.pid, op), -EPERM);
	seize(w->load.pid);
	assert_int_equal(dbg_enable(w, w->load.pid, &info), 0);
	assert_int_equal(kfd_emu_count(&w->emu, "refused_EPERM"), 21);
}

WORLD_TEST(nothing_but_enable_works_before_enable)
{
	assert_int_equal(kfd_load_start(&w->load, "--idle", NULL), 0);
	seize(w->load.pid);
	for (uint32_t op = KFD_DBG_DISABLE; op <= 20; op++)
		assert_int_equal(dbg_plain(w, w->load.pid, op), -EINVAL);
}

WORLD_TEST(hardware_operations_need_a_runtime)
{
	struct kfd_runtime_info info = {0};
	uint64_t none;

	assert_int_equal(kfd_load_start(&w->load, "--idle", "--no-runtime", NULL), 0);
	seize(w->load.pid);
	assert_int_equal(dbg_enable(w, w->load.pid, &info), 0);
	assert_int_equal(info.runtime_state, KFD_RUNTIME_DISABLED);
	for (uint32_t op = KFD_DBG_SET_WAVE_LAUNCH_OVERRIDE; op <= KFD_DBG_SET_FLAGS; op++)
		assert_int_equal(dbg_plain(w, w->load.pid, op), -EPERM);
	assert_int_equal(dbg_snapshot(w, w->load.pid, 0, NULL, 0), 1);
	assert_int_equal(dbg_query(w, w->load.pid, 0), KFD_EC_QUEUE_NEW);
	assert_int_equal(dbg_plain(w, w->load.pid, KFD_DBG_SET_EXCEPTIONS_ENABLED), 0);
	assert_int_equal(dbg_plain(w, w->load.pid, KFD_DBG_SEND_RUNTIME_EVENT), 0);
	none = kfd_emu_count(&w->emu, "cycles");
	assert_int_equal(dbg_disable(w, w->load.pid), 0);
	assert_int_equal(kfd_emu_count(&w->emu, "cycles"), none); /* nothing was activated */
}

WORLD_TEST(the_last_rungs)
{
	struct kfd_dbg_trap args = {.set_node_address_watch = {.gpu_id = 1}};
	pid_t pid = attach_load(w, "1");

	assert_int_equal(dbg(w->fd, pid, KFD_DBG_SET_NODE_ADDRESS_WATCH, &args), -ENODEV);
	assert_int_equal(dbg_plain(w, pid, KFD_DBG_CLEAR_NODE_ADDRESS_WATCH), -ENODEV);
	assert_int_equal(dbg_plain(w, pid, 15), -EINVAL);
	args.launch_mode.launch_mode = 2;
	assert_int_equal(dbg(w->fd, pid, KFD_DBG_SET_WAVE_LAUNCH_MODE, &args), -EINVAL);
	args.set_flags.flags = 2;
	assert_int_equal(dbg(w->fd, pid, KFD_DBG_SET_FLAGS, &args), -EACCES);
	assert_int_equal(args.set_flags.flags, 0);
}

struct other_thread {
	const struct world *w;
	pid_t pid;
	uint32_t op;
	int result;
};

static void *call_from_thread(void *arg)
{
	struct other_thread *t = arg;
	struct kfd_dbg_trap args = {.queue_snapshot = {.entry_size = 64}};

	t->result = dbg(t->w->fd, t->pid, t->op, &args);
	return NULL;
}

static int from_another_thread(const struct world *w, pid_t pid, uint32_t op)
{
	struct other_thread t = {w, pid, op, 0};
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, call_from_thread, &t), 0);
	pthread_join(thread, NULL);
	return t.result;
}

/* From a process that has nothing to do with the target. */
static int from_a_stranger(const struct world *w, pid_t pid, uint32_t op)
{
	int status, fd;
	pid_t stranger = fork();

	if (!stranger) {
		struct kfd_dbg_trap args = {.queue_snapshot = {.entry_size = 64}};

		fd = open(w->emu.kfd, O_RDWR | O_CLOEXEC);
		_exit(fd < 0 ? 255 : -dbg(fd, pid, op, &args));
	}
	assert_int_equal(waitpid(stranger, &status, 0), stranger);
	return -WEXITSTATUS(status);
}

WORLD_TEST(only_the_tracing_thread_can_attach)
{
	assert_int_equal(kfd_load_start(&w->load, "--idle", NULL), 0);
	seize(w->load.pid);
	assert_int_equal(from_another_thread(w, w->load.pid, KFD_DBG_ENABLE), -EPERM);
}

WORLD_TEST(the_new_rule_lets_the_debugger_go_on_without_tracing)
{
	pid_t pid = attach_load(w, "1");

	assert_int_equal(dbg_snapshot(w, pid, 0, NULL, 0), 1);
	assert_int_equal(from_another_thread(w, pid, KFD_DBG_GET_QUEUE_SNAPSHOT), 0);
	assert_int_equal(from_a_stranger(w, pid, KFD_DBG_GET_QUEUE_SNAPSHOT), -EPERM);
	assert_int_equal(from_a_stranger(w, pid, KFD_DBG_DISABLE), -EPERM);
	assert_int_equal(from_another_thread(w, pid, KFD_DBG_DISABLE), 0);
	assert_int_equal(from_another_thread(w, pid, KFD_DBG_GET_QUEUE_SNAPSHOT), -EPERM);
}

WORLD_TEST(the_old_rule_wants_a_tracer_but_not_for_disable)
{
	struct kfd_runtime_info info = {0};
	pid_t pid;

	assert_int_equal(kfd_emu_control(&w->emu, "rule old"), 0);
	assert_int_equal(kfd_load_start(&w->load, "--idle", NULL), 0);
	pid = w->load.pid;
	seize(pid);
	assert_int_equal(dbg_enable(w, pid, &info), 0);
	assert_int_equal(dbg_snapshot(w, pid, 0, NULL, 0), 1);
	assert_int_equal(from_another_thread(w, pid, KFD_DBG_GET_QUEUE_SNAPSHOT), -EPERM);
	detach(pid);
	assert_int_equal(dbg_snapshot(w, pid, 0, NULL, 0), -EPERM);
	assert_int_equal(from_a_stranger(w, pid, KFD_DBG_DISABLE), 0);
	assert_int_equal(kfd_emu_process_number(&w->emu, pid, "debugged"), 0);
}

/* It is remembered before anything is tried. */
WORLD_TEST(also_an_enable_that_failed_makes_a_debugger)
{
	struct kfd_dbg_trap args = {.enable = {.dbg_fd = 4000}};
	pid_t pid = start_load(w, "--idle");

	seize(pid);
	assert_int_equal(dbg(w->fd, pid, KFD_DBG_ENABLE, &args), -EBADF);
	detach(pid);
	assert_int_equal(kfd_emu_process_number(&w->emu, pid, "debugger"), getpid());
	assert_int_equal(dbg_snapshot(w, pid, 0, NULL, 0), -EINVAL); /* not EPERM */
}

WORLD_TEST(enable_says_what_it_does_not_like)
{
	struct kfd_runtime_info info = {0};
	struct kfd_dbg_trap args = {.enable = {.dbg_fd = (uint32_t)w->pipe[1], .rinfo_size = 16}};
	pid_t pid = start_load(w, "--idle");

	seize(pid);
	assert_int_equal(dbg(w->fd, pid, KFD_DBG_ENABLE, &args), -EFAULT);
	assert_int_equal(args.enable.rinfo_size, 16);
	assert_int_equal(kfd_emu_process_number(&w->emu, pid, "debugged"), 0);
	args.enable.rinfo_size = 0;
	assert_int_equal(dbg(w->fd, pid, KFD_DBG_ENABLE, &args), 0);
	assert_int_equal(args.enable.rinfo_size, 16);
	assert_int_equal(dbg_enable(w, pid, &info), -EALREADY);
	assert_int_equal(dbg_disable(w, pid), 0);
	assert_int_equal(dbg_disable(w, pid), -EINVAL);
}

WORLD_TEST(a_traced_process_without_kfd_becomes_one_of_kfd)
{
	struct kfd_runtime_info info = {.runtime_state = 9};
	pid_t pid = start_bystander();

	seize(pid);
	assert_int_equal(dbg_snapshot(w, pid, 0, NULL, 0), -ESRCH);
	assert_int_equal(dbg_enable(w, pid, &info), 0);
	assert_int_equal(info.runtime_state, KFD_RUNTIME_DISABLED);
	assert_int_equal(dbg_snapshot(w, pid, 0, NULL, 0), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(dbg_snapshot(w, pid, 0, NULL, 0), -ESRCH);
}
