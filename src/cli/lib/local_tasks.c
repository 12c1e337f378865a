/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lib/local_tasks.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/process.h"
#include "cli/lib/fields.h"
#include "cli/lib/stop.h"
#include "hold/replay.h"
#include "task/json/task_json.h"

void gp_share_begin(struct gp_share *s, const struct gp_task_ref *ref)
{
	*s = (struct gp_share){0};
	s->attached = !gp_gpu_attach(ref->gpu, ref->seen.key, &s->handle);
}

void gp_share_tick(struct gp_share *s, const struct gp_task_ref *ref)
{
	struct gp_observation o = {.handle = s->handle};

	if (!s->attached || gp_gpu_observe(ref->gpu, gp_monotonic_ns(), &o, 1))
		return;
	s->last = o;
	s->ticks++;
	s->held_ticks += o.known & GP_KNOWN_HELD && o.held && !o.unsure;
	s->active_ticks += o.known & GP_KNOWN_ACTIVE && o.active;
	s->running_ticks += o.known & GP_KNOWN_RUNNING && o.running;
	if (!(o.known & GP_KNOWN_RUN))
		return;
	s->source = o.run_source;
	if (!s->begin_ns) {
		s->begin_ns = o.run_at_ns;
		s->begin_run_ns = o.run_ns;
	}
	s->end_ns = o.run_at_ns;
	s->end_run_ns = o.run_ns;
	s->known = s->end_ns > s->begin_ns;
}

void gp_share_end(struct gp_share *s, const struct gp_task_ref *ref)
{
	if (s->attached)
		gp_gpu_detach(ref->gpu, s->handle);
	s->attached = false;
}

double gp_share_percent(const struct gp_share *s)
{
	double percent = 100.0 * (double)(s->end_run_ns - s->begin_run_ns) /
			 (double)(s->end_ns - s->begin_ns);

	return percent < 100 ? percent : 100; /* two clocks, read one after the other */
}

const char *gp_share_text(char *out, size_t size, const struct gp_share *s)
{
	if (!s->known)
		snprintf(out, size, "-");
	else
		snprintf(out, size, "%s%.0f %%", s->source == GP_RUN_GRANTED ? "<= " : "",
			 gp_share_percent(s));
	return out;
}

#define TICK_NS (20 * GP_NS_PER_MS)

struct row {
	struct gp_task_ref ref;
	struct gp_share share;
};

static void read_queues(const struct row *row, struct gp_task_info *info, bool *held)
{
	struct gp_queue *queue;
	int n = gp_task_ref_queues(&row->ref, false, &queue, NULL);

	info->queues_known = n >= 0;
	for (int i = 0; i < n; i++) {
		uint32_t us = queue[i].slice_us;

		if (queue[i].copies) {
			info->copy_queues++;
			continue;
		}
		info->queues++;
		*held |= queue[i].held && !queue[i].unsure;
		if (us > info->slice_max_us)
			info->slice_max_us = us;
		if (us && (!info->slice_min_us || us < info->slice_min_us))
			info->slice_min_us = us;
	}
	free(queue);
}

static void read_user(pid_t pid, struct gp_task_info *info, char *name, size_t size)
{
	const struct passwd *entry;

	info->uid_known = gp_process_uid(pid, &info->uid);
	if (!info->uid_known)
		return;
	entry = getpwuid(info->uid);
	if (entry)
		snprintf(name, size, "%s", entry->pw_name);
	else
		snprintf(name, size, "%u", info->uid);
	info->user = name;
}

/* What prevailed while the task was observed. */
static enum gp_task_state state_of(const struct row *row, bool queue_held, pid_t owner)
{
	const struct gp_observation *o = &row->share.last;
	const struct gp_share *s = &row->share;
	bool held_known = o->known & GP_KNOWN_HELD && s->ticks;
	struct gp_task_condition c = {
		.held = held_known ? 2 * s->held_ticks > s->ticks : queue_held,
		.evicted = o->evicted_ns,
		.known = o->known,
		.active = 2 * s->active_ticks > s->ticks,
		.running = 2 * s->running_ticks > s->active_ticks,
	};

	if ((!held_known || o->unsure) && !c.held && !c.active)
		c.known = 0; /* it may be held */
	/* A task with an owner may be held, and AMD's driver shows holds only to their owner. Only
	 * a device that reports running tasks shows otherwise. */
	if (owner && !c.held && !(o->known & GP_KNOWN_RUNNING))
		c.known = 0;
	return gp_task_state(&c);
}

static struct json_object *row_to_json(const struct row *row, const struct gp_undo_file *undo)
{
	const struct gp_seen *seen = &row->ref.seen;
	const struct gp_share *share = &row->share;
	struct gp_task_info info = {
		.device = row->ref.device,
		.device_name = row->ref.gpu->info.name,
		.pid = seen->pid,
		.start_time = seen->start_time,
		.name = seen->name,
		.shared = seen->flags & GP_SEEN_SHARED,
		.memory = seen->memory,
		.run_source = share->known ? share->source : (uint8_t)GP_RUN_UNKNOWN,
		.evicted = {share->last.evicted_ns, share->last.evicted_by_reset},
		.scheduled = share->last.scheduled,
	};
	struct gp_undo_entry e;
	bool held = false;
	char user[32];

	if (share->known) {
		info.share_known = true;
		info.ran_ns = share->end_run_ns - share->begin_run_ns;
		info.over_ns = share->end_ns - share->begin_ns;
	}
	read_queues(row, &info, &held);
	read_user(seen->pid, &info, user, sizeof user);
	if (gp_records_find(undo, seen->pid, seen->start_time, &e))
		info.owner = e.owner;
	info.state = state_of(row, held, info.owner);
	return gp_task_to_json(&info);
}

