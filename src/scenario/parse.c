/* SPDX-License-Identifier: Apache-2.0 */
/* What a scenario file may say (man gpreempt-scenario(5)), and what it means. */
#include "config.h"
#include "scenario/scenario.h"

#if GP_HAVE_YAML
#include <fcntl.h>
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scenario/yaml.h"

#define TASKS_MAX  100000u
#define FILE_MAX   ((size_t)1 << 20)
#define HOUR       (3600 * GP_NS_PER_S)
#define DAY        (24 * HOUR)

#define RATE_SCALE GP_NS_PER_S /* a rate is kept in requests per 1e9 s, to divide exactly */

struct gang {
	char name[32];
	uint64_t number;
};

struct reading {
	struct gp_scenario scenario;
	uint32_t entries; /* of the list `tasks`: a task with copies is one */
	void *gangs;      /* a tree of struct gang, by name: tsearch(3) */
	uint64_t ngangs;
};

/* One entry of the list `tasks`. */
struct task_entry {
	struct gp_sim_task task;
	struct gp_task_attr attr;
	char gang[sizeof((struct gang *)NULL)->name];
	uint64_t rate; /* RATE_SCALE */
	uint32_t count;
};

/* ---- the tables ---------------------------------------------------------------------- */

#define AT(type, member)   .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define TEXT               .type = GP_YAML_TEXT
#define WORD(list)         .type = GP_YAML_WORD, .words = (list)
#define BOOL               .type = GP_YAML_BOOL
#define NESTED(call)       .type = GP_YAML_NESTED, .read = (call)
#define WHOLE(from, to)    .type = GP_YAML_NUMBER, .min = (from), .max = (to), .scale = 1
#define PERCENT            .type = GP_YAML_NUMBER, .max = 1000, .scale = 10, .unit = "percent"
#define DURATION(from, to) .type = GP_YAML_DURATION, .min = (from), .max = (to), .scale = 1
#define MICROSECONDS(from, to) \
	.type = GP_YAML_DURATION, .min = (from), .max = (to), .scale = GP_NS_PER_US

static gp_yaml_read read_device, read_tasks;

static const char *const model_words[] = {[GP_SIM_RUNLIST] = "runlist", NULL};

static const char *const activity_words[] = {
	[GP_ACTIVITY_NONE] = "none",
	[GP_ACTIVITY_SAMPLED] = "sampled",
	[GP_ACTIVITY_EXACT] = "exact",
	[GP_ACTIVITY_EVENTS] = "events",
	NULL,
};

static const char *const class_words[] = {
	[GP_UNMANAGED] = "unmanaged",
	[GP_BEST_EFFORT] = "be",
	[GP_LATENCY_CRITICAL] = "lc",
	NULL,
};

static const char *const load_words[] = {
	[GP_LOAD_PERIODIC] = "periodic",
	[GP_LOAD_POISSON] = "poisson",
	[GP_LOAD_CLOSED] = "closed",
	[GP_LOAD_IDLE] = "idle",
	NULL,
};

/* clang-format off */
enum { KEY_NAME, KEY_ABOUT, KEY_DURATION, KEY_SEED, KEY_DEVICE, KEY_TASKS, SCENARIO_KEYS };

#define IN(member) AT(struct reading, scenario.member)
static const struct gp_yaml_key scenario_keys[] = {
	[KEY_NAME]     = {"name",     TEXT, IN(name)},
	[KEY_ABOUT]    = {"about",    TEXT, IN(about)},
	[KEY_DURATION] = {"duration", DURATION(GP_NS_PER_MS, DAY), IN(duration_ns)},
	[KEY_SEED]     = {"seed",     WHOLE(0, UINT64_MAX), IN(seed)},
	[KEY_DEVICE]   = {"device",   NESTED(read_device)},
	[KEY_TASKS]    = {"tasks",    NESTED(read_tasks)},
};
#undef IN

