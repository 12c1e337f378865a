/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/inquiry.h"
#include "base/utf8.h"

#define PF_EXITING 4 /* include/linux/sched.h */

/* Reads the beginning of a small file under /proc and adds a 0. Returns the length without the 0,
 * or -errno. */
static ssize_t read_proc(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, out, size - 1);
	if (n < 0)
		n = -errno;
	else
		out[n] = 0;
	close(fd);
	return n;
}

/* For files that never wait: status, comm, cgroup. */
static ssize_t read_process(pid_t pid, const char *name, char *out, size_t size)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
	return read_proc(path, out, size);
}

/* Inquiries: their files wait while the process is in execve. */

struct file_text {
	char path[64], text[1024];
};

static int read_text(void *data, struct gp_inquiry_files *files)
{
	struct file_text *t = data;

	(void)files;
	return (int)read_proc(t->path, t->text, sizeof t->text);
}

struct link_text {
	char path[64], text[PATH_MAX];
};

static int read_link(void *data, struct gp_inquiry_files *files)
{
	struct link_text *l = data;
	ssize_t n = readlink(l->path, l->text, sizeof l->text - 1);

	(void)files;
	l->text[n > 0 ? n : 0] = 0;
	return n < 0 ? -errno : 0;
}

struct file_status {
	char path[64];
	struct stat s;
};

static int read_status(void *data, struct gp_inquiry_files *files)
{
	struct file_status *f = data;

	(void)files;
	return stat(f->path, &f->s) ? -errno : 0;
}

/* As stat(2) of a file in /proc/PID. 0 or -errno. */
static int stat_process(pid_t pid, const char *name, struct stat *s)
{
	struct file_status f;
	int r;

	snprintf(f.path, sizeof f.path, "/proc/%d/%s", pid, name);
	r = gp_inquire(pid, read_status, &f, sizeof f, NULL);
	*s = f.s;
	return r;
}

struct file_to_open {
	char path[64];
	int flags;
};

