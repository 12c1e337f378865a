/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was said about processes, by a user or by a rule, whether they have queues yet or not. A
 * device's thread asks it for a newcomer, so what was said is in force with the first queue.
 *
 * What users said is also written to a file, a line a change, and outlives the daemon: a restarted
 * one knows it. Any thread may ask; the control thread alone changes it.
 */
#ifndef GP_DAEMON_ASSIGNMENTS_H
#define GP_DAEMON_ASSIGNMENTS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "engine/engine.h"

/* Who said it. */
enum gp_attr_source { GP_ATTR_BY_DEFAULT, GP_ATTR_BY_RULE, GP_ATTR_BY_USER };

#define GP_GANG_NAME_MAX 64
#define GP_BY_ADMIN      ((uid_t)-1)

struct gp_assignment {
	pid_t pid;
	uint64_t start_time;
	enum gp_attr_source source;
	bool inherit; /* holds for descendants, too, that have no entry of their own */
	uid_t by;     /* who said it, if a user did: an administrator's word holds for all
	               * descendants, that of others for their own processes */
	unsigned rule;
	struct gp_task_attr attr;
	char gang[GP_GANG_NAME_MAX]; /* the name that attr.gang stands for; "" = none */
};

struct gp_assignments;

/* Reads what is in the file and forgets those that are gone. `path` NULL: no file. */
int gp_assignments_open(const char *path, struct gp_assignments **assignments,
                        struct gp_error *err);
void gp_assignments_close(struct gp_assignments *assignments);

/* The entry of the process or, if that one is inherited, of the nearest ancestor. */
bool gp_assignments_find(struct gp_assignments *r, pid_t pid, uint64_t start_time,
                         struct gp_assignment *entry);

/* Only its own. */
bool gp_assignments_get(struct gp_assignments *r, pid_t pid, uint64_t start_time,
                        struct gp_assignment *entry);

/* Adds or replaces. What a user said is in the file when this returns. */
int gp_assignments_put(struct gp_assignments *r, const struct gp_assignment *entry,
                       struct gp_error *err);
void gp_assignments_drop(struct gp_assignments *r, pid_t pid, uint64_t start_time);

/* What rules said is forgotten: there are new ones. */
void gp_assignments_drop_rules(struct gp_assignments *r);

/* Calls `each` for every entry; it must not change the roster. */
void gp_assignments_each(struct gp_assignments *r,
                         void (*each)(void *arg, const struct gp_assignment *entry), void *arg);

/* The policy that somebody chose at run time, as text; "" = that of the configuration. Outlives the
 * daemon as well. */
int gp_assignments_set_policy(struct gp_assignments *r, const char *text, struct gp_error *err);
const char *gp_assignments_policy(const struct gp_assignments *r);

#endif
