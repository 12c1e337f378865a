/* SPDX-License-Identifier: Apache-2.0 */
#include "base/accounts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"

void gp_accounts_init(struct gp_accounts *a, const char *path)
{
	*a = (struct gp_accounts){.path = path};
}

void gp_accounts_free(struct gp_accounts *a)
{
	free(a->range);
}

static void add(struct gp_accounts *a, struct gp_account_range *r)
{
	struct gp_account_range *more = realloc(a->range, (a->n + 1) * sizeof *more);

	if (!more)
		return;
	a->range = more;
	r->account = r->first;
	for (unsigned i = a->n; i-- > 0;)
		if (!strcmp(more[i].user, r->user))
			r->account = more[i].account;
	more[a->n++] = *r;
}

/* Lines are "user:first:count". */
static void read_file(struct gp_accounts *a)
{
	FILE *f = fopen(a->path, "re");
	struct gp_account_range r;
	char line[256], *first, *count;

	a->n = 0;
	while (f && fgets(line, sizeof line, f)) {
		first = strchr(line, ':');
		count = first ? strchr(first + 1, ':') : NULL;
		if (!count || first == line || (size_t)(first - line) >= sizeof r.user)
			continue;
		*first = 0;
		memcpy(r.user, line, (size_t)(first - line) + 1);
		r.first = (uid_t)strtoul(first + 1, NULL, 10);
		r.count = (unsigned)strtoul(count + 1, NULL, 10);
		add(a, &r);
	}
	if (f)
		fclose(f);
}

static void renew(struct gp_accounts *a)
{
	uint64_t now = gp_monotonic_ns();
	struct stat s = {0};

	if (a->checked_ns && now - a->checked_ns < GP_NS_PER_S)
		return;
	a->checked_ns = now;
	if (!a->path || stat(a->path, &s))
		s.st_ctim = (struct timespec){0};
	if (s.st_ctim.tv_sec == a->changed.tv_sec && s.st_ctim.tv_nsec == a->changed.tv_nsec)
		return;
	a->changed = s.st_ctim;
	read_file(a);
}

uid_t gp_account_of(struct gp_accounts *a, uid_t uid)
{
	renew(a);
	for (unsigned i = 0; i < a->n; i++)
		if (uid >= a->range[i].first && uid - a->range[i].first < a->range[i].count)
			return a->range[i].account;
	return uid;
}
