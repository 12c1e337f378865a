/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Capabilities of a device, and the known fields of a task. Back ends set them; policies read them.
 * Freestanding: the kernel module compiles this file, too.
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
	GP_CAP_HOLD = 1u << 0,          /* the queues of a task can be kept off the hardware */
	GP_CAP_SLICE = 1u << 1,         /* the hardware time slice of a task can be set */
	GP_CAP_ACTIVITY = 1u << 2,      /* active tasks are known, perhaps with delay */
	GP_CAP_EVENTS = 1u << 3,        /* a change of activity raises an event */
	GP_CAP_PREEMPT_MODE = 1u << 4,  /* the preemption type of a task can be set */
	GP_CAP_REQUEST_MARKS = 1u << 5, /* programs mark begin and end of requests */
	GP_CAP_STOPS_ALL = 1u << 6,     /* each hold or release stops all tasks for a moment */
};

/* Source of a run time. */
enum gp_run_source {
	GP_RUN_UNKNOWN,  /* not known; does not mean 0 ns */
	GP_RUN_MEASURED, /* counted by the hardware or the driver */
	GP_RUN_GRANTED,  /* granted by the settings; the task may have used less */
};

/*
 * The known fields of an observation, and so of a view. If the bit is clear, the field is
 * undefined: it is neither 0 nor the last value.
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
 * Whether activity is known in time: changes raise events, or an observation is at most this old.
 */
#define GP_PROMPT_NS 2000000u

static inline bool gp_tells_in_time(uint32_t caps, uint64_t sample_period_ns)
{
	return (caps & GP_CAP_ACTIVITY) &&
	       ((caps & GP_CAP_EVENTS) || sample_period_ns <= GP_PROMPT_NS);
}

/* A task with a slice this short yields the GPU as soon as another task needs it. Two runnable
 * tasks with tiny slices starve each other: on an H200 neither finished a kernel. */
#define GP_TINY_SLICE_US 50u

/* What shows that the last hold or release has taken effect. */
enum gp_evidence {
	GP_EVIDENCE_ENOUGH,
	/* The driver reads back the state. The back end has not seen that the work of the task
	 * stands still (hold), or goes on as before the hold (release). */
	GP_EVIDENCE_DRIVER,
	/* The driver accepted the call and does not tell the state: `held` is what was accepted. */
	GP_EVIDENCE_NONE,
};

#endif
