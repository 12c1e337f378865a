/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpreempt-keeper: undoes all changes to tasks when the scheduler has died or sends no heartbeat.
 * It is a separate program in a systemd unit of its own and is kept small, so that few faults can
 * stop it: it opens no GPU, allocates nothing after its start, and locks its memory.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <syslog.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/inquiry.h"
#include "base/journal_stream.h"
#include "base/log.h"
#include "build_config.h"
#include "keeper/notify.h"
#include "keeper/heartbeat_watch.h"

/* Limit for --once. The service manager waits for it before it restarts the scheduler, which
 * replays the records too. The unit's TimeoutStopSec is well above this limit. */
#define ONCE_NS (3 * GP_NS_PER_S)
#define LAST_NS (2 * GP_NS_PER_S) /* at exit, for records that are being undone */

static struct {
	uint64_t timeout_ns;
	bool once;
} env = {.timeout_ns = 2 * GP_NS_PER_S};

static const struct argp_option options[] = {
	{"timeout", 't', "SECONDS", 0,
	 "Undo the changes of a scheduler that sends no heartbeat for this long (default: 2)", 0},
	{"once", 'o', NULL, 0, "Undo the changes of dead schedulers, then exit", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	char *end;
	double seconds;

	switch (key) {
	case 't':
		seconds = strtod(arg, &end);
		if (end == arg || *end || !(seconds >= 0.5 && seconds <= 3600))
			argp_error(state, "--timeout takes 0.5 to 3600 seconds, not '%s'", arg);
		env.timeout_ns = (uint64_t)(seconds * (double)GP_NS_PER_S);
		break;
	case 'o': env.once = true; break;
	case ARGP_KEY_ARG: argp_error(state, "unexpected argument '%s'", arg); break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static uint64_t now(void)
{
	return gp_monotonic_ns();
}

/* Asks the kernel to kill this process last when memory runs out. A failure is ignored: the unit
 * may have set the score. */
static void stay_alive(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (write(fd, "-1000", 5) < 0)
			gp_log(GP_LOG_DEBUG, "oom-score", "errno=%d", errno);
		close(fd);
	}
	if (mlockall(MCL_CURRENT))
		gp_log(GP_LOG_DEBUG, "memory.not-locked", "errno=%d", errno);
}

/* The journal takes the priority from the prefix of the line; see sd-daemon(3). */
static void log_with_priority(void *arg, enum gp_log_level level, const char *line)
{
	static const int priority[] = {LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERR};
	char text[GP_LOG_LINE_MAX + 8];

	snprintf(text, sizeof text, "<%d>%s", priority[level], line);
	gp_log_if_possible(arg, level, text);
}

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Waits for an event. Returns whether it was a signal to stop. */
static bool wait_until(const struct gp_watch *w, uint64_t until_ns, int signal_fd)
{
	struct pollfd p[GP_WATCH_FDS + 1];
	uint64_t at_ns = now();
	struct timespec timeout = gp_timespec(until_ns > at_ns ? until_ns - at_ns : 0);

	gp_watch_poll(w, p);
	p[GP_WATCH_FDS] = (struct pollfd){.fd = signal_fd, .events = POLLIN};
	return ppoll(p, GP_WATCH_FDS + 1, &timeout, NULL) > 0 && p[GP_WATCH_FDS].revents;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Counts the records of dead owners, and those that this process has claimed and not undone. */
static unsigned count_left(const struct gp_undo_file *file)
{
	struct gp_undo_entry e;
	unsigned n = 0;

	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++)
		n += gp_undo_get(file, i, &e) && (e.owner == getpid() || !gp_undo_owner_lives(&e));
	return n;
}

/* Works until no record is left to undo, or until the time is over. */
static void finish(struct gp_watch *w, uint64_t for_ns, int signal_fd)
{
	uint64_t until_ns = now() + for_ns, next_ns;
	bool ignored;

	for (;;) {
		next_ns = gp_watch_run(w, now(), &ignored);
		if (gp_watch_is_idle(w) || now() >= until_ns ||
		    wait_until(w, earlier(next_ns, until_ns), signal_fd))
			break;
	}
}

static int run_once(struct gp_watch *w, int signal_fd)
{
	unsigned left;

	w->timeout_ns = GP_NEVER; /* --once handles dead owners only */
	finish(w, ONCE_NS, signal_fd);
	left = count_left(w->file);
	if (left)
		gp_log(GP_LOG_ERROR, "left", "records=%u", left);
	return left ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Reopens the undo file if it was removed, replaced or truncated. */
static void follow_file(struct gp_watch *w)
{
	struct gp_undo_file *file;
	struct gp_error err = {0};
	char why[300];

	if (gp_undo_is_current(w->file) || gp_replay_is_busy(&w->replay))
		return;
	if (gp_undo_open(&file, true, &err) || gp_undo_keeper_begin(file, &err)) {
		gp_log(GP_LOG_ERROR, "file.gone", "why=%s",
		       gp_log_quote(why, sizeof why, err.text));
		exit(EXIT_FAILURE); /* the service manager restarts the keeper */
	}
	gp_undo_carry_over(w->file, file);
	gp_undo_keeper_end(w->file);
	gp_undo_close(w->file);
	w->file = w->replay.file = file;
	w->must_search = true;
	gp_log(GP_LOG_INFO, "file.new", "pid=%d", getpid());
}

static void run(struct gp_watch *w, int signal_fd)
{
	bool is_check;

	gp_notify("READY=1\nSTATUS=Watching");
	for (;;) {
		uint64_t at_ns = now(), next_ns = gp_watch_run(w, at_ns, &is_check);

		if (is_check) {
			gp_undo_keeper_heartbeat(w->file, at_ns);
			gp_notify("WATCHDOG=1");
			follow_file(w);
		}
		if (wait_until(w, next_ns, signal_fd))
			break;
	}
	gp_notify("STOPPING=1");
	finish(w, LAST_NS, -1);
	gp_undo_keeper_end(w->file);
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Undo all changes to GPU tasks when the scheduler has died or sends no "
		       "heartbeat.",
	};
	static struct gp_watch watch;
	struct gp_undo_file *file;
	struct gp_error err = {0};
	int signal_fd, r;

	argp_program_version = "gpreempt-keeper " GP_VERSION;
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	/* The default sink would block if the reader of the log hangs. */
	gp_log_set_sink(gp_stderr_is_journal() ? log_with_priority : gp_log_if_possible, NULL);
	gp_undo_survive_truncation();
	gp_inquiry_use_helpers();
	r = gp_undo_open(&file, !env.once, &err);
	if (r == -ENOENT && env.once)
		return EXIT_SUCCESS; /* there is no undo file, so there is nothing to undo */
	if (!r && !env.once)
		r = gp_undo_keeper_begin(file, &err);
	if (!r)
		r = gp_watch_begin(&watch, file, env.timeout_ns, &err);
	signal_fd = open_signals();
	if (!r && signal_fd < 0)
		r = gp_fail(&err, -errno, "cannot create a signalfd: %s", gp_error_name(-errno));
	if (r) {
		fprintf(stderr, "gpreempt-keeper: %s\n", err.text);
		return r == -EPERM || r == -EACCES ? 3 : EXIT_FAILURE;
	}
	stay_alive();
	if (env.once)
		r = run_once(&watch, signal_fd);
	else
		run(&watch, signal_fd);
	gp_watch_end(&watch);
	gp_undo_close(watch.file);
	return r;
}
