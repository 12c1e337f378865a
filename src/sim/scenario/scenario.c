/* SPDX-License-Identifier: Apache-2.0 */
/* A scenario and its file (man gpreempt-scenario(5)). */
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/scenario/parse_scenario.h"
#include "sim/scenario/scenario.h"

#define FILE_MAX ((size_t)1 << 20)

void gp_scenario_init(struct gp_scenario *s)
{
	*s = (struct gp_scenario){
		.duration_ns = 10 * GP_NS_PER_S,
		.seed = 1,
		.devices = 1,
		.device = gp_sim_h200,
	};
}

void gp_scenario_free(struct gp_scenario *s)
{
	for (uint32_t i = 0; i < s->nlists; i++)
		free(s->list[i]);
	free((void *)s->list);
	s->list = NULL;
	s->nlists = 0;
	free(s->task);
	free(s->attr);
	free(s->alone_ns);
	s->alone_ns = NULL;
	s->task = NULL;
	s->attr = NULL;
	s->ntasks = 0;
}

/* Both arrays have room for the next power of two, so they grow only at these sizes. */
static int grow(struct gp_scenario *s)
{
	size_t capacity = s->ntasks ? 2 * (size_t)s->ntasks : 1;
	void *grown;

	if (s->ntasks & (s->ntasks - 1))
		return 0;
	grown = reallocarray(s->task, capacity, sizeof *s->task);
	if (!grown)
		return -ENOMEM;
	s->task = grown;
	grown = reallocarray(s->attr, capacity, sizeof *s->attr);
	if (!grown)
		return -ENOMEM;
	s->attr = grown;
	return 0;
}

int gp_scenario_add(struct gp_scenario *s, const struct gp_sim_task *task,
		    const struct gp_task_attr *attr)
{
	int r = grow(s);

	if (r)
		return r;
	free(s->alone_ns);
	s->alone_ns = NULL;
	s->task[s->ntasks] = *task;
	s->attr[s->ntasks] = *attr;
	s->ntasks++;
	return 0;
}

int gp_scenario_keep(struct gp_scenario *s, uint64_t *list)
{
	uint64_t **grown = reallocarray((void *)s->list, s->nlists + 1, sizeof *grown);

	if (!grown) {
		free(list);
		return -ENOMEM;
	}
	s->list = grown;
	s->list[s->nlists++] = list;
	return 0;
}

static void note_name(struct reading *r, const char *name)
{
	size_t used = strlen(r->names);

	snprintf(r->names + used, sizeof r->names - used, "%s%s", used ? ", " : "", name);
}

/*
 * The change of a value is made while the file is read, right after the value in the file. So the
 * same checks (ranges, units, combinations) apply to it.
 */
int gp_scenario_change(struct reading *r, struct gp_yaml *y, const char *of,
		       const struct gp_yaml_map *map, void *target, unsigned line[GP_YAML_KEYS_MAX])
{
	const struct gp_scenario_change *c = r->change;

	if (!c)
		return 0;
	if (of[0] && strcmp(of, "device") != 0)
		note_name(r, of);
	if (strcmp(of, c->of) != 0)
		return 0;
	r->changed = true;
	return gp_yaml_set(y, map, target, line, c->key, c->value);
}

/* Returns -EINVAL with a message if the change was not applied. */
static int check_change(const struct reading *r, struct gp_error *err)
{
	if (!r->change || r->changed)
		return 0;
	return gp_fail(err, -EINVAL, "there is no task '%s' in %s; its tasks are: %s",
		       r->change->of, r->path, r->names);
}

/* clang-format off */
enum {
	KEY_NAME, KEY_ABOUT, KEY_DURATION, KEY_SEED, KEY_DEVICES, KEY_DEVICE, KEY_TASKS,
	SCENARIO_KEYS
};

#define IN(member) AT(struct reading, scenario.member)
static const struct gp_yaml_key scenario_keys[] = {
	[KEY_NAME]     = {"name",     TEXT, IN(name)},
	[KEY_ABOUT]    = {"about",    TEXT, IN(about)},
	[KEY_DURATION] = {"duration", DURATION(GP_NS_PER_MS, DAY), IN(duration_ns)},
	[KEY_SEED]     = {"seed",     WHOLE(0, UINT64_MAX), IN(seed)},
	[KEY_DEVICES]  = {"devices",  WHOLE(1, 100000), IN(devices)},
	[KEY_DEVICE]   = {"device",   NESTED(gp_scenario_read_device)},
	[KEY_TASKS]    = {"tasks",    NESTED(gp_scenario_read_tasks)},
};
#undef IN
/* clang-format on */

static const struct gp_yaml_map scenario_map = {"a scenario", SCENARIO_KEYS, scenario_keys};

static int read_scenario(struct gp_yaml *y, void *target)
{
	unsigned line[GP_YAML_KEYS_MAX], at = gp_yaml_line(y);
	int failed = gp_yaml_read_map(y, &scenario_map, target, line);

	if (!failed && !line[KEY_DEVICE])
		failed = gp_scenario_no_device(y, target);
	if (!failed)
		failed = gp_scenario_change(target, y, "", &scenario_map, target, line);
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

static const struct gp_yaml_kind kind = {"scenario", "tasks", "gpreempt-scenario(5)"};

static int parse(struct gp_scenario *s, const char *path, const char *text, size_t length,
		 const struct gp_scenario_change *change, struct gp_error *err)
{
	struct reading r = {.path = path, .err = err, .change = change};
	int failed;

	gp_scenario_init(&r.scenario);
	name_after_file(&r.scenario, path);
	failed = gp_yaml_parse(&kind, path, text, length, read_scenario, &r, err);
	tdestroy(r.gangs, free);
	if (!failed)
		failed = check_change(&r, err);
	if (failed) {
		gp_scenario_free(&r.scenario);
		return gp_fail(err, failed, "%s: %s", path, gp_error_name(failed));
	}
	*s = r.scenario;
	return 0;
}

int gp_scenario_parse(struct gp_scenario *s, const char *path, const char *text, size_t length,
		      struct gp_error *err)
{
	return parse(s, path, text, length, NULL, err);
}

ssize_t gp_scenario_read_file(const char *path, char *text, size_t size)
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
	return gp_scenario_load_changed(s, path, NULL, err);
}

int gp_scenario_load_changed(struct gp_scenario *s, const char *path,
			     const struct gp_scenario_change *change, struct gp_error *err)
{
	size_t size = FILE_MAX + 1; /* one more byte than is allowed, to detect a larger file */
	char *text = malloc(size);
	ssize_t n;
	int r;

	if (!text)
		return gp_fail(err, -ENOMEM, "%s: %s", path, gp_error_name(-ENOMEM));
	n = gp_scenario_read_file(path, text, size);
	if (n < 0)
		r = gp_fail(err, (int)n, "cannot read %s: %s", path, gp_error_name((int)n));
	else
		r = parse(s, path, text, (size_t)n, change, err);
	free(text);
	return r;
}
