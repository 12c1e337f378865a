/* SPDX-License-Identifier: Apache-2.0 */
/* The key `tasks` of a scenario, and arrival times of requests from a file: one time per line. */
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scenario/parse_scenario.h"
#include "task/attr_keys.h"
#include "yaml/value.h"

#define TRACE_MAX   ((size_t)16 << 20) /* bytes */
#define ARRIVAL_MAX DAY

/* Arrival times that were read. */
struct arrivals {
	uint64_t *at_ns;
	uint32_t n, room;
};

static int add_arrival(struct arrivals *a, uint64_t at_ns)
{
	uint32_t room = a->room ? 2 * a->room : 64;
	uint64_t *grown;

	if (a->n == a->room) {
		grown = reallocarray(a->at_ns, room, sizeof *grown);
		if (!grown)
			return -ENOMEM;
		a->at_ns = grown;
		a->room = room;
	}
	a->at_ns[a->n++] = at_ns;
	return 0;
}

/* Removes a comment (#) and the space on both sides. */
static char *trim(char *line)
{
	size_t length = strcspn(line, "#");

	while (length && strchr(" \t\r", line[length - 1]))
		length--;
	line[length] = '\0';
	return line + strspn(line, " \t");
}

static int add_line(struct arrivals *a, const char *path, unsigned number, const char *word,
		    struct gp_error *err)
{
	uint64_t at_ns;
	int r = gp_value_duration(word, &at_ns);

	if (r == -ENODATA)
		return gp_yaml_fail_at(err, path, number,
				       "the time needs a unit, as in 3ms (ns, us, ms, s, m or h)");
	if (r || at_ns > ARRIVAL_MAX)
		return gp_yaml_fail_at(err, path, number,
				       "a line must be a time of at most 24h, as in 12.5ms");
	if (a->n && at_ns < a->at_ns[a->n - 1])
		return gp_yaml_fail_at(
			err, path, number,
			"the times must be in order; this time is before the previous one");
	return add_arrival(a, at_ns);
}

static int add_lines(struct arrivals *a, const char *path, char *text, struct gp_error *err)
{
	unsigned number = 0;
	char *line, *word;
	int r = 0;

	while (!r && (line = strsep(&text, "\n"))) {
		number++;
		word = trim(line);
		if (*word)
			r = add_line(a, path, number, word, err);
	}
	if (!r && !a->n)
		return gp_fail(err, -EINVAL, "%s: the file has no arrival time", path);
	return r;
}

static int load_trace_file(struct arrivals *a, const char *path, struct gp_error *err)
{
	char *text = malloc(TRACE_MAX + 1);
	ssize_t n = text ? gp_scenario_read_file(path, text, TRACE_MAX + 1) : -ENOMEM;
	int r;

	if (n < 0) {
		r = gp_fail(err, (int)n, "cannot read the trace %s: %s", path,
			    gp_error_name((int)n));
	} else if ((size_t)n > TRACE_MAX || memchr(text, '\0', (size_t)n)) {
		r = gp_fail(err, -EINVAL, "%s: a trace must be a text file of at most 16 MiB",
			    path);
	} else {
		text[n] = '\0';
		r = add_lines(a, path, text, err);
	}
	free(text);
	return r;
}

/*
 * Reads the file `name` in the folder of the file `scenario`: one time per line, in ascending
 * order. Empty lines and comments (#) are ignored. Returns 0, or -errno with a message.
 */
static int load_trace(struct arrivals *a, const char *scenario, const char *name,
		      struct gp_error *err)
{
	const char *slash = strrchr(scenario, '/');
	char *path;
	int r;

	if (asprintf(&path, "%.*s%s", slash ? (int)(slash + 1 - scenario) : 0, scenario, name) < 0)
		return -ENOMEM;
	r = load_trace_file(a, path, err);
	free(path);
	return r;
}

#define TASKS_MAX  100000u
#define RATE_SCALE GP_NS_PER_S /* rates are stored per 1e9 s, so that divisions are exact */

struct gang {
	char name[32];
	uint64_t number;
};

/* One entry of the list `tasks`. */
struct task_entry {
	struct gp_sim_task task;
	struct gp_task_attr attr;
	char gang[sizeof((struct gang *)NULL)->name];
	uint64_t rate; /* in units of 1 / RATE_SCALE */
	uint32_t count;
	char trace[64];           /* name of a file with arrival times */
	struct arrivals arrivals; /* arrival times in the scenario itself */
};

static const char *const load_words[] = {
	[GP_LOAD_PERIODIC] = "periodic", [GP_LOAD_POISSON] = "poisson", [GP_LOAD_CLOSED] = "closed",
	[GP_LOAD_IDLE] = "idle",         [GP_LOAD_TRACE] = "trace",     NULL,
};

