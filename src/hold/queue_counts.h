/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of the queues of a process over time: which queues existed, how many of each type, how
 * often they were created and destroyed. Samples are added one after the other and are not stored:
 *
 *     for each sample:
 *         for each queue in it: gp_queue_counts_note(&counts, device, &queue, now_ns);
 *         gp_queue_counts_close(&counts);
 */
#ifndef GP_HOLD_QUEUE_COUNTS_H
#define GP_HOLD_QUEUE_COUNTS_H

#include "gpu/gpu.h"

#define GP_QUEUE_COUNTS_SLICES_MAX 8

/* The number of queues per sample. */
struct gp_queue_counts_count {
	uint32_t now;      /* in the current sample */
	uint32_t last;     /* in the sample before */
	uint32_t min, max; /* in the closed samples, as are the members below */
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
	uint32_t slice_us[GP_QUEUE_COUNTS_SLICES_MAX]; /* the first slices that were seen */
};

/* One queue. A later queue with the same id is a different queue, as far as the driver shows it. */
struct gp_queue_counts_queue {
	unsigned device;
	struct gp_queue queue; /* in the state of the first sample */
	unsigned series;
	uint32_t samples; /* number of samples with this queue */
	uint32_t held;    /* number of samples in which it was held */
	uint64_t first_ns, last_ns;
	uint32_t here; /* number of the last sample with this queue, starting at 1 */
};

/* A zeroed struct is valid and empty. */
struct gp_queue_counts {
	uint32_t samples; /* number of closed samples */
	struct gp_queue_counts_count all;
	unsigned nseries, nqueues;
	struct gp_queue_counts_series *series; /* in the order of their first sample */
	struct gp_queue_counts_queue *queue;   /* in the same order */
	unsigned series_capacity, queue_capacity;
	unsigned guess; /* index of the next queue if samples keep their order */
};

/* Adds a queue to the current sample; a queue that is added twice counts once. Returns 0 or
 * -ENOMEM. */
int gp_queue_counts_note(struct gp_queue_counts *c, unsigned device, const struct gp_queue *queue,
			 uint64_t now_ns);
/* Ends the current sample. A sample may have no queues. */
void gp_queue_counts_close(struct gp_queue_counts *c);

/* Whether no queue was created or destroyed between samples. */
bool gp_queue_counts_is_stable(const struct gp_queue_counts *c);
/* Requires at least one sample. */
double gp_queue_counts_average(const struct gp_queue_counts *c,
			       const struct gp_queue_counts_count *count);

void gp_queue_counts_free(struct gp_queue_counts *c);

#endif
