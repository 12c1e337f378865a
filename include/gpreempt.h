/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgpreempt: the public C API of gpreempt. Lists, holds and watches the GPU queues of programs
 * that are already running, on NVIDIA and AMD GPUs.
 *
 * Calls. A call that can fail returns 0 or a count, or -errno. No call changes errno, prints, exits
 * or installs a signal handler. Only one thread at a time may use a handle. Different threads may
 * use different handles; handles that need the same device take turns.
 *
 * Threads. From the first gpreempt_open() to the last gpreempt_close() the library has threads of
 * its own, with all signals blocked: two for each NVIDIA GPU, three for all AMD GPUs, and one more
 * after the first hold. The child of a fork() has none of them. In the child, calls with a handle
 * return -EBADF, handles can only be closed, and gpreempt_open() returns -EBUSY until execve().
 *
 * AMD. A program that suspends queues, or attaches to list them, becomes the debugger of the
 * process: the driver requires it. No other debugger can attach meanwhile. A waitpid(-1, ...) in
 * any thread of the caller may report that the process has stopped, although it is not a child.
 * Wait for single pids instead.
 *
 * Compatibility. Structures keep their size and the order of their members. New members replace
 * `reserved` members, which are 0; in new members 0 means "not known". Initialize structures that
 * you pass in with 0.
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

/* The library. */

/* The version of the loaded library, such as "0.1.0". Never NULL, never freed. */
GPREEMPT_API const char *gpreempt_version(void);

/*
 * The meaning of a return value: "Operation not permitted" for -EPERM, in English in every locale.
 * `code` is 0 or -errno; for any other value the text says that it is unknown. Never NULL, never
 * freed, and stays valid after later calls.
 */
GPREEMPT_API const char *gpreempt_error_text(int code);

/* A process. */

/* A handle for one process. */
struct gpreempt;

enum gpreempt_flag {
	/* List queues without attaching to the process. On AMD this does not disturb the process,
	 * but leaves addresses, pending work and priorities unknown. Holding is not affected; from
	 * the first hold on, all values are read. */
	GPREEMPT_FROM_AFAR = 1 << 0,
	/* Also hold a server that works for many programs (NVIDIA's MPS). All of them stop. */
	GPREEMPT_FORCE = 1 << 1,
};

/*
 * Finds the process on every GPU, and changes nothing. The process need not have queues yet.
 * `flags`: GPREEMPT_* or 0. After a failure *g is NULL, and `why`, unless NULL, has a sentence of
 * at most `size` bytes with the cause and the next step (256 bytes are enough). On success the
 * caller closes *g with gpreempt_close().
 * -ENODEV: there is no usable GPU, -ESRCH: no such process, -EPERM or -EACCES: not permitted,
 * -EBUSY: called in the child of a fork(), -EINVAL: `g` is NULL, or this version does not know a
 * flag.
 */
GPREEMPT_API int gpreempt_open(pid_t pid, unsigned flags, struct gpreempt **g, char *why,
			       size_t size);

/*
 * Releases the queues that the handle holds, and frees the handle. NULL is allowed. Handles that
 * are still open when the program calls exit() are released as well. If the program is killed,
 * AMD's driver releases the queues at once; on other GPUs `gpreempt resume --all` releases them, or
 * the next program that holds queues.
 */
GPREEMPT_API void gpreempt_close(struct gpreempt *g);

/* A sentence that says why the last call with this handle failed; "" if it did not fail. Valid
 * until the next call with the handle. */
GPREEMPT_API const char *gpreempt_why(const struct gpreempt *g);

/* The name of the GPU that queues refer to by this number, such as "NVIDIA H200 #0". NULL: there is
 * none. Valid until the handle is closed. */
GPREEMPT_API const char *gpreempt_device_name(const struct gpreempt *g, unsigned device);

/* Queues. */

#define GPREEMPT_UNKNOWN32 UINT32_MAX
#define GPREEMPT_UNKNOWN64 UINT64_MAX

