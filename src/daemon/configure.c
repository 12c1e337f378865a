/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's configuration: finds and loads the file. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/control.h"

static int load_config(struct gp_reading *r)
{
	bool chosen;
	const char *path = gp_config_path(r->option, &chosen);

	if (!chosen && !r->had_file &&
	    access(path, F_OK)) /* a file that existed at start must not vanish */
		return gp_config_default(&r->config);
	snprintf(r->path, sizeof r->path, "%s", path);
	return gp_config_load(path, &r->config, &r->err);
}

static gid_t find_group(const struct gp_config *config)
{
	gid_t group;

	if (config->sockets.has_group)
		return config->sockets.group;
	return gp_config_system_names.group("gpreempt", &group) ? (gid_t)-1 : group;
}

void gp_configuration_read(struct gp_reading *r)
{
	r->code = load_config(r);
	if (r->code)
		return;
	r->group = find_group(r->config);
	for (unsigned i = 0; i < r->nusers; i++)
		r->limit[i] = gp_bounds_of(r->config, r->user[i]);
}

void gp_configuration_use(struct gp_control *c, const struct gp_reading *r)
{
	memcpy(c->config_path, r->path, sizeof c->config_path);
	c->config = r->config;
	c->group = r->group;
	gp_log_set_level((enum gp_log_level)c->config->log_level);
}

int gp_control_configure(struct gp_control *c, struct gp_error *err)
{
	struct gp_reading r = {.option = c->options.config};

	gp_configuration_read(&r);
	if (!r.code)
		gp_configuration_use(c, &r);
	else if (err)
		*err = r.err;
	return r.code;
}
