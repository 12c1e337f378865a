/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must be so soon after the last kill or restart: everybody gets on, the daemon has the right
 * picture, and nothing that belonged to the dead is left.
 */
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "emu/common/emulator.h"
#include "rpc/client.h"
#include "world.h"

#define LOOK_MS     10 /* between two looks, */
#define LOOK_SHARE  8  /* and later an eighth of the time that it has taken, up to */
#define LOOK_MAX_MS 50

/* Time This is a machine that others use, too. By as much as a bare timer was late in the same
 * time, so may we be; and where a bare call to the emulated driver took longer than usual, which is
 * up to four times the best, the limit is as many times longer, for all that is waited for is made
 * of such calls. How often that was needed is said at the end. */

#define USUAL_CALL 4
#define MOST_SCALE 8ull

static unsigned stretched;
static uint64_t longest_ns;
static char longest_for[256]; /* what was waited for at its end */

static uint64_t now_ns(void)
{
	return gp_monotonic_ns();
}

struct limit limit_begin(const struct world *w, unsigned limit_ms)
{
	return (struct limit){
		.limit_ns = (uint64_t)limit_ms * GP_NS_PER_MS * (SANITIZED ? 10 : 1),
		.start_ns = now_ns(),
		.late_ns = atomic_load(&w->shared->late_ns),
		.calls = atomic_load(&w->shared->calls),
		.call_ns = atomic_load(&w->shared->call_ns),
	};
}

uint64_t limit_elapsed_ns(const struct limit *l)
{
	return now_ns() - l->start_ns;
}

/* How many times longer than usual a call took on average, in this time; in tenths. */
static uint64_t scale(const struct world *w, const struct limit *l)
{
	uint64_t calls = atomic_load(&w->shared->calls) - l->calls;
	uint64_t call_ns = atomic_load(&w->shared->call_ns) - l->call_ns;
	uint64_t usual_ns = USUAL_CALL * atomic_load(&w->shared->best_call_ns);
	uint64_t tenths = calls && usual_ns ? 10 * call_ns / (calls * usual_ns) : 10;

	return tenths < 10 ? 10 : tenths > 10 * MOST_SCALE ? 10 * MOST_SCALE : tenths;
}

bool limit_is_over(const struct world *w, const struct limit *l)
{
	uint64_t late_ns = atomic_load(&w->shared->late_ns) - l->late_ns;

	return limit_elapsed_ns(l) > l->limit_ns * scale(w, l) / 10 + late_ns;
}

static uint64_t note_end(const struct limit *l, const char *last)
{
	uint64_t took_ns = limit_elapsed_ns(l);

	stretched += took_ns > l->limit_ns;
	if (took_ns > longest_ns) {
		longest_ns = took_ns;
		snprintf(longest_for, sizeof longest_for, "%s", last);
	}
	return took_ns;
}

void settle_report(void)
{
	printf("the longest wait: %llu ms (%s)", longest_ns / GP_NS_PER_MS, longest_for);
	if (stretched)
		printf("; %u over the limit, which was longer: the control was as late", stretched);
	putchar('\n');
}

/* false, and why. */
__attribute__((format(printf, 2, 3))) static bool no(struct gp_error *err, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(err->text, sizeof err->text, format, list);
	va_end(list);
	return false;
}

static bool target_is_right(const struct target *t, const struct gpu_look *look, bool untouched,
			    struct gp_error *err)
{
	const struct gpu_task *task = gpu_look_find(look, t->load.pid);

	if (!task)
		return no(err, "the driver does not know target %d (%s)", t->load.pid, t->class);
	if (task->run_ns <= t->mark_ns)
		return no(err, "target %d (%s) stands still%s", t->load.pid, t->class,
			  task->held ? ", held" : "");
	if (task->changed && (untouched || t->source == BY_NOBODY))
		return no(err, "target %d (%s) is not as its owner made it%s", t->load.pid,
			  t->class, task->held ? ": held" : "");
	return true;
}

static bool driver_is_right(struct world *w, bool untouched, struct gp_error *err)
{
	uint64_t memory = TARGETS * w->gpu->memory;
	struct gpu_look look;

	w->gpu->look(&look);
	if (look.dead)
		return no(err, "the driver has something of process %d, which is dead", look.dead);
	if (look.memory != memory)
		return no(err, "%llu bytes of GPU memory are in use and %llu should be",
			  (unsigned long long)look.memory, (unsigned long long)memory);
	for (unsigned i = 0; i < TARGETS; i++)
		if (!target_is_right(&w->target[i], &look, untouched, err))
			return false;
	return true;
}

static const char *text_of(struct json_object *o, const char *name)
{
	struct json_object *value;

	return json_object_object_get_ex(o, name, &value) ? json_object_get_string(value) : "";
}

static uint64_t number_of(struct json_object *o, const char *name)
{
	struct json_object *value;

	return json_object_object_get_ex(o, name, &value) ? json_object_get_uint64(value) : 0;
}

