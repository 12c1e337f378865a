/* SPDX-License-Identifier: Apache-2.0 */
/* Who may call, with which number and how many bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>

#include "cases.h"

#define UNTOUCHED 0x5a

static void say_version(unsigned long number)
{
	struct kfd_version version = {0};
	long rc = kfd_ioctl(number, &version);

	say("%s", answer(rc));
	if (!rc)
		say("%u.%u", version.major, version.minor);
}

static void version(void)
{
	say_version(KFD_IOC_GET_VERSION);
}

static void number_0(void)
{
	say_version(_IOR('K', 0, struct kfd_version));
}

static void number_after_last(void)
{
	say_version(_IOR('K', KFD_IOC_LAST_NR + 1, struct kfd_version));
	say_version(_IOR('K', 0xff, struct kfd_version));
}

static void type_byte_is_ignored(void)
{
	say_version(_IOR('Q', 1, struct kfd_version));
}

static void direction_is_ignored(void)
{
	say_version(_IOC(_IOC_NONE, 'K', 1, sizeof(struct kfd_version)));
	say_version(_IOW('K', 1, struct kfd_version));
}

/* GET_VERSION with this size: how many bytes of 64 are not what they were. */
static void say_version_of_size(unsigned size)
{
	unsigned char buffer[64];
	unsigned changed = 0;

	memset(buffer, UNTOUCHED, sizeof(buffer));
	say("%s", answer(kfd_ioctl(_IOC(_IOC_READ, 'K', 1, size), buffer)));
	while (changed < sizeof(buffer) && buffer[changed] != UNTOUCHED)
		changed++;
	say("%u", changed);
}

static void short_out(void)
{
	say_version_of_size(4);
	say_version_of_size(0);
}

static void long_out(void)
{
	say_version_of_size(64);
}

static long trap_of_size(void *args, unsigned size)
{
	return kfd_ioctl(_IOC(_IOC_READ | _IOC_WRITE, 'K', 0x26, size), args);
}

/* Without fd and pointer, that is with 0: standard input is taken for notifications. */
static void short_in_is_filled_with_zeros(void)
{
	uint32_t args[2] = {(uint32_t)getpid(), KFD_DBG_ENABLE};

	say("%s", answer(trap_of_size(args, sizeof(args))));
	args[1] = KFD_DBG_DISABLE;
	say("%s", answer(trap_of_size(args, sizeof(args))));
	close(STDIN_FILENO);
	args[1] = KFD_DBG_ENABLE;
	say("%s", answer(trap_of_size(args, sizeof(args))));
}

static void long_in_and_out(void)
{
	struct {
		struct kfd_dbg_trap args;
		unsigned char tail[64];
	} longer = {.args = {.pid = (uint32_t)getpid(), .op = KFD_DBG_GET_QUEUE_SNAPSHOT}};

	must("enable", enable(getpid()));
	longer.args.queue_snapshot.entry_size = 100;
	memset(longer.tail, UNTOUCHED, sizeof(longer.tail));
	say("%s", answer(trap_of_size(&longer, sizeof(longer))));
	say("size=%u", longer.args.queue_snapshot.entry_size);
	say("%s", longer.tail[0] == UNTOUCHED && longer.tail[63] == UNTOUCHED ? "kept" : "changed");
}

static void bad_pointers(void)
{
	say("%s", answer(kfd_ioctl(KFD_IOC_GET_VERSION, NULL)));
	say("%s", answer(kfd_ioctl(KFD_IOC_DBG_TRAP, NULL)));
	say("%s", answer(kfd_ioctl(KFD_IOC_DBG_TRAP, bad_pointer())));
}

static void copied_back_on_failure(void)
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)getpid(), .op = KFD_DBG_GET_QUEUE_SNAPSHOT};

	must("enable", enable(getpid()));
	args.queue_snapshot.num_queues = 7;
	say("%s", answer(trap(&args)));
	say("num=%u", args.queue_snapshot.num_queues);
}

/* What was asked for is done before the answer cannot be written. */
static void read_only_arguments(void)
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)getpid(), .op = KFD_DBG_ENABLE};

	args.enable.dbg_fd = (uint32_t)notify_fd();
	say("%s", answer(trap(read_only_copy(&args, sizeof(args)))));
	say("%s", answer(enable(getpid())));
}

