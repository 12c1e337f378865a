/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scenario: a simulated device with its tasks, and the results under a policy. There may be many
 * identical devices, which differ only in their random numbers and do not interact. They run one
 * after the other, so that memory is needed for one only.
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
	uint32_t devices; /* number of devices, each with all of these tasks */
	struct gp_sim_device device;
	uint32_t ntasks;
	struct gp_sim_task *task; /* owned; as long as `attr` */
	struct gp_task_attr *attr;
	uint64_t **list; /* owned: arrival lists that tasks refer to */
	uint32_t nlists;

	/*
	 * The work of each task with the device to itself, on all devices together. gp_scenario_run
	 * fills it in. A caller that changes device, duration or tasks after a run must free it and
	 * set it to NULL.
	 */
	uint64_t *alone_ns;
	uint64_t alone_seed;
};

/* One H200, 10 s, seed 1, no tasks. */
void gp_scenario_init(struct gp_scenario *s);
void gp_scenario_free(struct gp_scenario *s);

/* Appends a copy. Returns 0 or -ENOMEM. */
int gp_scenario_add(struct gp_scenario *s, const struct gp_sim_task *task,
		    const struct gp_task_attr *attr);

/*
 * The scenario takes ownership of the arrival list. Returns 0, or -ENOMEM after freeing the list.
 */
int gp_scenario_keep(struct gp_scenario *s, uint64_t *list);

/*
 * Reads a YAML file (man gpreempt-scenario(5)). Returns 0; -EINVAL for an error in the file, with a
 * message that names file and line; -errno if the file cannot be read; -ENOTSUP in a build without
 * libyaml. `s` is initialised only on success.
 */
int gp_scenario_load(struct gp_scenario *s, const char *path, struct gp_error *err);

/* A value that replaces the value in the file. It is written as in the file. */
struct gp_scenario_change {
	const char *of; /* name of a task in the file, "device", or "" for the scenario itself */
	const char *key, *value;
};

/* The same with one change, for sweeps. -EINVAL with a message if the change does not apply. */
int gp_scenario_load_changed(struct gp_scenario *s, const char *path,
			     const struct gp_scenario_change *change, struct gp_error *err);

/* The same from memory. `path` is used in messages. */
int gp_scenario_parse(struct gp_scenario *s, const char *path, const char *text, size_t length,
		      struct gp_error *err);

/* All values are sums over the devices. */
struct gp_run_task {
	uint64_t finished, left;
	uint64_t missed;   /* finished later than the task's deadline; 0 without a deadline */
	bool refused;      /* at the end, the policy refused the task's deadline or share */
	bool has_response; /* false = no request was finished, and the percentiles are invalid */
	uint64_t mean_ns, p50_ns, p99_ns, p999_ns, max_ns;
	uint64_t work_ns, alone_ns; /* alone_ns: with the device to itself; 0 = it had no work */
	const struct gp_hist *response; /* NULL = the task makes no requests */
};

struct gp_run {
	const struct gp_policy_ops *policy;
	uint64_t duration_ns; /* of all devices together */
	struct gp_sim_totals device;
	uint64_t inversions; /* exact, counted by the simulated device */
	uint64_t inversion_ns;
	uint64_t ejections;
	char ejected[200]; /* the message of the last ejection */
	uint32_t ntasks;
	struct gp_run_task *task;
	struct gp_hist *hist; /* the histograms that `response` of the tasks points to */
};

struct gp_run_options {
	/* Called for every event on the devices. */
	gp_sim_watch *watch;
	void *watch_arg;
	/* Called from time to time with the progress of the run, 0 to 1000. */
	void (*progress)(void *arg, unsigned permille);
	void *progress_arg;
};

/* Runs one policy on the scenario. `options` may be NULL. Returns 0, or -errno with a message. */
int gp_scenario_run(struct gp_scenario *s, const struct gp_policy_choice *policy,
		    const struct gp_run_options *options, struct gp_run *run, struct gp_error *err);
void gp_run_free(struct gp_run *run);

#endif