/* At least what was answered before the question, at most what was asked for after it. */
static bool weight_is_right(const struct target *t, uint64_t answered, uint64_t asked,
			    uint64_t weight)
{
	uint32_t least = (pid_t)(answered >> 32) == t->load.pid ? (uint32_t)answered : WEIGHT_FIRST;
	uint32_t most = (pid_t)(asked >> 32) == t->load.pid ? (uint32_t)asked : WEIGHT_FIRST;

	return weight >= least && weight <= most;
}

static const struct target *find_target(const struct world *w, struct json_object *task)
{
	for (unsigned i = 0; i < TARGETS; i++)
		if ((uint64_t)w->target[i].load.pid == number_of(task, "pid") &&
		    w->target[i].start_time == number_of(task, "start_time"))
			return &w->target[i];
	return NULL;
}

static bool task_is_right(const struct world *w, struct json_object *task, uint64_t answered,
			  struct gp_error *err)
{
	static const char *const by[] = {
		[BY_NOBODY] = "default", [BY_RULE] = "rule", [BY_USER] = "user"};
	const struct target *t = find_target(w, task);
	uint64_t asked = atomic_load(&w->shared->asked), weight = number_of(task, "weight");

	if (!t)
		return no(err, "gpreemptd has a task of process %s, which is none of ours",
			  text_of(task, "pid"));
	if (strcmp(text_of(task, "class"), t->class) != 0 ||
	    strcmp(text_of(task, "set_by"), by[t->source]) != 0)
		return no(err, "target %d is %s by %s and should be %s by %s", t->load.pid,
			  text_of(task, "class"), text_of(task, "set_by"), t->class, by[t->source]);
	if (t == &w->target[STEERED] && !weight_is_right(t, answered, asked, weight))
		return no(err, "target %d has weight %llu: %u was set, %u asked for", t->load.pid,
			  (unsigned long long)weight, (uint32_t)answered, (uint32_t)asked);
	return true;
}

static bool tasks_are_right(const struct world *w, struct json_object *result, uint64_t answered,
			    struct gp_error *err)
{
	struct json_object *tasks;
	size_t n;

	if (!json_object_object_get_ex(result, "tasks", &tasks))
		return no(err, "an answer without tasks");
	n = json_object_array_length(tasks);
	for (size_t i = 0; i < n; i++)
		if (!task_is_right(w, json_object_array_get_idx(tasks, i), answered, err))
			return false;
	if (n != TARGETS)
		return no(err, "gpreemptd has %zu tasks and not %d", n, TARGETS);
	return true;
}

static bool picture_is_right(struct world *w, struct gp_error *err)
{
	uint64_t answered = atomic_load(&w->shared->answered);
	struct json_object *result = NULL;
	struct gp_client *client = NULL;
	bool right;
	int r = gp_client_connect(NULL, &client, err);

	if (!r)
		r = gp_client_call(client, "tasks", NULL, &result, err);
	gp_client_close(client);
	if (r)
		return false;
	right = tasks_are_right(w, result, answered, err);
	json_object_put(result);
	return right;
}

unsigned count_records(const struct world *w, pid_t owner)
{
	struct gp_undo_entry e;
	unsigned n = 0;

	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++)
		n += gp_undo_get(w->undo, i, &e) && e.owner == owner;
	return n;
}

/* Only a daemon that is there has records; a stopped one may have its own yet, of what is undone.
 * After an undo of which no work was seen, the keeper keeps the record for 5 s, without an owner.
 */
static bool records_are_right(struct world *w, struct gp_error *err)
{
	struct gp_undo_entry e;

	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++)
		if (gp_undo_get(w->undo, i, &e) && e.owner && (!w->daemon || e.owner != w->daemon))
			return no(err, "a record of target %d, by process %d%s", e.undo.pid,
				  e.owner, gp_undo_owner_lives(&e) ? "" : ", which is dead");
	return true;
}

enum expected { SCHEDULED, UNTOUCHED };

static bool all_is_well(struct world *w, enum expected expected, struct gp_error *err)
{
	read_targets(w);
	reap_orphans(w);
	return driver_is_right(w, expected == UNTOUCHED, err) && records_are_right(w, err) &&
	       (expected == UNTOUCHED || picture_is_right(w, err));
}

/* A look keeps the emulator, the daemon and this process busy: a long wait needs fewer. */
static unsigned until_next_look_ms(const struct limit *limit)
{
	uint64_t ms = limit_elapsed_ns(limit) / LOOK_SHARE / GP_NS_PER_MS;

	return ms < LOOK_MS ? LOOK_MS : ms > LOOK_MAX_MS ? LOOK_MAX_MS : (unsigned)ms;
}

static uint64_t wait_until_well(struct world *w, enum expected expected, const struct limit *limit)
{
	struct gp_error err = {0};

	while (!all_is_well(w, expected, &err)) {
		if (limit_is_over(w, limit))
			fail(w, "after %llu ms: %s", limit_elapsed_ns(limit) / GP_NS_PER_MS,
			     err.text);
		emulator_sleep_ms(until_next_look_ms(limit));
	}
	return note_end(limit, err.text);
}

uint64_t settle(struct world *w, const struct limit *limit)
{
	return wait_until_well(w, SCHEDULED, limit);
}

uint64_t settle_untouched(struct world *w, const struct limit *limit)
{
	return wait_until_well(w, UNTOUCHED, limit);
}