static int open_file(void *data, struct gp_inquiry_files *files)
{
	const struct file_to_open *f = data;
	int fd = open(f->path, f->flags | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	files->fd[files->n++] = fd;
	return 0;
}

int gp_process_open(pid_t pid, const char *name, int flags)
{
	struct gp_inquiry_files files = {0};
	struct file_to_open f = {.flags = flags};
	int r;

	snprintf(f.path, sizeof f.path, "/proc/%d/%s", pid, name);
	r = gp_inquire(pid, open_file, &f, sizeof f, &files);
	return r < 0     ? r
	       : files.n ? files.fd[0]
			 : -EMFILE; /* the kernel drops a file without a number */
}

/* Sets `end` to the ')' behind the name in /proc/PID/stat. It is the last one, because the name may
 * contain any character. 0 or -errno. `name`: "stat", or that of a thread. */
static int read_stat(pid_t pid, const char *name, struct file_text *t, const char **end)
{
	int r;

	snprintf(t->path, sizeof t->path, "/proc/%d/%s", pid, name);
	r = gp_inquire(pid, read_text, t, sizeof *t, NULL);
	if (r < 0)
		return r;
	*end = strrchr(t->text, ')');
	return *end && strlen(*end) > 4 ? 0 : -EIO; /* ") S 4711 ..." */
}

ssize_t gp_process_read(pid_t pid, const char *name, char *out, size_t size)
{
	struct file_text t;
	int r;

	snprintf(t.path, sizeof t.path, "/proc/%d/%s", pid, name);
	r = gp_inquire(pid, read_text, &t, sizeof t, NULL);
	if (r >= 0)
		snprintf(out, size, "%s", t.text);
	return r;
}

char gp_process_state(pid_t pid)
{
	struct file_text t;
	const char *p;

	if (read_stat(pid, "stat", &t, &p))
		return 0;
	return p[2];
}

/* `p` points to the end of field 2. Returns 0 if the field is missing. */
static uint64_t stat_number(const char *p, int number)
{
	for (int field = 2; p && field < number; field++)
		p = strchr(p + 1, ' ');
	return p ? strtoull(p + 1, NULL, 10) : 0;
}

int gp_process_read_start_time(pid_t pid, uint64_t *start_time)
{
	struct file_text t;
	const char *p;
	int r = read_stat(pid, "stat", &t, &p);

	*start_time = r ? 0 : stat_number(p, 22);
	return r == -ENOENT ? -ESRCH : r;
}

uint64_t gp_process_start_time(pid_t pid)
{
	uint64_t start_time;

	gp_process_read_start_time(pid, &start_time);
	return start_time;
}

bool gp_process_gone(pid_t pid, uint64_t start_time)
{
	uint64_t now = gp_process_start_time(pid);

	if (now)
		return now != start_time;
	/* The file could not be read: the process has ended or does not answer, or no file
	 * descriptor is left. */
	return pid <= 0 || (kill(pid, 0) && errno == ESRCH);
}

bool gp_process_lives(pid_t pid, uint64_t start_time)
{
	struct file_text t;
	const char *p;

	if (read_stat(pid, "stat", &t, &p))
		return !gp_process_gone(pid, start_time);
	if (stat_number(p, 22) != start_time)
		return false;
	/* The thread group leader may have ended before the other threads. */
	return (p[2] != 'Z' && p[2] != 'X') || stat_number(p, 20) > 1;
}

/* Whether a thread has ended, is ending, or was killed and has not noticed it yet. */
static bool is_dying(pid_t pid, const char *thread)
{
	char name[32], text[4096];
	struct file_text t;
	const char *p, *line;
	uint64_t pending = 0;
	int r;

	snprintf(name, sizeof name, "task/%.11s/stat", thread);
	r = read_stat(pid, name, &t, &p);
	if (r && r != -ETIMEDOUT)
		return true;
	if (!r && (p[2] == 'Z' || p[2] == 'X' || stat_number(p, 9) & PF_EXITING))
		return true;
	snprintf(name, sizeof name, "task/%.11s/status", thread);
	if (read_process(pid, name, text, sizeof text) < 0)
		return true;
	for (line = text; (line = strstr(line, "Pnd:")); line += 4) /* SigPnd and ShdPnd */
		pending |= strtoull(line + 4, NULL, 16);
	return pending >> (SIGKILL - 1) & 1;
}

bool gp_process_can_run(pid_t pid, uint64_t start_time)
{
	_Alignas(struct gp_directory_entry) char list[2048];
	bool can = false, empty = true;
	char path[64];
	long n;
	int fd;

	if (!gp_process_lives(pid, start_time))
		return false;
	snprintf(path, sizeof path, "/proc/%d/task", pid);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (fd >= 0 && !can && (n = syscall(SYS_getdents64, fd, list, sizeof list)) > 0)
		for (long at = 0; at < n && !can;) {
			const struct gp_directory_entry *e = (const void *)(list + at);

			at += e->size;
			if (!isdigit((unsigned char)e->name[0]))
				continue;
			empty = false;
			can = !is_dying(pid, e->name);
		}
	if (fd >= 0)
		close(fd);
	return can || empty; /* empty: the threads could not be listed */
}

/* The pid takes 22 bits and the caller's number 6. The other 36 bits suffice for start times up to
 * 20 years after boot. */
uint64_t gp_process_key(uint64_t start_time, pid_t pid)
{
	return start_time << 28 | (uint64_t)(pid & 0x3fffff) << 6;
}

bool gp_process_is_our_fork(pid_t pid)
{
	struct stat ours, its;

	return gp_process_parent(pid) == getpid() && !stat("/proc/self/exe", &ours) &&
	       !stat_process(pid, "exe", &its) && ours.st_dev == its.st_dev &&
	       ours.st_ino == its.st_ino;
}

/* Reads the name of the executable from the link only, because the file system of the executable
 * may not answer. */
static bool runs_gpreempt(pid_t pid)
{
	static const char *const names[] = {"gpreempt", "gpreemptd", "gpreempt-keeper"};
	struct link_text exe;
	char *name;

	snprintf(exe.path, sizeof exe.path, "/proc/%d/exe", pid);
	if (gp_inquire(pid, read_link, &exe, sizeof exe, NULL))
		return false;
	name = strrchr(exe.text, '/');
	if (!name)
		return false;
	name[strcspn(name, " ")] = 0; /* " (deleted)": another version was installed */
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(name + 1, names[i]))
			return true;
	return false;
}

bool gp_process_is_gpreempt(pid_t pid)
{
	uid_t uid[3];

	if (!runs_gpreempt(pid) || !gp_process_same_pidns(pid, getpid()) ||
	    !gp_process_uids(pid, uid))
		return false;
	for (unsigned i = 0; i < 3; i++)
		if (uid[i] && uid[i] != geteuid())
			return false;
	return true;
}

