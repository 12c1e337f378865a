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
enum gp_said { GP_SAID_DEFAULT, GP_SAID_RULE, GP_SAID_USER };

#define GP_GANG_NAME_MAX 64
#define GP_BY_ADMIN      ((uid_t)-1)

struct gp_entry {
	pid_t pid;
	uint64_t start_time;
	enum gp_said said;
	bool inherit; /* holds for descendants, too, that have no entry of their own */
	uid_t by;     /* who said it, if a user did: an administrator's word holds for all
	               * descendants, that of others for their own processes */
	unsigned rule;
	struct gp_task_attr attr;
	char gang[GP_GANG_NAME_MAX]; /* the name that attr.gang stands for; "" = none */
};

struct gp_roster;

/* Reads what is in the file and forgets those that are gone. `path` NULL: no file. */
int gp_roster_open(const char *path, struct gp_roster **roster, struct gp_error *err);
void gp_roster_close(struct gp_roster *roster);

/* The entry of the process or, if that one is inherited, of the nearest ancestor. */
bool gp_roster_find(struct gp_roster *r, pid_t pid, uint64_t start_time, struct gp_entry *entry);

/* Only its own. */
bool gp_roster_get(struct gp_roster *r, pid_t pid, uint64_t start_time, struct gp_entry *entry);

/* Adds or replaces. What a user said is in the file when this returns. */
int gp_roster_put(struct gp_roster *r, const struct gp_entry *entry, struct gp_error *err);
void gp_roster_drop(struct gp_roster *r, pid_t pid, uint64_t start_time);

/* What rules said is forgotten: there are new ones. */
void gp_roster_drop_rules(struct gp_roster *r);

/* Calls `each` for every entry; it must not change the roster. */
void gp_roster_each(struct gp_roster *r, void (*each)(void *arg, const struct gp_entry *entry),
                    void *arg);

/* The policy that somebody chose at run time, as text; "" = that of the configuration. Outlives the
 * daemon as well. */
int gp_roster_set_policy(struct gp_roster *r, const char *text, struct gp_error *err);
const char *gp_roster_policy(const struct gp_roster *r);

#endif
