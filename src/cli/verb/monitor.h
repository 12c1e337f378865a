/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of gpreempt monitor. Private to monitor.c and monitor_*.c. */
#ifndef GP_CLI_VERB_MONITOR_H
#define GP_CLI_VERB_MONITOR_H

#include "cli/lib/out_file.h"
#include "cli/draw/plot.h"
#include "cli/lib/gpu_share.h"
#include "hold/queue_counts.h"
#include "hold/devices.h"

struct gp_monitor {
	const struct gp_devices *devices;
	uint64_t begin_ns, last_ns;
	bool ended;
	char name[32];
	struct gp_queue_counts counts;
	struct gp_share share[GP_DEVICES_MAX];
	struct gp_task_ref
		ref[GP_DEVICES_MAX]; /* .gpu is NULL until the process has queues there */
	/* With --plot: for each series of the counts. */
	unsigned nlines;
	struct gp_plot_line *line;
};

void gp_monitor_print(const struct gp_monitor *m, pid_t pid);
void gp_monitor_json(const struct gp_monitor *m, pid_t pid);

/* Checks before sampling that the file can be written. 0 or -errno with a message. */
int gp_monitor_plot_open(struct gp_out_file *file, const char *path, struct gp_error *err);
/* Adds the last sample. 0 or -ENOMEM. */
int gp_monitor_plot_sample(struct gp_monitor *m);
int gp_monitor_plot_write(struct gp_monitor *m, pid_t pid, const char *path,
			  struct gp_out_file *file, struct gp_error *err);

#endif