const char *gp_process_name(pid_t pid, char *out, size_t size)
{
	char text[64];
	ssize_t n = read_process(pid, "comm", text, sizeof text);

	if (n > 0 && text[n - 1] == '\n')
		text[n - 1] = 0;
	return gp_utf8_clean(out, size, n > 0 ? text : "");
}

int gp_pidfd_open(pid_t pid)
{
	long fd = syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : (int)fd;
}

int gp_pidfd_getfd(int pidfd, int fd)
{
	long copy = syscall(SYS_pidfd_getfd, pidfd, fd, 0);

	return copy < 0 ? -errno : (int)copy;
}

int gp_pidfd_kill(int pidfd)
{
	return syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) ? -errno : 0;
}

bool gp_pidfd_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* Copies the value of a line "name: value" of /proc/PID/status. */
static bool status_line(pid_t pid, const char *name, char *out, size_t size)
{
	char text[4096];
	const char *line;

	if (read_process(pid, "status", text, sizeof text) < 0)
		return false;
	line = strstr(text, name);
	if (!line)
		return false;
	line += strlen(name);
	line += strspn(line, ":\t ");
	snprintf(out, size, "%.*s", (int)strcspn(line, "\n"), line);
	return true;
}

pid_t gp_process_parent(pid_t pid)
{
	char text[32];

	return status_line(pid, "\nPPid", text, sizeof text) ? (pid_t)strtol(text, NULL, 10) : 0;
}

int gp_process_find(pid_t pid, uint64_t *start_time, struct gp_error *err)
{
	int r = gp_process_read_start_time(pid, start_time);

	if (r == -ETIMEDOUT)
		return gp_process_silent(err, pid, -ETIMEDOUT);
	if (r && r != -ESRCH)
		return gp_fail(err, r, "/proc/%d/stat cannot be read: %s", pid, gp_error_name(r));
	return r ? gp_fail(err, r, "there is no process %d", pid) : 0;
}

int gp_process_silent(struct gp_error *err, pid_t pid, int code)
{
	return gp_fail(err, code,
		       "nothing is known about process %d now: it, or another process of its user, "
		       "does not answer, probably because a file system delays its execve; try "
		       "again, or end the server of that file system",
		       pid);
}

/* The owner of /proc/PID is not used: it is root if the process changed its uid or is not dumpable.
 */
bool gp_process_uids(pid_t pid, uid_t uid[3])
{
	char text[128], *at = text, *end;

	if (!status_line(pid, "\nUid", text, sizeof text))
		return false;
	for (unsigned i = 0; i < 3; i++, at = end) {
		uid[i] = (uid_t)strtoul(at, &end, 10);
		if (end == at)
			return false;
	}
	return true;
}

bool gp_process_uid(pid_t pid, uid_t *uid)
{
	uid_t all[3];

	if (!gp_process_uids(pid, all))
		return false;
	*uid = all[1];
	return true;
}