#define IN(member) AT(struct gp_sim_device, member)
static const struct gp_yaml_key device_keys[] = {
	{"model",           WORD(model_words), IN(model)},
	{"switch",          DURATION(0, 10 * GP_NS_PER_S), IN(switch_ns)},
	{"switch_idle",     DURATION(0, 10 * GP_NS_PER_S), IN(switch_idle_ns)},
	{"refill",          DURATION(0, 10 * GP_NS_PER_S), IN(refill_ns)},
	{"slice",           MICROSECONDS(GP_NS_PER_US, 10 * GP_NS_PER_S), IN(slice_us)},
	{"launch",          DURATION(0, 10 * GP_NS_PER_S), IN(launch_ns)},
	{"launch_jitter",   DURATION(0, 10 * GP_NS_PER_S), IN(launch_jitter_ns)},
	{"launch_hinted",   PERCENT, IN(launch_hinted_permille)},
	{"hold",            DURATION(0, 10 * GP_NS_PER_S), IN(hold_ns)},
	{"release",         DURATION(0, 10 * GP_NS_PER_S), IN(release_ns)},
	{"set_slice",       DURATION(0, 10 * GP_NS_PER_S), IN(set_slice_ns)},
	{"slices",          BOOL, IN(slices)},
	{"max_held",        WHOLE(0, 1000000), IN(max_held)},
	{"activity",        WORD(activity_words), IN(activity)},
	{"activity_window", DURATION(GP_NS_PER_MS, 60 * GP_NS_PER_S), IN(activity_window_ns)},
};
#undef IN

enum {
	KEY_TASK_NAME, KEY_CLASS, KEY_PRIORITY, KEY_WEIGHT, KEY_SHARE, KEY_CEILING,
	KEY_DEADLINE, KEY_BUDGET, KEY_GANG, KEY_LOAD, KEY_EVERY, KEY_RATE, KEY_KERNEL, KEY_GAP, KEY_HINT, KEY_START, KEY_STOP, KEY_SLICE,
	KEY_COUNT, TASK_KEYS
};

#define IN(member) AT(struct task_entry, member)
static const struct gp_yaml_key task_keys[] = {
	[KEY_TASK_NAME] = {"name",     TEXT, IN(task.name)},
	[KEY_CLASS]     = {"class",    WORD(class_words), IN(attr.class)},
	[KEY_PRIORITY]  = {"priority", WHOLE(0, GP_PRIORITY_MAX), IN(attr.priority)},
	[KEY_WEIGHT]    = {"weight",   WHOLE(1, 10000), IN(attr.weight)},
	[KEY_SHARE]     = {"share",    PERCENT, IN(attr.share_permille)},
	[KEY_CEILING]   = {"ceiling",  PERCENT, IN(attr.ceiling_permille)},
	[KEY_DEADLINE]  = {"deadline", DURATION(GP_NS_PER_US, HOUR), IN(attr.deadline_ns)},
	[KEY_BUDGET]    = {"budget",   DURATION(GP_NS_PER_US, HOUR), IN(attr.budget_ns)},
	[KEY_GANG]      = {"gang",     TEXT, IN(gang)},
	[KEY_LOAD]      = {"load",     WORD(load_words), IN(task.load)},
	[KEY_EVERY]     = {"every",    DURATION(GP_NS_PER_US, DAY), IN(task.every_ns)},
	[KEY_RATE]      = {"rate",     .type = GP_YAML_NUMBER, .unit = "requests per second",
				       .min = RATE_SCALE / 10000, .max = 1000000 * RATE_SCALE,
				       .scale = RATE_SCALE, IN(rate)},
	[KEY_KERNEL]    = {"kernel",   DURATION(GP_NS_PER_US, HOUR), IN(task.kernel_ns)},
	[KEY_GAP]       = {"gap",      DURATION(0, HOUR), IN(task.gap_ns)},
	[KEY_HINT]      = {"hint",     DURATION(0, 10 * GP_NS_PER_S), IN(task.hint_ns)},
	[KEY_START]     = {"start",    DURATION(0, DAY), IN(task.start_ns)},
	[KEY_STOP]      = {"stop",     DURATION(0, DAY), IN(task.stop_ns)},
	[KEY_SLICE]     = {"slice",    MICROSECONDS(GP_NS_PER_US, 10 * GP_NS_PER_S), IN(task.slice_us)},
	[KEY_COUNT]     = {"count",    WHOLE(1, TASKS_MAX), IN(count)},
};
#undef IN
/* clang-format on */

