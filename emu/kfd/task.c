/* SPDX-License-Identifier: Apache-2.0 */
/* What a driver knows of the processes that call it: /proc, their memory, their files. */
#include <dirent.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "kfd.h"

bool task_read(pid_t thread, struct task *task)
{
	char path[64], line[128];
	unsigned long mask;
	int number;
	FILE *status;

	*task = (struct task){.pid = thread};
	snprintf(path, sizeof(path), "/proc/%d/status", (int)thread);
	status = thread > 0 ? fopen(path, "re") : NULL;
	if (!status)
		return false;
	while (fgets(line, sizeof(line), status)) {
		if (sscanf(line, "Tgid: %d", &number) == 1)
			task->pid = number;
		else if (sscanf(line, "TracerPid: %d", &number) == 1)
			task->tracer = number;
		else if (!strncmp(line, "VmSize:", 7))
			task->has_mm = true;
		else if (sscanf(line, "CapEff: %lx", &mask) == 1)
			task->capabilities = mask;
	}
	fclose(status);
	return true;
}

static bool same_namespace(pid_t a, pid_t b)
{
	char path[64];
	struct stat one, other;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)a);
	if (stat(path, &one))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)b);
	return !stat(path, &other) && one.st_ino == other.st_ino;
}

/* The last number of the line NSpid: that in the thread's own namespace. */
static pid_t own_number(pid_t thread)
{
	char path[64], line[256];
	int number = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)thread);
	status = fopen(path, "re");
	while (status && fgets(line, sizeof(line), status))
		if (!strncmp(line, "NSpid:", 6))
			sscanf(strrchr(line, '\t'), "%d", &number);
	if (status)
		fclose(status);
	return number;
}

static pid_t thread_called(pid_t process, pid_t number)
{
	char path[64];
	pid_t found = 0;
	struct dirent *entry;
	DIR *threads;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)process);
	threads = opendir(path);
	while (threads && !found && (entry = readdir(threads))) {
		pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);

		if (thread > 0 && own_number(thread) == number)
			found = thread;
	}
	if (threads)
		closedir(threads);
	return found;
}

/* Of deeper namespaces only the caller's own is looked at, not those below it. */
pid_t task_in_namespace(pid_t caller, pid_t pid)
{
	pid_t found = 0;
	struct dirent *entry;
	DIR *all;

	if (pid <= 0 || same_namespace(caller, getpid()))
		return pid;
	all = opendir("/proc");
	while (all && !found && (entry = readdir(all))) {
		pid_t process = (pid_t)strtol(entry->d_name, NULL, 10);

		if (process > 0 && same_namespace(caller, process))
			found = thread_called(process, pid);
	}
	if (all)
		closedir(all);
	return found;
}

int memory_read(pid_t pid, uint64_t address, void *data, size_t size)
{
	struct iovec here = {data, size}, there = {(void *)(uintptr_t)address, size};

	if (!size)
		return 0;
	return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)size ? 0 : -EFAULT;
}

int memory_write(pid_t pid, uint64_t address, const void *data, size_t size)
{
	struct iovec here, there = {(void *)(uintptr_t)address, size};

	if (!size)
		return 0;
	memcpy(&here.iov_base, &data, sizeof(data)); /* it is not const, and not written either */
	here.iov_len = size;
	return process_vm_writev(pid, &here, 1, &there, 1, 0) == (ssize_t)size ? 0 : -EFAULT;
}

/* Programs: their memory as it was when they opened the device. */

int program_read(const struct process *p, uint64_t address, void *data, size_t size)
{
	return pread(p->memory, data, size, (off_t)address) == (ssize_t)size ? 0 : -EFAULT;
}

int program_write(const struct process *p, uint64_t address, const void *data, size_t size)
{
	return pwrite(p->memory, data, size, (off_t)address) == (ssize_t)size ? 0 : -EFAULT;
}

/* Nothing is mapped at 0: an error while the program lives, an end of file after that. */
bool program_is_gone(const struct process *p)
{
	char byte;

	return pread(p->memory, &byte, 1, 0) == 0;
}

bool fd_exists(pid_t pid, uint32_t fd)
{
	char path[64], link[8];

	snprintf(path, sizeof(path), "/proc/%d/fd/%u", (int)pid, fd);
	return readlink(path, link, sizeof(link)) >= 0;
}

/* It may be a file of this very folder: neither asks the file system, nor opens it. */
bool fd_is_fifo(pid_t pid, uint32_t fd)
{
	struct statx status;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%u", (int)pid, fd);
	return !statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE, &status) &&
	       S_ISFIFO(status.stx_mode);
}

int fd_copy(int pidfd, uint32_t fd)
{
	int copy = (int)syscall(SYS_pidfd_getfd, pidfd, (int)fd, 0);

	return copy < 0 ? -errno : copy;
}
