/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of kfd-emu share: the driver's processes, queues and devices.
 *
 * One lock (kfd_lock) guards all of it. No thread holds it while it waits or while time passes. The
 * driver's own locks, of a process and of a device's queue manager, are flags below that: they are
 * held over the time that hardware takes. Order: process, then device.
 */
#ifndef EMU_KFD_KFD_H
#define EMU_KFD_KFD_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "emu/common/control.h"
#include "emu/common/fuse_core.h"
#include "gpu/amd/kfd_abi.h"
#include "packet.h"

#define MAX_DEVICES 8u
#define MAX_QUEUES  1024u /* ids of a process */
#define MAX_WATCHES 4u

/* Of the kernel, and of no libc. */
#define KFD_ENOTSUPP    524
#define KFD_ERESTARTSYS 512

/* What there is. */

struct model {
	const char *option, *name;
	uint32_t gfx_target_version;
	uint32_t device_id;
	uint32_t cus, simds_per_cu, waves_per_simd; /* of all XCCs */
	uint32_t arrays, arrays_per_engine;
	uint32_t xccs;
	uint32_t cp_queues; /* that can be mapped at once */
	uint32_t max_queues;
	uint32_t fw_version;
	bool mes;             /* single queues can be taken off */
	bool per_vmid_debug;  /* else one debugged process at a time */
	bool cu_occupancy;    /* sysfs has it: gfx9 */
	bool mask_workaround; /* gfx11.0: a debugged process may have no CU mask, and no GWS */
	bool precise_memory;
};

struct save_sizes { /* for each XCC */
	uint32_t control_stack, cwsr, debug;
};

struct device {
	const struct model *model;
	uint32_t index, gpu_id;
	struct save_sizes sizes;
	pthread_t thread;
	pthread_cond_t wake;
	bool locked;   /* the queue manager */
	bool in_reset; /* nothing can be mapped or unmapped */
	uint32_t fail_cycles;
	uint64_t at_ns;                    /* the work up to here is done */
	const struct process *debug_owner; /* where there is one debug VMID only */
	uint32_t resets;
	uint64_t cycles, preempted, messages;
};

struct queue {
	struct queue *next; /* older */
	struct process *process;
	struct device *device;
	uint32_t id, type; /* enum kfd_queue_type */
	uint32_t serial;   /* of its folder in sysfs: not used again soon */
	uint64_t ring, rptr, wptr, cwsr, eop;
	uint32_t ring_size, cwsr_size, control_stack, percent, priority;
	uint64_t doorbell;
	uint64_t exceptions;
	bool suspended, being_destroyed, cu_masked, workaround;

	/* What the hardware knows. */
	bool mapped, rung, faulted;
	bool busy; /* with `packet` */
	struct kfd_emu_packet packet;
	uint64_t left_ns;
	uint64_t read_index; /* in packets */
	/* As written back when it was last taken off. */
	uint64_t saved_rptr, saved_wptr;
	uint32_t saved_control_stack, saved_waves; /* bytes */

	uint64_t executed, saved, preempted, run_ns, doorbells;
	uint64_t rung_ns; /* its doorbell, the last time */
};

struct process_device {
	bool has_vm;
	uint32_t evicted; /* nests */
	uint64_t evicted_since_ns, evicted_ns, sdma_ns, vram;
	uint64_t exceptions;
	bool has_gws;
	uint32_t watches; /* bits */
};

struct process {
	struct process *next;
	uint64_t serial; /* never 0, never used again: pids are */
	pid_t pid;
	int pidfd;
	int memory; /* /proc/PID/mem: of the program that opened the device, not of one after exec
		     */
	uint32_t refs;
	bool dead;              /* process_find() does not return it */
	bool locked;            /* the driver's p->mutex */
	uint64_t held_until_ns; /* the same, by a fault */
	uint32_t pasid;
	struct queue *queues; /* newest first */
	uint32_t nqueues;
	struct process_device on[MAX_DEVICES];

	struct kfd_runtime_info runtime;
	bool runtime_retry;
	uint32_t runtime_sema;

	bool paused; /* by CRIU_OP */
	bool debugged;
	uint64_t debugger; /* its serial; 0: the process itself, or none */
	int debugging;     /* sessions of others that end with it */
	int event_fd;
	bool event_fd_works; /* a pipe, opened for writing */
	uint64_t exceptions, enabled_exceptions;
	uint32_t flags, launch_mode, override_mask;
	uint64_t suspends, resumes; /* queues */
	uint64_t suspended_ns;      /* when the last call that suspended some ended */
	uint32_t grace;             /* of the last suspend */
};

enum rule { RULE_NEW, RULE_OLD }; /* right to debug: since and before 6.12.103 */

struct kfd {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct fuse_session *session;
	bool stopping;
	struct device device[MAX_DEVICES];
	uint32_t ndevices;
	struct process *processes; /* newest first */
	uint32_t next_pasid, next_serial;
	enum rule rule;
	uint32_t major, minor;
	uint32_t sched_policy;
	bool debug_firmware;
	uint64_t suspend_ns, resume_ns, step_ns;
	uint32_t slots;
	uint64_t wakes; /* how often sleepers were woken */
};
extern struct kfd kfd;