static gp_yaml_read read_arrivals;

/* clang-format off */
enum {
	KEY_TASK_NAME, KEY_CLASS, KEY_PRIORITY, KEY_WEIGHT, KEY_SHARE, KEY_CEILING, KEY_DEADLINE,
	KEY_BUDGET, KEY_GANG, KEY_LOAD, KEY_EVERY, KEY_RATE, KEY_PHASE, KEY_ARRIVALS, KEY_TRACE,
	KEY_KERNEL, KEY_WIDTH, KEY_WAVE, KEY_KERNELS, KEY_KERNEL_GAP, KEY_GAP, KEY_PREPARE,
	KEY_HINT, KEY_REQUEST_MARKS, KEY_START, KEY_STOP, KEY_SLICE, KEY_COUNT, TASK_KEYS
};

#define IN(member) AT(struct task_entry, member)
static const struct gp_yaml_key task_keys[] = {
	[KEY_TASK_NAME] = {"name",     TEXT, IN(task.name)},
	GP_ATTR_KEYS,
	[KEY_LOAD]      = {"load",     WORD(load_words), IN(task.load)},
	[KEY_EVERY]     = {"every",    DURATION(GP_NS_PER_US, DAY), IN(task.every_ns)},
	[KEY_RATE]      = {"rate",     .type = GP_YAML_NUMBER, .unit = "requests per second",
				       .min = RATE_SCALE / 10000, .max = 1000000 * RATE_SCALE,
				       .scale = RATE_SCALE, IN(rate)},
	[KEY_PHASE]     = {"phase",    DURATION(GP_NS_PER_US, DAY), IN(task.phase_ns)},
	[KEY_ARRIVALS]  = {"arrivals", NESTED(read_arrivals)},
	[KEY_TRACE]     = {"trace",    TEXT, IN(trace)},
	[KEY_KERNEL]    = {"kernel",   DURATION(GP_NS_PER_US, HOUR), IN(task.kernel_ns)},
	[KEY_WIDTH]     = {"width",    .type = GP_YAML_NUMBER, .min = 1, .max = 1000, .scale = 10,
				       .unit = "percent", IN(task.width_permille)},
	[KEY_WAVE]      = {"wave",     DURATION(GP_NS_PER_US, HOUR), IN(task.wave_ns)},
	[KEY_KERNELS]   = {"kernels",  WHOLE(1, 100000), IN(task.kernels)},
	[KEY_KERNEL_GAP] = {"kernel_gap", DURATION(0, HOUR), IN(task.kernel_gap_ns)},
	[KEY_GAP]       = {"gap",      DURATION(0, HOUR), IN(task.gap_ns)},
	[KEY_PREPARE]   = {"prepare",  DURATION(0, 10 * GP_NS_PER_S), IN(task.prepare_ns)},
	[KEY_HINT]      = {"hint",     DURATION(0, 10 * GP_NS_PER_S), IN(task.hint_ns)},
	[KEY_REQUEST_MARKS]   = {"request_marks", BOOL, IN(task.request_marks)},
	[KEY_START]     = {"start",    DURATION(0, DAY), IN(task.start_ns)},
	[KEY_STOP]      = {"stop",     DURATION(0, DAY), IN(task.stop_ns)},
	[KEY_SLICE]     = {"slice",    MICROSECONDS(GP_NS_PER_US, 10 * GP_NS_PER_S),
				       IN(task.slice_us)},
	[KEY_COUNT]     = {"count",    WHOLE(1, TASKS_MAX), IN(count)},
};
#undef IN
/* clang-format on */

_Static_assert(TASK_KEYS <= GP_YAML_KEYS_MAX, "gp_yaml_read_map's array of lines");

static const struct gp_yaml_map task_map = {"a task", TASK_KEYS, task_keys};

/* Which keys fit together. */

#define LOAD(name) (1u << GP_LOAD_##name)
#define REGULAR    (LOAD(PERIODIC) | LOAD(POISSON))
#define OPEN       (REGULAR | LOAD(TRACE))
#define WORKS      (OPEN | LOAD(CLOSED))

