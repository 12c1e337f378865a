/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks whether released processes work, for commands that did not hold them. The driver's answers
 * about a release can be wrong together; work cannot.
 *
 * A context that is put on the engine now had been released (20 ms late at most). One that has been
 * there since before the look makes no record; NVML's use of the process tells then, after 0.4 to
 * 1 s. Not used: figures of a process with graphics objects, whose queues are never held.
 */
#include <stdlib.h>
#include <unistd.h>

#include "gpu/nvidia/nvidia_device.h"

#define PAUSE_US  5000
#define WINDOW_NS (2 * GP_NV_USE_NS) /* a window of NVML is no longer */
#define GPUS_MAX  32

/* What tells of the work on one GPU. */
struct source {
	struct gp_rm rm;
	struct gp_ctxsw ctxsw;
	bool has_ctxsw;
	void *nvml_device;
};

struct look {
	const pid_t *pid;
	bool *works;
	bool *counts; /* its use is that of queues that can be held */
	unsigned n;
	struct source source[GPUS_MAX];
	unsigned nsources;
	struct gp_nvml *nvml;
	uint64_t since_ns; /* begin of the look */
};

static void note_work(struct look *l, uint32_t pid)
{
	for (unsigned i = 0; i < l->n; i++)
		l->works[i] |= l->counts[i] && (uint32_t)l->pid[i] == pid;
}

static bool all_work(const struct look *l)
{
	for (unsigned i = 0; i < l->n; i++)
		if (l->counts[i] && !l->works[i])
			return false;
	return true;
}

static void read_source(struct look *l, struct source *s)
{
	struct gp_ctxsw_event event;
	struct gp_nvml_use use[256];
	int n = 0;

	if (s->has_ctxsw)
		gp_ctxsw_flush(&s->ctxsw);
	while (s->has_ctxsw && gp_ctxsw_next(&s->ctxsw.ring, &event))
		if (event.on)
			note_work(l, event.pid);
	if (s->nvml_device)
		n = gp_nvml_use(l->nvml, s->nvml_device, 0, use, 256);
	for (int i = 0; i < n; i++)
		if (use[i].percent && gp_nv_begin_of_window(use[i].at_us, gp_monotonic_ns()) >
					      l->since_ns + GP_NV_USE_NS)
			note_work(l, use[i].pid);
}

static bool wants_records(void)
{
	const char *records = secure_getenv("GPREEMPT_NVIDIA_RECORDS");

	return !records || *records != '0';
}

static void open_source(struct look *l, uint32_t gpu_id)
{
	struct source *s = &l->source[l->nsources];
	char pci[16];

	if (gp_rm_open(&s->rm, NULL))
		return;
	l->nsources++;
	s->has_ctxsw = !gp_rm_open_gpu(&s->rm, gpu_id, NULL) && wants_records() &&
		       !gp_ctxsw_open(&s->ctxsw, &s->rm, NULL);
	if (l->nvml && gp_rm_pci(&s->rm, gpu_id, pci))
		s->nvml_device = gp_nvml_device(l->nvml, pci);
}

static void open_sources(struct look *l, uint64_t limit_ns)
{
	uint32_t id[GPUS_MAX];
	struct gp_rm rm;
	char why[128];
	int n = 0;

	if (limit_ns > WINDOW_NS) /* it does not tell sooner */
		l->nvml = gp_nvml_open(why, sizeof why);
	if (gp_rm_open(&rm, NULL))
		return;
	n = gp_rm_gpus(&rm, id);
	gp_rm_close(&rm);
	for (int i = 0; i < n; i++)
		open_source(l, id[i]);
}

static void close_sources(struct look *l)
{
	for (unsigned i = 0; i < l->nsources; i++) {
		if (l->source[i].has_ctxsw)
			gp_ctxsw_close(&l->source[i].ctxsw);
		gp_rm_close(&l->source[i].rm);
	}
	gp_nvml_close(l->nvml);
}

/* Whether the work of the process is that of compute queues. */
static bool computes_only(pid_t pid)
{
	struct gp_nv_target t;
	struct gp_rm rm;
	bool only = false;

	if (gp_nv_target_open(&t, pid, NULL, NULL))
		return false;
	if (!gp_rm_open(&rm, NULL)) {
		if (!gp_nv_target_borrow(&t)) {
			gp_nv_search_begin(&t, rm.client);
			gp_nv_search(&t, GP_NV_SEARCH_QUICK, true);
			only = !t.is_mps && !gp_nv_draws(&t);
			gp_nv_target_give_back(&t);
		}
		gp_rm_close(&rm);
	}
	gp_nv_target_close(&t);
	return only;
}

void gp_nv_see_work(const pid_t *pid, bool *works, unsigned n, uint64_t limit_ns)
{
	struct look *l = calloc(1, sizeof *l);
	bool *counts = calloc(n ? n : 1, sizeof *counts);
	uint64_t until_ns = gp_monotonic_ns() + limit_ns;

	if (l && counts) {
		*l = (struct look){.pid = pid,
				   .works = works,
				   .counts = counts,
				   .n = n,
				   .since_ns = gp_monotonic_ns()};
		for (unsigned i = 0; i < n; i++)
			counts[i] = computes_only(pid[i]);
		open_sources(l, limit_ns);
		for (;;) {
			for (unsigned i = 0; i < l->nsources; i++)
				read_source(l, &l->source[i]);
			if (all_work(l) || gp_monotonic_ns() >= until_ns)
				break;
			usleep(PAUSE_US);
		}
		close_sources(l);
	}
	free(counts);
	free(l);
}
