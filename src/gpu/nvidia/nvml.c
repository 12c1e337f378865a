/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/nvidia/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Layouts and codes of nvml.h. */
#define NVML_SUCCESS                 0
#define NVML_ERROR_NOT_FOUND         6
#define NVML_ERROR_INSUFFICIENT_SIZE 7
#define NVML_MIG_ENABLED             1

struct pci_info {
	char bus_id_legacy[16];
	unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
	char bus_id[32];
};

struct process_sample {
	unsigned pid;
	unsigned long long at_us;
	unsigned sm, memory, encoder, decoder;
};

struct process_info {
	unsigned pid;
	unsigned long long used_memory; /* ~0 = not known */
	unsigned gpu_instance, compute_instance;
};

struct gp_nvml {
	void *library;
	int (*init)(void);
	int (*shutdown)(void);
	const char *(*error_string)(int);
	int (*device_count)(unsigned *);
	int (*device_by_index)(unsigned, void **);
	int (*device_name)(void *, char *, unsigned);
	int (*device_pci)(void *, struct pci_info *);
	int (*process_use)(void *, struct process_sample *, unsigned *, unsigned long long);
	int (*processes)(void *, unsigned *, struct process_info *);
	int (*mig_mode)(void *, unsigned *, unsigned *);
	int (*mig_count)(void *, unsigned *);
	int (*mig_device)(void *, unsigned, void **);
};

/* A pointer stays NULL if this version of the library lacks the function. */
static void find_functions(struct gp_nvml *n)
{
	const struct {
		const char *name;
		void *member;
	} functions[] = {
		{"nvmlInit_v2", &n->init},
		{"nvmlShutdown", &n->shutdown},
		{"nvmlErrorString", &n->error_string},
		{"nvmlDeviceGetCount_v2", &n->device_count},
		{"nvmlDeviceGetHandleByIndex_v2", &n->device_by_index},
		{"nvmlDeviceGetName", &n->device_name},
		{"nvmlDeviceGetPciInfo_v3", &n->device_pci},
		{"nvmlDeviceGetProcessUtilization", &n->process_use},
		{"nvmlDeviceGetComputeRunningProcesses_v3", &n->processes},
		{"nvmlDeviceGetMigMode", &n->mig_mode},
		{"nvmlDeviceGetMaxMigDeviceCount", &n->mig_count},
		{"nvmlDeviceGetMigDeviceHandleByIndex", &n->mig_device},
	};

	for (unsigned i = 0; i < sizeof functions / sizeof *functions; i++) {
		void *function = dlsym(n->library, functions[i].name);

		memcpy(functions[i].member, &function, sizeof function);
	}
}

struct gp_nvml *gp_nvml_open(char *why, unsigned size)
{
	const char *path = secure_getenv("GPREEMPT_NVML");
	struct gp_nvml *n = calloc(1, sizeof *n);
	int r;

	if (!n)
		return NULL;
	n->library = dlopen(path && *path ? path : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!n->library) {
		snprintf(why, size, "%s", dlerror());
		free(n);
		return NULL;
	}
	find_functions(n);
	r = n->init && n->shutdown && n->device_count && n->device_by_index && n->device_pci
		    ? n->init()
		    : -1;
	if (r == NVML_SUCCESS)
		return n;
	snprintf(why, size, "%s",
		 r > 0 && n->error_string ? n->error_string(r) : "the library lacks functions");
	dlclose(n->library);
	free(n);
	return NULL;
}

void gp_nvml_close(struct gp_nvml *n)
{
	if (!n)
		return;
	n->shutdown();
	dlclose(n->library);
	free(n);
}

void *gp_nvml_device(struct gp_nvml *n, const char *pci)
{
	char *end;
	unsigned domain = (unsigned)strtoul(pci, &end, 16);
	unsigned bus = *end == ':' ? (unsigned)strtoul(end + 1, &end, 16) : ~0u;
	unsigned slot = *end == ':' ? (unsigned)strtoul(end + 1, &end, 16) : ~0u;
	unsigned count = 0;

	if (n->device_count(&count))
		return NULL;
	for (unsigned i = 0; i < count; i++) {
		struct pci_info info = {0};
		void *device;

		if (!n->device_by_index(i, &device) && !n->device_pci(device, &info) &&
		    info.domain == domain && info.bus == bus && info.device == slot)
			return device;
	}
	return NULL;
}

bool gp_nvml_name(struct gp_nvml *n, void *device, char *out, unsigned size)
{
	return n->device_name && n->device_name(device, out, size) == NVML_SUCCESS;
}

int gp_nvml_mig_instances(struct gp_nvml *n, void *device)
{
	unsigned now = 0, next = 0, max = 0;
	int found = 0;

	if (!n->mig_mode || !n->mig_count || !n->mig_device || n->mig_mode(device, &now, &next) ||
	    now != NVML_MIG_ENABLED || n->mig_count(device, &max))
		return -1;
	for (unsigned i = 0; i < max; i++) {
		void *instance;

		found += n->mig_device(device, i, &instance) == NVML_SUCCESS;
	}
	return found;
}

#define SAMPLES_MAX 1024

int gp_nvml_use(struct gp_nvml *n, void *device, uint64_t since_us, struct gp_nvml_use *use,
		unsigned max)
{
	struct process_sample *sample;
	unsigned count = SAMPLES_MAX, kept = 0;
	int r;

	if (!n->process_use)
		return -ENOTSUP;
	sample = calloc(SAMPLES_MAX, sizeof *sample);
	if (!sample)
		return -ENOMEM;
	r = n->process_use(device, sample, &count, since_us);
	for (unsigned i = 0; !r && i < count && i < SAMPLES_MAX && kept < max; i++) {
		/* Unused entries have no time, and old samples are repeated. */
		if (sample[i].at_us <= since_us || sample[i].sm > 100)
			continue;
		use[kept++] = (struct gp_nvml_use){
			.pid = sample[i].pid, .percent = sample[i].sm, .at_us = sample[i].at_us};
	}
	free(sample);
	if (r == NVML_ERROR_NOT_FOUND)
		return 0;
	return r ? -EIO : (int)kept;
}

int gp_nvml_memory(struct gp_nvml *n, void *device, struct gp_nvml_memory *memory, unsigned max)
{
	struct process_info info[256];
	unsigned count = sizeof info / sizeof *info;

	if (!n->processes)
		return -ENOTSUP;
	if (n->processes(device, &count, info))
		return -EIO;
	if (count > max)
		count = max;
	for (unsigned i = 0; i < count; i++)
		memory[i] = (struct gp_nvml_memory){
			.pid = info[i].pid,
			.bytes = info[i].used_memory == ~0ull ? 0 : info[i].used_memory};
	return (int)count;
}
