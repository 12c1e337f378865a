/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the configuration file (man gpreempt.yaml(5)): the top level, devices and scheduler. The
 * other sections are in parse_rules.c, parse_service.c and user_limits.c.
 */
#include "config/config.h"

#include <errno.h>
#include <stdlib.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/glob.h"
#include "config/parse_config.h"
#include "yaml/value.h"

static const char *const gpu_words[] = {
	[GP_CONFIG_GPU_ALL] = "all",
	[GP_CONFIG_GPU_NVIDIA] = "nvidia",
	[GP_CONFIG_GPU_AMD] = "amd",
	[GP_CONFIG_GPU_SIM] = "sim",
	NULL,
};

static const char *const log_words[] = {
	[GP_LOG_DEBUG] = "debug",
	[GP_LOG_INFO] = "info",
	[GP_LOG_WARN] = "warn",
	[GP_LOG_ERROR] = "error",
	NULL,
};

void *gp_config_grow(void *list, uint32_t n, size_t size)
{
	char *more = reallocarray(list, n + 1, size);

	if (more)
		memset(more + n * size, 0, size);
	return more;
}

static int check_policy(const struct gp_yaml *y, unsigned line, struct gp_config_policy *policy)
{
	struct gp_error err = {0};

	if (gp_policy_parse(policy->text, &policy->choice, &err))
		return gp_yaml_fail(y, line, "%s", err.text);
	return 0;
}

static int check_device(const struct gp_yaml *y, const struct gp_config *c,
			struct gp_config_device *d, const unsigned line[], unsigned at)
{
	const char *mistake = gp_glob_mistake(d->match);

	if (!line[0])
		return gp_yaml_fail(y, at, "the device needs 'match', a part of its name");
	if (mistake)
		return gp_yaml_fail(y, line[0], "'match' %s", mistake);
	for (uint32_t i = 0; i < c->ndevices; i++)
		if (!strcmp(c->device[i].match, d->match))
			return gp_yaml_fail(y, line[0],
					    "device %s is listed twice; remove one of them",
					    gp_yaml_show_text(d->match).text);
	if (line[1] && d->ignore)
		return gp_yaml_fail(y, line[1],
				    "'policy' has no effect on a device with 'ignore: true'; "
				    "remove one of them");
	if (!line[1] && !d->ignore)
		return gp_yaml_fail(y, at, "the device needs 'policy' or 'ignore: true'");
	d->has_policy = line[1] != 0;
	return d->has_policy ? check_policy(y, line[1], &d->policy) : 0;
}

static int read_device(struct gp_yaml *y, void *target)
{
	static const struct gp_yaml_key keys[] = {
		{"match", TEXT, AT(struct gp_config_device, match)},
		{"policy", TEXT, AT(struct gp_config_device, policy.text)},
		{"ignore", BOOL, AT(struct gp_config_device, ignore)},
	};
	static const struct gp_yaml_map map = {"a device", 3, keys};
	struct gp_config *c = &((struct gp_config_reading *)target)->config;
	unsigned line[GP_YAML_KEYS_MAX], at = gp_yaml_line(y);
	struct gp_config_device d = {0}, *list;
	int r = gp_yaml_read_map(y, &map, &d, line);

	if (!r)
		r = check_device(y, c, &d, line, at);
	if (r)
		return r;
	if (c->ndevices == GP_CONFIG_DEVICES_MAX)
		return gp_yaml_fail(y, at,
				    "'devices' has more than %u entries; use fewer, with * in "
				    "'match'",
				    GP_CONFIG_DEVICES_MAX);
	list = gp_config_grow(c->device, c->ndevices, sizeof d);
	if (!list)
		return -ENOMEM;
	c->device = list;
	list[c->ndevices++] = d;
	return 0;
}

static int read_devices(struct gp_yaml *y, void *target)
{
	return gp_yaml_read_list(y, "devices", read_device, target);
}

static int read_scheduler(struct gp_yaml *y, void *target)
{
	/* clang-format off */
#define IN(member) AT(struct gp_config_scheduler, member)
	static const struct gp_yaml_key keys[] = {
		{"realtime",     WHOLE(0, 99), IN(realtime)},
		{"core",         WHOLE(0, 65535), IN(core)},
		{"check",        DURATION(100 * GP_NS_PER_US, GP_NS_PER_S), IN(check_ns)},
		{"check_lc",     DURATION(100 * GP_NS_PER_US, GP_NS_PER_S), IN(check_lc_ns)},
		{"check_quiet",  DURATION(GP_NS_PER_MS, 60 * GP_NS_PER_S), IN(check_quiet_ns)},
		{"scan",         DURATION(GP_NS_PER_MS, 60 * GP_NS_PER_S), IN(scan_every_ns)},
		{"starve_limit", DURATION(GP_NS_PER_S, HOUR), IN(starve_limit_ns)},
	};
#undef IN
	/* clang-format on */
	static const struct gp_yaml_map map = {"'scheduler'", sizeof keys / sizeof *keys, keys};
	struct gp_config_scheduler *s = &((struct gp_config_reading *)target)->config.scheduler;
	unsigned line[GP_YAML_KEYS_MAX];
	int r = gp_yaml_read_map(y, &map, s, line);
	long cores = sysconf(_SC_NPROCESSORS_CONF);

	if (!r && line[1] && cores > 0 && s->core >= (unsigned long)cores)
		return gp_yaml_fail(y, line[1],
				    "there is no core %u; this machine has cores 0 to %ld", s->core,
				    cores - 1);
	if (!r && line[2] && line[3] && s->check_lc_ns > s->check_ns)
		return gp_yaml_fail(y, line[3],
				    "'check_lc' (%s) must not be longer than 'check' (%s)",
				    gp_value_show_duration(s->check_lc_ns).text,
				    gp_value_show_duration(s->check_ns).text);
	return r;
}