void kfd_lock(void);
void kfd_unlock(void);
uint64_t kfd_now_ns(void);
void kfd_sleep_ns(uint64_t ns); /* without the lock */
void kfd_delay_ns(uint64_t ns); /* the same, or until `wake` */
void kfd_changed(void);         /* wakes the threads in call_wait() */

/* An open file, and a call through it. */
struct file {
	struct process *process;
};

struct call {
	fuse_req_t req;
	struct file *file;
	struct process *process; /* that calls; == file->process */
	pid_t thread, pid;
	bool interrupted;
};

/* Waits, without the lock, until `is_so`: 0, or -EINTR: a signal came. */
int call_wait(struct call *call, bool (*is_so)(const void *arg), const void *arg);

/* models.c */

const struct model *model_find(const char *option);
struct save_sizes model_sizes(const struct model *model);
uint32_t model_capability(const struct model *model);

/* task.c: other processes */

struct task {
	pid_t pid;    /* of its process */
	pid_t tracer; /* a thread, or 0 */
	bool has_mm;  /* neither a zombie nor a kernel thread */
	uint64_t capabilities;
};
bool task_read(pid_t thread, struct task *task);
/* The thread's number in this emulator's pid namespace, of one in the caller's; 0: none. */
pid_t task_in_namespace(pid_t caller, pid_t pid);
/* Of the caller that waits for the answer. */
int memory_read(pid_t pid, uint64_t address, void *data, size_t size);
int memory_write(pid_t pid, uint64_t address, const void *data, size_t size);
/* Of a program, whatever its process executes now. */
int program_read(const struct process *p, uint64_t address, void *data, size_t size);
int program_write(const struct process *p, uint64_t address, const void *data, size_t size);
bool program_is_gone(const struct process *p);
bool fd_exists(pid_t pid, uint32_t fd);
bool fd_is_fifo(pid_t pid, uint32_t fd);
int fd_copy(int pidfd, uint32_t fd);

/* processes.c */

/* NULL: it never opened the device, or is dead. The caller gets a reference. */
struct process *process_find(pid_t pid);
struct process *process_create(pid_t pid, int *error); /* or finds it */
struct process *process_by_serial(uint64_t serial);    /* without a reference */
void process_put(struct process *p);
void process_lock(struct process *p);
void process_unlock(struct process *p);
struct queue *process_queue(const struct process *p, uint32_t id);
struct device *device_find(uint32_t gpu_id);
/* Ends what belongs to programs that are gone; as with the driver, before anything else is done. */
void processes_bury(void);
int processes_start(void); /* the thread that does so without a call */
void processes_stop(void);

/* devices.c: the queue manager */

int devices_start(void);
void devices_stop(void);
void device_lock(struct device *d);
void device_unlock(struct device *d);
/* The queues of all processes on a device, one after the other; the first after NULL. */
struct queue *device_next(const struct device *d, const struct queue *q);
bool queue_is_active(const struct queue *q); /* whether it should be mapped */
/* HWS: takes everything off the device and maps what is active. 0, -ETIME, -EIO. */
int device_cycle(struct device *d, uint64_t ns);
/* MES: takes one queue off, or maps it if it is active. */
int device_remove(struct queue *q, uint64_t ns);
int device_add(struct queue *q, uint64_t ns);
/* After a queue's properties changed: whichever of the above it takes. */
int device_refresh(struct device *d, struct queue *q);
void device_evict(struct device *d, struct process *p, enum kfd_smi_trigger trigger);
void device_restore(struct device *d, struct process *p);
void device_reset(struct device *d, bool begin);

/* cp.c: the command processor */

void cp_settle(struct device *d);                       /* does the work up to now */
uint64_t cp_advance(struct device *d, uint64_t now_ns); /* when to look again */
void cp_unmap(struct queue *q);
void cp_map(struct queue *q);
void cp_ring(struct device *d);
uint64_t queue_units(const struct queue *q); /* of its indices, a packet */
struct kfd_save_area_header queue_save_header(const struct queue *q, uint32_t xcc);
void queue_write_save_area(const struct queue *q);

/* queues.c */

int queue_create(struct call *call, void *args);
int queue_destroy(struct call *call, void *args);
int queue_update(struct call *call, void *args);
int queue_set_cu_mask(struct call *call, void *args);
int queue_wave_state(struct call *call, void *args);
void queues_remove_all(struct process *p);
int queue_ring(struct call *call, uint64_t doorbell);

/* runtime.c, session.c, trap.c, suspend.c, snapshot.c, events.c */

