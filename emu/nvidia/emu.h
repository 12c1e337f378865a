/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: starts the emulator of NVIDIA's resource manager in a folder of its own, and loads on
 * it. What was started dies with the test, however that ends.
 */
#ifndef EMU_NVIDIA_EMU_H
#define EMU_NVIDIA_EMU_H

#include "emu/common/emulator.h"

#define EMU_SKIP 77 /* exit status of a test that cannot be tried here */

struct emu {
	pid_t pid;
	char dir[64]; /* the mount */
	char ctl[96]; /* the file that stands for /dev/nvidiactl */
};

/*
 * Options of rm-emu, up to NULL. Sets GPREEMPT_NVIDIACTL and GPREEMPT_NVML for this process and
 * its children. Returns 0 or -errno; -ENODEV: there is no FUSE here, and stderr says why.
 */
int emu_start(struct emu *emu, ...);
/* 0, or -1 when the emulator itself failed (a sanitizer found something in it, it died). */
int emu_stop(struct emu *emu);

/* See emulator.h. Names of counts: "total", "alloc", "set_timeslice", "refused_size". */
#define emu_control(emu, ...) emulator_control((emu)->dir, __VA_ARGS__)
#define emu_state(emu)        emulator_state((emu)->dir)
#define emu_count(emu, name)  emulator_count((emu)->dir, name)

/* GPU memory in use, all GPUs. */
uint64_t emu_memory(const struct emu *emu);

/* How many compute groups a process has, and the sum over them of a number in `state`. */
uint32_t emu_groups(const struct emu *emu, pid_t pid);
uint64_t emu_group_sum(const struct emu *emu, pid_t pid, const char *field);
/* How many of them are held. */
uint32_t emu_groups_held(const struct emu *emu, pid_t pid);
/* How many of their channels are disabled. */
uint32_t emu_disabled(const struct emu *emu, pid_t pid);

/* How many clients there are. */
uint32_t emu_clients(const struct emu *emu);

/* Loads, with options of rm-load. A load is ready when it has its contexts. */
extern const char emu_load_program[];
#define emu_load                  emulator_load
#define emu_load_start(load, ...) emulator_load_start(load, emu_load_program, __VA_ARGS__)
#define emu_load_stop             emulator_load_stop
#define emu_load_wait             emulator_load_wait
#define emu_load_kill             emulator_load_kill

#endif
