/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's management library (NVML), opened at run time: names, memory and utilisation of GPUs and
 * processes. Without the library only these values are missing.
 */
#ifndef GP_GPU_NVIDIA_NVML_H
#define GP_GPU_NVIDIA_NVML_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct gp_nvml;

/* NULL if the library is missing or does not start; `why` holds the reason. GPREEMPT_NVML names
 * another file; setuid programs ignore it. */
struct gp_nvml *gp_nvml_open(char *why, unsigned size);
void gp_nvml_close(struct gp_nvml *n);

/* The device at a PCI address ("0000:17:00.0"), or NULL. */
void *gp_nvml_device(struct gp_nvml *n, const char *pci);
bool gp_nvml_name(struct gp_nvml *n, void *device, char *out, unsigned size);

/* Number of MIG instances; -1: MIG is off or not supported. */
int gp_nvml_mig_instances(struct gp_nvml *n, void *device);

struct gp_nvml_use {
	uint32_t pid;
	uint32_t percent; /* share of the window in which it ran kernels */
	uint64_t at_us;   /* end of the window, since the epoch */
};

/* Samples newer than `since_us`, one for each process and window. Returns their number (0: nothing
 * new), or -errno. */
int gp_nvml_use(struct gp_nvml *n, void *device, uint64_t since_us, struct gp_nvml_use *use,
		unsigned max);

struct gp_nvml_memory {
	uint32_t pid;
	uint64_t bytes; /* 0 = not known */
};

/* Processes with a compute context. Returns their number, or -errno. */
int gp_nvml_memory(struct gp_nvml *n, void *device, struct gp_nvml_memory *memory, unsigned max);

#endif