bool gp_process_same_pidns(pid_t a, pid_t b)
{
	struct stat sa, sb;

	return !stat_process(a, "ns/pid", &sa) && !stat_process(b, "ns/pid", &sb) &&
	       sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

static bool have_capability(unsigned bit)
{
	char text[64];

	return status_line(getpid(), "\nCapEff", text, sizeof text) &&
	       (strtoull(text, NULL, 16) >> bit & 1);
}

/* Inode number of the first user namespace (PROC_USER_INIT_INO in the kernel). */
#define FIRST_USER_NAMESPACE 0xeffffffdu

/* No process is outside the first user namespace. */
static bool may_be_outside_user_namespace(pid_t pid)
{
	struct stat mine, theirs;

	if (stat("/proc/self/ns/user", &mine) || mine.st_ino == FIRST_USER_NAMESPACE)
		return false;
	return stat_process(pid, "ns/user", &theirs) || mine.st_ino != theirs.st_ino;
}

#define CAPABILITY_DAC_OVERRIDE    1
#define CAPABILITY_DAC_READ_SEARCH 2
#define CAPABILITY_SYS_PTRACE      19

bool gp_have_ptrace(void)
{
	return have_capability(CAPABILITY_SYS_PTRACE);
}

bool gp_have_read_all(void)
{
	return have_capability(CAPABILITY_DAC_OVERRIDE) ||
	       have_capability(CAPABILITY_DAC_READ_SEARCH);
}

char gp_yama_scope(void)
{
	char scope[16] = "";

	read_proc("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof scope);
	return scope[0];
}

/* Access was denied because this process lacks CAP_SYS_PTRACE. */
static int denied_without_rights(struct gp_error *err, pid_t pid, uid_t uid, char scope, int code)
{
	if (uid != geteuid())
		return gp_fail(err, code,
			       "process %d belongs to user %u; run as root (or with "
			       "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH)",
			       pid, uid);
	if (scope && scope != '0')
		return gp_fail(err, code,
			       "Yama (kernel.yama.ptrace_scope = %c) forbids attaching to process "
			       "%d; run as root",
			       scope, pid);
	return gp_fail(err, code,
		       "process %d is not dumpable or has more privileges; run as root (or with "
		       "CAP_SYS_PTRACE)",
		       pid);
}

int gp_process_denied(struct gp_error *err, pid_t pid, int code)
{
	char scope = gp_yama_scope();
	uid_t uid = 0;

	if (!gp_process_uid(pid, &uid))
		return gp_fail(err, -ESRCH, "process %d has ended", pid);
	if (scope == '3') /* applies to root too, until the next boot */
		return gp_fail(
			err, code,
			"Yama (kernel.yama.ptrace_scope = 3) forbids attaching to process %d, "
			"even for root; set a lower value and reboot",
			pid);
	if (!gp_have_ptrace())
		return denied_without_rights(err, pid, uid, scope, code);
	if (may_be_outside_user_namespace(pid))
		return gp_fail(err, code,
			       "process %d is outside this container's user namespace; run on the "
			       "host",
			       pid);
	if (code == -EACCES && uid != geteuid() && !gp_have_read_all())
		return gp_fail(err, code,
			       "process %d belongs to user %u; gpreempt needs CAP_DAC_READ_SEARCH "
			       "besides CAP_SYS_PTRACE to open its files in /proc",
			       pid, uid);
	return gp_fail(
		err, code,
		"a security module (SELinux, AppArmor, Landlock or seccomp) forbids attaching "
		"to process %d; see the kernel's audit log",
		pid);
}

int gp_process_each(int (*each)(void *arg, pid_t pid), void *arg)
{
	DIR *proc = opendir("/proc");
	const struct dirent *entry;
	int r = 0, error = EIO; /* if /proc lists no process at all; this process must be in it */

	if (!proc)
		return -errno;
	while (!r) {
		errno = 0;
		entry = readdir(proc);
		if (!entry) {
			error = errno ? errno : error;
			break;
		}
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		r = each(arg, (pid_t)strtol(entry->d_name, NULL, 10));
		error = 0;
	}
	closedir(proc);
	return r ? r : -error;
}

/* The last number of "NSpid: 4711 12 1" is the pid in the innermost namespace. */
static pid_t innermost_pid(pid_t pid)
{
	char text[128];
	const char *last;

	if (!status_line(pid, "\nNSpid", text, sizeof text))
		return 0;
	last = strrchr(text, '\t');
	return (pid_t)strtol(last ? last + 1 : text, NULL, 10);
}

struct in_container {
	const char *container;
	pid_t pid;
	pid_t found;
	unsigned matches;
};

static int match_container(void *arg, pid_t pid)
{
	struct in_container *in = arg;
	char text[2048];

	if (innermost_pid(pid) != in->pid || read_process(pid, "cgroup", text, sizeof text) <= 0 ||
	    !strstr(text, in->container))
		return 0;
	in->found = pid;
	in->matches++;
	return 0;
}

int gp_process_in_container(const char *container, pid_t pid, pid_t *found, struct gp_error *err)
{
	struct in_container in = {.container = container, .pid = pid};

	if (strlen(container) < 3)
		return gp_fail(err, -EINVAL,
			       "container name '%s' is too short; give at least 3 characters",
			       container);
	gp_process_each(match_container, &in);
	if (!in.matches)
		return gp_fail(
			err, -ESRCH,
			"there is no process %d in a container with '%s' in its cgroup path; "
			"give the container's id",
			pid, container);
	if (in.matches > 1)
		return gp_fail(
			err, -ENOTUNIQ,
			"%u containers match '%s' and have a process %d; give a longer part of "
			"the id",
			in.matches, container, pid);
	*found = in.found;
	return 0;
}
