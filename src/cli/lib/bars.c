/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lib/bars.h"

#include <inttypes.h>

#include "cli/lib/fields.h"

enum { SLOTS = 64, BAR = 40 };

/* Slot 0 is below 1 us, slot i from 2^(i-1) us to below 2^i us. */
struct bars {
	uint64_t count[SLOTS];
	uint64_t most;
	unsigned first, last;
};

static unsigned slot_of(uint64_t us)
{
	return us ? 64 - (unsigned)__builtin_clzll(us) : 0;
}

static struct bars gather(const struct gp_hist *ns)
{
	struct bars b = {.first = SLOTS};

	for (unsigned i = 0; i < GP_HIST_BUCKETS; i++) {
		uint64_t low, high;
		unsigned slot;

		if (!ns->bucket[i])
			continue;
		gp_hist_bounds(i, &low, &high);
		slot = slot_of((low + (high - low) / 2) / 1000);
		b.count[slot] += ns->bucket[i];
		b.most = b.count[slot] > b.most ? b.count[slot] : b.most;
		b.first = slot < b.first ? slot : b.first;
		b.last = slot > b.last ? slot : b.last;
	}
	return b;
}

static uint64_t from_us(unsigned slot)
{
	return slot ? UINT64_C(1) << (slot - 1) : 0;
}

void gp_bars_print(FILE *out, const char *title, const struct gp_hist *ns)
{
	static const char stars[] = "****************************************";
	struct bars b = gather(ns);

	if (!ns->count)
		return;
	fprintf(out, "%-8s %9s    %-9s : %-7s distribution\n", title, "us", "", "count");
	for (unsigned i = b.first; i <= b.last; i++) {
		/* Rounded up: a single value is visible. */
		int length = (int)((b.count[i] * BAR + b.most - 1) / b.most);

		fprintf(out, "%-8s %9" PRIu64 " -> %-9" PRIu64 " : %-7" PRIu64 " |%-*.*s|\n", "",
			from_us(i), from_us(i + 1) - 1, b.count[i], BAR, length, stars);
	}
}

struct json_object *gp_bars_json(const struct gp_hist *ns)
{
	struct json_object *list = json_object_new_array();
	struct bars b = gather(ns);

	for (unsigned i = b.first; i <= b.last && ns->count; i++) {
		struct json_object *bar;

		if (!b.count[i])
			continue;
		bar = json_object_new_object();
		gp_field_put(bar, "from_us", from_us(i));
		gp_field_put(bar, "to_us", from_us(i + 1));
		gp_field_put(bar, "count", b.count[i]);
		json_object_array_add(list, bar);
	}
	return list;
}
