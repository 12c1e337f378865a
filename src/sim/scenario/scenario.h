/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated device with its tasks, and what a policy makes of them. There may be many such
 * devices: they differ in their random numbers only, know nothing of each other, and run one after
 * the other, so that memory is that of one.
 */
#ifndef GP_SIM_SCENARIO_SCENARIO_H
#define GP_SIM_SCENARIO_SCENARIO_H

#include "engine/engine.h"
#include "sim/model/sim_gpu.h"

struct gp_scenario {
	char name[64];
	char about[256];
	uint64_t duration_ns;
	uint64_t seed;
	uint32_t devices; /* how many there are, each with all of these tasks */
	struct gp_sim_device device;
	uint32_t ntasks;
	struct gp_sim_task *task; /* owned; as long as `attr` */
	struct gp_task_attr *attr;
	uint64_t **list; /* owned: arrivals that tasks refer to */
	uint32_t nlists;

	/* What each task gets done with the device to itself, on all devices together;
	 * gp_scenario_run keeps it here. Whoever changes device, duration or tasks after a run
	 * frees it and sets it to NULL. */
	uint64_t *alone_ns;
	uint64_t alone_seed;
};

/* One H200, 10 s, seed 1, no tasks. */
void gp_scenario_init(struct gp_scenario *s);
void gp_scenario_free(struct gp_scenario *s);

/* Appends a copy. 0 or -ENOMEM. */
int gp_scenario_add(struct gp_scenario *s, const struct gp_sim_task *task,
                    const struct gp_task_attr *attr);

/* Frees the list of arrivals together with the scenario. 0, or -ENOMEM, and it is freed now. */
int gp_scenario_keep(struct gp_scenario *s, uint64_t *list);

/*
 * Reads a YAML file (man gpreempt-scenario(5)). Whatever is wrong with it is one sentence with
 * file and line, and -EINVAL; a file that cannot be read -errno. `s` is initialised either way
 * only on success. -ENOTSUP in a build without libyaml.
 */
int gp_scenario_load(struct gp_scenario *s, const char *path, struct gp_error *err);

/* One value in place of what the file says, as it would stand there. */
struct gp_scenario_change {
	const char *of; /* a task's name in the file, "device", or "" for the scenario itself */
	const char *key, *value;
};

/* The same with a change, for sweeps. A change of what is not there: a sentence and -EINVAL. */
int gp_scenario_load_changed(struct gp_scenario *s, const char *path,
                             const struct gp_scenario_change *change, struct gp_error *err);

/* The same from memory; `path` stands in the sentences. */
int gp_scenario_parse(struct gp_scenario *s, const char *path, const char *text, size_t length,
                      struct gp_error *err);

/* All of it is the sum over the devices. */
struct gp_run_task {
	uint64_t finished, left;
	uint64_t missed;   /* finished later than the task's deadline; 0 without one */
	bool refused;      /* the policy could not promise what the task asks for, at the end */
	bool has_response; /* false: nothing was finished, the percentiles mean nothing */
	uint64_t mean_ns, p50_ns, p99_ns, p999_ns, max_ns;
	uint64_t work_ns, alone_ns;     /* with the device to itself; 0: it had nothing to do */
	const struct gp_hist *response; /* NULL: the task makes no requests */
};

struct gp_run {
	const struct gp_policy_ops *policy;
	uint64_t duration_ns; /* of all devices together */
	struct gp_sim_totals device;
	uint64_t inversions; /* counted by the simulated device: every one */
	uint64_t inversion_ns;
	uint64_t ejections;
	char ejected[200]; /* the last one's sentence */
	uint32_t ntasks;
	struct gp_run_task *task;
	struct gp_hist *hist; /* behind the tasks' `response` */
};

struct gp_run_options {
	/* Sees everything that happens on the devices. */
	gp_sim_watch *watch;
	void *watch_arg;
	/* Called from time to time with how far the run is, 0 to 1000. */
	void (*progress)(void *arg, unsigned permille);
	void *progress_arg;
};

/* One policy on the scenario. `options` may be NULL. 0 or -errno with a sentence. */
int gp_scenario_run(struct gp_scenario *s, const struct gp_policy_choice *policy,
                    const struct gp_run_options *options, struct gp_run *run, struct gp_error *err);
void gp_run_free(struct gp_run *run);

#endif
