/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgpreempt: the public C API of gpreempt. Lists, holds and watches the GPU queues of programs
 * that are already running, on NVIDIA and AMD GPUs.
 *
 * Calls. One that can fail returns 0 or a count, or -errno. None of them touches errno, prints,
 * exits or installs a signal handler. A handle is used by one thread at a time; different handles
 * may be used by different threads, and take turns where they need a device.
 *
 * Threads. From the first gpreempt_open() to the last gpreempt_close() the library has threads of
 * its own (two for each NVIDIA GPU, three for all AMD GPUs, one more once something is held), with
 * all signals blocked. The child of a fork() has none of them: its copies of handles answer -EBADF
 * and can only be closed, and it opens none (-EBUSY) until it has called execve().
 *
 * AMD. Who suspends queues, or looks at them closely, becomes the process's debugger, as the driver
 * wants it. No other debugger can attach meanwhile, and a waitpid(-1, ...) in any thread of the
 * caller may be told that the process has stopped, although it is no child: wait for pids instead.
 *
 * Growth. Structures keep their size and the order of their members. New members take the place of
 * `reserved` ones, which are 0, and are made so that 0 says "not known". Fill what you write with
 * 0.
 */
#ifndef GPREEMPT_H
#define GPREEMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GPREEMPT_API __attribute__((visibility("default")))

/* ---- the library ----------------------------------------------------------------------------- */

/* The version of the library that was loaded, as "0.1.0". Never NULL, never freed. */
GPREEMPT_API const char *gpreempt_version(void);

/*
 * What a return value means: "Operation not permitted" for -EPERM, in English whatever the
 * locale. `code` is 0 or -errno; anything else gets a text that says it is unknown. Never NULL,
 * never freed, and stays valid after later calls.
 */
GPREEMPT_API const char *gpreempt_error_text(int code);

/* ---- a process ------------------------------------------------------------------------------- */

/* One process that is looked at or held. */
struct gpreempt;

enum gpreempt_flag {
	/* Look at queues only by what everybody can see, which on AMD changes nothing, but leaves
	 * addresses, pending work and priorities unknown. Holding is not affected. */
	GPREEMPT_FROM_AFAR = 1 << 0,
	/* Also hold a server (as NVIDIA's MPS) that works for many programs, which all stop. */
	GPREEMPT_FORCE = 1 << 1,
};

/*
 * Finds the process on every GPU, and changes nothing. It need not have queues yet. `flags`:
 * GPREEMPT_* or 0. After a failure *g is NULL, and `why`, unless NULL, has a sentence of at most
 * `size` bytes that says what to do (256 are enough).
 * -ENODEV: there is no GPU, -ESRCH: no such process, -EPERM or -EACCES: not permitted, -EINVAL: a
 * flag that this version does not know.
 */
GPREEMPT_API int gpreempt_open(pid_t pid, unsigned flags, struct gpreempt **g, char *why,
                               size_t size);

/*
 * Releases what it holds, and frees it. NULL is fine. What is still open when the program calls
 * exit() is released as well; if it is killed, AMD's driver releases at once, and elsewhere
 * `gpreempt resume --all` does, or the next program that holds something.
 */
GPREEMPT_API void gpreempt_close(struct gpreempt *g);

/* Why the last call for this handle failed, as a sentence; "" when it did not. Valid until the next
 * call for it. */
GPREEMPT_API const char *gpreempt_why(const struct gpreempt *g);

/* "NVIDIA H200 #0": the GPU that has this number in queues. NULL: there is none. Valid until the
 * handle is closed. */
GPREEMPT_API const char *gpreempt_device_name(const struct gpreempt *g, unsigned device);

/* ---- queues ---------------------------------------------------------------------------------- */

#define GPREEMPT_UNKNOWN32 UINT32_MAX
#define GPREEMPT_UNKNOWN64 UINT64_MAX

