/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt resume: what came of it, and how that is told. */
#include <stdio.h>
#include <stdlib.h>

#include "base/process.h"
#include "cli/cli.h"
#include "cli/verb/resume.h"

bool gp_outcome_is_told(const struct gp_outcome *o, pid_t pid)
{
	for (unsigned i = 0; i < o->n; i++)
		if (o->told[i] == pid)
			return true;
	return false;
}

void gp_outcome_note(struct gp_outcome *o, pid_t pid)
{
	pid_t *p;

	if (o->n == o->capacity) {
		o->capacity = o->capacity ? 2 * o->capacity : 64;
		p = realloc(o->told, o->capacity * sizeof *p);
		if (!p) {
			fputs("gpreempt: no memory\n", stderr);
			exit(GP_EXIT_FAILED);
		}
		o->told = p;
	}
	o->told[o->n++] = pid;
}

void gp_outcome_released(struct gp_outcome *o, pid_t pid, pid_t owner)
{
	char name[32], who[32];

	if (gp_outcome_is_told(o, pid))
		return;
	gp_outcome_note(o, pid);
	gp_process_name(pid, name, sizeof name);
	if (o->json) {
		printf("%s{\"pid\":%d,\"name\":", o->released ? "," : "", pid);
		gp_json_string(stdout, name);
		printf(owner ? ",\"holder\":%d}" : ",\"holder\":null}", owner);
	} else if (owner && gp_process_start_time(owner)) {
		printf("released %d (%s), in the hands of %d (%s)\n", pid, name, owner,
		       gp_process_name(owner, who, sizeof who));
	} else if (owner) {
		printf("released %d (%s), left behind by %d\n", pid, name, owner);
	} else {
		printf("released %d (%s)\n", pid, name);
	}
	o->released++;
}

void gp_outcome_failed(struct gp_outcome *o, pid_t pid, const struct gp_error *err)
{
	int code;

	if (gp_outcome_is_told(o, pid))
		return; /* of another record */
	code = gp_cli_fail(err);
	gp_outcome_note(o, pid);
	o->exit = o->exit ? o->exit : code == GP_EXIT_USAGE ? GP_EXIT_FAILED : code;
}

void gp_outcome_begin(const struct gp_outcome *o)
{
	if (o->json)
		fputs("{\"released\":[", stdout);
}

void gp_outcome_end(const struct gp_outcome *o)
{
	if (o->json) {
		printf("],\"looked_at\":%u,\"ended\":%u}\n", o->looked, o->stale);
		return;
	}
	if (o->stale)
		printf("%u record%s of processes that have ended %s dropped\n", o->stale,
		       o->stale == 1 ? "" : "s", o->stale == 1 ? "was" : "were");
	if (!o->released && !o->exit)
		puts("nothing was held");
}
