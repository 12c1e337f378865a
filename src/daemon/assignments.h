/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assignments: the attributes of processes as users and rules set them, whether the process has
 * queues yet or not. A device thread reads the assignment of a new process, so its attributes apply
 * from the first queue on.
 *
 * Assignments of users are also appended to a file before the call returns, and a restarted daemon
 * reads them. Any thread may read; only the control thread changes them.
 */
#ifndef GP_DAEMON_ASSIGNMENTS_H
#define GP_DAEMON_ASSIGNMENTS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "engine/engine.h"

/* Attribute source. */
enum gp_attr_source { GP_ATTR_BY_DEFAULT, GP_ATTR_BY_RULE, GP_ATTR_BY_USER };

#define GP_GANG_NAME_MAX 64
#define GP_BY_ADMIN      ((uid_t)-1)

struct gp_assignment {
	pid_t pid;
	uint64_t start_time;
	enum gp_attr_source source;
	bool inherit; /* see gp_assignments_find */
	uid_t by;     /* the user that set it, or GP_BY_ADMIN */
	unsigned rule;
	struct gp_task_attr attr;
	char gang[GP_GANG_NAME_MAX]; /* the name behind attr.gang; "" = none */
};

struct gp_assignments;

/* Reads the file and drops entries of processes that have ended. `path` NULL: no file. */
int gp_assignments_open(const char *path, struct gp_assignments **assignments,
			struct gp_error *err);
void gp_assignments_close(struct gp_assignments *r);

/*
 * The entry of the process, or the entry of its nearest ancestor if that has `inherit`. An entry of
 * an administrator applies to all descendants, that of another user to that user's processes.
 */
bool gp_assignments_find(struct gp_assignments *r, pid_t pid, uint64_t start_time,
			 struct gp_assignment *entry);

/* The entry of the process itself only. */
bool gp_assignments_get(struct gp_assignments *r, pid_t pid, uint64_t start_time,
			struct gp_assignment *entry);

/* Adds or replaces an entry. An entry of a user is in the file when this returns. */
int gp_assignments_put(struct gp_assignments *r, const struct gp_assignment *entry,
		       struct gp_error *err);
void gp_assignments_drop(struct gp_assignments *r, pid_t pid, uint64_t start_time);

/* Drops all entries of rules, because the rules have changed. */
void gp_assignments_drop_rules(struct gp_assignments *r);

/* Calls `each` for every entry; it must not change the assignments. */
void gp_assignments_each(struct gp_assignments *r,
			 void (*each)(void *arg, const struct gp_assignment *entry), void *arg);

/* A policy that a user chose at run time for all devices. */
struct gp_chosen_policy {
	char text[256];      /* "" = none: the configured policy applies */
	uid_t by;            /* GP_BY_UNKNOWN in a file of an older version */
	uint64_t at_ns;      /* CLOCK_REALTIME */
	uint64_t configured; /* gp_config_policies_key at that time; 0 = not known */
};
#define GP_BY_UNKNOWN ((uid_t)-1)

/* Kept in the file as well. */
int gp_assignments_set_policy(struct gp_assignments *r, const struct gp_chosen_policy *chosen,
			      struct gp_error *err);
/* Never NULL. */
const struct gp_chosen_policy *gp_assignments_policy(const struct gp_assignments *r);

#endif
