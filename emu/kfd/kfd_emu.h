/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: starts the emulator of the amdkfd driver in a folder of its own, and loads on it.
 * What was started dies with the test, however that ends.
 */
#ifndef EMU_KFD_KFD_EMU_H
#define EMU_KFD_KFD_EMU_H

#include "emu/common/emulator.h"

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

/* See emulator.h. Names of counts: "total", "suspend_queues", "cycles", "preempted". */
#define kfd_emu_control(emu, ...) emulator_control((emu)->dir, __VA_ARGS__)
#define kfd_emu_state(emu)        emulator_state((emu)->dir)
#define kfd_emu_count(emu, name)  emulator_count((emu)->dir, name)

/* Numbers of `state`; true is 1. UINT64_MAX: there is no such queue, process or field. */
uint64_t kfd_emu_queue_number(const struct kfd_emu *emu, pid_t pid, uint32_t queue,
			      const char *field);
uint64_t kfd_emu_process_number(const struct kfd_emu *emu, pid_t pid, const char *field);
uint64_t kfd_emu_device_number(const struct kfd_emu *emu, uint32_t device, const char *field);
/* Of all queues of a process; 0 if there is none. */
uint64_t kfd_emu_process_sum(const struct kfd_emu *emu, pid_t pid, const char *field);
uint32_t kfd_emu_queues(const struct kfd_emu *emu, pid_t pid);

/* Loads, with options of kfd-load. kfd_load_spawn() does not wait until the load is ready: its
 * RUNTIME_ENABLE may be waiting for a debugger. */
extern const char kfd_load_program[];
#define kfd_load                  emulator_load
#define kfd_load_start(load, ...) emulator_load_start(load, kfd_load_program, __VA_ARGS__)
#define kfd_load_spawn(load, ...) emulator_load_spawn(load, kfd_load_program, __VA_ARGS__)
#define kfd_load_stop             emulator_load_stop
#define kfd_load_wait             emulator_load_wait
#define kfd_load_kill             emulator_load_kill

#endif