/* clang-format off */
enum {
	KEY_POLICY, KEY_GPU, KEY_DEVICES, KEY_SCHEDULER, KEY_SOCKETS, KEY_CLIENTS, KEY_METRICS,
	KEY_LOG, KEY_MEMORY, KEY_ON_MEMORY, KEY_RULES, KEY_LIMITS, CONFIG_KEYS
};

static const char *const memory_words[] = {"event", "hold", NULL};

#define IN(member) AT(struct gp_config_reading, config.member)
static const struct gp_yaml_key config_keys[] = {
	[KEY_POLICY]    = {"policy",    TEXT, IN(policy.text)},
	[KEY_GPU]       = {"gpu",       WORD(gpu_words), IN(gpu)},
	[KEY_DEVICES]   = {"devices",   NESTED(read_devices)},
	[KEY_SCHEDULER] = {"scheduler", NESTED(read_scheduler)},
	[KEY_SOCKETS]   = {"sockets",   NESTED(gp_config_read_sockets)},
	[KEY_CLIENTS]   = {"clients",   NESTED(gp_config_read_clients)},
	[KEY_METRICS]   = {"metrics",   NESTED(gp_config_read_metrics)},
	[KEY_LOG]       = {"log",       WORD(log_words), IN(log_level)},
	[KEY_MEMORY]    = {"memory_limit", SIZE(1 << 20, 1ull << 50), IN(memory_limit)},
	[KEY_ON_MEMORY] = {"on_memory_limit", WORD(memory_words), IN(on_memory_limit)},
	[KEY_RULES]     = {"rules",     NESTED(gp_config_read_rules)},
	[KEY_LIMITS]    = {"limits",    NESTED(gp_config_read_limits)},
};
#undef IN
/* clang-format on */

static const struct gp_yaml_map config_map = {"a configuration", CONFIG_KEYS, config_keys};

static int read_config(struct gp_yaml *y, void *target)
{
	struct gp_config *c = &((struct gp_config_reading *)target)->config;
	unsigned line[GP_YAML_KEYS_MAX];
	int r = gp_yaml_read_map(y, &config_map, target, line);

	if (!r && line[KEY_POLICY])
		r = check_policy(y, line[KEY_POLICY], &c->policy);
	if (!r && line[KEY_ON_MEMORY] && !line[KEY_MEMORY])
		return gp_yaml_fail(y, line[KEY_ON_MEMORY],
				    "'on_memory_limit' has no effect without 'memory_limit'; add "
				    "'memory_limit'");
	return r;
}

static const struct gp_config defaults = {
	.policy = {.text = "priority"},
	.scheduler = {.core = GP_CONFIG_NO_CORE},
	.sockets = {.control = {.mode_text = "0666", .mode = 0666},
		    .hint = {.mode_text = "0666", .mode = 0666},
		    .group_name = "gpreempt"},
	.clients = {.max = 256,
		    .per_user = 64,
		    .request_size = 64 << 10,
		    .rate = 1000,
		    .idle_ns = 300 * GP_NS_PER_S},
	.metrics = {.listen = "off"},
	.log_level = GP_LOG_INFO,
};

static void fill_defaults(struct gp_config *c, const struct gp_config_names *names)
{
	*c = defaults;
	gp_policy_defaults(gp_policy_find(c->policy.text), &c->policy.choice);
	c->limit = gp_limit_default;
	c->granted = gp_limit_least;
	c->sockets.has_group = !names->group(c->sockets.group_name, &c->sockets.group);
}

static void free_content(struct gp_config *c)
{
	free(c->device);
	free(c->rule);
	free(c->user);
	free(c->group);
}

void gp_config_free(struct gp_config *config)
{
	if (config)
		free_content(config);
	free(config);
}

int gp_config_default(struct gp_config **config)
{
	*config = malloc(sizeof **config);
	if (!*config)
		return -ENOMEM;
	fill_defaults(*config, &gp_config_system_names);
	return 0;
}

int gp_config_parse(const char *path, const char *text, size_t length,
		    const struct gp_config_names *names, struct gp_config **config,
		    struct gp_error *err)
{
	static const struct gp_yaml_kind kind = {"configuration", NULL, "gpreempt.yaml(5)"};
	struct gp_config_reading r = {.names = names};
	int failed;

	fill_defaults(&r.config, names);
	failed = gp_yaml_parse(&kind, path, text, length, read_config, &r, err);
	*config = failed ? NULL : malloc(sizeof **config);
	if (!failed && !*config)
		failed = -ENOMEM;
	if (failed) {
		free_content(&r.config);
		return gp_fail(err, failed, "%s: %s", path, gp_error_name(failed));
	}
	**config = r.config;
	return 0;
}
