/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lib/gpu_share.h"

#include <stdio.h>

#include "base/clock.h"

void gp_share_begin(struct gp_share *s, const struct gp_task_ref *ref)
{
	*s = (struct gp_share){0};
	s->attached = !gp_gpu_attach(ref->gpu, ref->seen.key, &s->handle);
}

void gp_share_tick(struct gp_share *s, const struct gp_task_ref *ref)
{
	struct gp_observation o = {.handle = s->handle};

	if (!s->attached || gp_gpu_observe(ref->gpu, gp_monotonic_ns(), &o, 1))
		return;
	s->last = o;
	s->ticks++;
	s->held_ticks += o.known & GP_KNOWN_HELD && o.held;
	s->active_ticks += o.known & GP_KNOWN_ACTIVE && o.active;
	s->running_ticks += o.known & GP_KNOWN_RUNNING && o.running;
	if (!(o.known & GP_KNOWN_RUN))
		return;
	s->source = o.run_source;
	if (!s->begin_ns) {
		s->begin_ns = o.run_at_ns;
		s->begin_run_ns = o.run_ns;
	}
	s->end_ns = o.run_at_ns;
	s->end_run_ns = o.run_ns;
	s->known = s->end_ns > s->begin_ns;
}

void gp_share_end(struct gp_share *s, const struct gp_task_ref *ref)
{
	if (s->attached)
		gp_gpu_detach(ref->gpu, s->handle);
	s->attached = false;
}

double gp_share_percent(const struct gp_share *s)
{
	double percent = 100.0 * (double)(s->end_run_ns - s->begin_run_ns) /
			 (double)(s->end_ns - s->begin_ns);

	return percent < 100 ? percent : 100; /* two clocks, read one after the other */
}

const char *gp_share_text(char *out, size_t size, const struct gp_share *s)
{
	if (!s->known)
		snprintf(out, size, "-");
	else
		snprintf(out, size, "%s%.0f %%", s->source == GP_RUN_GRANTED ? "<= " : "",
			 gp_share_percent(s));
	return out;
}
