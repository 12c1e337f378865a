/* SPDX-License-Identifier: Apache-2.0 */
#include "made_up.h"

struct gp_top_snapshot made_up_snapshot(unsigned n, uint64_t at_ns)
{
	struct gp_top_snapshot snapshot = {.ndevices = 1, .ntasks = n, .daemon = "gpreemptd 9.9"};

	snapshot.device = calloc(2, sizeof *snapshot.device);
	snapshot.task = calloc(n + 1, sizeof *snapshot.task);
	assert_non_null(snapshot.device);
	assert_non_null(snapshot.task);
	snapshot.device[0] = (struct gp_top_device){.name = "simulated H200 #0",
						    .policy = "priority",
						    .state = "ok",
						    .at_ns = at_ns,
						    .busy_known = true,
						    .inversions_known = true,
						    .busy = GP_TOP_UNKNOWN,
						    .preemptions_per_s = GP_TOP_UNKNOWN,
						    .inversions_per_s = GP_TOP_UNKNOWN};
	for (unsigned i = 0; i < n; i++) {
		struct gp_top_task *t = &snapshot.task[i];

		*t = (struct gp_top_task){.id = i + 1,
					  .pid = (pid_t)(1000 + i),
					  .user = "alice",
					  .class = GP_BEST_EFFORT,
					  .run_known = true,
					  .at_ns = at_ns,
					  .share = GP_TOP_UNKNOWN,
					  .recent_share = GP_TOP_UNKNOWN,
					  .preemptions_per_s = GP_TOP_UNKNOWN};
		snprintf(t->name, sizeof t->name, "job%u", i);
	}
	return snapshot;
}

char *text_of(const struct gp_cells *cells)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	gp_cells_print(cells, f);
	fclose(f);
	return text;
}

void assert_shows(const struct gp_cells *cells, const char *part)
{
	char *text = text_of(cells);

	if (!strstr(text, part))
		fail_msg("'%s' is not on this screen:\n%s", part, text);
	free(text);
}

void assert_hides(const struct gp_cells *cells, const char *part)
{
	char *text = text_of(cells);

	if (strstr(text, part))
		fail_msg("'%s' is on this screen:\n%s", part, text);
	free(text);
}