int runtime_enable(struct call *call, void *args);
int session_enable(struct call *call, struct process *target, struct kfd_dbg_trap *args);
int session_disable(struct process *target);
void session_activate(struct process *target);
void session_deactivate(struct process *target);
void session_refresh(struct process *target); /* all its devices load their lists again */
int trap_dbg(struct call *call, void *args);
int suspend_queues(struct call *call, struct process *target, struct kfd_dbg_trap *args);
int resume_queues(struct call *call, struct process *target, struct kfd_dbg_trap *args);
int resume_all(struct process *target);
int snapshot_queues(struct call *call, struct process *target, struct kfd_dbg_trap *args);
int snapshot_devices(struct call *call, struct process *target, struct kfd_dbg_trap *args);
int node_apertures(struct call *call, void *args);
void event_raise(struct process *p, uint64_t mask, struct device *d, struct queue *q);
int event_query(struct process *p, struct kfd_dbg_trap *args);
int event_info(struct call *call, struct process *p, struct kfd_dbg_trap *args);
void event_set_enabled(struct process *p, uint64_t mask);
void event_clear_all(struct process *p);

/* criu.c */

int criu_check(const struct call *call); /* the right to use it */
int criu_op(struct call *call, void *args);

/* smi.c: streams of events */

int smi_open(const struct device *d, pid_t thread, void **handle);
void smi_close(void *handle);
int smi_write(void *handle, const void *data, size_t size);
int smi_read(void *handle, void *data, size_t size);
/* With the lock held. `how`: '0', or 'R': it was put off. */
void smi_evicted(const struct device *d, pid_t pid, enum kfd_smi_trigger trigger);
void smi_restored(const struct device *d, pid_t pid, char how);
void smi_reset(const struct device *d, bool begin);

/* ioctls.c */

#define MAX_ARGUMENT 16384u
/* Runs an ioctl on `data` (the size of the user's cmd). Result as the driver's: >= 0 or -errno. */
int ioctl_run(struct call *call, unsigned int cmd, void *data);
/* Whether the driver copies in or out, whatever the user's cmd says. */
bool ioctl_copies_in(unsigned int cmd);
bool ioctl_copies_out(unsigned int cmd);

/* faults.c */

int control_line(char *line);
struct fault {
	int error; /* instead of the call */
	pid_t kill;
	uint64_t delay_ns;
	bool ignored;     /* the call does nothing; `result` is its answer */
	bool sets_result; /* else `result` is the answer after the call */
	int result;
	bool sets_count, sets_size; /* of a snapshot's answer */
	uint32_t out_count, out_size;
	bool sets_type;             /* `out_type` is that of the first queue in a snapshot */
	uint32_t out_type, out_gpu; /* `out_gpu` likewise; 0: its true one */
	bool is_part; /* the call is made for the first `part` queues only, and confirms all */
	uint32_t part;
};
struct fault fault_take(const char *name, pid_t caller);

/* counts.c, state.c */

void count_add(const char *name, uint64_t n);
void count_reset(void);
void counts_print(FILE *out, const char *format, const char *separator);
void state_print(FILE *out);

/* tree.c, sysfs.c, debugfs.c: the folder */

enum node_kind {
	NODE_NONE,
	NODE_ROOT, /* == FUSE_ROOT_ID, so that the root is its own number */
	NODE_KFD,
	NODE_STATE,
	NODE_COUNTS,
	NODE_CONTROL,
	NODE_SYSFS,
	NODE_TOPOLOGY,
	NODE_SMI, /* index: of the device */
	NODE_SYSTEM_PROPERTIES,
	NODE_NODES,
	NODE_NODE, /* index: 0 the CPU, then devices */
	NODE_GPU_ID,
	NODE_NAME,
	NODE_PROPERTIES,
	NODE_PROC,
	NODE_PID, /* pid */
	NODE_PASID,
	NODE_VRAM, /* pid, index: of the device */
	NODE_SDMA,
	NODE_QUEUES,
	NODE_QUEUE, /* pid, index: the queue's id */
	NODE_QUEUE_GPUID,
	NODE_QUEUE_SIZE,
	NODE_QUEUE_TYPE,
	NODE_STATS,
	NODE_EVICTED_MS,
	NODE_CU_OCCUPANCY,
	NODE_DEBUGFS,
	NODE_MQDS,
	NODE_HQDS,
	NODE_RLS,
	NODE_KINDS,
};

struct node {
	enum node_kind kind;
	pid_t pid;
	uint32_t index;
};

fuse_ino_t node_ino(struct node node);
struct node node_of(fuse_ino_t ino);
const struct queue *node_queue(const struct process *p, uint32_t index); /* NULL: it is gone */
mode_t node_mode(struct node node);
bool node_is_folder(struct node node);
/* The place-th child of a folder; false: no more. With the lock held. */
bool node_child(struct node folder, uint32_t place, struct node *child, char name[64]);
/* What stands in a file. With the lock held; false: it is not there (any more). */
bool node_print(struct node node, FILE *out);
void debugfs_mqds(FILE *out);
void debugfs_hqds(FILE *out);
void debugfs_rls(FILE *out);

#endif