/* What a forked child gets with this number from a file its parent has opened. */
static void say_in_child(int fd, unsigned long number)
{
	struct kfd_version version;
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(ioctl(fd, number, &version) ? errno : 0);
	waitpid(pid, &status, 0);
	say("%s", answer(-WEXITSTATUS(status)));
}

static void forked_child(void)
{
	say_in_child(kfd_fd(), KFD_IOC_GET_VERSION);
	say_version(KFD_IOC_GET_VERSION);
}

static void forked_child_wrong_number(void)
{
	say_in_child(kfd_fd(), _IOR('K', 0, struct kfd_version));
}

static void child_with_its_own(void)
{
	struct peer p = peer_start_open();

	say("%s", answer(get_version(0)));
	say("%s", answer(peer_call(&p, get_version, 0)));
}

static void other_thread(void)
{
	kfd_fd();
	say("%s", answer(in_thread(get_version, 0)));
}

static int inherited_fd;

static long ask_inherited(long unused)
{
	struct kfd_version answered;

	(void)unused;
	return ioctl(inherited_fd, KFD_IOC_GET_VERSION, &answered) ? -errno : 0;
}

static long set_inherited(long fd)
{
	inherited_fd = (int)fd;
	return 0;
}

static long open_inheritable(long unused)
{
	int fd = open(kfd_device, O_RDWR);

	(void)unused;
	return fd < 0 ? -errno : fd;
}

/* It is the same task, whatever program it runs. */
static void file_kept_over_exec(void)
{
	struct peer p = peer_start();
	long fd = must("open", peer_call(&p, open_inheritable, 0));

	must("exec", peer_call(&p, exec_self, 0));
	peer_call(&p, set_inherited, fd);
	say("%s", answer(peer_call(&p, ask_inherited, 0)));
}

static void two_files_are_one_process(void)
{
	long rc = enable(getpid());

	say("%s", answer(rc));
	open_kfd(0);
	say("%s", answer(disable(getpid())));
}

/* The debugger's interface of before 2018 is still there, and refuses. */
static void deprecated_numbers(void)
{
	char args[64] = {0};

	for (unsigned nr = 0x0d; nr <= 0x10; nr++)
		say("%s", answer(kfd_ioctl(_IOC(_IOC_WRITE, 'K', nr, 16), args)));
}

const struct kfd_case dispatch_cases[] = {
	{"version", "1", 0, "0 1.17", version},
	{"number_0", "1.1", 0, "ENOTTY", number_0},
	{"number_after_last", "1.1", 0, "ENOTTY ENOTTY", number_after_last},
	{"type_byte_is_ignored", "1.1", 0, "0 1.17", type_byte_is_ignored},
	{"direction_is_ignored", "1.1", 0, "0 1.17 0 1.17", direction_is_ignored},
	{"short_out", "1.1", 0, "0 4 0 0", short_out},
	{"long_out", "1.1", 0, "0 64", long_out},
	{"short_in_is_filled_with_zeros", "1.1", 0, "0 0 EBADF", short_in_is_filled_with_zeros},
	{"long_in_and_out", "1.1", 0, "0 size=64 kept", long_in_and_out},
	{"bad_pointers", "1.1", 0, "EFAULT EFAULT EFAULT", bad_pointers},
	{"copied_back_on_failure", "1.1", 0, "EINVAL num=0", copied_back_on_failure},
	{"read_only_arguments", "1.1", 0, "EFAULT EALREADY", read_only_arguments},
	{"forked_child", "1.1", 0, "EBADF 0 1.17", forked_child},
	{"forked_child_wrong_number", "1.1", 0, "ENOTTY", forked_child_wrong_number},
	{"child_with_its_own", "1.1", 0, "0 0", child_with_its_own},
	{"other_thread", "1.1", 0, "0", other_thread},
	{"file_kept_over_exec", "1.1", 0, "0", file_kept_over_exec},
	{"two_files_are_one_process", "2.2", 0, "0 0", two_files_are_one_process},
	{"deprecated_numbers", "1.1", 0, "EPERM EPERM EPERM EPERM", deprecated_numbers},
	{0},
};