_Static_assert(TASK_KEYS <= GP_YAML_KEYS_MAX, "gp_yaml_read_map's array of lines");

static const struct gp_yaml_map scenario_map = {"a scenario", SCENARIO_KEYS, scenario_keys};
static const struct gp_yaml_map device_map = {
	"the device", sizeof device_keys / sizeof *device_keys, device_keys};
static const struct gp_yaml_map task_map = {"a task", TASK_KEYS, task_keys};

/* ---- a task -------------------------------------------------------------------------- */

static bool arrives(const struct task_entry *e)
{
	return e->task.load == GP_LOAD_PERIODIC || e->task.load == GP_LOAD_POISSON;
}

static int misfit(const struct gp_yaml *y, const struct task_entry *e, const unsigned line[],
                  unsigned key, const char *loads)
{
	if (!line[key])
		return 0;
	return gp_yaml_fail(y, line[key], "'%s' means nothing with load '%s'; it goes with %s",
	                    task_keys[key].name, load_words[e->task.load], loads);
}

static int check_fit(const struct gp_yaml *y, const struct task_entry *e, const unsigned line[])
{
	int r = 0;

	if (!arrives(e)) {
		r = misfit(y, e, line, KEY_EVERY, "periodic and poisson");
		r = r ? r : misfit(y, e, line, KEY_RATE, "periodic and poisson");
		r = r ? r : misfit(y, e, line, KEY_HINT, "periodic and poisson");
	}
	if (!r && e->task.load != GP_LOAD_CLOSED)
		r = misfit(y, e, line, KEY_GAP, "closed");
	if (!r && e->task.load == GP_LOAD_IDLE)
		r = misfit(y, e, line, KEY_KERNEL, "periodic, poisson and closed");
	return r;
}

/* `at` is the line on which the task begins. */
static int check_task(const struct gp_yaml *y, const struct task_entry *e, const unsigned line[],
                      unsigned at)
{
	const char *load = load_words[e->task.load];
	int r;

	if (!line[KEY_LOAD])
		return gp_yaml_fail(
			y, at, "the task needs 'load': one of periodic, poisson, closed, idle");
	r = check_fit(y, e, line);
	if (r)
		return r;
	if (line[KEY_EVERY] && line[KEY_RATE])
		return gp_yaml_fail(y, line[KEY_RATE],
		                    "'every' and 'rate' say the same thing; remove one of them");
	if (arrives(e) && !line[KEY_EVERY] && !line[KEY_RATE])
		return gp_yaml_fail(y, at, "the task needs 'every' or 'rate', as its load is '%s'",
		                    load);
	if (e->task.load != GP_LOAD_IDLE && !line[KEY_KERNEL])
		return gp_yaml_fail(y, at, "the task needs 'kernel', as its load is '%s'", load);
	if (e->task.stop_ns <= e->task.start_ns)
		return gp_yaml_fail(y, line[KEY_STOP], "'stop' must be later than 'start'");
	return 0;
}

static int compare_gangs(const void *a, const void *b)
{
	return strcmp(((const struct gang *)a)->name, ((const struct gang *)b)->name);
}

/* The number of the gang of that name: 1, 2, ... as they are first named. 0 or -ENOMEM. */
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
		                    "the task's name takes at most %zu bytes with the '-%u' of its "
		                    "last copy",
		                    sizeof e->task.name - 1, e->count);
	if (e->count > TASKS_MAX - r->scenario.ntasks)
		return gp_yaml_fail(y, at,
		                    "with this task and its copies there are more than %u tasks, "
		                    "the most there can be",
		                    TASKS_MAX);
	if (e->gang[0])
		failed = find_gang(r, e->gang, &e->attr.gang);
	return failed ? failed : add_copies(&r->scenario, e);
}

