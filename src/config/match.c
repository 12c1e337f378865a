/* SPDX-License-Identifier: Apache-2.0 */
/* Which rule matches a process, and what it gives: attributes, and the number of its gang. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/process.h"
#include "config/config.h"
#include "config/glob.h"
#include "config/rights.h"

/* Comparisons for one process and all rules together: some milliseconds for any input. */
#define STEPS_MAX (1u << 20)

#define VALUE_MAX 4096u /* a longer value of a variable matches no glob */

/*
 * Gang numbers. The two highest bits say what the gang is named after. A user's number contains the
 * uid, so that no hash collision leads into another user's gang.
 */

enum { OF_PROCESS, OF_USER, OF_ADMIN, OF_CGROUP };

#define KIND_SHIFT 62
#define USER_SHIFT 30
#define FNV_BASIS  0xcbf29ce484222325ull

/* FNV-1a. */
static uint64_t fnv(uint64_t h, const char *bytes, size_t n)
{
	for (; n; n--, bytes++)
		h = (h ^ (unsigned char)*bytes) * 0x100000001b3ull;
	return h;
}

static uint64_t with_kind(uint64_t kind, uint64_t number)
{
	number &= (1ull << KIND_SHIFT) - 1;
	return kind << KIND_SHIFT | (number ? number : 1);
}

/* FNV-1a with a final mix, so that every byte reaches every bit. */
static uint64_t hash(const char *text)
{
	uint64_t h = fnv(FNV_BASIS, text, strlen(text));

	h = (h ^ h >> 33) * 0xff51afd7ed558ccdull;
	return h ^ h >> 33;
}

uint64_t gp_gang_of_user(uid_t uid, const char *name)
{
	return with_kind(OF_USER, (uint64_t)uid << USER_SHIFT | hash(name) >> (64 - USER_SHIFT));
}

uint64_t gp_gang_of_admin(const char *name)
{
	return with_kind(OF_ADMIN, hash(name));
}

uint64_t gp_gang_of_cgroup(const char *path)
{
	return with_kind(OF_CGROUP, hash(path));
}

uint64_t gp_gang_of_process(uint64_t start_time, pid_t pid)
{
	return with_kind(OF_PROCESS, gp_process_key(start_time, pid));
}

/* Matching. */

enum fit { FITS_NOT, FITS_PERHAPS, FITS };

struct matching {
	const struct gp_procinfo *info;
	uint32_t steps;
};

static enum fit fit_text(struct matching *l, const char *pattern, const char *text, size_t length)
{
	if (gp_glob(pattern, text, length, &l->steps))
		return FITS;
	return l->steps ? FITS_NOT : FITS_PERHAPS;
}

static enum fit fit_user(const struct gp_procinfo *f, uid_t uid)
{
	/* All three: a set-uid program belongs neither to its owner nor to its caller. */
	return f->uid[0] == uid && f->uid[1] == uid && f->uid[2] == uid ? FITS : FITS_NOT;
}

static enum fit fit_group(const struct gp_procinfo *f, gid_t gid)
{
	if (f->gid == gid)
		return FITS;
	for (uint32_t i = 0; i < f->ngroups; i++)
		if (f->group[i] == gid)
			return FITS;
	return FITS_NOT;
}

static enum fit fit_env(struct matching *l, const struct gp_criteria *m)
{
	const char *at = l->info->environ, *end = at + l->info->environ_size;

	while (at < end) {
		size_t length = strnlen(at, (size_t)(end - at));
		size_t rest = length - m->env_name - 1; /* length after NAME= */

		if (!l->steps)
			return FITS_PERHAPS;
		l->steps--;
		if (length > m->env_name && at[m->env_name] == '=' &&
		    !memcmp(at, m->env, m->env_name)) {
			if (!m->env[m->env_name])
				return FITS;
			return rest > VALUE_MAX ? FITS_NOT
						: fit_text(l, m->env + m->env_name + 1,
							   at + m->env_name + 1, rest);
		}
		at += length + 1;
	}
	return FITS_NOT;
}

static const struct {
	uint32_t asks, needs;
} needs[] = {
	{GP_ASKS_USER, GP_PROCINFO_USER},     {GP_ASKS_GROUP, GP_PROCINFO_USER},
	{GP_ASKS_CGROUP, GP_PROCINFO_CGROUP}, {GP_ASKS_EXE, GP_PROCINFO_EXE},
	{GP_ASKS_COMM, GP_PROCINFO_COMM},     {GP_ASKS_CMDLINE, GP_PROCINFO_CMDLINE},
	{GP_ASKS_ENV, GP_PROCINFO_ENVIRON},
};

static enum fit fit_criterion(struct matching *l, const struct gp_criteria *m, uint32_t asks)
{
	const struct gp_procinfo *f = l->info;

	switch (asks) {
	case GP_ASKS_USER: return fit_user(f, m->user);
	case GP_ASKS_GROUP: return fit_group(f, m->group);
	case GP_ASKS_CGROUP: return fit_text(l, m->cgroup, f->cgroup, strlen(f->cgroup));
	case GP_ASKS_EXE: return fit_text(l, m->exe, f->exe, strlen(f->exe));
	case GP_ASKS_COMM: return fit_text(l, m->comm, f->comm, strnlen(f->comm, sizeof f->comm));
	case GP_ASKS_CMDLINE: return fit_text(l, m->cmdline, f->cmdline, strlen(f->cmdline));
	default: return fit_env(l, m);
	}
}

