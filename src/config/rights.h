/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access rights: which user may change which process. Pure functions: the caller has read the peer,
 * the owner and the namespaces, and reads them again before it acts.
 *
 * Users may always lower their own processes. They may raise them to what a rule gives the process,
 * or to the limit that the administrator gave them. Everything else needs root or the group
 * `gpreempt` in the daemon's pid namespace. Root in a container is an ordinary user, restricted to
 * processes in its namespace.
 */
#ifndef GP_CONFIG_RIGHTS_H
#define GP_CONFIG_RIGHTS_H

#include "config/config.h"

/* The client, as the kernel reports it (SO_PEERCRED and /proc). */
struct gp_peer {
	uid_t uid;
	bool admin;       /* root or a member of the group */
	bool other_pidns; /* in another pid namespace than the daemon */
};

/* The process that the request is about. */
struct gp_subject {
	uid_t uid[3];        /* real, effective, saved; all must match */
	bool same_pidns;     /* in the pid namespace of the peer */
	bool is_self;        /* is the peer itself */
	bool gang_of_others; /* its gang has processes of other users */
};

enum gp_change_kind {
	GP_CHANGE_READ, /* read its state; without a target: of all processes */
	GP_CHANGE_HINT, /* a hint or a request mark, only about the peer itself */
	GP_CHANGE_ATTR, /* from -> to */
	GP_CHANGE_HOLD,
	GP_CHANGE_RELEASE,    /* of a hold that hold_uid made */
	GP_CHANGE_RESUME_ALL, /* this and the next two have no target */
	GP_CHANGE_POLICY,
	GP_CHANGE_RELOAD,
	GP_CHANGE_KINDS,
};

struct gp_change {
	enum gp_change_kind kind;

	/*
	 * For GP_CHANGE_ATTR. The gang of `to` is made by gp_gang_of_user with the target's user,
	 * or by gp_gang_of_admin if gp_peer_administers.
	 */
	const struct gp_task_attr *from, *to;
	const struct gp_limit *limit; /* the peer's limit: gp_config_limit, gp_limit_add_given */
	uint32_t tasks;               /* set by the peer, with this one; 0: not counted */

	/* For GP_CHANGE_RELEASE. */
	uid_t hold_uid;
	bool hold_by_admin; /* made by an administrator or by a rule */
};

/*
 * An administrator of this machine, not of a container on it. Also decides whether a hold and a
 * gang name count as an administrator's.
 */
bool gp_peer_administers(const struct gp_peer *peer);

/*
 * 0, or -EPERM with a message that says what to do. `target` may be NULL for changes without one.
 */
int gp_rights_check(const struct gp_peer *peer, const struct gp_subject *target,
		    const struct gp_change *change, struct gp_error *err);

/* Rank of a class: be 0, unmanaged 1, lc 2. */
unsigned gp_class_rank(uint8_t class);

/* The share of a device that deadline and budget require, rounded up; 0: no deadline. */
uint64_t gp_promise_permille(const struct gp_task_attr *attr);

/* Makes `limit` allow what either of the two allows. */
void gp_limit_widen(struct gp_limit *limit, const struct gp_limit *by);

/* Reduces `attr` to the limit; true if anything changed. */
bool gp_limit_clamp(const struct gp_limit *limit, struct gp_task_attr *attr);

#endif
