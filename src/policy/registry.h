/* SPDX-License-Identifier: Apache-2.0 */
/* The table of policies. A new policy needs its own file or folder, and one line in registry.c. */
#ifndef GP_POLICY_REGISTRY_H
#define GP_POLICY_REGISTRY_H

#include "base/error.h"
#include "policy/policy.h"

#define GP_PARAM_MAX 16

extern const struct gp_policy_ops gp_policy_none;
extern const struct gp_policy_ops gp_policy_priority;
extern const struct gp_policy_ops gp_policy_rr;
extern const struct gp_policy_ops gp_policy_fair;
extern const struct gp_policy_ops gp_policy_share;
extern const struct gp_policy_ops gp_policy_mlfq;
extern const struct gp_policy_ops gp_policy_edf;
extern const struct gp_policy_ops gp_policy_lax;
extern const struct gp_policy_ops gp_policy_qos;

/* All policies; `none`, the baseline, is first. The table ends with NULL. */
extern const struct gp_policy_ops *const gp_policies[];

/* The attributes by the bits of enum gp_attr_use: "class", "priority", ... Ends with NULL. */
extern const char *const gp_attr_use_names[];

/* Returns NULL if no policy has that name. */
const struct gp_policy_ops *gp_policy_find(const char *name);

/* A policy with values for its parameters. */
struct gp_policy_choice {
	const struct gp_policy_ops *ops;
	int64_t param[GP_PARAM_MAX];
};

/* Parses "rr" or "priority:quantum=50:age_after=200". Returns 0, or -EINVAL with a message in
 * `err`. */
int gp_policy_parse(const char *text, struct gp_policy_choice *choice, struct gp_error *err);

void gp_policy_defaults(const struct gp_policy_ops *ops, struct gp_policy_choice *choice);

#endif
