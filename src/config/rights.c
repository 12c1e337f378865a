/* SPDX-License-Identifier: Apache-2.0 */
#include "config/rights.h"

#include <errno.h>

bool gp_peer_administers(const struct gp_peer *peer)
{
	return peer->admin && !peer->other_pidns;
}

static int need_admin(const struct gp_peer *peer, const char *what, struct gp_error *err)
{
	if (peer->admin)
		return gp_fail(err, -EPERM,
			       "%s is allowed only for administrators outside containers; run it "
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
			       "the process is outside this container; change it on the host");
	for (unsigned i = 0; i < 3; i++)
		if (t->uid[i] != peer->uid)
			return t->uid[0] == peer->uid || t->uid[2] == peer->uid
				       ? gp_fail(err, -EPERM,
						 "the process also has the rights of user %u; only "
						 "root and members of the group gpreempt may "
						 "change it (try sudo)",
						 t->uid[i])
				       : gp_fail(err, -EPERM,
						 "the process belongs to user %u; only root and "
						 "members of the group gpreempt may change it (try "
						 "sudo)",
						 t->uid[i]);
	return 0;
}

static uint32_t ceiling_of(const struct gp_task_attr *a)
{
	return a->ceiling_permille ? a->ceiling_permille : 1000;
}

static int above(struct gp_error *err, const char *what, unsigned long limit)
{
	return gp_fail(err, -EPERM,
		       "your limit for %s is %lu; use a lower value, or ask an administrator to "
		       "raise the limit",
		       what, limit);
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
			       "your limit allows no deadlines; leave the deadline out, or ask an "
			       "administrator to raise the limit");
	if (is_shorter(c->to, c->from) && c->to->deadline_ns < c->limit->deadline_ns)
		return gp_fail(err, -EPERM,
			       "the shortest deadline of your limit is %lu us; use a longer one, "
			       "or ask an administrator to change the limit",
			       (unsigned long)(c->limit->deadline_ns / GP_NS_PER_US));
	if (promise > gp_promise_permille(c->from) && promise > c->limit->share_permille)
		return gp_fail(
			err, -EPERM,
			"deadline and budget require %lu.%lu percent of the device, but your limit "
			"for share is %u.%u; use less, or ask an administrator to raise the limit",
			(unsigned long)(promise / 10), (unsigned long)(promise % 10),
			c->limit->share_permille / 10, c->limit->share_permille % 10);
	return 0;
}

/* Each value is checked by itself. A value that is not raised is always allowed. */
static int check_raise(const struct gp_change *c, struct gp_error *err)
{
	const struct gp_task_attr *from = c->from, *to = c->to;
	const struct gp_limit *limit = c->limit;

	if (gp_class_rank(to->class) > gp_class_rank(from->class) &&
	    gp_class_rank(to->class) > gp_class_rank(limit->class))
		return gp_fail(err, -EPERM,
			       "class %s is above your limit, which is %s; use a lower class, or "
			       "ask an administrator",
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

static int check_gang(const struct gp_subject *t, const char *what, struct gp_error *err)
{
	if (!t->gang_of_others)
		return 0;
	return gp_fail(err, -EPERM,
		       "its gang has processes of other users, which would be %s too; only root "
		       "and members of the group gpreempt may do that (try sudo)",
		       what);
}

static int check_attr(const struct gp_change *c, struct gp_error *err)
{
	if (c->tasks > c->limit->max_tasks)
		return gp_fail(err, -EPERM,
			       "you have set attributes of %u processes, and your limit is %u; end "
			       "some of them, or ask an administrator",
			       c->tasks - 1, c->limit->max_tasks);
	return check_raise(c, err);
}

static int check_release(const struct gp_peer *peer, const struct gp_subject *t,
			 const struct gp_change *c, struct gp_error *err)
{
	if (c->hold_by_admin)
		return gp_fail(err, -EPERM,
			       "an administrator holds the process; only root and members of the "
			       "group gpreempt may release it (try sudo)");
	if (c->hold_uid != peer->uid)
		return gp_fail(err, -EPERM,
			       "user %u holds the process; only that user, root and members of the "
			       "group gpreempt may release it (try sudo)",
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
		return 0; /* /proc shows the same to all users */
	if (!t)
		return gp_fail(
			err, -EPERM,
			"a client in a container sees only its own processes; run it on the host");
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
		return gp_fail(
			err, -EPERM,
			"a hint is about the program that sends it; send it from that program");
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
		return gp_fail(err, -EPERM, "the request needs a target process");
	case GP_CHANGE_RESUME_ALL: return need_admin(peer, "resuming everything", err);
	case GP_CHANGE_POLICY: return need_admin(peer, "changing the policy", err);
	case GP_CHANGE_RELOAD: return need_admin(peer, "reloading the configuration", err);
	default: return gp_fail(err, -EPERM, "this request is never allowed");
	}
}