/* What the driver schedules: an NVIDIA channel group, an AMD KFD queue. */
struct gpreempt_queue {
	uint32_t id;       /* unique with the device at one time; the driver uses it again */
	uint32_t device;   /* numbered as in gpreempt(1) */
	char type[16];     /* "compute", "copy", "aql", "pm4", "sdma" and others */
	bool held;         /* kept off the hardware, as far as the driver shows it */
	bool copies;       /* only moves data; never held */
	bool unsure;       /* it may be held or not, whatever `held` says */
	uint8_t pad[1];    /* 0 */
	uint32_t channels; /* the number of channels in the group (NVIDIA); 0 on AMD */
	uint32_t priority; /* 0 to 15 (AMD), or GPREEMPT_UNKNOWN32 */
	uint32_t slice_us; /* as programmed (NVIDIA), or GPREEMPT_UNKNOWN32 */
	uint64_t pending;  /* packets that the GPU has not taken yet (AMD), or GPREEMPT_UNKNOWN64 */

	/* Addresses in the program, and sizes in bytes (AMD). 0: unknown. */
	uint64_t ring_address, ring_bytes;
	uint64_t save_address, save_bytes; /* where the state of its waves is saved */

	uint64_t owner, object; /* the driver's names (NVIDIA: client and object); 0: none */
	uint64_t serial;        /* differs for a later queue with the same id (AMD); 0: unknown */
	uint64_t reserved[7];
};

/*
 * Lists the queues of the process on all GPUs: writes up to `max` of them and returns how many
 * there are; 0: none now. -ESRCH: the process has ended.
 * On AMD it attaches to the process to read all values, unless GPREEMPT_FROM_AFAR is set. If it may
 * not attach, it returns what is visible without attaching.
 */
GPREEMPT_API int gpreempt_get_all_queues(struct gpreempt *g, struct gpreempt_queue *queue,
					 unsigned max);

/*
 * Holds these queues, or, with NULL and 0, all compute queues. Of each queue, `id` and `device` are
 * read. Queues that are held already stay held. When the function returns, the work of the queues
 * is off the hardware. No work is lost, and it continues when the queues are resumed. After a
 * failure only the queues that were held before are held. Returns how many of the given queues are
 * held.
 *
 * With NULL and 0, queues that the process creates later are held too: at once on AMD, within about
 * 0.1 s on other GPUs. If single queues are held, other queues of the program may wait for their
 * results, and a program with several queues can stop as a whole.
 *
 * From the first hold until the handle is closed, the caller owns the hold: other programs cannot
 * hold the process (-EBUSY). `gpreempt resume PID` still releases the process; it is then held
 * again only by the next call. -ENODEV: the process has no compute queues, -ENOENT: it has no such
 * queue, -EINVAL: the queue only copies, -EBUSY: another program or handle owns a hold, -EPERM: not
 * permitted, -ETIMEDOUT: the driver did not answer within 10 s, -ESRCH: the process has ended.
 */
GPREEMPT_API int gpreempt_suspend_queues(struct gpreempt *g, const struct gpreempt_queue *queue,
					 unsigned n);

/*
 * Releases these queues, or, with NULL and 0, all queues that this handle holds. Queues that other
 * programs hold stay held. Returns how many it released: 0 if none of them was held, or if the
 * process has ended.
 */
GPREEMPT_API int gpreempt_resume_queues(struct gpreempt *g, const struct gpreempt_queue *queue,
					unsigned n);

/* What shows that the holds and releases of a handle have taken effect. */
enum gpreempt_evidence {
	GPREEMPT_SEEN,      /* by the driver's state, and by the work where that can be seen */
	GPREEMPT_BY_DRIVER, /* the driver says so; no work was seen to stand still, or to go on */
	GPREEMPT_ACCEPTED,  /* the driver accepted the call and does not tell the state */
};

/*
 * Returns the weakest evidence (enum gpreempt_evidence) for the last hold or release of all queues
 * that this handle has held. Work that is seen later changes it. -ENOENT: the handle has held none.
 * -EREMOTEIO: work shows the contrary, or it is not known what is held.
 */
GPREEMPT_API int gpreempt_evidence(struct gpreempt *g);

/* ---- the caller's own queues ------------------------------------------------------------------
 */

enum gpreempt_self_flag {
	/* If the priority of a queue cannot be read (this takes root and debugfs), assume the
	 * priority with which ROCm creates queues. Right for programs that do not change it. */
	GPREEMPT_NORMAL_PRIORITY = 1 << 0,
};

