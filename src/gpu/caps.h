/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * What a device can do, and what is known of a task on it. Shared by the back ends, which fill
 * these in, and by the policies, which read them. Freestanding: the kernel module compiles it.
 */
#ifndef GP_GPU_CAPS_H
#define GP_GPU_CAPS_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#endif

enum gp_cap {
	GP_CAP_HOLD = 1u << 0,          /* a task's queues can be kept off the hardware */
	GP_CAP_SLICE = 1u << 1,         /* the hardware time slice of a task can be set */
	GP_CAP_ACTIVITY = 1u << 2,      /* it can be seen, sooner or later, whether a task works */
	GP_CAP_EVENTS = 1u << 3,        /* a change of activity makes itself known */
	GP_CAP_PREEMPT_MODE = 1u << 4,  /* how a running kernel is interrupted can be chosen */
	GP_CAP_REQUEST_MARKS = 1u << 5, /* programs say where a request begins and ends */
	GP_CAP_STOPS_ALL = 1u << 6,     /* none: a hold or release stops all for a moment */
};

/* Where a run time comes from, the best first. */
enum gp_run_source {
	GP_RUN_UNKNOWN,  /* never 0 ns: not known at all */
	GP_RUN_MEASURED, /* the hardware or the driver counted it */
	GP_RUN_GRANTED,  /* what the settings allowed it; it may have used less */
};

/*
 * Which fields of an observation (and so of a view) are known. A field whose bit is clear holds
 * nothing: not 0, not the last value.
 */
enum gp_known {
	GP_KNOWN_ACTIVE = 1u << 0,
	GP_KNOWN_RUNNING = 1u << 1,
	GP_KNOWN_PENDING = 1u << 2,
	GP_KNOWN_ACTIVE_SINCE = 1u << 3,
	GP_KNOWN_RUN = 1u << 4,
	GP_KNOWN_HELD = 1u << 5,
	GP_KNOWN_SLICE = 1u << 6,
	GP_KNOWN_WAITED = 1u << 7,
	GP_KNOWN_REQUEST = 1u << 8,
};

/*
 * Whether activity is known as it is, or nearly, and not as a sample of the past: changes announce
 * themselves, or an observation is never older than this.
 */
#define GP_PROMPT_NS 2000000u

static inline bool gp_tells_in_time(uint32_t caps, uint64_t sample_period_ns)
{
	return (caps & GP_CAP_ACTIVITY) &&
	       ((caps & GP_CAP_EVENTS) || sample_period_ns <= GP_PROMPT_NS);
}

/* A slice this short gives the GPU away as soon as anybody else wants it. Two runnable tasks
 * with it starve each other: measured on an H200, neither finishes a kernel. */
#define GP_TINY_SLICE_US 50u

#endif
