/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queues of a process over time: which there were, how many of each kind, how they came and
 * went. Samples are told one after the other, and nothing is kept of them but what they come to:
 *
 *     for each sample:
 *         for each queue in it: gp_queue_counts_note(&census, device, &queue, now_ns);
 *         gp_queue_counts_close(&census);
 */
#ifndef GP_HOLD_QUEUE_COUNTS_H
#define GP_HOLD_QUEUE_COUNTS_H

#include "gpu/gpu.h"

#define GP_QUEUE_COUNTS_SLICES_MAX 8

/* How many of something there were in the samples. */
struct gp_queue_counts_count {
	uint32_t now;      /* in the sample at hand */
	uint32_t last;     /* in the one before */
	uint32_t min, max; /* in those that are closed; these too: */
	uint32_t came, went;
	uint64_t sum;
};

/* The queues of one type on one device. */
struct gp_queue_counts_series {
	unsigned device;
	char type[16];
	bool copies;
	struct gp_queue_counts_count count;
	unsigned nslices;
	uint32_t slice_us[GP_QUEUE_COUNTS_SLICES_MAX]; /* that were seen; not all, where there are
	                                                  more */
};

/* One queue: a later one with the same id is another, as far as the driver lets that be seen. */
struct gp_queue_counts_queue {
	unsigned device;
	struct gp_queue queue; /* as it was first seen */
	unsigned series;
	uint32_t samples; /* in how many it was there */
	uint32_t held;    /* in how many of these it was held */
	uint64_t first_ns, last_ns;
	uint32_t here; /* the number of the last sample in which it was, from 1 on */
};

/* All 0 is an empty one. */
struct gp_queue_counts {
	uint32_t samples; /* closed */
	struct gp_queue_counts_count all;
	unsigned nseries, nqueues;
	struct gp_queue_counts_series *series; /* in the order in which they were first seen */
	struct gp_queue_counts_queue *queue;   /* the same */
	unsigned series_capacity, queue_capacity;
	unsigned guess; /* which the next queue is, if their order stays */
};

/* This queue is in the sample at hand; told twice, it counts once. 0 or -ENOMEM. */
int gp_queue_counts_note(struct gp_queue_counts *c, unsigned device, const struct gp_queue *queue,
                         uint64_t now_ns);
/* These were all of the sample. One without queues is a sample as well: they may come. */
void gp_queue_counts_close(struct gp_queue_counts *c);

/* None came, none went. */
bool gp_queue_counts_is_stable(const struct gp_queue_counts *c);
/* There must be a sample. */
double gp_queue_counts_average(const struct gp_queue_counts *c,
                               const struct gp_queue_counts_count *count);

void gp_queue_counts_free(struct gp_queue_counts *c);

#endif
