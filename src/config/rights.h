/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may do what to whom. Pure functions: whoever calls them has looked at the peer, the owner and
 * the namespaces, and looks again before it acts.
 *
 * Users change their own processes: downwards always, upwards to what a rule gives the process or
 * to the limit that the administrator gave them. The rest needs root or the group `gpreempt`, in
 * the daemon's own pid namespace: root of a container is a user like any other, and its processes
 * are those of its namespace.
 */
#ifndef GP_CONFIG_RIGHTS_H
#define GP_CONFIG_RIGHTS_H

#include "config/config.h"

/* Who asks, as the kernel says (SO_PEERCRED, and /proc for the rest). */
struct gp_peer {
	uid_t uid;
	bool admin;       /* root, or in the group: gp_peer_is_admin */
	bool other_pidns; /* is in another pid namespace than the daemon */
};

/* Whose process it is about. */
struct gp_subject {
	uid_t uid[3];        /* real, effective, saved: all of them count */
	bool same_pidns;     /* as the peer */
	bool is_self;        /* it is the peer itself */
	bool gang_of_others; /* processes of other users are held and released with it */
};

enum gp_change_kind {
	GP_CHANGE_READ, /* what there is to know about it; no target: about everybody */
	GP_CHANGE_HINT, /* a hint or a bracket, which are about oneself */
	GP_CHANGE_ATTR, /* from -> to */
	GP_CHANGE_HOLD,
	GP_CHANGE_RELEASE,    /* of a hold that hold_uid made */
	GP_CHANGE_RESUME_ALL, /* these three have no target */
	GP_CHANGE_POLICY,
	GP_CHANGE_RELOAD,
	GP_CHANGE_KINDS,
};

struct gp_change {
	enum gp_change_kind kind;

	/* GP_CHANGE_ATTR. The gang of `to` is made by gp_gang_of_user of the target's user, or
	 * by gp_gang_of_admin if gp_peer_administers. */
	const struct gp_task_attr *from, *to;
	const struct gp_limit *limit; /* the peer's for it: gp_config_limit, gp_limit_add_given */
	uint32_t tasks; /* that the peer has described by himself, with this one; 0: not counted */

	/* GP_CHANGE_RELEASE */
	uid_t hold_uid;
	bool hold_by_admin; /* made by somebody as an administrator, or by a rule */
};

/* The group's members; without a group, root only. */
bool gp_peer_is_admin(uid_t uid, const gid_t *gid, uint32_t ngids, bool has_group, gid_t group);

/*
 * An administrator of this machine, not of a container on it. Also whether a hold counts as an
 * administrator's, and a gang's name is one.
 */
bool gp_peer_administers(const struct gp_peer *peer);

/* 0, or -EPERM with one sentence that says what to do. `target` may be NULL where there is none. */
int gp_rights_check(const struct gp_peer *peer, const struct gp_subject *target,
                    const struct gp_change *change, struct gp_error *err);

/* be < unmanaged < lc: 0, 1, 2. */
unsigned gp_class_rank(uint8_t class);

/* How much of a device its deadline and budget amount to, rounded up; 0: it asks for none. */
uint64_t gp_promise_permille(const struct gp_task_attr *attr);

/* What both allow together. */
void gp_limit_widen(struct gp_limit *limit, const struct gp_limit *by);

/* Takes from `attr` what is above the limit; true if that was anything. */
bool gp_limit_clamp(const struct gp_limit *limit, struct gp_task_attr *attr);

#endif
