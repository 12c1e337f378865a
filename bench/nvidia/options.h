/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "cells.h"
#include "trial.h"

#define FILES_MAX 32

struct options {
	struct bench bench;
	struct effort effort;
	const struct cell *cell[CELLS_MAX]; /* chosen, in the order of the table */
	unsigned ncells;
	const char *json, *svg, *keep, *command;
	const char *from_json[FILES_MAX];
	unsigned nfrom;
	bool list;
};

/* Exits with 2 and a sentence when they make no sense. */
void options_parse(struct options *o, int argc, char **argv);

#endif