/* What the driver can stop and start: an NVIDIA channel group, an AMD KFD queue. */
struct gpreempt_queue {
	uint32_t id;       /* with the device it is unique at one time; it is used again */
	uint32_t device;   /* as gpreempt(1) numbers them, too */
	char type[16];     /* "compute", "copy", "aql", "pm4", "sdma" ... */
	bool held;         /* kept off the hardware, as far as the driver tells */
	bool copies;       /* only moves data: never held */
	uint8_t pad[2];    /* 0 */
	uint32_t channels; /* of which it is made (NVIDIA); 0: there is no such thing */
	uint32_t priority; /* 0 to 15 (AMD); GPREEMPT_UNKNOWN32 */
	uint32_t slice_us; /* as programmed (NVIDIA); GPREEMPT_UNKNOWN32 */
	uint64_t pending;  /* packets that were not taken yet (AMD); GPREEMPT_UNKNOWN64 */

	/* Where its memory is, in the program (AMD). 0: not known. */
	uint64_t ring_address, ring_bytes;
	uint64_t save_address, save_bytes; /* where the state of its waves is saved */

	uint64_t owner, object; /* the driver's names for it (NVIDIA: client and object); 0: none */
	uint64_t serial;        /* another one with the same id has another (AMD); 0: not known */
	uint64_t reserved[7];
};

/*
 * The queues of the process, on all GPUs: writes up to `max` of them and returns how many there
 * are; 0: none now. -ESRCH: the process has ended.
 * On AMD it attaches to the process to see all there is (not with GPREEMPT_FROM_AFAR), and shows
 * what everybody can see where it must not.
 */
GPREEMPT_API int gpreempt_get_all_queues(struct gpreempt *g, struct gpreempt_queue *queue,
                                         unsigned max);

/*
 * Holds these queues, or, with NULL and 0, all that compute; those that are held stay so. Their
 * work is off the hardware when it returns, and loses nothing: it goes on when they are resumed. Of
 * a queue, `id` and `device` are read. All or none. Returns how many of those meant are held.
 *
 * All: also queues that the process makes later are held, at once on AMD, within about 0.1 s
 * elsewhere. Single queues: others of the program may wait for their results; programs that use
 * several can stand still as a whole.
 *
 * From the first time on the process is in this program's hands: others cannot hold it (-EBUSY)
 * until the handle is closed, but `gpreempt resume PID` releases it, after which it is not held
 * again before the next call. -ENODEV: it has no queues that compute, -ENOENT: it has no such
 * queue, -EINVAL: that queue only copies, -EBUSY: it is in another's hands, -EPERM: not permitted,
 * -ETIMEDOUT: the driver did not answer in 10 s, -ESRCH: it has ended.
 */
GPREEMPT_API int gpreempt_suspend_queues(struct gpreempt *g, const struct gpreempt_queue *queue,
                                         unsigned n);

/*
 * Lets these queues run again, or, with NULL and 0, all that this handle holds. What others hold
 * stays held. Returns how many it released: 0 when none of them was held, or the process has ended.
 */
GPREEMPT_API int gpreempt_resume_queues(struct gpreempt *g, const struct gpreempt_queue *queue,
                                        unsigned n);

/* ---- one's own queues ------------------------------------------------------------------------ */

enum gpreempt_self_flag {
	/* A queue whose priority cannot be read, which takes root and debugfs, has the one with
	 * which ROCm makes queues: right for programs that do not change it. */
	GPREEMPT_NORMAL_PRIORITY = 1 << 0,
};

/*
 * Takes all queues of the calling program itself that compute off the hardware, on AMD GPUs, from
 * inside: nobody has to be permitted to debug it, and nobody is its debugger. The handle is one of
 * the caller's own process. Their work is off the hardware when it returns, and loses nothing. All
 * or none. Returns how many are held; those that are held stay so.
 *
 * Queues that the program makes later run, until the next call; one that it destroys is gone at
 * once; one that it updates itself (priority, CU mask) may run. What somebody else suspends stays
 * suspended, and the other way round. Whoever waits for the GPU's results waits on: do not call it
 * from a thread that has to. Where the queues are others than the last time, all GPUs of the
 * program stop for a moment, as when a debugger attaches.
 *
 * -ENODEV: it has no queues that compute, -ENODATA: a priority would be lost (see the flag),
 * -ENOTSUP: not on these GPUs, -EBUSY: another handle has done it, -EINVAL: the handle is of
 * another process.
 */
