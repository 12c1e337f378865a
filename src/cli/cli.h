/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations for all verbs. To add a verb: write src/cli/verb/NAME.c, which defines gp_verb_NAME;
 * declare it below; add it to the table in main.c.
 */
#ifndef GP_CLI_CLI_H
#define GP_CLI_CLI_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum gp_exit {
	GP_EXIT_DONE,
	GP_EXIT_FAILED,
	GP_EXIT_USAGE,
	GP_EXIT_NOT_PERMITTED,
	GP_EXIT_NO_DEVICE, /* no device or no such process */
};

struct gp_option;
struct gp_targets;

/* A verb. lib/options.h parses its options and arguments before `run` is called. */
struct gp_verb {
	const char *name;
	const char *summary;
	const char *arguments;           /* in the usage line, as "PID..."; NULL: it takes none */
	const char *doc;                 /* for --help; NULL: nothing is parsed */
	const struct gp_option *options; /* ended by a name of NULL */

	/* What is done with an argument. At most one of the two is set. */
	struct gp_targets *targets; /* it is a PID; also adds --container */
	void (*argument)(struct argp_state *state, char *arg);

	/* More options, parsed by argp with this input. */
	struct argp_child more;
	void *more_input;

	void (*check)(struct argp_state *state); /* called after the last option and argument */
	bool in_order;                           /* options end at the first argument */
	int usage_exit;                          /* exit code for wrong usage; 0: GP_EXIT_USAGE */

	/* Returns an exit code, or -errno with a message in `err`. */
	int (*run)(struct gp_error *err);
};

extern const struct gp_verb gp_verb_bench;
extern const struct gp_verb gp_verb_demo;
extern const struct gp_verb gp_verb_doctor;
extern const struct gp_verb gp_verb_events;
extern const struct gp_verb gp_verb_monitor;
extern const struct gp_verb gp_verb_policy;
extern const struct gp_verb gp_verb_ps;
extern const struct gp_verb gp_verb_queues;
extern const struct gp_verb gp_verb_resume;
extern const struct gp_verb gp_verb_run;
extern const struct gp_verb gp_verb_schedule;
extern const struct gp_verb gp_verb_set;
extern const struct gp_verb gp_verb_sim;
extern const struct gp_verb gp_verb_simload;
extern const struct gp_verb gp_verb_stats;
extern const struct gp_verb gp_verb_suspend;
extern const struct gp_verb gp_verb_top;
extern const struct gp_verb gp_verb_trace;

/* Prints "gpreempt: " and the message on standard error. Returns the exit code for err->code. */
int gp_cli_fail(const struct gp_error *err);

/* Parses a whole number from 0 to `max`. False: the text is something else. */
bool gp_cli_number(const char *text, uint64_t max, uint64_t *value);

/* Parses "500ms", "10s" or "2m", up to a year. False: the text is something else. */
bool gp_cli_duration_parse(const char *text, uint64_t *ns);

/* "127 us", "1.36 ms", "10.7 s": three significant digits. And "12 MiB", "1.36 GiB". */
struct gp_short_text {
	char text[32];
};
struct gp_short_text gp_cli_duration(uint64_t ns);
struct gp_short_text gp_cli_bytes(uint64_t bytes);

/* A progress line, on a terminal only, written at most ten times a second; and its removal, before
 * other output. */
__attribute__((format(printf, 1, 2))) void gp_progress(const char *format, ...);
void gp_progress_end(void);

/* For atexit(3): output that could not be written (a full disk) makes the exit code a failure. */
void gp_cli_check_output(void);

#endif
