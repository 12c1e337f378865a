/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the cost of an undo record for the thread that acts: to write one, to write the same
 * record again (after another process undid the change), and to drop it. The file has few or many
 * records. The limit is a ratio within this run: with 3,000 records a new one costs at most eight
 * times as much as in an empty file. Exits with 1 if that does not hold, or if memory was
 * allocated.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "count_alloc.h"
#include "undo/undo.h"

#define EACH   100
#define ROUNDS 20

static uint64_t now(void)
{
	return gp_monotonic_ns();
}

static struct gp_undo record(uint64_t key)
{
	return (struct gp_undo){.key = key << 28, .pid = 1, .start_time = 2, .size = 240};
}

struct cost {
	uint64_t put_ns, again_ns, drop_ns; /* per call, the best of all rounds */
};

static void keep_least(uint64_t *least, uint64_t ns)
{
	if (ns / EACH < *least)
		*least = ns / EACH;
}

static struct cost measure(struct gp_undo_file *file)
{
	struct cost cost = {UINT64_MAX, UINT64_MAX, UINT64_MAX};

	for (int round = 0; round < ROUNDS; round++) {
		int slot[EACH];
		uint64_t t = now();

		for (uint64_t i = 0; i < EACH; i++) {
			struct gp_undo undo = record(100000 + i);

			slot[i] = gp_undo_put(file, "bench", &undo);
			if (slot[i] < 0)
				exit(1);
		}
		keep_least(&cost.put_ns, now() - t);
		t = now();
		for (uint64_t i = 0; i < EACH; i++) {
			struct gp_undo undo = record(100000 + i);

			if (gp_undo_put(file, "bench", &undo) != slot[i])
				exit(1);
		}
		keep_least(&cost.again_ns, now() - t);
		t = now();
		for (unsigned i = 0; i < EACH; i++) {
			struct gp_undo_entry e;

			if (!gp_undo_get(file, (unsigned)slot[i], &e) ||
			    !gp_undo_drop_same(file, (unsigned)slot[i], &e))
				exit(1);
		}
		keep_least(&cost.drop_ns, now() - t);
	}
	return cost;
}

int main(void)
{
	static const unsigned fill[] = {0, 500, 1000, 2000, 3000};
	char path[] = "/tmp/gp-bench-undo-XXXXXX";
	struct gp_undo_file *file;
	struct cost cost = {0}, first = {0};
	uint64_t allocations;
	unsigned n = 0;

	close(mkstemp(path));
	setenv("GPREEMPT_UNDO", path, 1);
	if (gp_undo_open(&file, true, NULL))
		return 1;
	allocations = bench_allocations();
	printf("%10s %10s %10s %10s\n", "records", "new", "again", "drop");
	for (unsigned i = 0; i < sizeof fill / sizeof fill[0]; i++) {
		for (; n < fill[i]; n++) {
			struct gp_undo undo = record(n);

			if (gp_undo_put(file, "bench", &undo) < 0)
				return 1;
		}
		cost = measure(file);
		if (!i)
			first = cost;
		printf("%10u %7llu ns %7llu ns %7llu ns\n", n, (unsigned long long)cost.put_ns,
		       (unsigned long long)cost.again_ns, (unsigned long long)cost.drop_ns);
	}
	allocations = bench_allocations() - allocations;
	gp_undo_close(file);
	unlink(path);
	return cost.put_ns > 8 * first.put_ns || allocations;
}