/* A share needs two samples. Where samples are rare, these take longer than `for_ns`. */
static bool wants_more(const struct row *rows, int n, uint64_t over_ns)
{
	for (int i = 0; i < n; i++)
		if (!rows[i].share.known && over_ns < 4 * rows[i].ref.gpu->info.sample_period_ns)
			return true;
	return false;
}

static void observe(struct row *rows, int n, uint64_t for_ns, bool patient)
{
	uint64_t now_ns = gp_monotonic_ns(), end_ns = gp_time_add(now_ns, for_ns);
	bool stopped = false;

	for (int i = 0; i < n; i++) {
		gp_share_begin(&rows[i].share, &rows[i].ref);
		gp_share_tick(&rows[i].share, &rows[i].ref);
	}
	while (n && !stopped &&
	       (now_ns < end_ns || (patient && wants_more(rows, n, now_ns - end_ns)))) {
		uint64_t next_ns = now_ns + TICK_NS;

		stopped = gp_stop_sleep(now_ns < end_ns && end_ns < next_ns ? end_ns : next_ns);
		for (int i = 0; i < n; i++)
			gp_share_tick(&rows[i].share, &rows[i].ref);
		now_ns = gp_monotonic_ns();
	}
}

static int compare_rows(const void *a, const void *b)
{
	const struct gp_task_ref *p = &((const struct row *)a)->ref;
	const struct gp_task_ref *q = &((const struct row *)b)->ref;

	if (p->device != q->device)
		return p->device < q->device ? -1 : 1;
	return p->seen.pid < q->seen.pid ? -1 : p->seen.pid > q->seen.pid;
}

/* Memory is sampled by some drivers: it was not known at the scan. */
static bool refresh(struct gp_task_ref *ref)
{
	return !gp_gpu_commands(ref->gpu)->find ||
	       !gp_gpu_find(ref->gpu, ref->seen.pid, &ref->seen, NULL);
}

static bool uses_backend(const struct gp_devices *devices, const char *name)
{
	for (unsigned i = 0; i < devices->n; i++)
		if (!strcmp(devices->device[i].gpu->ops->name, name))
			return true;
	return false;
}

/* -errno: a process that has an undo record lives, and is not in the list. It may be held. */
static int find_unlisted(const struct gp_devices *devices, const struct gp_undo_file *undo,
			 const struct row *rows, int n, struct gp_error *err)
{
	struct gp_undo_entry e;

	for (unsigned i = 0; undo && i < GP_UNDO_SLOTS; i++) {
		bool listed = false;

		if (!gp_undo_get(undo, i, &e) || !gp_record_process_lives(&e) ||
		    !uses_backend(devices, e.backend))
			continue;
		for (int k = 0; k < n; k++)
			listed |= rows[k].ref.seen.pid == e.undo.pid;
		if (!listed)
			return gp_fail(err, -EIO,
				       "process %d has an undo record and may be held, and its "
				       "queues are not seen; its state is not known",
				       e.undo.pid);
	}
	return 0;
}

static int read_tasks(const struct gp_devices *devices, uint64_t for_ns, bool patient,
		      struct json_object **tasks, struct gp_error *err)
{
	struct gp_undo_file *undo = NULL;
	struct gp_task_ref *ref;
	struct row *rows;
	int n = gp_devices_scan(devices, GP_DEVICES_MAX, &ref, err), r;

	if (n < 0)
		return n;
	rows = calloc((size_t)n + 1, sizeof *rows);
	if (!rows) {
		free(ref);
		return gp_fail(err, -ENOMEM, "no memory");
	}
	for (int i = 0; i < n; i++)
		rows[i].ref = ref[i];
	qsort(rows, (size_t)n, sizeof *rows, compare_rows);
	observe(rows, n, for_ns, patient);
	gp_undo_open(&undo, false, NULL);
	*tasks = json_object_new_array();
	for (int i = 0; i < n; i++) {
		if (refresh(&rows[i].ref))
			json_object_array_add(*tasks, row_to_json(&rows[i], undo));
		gp_share_end(&rows[i].share, &rows[i].ref);
	}
	r = gp_devices_missing(devices, err);
	if (!r)
		r = find_unlisted(devices, undo, rows, n, err);
	gp_undo_close(undo);
	free(rows);
	free(ref);
	return r;
}

static struct json_object *devices_to_json(const struct gp_devices *devices)
{
	struct json_object *list = json_object_new_array();

	for (unsigned i = 0; i < devices->n; i++) {
		const struct gp_gpu *gpu = devices->device[i].gpu;
		struct json_object *d = gp_list_object(list);

		gp_field_put(d, "device", i);
		gp_field_put_text(d, "name", gpu->info.name);
		gp_field_put_text(d, "backend", gpu->ops->name);
		if (*gpu->info.bus)
			gp_field_put_text(d, "bus", gpu->info.bus);
	}
	return list;
}

int gp_local_tasks(uint64_t for_ns, bool patient, struct json_object **answer, struct gp_error *err)
{
	struct json_object *tasks = NULL;
	struct gp_devices devices;
	int r = gp_devices_open(&devices, 0, err);

	if (r)
		return r;
	r = read_tasks(&devices, for_ns, patient, &tasks, err);
	if (tasks) {
		*answer = json_object_new_object();
		json_object_object_add(*answer, "devices", devices_to_json(&devices));
		json_object_object_add(*answer, "tasks", tasks);
	}
	gp_devices_close(&devices);
	return r;
}
