/* SPDX-License-Identifier: Apache-2.0 */
/* One call that sends device commands, and one answer when all of them are done. */
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/control.h"

_Static_assert(GP_DEVICES_MAX <= 64, "done_on has a bit for each device");

struct gp_gather *gp_gather_new(struct gp_control *c, struct gp_rpc_call *call,
				void (*finish)(struct gp_gather *g))
{
	struct gp_gather *g = calloc(1, sizeof *g);

	if (!g) {
		if (call)
			gp_rpc_fail(call, 0, -ENOMEM, "the daemon has no memory left");
		return NULL;
	}
	g->control = c;
	g->call = call;
	g->finish = finish;
	g->left = 1; /* released by gp_gather_go */
	g->next = c->gathers;
	if (g->next)
		g->next->prev = g;
	c->gathers = g;
	return g;
}

static void remove_gather(struct gp_control *c, struct gp_gather *g)
{
	if (g->prev)
		g->prev->next = g->next;
	else
		c->gathers = g->next;
	if (g->next)
		g->next->prev = g->prev;
	json_object_put(g->not_in_force);
	free(g);
}

/* Keeps the first failure. A task that has ended (-ESRCH) does not hide another failure. */
static void note_failure(struct gp_gather *g, int status, const char *text)
{
	if (g->status && g->status != -ESRCH)
		return;
	g->status = status;
	snprintf(g->text, sizeof g->text, "%s", text);
}

void gp_gather_command(struct gp_gather *g, struct gp_device_thread *thread,
		       struct gp_command *command)
{
	int r;

	command->token = (uintptr_t)g;
	r = gp_device_thread_command(thread, command);
	if (r)
		note_failure(g, r, "the device thread has too many commands waiting; try again");
	else
		g->left++;
}

static void finish_if_last(struct gp_gather *g)
{
	if (--g->left)
		return;
	g->finish(g);
	remove_gather(g->control, g);
}

bool gp_command_tasks(struct gp_control *c, const struct gp_proc *proc, enum gp_command_kind kind)
{
	bool sent = true;

	for (unsigned i = 0; i < proc->ntasks; i++)
		sent &= !gp_device_thread_command(
			c->thread[proc->task[i].device],
			&(struct gp_command){.kind = kind, .task = proc->task[i].id});
	return sent;
}

void gp_gather_go(struct gp_gather *g)
{
	finish_if_last(g);
}

/* Of several tasks on one device, the last reason is kept. */
static void note_reason(struct gp_gather *g, unsigned device, const char *text)
{
	char key[16];

	snprintf(key, sizeof key, "%u", device);
	if (!g->not_in_force)
		g->not_in_force = json_object_new_object();
	gp_json_add(g->not_in_force, key, json_object_new_string(text));
}

void gp_gather_answer(unsigned device, const struct gp_answer *answer)
{
	struct gp_gather *g = (struct gp_gather *)(uintptr_t)answer->token;

	if (answer->status) {
		note_failure(g, answer->status, answer->text);
	} else {
		g->done++;
		g->done_on |= 1ull << device;
		if (*answer->text)
			note_reason(g, device, answer->text);
	}
	finish_if_last(g);
}

void gp_gathers_end(struct gp_control *c)
{
	struct gp_gather *next;

	for (struct gp_gather *g = c->gathers; g; g = next) {
		next = g->next;
		if (g->call)
			gp_rpc_fail(g->call, GP_RPC_ENDING, -ESHUTDOWN,
				    "the daemon is shutting down");
		json_object_put(g->not_in_force);
		free(g);
	}
	c->gathers = NULL;
}
