/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon does about its configuration: at the beginning, and when it is read again. */
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/control.h"

static int load_config(struct gp_control *c, struct gp_config **config, struct gp_error *err)
{
	bool chosen, had = *c->config_path;
	const char *path = gp_config_path(c->options.config, &chosen);

	*c->config_path = 0;
	if (!chosen && !had && access(path, F_OK)) /* one that is gone is a mistake */
		return gp_config_default(config);
	snprintf(c->config_path, sizeof c->config_path, "%s", path);
	return gp_config_load(path, config, err);
}

int gp_control_policy(struct gp_control *c, const char *device, struct gp_policy_choice *choice,
                      struct gp_error *err)
{
	const char *said = gp_roster_policy(c->roster);
	bool ignore;

	if (*said && !gp_policy_parse(said, choice, NULL)) /* an older daemon may have known more */
		return 0;
	if (c->options.policy)
		return gp_policy_parse(c->options.policy, choice, err);
	*choice = gp_config_device(c->config, device, &ignore)->choice;
	return 0;
}

static void use_config(struct gp_control *c)
{
	struct group *group = getgrnam("gpreempt");

	c->group = c->config->sockets.has_group ? c->config->sockets.group
	           : group                      ? group->gr_gid
	                                        : (gid_t)-1;
	gp_log_set_level((enum gp_log_level)c->config->log_level);
}

int gp_control_configure(struct gp_control *c, struct gp_error *err)
{
	int r = load_config(c, &c->config, err);

	if (!r)
		use_config(c);
	return r;
}

static void tell_config(struct gp_control *c, const char *text)
{
	struct json_object *event = gp_news_new(c, GP_TOPIC_CONFIG);

	if (!event)
		return;
	json_object_object_add(event, "text", json_object_new_string(text));
	gp_news_tell(c, GP_TOPIC_CONFIG, event);
}

/* What devices there are, how their threads run, sockets, clients and addresses stay as they are
 * until a restart. */
int gp_control_reload(struct gp_control *c, struct gp_error *err)
{
	struct gp_config *config;
	char path[sizeof c->config_path];
	int r;

	memcpy(path, c->config_path, sizeof path);
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu",
	           (unsigned long long)(gp_now_ns(&gp_clock_monotonic) / 1000));
	r = load_config(c, &config, err);
	sd_notify(0, "READY=1");
	if (r) {
		memcpy(c->config_path, path, sizeof path);
		gp_log(GP_LOG_ERROR, "config.wrong", "%s; the old one stays", err->text);
		tell_config(c, err->text);
		return r;
	}
	if (!c->began_with)
		c->began_with = c->config;
	else
		gp_config_free(c->config);
	c->config = config;
	gp_warn_of_restart(c->began_with, config);
	use_config(c);
	for (unsigned i = 0; i < c->nhosts; i++) {
		struct gp_order order = {.kind = GP_ORDER_POLICY};

		if (gp_control_policy(c, gp_host_info(c->host[i])->name, &order.policy, NULL))
			continue;
		if (!memcmp(&order.policy, &c->policy[i], sizeof order.policy))
			continue;
		c->policy[i] = order.policy;
		gp_host_order(c->host[i], &order);
	}
	gp_bounds_renew(c);
	gp_newcomers_again(c);
	gp_log(GP_LOG_INFO, "config.loaded", "file=%s rules=%u", c->config_path, c->config->nrules);
	tell_config(c, "loaded");
	return 0;
}
