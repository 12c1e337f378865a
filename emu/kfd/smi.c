/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SMI events: a stream of text records for each client of a GPU. The driver hands out its file with
 * an ioctl. A FUSE server cannot: the stream is the file smi_GPUID in the folder of sysfs, and only
 * its opening differs. It has no poll.
 */
#include <stdarg.h>

#include "kfd.h"

#define CAP_SYS_ADMIN 21

struct smi_client {
	struct smi_client *next;
	const struct device *device;
	pid_t pid;
	bool is_admin; /* when it opened the stream */
	uint64_t mask;
	size_t used;
	char fifo[KFD_SMI_FIFO_SIZE];
};

static struct smi_client *clients;

int smi_open(const struct device *d, pid_t thread, void **handle)
{
	struct smi_client *client = calloc(1, sizeof(*client));
	struct task task;

	if (!client || !task_read(thread, &task)) {
		free(client);
		return -ENOMEM;
	}
	kfd_lock();
	*client = (struct smi_client){.next = clients,
				      .device = d,
				      .pid = task.pid,
				      .is_admin = task.capabilities >> CAP_SYS_ADMIN & 1};
	clients = client;
	kfd_unlock();
	*handle = client;
	return 0;
}

void smi_close(void *handle)
{
	struct smi_client **at = &clients;

	kfd_lock();
	while (*at != handle)
		at = &(*at)->next;
	*at = (*at)->next;
	kfd_unlock();
	free(handle);
}

int smi_write(void *handle, const void *data, size_t size)
{
	struct smi_client *client = handle;

	if (size < sizeof(client->mask))
		return -EFAULT;
	kfd_lock();
	memcpy(&client->mask, data, sizeof(client->mask));
	kfd_unlock();
	return sizeof(client->mask);
}

int smi_read(void *handle, void *data, size_t size)
{
	struct smi_client *client = handle;

	kfd_lock();
	size = size < client->used ? size : client->used;
	memcpy(data, client->fifo, size);
	client->used -= size;
	memmove(client->fifo, client->fifo + size, client->used);
	kfd_unlock();
	return size ? (int)size : -EAGAIN;
}

/* pid 0: for all clients. */
static bool is_enabled(const struct smi_client *client, pid_t pid, unsigned event)
{
	bool sees_all = client->is_admin && client->mask & KFD_SMI_BIT(KFD_SMI_ALL_PROCESS);

	return (!pid || pid == client->pid || sees_all) && client->mask & KFD_SMI_BIT(event);
}

__attribute__((format(printf, 4, 5))) static void emit(const struct device *d, pid_t pid,
						       unsigned event, const char *format, ...)
{
	char record[KFD_SMI_RECORD_SIZE];
	size_t size = (size_t)snprintf(record, sizeof(record), "%x ", event);
	va_list list;

	va_start(list, format);
	size += (size_t)vsnprintf(record + size, sizeof(record) - size, format, list);
	va_end(list);
	for (struct smi_client *client = clients; client; client = client->next) {
		if (client->device != d || !is_enabled(client, pid, event))
			continue;
		if (size > KFD_SMI_FIFO_SIZE - client->used) {
			count_add("smi_dropped", 1);
			continue;
		}
		memcpy(client->fifo + client->used, record, size);
		client->used += size;
	}
}

static unsigned long long boottime_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_BOOTTIME, &time);
	return (unsigned long long)time.tv_sec * GP_NS_PER_S + (unsigned long long)time.tv_nsec;
}

void smi_evicted(const struct device *d, pid_t pid, enum kfd_smi_trigger trigger)
{
	emit(d, pid, KFD_SMI_QUEUE_EVICTION, "%lld -%d %x %d\n", boottime_ns(), pid, d->gpu_id,
	     (int)trigger);
}

void smi_restored(const struct device *d, pid_t pid, char how)
{
	emit(d, pid, KFD_SMI_QUEUE_RESTORE, "%lld -%d %x %c\n", boottime_ns(), pid, d->gpu_id, how);
}

void smi_reset(const struct device *d, bool begin)
{
	emit(d, 0, begin ? KFD_SMI_GPU_PRE_RESET : KFD_SMI_GPU_POST_RESET, "%x %s\n", d->resets,
	     begin ? "scheduler" : "");
}
