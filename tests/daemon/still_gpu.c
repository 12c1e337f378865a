/* SPDX-License-Identifier: Apache-2.0 */
#include "still_gpu.h"

static struct still_gpu *still_of(struct gp_gpu *gpu)
{
	return (struct still_gpu *)gpu;
}

static void still_close(struct gp_gpu *gpu)
{
	pthread_mutex_destroy(&still_of(gpu)->gate);
	free(gpu);
}

static int still_scan(struct gp_gpu *gpu, uint64_t now_ns, struct gp_seen *seen, unsigned max)
{
	struct still_gpu *g = still_of(gpu);
	unsigned n;

	(void)now_ns;
	g->at_gate++;
	pthread_mutex_lock(&g->gate);
	g->at_gate--;
	n = g->tasks;
	for (unsigned i = 0; i < n && i < max; i++)
		seen[i] = (struct gp_seen){.key = i + 1,
					   .pid = getpid(),
					   .start_time = g->start_time,
					   .queue = GP_QUEUE_ALL};
	pthread_mutex_unlock(&g->gate);
	return (int)n;
}

static int still_attach(struct gp_gpu *gpu, uint64_t key, uint32_t *handle)
{
	(void)gpu;
	*handle = (uint32_t)key - 1;
	return 0;
}

static void still_detach(struct gp_gpu *gpu, uint32_t handle)
{
	still_of(gpu)->held[handle] = false;
}

static int still_observe(struct gp_gpu *gpu, uint64_t now_ns, struct gp_observation *seen,
			 unsigned n)
{
	struct still_gpu *g = still_of(gpu);

	(void)now_ns;
	g->at_gate++;
	pthread_mutex_lock(&g->gate);
	g->at_gate--;
	for (unsigned i = 0; i < n; i++)
		seen[i] = (struct gp_observation){.handle = seen[i].handle,
						  .known = GP_KNOWN_HELD | GP_KNOWN_ACTIVE,
						  .held = g->held[seen[i].handle]};
	pthread_mutex_unlock(&g->gate);
	return 0;
}

static int still_act(struct gp_gpu *gpu, uint64_t now_ns, enum gp_act_kind kind,
		     struct gp_action *a, unsigned n)
{
	const struct still_gpu *g = still_of(gpu);
	bool held = kind == GP_ACT_HOLD;

	(void)now_ns;
	if (kind == GP_ACT_SLICE)
		return -ENOTSUP;
	for (unsigned i = 0; i < n; i++) {
		bool fails = held && (g->holds_nobody || (g->spares_first && !a[i].handle));

		still_of(gpu)->held[a[i].handle] = held && !fails;
		a[i].status = fails ? -EIO : 0;
		a[i].certainty = GP_OBSERVED;
	}
	return 0;
}

static int still_undo_record(struct gp_gpu *gpu, uint32_t handle, struct gp_undo *undo)
{
	(void)gpu;
	*undo = (struct gp_undo){.key = handle + 1, .pid = getpid()};
	return 0;
}

static const struct gp_gpu_ops still_ops = {
	.name = "still",
	.close = still_close,
	.scan = still_scan,
	.attach = still_attach,
	.detach = still_detach,
	.observe = still_observe,
	.act = still_act,
	.undo_record = still_undo_record,
};

struct still_gpu *still_new(unsigned tasks, uint32_t caps)
{
	struct still_gpu *g = calloc(1, sizeof *g);

	assert_non_null(g);
	pthread_mutex_init(&g->gate, NULL);
	g->base.ops = &still_ops;
	g->base.info = (struct gp_gpu_info){.caps = caps, .max_held = STILL_MAX};
	snprintf(g->base.info.name, sizeof g->base.info.name, "still 0");
	g->start_time = gp_process_start_time(getpid());
	g->tasks = tasks;
	return g;
}

int still_start(struct still_gpu *g, struct gp_assignments *assignments, int wake_fd,
		const char *policy, struct gp_device_thread **host, struct gp_error *err)
{
	struct gp_device_thread_config config = {.gpu = &g->base,
						 .assignments = assignments,
						 .cpu = -1,
						 .scan_every_ns = 5 * GP_NS_PER_MS,
						 .wake_fd = wake_fd};

	assert_int_equal(gp_policy_parse(policy, &config.policy, NULL), 0);
	return gp_device_thread_start(&config, host, err);
}
