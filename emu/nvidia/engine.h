/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs' schedulers: one runlist per engine, one channel group at a time on each, round robin
 * by slice in a fixed order, a fixed cost for each switch, an idle group yields at once. The same
 * model and costs as src/sim/model, which cannot be used itself: its programs are fixed when it is
 * made, its contexts have no channels, and its time is not to be stopped half way.
 *
 * Time is real, and work is brought up to it by every call (engine_advance).
 * Nothing here locks.
 */
#ifndef EMU_NVIDIA_ENGINE_H
#define EMU_NVIDIA_ENGINE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "emu_abi.h"

enum preempt_mode { MODE_WFI, MODE_CTA, MODE_CILP };

struct batch {
	struct batch *next;
	uint64_t kernels;
	uint64_t kernel_ns;
};

struct channel {
	struct channel *next; /* of the group */
	struct group *group;
	uint32_t id; /* hardware's number */
	bool enabled;
	bool finishing; /* disabled, but the kernel that is on the hardware runs to its end */
	struct batch *queue;
	bool in_kernel;
	uint64_t left_ns; /* of the kernel */
	uint64_t ran_ns;  /* what it got, counted apart from what is left */
	uint64_t submitted, done;
	uint64_t run_ns;
	uint64_t digest;
};

struct group {
	struct group *next; /* of the runlist */
	struct runlist *runlist;
	pid_t pid;
	uint32_t order; /* in the runlist */
	uint32_t tsg_id;
	uint32_t engine_type;
	uint64_t asked_us;   /* slice: what GET_TIMESLICE answers ... */
	uint64_t slice_us;   /* the value that the hardware has */
	uint32_t interleave; /* kept, without effect */
	enum preempt_mode mode;
	struct channel *channels;
	struct channel *current;
	bool ready; /* waits for its turn */
	bool cut;   /* was taken off in the middle: must refill */
	uint64_t run_ns, work_ns;
	uint64_t window_run_ns; /* run_ns at the start of the window */
	uint64_t scheduled, preempted;
};

enum phase { PHASE_IDLE, PHASE_RUN, PHASE_SWITCH };

struct runlist {
	struct gpu *gpu;
	struct group *groups;
	uint32_t next_order;
	uint64_t switch_ns, switch_idle_ns, refill_cost_ns;

	enum phase phase;
	struct group *loaded; /* its context is on the hardware; NULL: none */
	struct group *target; /* of the switch under way */
	uint32_t place;       /* order of the one loaded last */
	uint64_t now_ns;
	uint64_t phase_ns;  /* since when the books are open */
	uint64_t turn_ns;   /* since when the loaded group has its slice */
	uint64_t refill_ns; /* still to go */
	uint64_t event_ns;  /* when something happens next */
	uint64_t switches;
};

#define RUNLISTS 11u /* compute, copy 0 to 9 */

struct usage {
	pid_t pid;
	uint32_t sm_percent;
};

struct gpu {
	uint32_t index;
	uint32_t gpu_id;
	uint32_t bus;
	struct runlist runlist[RUNLISTS];
	uint64_t tsg_ids[32]; /* bit set: in use */
	uint32_t next_channel_id;
	uint64_t memory;

	uint64_t window_ns; /* when the window of utilisation began ... */
	uint64_t sample_us; /* end of the last sample, wall clock; 0: none yet */
	struct usage usage[EMU_MAX_PROCESSES];
	uint32_t nusage;
};

struct engine {
	uint32_t ngpus;
	struct gpu gpu[EMU_MAX_GPUS];
	pthread_cond_t changed; /* something was submitted, held, released ... */
};

void engine_init(struct engine *engine, uint32_t ngpus, uint64_t now_ns);
void engine_advance(struct engine *engine, uint64_t now_ns);

bool engine_type_is_valid(uint32_t engine_type);

/* NULL: no memory, or no hardware id is left. */
struct group *group_new(struct gpu *gpu, uint32_t engine_type, pid_t pid);
void group_free(struct group *group); /* has no channels any more */
struct channel *channel_new(struct group *group);
void channel_free(struct channel *channel);

bool group_is_held(const struct group *group); /* has channels, and none is enabled */
void group_set_slice(struct group *group, uint64_t us);
void group_preempt(struct group *group);

/* 0 or -ENOMEM. */
int channel_submit(struct channel *channel, uint64_t kernels, uint64_t kernel_ns);
void channel_enable(struct channel *channel);
/* `finish`: what is on the hardware stays there. `rewind`: what is queued is forgotten. */
void channel_disable(struct channel *channel, bool finish, bool rewind);

/* When something happens next on the channel's engine. */
uint64_t channel_next_ns(const struct channel *channel);

#endif
