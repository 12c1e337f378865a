/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kfd-cases: runs the table. One line for each case, `NAME: what it saw`; where that is not what we
 * expect, a second one says what that was. Lines of other forms are not answers.
 */
#include <argp.h>
#include <dirent.h>
#include <err.h>
#include <poll.h>
#include <sys/prctl.h>

#include "cases.h"

#define CASE_MS      60000
#define FORGOTTEN_MS 5000

static struct kfd_case *cases;

static struct env {
	const char *only;
	bool list, with_gpu, old_rule, no_hws, mes, one_slot;
	int gpus, serve;
} env = {.serve = -1};

#define REASONS 16

static struct counts {
	unsigned run, passed, skipped;
	struct {
		char why[64];
		unsigned n;
	} reason[REASONS];
} counts;

enum {
	OPT_DEVICE = 256,
	OPT_SYSFS,
	OPT_GPU,
	OPT_OLD,
	OPT_NO_HWS,
	OPT_MES,
	OPT_ONE_SLOT,
	OPT_SERVE
};

static const struct argp_option options[] = {
	{"list", 'l', NULL, 0, "Show the cases", 0},
	{"only", 'o', "NAME", 0, "Run this one", 0},
	{"device", OPT_DEVICE, "FILE", 0, "(GPREEMPT_KFD, else /dev/kfd)", 0},
	{"sysfs", OPT_SYSFS, "FOLDER", 0, "Where `proc` is: also the cases that look there", 0},
	{"with-gpu", OPT_GPU, NULL, 0, "Also those that make queues: the emulator only", 0},
	{"mes", OPT_MES, NULL, 0, "The GPU has the MES scheduler", 0},
	{"one-slot", OPT_ONE_SLOT, NULL, 0, "The GPU can have one debugged process", 0},
	{"old-rule", OPT_OLD, NULL, 0, "The driver's rules are from before 6.12.103", 0},
	{"no-hws", OPT_NO_HWS, NULL, 0, "The driver has sched_policy=2: only that case", 0},
	{"serve", OPT_SERVE, "FD", OPTION_HIDDEN, NULL, 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	(void)state;
	switch (key) {
	case 'l': env.list = true; break;
	case 'o': env.only = arg; break;
	case OPT_DEVICE: kfd_device = arg; break;
	case OPT_SYSFS:
		kfd_sysfs = arg;
		setenv("GPREEMPT_KFD_SYSFS", arg, 1);
		break;
	case OPT_GPU: env.with_gpu = true; break;
	case OPT_MES: env.mes = true; break;
	case OPT_ONE_SLOT: env.one_slot = true; break;
	case OPT_OLD: env.old_rule = true; break;
	case OPT_NO_HWS: env.no_hws = true; break;
	case OPT_SERVE: env.serve = (int)strtol(arg, NULL, 0); break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.doc = "Asks amdkfd, or its emulator, and compares what it answers with what we expect.",
};

/* Constructors may run in any order. */
void kfd_case_add(struct kfd_case *c)
{
	struct kfd_case **at = &cases;

	while (*at && (strcmp((*at)->file, c->file) < 0 ||
		       (!strcmp((*at)->file, c->file) && (*at)->position < c->position)))
		at = &(*at)->next;
	c->next = *at;
	*at = c;
}

/* NULL: it can be tried. */
static const char *why_not(const struct kfd_case *c)
{
	if (env.no_hws != !!(c->needs & NEEDS_NO_HWS))
		return "sched_policy";
	if (env.old_rule ? c->needs & NEEDS_NEW_RULE : c->needs & NEEDS_OLD_RULE)
		return "rule";
	if ((c->needs & NEEDS_GPU) && !(env.with_gpu && env.gpus > 0))
		return "no GPU";
	if ((c->needs & NEEDS_TWO_GPU) && env.gpus < 2)
		return "no second GPU";
	if ((c->needs & NEEDS_NO_GPU) && env.gpus > 0)
		return "has a GPU";
	if ((c->needs & NEEDS_MES) && !env.mes)
		return "no MES";
	if ((c->needs & NEEDS_HWS) && env.mes)
		return "has MES";
	if ((c->needs & NEEDS_ONE_SLOT) && !env.one_slot)
		return "several slots";
	if ((c->needs & NEEDS_SYSFS) && !kfd_sysfs)
		return "no sysfs";
	return NULL;
}

static void run_in_child(const struct kfd_case *c, int out)
{
	int null = open("/dev/null", O_RDWR);

	setpgid(0, 0); /* so that all its peers can be ended */
	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	close(null);
	close(out);
	c->run(c->start());
	_exit(0);
}

/* Fills `saw` until the case has ended. */
static void read_result(int in, char *saw, size_t size)
{
	struct pollfd poller = {.fd = in, .events = POLLIN};
	size_t n = 0;
	ssize_t got = 0;

	while (n < size - 1) {
		if (poll(&poller, 1, CASE_MS) != 1) {
			n += (size_t)snprintf(saw + n, size - n, " TIMEOUT");
			break;
		}
		got = read(in, saw + n, size - 1 - n);
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	saw[n < size ? n : size - 1] = '\0';
}

static unsigned known_processes(void)
{
	char path[512];
	struct dirent *entry;
	unsigned n = 0;
	DIR *proc;

	snprintf(path, sizeof(path), "%s/proc", kfd_sysfs ? kfd_sysfs : "");
	proc = kfd_sysfs ? opendir(path) : NULL;
	while (proc && (entry = readdir(proc)))
		n += entry->d_name[0] != '.';
	if (proc)
		closedir(proc);
	return n;
}

/* The peers are gone when their parent is, or a little later; the driver sees it when they are. */
static void wait_until_forgotten(pid_t group)
{
	while (waitpid(-group, NULL, __WALL) > 0)
		;
	for (int i = 0; i < FORGOTTEN_MS && known_processes() > 0; i++)
		usleep(1000);
}

/* Its exit status; -1: killed. */
static int run_case(const struct kfd_case *c, char *saw, size_t size)
{
	int pipes[2], status;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC))
		err(1, "pipe");
	pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (!pid) {
		close(pipes[0]);
		run_in_child(c, pipes[1]);
	}
	setpgid(pid, pid);
	close(pipes[1]);
	read_result(pipes[0], saw, size);
	close(pipes[0]);
	if (strstr(saw, "TIMEOUT"))
		kill(-pid, SIGKILL);
	waitpid(pid, &status, 0);
	kill(-pid, SIGKILL);
	wait_until_forgotten(pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void count_skipped(const struct kfd_case *c, const char *why)
{
	unsigned i = 0;

	printf("- %s (%s)\n", c->name, why);
	counts.skipped++;
	while (i < REASONS - 1 && counts.reason[i].n && strcmp(counts.reason[i].why, why) != 0)
		i++;
	snprintf(counts.reason[i].why, sizeof(counts.reason[i].why), "%s", why);
	counts.reason[i].n++;
}

static void try_case(const struct kfd_case *c)
{
	const char *reason = why_not(c);
	char saw[1024];
	int status;

	if (reason) {
		count_skipped(c, reason);
		return;
	}
	status = run_case(c, saw, sizeof(saw));
	if (status == 77) {
		count_skipped(c, saw);
		return;
	}
	counts.run++;
	printf("%s: %s\n", c->name, saw);
	if (!status && !strcmp(saw, c->expected))
		counts.passed++;
	else
		printf("  EXPECTED  %s (facts %s; exit %d)\n", c->expected, c->info, status);
}

static int ask_gpus(void)
{
	struct kfd_process_apertures args = {0};
	int fd = open(kfd_device, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		err(77, "%s", kfd_device);
	if (ioctl(fd, KFD_IOC_GET_PROCESS_APERTURES, &args))
		err(1, "%s: GET_PROCESS_APERTURES_NEW", kfd_device);
	return (int)args.num_of_nodes;
}

/* In a child, so that this program is none that the driver knows. */
static int count_gpus(void)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(100 + ask_gpus());
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) < 100)
		exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	return WEXITSTATUS(status) - 100;
}

static void print_counts(void)
{
	printf("cases: %u run, %u passed, %u failed, %u skipped", counts.run, counts.passed,
	       counts.run - counts.passed, counts.skipped);
	for (unsigned i = 0; i < REASONS && counts.reason[i].n; i++)
		printf("%s%u %s", i ? ", " : " (", counts.reason[i].n, counts.reason[i].why);
	printf("%s\n", counts.skipped ? ")" : "");
}

int main(int argc, char **argv)
{
	const char *device = getenv("GPREEMPT_KFD");
	bool found = false;

	if (device)
		kfd_device = device;
	if (argp_parse(&argp, argc, argv, 0, NULL, NULL))
		return 2;
	if (env.serve >= 0) {
		must("open", write(env.serve, &(long){0}, sizeof(long)));
		return peer_serve(env.serve);
	}
	setvbuf(stdout, NULL, _IOLBF, 0); /* nothing that a child could print again */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (!env.list)
		env.gpus = count_gpus();
	for (const struct kfd_case *c = cases; c; c = c->next) {
		if (env.only && strcmp(c->name, env.only) != 0)
			continue;
		found = true;
		if (env.list)
			printf("%-8s %s\n", c->info, c->name);
		else
			try_case(c);
	}
	if (!found)
		errx(2, "no case is called %s", env.only);
	if (!env.list)
		print_counts();
	return counts.run != counts.passed;
}