static const struct {
	unsigned key;
	unsigned loads;
	const char *names;
} fits[] = {
	{KEY_EVERY, REGULAR, "periodic and poisson"},
	{KEY_RATE, REGULAR, "periodic and poisson"},
	{KEY_PHASE, LOAD(PERIODIC), "periodic"},
	{KEY_ARRIVALS, LOAD(TRACE), "trace"},
	{KEY_TRACE, LOAD(TRACE), "trace"},
	{KEY_PREPARE, OPEN, "periodic, poisson and trace"},
	{KEY_HINT, OPEN, "periodic, poisson and trace"},
	{KEY_GAP, LOAD(CLOSED), "closed"},
	{KEY_KERNEL, WORKS, "periodic, poisson, trace and closed"},
	{KEY_WIDTH, WORKS, "periodic, poisson, trace and closed"},
	{KEY_WAVE, WORKS, "periodic, poisson, trace and closed"},
	{KEY_KERNELS, WORKS, "periodic, poisson, trace and closed"},
	{KEY_KERNEL_GAP, WORKS, "periodic, poisson, trace and closed"},
	{KEY_REQUEST_MARKS, WORKS, "periodic, poisson, trace and closed"},
};

static bool load_is_among(const struct task_entry *e, unsigned loads)
{
	return loads >> e->task.load & 1;
}

static int check_fit(const struct gp_yaml *y, const struct task_entry *e, const unsigned line[])
{
	for (unsigned i = 0; i < sizeof fits / sizeof *fits; i++)
		if (line[fits[i].key] && !load_is_among(e, fits[i].loads))
			return gp_yaml_fail(y, line[fits[i].key],
					    "'%s' does not apply to load '%s'; it applies to %s",
					    task_keys[fits[i].key].name, load_words[e->task.load],
					    fits[i].names);
	return 0;
}

/* A task needs exactly one of two keys that have the same meaning. */
static int check_one_of(const struct gp_yaml *y, const struct task_entry *e, const unsigned line[],
			unsigned at, unsigned key, unsigned other)
{
	if (line[key] && line[other])
		return gp_yaml_fail(y, line[other],
				    "'%s' and '%s' have the same meaning; remove one of them",
				    task_keys[key].name, task_keys[other].name);
	if (!line[key] && !line[other])
		return gp_yaml_fail(y, at, "the task needs '%s' or '%s', because its load is '%s'",
				    task_keys[key].name, task_keys[other].name,
				    load_words[e->task.load]);
	return 0;
}

/* `at` is the line on which the task begins. */
static int check_task(const struct gp_yaml *y, const struct task_entry *e, const unsigned line[],
		      unsigned at)
{
	int r;

	if (!line[KEY_LOAD])
		return gp_yaml_fail(
			y, at,
			"the task needs 'load': one of periodic, poisson, closed, idle, "
			"trace");
	r = check_fit(y, e, line);
	if (!r && load_is_among(e, REGULAR))
		r = check_one_of(y, e, line, at, KEY_EVERY, KEY_RATE);
	if (!r && load_is_among(e, LOAD(TRACE)))
		r = check_one_of(y, e, line, at, KEY_ARRIVALS, KEY_TRACE);
	if (r)
		return r;
	if (load_is_among(e, WORKS) && !line[KEY_KERNEL])
		return gp_yaml_fail(y, at, "the task needs 'kernel', because its load is '%s'",
				    load_words[e->task.load]);
	if (strchr(e->trace, '/'))
		return gp_yaml_fail(y, line[KEY_TRACE],
				    "'trace' names a file in the folder of the scenario, without "
				    "a path");
	if (line[KEY_KERNEL_GAP] && e->task.kernels < 2)
		return gp_yaml_fail(
			y, line[KEY_KERNEL_GAP],
			"'kernel_gap' is the time between two kernels; 'kernels' must be 2 or "
			"more");
	if (e->task.stop_ns <= e->task.start_ns)
		return gp_yaml_fail(y, line[KEY_STOP], "'stop' must be later than 'start'");
	return 0;
}

/* Arrival times. */

static int read_arrival(struct gp_yaml *y, void *target)
{
	static const struct gp_yaml_key key = {
		.name = "arrivals", DURATION(0, ARRIVAL_MAX), .size = sizeof(uint64_t)};
	struct arrivals *a = &((struct task_entry *)target)->arrivals;
	unsigned at = gp_yaml_line(y);
	uint64_t at_ns;
	int r = gp_yaml_read_value(y, &key, &at_ns);

	if (r)
		return r;
	if (a->n && at_ns < a->at_ns[a->n - 1])
		return gp_yaml_fail(
			y, at, "'arrivals' must be in order; this time is before the previous one");
	return add_arrival(a, at_ns);
}

static int read_arrivals(struct gp_yaml *y, void *target)
{
	return gp_yaml_read_list(y, "arrivals", read_arrival, target);
}

/* The scenario owns the list; copies of the task share it. */
static int keep_arrivals(struct reading *r, struct task_entry *e)
{
	int failed = 0;

	if (e->trace[0])
		failed = load_trace(&e->arrivals, r->path, e->trace, r->err);
	if (failed || !e->arrivals.n)
		return failed;
	e->task.arrival_ns = e->arrivals.at_ns;
	e->task.arrivals = e->arrivals.n;
	failed = gp_scenario_keep(&r->scenario, e->arrivals.at_ns);
	e->arrivals.at_ns = NULL;
	return failed;
}

