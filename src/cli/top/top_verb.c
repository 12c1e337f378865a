/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt top: options and exit codes. */
#include <argp.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/lib/targets.h"
#include "cli/top/top.h"

#define EVERY_LEAST_NS (100 * GP_NS_PER_MS) /* the daemon publishes snapshots no faster */

enum { ONCE = 0x100, NO_COLOUR };

static struct {
	bool once, json, colour;
	uint64_t every_ns;
	int device;
} env = {.colour = true, .every_ns = GP_NS_PER_S, .device = -1};

static const struct argp_option options[] = {
	{"every", 'e', "TIME", 0, "Time between two snapshots (default: 1s)", 0},
	{"device", 'd', "N", 0, "Only this device", 0},
	{"once", ONCE, NULL, 0,
	 "Print one screen as text; the default if the output is not a terminal", 0},
	{"no-colour", NO_COLOUR, NULL, 0, "Without colour; also if NO_COLOR is set", 0},
	{"no-color", NO_COLOUR, NULL, OPTION_ALIAS, NULL, 0},
	{"json", 'j', NULL, 0, "Write one snapshot as JSON", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'e':
		env.every_ns = gp_option_duration(state, "--every", arg);
		if (env.every_ns < EVERY_LEAST_NS)
			argp_error(
				state,
				"--every must be at least 100ms: the daemon publishes no faster");
		break;
	case 'd':
		env.device = (int)gp_option_number(state, "--device", arg, 0, GP_DEVICES_MAX - 1);
		break;
	case ONCE: env.once = true; break;
	case NO_COLOUR: env.colour = false; break;
	case 'j': env.json = true; break;
	case ARGP_KEY_ARG: argp_error(state, "takes no argument; remove '%s'", arg); break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

bool gp_top_utf8(void)
{
	return !strcmp(nl_langinfo(CODESET), "UTF-8");
}

static int run(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Show the devices and tasks of the daemon live, and control them with "
		       "keys.\v"
		       "Keys: arrows, j and k select; c class, + and - priority, h hold, r "
		       "release, s sort, f filter, p policy, ? help, q quit.\n\n"
		       "Examples:\n"
		       "  gpreempt top\n"
		       "  gpreempt top --device 0 --every 200ms\n"
		       "  gpreempt top --once | head\n",
	};
	const char *no_colour = getenv("NO_COLOR");
	struct gp_top *top;
	int exit;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	setlocale(LC_CTYPE, ""); /* characters only: the format of numbers stays */
	top = malloc(sizeof *top);
	if (!top) {
		struct gp_error err;

		gp_fail(&err, -ENOMEM, "no memory");
		return gp_cli_fail(&err);
	}
	gp_top_init(top, env.every_ns, env.device);
	if (env.json)
		exit = gp_top_json(top);
	else if (env.once || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		exit = gp_top_once(top);
	else
		exit = gp_top_live(top, env.colour && !(no_colour && *no_colour));
	gp_top_free(top);
	free(top);
	return exit;
}

const struct gp_verb gp_verb_top = {
	.name = "top",
	.summary = "live view of the daemon's tasks, with keys to control them",
	.run = run,
};
