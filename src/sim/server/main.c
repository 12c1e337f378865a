/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt-simgpu: simulates GPUs in real time; the command line. */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/run_dir.h"
#include "build_config.h"
#include "gpu/simclient/connection.h"
#include "sim/server/sim_server.h"

static struct {
	struct gp_sim_server_config server;
	struct gp_sim_device model;
	int activity; /* enum gp_sim_activity */
	bool json;
} env = {
	.server = {.model_name = "H200", .devices = 1, .seed = 1},
	.activity = GP_ACTIVITY_EVENTS,
};

enum { OPTION_SEED = 256 };
enum { EXIT_USAGE = 2, EXIT_NOT_PERMITTED }; /* the same as those of gpreempt */

static const struct argp_option options[] = {
	{"devices", 'n', "N", 0, "Number of GPUs (default: 1)", 0},
	{"device", 'd', "MODEL", 0, "Model: h200 or mi300x (default: h200)", 0},
	{"activity", 'a', "HOW", 0,
	 "How activity is reported: none, sampled, exact or events (default: events)", 0},
	{"socket", 's', "PATH", 0,
	 "Path of the socket (default: simgpu.sock in the run-time folder)", 0},
	{"seed", OPTION_SEED, "N", 0, "Seed of the random numbers (default: 1)", 0},
	{"json", 'j', NULL, 0, "Write the final statistics as JSON", 0},
	{0},
};

static int choose(struct argp_state *state, const char *option, const char *text,
		  const char *const names[])
{
	for (int i = 0; names[i]; i++)
		if (!strcmp(names[i], text))
			return i;
	argp_error(state, "%s: invalid value '%s'; see --help", option, text);
	return 0;
}

static uint64_t number(struct argp_state *state, const char *option, const char *text, uint64_t min,
		       uint64_t max)
{
	char *end;
	unsigned long long n = strtoull(text, &end, 10);

	if (!*text || *text == '-' || *end || n < min || n > max)
		argp_error(state, "%s takes a number from %llu to %llu, not '%s'", option,
			   (unsigned long long)min, (unsigned long long)max, text);
	return n;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	static const char *const models[] = {"h200", "mi300x", NULL};
	static const char *const activities[] = {[GP_ACTIVITY_NONE] = "none",
						 [GP_ACTIVITY_SAMPLED] = "sampled",
						 [GP_ACTIVITY_EXACT] = "exact",
						 [GP_ACTIVITY_EVENTS] = "events",
						 NULL};

	switch (key) {
	case 'n':
		env.server.devices =
			(uint32_t)number(state, "--devices", arg, 1, GP_SIMGPU_DEVICES);
		break;
	case 'd':
		if (choose(state, "--device", arg, models)) {
			env.model = gp_sim_mi300x;
			env.server.model_name = "MI300X";
		} else {
			env.model = gp_sim_h200;
			env.server.model_name = "H200";
		}
		break;
	case 'a': env.activity = choose(state, "--activity", arg, activities); break;
	case 's': env.server.path = arg; break;
	case OPTION_SEED: env.server.seed = number(state, "--seed", arg, 0, UINT64_MAX); break;
	case 'j': env.json = true; break;
	case ARGP_KEY_ARG: argp_error(state, "unexpected argument '%s'", arg); break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static int serve(struct gp_error *err)
{
	char path[GP_SIMGPU_PATH_SIZE];
	struct server *server;
	int r = 0;

	if (!env.server.path) {
		if (!secure_getenv("GPREEMPT_SIMGPU"))
			r = gp_run_dir_make(err);
		env.server.path = gp_simgpu_path(path, sizeof path);
	}
	if (!r)
		r = gp_sim_server_new(&env.server, &server, err);
	if (r)
		return r;
	puts("ready");
	fflush(stdout); /* a client may wait for this line through a pipe */
	r = gp_sim_server_run(server);
	gp_sim_server_report(server, env.json);
	gp_sim_server_free(server);
	return r ? gp_fail(err, r, "waiting for events failed: %s", gp_error_name(r)) : 0;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Simulate GPUs in real time. Needs no GPU and no root.\v"
		       "Prints `ready` when programs can connect. Ends on SIGINT (Ctrl-C), SIGTERM "
		       "or "
		       "SIGHUP, and prints statistics.\n\n"
		       "Example:\n"
		       "  gpreempt-simgpu &\n"
		       "  gpreempt simload --kernel 10ms &\n"
		       "  gpreempt simload --kernel 100us --every 3ms --for 10s &\n"
		       "  GPREEMPT_GPU=sim gpreempt ps\n",
	};
	struct gp_error err = {0};

	argp_program_version = "gpreempt-simgpu " GP_VERSION;
	argp_err_exit_status = EXIT_USAGE;
	env.model = gp_sim_h200;
	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	env.model.activity = (enum gp_sim_activity)env.activity;
	env.server.model = &env.model;
	prctl(PR_SET_TIMERSLACK, 1ul);
	if (!serve(&err))
		return EXIT_SUCCESS;
	fprintf(stderr, "gpreempt-simgpu: %s\n", err.text);
	return err.code == -EPERM || err.code == -EACCES ? EXIT_NOT_PERMITTED : EXIT_FAILURE;
}