/* The list. */

static int compare_gangs(const void *a, const void *b)
{
	return strcmp(((const struct gang *)a)->name, ((const struct gang *)b)->name);
}

/*
 * The number of the gang with that name: 1, 2, ... in the order of first use. Returns 0 or -ENOMEM.
 */
static int find_gang(struct reading *r, const char *name, uint64_t *number)
{
	struct gang *new = malloc(sizeof *new);
	struct gang **found;

	if (!new)
		return -ENOMEM;
	memcpy(new->name, name, sizeof new->name);
	new->number = r->ngangs + 1;
	found = tsearch(new, &r->gangs, compare_gangs);
	if (found)
		*number = (*found)->number;
	if (found && *found == new)
		r->ngangs++;
	else
		free(new);
	return found ? 0 : -ENOMEM;
}

static int add_copies(struct gp_scenario *s, const struct task_entry *e)
{
	struct gp_sim_task copy = e->task;
	size_t base = strlen(e->task.name);
	int r = 0;

	for (uint32_t i = 1; i <= e->count && !r; i++) {
		if (e->count > 1)
			snprintf(copy.name + base, sizeof copy.name - base, "-%u", i);
		r = gp_scenario_add(s, &copy, &e->attr);
	}
	return r;
}

static int add_entry(const struct gp_yaml *y, struct reading *r, struct task_entry *e, unsigned at)
{
	int suffix = e->count > 1 ? snprintf(NULL, 0, "-%u", e->count) : 0;
	int failed = 0;

	if (strlen(e->task.name) + (size_t)suffix >= sizeof e->task.name)
		return gp_yaml_fail(y, at,
				    "the task's name is too long; together with '-%u' of the last "
				    "copy it may have at most %zu bytes",
				    e->count, sizeof e->task.name - 1);
	if (e->count > TASKS_MAX - r->scenario.ntasks)
		return gp_yaml_fail(y, at,
				    "with this task and its copies there are more than %u tasks, "
				    "the maximum",
				    TASKS_MAX);
	if (e->gang[0])
		failed = find_gang(r, e->gang, &e->attr.gang);
	return failed ? failed : add_copies(&r->scenario, e);
}

/* A change of `rate` also replaces `every`, and vice versa. */
static int change_entry(struct gp_yaml *y, struct reading *r, struct task_entry *e,
			unsigned line[GP_YAML_KEYS_MAX])
{
	unsigned every = line[KEY_EVERY], rate = line[KEY_RATE];
	char name[sizeof e->task.name];
	int failed;

	memcpy(name, e->task.name, sizeof name);
	line[KEY_EVERY] = line[KEY_RATE] = 0;
	failed = gp_scenario_change(r, y, name, &task_map, e, line);
	if (!line[KEY_EVERY] && !line[KEY_RATE]) {
		line[KEY_EVERY] = every;
		line[KEY_RATE] = rate;
	}
	return failed;
}

static int read_entry(struct gp_yaml *y, struct reading *r, struct task_entry *e)
{
	unsigned line[GP_YAML_KEYS_MAX], at = gp_yaml_line(y);
	int failed = gp_yaml_read_map(y, &task_map, e, line);

	if (!failed)
		failed = change_entry(y, r, e, line);
	if (!failed)
		failed = check_task(y, e, line, at);
	if (!failed)
		failed = keep_arrivals(r, e);
	if (failed)
		return failed;
	if (line[KEY_RATE])
		e->task.every_ns = (GP_NS_PER_S * RATE_SCALE + e->rate / 2) / e->rate;
	return add_entry(y, r, e, at);
}

static int read_task(struct gp_yaml *y, void *target)
{
	struct reading *r = target;
	struct task_entry e = {
		.attr = GP_TASK_ATTR_DEFAULT, .task = {.stop_ns = GP_NEVER}, .count = 1};
	int failed;

	snprintf(e.task.name, sizeof e.task.name, "task%u", ++r->entries);
	failed = read_entry(y, r, &e);
	free(e.arrivals.at_ns);
	return failed;
}

int gp_scenario_read_tasks(struct gp_yaml *y, void *target)
{
	struct reading *r = target;
	unsigned at = gp_yaml_line(y);
	int failed = gp_yaml_read_list(y, "tasks", read_task, r);

	if (!failed && !r->scenario.ntasks)
		return gp_yaml_fail(y, at, "'tasks' is empty; a scenario needs at least one task");
	return failed;
}
