/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: starts the emulator of the amdkfd driver in a folder of its own, and loads on it.
 * What was started dies with the test, however that ends.
 */
#ifndef EMU_KFD_KFD_EMU_H
#define EMU_KFD_KFD_EMU_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define KFD_EMU_SKIP 77 /* exit status of a test that cannot be tried here */

struct kfd_emu {
	pid_t pid;
	char dir[64];     /* the mount */
	char kfd[80];     /* stands for /dev/kfd */
	char sysfs[80];   /* stands for /sys/class/kfd/kfd */
	char debugfs[80]; /* stands for /sys/kernel/debug/kfd */
};

/*
 * Options of kfd-emu, up to NULL. Sets GPREEMPT_KFD, GPREEMPT_KFD_SYSFS and GPREEMPT_KFD_DEBUGFS
 * for this process and its children. 0 or -errno; -ENODEV: there is no FUSE here, and stderr says
 * why.
 */
int kfd_emu_start(struct kfd_emu *emu, ...);
/* 0, or -1 when the emulator itself failed (a sanitizer found something in it, it died). */
int kfd_emu_stop(struct kfd_emu *emu);

/* One command for the file `control`. 0 or -errno. */
__attribute__((format(printf, 2, 3))) int kfd_emu_control(const struct kfd_emu *emu,
							  const char *format, ...);

/* The file `state`, as JSON; the caller frees it. NULL: it cannot be read. */
char *kfd_emu_state(const struct kfd_emu *emu);

/* Of the file `counts`: "total", "suspend_queues", "cycles", "preempted" ...; 0 if there is none.
 */
uint64_t kfd_emu_count(const struct kfd_emu *emu, const char *name);

/* Numbers of `state`; true is 1. UINT64_MAX: there is no such queue, process or field. */
uint64_t kfd_emu_queue_number(const struct kfd_emu *emu, pid_t pid, uint32_t queue,
			      const char *field);
uint64_t kfd_emu_process_number(const struct kfd_emu *emu, pid_t pid, const char *field);
uint64_t kfd_emu_device_number(const struct kfd_emu *emu, uint32_t device, const char *field);
/* Of all queues of a process; 0 if there is none. */
uint64_t kfd_emu_process_sum(const struct kfd_emu *emu, pid_t pid, const char *field);
uint32_t kfd_emu_queues(const struct kfd_emu *emu, pid_t pid);

struct kfd_load {
	pid_t pid;
	int out; /* what it prints after `ready` */
};

/* Options of kfd-load, up to NULL. Returns when it has its queues: 0 or -errno. */
int kfd_load_start(struct kfd_load *load, ...);
/* The same, but does not wait: its RUNTIME_ENABLE may be waiting for a debugger. */
int kfd_load_spawn(struct kfd_load *load, ...);
int kfd_load_wait_ready(struct kfd_load *load);
/* Asks it to end (unless it does by itself) and returns its exit status; -1: killed by a signal. */
int kfd_load_stop(struct kfd_load *load);
int kfd_load_wait(struct kfd_load *load);
void kfd_load_kill(struct kfd_load *load);

/* Waits up to 20 s until `is_so` says so; returns what it said last. */
bool kfd_emu_wait(bool (*is_so)(void *arg), void *arg);
void kfd_emu_sleep_ms(unsigned ms);

#endif
