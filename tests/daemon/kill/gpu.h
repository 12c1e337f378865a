/* SPDX-License-Identifier: Apache-2.0 */
/* An emulated GPU as the kill test sees it: the loads on it, and what the driver knows of them. */
#ifndef TESTS_DAEMON_KILL_GPU_H
#define TESTS_DAEMON_KILL_GPU_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define GPU_TASKS_MAX 32

struct gpu_task {
	pid_t pid;
	uint64_t run_ns; /* GPU time so far: its progress */
	bool held;
	bool changed;      /* held, or otherwise not as its owner made it */
	uint64_t slice_us; /* 0: this driver has none */
};

/* One instant. */
struct gpu_look {
	struct gpu_task task[GPU_TASKS_MAX];
	unsigned n;
	uint64_t memory;
	pid_t dead; /* a process that has ended, and the driver has something of; 0: none */
};

struct load {
	pid_t pid;
	int out; /* what it prints after `ready` */
};

struct gpu {
	const char *name;            /* as the test's argument */
	const char *kind;            /* as gpreemptd --gpu */
	uint64_t memory;             /* that each load has; 0: this driver does not tell */
	int (*start)(void);          /* 0 or -errno; -ENODEV: cannot be tried here */
	int (*stop)(void);           /* 0, or -1 when the emulator itself failed */
	const char *(*folder)(void); /* where it is mounted */
	/* Keeps the GPU busy, or asks for a moment of it every few ms. */
	int (*load)(struct load *load, bool busy);
	void (*look)(struct gpu_look *look);
};

extern const struct gpu gpu_nvidia, gpu_amd, gpu_amd_old;

/* For the two: the entry of a process, made at its first use; NULL: too many. */
struct gpu_task *gpu_look_task(struct gpu_look *look, pid_t pid);

/* The load's entry; NULL: the driver does not know it. */
const struct gpu_task *gpu_look_find(const struct gpu_look *look, pid_t pid);

/* Notes the process if it has ended. */
void gpu_look_at_owner(struct gpu_look *look, pid_t pid);

#endif
