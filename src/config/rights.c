/* SPDX-License-Identifier: Apache-2.0 */
#include "config/rights.h"

#include <errno.h>

bool gp_peer_is_admin(uid_t uid, const gid_t *gid, uint32_t ngids, bool has_group, gid_t group)
{
	if (!uid)
		return true;
	for (uint32_t i = 0; has_group && i < ngids; i++)
		if (gid[i] == group)
			return true;
	return false;
}

bool gp_peer_administers(const struct gp_peer *peer)
{
	return peer->admin && !peer->other_pidns;
}

/* ---- whose it is --------------------------------------------------------------------- */

static int need_admin(const struct gp_peer *peer, const char *what, struct gp_error *err)
{
	if (peer->admin)
		return gp_fail(err, -EPERM,
		               "%s is for administrators outside of containers; do it "
		               "on the host",
		               what);
	return gp_fail(err, -EPERM,
	               "%s needs root or the group gpreempt; ask an administrator, or "
	               "use sudo",
	               what);
}

static int check_owner(const struct gp_peer *peer, const struct gp_subject *t, struct gp_error *err)
{
	if (peer->other_pidns && !t->same_pidns)
		return gp_fail(err, -EPERM,
		               "the process is outside of this container; change it on the host");
	for (unsigned i = 0; i < 3; i++)
		if (t->uid[i] != peer->uid)
			return t->uid[0] == peer->uid || t->uid[2] == peer->uid
			               ? gp_fail(err, -EPERM,
			                         "the process runs with the rights of user %u, "
			                         "too; "
			                         "use root or the group gpreempt",
			                         t->uid[i])
			               : gp_fail(err, -EPERM,
			                         "the process belongs to user %u; use root or the "
			                         "group gpreempt",
			                         t->uid[i]);
	return 0;
}

/* ---- how high ------------------------------------------------------------------------ */

static uint32_t ceiling_of(const struct gp_task_attr *a)
{
	return a->ceiling_permille ? a->ceiling_permille : 1000;
}

static int above(struct gp_error *err, const char *what, unsigned long limit)
{
	return gp_fail(err, -EPERM,
	               "your limit for %s is %lu; ask for less, or an administrator for more", what,
	               limit);
}

static bool is_shorter(const struct gp_task_attr *to, const struct gp_task_attr *from)
{
	return to->deadline_ns && (!from->deadline_ns || to->deadline_ns < from->deadline_ns);
}

static int check_deadline(const struct gp_change *c, struct gp_error *err)
{
	uint64_t promise = gp_promise_permille(c->to);

	if (is_shorter(c->to, c->from) && c->limit->deadline_ns == GP_NEVER)
		return gp_fail(err, -EPERM,
		               "you may not ask for deadlines; leave it out, or ask an "
		               "administrator for a limit that allows them");
	if (is_shorter(c->to, c->from) && c->to->deadline_ns < c->limit->deadline_ns)
		return gp_fail(err, -EPERM,
		               "your shortest deadline is %lu us; ask for a longer one, or an "
		               "administrator for a shorter limit",
		               (unsigned long)(c->limit->deadline_ns / GP_NS_PER_US));
	if (promise > gp_promise_permille(c->from) && promise > c->limit->share_permille)
		return gp_fail(
			err, -EPERM,
			"deadline and budget ask for %lu.%lu percent of the device and your "
			"limit for share is %u.%u; ask for less, or an administrator for more",
			(unsigned long)(promise / 10), (unsigned long)(promise % 10),
			c->limit->share_permille / 10, c->limit->share_permille % 10);
	return 0;
}

