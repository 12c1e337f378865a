/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's SMI events: which processes it has evicted, and which GPUs it resets. Each GPU has a
 * stream of text records. A read never blocks.
 *
 * Only what was read is claimed. A stream begins when its device is opened, so an eviction that
 * began earlier is not known. Without CAP_SYS_ADMIN in the first user namespace it has no evictions
 * of other processes. If a record may have been dropped, all that the stream told is forgotten.
 * Evictions nest: a process runs again when each of them has been undone. Those that began before
 * the stream are missing in the count here, so it is never above the driver's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/process.h"
#include "gpu/amd/amd_device.h"

#define EVENTS                                                                      \
	(KFD_SMI_BIT(KFD_SMI_GPU_PRE_RESET) | KFD_SMI_BIT(KFD_SMI_GPU_POST_RESET) | \
	 KFD_SMI_BIT(KFD_SMI_QUEUE_EVICTION) | KFD_SMI_BIT(KFD_SMI_QUEUE_RESTORE) | \
	 KFD_SMI_BIT(KFD_SMI_ALL_PROCESS))

/* The emulator knows the call, but can hand out no file: it has the stream in its sysfs. */
static int open_stream(int kfd, uint32_t gpu_id)
{
	const uint64_t mask = EVENTS;
	char path[320];
	int fd = gp_kfd_smi_events(kfd, gpu_id);

	snprintf(path, sizeof path, "%s/smi_%u", gp_amd_sysfs(), gpu_id);
	if (fd == -EOPNOTSUPP)
		fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (write(fd, &mask, sizeof mask) == sizeof mask)
		return fd;
	close(fd);
	return -1;
}

struct gp_amd_stream *gp_amd_smi_open(struct gp_kfd_thread *h, uint32_t gpu_id)
{
	struct gp_amd_stream *s = &h->stream[h->nstreams];

	for (unsigned i = 0; i < h->nstreams; i++)
		if (h->stream[i].gpu_id == gpu_id)
			return &h->stream[i];
	if (h->nstreams == GP_AMD_NODES_MAX)
		return NULL;
	*s = (struct gp_amd_stream){.gpu_id = gpu_id, .fd = open_stream(h->kfd, gpu_id)};
	if (s->fd < 0)
		gp_log(GP_LOG_WARN, "device.events-unknown", "gpu=%u", gpu_id);
	pthread_mutex_lock(&h->requests.lock);
	h->nstreams++;
	pthread_mutex_unlock(&h->requests.lock);
	return s;
}

void gp_amd_smi_close(struct gp_kfd_thread *h)
{
	for (unsigned i = 0; i < h->nstreams; i++) {
		if (h->stream[i].fd >= 0)
			close(h->stream[i].fd);
		free(h->stream[i].eviction);
	}
}

/* The clock of the records. */
static uint64_t boottime_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_BOOTTIME, &time);
	return (uint64_t)time.tv_sec * GP_NS_PER_S + (uint64_t)time.tv_nsec;
}

static struct gp_amd_eviction *find(struct gp_amd_stream *s, pid_t pid, uint64_t start_time)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->eviction[i].pid == pid && s->eviction[i].start_time == start_time)
			return &s->eviction[i];
	return NULL;
}

/* A process that ended while it was evicted is not restored. */
static void drop_ended(struct gp_amd_stream *s)
{
	for (unsigned i = s->n; i-- > 0;)
		if (!gp_process_lives(s->eviction[i].pid, s->eviction[i].start_time))
			s->eviction[i] = s->eviction[--s->n];
}

/* Events were lost: evictions may have ended. The entries stay, so that this is known. */
static void forget(struct gp_amd_stream *s)
{
	for (unsigned i = 0; i < s->n; i++)
		s->eviction[i].times = 0;
	s->in_reset = false;
}

static const char *cause(const struct gp_amd_eviction *e)
{
	switch (e->trigger) {
	case KFD_SMI_TRIGGER_SVM:
	case KFD_SMI_TRIGGER_USERPTR:
	case KFD_SMI_TRIGGER_TTM: return "memory";
	case KFD_SMI_TRIGGER_SUSPEND: return e->in_reset ? "reset" : "suspend";
	default: return "checkpoint";
	}
}

/* Logs a change of a task, and wakes the thread that owns its device. */
static void tell(struct gp_kfd_thread *h, const struct gp_amd_stream *s, const char *event,
		 const struct gp_amd_eviction *e)
{
	for (unsigned i = 0; i < h->ngpus; i++) {
		bool has_task = false;

		for (unsigned k = 0; k < h->gpu[i]->ntasks; k++)
			has_task |= h->gpu[i]->task[k] && h->gpu[i]->task[k]->pid == e->pid;
		if (h->gpu[i]->stream != s || !has_task)
			continue;
		gp_log(GP_LOG_WARN, event, "pid=%d device=\"%s\" cause=%s after_ms=%llu", e->pid,
		       h->gpu[i]->base.info.name, cause(e),
		       (unsigned long long)((boottime_ns() - e->since_ns) / GP_NS_PER_MS));
		gp_amd_notify(h->gpu[i]);
	}
}

static void note_eviction(struct gp_kfd_thread *h, struct gp_amd_stream *s,
			  const struct gp_amd_eviction *is)
{
	struct gp_amd_eviction *e = find(s, is->pid, is->start_time), *list;

	if (e) {
		unsigned times = e->times + 1;

		if (!e->times || (is->in_reset && !e->in_reset)) {
			*e = *is;
			tell(h, s, "task.evicted", is);
		}
		e->times = times;
		return;
	}
	drop_ended(s);
	list = realloc(s->eviction, (s->n + 1) * sizeof *list);
	if (!list)
		return; /* it is not known then */
	s->eviction = list;
	s->eviction[s->n++] = *is;
	tell(h, s, "task.evicted", is);
}

