/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>

enum {
	KEY_ARMS = 256,
	KEY_CELLS,
	KEY_COMMAND,
	KEY_FROM_JSON,
	KEY_GPREEMPT,
	KEY_JSON,
	KEY_KEEP,
	KEY_LIST,
	KEY_LOAD,
	KEY_MPS,
	KEY_PART,
	KEY_POLICY,
	KEY_PYTHON,
	KEY_QUICK,
	KEY_READY,
	KEY_ROUNDS,
	KEY_SVG,
	KEY_TORCH,
};

static const struct argp_option table[] = {
	{"part", KEY_PART, "NAME", 0, "Run the cells of a part; may be given several times", 1},
	{"cells", KEY_CELLS, "LIST", 0, "Run these cells, separated by commas", 1},
	{"arms", KEY_ARMS, "LIST", 0,
         "Of alone, default, mps, gpreempt (default: all; without alone there are no shares)", 1},
	{"rounds", KEY_ROUNDS, "N", 0, "Rounds the arms take turns in (default 3)", 1},
	{"quick", KEY_QUICK, 0, 0, "A smoke test: few requests, one round", 1},
	{"list", KEY_LIST, 0, 0, "Show the cells, how long they take, and do nothing", 1},
	{"json", KEY_JSON, "FILE", 0, "Write the report there after every run", 2},
	{"svg", KEY_SVG, "FILE", 0, "Write a picture there", 2},
	{"from-json", KEY_FROM_JSON, "FILE", 0,
         "Run nothing: merge reports (more FILEs may follow) into one", 2},
	{"keep", KEY_KEEP, "DIR", 0, "Keep what the loads and gpreempt wrote there", 2},
	{"policy", KEY_POLICY, "NAME", 0, "Policy of the gpreempt arm (default priority)", 3},
	{"gpreempt", KEY_GPREEMPT, "FILE", 0, "The program of the gpreempt arm", 3},
	{"load", KEY_LOAD, "FILE", 0, "The CUDA loads", 3},
	{"torch", KEY_TORCH, "FILE", 0, "The PyTorch loads", 3},
	{"python", KEY_PYTHON, "FILE", 0, "What runs them (default python3)", 3},
	{"mps-control", KEY_MPS, "FILE", 0, "MPS's program (default nvidia-cuda-mps-control)", 3},
	{"ready-timeout", KEY_READY, "SECONDS", 0,
         "How long a CUDA load may take to start, PyTorch twice that (default 60)", 3},
	{"command-line", KEY_COMMAND, "TEXT", 0, "What to write into the report as such", 3},
	{0},
};

/* By the table's order and once each, whatever order they were asked for in. */
static bool choose(bool *chosen, const char *part, const char *name)
{
	bool found = false;

	for (unsigned i = 0; i < ncells; i++)
		if ((part && !strcmp(cells[i].part, part)) ||
		    (name && !strcmp(cells[i].name, name)))
			found = chosen[i] = true;
	return found;
}

struct parsing {
	struct options *options;
	bool chosen[CELLS_MAX];
};

static void choose_list(struct parsing *p, char *list, const struct argp_state *state)
{
	for (char *name = strtok(list, ","); name; name = strtok(NULL, ","))
		if (!choose(p->chosen, NULL, name))
			argp_error(state, "there is no cell '%s'; see --list", name);
}

static void choose_arms(struct effort *e, char *list, const struct argp_state *state)
{
	memset(e->arm, 0, sizeof e->arm);
	for (char *name = strtok(list, ","); name; name = strtok(NULL, ",")) {
		enum arm arm = 0;

		while (arm < ARMS && strcmp(name, arm_name[arm]) != 0)
			arm++;
		if (arm == ARMS)
			argp_error(state, "there is no arm '%s'", name);
		else
			e->arm[arm] = true;
	}
}

static unsigned number(const char *text, unsigned max, const struct argp_state *state)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (end == text || *end || !value || value > max)
		argp_error(state, "'%s' is no number from 1 to %u", text, max);
	return (unsigned)value;
}

static void add_file(struct options *o, const char *file, const struct argp_state *state)
{
	if (o->nfrom == FILES_MAX)
		argp_error(state, "at most %d files", FILES_MAX);
	else
		o->from_json[o->nfrom++] = file;
}

static void finish(struct parsing *p)
{
	struct options *o = p->options;
	bool any = false;

	for (unsigned i = 0; i < ncells; i++)
		any |= p->chosen[i];
	for (unsigned i = 0; i < ncells; i++)
		if (p->chosen[i] || !any)
			o->cell[o->ncells++] = &cells[i];
	if (o->effort.quick)
		o->effort.rounds = 1;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct parsing *p = state->input;
	struct options *o = p->options;

	switch (key) {
	case KEY_PART:
		if (!choose(p->chosen, arg, NULL))
			argp_error(state, "there is no part '%s'; see --list", arg);
		break;
	case KEY_CELLS: choose_list(p, arg, state); break;
	case KEY_ARMS: choose_arms(&o->effort, arg, state); break;
	case KEY_ROUNDS: o->effort.rounds = number(arg, 100, state); break;
	case KEY_QUICK: o->effort.quick = true; break;
	case KEY_LIST: o->list = true; break;
	case KEY_JSON: o->json = arg; break;
	case KEY_SVG: o->svg = arg; break;
	case KEY_FROM_JSON: add_file(o, arg, state); break;
	case KEY_KEEP: o->keep = arg; break;
	case KEY_POLICY: o->bench.policy = arg; break;
	case KEY_GPREEMPT: o->bench.gpreempt = arg; break;
	case KEY_LOAD: o->bench.load = arg; break;
	case KEY_TORCH: o->bench.torch_script = arg; break;
	case KEY_PYTHON: o->bench.python = arg; break;
	case KEY_MPS: o->bench.mps_control = arg; break;
	case KEY_READY: o->bench.ready_s = number(arg, 3600, state); break;
	case KEY_COMMAND: o->command = arg; break;
	case ARGP_KEY_ARG:
		if (!o->nfrom)
			argp_error(state, "'%s' is no option", arg);
		add_file(o, arg, state);
		break;
	case ARGP_KEY_END: finish(p); break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

void options_parse(struct options *o, int argc, char **argv)
{
	static const struct argp argp = {
		.options = table,
		.parser = parse,
		.args_doc = "[--from-json FILE...]",
		.doc = "Measures what gpreempt does for latency-critical work beside best-effort "
		       "work on an NVIDIA GPU, and what it costs.\v"
		       "Exit status: 0 all that was measured passes, 1 something failed, 2 usage, "
		       "77 nothing can be measured here.",
	};
	struct parsing p = {.options = o};

	*o = (struct options){
		.bench = {.load = "load",
	                  .python = "python3",
	                  .torch_script = "torch_pair.py",
	                  .gpreempt = "gpreempt",
	                  .policy = "priority",
	                  .mps_control = "nvidia-cuda-mps-control",
	                  .ready_s = 60},
		.effort = {.rounds = 3, .arm = {true, true, true, true}},
	};
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, &p);
}
