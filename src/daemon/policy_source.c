/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which policy a device has, and where it comes from. The command line of a start and a changed
 * configuration replace a policy that a user chose at run time. A restart with an unchanged
 * configuration keeps that choice.
 */
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "daemon/control.h"
#include "daemon/usernames.h"

const char *const gp_policy_source_names[] = {
	[GP_POLICY_CONFIGURED] = "configuration",
	[GP_POLICY_COMMAND_LINE] = "command_line",
	[GP_POLICY_CHOSEN] = "user",
};

int gp_policy_configured(const struct gp_control *c, const char *device,
			 struct gp_policy_choice *choice, struct gp_policy_origin *origin,
			 struct gp_error *err)
{
	bool ignore;

	*origin = (struct gp_policy_origin){.source = GP_POLICY_CONFIGURED};
	if (c->options.policy) {
		origin->source = GP_POLICY_COMMAND_LINE;
		return gp_policy_parse(c->options.policy, choice, err);
	}
	*choice = gp_config_device(c->config, device, &ignore)->choice;
	return 0;
}

int gp_control_policy(const struct gp_control *c, const char *device,
		      struct gp_policy_choice *choice, struct gp_policy_origin *origin,
		      struct gp_error *err)
{
	const struct gp_chosen_policy *chosen = gp_assignments_policy(c->assignments);

	/* A daemon of another version may have written a policy that is unknown here. */
	if (!*chosen->text || gp_policy_parse(chosen->text, choice, NULL))
		return gp_policy_configured(c, device, choice, origin, err);
	*origin = (struct gp_policy_origin){
		.source = GP_POLICY_CHOSEN, .by = chosen->by, .at_ns = chosen->at_ns};
	return 0;
}

static void log_chosen(const struct gp_chosen_policy *chosen, enum gp_log_level level,
		       const char *event, const char *text)
{
	time_t seconds = (time_t)(chosen->at_ns / GP_NS_PER_S);
	char user[32] = "?", at[32] = "?";
	struct tm tm;

	if (chosen->by != GP_BY_UNKNOWN) {
		gp_user_name(chosen->by, user, sizeof user);
		if (gmtime_r(&seconds, &tm))
			strftime(at, sizeof at, "%FT%TZ", &tm);
	}
	gp_log(level, event, "policy=%s by=%s at=%s text=\"%s\"", chosen->text, user, at, text);
}

static void drop_chosen(struct gp_control *c, const char *why)
{
	struct gp_error err = {0};

	log_chosen(gp_assignments_policy(c->assignments), GP_LOG_WARN, "policy.choice-dropped",
		   why);
	if (gp_assignments_set_policy(c->assignments, &(struct gp_chosen_policy){0}, &err))
		gp_log(GP_LOG_ERROR, "policy.not-written", "text=\"%s\"", err.text);
}

void gp_policy_review(struct gp_control *c)
{
	struct gp_chosen_policy chosen = *gp_assignments_policy(c->assignments);

	c->policies_key = gp_config_policies_key(c->config);
	if (!*chosen.text)
		return;
	if (c->options.policy) {
		drop_chosen(c, "--policy of the command line replaces it");
	} else if (chosen.configured && chosen.configured != c->policies_key) {
		drop_chosen(c, "the policy in the configuration was changed and replaces it");
	} else {
		log_chosen(&chosen, GP_LOG_INFO, "policy.choice-kept",
			   "'gpreempt policy --default' returns to the configuration");
		chosen.configured = c->policies_key;
		gp_assignments_set_policy(c->assignments, &chosen, NULL);
	}
}

void gp_policy_reload(struct gp_control *c)
{
	uint64_t key = gp_config_policies_key(c->config);

	if (key == c->policies_key)
		return;
	c->policies_key = key;
	if (c->options.policy) {
		gp_log(GP_LOG_WARN, "policy.overridden",
		       "policy=%s text=\"--policy of the command line overrides the changed "
		       "configuration\"",
		       c->options.policy);
		return;
	}
	if (*gp_assignments_policy(c->assignments)->text)
		drop_chosen(c, "the policy in the configuration was changed and replaces it");
	for (unsigned i = 0; i < c->nthreads; i++) {
		struct gp_command command = {.kind = GP_COMMAND_POLICY};
		const char *name = gp_device_thread_info(c->thread[i])->name;
		bool chosen = c->policy_origin[i].source == GP_POLICY_CHOSEN;

		if (gp_policy_configured(c, name, &command.policy, &c->policy_origin[i], NULL) ||
		    !memcmp(&command.policy, &c->policy[i], sizeof command.policy))
			continue;
		gp_log(GP_LOG_INFO, "policy.configured", "device=%u policy=%s before=%s%s", i,
		       command.policy.ops->name, c->policy[i].ops->name,
		       chosen ? " chosen_by_user" : "");
		c->policy[i] = command.policy;
		gp_device_thread_command(c->thread[i], &command);
	}
}