static void note_restore(struct gp_kfd_thread *h, struct gp_amd_stream *s, pid_t pid)
{
	struct gp_amd_eviction *e = find(s, pid, gp_process_start_time(pid));

	if (!e || !e->times || --e->times)
		return;
	tell(h, s, "task.restored", e);
	*e = s->eviction[--s->n];
}

static void note_reset(struct gp_kfd_thread *h, struct gp_amd_stream *s, bool begun)
{
	s->in_reset = begun;
	for (unsigned i = 0; i < h->ngpus; i++)
		if (h->gpu[i]->stream == s) {
			gp_log(GP_LOG_ERROR, "device.reset", "device=\"%s\" state=%s",
			       h->gpu[i]->base.info.name, begun ? "begun" : "ended");
			gp_amd_notify(h->gpu[i]);
		}
}

static void note_record(struct gp_kfd_thread *h, struct gp_amd_stream *s, const char *line)
{
	char *at, last = '0'; /* some drivers leave the last field of a restore out */
	unsigned event = (unsigned)strtoul(line, &at, 16);
	uint64_t at_ns;
	pid_t pid;

	if (event == KFD_SMI_GPU_PRE_RESET || event == KFD_SMI_GPU_POST_RESET) {
		note_reset(h, s, event == KFD_SMI_GPU_PRE_RESET);
		return;
	}
	at_ns = strtoull(at, &at, 10);
	pid = (pid_t)-strtol(at, &at, 10); /* the driver writes a minus sign before it */
	strtoul(at, &at, 16);              /* the GPU of the stream */
	if (pid <= 0)
		return;
	if (*at == ' ')
		last = at[1];
	if (event == KFD_SMI_QUEUE_EVICTION)
		note_eviction(h, s,
			      &(struct gp_amd_eviction){.pid = pid,
							.start_time = gp_process_start_time(pid),
							.times = 1,
							.trigger = (unsigned)(last - '0'),
							.in_reset = s->in_reset,
							.since_ns = at_ns});
	else if (event == KFD_SMI_QUEUE_RESTORE && last != 'R') /* R: it was put off */
		note_restore(h, s, pid);
}

/* A record was dropped if it did not fit: then the stream was nearly full when it was read. */
static void note_text(struct gp_kfd_thread *h, struct gp_amd_stream *s, char *text, size_t n)
{
	bool lost = n > KFD_SMI_FIFO_SIZE - KFD_SMI_RECORD_SIZE || text[n - 1] != '\n';
	char *end;

	for (char *line = text; (end = memchr(line, '\n', n - (size_t)(line - text)));
	     line = end + 1) {
		*end = '\0';
		note_record(h, s, line);
	}
	if (!lost)
		return;
	gp_log(GP_LOG_WARN, "device.events-lost", "gpu=%u", s->gpu_id);
	forget(s);
}

void gp_amd_smi_reopen(struct gp_kfd_thread *h)
{
	pthread_mutex_lock(&h->smi_lock);
	pthread_mutex_lock(&h->requests.lock);
	for (unsigned i = 0; i < h->nstreams; i++) {
		struct gp_amd_stream *s = &h->stream[i];

		if (s->fd >= 0)
			close(s->fd);
		s->fd = open_stream(h->kfd, s->gpu_id);
		forget(s);
	}
	pthread_mutex_unlock(&h->requests.lock);
	pthread_mutex_unlock(&h->smi_lock);
}

void gp_amd_smi_read(struct gp_kfd_thread *h)
{
	char text[KFD_SMI_FIFO_SIZE];
	unsigned n;

	pthread_mutex_lock(&h->smi_lock); /* records are noted in their order */
	pthread_mutex_lock(&h->requests.lock);
	n = h->nstreams;
	pthread_mutex_unlock(&h->requests.lock);
	for (unsigned i = 0; i < n; i++) {
		struct gp_amd_stream *s = &h->stream[i];
		ssize_t size = s->fd < 0 ? 0 : read(s->fd, text, sizeof text);

		if (size <= 0)
			continue;
		pthread_mutex_lock(&h->requests.lock);
		note_text(h, s, text, (size_t)size);
		pthread_mutex_unlock(&h->requests.lock);
	}
	pthread_mutex_unlock(&h->smi_lock);
}

bool gp_amd_in_reset(const struct gp_amd_gpu *gpu)
{
	return gpu->stream && gpu->stream->in_reset;
}

uint64_t gp_amd_evicted_ns(const struct gp_amd_task *t, bool *by_reset)
{
	struct gp_amd_stream *s = t->gpu->stream;
	const struct gp_amd_eviction *e = s ? find(s, t->pid, t->start_time) : NULL;
	bool known = e && e->times;
	uint64_t now_ns = known ? boottime_ns() : 0;

	*by_reset = known && e->in_reset;
	return !known ? 0 : now_ns > e->since_ns ? now_ns - e->since_ns : 1;
}

bool gp_amd_eviction_lost(const struct gp_amd_task *t)
{
	const struct gp_amd_eviction *e =
		t->gpu->stream ? find(t->gpu->stream, t->pid, t->start_time) : NULL;

	return e && !e->times;
}
