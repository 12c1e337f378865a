/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: starts the emulator of NVIDIA's resource manager in a folder of its own, and loads on
 * it. What was started dies with the test, however that ends.
 */
#ifndef EMU_NVIDIA_EMU_H
#define EMU_NVIDIA_EMU_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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

/* One command for the file `control`. 0 or -errno. */
__attribute__((format(printf, 2, 3))) int emu_control(const struct emu *emu, const char *format,
						      ...);

/* The file `state`, as JSON; the caller frees it. NULL: it cannot be read. */
char *emu_state(const struct emu *emu);

/* Of the file `counts`: "total", "alloc", "set_timeslice", "refused_size" ...; 0 if there is none.
 */
uint64_t emu_count(const struct emu *emu, const char *name);

/* GPU memory in use, all GPUs. */
uint64_t emu_memory(const struct emu *emu);

/* How many compute groups a process has, and the sum over them of a number in `state`. */
uint32_t emu_groups(const struct emu *emu, pid_t pid);
uint64_t emu_group_sum(const struct emu *emu, pid_t pid, const char *field);
/* How many of them are held. */
uint32_t emu_groups_held(const struct emu *emu, pid_t pid);

/* How many clients there are. */
uint32_t emu_clients(const struct emu *emu);

struct emu_load {
	pid_t pid;
	int out; /* what it prints after `ready` */
};

/* Options of rm-load, up to NULL. Returns when it has its contexts: 0 or -errno. */
int emu_load_start(struct emu_load *load, ...);

/* Asks it to end (unless it does by itself) and returns its exit status; -1: killed by a signal. */
int emu_load_stop(struct emu_load *load);
int emu_load_wait(struct emu_load *load);
void emu_load_kill(struct emu_load *load);

/* Waits up to 5 s until `is_so` says so; returns what it said last. */
bool emu_wait(bool (*is_so)(void *arg), void *arg);
void emu_sleep_ms(unsigned ms);

#endif