/*
 * Holds all compute queues of the calling program itself, on AMD GPUs, from inside. This needs no
 * right to debug and no debugger. The handle must be one for the caller's own process. When the
 * function returns, the work of the queues is off the hardware; no work is lost. After a failure no
 * queue is held. Returns how many are held; queues that are held already stay held.
 *
 * Queues that the program creates later run, until the next call. A queue that it destroys is gone
 * at once. A queue that it updates itself (priority, CU mask) may run. A queue that another program
 * suspends stays suspended after the release, and the other way round. A thread that waits for
 * results of the GPU keeps waiting, so call this from a thread that does not. If the queues have
 * changed since the last call, all GPUs of the program stop for a moment, as when a debugger
 * attaches.
 *
 * -ENODEV: the program has no compute queues, -ENODATA: a priority would be lost (see the flag),
 * -ENOTSUP: not possible on these GPUs, -EBUSY: another handle holds the queues, -EINVAL: the
 * handle is for another process.
 */
GPREEMPT_API int gpreempt_hold_self(struct gpreempt *g, unsigned flags);

/* Releases them. Returns how many; 0 if none were held. gpreempt_close() does the same. */
GPREEMPT_API int gpreempt_release_self(struct gpreempt *g);

/* ---- samples over time ------------------------------------------------------------------------
 */

/* All queues at one time. */
struct gpreempt_snapshot {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t n;
	uint32_t pad;                 /* 0 */
	struct gpreempt_queue *queue; /* `n` of them; owned by the snapshot */
	uint64_t reserved[4];
};

/* Fills in the snapshot; returns how many queues there are. The caller frees the snapshot, also if
 * there are none. */
GPREEMPT_API int gpreempt_snapshot(struct gpreempt *g, struct gpreempt_snapshot *snapshot);
GPREEMPT_API void gpreempt_snapshot_free(struct gpreempt_snapshot *snapshot);

/* Samples, the oldest first. */
struct gpreempt_history {
	uint32_t n;
	bool ended; /* the process ended meanwhile */
	uint8_t pad[3];
	struct gpreempt_snapshot *snapshot; /* `n` of them; owned by the history */
	uint64_t reserved[4];
};

/* Called for each sample. The sample is valid until the function returns. A return value other than
 * 0 ends the monitor. The function may use the handle, for instance to suspend queues, but must not
 * close it. */
typedef int gpreempt_sample_fn(void *arg, const struct gpreempt_snapshot *snapshot);

/*
 * Samples the queues at once, and then every `every_ms` (at least 1) until `for_ms` have passed or
 * the process ends. Each sample is passed to `each`, unless NULL, and stored in `history`, unless
 * NULL. `history` is overwritten, and the caller frees it, also after a failure. A sample without
 * queues is a sample too: queues may come later. Returns the number of samples; -ESRCH: the process
 * had ended before the first.
 */
GPREEMPT_API int gpreempt_monitor(struct gpreempt *g, unsigned for_ms, unsigned every_ms,
				  gpreempt_sample_fn *each, void *arg,
				  struct gpreempt_history *history);
GPREEMPT_API void gpreempt_history_free(struct gpreempt_history *history);

/* The number of queues in a sample, and how many queues came or went between two samples. */
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

/* One queue. A later queue with the same id counts as a new queue, as far as the driver shows it.
 */
struct gpreempt_sighting {
	uint32_t device, id;
	char type[16];
	uint32_t samples; /* the number of samples with the queue */
	uint32_t held;    /* the number of these samples in which it was held */
	uint64_t first_ns, last_ns;
	uint64_t reserved[2];
};

struct gpreempt_statistics {
	uint32_t samples;
	uint32_t nseries, nsightings;
	bool stable; /* no queue came and none went */
	bool ended;  /* as in the history */
	uint8_t pad[2];
	struct gpreempt_count all;
	struct gpreempt_series *series;     /* in the order of their first sample */
	struct gpreempt_sighting *sighting; /* in the order of their first sample */
	uint64_t reserved[4];
};

/* Computes statistics from samples. The caller frees *statistics, which is NULL after a failure.
 * -ENODATA: there is no sample. */
GPREEMPT_API int gpreempt_analyse(const struct gpreempt_history *history,
				  struct gpreempt_statistics **statistics);
GPREEMPT_API void gpreempt_statistics_free(struct gpreempt_statistics *statistics);

#ifdef __cplusplus
}
#endif

#endif
