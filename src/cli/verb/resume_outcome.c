/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt resume: the result for each process, and its output. */
#include <stdio.h>
#include <stdlib.h>

#include "base/process.h"
#include "cli/cli.h"
#include "cli/lib/fields.h"
#include "cli/verb/resume.h"

bool gp_outcome_is_done(const struct gp_outcome *o, pid_t pid)
{
	for (unsigned i = 0; i < o->n; i++)
		if (o->done[i] == pid)
			return true;
	return false;
}

void gp_outcome_note(struct gp_outcome *o, pid_t pid)
{
	pid_t *p;

	if (o->n == o->capacity) {
		o->capacity = o->capacity ? 2 * o->capacity : 64;
		p = realloc(o->done, o->capacity * sizeof *p);
		if (!p) {
			fputs("gpreempt: no memory\n", stderr);
			exit(GP_EXIT_FAILED);
		}
		o->done = p;
	}
	o->done[o->n++] = pid;
}

static void print_released(const struct gp_outcome *o, pid_t pid, const char *name,
			   const struct gp_outcome_owner *owner)
{
	if (!owner)
		printf("released %d (%s)\n", pid, name);
	else if (owner->state == GP_OWNER_ENDED)
		printf("released %d (%s), left held by process %d, which has ended\n", pid, name,
		       owner->pid);
	else if (owner->state != GP_OWNER_RUNS)
		printf("released %d (%s), which %d (%s) held; that process %s, and its undo record "
		       "stays\n",
		       pid, name, owner->pid, owner->name, gp_owner_state_text(owner->state));
	else if (owner->pid == o->daemon)
		printf("released %d (%s); %s (%d) schedules it again\n", pid, name, owner->name,
		       owner->pid);
	else
		printf("released %d (%s), which %d (%s) held\n", pid, name, owner->pid,
		       owner->name);
}

void gp_outcome_released(struct gp_outcome *o, pid_t pid, const struct gp_outcome_owner *owner)
{
	struct json_object *process;
	char name[32];

	if (gp_outcome_is_done(o, pid))
		return;
	gp_outcome_note(o, pid);
	gp_process_name(pid, name, sizeof name);
	o->released++;
	if (!o->json) {
		print_released(o, pid, name, owner);
		return;
	}
	process = json_object_new_object();
	gp_field_put(process, "pid", (uint64_t)pid);
	gp_field_put_text(process, "name", name);
	gp_field_put_known(process, "owner", owner ? (uint64_t)owner->pid : 0);
	json_object_array_add(o->list, process);
}

void gp_outcome_failed(struct gp_outcome *o, pid_t pid, const struct gp_error *err)
{
	int code;

	if (gp_outcome_is_done(o, pid))
		return; /* by another record */
	code = gp_cli_fail(err);
	gp_outcome_note(o, pid);
	o->exit = o->exit ? o->exit : code == GP_EXIT_USAGE ? GP_EXIT_FAILED : code;
}

void gp_outcome_begin(struct gp_outcome *o)
{
	if (o->json)
		o->list = json_object_new_array();
}

static void print_json(const struct gp_outcome *o)
{
	struct json_object *all = json_object_new_object();

	json_object_object_add(all, "released", o->list);
	gp_field_put(all, "unchanged", o->unchanged);
	gp_field_put(all, "ended", o->stale);
	gp_print_json_once(all);
}

void gp_outcome_end(const struct gp_outcome *o)
{
	if (o->json) {
		print_json(o);
		return;
	}
	if (o->stale)
		printf("%u record%s of processes that have ended %s dropped\n", o->stale,
		       o->stale == 1 ? "" : "s", o->stale == 1 ? "was" : "were");
	if (!o->released && !o->exit)
		puts("nothing was held");
}
