/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatch of ioctls: caller, number, and size of the argument. */
#include <sys/socket.h>

#include "cases.h"

#define UNTOUCHED 0x5a

static void say_version(unsigned long number)
{
	struct kfd_version version = {0};
	long rc = kfd_ioctl(number, &version);

	say_answer(rc);
	if (!rc)
		say("%u.%u", version.major, version.minor);
}

KFD_CASE(version, "1", 0, "0 1.17")
{
	say_version(KFD_IOC_GET_VERSION);
}

KFD_CASE(number_0, "1.1", 0, "ENOTTY")
{
	say_version(_IOR('K', 0, struct kfd_version));
}

KFD_CASE(number_after_last, "1.1", 0, "ENOTTY ENOTTY")
{
	say_version(_IOR('K', KFD_IOC_LAST_NR + 1, struct kfd_version));
	say_version(_IOR('K', 0xff, struct kfd_version));
}

KFD_CASE(type_byte_is_ignored, "1.1", 0, "0 1.17")
{
	say_version(_IOR('Q', 1, struct kfd_version));
}

KFD_CASE(direction_is_ignored, "1.1", 0, "0 1.17 0 1.17")
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
	say_answer(kfd_ioctl(_IOC(_IOC_READ, 'K', 1, size), buffer));
	while (changed < sizeof(buffer) && buffer[changed] != UNTOUCHED)
		changed++;
	say("%u", changed);
}

KFD_CASE(short_out, "1.1", 0, "0 4 0 0")
{
	say_version_of_size(4);
	say_version_of_size(0);
}

KFD_CASE(long_out, "1.1", 0, "0 64")
{
	say_version_of_size(64);
}

static long trap_of_size(void *args, unsigned size)
{
	return kfd_ioctl(_IOC(_IOC_READ | _IOC_WRITE, 'K', 0x26, size), args);
}

/* Without fd and pointer, that is with 0: standard input is taken for notifications. */
KFD_CASE(short_in_is_filled_with_zeros, "1.1", 0, "0 0 EBADF")
{
	uint32_t args[2] = {(uint32_t)getpid(), KFD_DBG_ENABLE};

	say_answer(trap_of_size(args, sizeof(args)));
	args[1] = KFD_DBG_DISABLE;
	say_answer(trap_of_size(args, sizeof(args)));
	close(STDIN_FILENO);
	args[1] = KFD_DBG_ENABLE;
	say_answer(trap_of_size(args, sizeof(args)));
}

KFD_CASE(long_in_and_out, "1.1", 0, "0 size=64 kept")
{
	struct {
		struct kfd_dbg_trap args;
		unsigned char tail[64];
	} longer = {.args = {.pid = (uint32_t)getpid(), .op = KFD_DBG_GET_QUEUE_SNAPSHOT}};

	must("enable", enable(getpid()));
	longer.args.queue_snapshot.entry_size = 100;
	memset(longer.tail, UNTOUCHED, sizeof(longer.tail));
	say_answer(trap_of_size(&longer, sizeof(longer)));
	say("size=%u", longer.args.queue_snapshot.entry_size);
	say("%s", longer.tail[0] == UNTOUCHED && longer.tail[63] == UNTOUCHED ? "kept" : "changed");
}

KFD_CASE(bad_pointers, "1.1", 0, "EFAULT EFAULT EFAULT")
{
	say_answer(kfd_ioctl(KFD_IOC_GET_VERSION, NULL));
	say_answer(kfd_ioctl(KFD_IOC_DBG_TRAP, NULL));
	say_answer(kfd_ioctl(KFD_IOC_DBG_TRAP, bad_pointer()));
}

KFD_CASE(copied_back_on_failure, "1.1", 0, "EINVAL num=0")
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)getpid(), .op = KFD_DBG_GET_QUEUE_SNAPSHOT};

	must("enable", enable(getpid()));
	args.queue_snapshot.num_queues = 7;
	say_answer(trap(&args));
	say("num=%u", args.queue_snapshot.num_queues);
}

/* What was asked for is done before the answer cannot be written. */
KFD_CASE(read_only_arguments, "1.1", 0, "EFAULT EALREADY")
{
	struct kfd_dbg_trap args = {.pid = (uint32_t)getpid(), .op = KFD_DBG_ENABLE};

	args.enable.dbg_fd = (uint32_t)notify_fd();
	SAY_ANSWERS(trap(read_only_copy(&args, sizeof(args))), enable(getpid()));
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
	say_answer(-WEXITSTATUS(status));
}

KFD_CASE(forked_child, "1.1", 0, "EBADF 0 1.17")
{
	say_in_child(kfd_fd(), KFD_IOC_GET_VERSION);
	say_version(KFD_IOC_GET_VERSION);
}

KFD_CASE(forked_child_wrong_number, "1.1", 0, "ENOTTY")
{
	say_in_child(kfd_fd(), _IOR('K', 0, struct kfd_version));
}

PEER_CASE(child_with_its_own, open, "1.1", 0, "0 0")
{
	SAY_ANSWERS(get_version(0), peer_call(&p, get_version, 0));
}

KFD_CASE(other_thread, "1.1", 0, "0")
{
	kfd_fd();
	say_answer(in_thread(get_version, 0));
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
PEER_CASE(file_kept_over_exec, plain, "1.1", 0, "0")
{
	long fd = must("open", peer_call(&p, open_inheritable, 0));

	must("exec", peer_call(&p, exec_self, 0));
	peer_call(&p, set_inherited, fd);
	say_answer(peer_call(&p, ask_inherited, 0));
}

KFD_CASE(two_files_are_one_process, "2.2", 0, "0 0")
{
	long rc = enable(getpid());

	say_answer(rc);
	open_kfd(0);
	say_answer(disable(getpid()));
}

/* The debugger's interface of before 2018 is still there, and refuses. */
KFD_CASE(deprecated_numbers, "1.1", 0, "EPERM EPERM EPERM EPERM")
{
	char args[64] = {0};

	for (unsigned nr = 0x0d; nr <= 0x10; nr++)
		say_answer(kfd_ioctl(_IOC(_IOC_WRITE, 'K', nr, 16), args));
}
