/* SPDX-License-Identifier: Apache-2.0 */
/* gpreemptd: schedules the GPUs of this machine until it is terminated. */
#include <argp.h>
#include <stdlib.h>
#include <string.h>

#include "base/inquiry.h"
#include "base/log.h"
#include "daemon/control.h"
#include "daemon/journal_log.h"

enum { EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_NOT_PERMITTED, EXIT_NO_DEVICE };

static struct {
	struct gp_options options;
	bool check;
} env;

static const struct argp_option options[] = {
	{"config", 'c', "FILE", 0, "Configuration file (default: " GP_CONFIG_PATH ", if it exists)",
	 0},
	{"gpu", 'g', "KIND", 0, "Use only GPUs of this kind: nvidia, amd or sim", 0},
	{"policy", 'p', "NAME[:PARAM=VALUE...]", 0, "Policy to use instead of the configured one",
	 0},
	{"wait", 'w', NULL, 0, "If there is no GPU, wait for one instead of exiting", 0},
	{"check", 'C', NULL, 0, "Check the configuration and exit", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct gp_policy_choice choice;
	struct gp_error err = {0};

	switch (key) {
	case 'c': env.options.config = arg; break;
	case 'g':
		if (!gp_backend_find(arg))
			argp_error(state, "unknown kind of GPU '%s'; use nvidia, amd or sim", arg);
		env.options.gpu = arg;
		break;
	case 'p':
		if (gp_policy_parse(arg, &choice, &err))
			argp_error(state, "%s", err.text);
		env.options.policy = arg;
		break;
	case 'w': env.options.wait = true; break;
	case 'C': env.check = true; break;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument '%s'; gpreemptd takes options only", arg);
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static int exit_code(int code)
{
	switch (code) {
	case 0: return EXIT_OK;
	case -EPERM:
	case -EACCES: return EXIT_NOT_PERMITTED;
	case -ENODEV:
	case -ENXIO: return EXIT_NO_DEVICE;
	default: return EXIT_FAILED;
	}
}

static int check(struct gp_error *err)
{
	bool chosen;
	const char *path = gp_config_path(env.options.config, &chosen);
	struct gp_config *config;
	int r = gp_config_load(path, &config, err);

	if (r)
		return r;
	printf("%s: good, %u rule%s\n", path, config->nrules, config->nrules == 1 ? "" : "s");
	gp_config_free(config);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Schedule the GPUs of this machine: latency-critical programs before "
		       "best-effort ones.\v"
		       "To try it without root and without a GPU:\n"
		       "  gpreempt-simgpu &\n"
		       "  gpreemptd --gpu sim &\n"
		       "  gpreempt run --class lc -- gpreempt simload --every 10ms\n\n"
		       "Control it with gpreempt(1). SIGHUP makes it read its configuration "
		       "again.\n",
	};
	static struct gp_control control;
	struct gp_error err = {0};
	int r, ended;

	argp_program_version = "gpreemptd " GP_VERSION;
	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	gp_inquiry_use_helpers();
	if (env.check) {
		r = check(&err);
	} else {
		gp_journal_begin();
		r = gp_control_begin(&control, &env.options, &err);
		if (!r)
			r = gp_control_run(&control, &err);
		ended = gp_control_end(&control, r ? NULL : &err);
		r = r ? r : ended;
	}
	if (r)
		fprintf(stderr, "gpreemptd: %s\n", *err.text ? err.text : gp_error_name(r));
	return exit_code(r);
}
