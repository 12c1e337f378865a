/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A value of a scenario or a parameter of a policy, moved from one end to the other: the runs for
 * each value as a table, as JSON and as a picture.
 */
#ifndef GP_CLI_SIM_SWEEP_H
#define GP_CLI_SIM_SWEEP_H

#include "cli/draw/draw.h"
#include "cli/sim/policy_runs.h"

#define GP_SWEEP_MAX 200 /* values */

struct gp_sweep {
	char name[96]; /* as it was asked for: "inference.rate" */
	char of[64];   /* "inference", "priority", "device"; "" for the scenario itself */
	char key[32];  /* "rate" */
	unsigned n;
	char value[GP_SWEEP_MAX][32];
};

/*
 * NAME=A:B:N. A and B are numbers or times with a unit; what lies between them is rounded to as
 * many decimals as they have, and what is then the same twice stands there once. -EINVAL with a
 * sentence.
 */
int gp_sweep_parse(struct gp_sweep *sweep, const char *text, struct gp_error *err);

/* What a picture and a table need of one run. */
struct gp_sweep_point {
	char value[32]; /* "": the run does not depend on it */
	unsigned series;
	bool ran, has_response, has_deadline, has_be;
	bool ejected;
	uint64_t lc_p50_ns, lc_p99_ns, lc_p999_ns;
	uint64_t lc_left, lc_missed;
	double be_work, switch_pct;
};

struct gp_sweep_result {
	const struct gp_sweep *sweep;
	char scenario[64];
	uint64_t duration_ns, seed;
	unsigned nseries;
	const char *const *series; /* the policies as they were asked for; not owned */
	unsigned n, capacity;
	struct gp_sweep_point *point; /* owned */
	char *json;                   /* owned: the runs, "{...},{...}" */
};

/*
 * `path` is the scenario's file, `seed` NULL or another seed, and `base` has the policies.
 * 0 or -errno with a sentence; the result must be freed either way.
 */
int gp_sweep_run(const struct gp_sweep *sweep, const char *path, const uint64_t *seed,
                 const struct gp_runs *base, struct gp_sweep_result *result, struct gp_error *err);
void gp_sweep_free(struct gp_sweep_result *result);

void gp_sweep_table(FILE *out, const struct gp_sweep_result *result);
void gp_sweep_json(FILE *out, const struct gp_sweep_result *result);

/* Best-effort work against response times. -EINVAL with a sentence where there is no such thing. */
int gp_sweep_picture(FILE *out, enum gp_draw_format format, const struct gp_sweep_result *result,
                     struct gp_error *err);

#endif
