/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt VERB ...: finds the verb in the table below and runs it. */
#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/inquiry.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/lib/options.h"
#include "build_config.h"
#include "gpu/backends.h"
#include "undo/undo.h"

#if !GP_HAVE_DAEMON
static int refuse_top(struct gp_error *err)
{
	return gp_fail(err, -ENOTSUP,
		       "top is not in this build; configure it with -DGPREEMPT_DAEMON=ON");
}

const struct gp_verb gp_verb_top = {"top", "not in this build", .run = refuse_top};
#endif

/* clang-format off */
static const struct gp_verb *const verbs[] = {
	&gp_verb_demo,
	&gp_verb_doctor,
	&gp_verb_run,
	&gp_verb_set,
	&gp_verb_ps,
	&gp_verb_top,
	&gp_verb_stats,
	&gp_verb_events,
	&gp_verb_trace,
	&gp_verb_queues,
	&gp_verb_monitor,
	&gp_verb_suspend,
	&gp_verb_resume,
	&gp_verb_bench,
	&gp_verb_schedule,
	&gp_verb_sim,
	&gp_verb_simload,
	&gp_verb_policy,
	NULL,
};
/* clang-format on */

static void print_help(FILE *out)
{
	fputs("Usage: gpreempt VERB [OPTION...]\n"
	      "Lets latency-critical GPU work preempt best-effort work.\n\n",
	      out);
	for (const struct gp_verb *const *v = verbs; *v; v++)
		fprintf(out, "  %-10s %s\n", (*v)->name, (*v)->summary);
	fputs("\n  gpreempt VERB --help     the options of a verb\n"
	      "  gpreempt --version\n\n"
	      "Exit codes: 0 done, 1 failed, 2 usage, 3 not permitted, 4 no device or no such "
	      "process.\n"
	      "Try first: gpreempt demo, gpreempt doctor\n",
	      out);
}

static const struct gp_verb *find_verb(const char *name)
{
	for (const struct gp_verb *const *v = verbs; *v; v++)
		if (!strcmp((*v)->name, name))
			return *v;
	return NULL;
}

static int run_verb(int argc, char **argv)
{
	const struct gp_verb *verb = find_verb(argv[0]);
	struct gp_error err = {0};
	char name[64];
	int r;

	if (!verb) {
		fprintf(stderr, "gpreempt: there is no verb '%s'; see gpreempt --help\n", argv[0]);
		return GP_EXIT_USAGE;
	}
	if (gp_backends_select_by_environment(&err))
		return gp_cli_fail(&err);
	/* argp prints it in usage texts and errors. */
	snprintf(name, sizeof name, "gpreempt %s", verb->name);
	argv[0] = name;
	program_invocation_name = name;
	gp_options_parse(verb, argc, argv);
	r = verb->run(&err);
	return r < 0 ? gp_cli_fail(&err) : r;
}

int main(int argc, char **argv)
{
	atexit(gp_cli_check_output);
	gp_log_set_level(GP_LOG_ERROR); /* verbs print their own messages */
	gp_undo_survive_truncation();
	gp_inquiry_use_helpers();
	if (argc < 2) {
		print_help(stderr);
		return GP_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		puts("gpreempt " GP_VERSION);
		return GP_EXIT_DONE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
	    (!strcmp(argv[1], "help") && argc == 2)) {
		print_help(stdout);
		return GP_EXIT_DONE;
	}
	if (!strcmp(argv[1], "help")) {
		char help[] = "--help";
		char *args[] = {argv[2], help, NULL};

		return run_verb(2, args);
	}
	return run_verb(argc - 1, argv + 1);
}
