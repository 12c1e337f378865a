/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libnvml-emu.so: what of NVIDIA's management library is used here, with its numbers from the
 * emulator behind GPREEMPT_NVIDIACTL. Layouts and codes as in nvml.h.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rm_client.h"

#define EXPORT                       __attribute__((visibility("default")))

#define NVML_SUCCESS                 0
#define NVML_ERROR_UNINITIALIZED     1
#define NVML_ERROR_INVALID_ARGUMENT  2
#define NVML_ERROR_NOT_SUPPORTED     3
#define NVML_ERROR_NOT_FOUND         6
#define NVML_ERROR_INSUFFICIENT_SIZE 7
#define NVML_ERROR_DRIVER_NOT_LOADED 9
#define NVML_ERROR_UNKNOWN           999
#define NVML_DEVICE_MIG_DISABLE      0
#define NVML_NO_INSTANCE             0xffffffffu

typedef struct device *nvmlDevice_t;

typedef struct {
	char busIdLegacy[16];
	unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
	char busId[32];
} nvmlPciInfo_t;

typedef struct {
	unsigned pid;
	unsigned long long timeStamp;
	unsigned smUtil, memUtil, encUtil, decUtil;
} nvmlProcessUtilizationSample_t;

typedef struct {
	unsigned pid;
	unsigned long long usedGpuMemory;
	unsigned gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;

struct device {
	unsigned index;
};

static struct device devices[EMU_MAX_GPUS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int users;
static int control = -1;

/* The prototypes that nvml.h would give. */
EXPORT int nvmlInit_v2(void);
EXPORT int nvmlShutdown(void);
EXPORT const char *nvmlErrorString(int result);
EXPORT int nvmlSystemGetDriverVersion(char *version, unsigned length);
EXPORT int nvmlDeviceGetCount_v2(unsigned *count);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device);
EXPORT int nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length);
EXPORT int nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length);
EXPORT int nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci);
EXPORT int nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *minor);
EXPORT int nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
					   nvmlProcessUtilizationSample_t *sample, unsigned *count,
					   unsigned long long last_us);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
						   nvmlProcessInfo_t *info);
EXPORT int nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending);
EXPORT int nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count);
EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index,
					       nvmlDevice_t *mig);

static int open_control(void)
{
	const char *path = getenv("GPREEMPT_NVIDIACTL");

	for (unsigned i = 0; i < EMU_MAX_GPUS; i++)
		devices[i].index = i;
	control = open(path ? path : NV_CTL_DEVICE, O_RDWR | O_CLOEXEC);
	return control < 0 ? NVML_ERROR_DRIVER_NOT_LOADED : NVML_SUCCESS;
}

int nvmlInit_v2(void)
{
	int result = NVML_SUCCESS;

	pthread_mutex_lock(&lock);
	if (!users)
		result = open_control();
	if (result == NVML_SUCCESS)
		users++;
	pthread_mutex_unlock(&lock);
	return result;
}

int nvmlShutdown(void)
{
	int result = NVML_ERROR_UNINITIALIZED;

	pthread_mutex_lock(&lock);
	if (users) {
		result = NVML_SUCCESS;
		if (!--users) {
			close(control);
			control = -1;
		}
	}
	pthread_mutex_unlock(&lock);
	return result;
}

const char *nvmlErrorString(int result)
{
	switch (result) {
	case NVML_SUCCESS: return "The operation was successful";
	case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
	case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
	case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
	case NVML_ERROR_NOT_FOUND: return "Not Found";
	case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
	case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
	default: return "Unknown Error";
	}
}

/* An ioctl of the emulator's own. */
static int ask(unsigned long request, void *argument)
{
	int result = NVML_SUCCESS;

	pthread_mutex_lock(&lock);
	if (!users)
		result = NVML_ERROR_UNINITIALIZED;
	else if (ioctl(control, request, argument))
		result = NVML_ERROR_UNKNOWN;
	pthread_mutex_unlock(&lock);
	return result;
}