static int read_task(struct gp_yaml *y, void *target)
{
	struct reading *r = target;
	struct task_entry e = {
		.attr = GP_TASK_ATTR_DEFAULT, .task = {.stop_ns = GP_NEVER}, .count = 1};
	unsigned line[GP_YAML_KEYS_MAX], at = gp_yaml_line(y);
	int failed;

	snprintf(e.task.name, sizeof e.task.name, "task%u", ++r->entries);
	failed = gp_yaml_read_map(y, &task_map, &e, line);
	if (!failed)
		failed = check_task(y, &e, line, at);
	if (failed)
		return failed;
	if (line[KEY_RATE])
		e.task.every_ns = (GP_NS_PER_S * RATE_SCALE + e.rate / 2) / e.rate;
	return add_entry(y, r, &e, at);
}

/* ---- the rest ------------------------------------------------------------------------ */

static int read_tasks(struct gp_yaml *y, void *target)
{
	struct reading *r = target;
	unsigned at = gp_yaml_line(y);
	int failed = gp_yaml_read_list(y, "tasks", read_task, r);

	if (!failed && !r->scenario.ntasks)
		return gp_yaml_fail(y, at, "'tasks' is empty; a scenario needs at least one task");
	return failed;
}

static int read_device(struct gp_yaml *y, void *target)
{
	unsigned line[GP_YAML_KEYS_MAX];

	return gp_yaml_read_map(y, &device_map, &((struct reading *)target)->scenario.device, line);
}

static int read_scenario(struct gp_yaml *y, void *target)
{
	unsigned line[GP_YAML_KEYS_MAX], at = gp_yaml_line(y);
	int failed = gp_yaml_read_map(y, &scenario_map, target, line);

	if (!failed && !line[KEY_TASKS])
		return gp_yaml_fail(y, at, "a scenario needs 'tasks', a list of at least one task");
	return failed;
}

/* "h200-corun" for "scenarios/h200-corun.yaml". */
static void name_after_file(struct gp_scenario *s, const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	size_t length = strlen(base), suffix = strlen(".yaml");

	if (length > suffix && !strcmp(base + length - suffix, ".yaml"))
		length -= suffix;
	snprintf(s->name, sizeof s->name, "%.*s", (int)length, base);
}

int gp_scenario_parse(struct gp_scenario *s, const char *path, const char *text, size_t length,
                      struct gp_error *err)
{
	struct reading r = {0};
	int failed;

	gp_scenario_init(&r.scenario);
	name_after_file(&r.scenario, path);
	failed = gp_yaml_parse(path, text, length, read_scenario, &r, err);
	tdestroy(r.gangs, free);
	if (failed) {
		gp_scenario_free(&r.scenario);
		return gp_fail(err, failed, "%s: %s", path, gp_error_name(failed));
	}
	*s = r.scenario;
	return 0;
}

/* Up to `size` bytes of the file. Returns how many, or -errno. */
static ssize_t read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t length = 0;
	ssize_t n = 1;

	if (fd < 0)
		return -errno;
	while (n && length < size) {
		n = read(fd, text + length, size - length);
		if (n < 0 && errno != EINTR)
			break;
		length += n > 0 ? (size_t)n : 0;
	}
	n = n < 0 ? -errno : (ssize_t)length;
	close(fd);
	return n;
}

int gp_scenario_load(struct gp_scenario *s, const char *path, struct gp_error *err)
{
	size_t size = FILE_MAX + 1; /* one more than is allowed: then it is too large */
	char *text = malloc(size);
	ssize_t n;
	int r;

	if (!text)
		return gp_fail(err, -ENOMEM, "%s: %s", path, gp_error_name(-ENOMEM));
	n = read_file(path, text, size);
	if (n < 0)
		r = gp_fail(err, (int)n, "cannot read %s: %s", path, gp_error_name((int)n));
	else
		r = gp_scenario_parse(s, path, text, (size_t)n, err);
	free(text);
	return r;
}

#else

int gp_scenario_load(struct gp_scenario *s, const char *path, struct gp_error *err)
{
	return gp_scenario_parse(s, path, NULL, 0, err);
}

int gp_scenario_parse(struct gp_scenario *s, const char *path, const char *text, size_t length,
                      struct gp_error *err)
{
	(void)s, (void)path, (void)text, (void)length;
	return gp_fail(err, -ENOTSUP, "this build reads no YAML; install libyaml and build again");
}
#endif
