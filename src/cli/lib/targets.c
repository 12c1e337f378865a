/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lib/targets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/process.h"
#include "cli/cli.h"
#include "hold/devices.h"

static void add_pid(struct gp_targets *t, const char *text, struct argp_state *state)
{
	uint64_t pid;

	if (!gp_cli_number(text, INT32_MAX, &pid) || !pid)
		argp_error(state, "'%s' is not a process id", text);
	for (unsigned i = 0; i < t->n; i++)
		if (t->pid[i] == (pid_t)pid)
			return;
	if (t->n == t->max)
		argp_error(state,
			   t->max == 1 ? "give one process; '%s' is one too many"
				       : "too many processes: '%s'",
			   text);
	t->pid[t->n++] = (pid_t)pid;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct gp_targets *t = state->input;

	switch (key) {
	case 'C': t->container = arg; break;
	case ARGP_KEY_ARG: add_pid(t, arg, state); break;
	case ARGP_KEY_END:
		if (t->max == 1 && !t->n)
			argp_error(state, "give a PID; gpreempt ps lists them");
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp_option options[] = {
	{"container", 'C', "NAME", 0, "PID is a number inside this container (name or id)", 0},
	{0},
};

const struct argp gp_targets_argp = {.options = options, .parser = parse};
const struct argp_child gp_targets_children[] = {{&gp_targets_argp, 0, NULL, 0}, {0}};

int gp_targets_resolve(struct gp_targets *t, struct gp_error *err)
{
	for (unsigned i = 0; t->container && i < t->n; i++) {
		int r = gp_process_in_container(t->container, t->pid[i], &t->pid[i], err);

		if (r)
			return r;
	}
	return 0;
}

int gp_targets_open(struct gp_targets *t, struct gp_devices *devices, struct gp_error *err)
{
	int r = gp_targets_resolve(t, err);

	return r ? r : gp_devices_open(devices, 0, err);
}

uint64_t gp_option_duration(struct argp_state *state, const char *option, const char *text)
{
	uint64_t ns = 0;

	if (!gp_cli_duration_parse(text, &ns))
		argp_error(state, "%s takes a time such as 500ms, 10s or 2m, not '%s'", option,
			   text);
	return ns;
}

uint64_t gp_option_number(struct argp_state *state, const char *option, const char *text,
			  uint64_t min, uint64_t max)
{
	uint64_t value = 0;

	if (!gp_cli_number(text, max, &value) || value < min)
		argp_error(state, "%s takes a whole number from %llu to %llu, not '%s'", option,
			   (unsigned long long)min, (unsigned long long)max, text);
	return value;
}