/* Each value for itself: what is not above what it was may always be asked for. */
static int check_height(const struct gp_change *c, struct gp_error *err)
{
	const struct gp_task_attr *from = c->from, *to = c->to;
	const struct gp_limit *limit = c->limit;

	if (gp_class_rank(to->class) > gp_class_rank(from->class) &&
	    gp_class_rank(to->class) > gp_class_rank(limit->class))
		return gp_fail(err, -EPERM,
		               "class %s is above your limit, which is %s; use a lower one, or ask "
		               "an administrator",
		               gp_class_name(to->class), gp_class_name(limit->class));
	if (to->priority > from->priority && to->priority > limit->priority)
		return above(err, "priority", limit->priority);
	if (to->weight > from->weight && to->weight > limit->weight)
		return above(err, "weight", limit->weight);
	if (to->share_permille > from->share_permille && to->share_permille > limit->share_permille)
		return above(err, "share (percent)", limit->share_permille / 10);
	if (ceiling_of(to) > ceiling_of(from) && ceiling_of(to) > limit->ceiling_permille)
		return above(err, "ceiling (percent)", limit->ceiling_permille / 10);
	return check_deadline(c, err);
}

/* ---- all together -------------------------------------------------------------------- */

static int check_gang(const struct gp_subject *t, const char *what, struct gp_error *err)
{
	if (!t->gang_of_others)
		return 0;
	return gp_fail(err, -EPERM,
	               "processes of other users are in its gang and would be %s with it; use root "
	               "or the group gpreempt",
	               what);
}

static int check_attr(const struct gp_change *c, struct gp_error *err)
{
	if (c->tasks > c->limit->max_tasks)
		return gp_fail(err, -EPERM,
		               "you have described %u processes and your limit is %u; end some, or "
		               "ask an administrator",
		               c->tasks - 1, c->limit->max_tasks);
	return check_height(c, err);
}

static int check_release(const struct gp_peer *peer, const struct gp_subject *t,
                         const struct gp_change *c, struct gp_error *err)
{
	if (c->hold_by_admin)
		return gp_fail(err, -EPERM,
		               "an administrator holds it; ask one to release it, or use root or "
		               "the group gpreempt");
	if (c->hold_uid != peer->uid)
		return gp_fail(err, -EPERM,
		               "user %u holds it; ask them to release it, or use root or the group "
		               "gpreempt",
		               c->hold_uid);
	return check_gang(t, "released", err);
}

static int check_for_user(const struct gp_peer *peer, const struct gp_subject *t,
                          const struct gp_change *c, struct gp_error *err)
{
	int r = check_owner(peer, t, err);

	if (r)
		return r;
	switch (c->kind) {
	case GP_CHANGE_ATTR: return check_attr(c, err);
	case GP_CHANGE_HOLD: return check_gang(t, "held", err);
	case GP_CHANGE_RELEASE: return check_release(peer, t, c, err);
	default: return 0;
	}
}

static int check_read(const struct gp_peer *peer, const struct gp_subject *t, struct gp_error *err)
{
	if (!peer->other_pidns || (t && t->is_self))
		return 0; /* as /proc shows it to everybody */
	if (!t)
		return gp_fail(err, -EPERM,
		               "from a container only its own processes can be looked at; look on "
		               "the host");
	return check_owner(peer, t, err);
}

int gp_rights_check(const struct gp_peer *peer, const struct gp_subject *target,
                    const struct gp_change *change, struct gp_error *err)
{
	switch (change->kind) {
	case GP_CHANGE_READ: return check_read(peer, target, err);
	case GP_CHANGE_HINT:
		if (target && target->is_self)
			return 0;
		return gp_fail(err, -EPERM,
		               "a hint is about the program that sends it; send it from there");
	default: break;
	}
	if (gp_peer_administers(peer))
		return 0;
	switch (change->kind) {
	case GP_CHANGE_ATTR:
	case GP_CHANGE_HOLD:
	case GP_CHANGE_RELEASE:
		if (target)
			return check_for_user(peer, target, change, err);
		return gp_fail(err, -EPERM, "it is about a process; say which");
	case GP_CHANGE_RESUME_ALL: return need_admin(peer, "to resume everything", err);
	case GP_CHANGE_POLICY: return need_admin(peer, "to change the policy", err);
	case GP_CHANGE_RELOAD: return need_admin(peer, "to reload the configuration", err);
	default: return gp_fail(err, -EPERM, "nobody may do that");
	}
}
