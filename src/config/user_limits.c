/* SPDX-License-Identifier: Apache-2.0 */
/* How far users may raise their own processes: combining and applying limits. */
#include "config/config.h"
#include "config/rights.h"

const struct gp_limit gp_limit_default = {
	.class = GP_UNMANAGED,
	.priority = 0,
	.weight = 100,
	.share_permille = 0,
	.ceiling_permille = 1000,
	.deadline_ns = GP_NEVER,
	.memory = UINT64_MAX,
	.max_tasks = 1024,
};

const struct gp_limit gp_limit_least = {
	.class = GP_BEST_EFFORT,
	.deadline_ns = GP_NEVER,
	.memory = UINT64_MAX,
	.max_tasks = 1024,
};

const struct gp_limit gp_limit_none = {
	.class = GP_LATENCY_CRITICAL,
	.priority = GP_PRIORITY_MAX,
	.weight = UINT32_MAX,
	.share_permille = 1000,
	.ceiling_permille = 1000,
	.deadline_ns = 0,
	.memory = UINT64_MAX,
	.max_tasks = UINT32_MAX,
};

unsigned gp_class_rank(uint8_t class)
{
	switch (class) {
	case GP_BEST_EFFORT: return 0;
	case GP_LATENCY_CRITICAL: return 2;
	default: return 1;
	}
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t more(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void gp_limit_widen(struct gp_limit *l, const struct gp_limit *by)
{
	if (gp_class_rank(by->class) > gp_class_rank(l->class))
		l->class = by->class;
	l->priority = (uint8_t)more(l->priority, by->priority);
	l->weight = (uint32_t)more(l->weight, by->weight);
	l->share_permille = (uint32_t)more(l->share_permille, by->share_permille);
	l->ceiling_permille = (uint32_t)more(l->ceiling_permille, by->ceiling_permille);
	l->deadline_ns = less(l->deadline_ns, by->deadline_ns);
	l->memory = more(l->memory, by->memory);
	l->max_tasks = (uint32_t)more(l->max_tasks, by->max_tasks);
}

/* Makes `l` allow only what both allow. */
static void narrow(struct gp_limit *l, const struct gp_limit *by)
{
	if (gp_class_rank(by->class) < gp_class_rank(l->class))
		l->class = by->class;
	l->priority = (uint8_t)less(l->priority, by->priority);
	l->weight = (uint32_t)less(l->weight, by->weight);
	l->share_permille = (uint32_t)less(l->share_permille, by->share_permille);
	l->ceiling_permille = (uint32_t)less(l->ceiling_permille, by->ceiling_permille);
	l->deadline_ns = more(l->deadline_ns, by->deadline_ns);
	l->memory = less(l->memory, by->memory);
	l->max_tasks = (uint32_t)less(l->max_tasks, by->max_tasks);
}

static void add_groups(const struct gp_config *c, const gid_t *gid, uint32_t ngids,
		       struct gp_limit *limit)
{
	for (uint32_t i = 0; i < c->ngroups; i++)
		for (uint32_t j = 0; j < ngids; j++)
			if (c->group[i].id == gid[j]) {
				gp_limit_widen(limit, &c->group[i].limit);
				break;
			}
}

static struct gp_limit limit_of_user(const struct gp_config *c, struct gp_limit limit, uid_t uid,
				     const gid_t *gid, uint32_t ngids)
{
	for (uint32_t i = 0; i < c->nusers; i++)
		if (c->user[i].id == uid)
			gp_limit_widen(&limit, &c->user[i].limit);
	add_groups(c, gid, ngids, &limit);
	return limit;
}

struct gp_limit gp_config_limit(const struct gp_config *c, uid_t uid, const gid_t *gid,
				uint32_t ngids)
{
	return limit_of_user(c, c->granted, uid, gid, ngids);
}

void gp_limit_add_given(struct gp_limit *limit, const struct gp_task_attr *given)
{
	struct gp_limit by = {
		.class = given->class,
		.priority = given->priority,
		.weight = given->weight,
		.share_permille = given->share_permille,
		.ceiling_permille = given->ceiling_permille ? given->ceiling_permille : 1000,
		.deadline_ns = given->deadline_ns ? given->deadline_ns : GP_NEVER,
	};
	uint64_t promise = less(gp_promise_permille(given), 1000);

	by.share_permille = (uint32_t)more(by.share_permille, promise);
	gp_limit_widen(limit, &by);
}

struct gp_limit gp_config_limit_of(const struct gp_config *c, const struct gp_procinfo *info)
{
	struct gp_limit limit = gp_limit_none;

	if (!(info->known & GP_PROCINFO_USER))
		return c->limit;
	for (unsigned i = 0; i < 3; i++) {
		struct gp_limit one;

		if (!info->uid[i] && !info->other_pidns)
			continue;
		one = limit_of_user(c, c->limit, info->uid[i], info->group, info->ngroups);
		add_groups(c, &info->gid, 1, &one);
		narrow(&limit, &one);
	}
	return limit;
}

uint64_t gp_promise_permille(const struct gp_task_attr *attr)
{
	unsigned __int128 permille = attr->budget_ns;

	if (!attr->deadline_ns)
		return 0;
	permille = (permille * 1000 + attr->deadline_ns - 1) / attr->deadline_ns;
	return permille < UINT64_MAX ? (uint64_t)permille : UINT64_MAX;
}

/* Deadline and budget together guarantee budget / deadline of the device. */
static bool clamp_promise(const struct gp_limit *limit, struct gp_task_attr *attr)
{
	struct gp_task_attr was = *attr;

	if (!attr->deadline_ns)
		return false;
	if (attr->deadline_ns < limit->deadline_ns)
		attr->deadline_ns = limit->deadline_ns;
	if (gp_promise_permille(attr) > limit->share_permille)
		attr->budget_ns = attr->deadline_ns / 1000 * limit->share_permille;
	/* No deadline is allowed, or the budget became 0. */
	if (limit->deadline_ns == GP_NEVER || (was.budget_ns && !attr->budget_ns))
		attr->deadline_ns = attr->budget_ns = 0;
	return was.deadline_ns != attr->deadline_ns || was.budget_ns != attr->budget_ns;
}

bool gp_limit_clamp(const struct gp_limit *limit, struct gp_task_attr *attr)
{
	uint32_t ceiling = attr->ceiling_permille ? attr->ceiling_permille : 1000;
	struct gp_task_attr was = *attr;
	bool clamped = clamp_promise(limit, attr);

	if (gp_class_rank(attr->class) > gp_class_rank(limit->class))
		attr->class = limit->class;
	attr->priority = (uint8_t)less(attr->priority, limit->priority);
	attr->weight = (uint32_t)less(attr->weight, limit->weight);
	attr->share_permille = (uint32_t)less(attr->share_permille, limit->share_permille);
	if (ceiling > limit->ceiling_permille)
		attr->ceiling_permille = limit->ceiling_permille;
	return clamped || was.class != attr->class || was.priority != attr->priority ||
	       was.weight != attr->weight || was.share_permille != attr->share_permille ||
	       was.ceiling_permille != attr->ceiling_permille;
}