/* The table lists cheap criteria first. The first mismatch ends the loop. */
static enum fit fit_rule(struct matching *l, const struct gp_criteria *m)
{
	enum fit all = FITS;

	for (unsigned i = 0; i < sizeof needs / sizeof *needs; i++) {
		enum fit one = FITS_PERHAPS;

		if (!(m->asks & needs[i].asks))
			continue;
		if (l->info->known & needs[i].needs)
			one = fit_criterion(l, m, needs[i].asks);
		if (one < all)
			all = one;
		if (all == FITS_NOT)
			break;
	}
	return all;
}

/* True if the user of the process controls nothing that took part in the match. */
static bool is_trusted(const struct gp_criteria *m, const struct gp_procinfo *f)
{
	if (m->asks & (GP_ASKS_COMM | GP_ASKS_CMDLINE | GP_ASKS_ENV))
		return false;
	if (m->asks & GP_ASKS_CGROUP && !f->cgroup_trusted)
		return false;
	return !(m->asks & GP_ASKS_EXE) || f->exe_trusted;
}

/* 0: not enough is known to name the gang. */
static uint64_t gang_of(const struct gp_rule *rule, const struct gp_procinfo *f, bool trusted)
{
	switch (rule->gang_kind) {
	case GP_GANG_PROCESS: return gp_gang_of_process(f->start_time, f->pid);
	case GP_GANG_NAMED:
		if (trusted)
			return gp_gang_of_admin(rule->gang);
		return f->known & GP_PROCINFO_USER ? gp_gang_of_user(f->uid[0], rule->gang) : 0;
	case GP_GANG_CGROUP:
		if (!(f->known & GP_PROCINFO_CGROUP))
			return 0;
		if (f->cgroup_trusted)
			return gp_gang_of_cgroup(f->cgroup);
		return f->known & GP_PROCINFO_USER ? gp_gang_of_user(f->uid[0], f->cgroup) : 0;
	default: return 0;
	}
}

static void apply(const struct gp_config *c, const struct gp_rule *rule,
		  const struct gp_procinfo *info, struct gp_match *out)
{
	struct gp_limit limit = gp_limit_none;

	out->trusted = is_trusted(&rule->match, info);
	out->attr = rule->attr;
	out->attr.gang = gang_of(rule, info, out->trusted);
	if (rule->gang_kind && !out->attr.gang)
		out->incomplete = true;
	if (rule->memory_limit) {
		out->memory_limit = rule->memory_limit;
		out->on_memory_limit = rule->on_memory_limit;
	}
	if (!out->trusted)
		limit = gp_config_limit_of(c, info);
	out->clamped = gp_limit_clamp(&limit, &out->attr);
	if (limit.memory != UINT64_MAX &&
	    (!out->memory_limit || out->memory_limit > limit.memory)) {
		out->memory_limit = limit.memory;
		out->clamped = true;
	}
}

int gp_config_match(const struct gp_config *c, const struct gp_procinfo *info, struct gp_match *out)
{
	struct matching l = {.info = info, .steps = STEPS_MAX};

	*out = (struct gp_match){.rule = -1,
				 .trusted = true,
				 .attr = GP_TASK_ATTR_DEFAULT,
				 .memory_limit = c->memory_limit,
				 .on_memory_limit = c->on_memory_limit};
	for (uint32_t i = 0; i < c->nrules; i++) {
		enum fit fit = fit_rule(&l, &c->rule[i].match);

		if (fit == FITS_PERHAPS)
			out->incomplete = true;
		if (fit != FITS)
			continue;
		out->rule = (int)i;
		apply(c, &c->rule[i], info, out);
		break;
	}
	return out->rule < 0 ? -ENOENT : 0;
}

uint32_t gp_config_wants(const struct gp_config *c)
{
	uint32_t wants = c->nrules ? GP_PROCINFO_USER : 0;

	for (uint32_t i = 0; i < c->nrules; i++) {
		for (unsigned j = 0; j < sizeof needs / sizeof *needs; j++)
			if (c->rule[i].match.asks & needs[j].asks)
				wants |= needs[j].needs;
		if (c->rule[i].gang_kind == GP_GANG_CGROUP)
			wants |= GP_PROCINFO_CGROUP;
	}
	return wants;
}

const struct gp_config_policy *gp_config_device(const struct gp_config *c, const char *name,
						bool *ignore)
{
	*ignore = false;
	for (uint32_t i = 0; i < c->ndevices; i++) {
		const struct gp_config_device *d = &c->device[i];
		char anywhere[sizeof d->match + 2];
		uint32_t steps = STEPS_MAX;

		snprintf(anywhere, sizeof anywhere, "*%s*", d->match);
		if (!gp_glob(anywhere, name, strlen(name), &steps))
			continue;
		*ignore = d->ignore;
		return d->has_policy ? &d->policy : &c->policy;
	}
	return &c->policy;
}

/* The end of the text is one more byte. */
static uint64_t add_text(uint64_t key, const char *text)
{
	return fnv(key, text, strlen(text) + 1);
}

uint64_t gp_config_policies_key(const struct gp_config *c)
{
	uint64_t key = add_text(FNV_BASIS, c->policy.text);

	for (uint32_t i = 0; i < c->ndevices; i++)
		if (c->device[i].has_policy)
			key = add_text(add_text(key, c->device[i].match), c->device[i].policy.text);
	return key ? key : 1;
}