GPREEMPT_API int gpreempt_hold_self(struct gpreempt *g, unsigned flags);

/* Lets them run again; returns how many: 0, if none were held. gpreempt_close() does it as well. */
GPREEMPT_API int gpreempt_release_self(struct gpreempt *g);

/* ---- over time ------------------------------------------------------------------------------- */

/* All queues at one time. */
struct gpreempt_snapshot {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t n;
	uint32_t pad;                 /* 0 */
	struct gpreempt_queue *queue; /* `n` of them; the snapshot's own */
	uint64_t reserved[4];
};

/* Fills it in; returns how many queues there are. It is to be freed, also if there are none. */
GPREEMPT_API int gpreempt_snapshot(struct gpreempt *g, struct gpreempt_snapshot *snapshot);
GPREEMPT_API void gpreempt_snapshot_free(struct gpreempt_snapshot *snapshot);

/* Samples, the oldest first. */
struct gpreempt_history {
	uint32_t n;
	bool ended; /* the process ended meanwhile */
	uint8_t pad[3];
	struct gpreempt_snapshot *snapshot; /* the history's own */
	uint64_t reserved[4];
};

/* Called for each sample, which is valid until it returns; other than 0 ends the monitor. It may
 * use the handle, to suspend queues for instance, but not close it. */
typedef int gpreempt_sample_fn(void *arg, const struct gpreempt_snapshot *snapshot);

/*
 * Looks at the queues at once, and then every `every_ms` (at least 1) until `for_ms` have passed or
 * the process ends. Each sample goes to `each`, unless NULL, and into `history`, unless NULL, which
 * is overwritten and is to be freed, also after a failure. No queues is a sample as well: they may
 * come. Returns how many samples there are; -ESRCH: the process had ended before the first.
 */
GPREEMPT_API int gpreempt_monitor(struct gpreempt *g, unsigned for_ms, unsigned every_ms,
                                  gpreempt_sample_fn *each, void *arg,
                                  struct gpreempt_history *history);
GPREEMPT_API void gpreempt_history_free(struct gpreempt_history *history);

/* How many queues there were in a sample; which came since the sample before, and which went. */
struct gpreempt_count {
	uint32_t min, max;
	uint32_t came, went;
	double average;
};

/* The queues of one type on one device. */
struct gpreempt_series {
	uint32_t device;
	char type[16];
	uint32_t pad;
	struct gpreempt_count count;
	uint64_t reserved[2];
};

/* One queue: a later one with the same id is another, as far as the driver lets that be seen. */
struct gpreempt_sighting {
	uint32_t device, id;
	char type[16];
	uint32_t samples; /* in how many it was there */
	uint32_t held;    /* in how many of these it was held */
	uint64_t first_ns, last_ns;
	uint64_t reserved[2];
};

struct gpreempt_statistics {
	uint32_t samples;
	uint32_t nseries, nsightings;
	bool stable; /* none came, none went */
	bool ended;  /* as in the history */
	uint8_t pad[2];
	struct gpreempt_count all;
	struct gpreempt_series *series;     /* in the order in which they were first seen */
	struct gpreempt_sighting *sighting; /* the same */
	uint64_t reserved[4];
};

/* What samples come to. *statistics is to be freed; NULL after a failure. -ENODATA: there is no
 * sample. */
GPREEMPT_API int gpreempt_analyse(const struct gpreempt_history *history,
                                  struct gpreempt_statistics **statistics);
GPREEMPT_API void gpreempt_statistics_free(struct gpreempt_statistics *statistics);

#ifdef __cplusplus
}
#endif

#endif