static int put_text(const char *text, char *to, unsigned length)
{
	if (!to)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (strlen(text) >= length)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	memcpy(to, text, strlen(text) + 1);
	return NVML_SUCCESS;
}

int nvmlSystemGetDriverVersion(char *version, unsigned length)
{
	struct emu_gpus gpus;
	int result = ask(EMU_GPUS, &gpus);

	return result ? result : put_text(gpus.version, version, length);
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
	struct emu_gpus gpus;
	int result = ask(EMU_GPUS, &gpus);

	if (!result)
		*count = gpus.count;
	return result;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
	unsigned count = 0;
	int result = nvmlDeviceGetCount_v2(&count);

	if (!result && index >= count)
		result = NVML_ERROR_INVALID_ARGUMENT;
	if (!result)
		*device = &devices[index];
	return result;
}

int nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length)
{
	return device ? put_text("NVIDIA Emulated H200", name, length)
		      : NVML_ERROR_INVALID_ARGUMENT;
}

int nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length)
{
	char text[48];

	if (!device)
		return NVML_ERROR_INVALID_ARGUMENT;
	snprintf(text, sizeof(text), "GPU-e0000000-0000-0000-0000-%012x", device->index);
	return put_text(text, uuid, length);
}

int nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	struct emu_gpus gpus;
	int result = ask(EMU_GPUS, &gpus);

	if (!device || !pci)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (result)
		return result;
	memset(pci, 0, sizeof(*pci));
	pci->bus = gpus.gpu_id[device->index] >> 8;
	pci->pciDeviceId = 0x233510de;
	snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "0000:%02X:00.0", pci->bus & 0xffu);
	snprintf(pci->busId, sizeof(pci->busId), "00000000:%02X:00.0", pci->bus & 0xffu);
	return NVML_SUCCESS;
}

int nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *minor)
{
	if (!device || !minor)
		return NVML_ERROR_INVALID_ARGUMENT;
	*minor = device->index;
	return NVML_SUCCESS;
}

static int get_processes(nvmlDevice_t device, struct emu_processes *all)
{
	if (!device)
		return NVML_ERROR_INVALID_ARGUMENT;
	all->gpu = device->index;
	return ask(EMU_PROCESSES, all);
}

/* One sample for each process that was seen working in the last window. */
int nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *sample,
				    unsigned *count, unsigned long long last_us)
{
	struct emu_processes all;
	unsigned room = count ? *count : 0, found = 0;
	int result = get_processes(device, &all);

	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (result)
		return result;
	for (uint32_t i = 0; i < all.count; i++) {
		const struct emu_process *p = &all.process[i];

		if (!p->sm_percent || all.time_us <= last_us)
			continue;
		if (sample && found < room)
			sample[found] = (nvmlProcessUtilizationSample_t){
				.pid = p->pid, .timeStamp = all.time_us, .smUtil = p->sm_percent};
		found++;
	}
	*count = found;
	if (!found)
		return NVML_ERROR_NOT_FOUND;
	return sample && found <= room ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

int nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
					    nvmlProcessInfo_t *info)
{
	struct emu_processes all;
	unsigned room = count ? *count : 0, found = 0;
	int result = get_processes(device, &all);

	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (result)
		return result;
	for (uint32_t i = 0; i < all.count; i++) {
		const struct emu_process *p = &all.process[i];

		if (!p->computes)
			continue;
		if (info && found < room)
			info[found] = (nvmlProcessInfo_t){p->pid, p->memory, NVML_NO_INSTANCE,
							  NVML_NO_INSTANCE};
		found++;
	}
	*count = found;
	return found > (info ? room : 0) ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

int nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending)
{
	if (!device || !current || !pending)
		return NVML_ERROR_INVALID_ARGUMENT;
	*current = *pending = NVML_DEVICE_MIG_DISABLE;
	return NVML_SUCCESS;
}

int nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count)
{
	if (!device || !count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = 0;
	return NVML_SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index, nvmlDevice_t *mig)
{
	(void)index;
	return device && mig ? NVML_ERROR_NOT_FOUND : NVML_ERROR_INVALID_ARGUMENT;
}
