/* SPDX-License-Identifier: Apache-2.0 */
/* Which changed keys of a new configuration apply only after a restart. */
#include <string.h>

#include "base/log.h"
#include "daemon/control.h"

static bool other_scheduler(const struct gp_config *a, const struct gp_config *b)
{
	const struct gp_config_scheduler *s = &a->scheduler, *t = &b->scheduler;

	return s->realtime != t->realtime || s->core != t->core || s->check_ns != t->check_ns ||
	       s->check_lc_ns != t->check_lc_ns || s->check_quiet_ns != t->check_quiet_ns ||
	       s->scan_every_ns != t->scan_every_ns || s->starve_limit_ns != t->starve_limit_ns;
}

static bool other_socket(const struct gp_config_socket *s, const struct gp_config_socket *t)
{
	return strcmp(s->path, t->path) != 0 || s->mode != t->mode;
}

/* The group of the socket files; the rights of its members change at once. */
static bool other_sockets(const struct gp_config *a, const struct gp_config *b)
{
	const struct gp_config_sockets *s = &a->sockets, *t = &b->sockets;

	return other_socket(&s->control, &t->control) || other_socket(&s->hint, &t->hint) ||
	       s->has_group != t->has_group || (s->has_group && s->group != t->group);
}

static bool other_clients(const struct gp_config *a, const struct gp_config *b)
{
	const struct gp_config_clients *s = &a->clients, *t = &b->clients;

	return s->max != t->max || s->per_user != t->per_user ||
	       s->request_size != t->request_size || s->rate != t->rate || s->idle_ns != t->idle_ns;
}

static bool other_metrics(const struct gp_config *a, const struct gp_config *b)
{
	return strcmp(a->metrics.listen, b->metrics.listen) != 0;
}

static bool other_gpu(const struct gp_config *a, const struct gp_config *b)
{
	return a->gpu != b->gpu;
}

/* The next ignored device from entry `*i` on, or NULL. */
static const char *next_ignored(const struct gp_config *c, uint32_t *i)
{
	while (*i < c->ndevices) {
		const struct gp_config_device *d = &c->device[(*i)++];

		if (d->ignore)
			return d->match;
	}
	return NULL;
}

static bool other_devices(const struct gp_config *a, const struct gp_config *b)
{
	uint32_t i = 0, j = 0;

	for (;;) {
		const char *one = next_ignored(a, &i), *other = next_ignored(b, &j);

		if (!one || !other)
			return one != other;
		if (strcmp(one, other) != 0)
			return true;
	}
}

void gp_warn_restart_needed(const struct gp_config *old, const struct gp_config *new)
{
	static const struct {
		const char *key;
		bool (*differs)(const struct gp_config *a, const struct gp_config *b);
	} keys[] = {
		{"gpu", other_gpu},
		{"devices: ignore", other_devices},
		{"scheduler", other_scheduler},
		{"sockets", other_sockets},
		{"clients", other_clients},
		{"metrics: listen", other_metrics},
	};

	for (unsigned i = 0; i < sizeof keys / sizeof *keys; i++)
		if (keys[i].differs(old, new))
			gp_log(GP_LOG_WARN, "config.restart",
			       "key=\"%s\" text=\"changed; the new value applies after a restart\"",
			       keys[i].key);
}
