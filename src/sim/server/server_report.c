/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/clock.h"
#include "sim/server/sim_server.h"

static unsigned long long plain(uint64_t n)
{
	return n;
}

static void json_device(struct device *d)
{
	const struct gp_sim_totals *t = gp_sim_totals(d->sim);

	printf("%s{\"device\":%u,\"name\":\"%s\",\"busy_ns\":%llu,\"switch_ns\":%llu,"
	       "\"switches\":%llu,\"preemptions\":%llu,\"requests\":%llu,\"programs\":%llu,"
	       "\"most_programs\":%llu,\"holds\":%llu,\"releases\":%llu,\"slices\":%llu,"
	       "\"model_events\":%llu,\"slipped_ns\":%llu}",
	       d->number ? "," : "", d->number, d->state->info.name, plain(t->busy_ns),
	       plain(t->switch_ns), plain(t->switches), plain(t->preemptions),
	       plain(d->counts.requests), plain(d->counts.programs), plain(d->counts.most),
	       plain(d->counts.holds), plain(d->counts.releases), plain(d->counts.slices),
	       plain(t->events), plain(d->slipped_ns));
}

static void print_device(struct device *d, uint64_t for_ns)
{
	const struct gp_sim_totals *t = gp_sim_totals(d->sim);
	double percent = 100.0 / (double)(for_ns ? for_ns : 1);

	printf("%s: busy %.1f %%, switching %.1f %%, %llu requests of %llu programs, "
	       "%llu switches, %llu holds, %llu releases, %llu slices set\n",
	       d->state->info.name, (double)t->busy_ns * percent, (double)t->switch_ns * percent,
	       plain(d->counts.requests), plain(d->counts.programs), plain(t->switches),
	       plain(d->counts.holds), plain(d->counts.releases), plain(d->counts.slices));
	if (d->slipped_ns)
		printf("%s could not keep up with real time: it is %.3f s behind\n",
		       d->state->info.name, (double)d->slipped_ns / 1e9);
}

void gp_sim_server_report(struct server *s, bool json)
{
	uint64_t for_ns = gp_monotonic_ns() - s->began_ns;

	if (json)
		printf("{\"ran_ns\":%llu,\"wrong_packets\":%llu,\"devices\":[", plain(for_ns),
		       plain(s->invalid));
	for (uint32_t i = 0; i < s->ndevices; i++) {
		struct device *d = &s->device[i];

		gp_sim_device_advance(d);
		gp_sim_finish(d->sim, for_ns - d->slipped_ns);
		if (json)
			json_device(d);
		else
			print_device(d, for_ns);
	}
	if (json)
		puts("]}");
}
