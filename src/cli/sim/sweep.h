/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpreempt sim --sweep: runs a scenario for each of several values of one scenario key or policy
 * parameter. The results are shown as a table, as JSON and as a picture.
 */
#ifndef GP_CLI_SIM_SWEEP_H
#define GP_CLI_SIM_SWEEP_H

#include "cli/draw/draw.h"
#include "cli/sim/policy_runs.h"

#define GP_SWEEP_MAX 200 /* values */

struct gp_sweep {
	char name[96]; /* as the user wrote it: "inference.rate" */
	char of[64];   /* "inference", "priority", "device"; "" for the scenario itself */
	char key[32];  /* "rate" */
	unsigned n;
	char value[GP_SWEEP_MAX][32];
};

/*
 * Parses NAME=A:B:N. A and B are numbers, or times with a unit. Values between them are rounded to
 * as many decimals as A and B have; duplicates are removed. 0, or -EINVAL and a message.
 */
int gp_sweep_parse(struct gp_sweep *sweep, const char *text, struct gp_error *err);

/* The results of one run that table and picture show. */
struct gp_sweep_point {
	char value[32]; /* "": the policy of this run does not depend on the swept value */
	unsigned series;
	bool ran, ejected, has_be;
	struct gp_compare_lc lc;
	double be_work, switch_pct;
};

struct gp_sweep_result {
	const struct gp_sweep *sweep;
	char scenario[64];
	uint64_t duration_ns, seed;
	unsigned nseries;
	const char *const *series; /* not owned: the policies as the user wrote them */
	unsigned n, capacity;
	struct gp_sweep_point *point; /* owned */
	struct json_object *json;     /* owned: the runs, an array */
};

/*
 * `path` is the scenario's file. `seed` replaces the scenario's seed unless it is NULL. `base` has
 * the policies. 0, or -errno and a message; free the result in both cases.
 */
int gp_sweep_run(const struct gp_sweep *sweep, const char *path, const uint64_t *seed,
		 const struct gp_runs *base, struct gp_sweep_result *result, struct gp_error *err);
void gp_sweep_free(struct gp_sweep_result *result);

void gp_sweep_table(FILE *out, const struct gp_sweep_result *result);
void gp_sweep_json(const struct gp_sweep_result *result);

/* Draws best-effort work against response times (tradeoff_chart.c). -EINVAL and a
 * message if no run has both. */
int gp_sweep_picture(FILE *out, enum gp_draw_format format, const struct gp_sweep_result *result,
		     struct gp_error *err);

#endif
