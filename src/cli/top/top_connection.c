/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top/top_connection.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "cli/lib/fields.h"

#define RETRY_NS (1 * GP_NS_PER_S)
#define LATE_NS  (3 * GP_NS_PER_S) /* a longer wait for an answer is shown */

static unsigned disconnect(struct gp_top_connection *link, uint64_t now_ns,
			   const struct gp_error *err)
{
	unsigned changes = GP_TOP_TROUBLE | (link->client ? GP_TOP_LOST : 0);

	if (link->ncommands) {
		snprintf(link->message, sizeof link->message,
			 "%s: the connection to the daemon was lost before it answered; the "
			 "result is not known",
			 link->command[0].target);
		link->refused = true;
		changes |= GP_TOP_MESSAGE;
	}
	gp_client_close(link->client);
	link->client = NULL;
	link->ncommands = 0;
	link->question = 0;
	gp_top_snapshot_clear(&link->next);
	link->trouble = *err;
	link->due_ns = now_ns + RETRY_NS;
	return changes;
}

static unsigned notice_delay(struct gp_top_connection *link, uint64_t now_ns)
{
	if (!link->question || now_ns - link->asked_ns < LATE_NS)
		return 0;
	gp_fail(&link->trouble, -ETIMEDOUT, "the daemon has not answered for %u s",
		(unsigned)((now_ns - link->asked_ns) / GP_NS_PER_S));
	return GP_TOP_TROUBLE;
}

static unsigned clear_trouble(struct gp_top_connection *link)
{
	unsigned changes = link->trouble.code ? GP_TOP_TROUBLE : 0;

	link->trouble = (struct gp_error){0};
	return changes;
}

/* One request at a time, one request per device: answers with 1,000 tasks are long. */
static int ask(struct gp_top_connection *link, const char *method, struct json_object *params,
	       uint64_t now_ns, struct gp_error *err)
{
	link->asked_ns = now_ns;
	return gp_client_ask(link->client, method, params, &link->question, err);
}

static int ask_hello(struct gp_top_connection *link, uint64_t now_ns, struct gp_error *err)
{
	struct json_object *params = json_object_new_object();

	json_object_object_add(params, "version", json_object_new_int(GP_RPC_VERSION));
	link->asked = GP_TOP_HELLO;
	return ask(link, "hello", params, now_ns, err);
}

static int ask_devices(struct gp_top_connection *link, uint64_t now_ns, struct gp_error *err)
{
	gp_top_snapshot_clear(&link->next);
	link->asked = GP_TOP_DEVICES;
	return ask(link, "stats", NULL, now_ns, err);
}

static int ask_tasks(struct gp_top_connection *link, unsigned device, uint64_t now_ns,
		     struct gp_error *err)
{
	struct json_object *params = json_object_new_object();

	json_object_object_add(params, "device",
			       json_object_new_int((int32_t)link->next.device[device].number));
	link->asked = GP_TOP_TASKS;
	link->asked_device = device;
	return ask(link, "tasks", params, now_ns, err);
}

/* Removes all devices but link->device. */
static int choose_device(struct gp_top_connection *link, struct gp_error *err)
{
	struct gp_top_snapshot *s = &link->next;
	unsigned i = 0;

	if (link->device < 0)
		return 0;
	while (i < s->ndevices && s->device[i].number != (unsigned)link->device)
		i++;
	if (i == s->ndevices)
		return gp_fail(err, -ENODEV,
			       "there is no device %d: the daemon has %u, numbered from 0",
			       link->device, s->ndevices);
	for (unsigned j = 0; j < s->ndevices; j++)
		if (j != i)
			json_object_put(s->device[j].json);
	s->device[0] = s->device[i];
	s->ndevices = 1;
	return 0;
}

static unsigned finish_snapshot(struct gp_top_connection *link)
{
	gp_top_snapshot_sort(&link->next);
	snprintf(link->next.daemon, sizeof link->next.daemon, "%s", link->server);
	gp_top_snapshot_clear(&link->snapshot);
	link->snapshot = link->next;
	link->next = (struct gp_top_snapshot){0};
	link->had_snapshot = true;
	return GP_TOP_SNAPSHOT | clear_trouble(link);
}

/* Reads an answer and sends the next request of the snapshot. */
static int continue_snapshot(struct gp_top_connection *link, struct json_object *result,
			     uint64_t now_ns, unsigned *changes, struct gp_error *err)
{
	unsigned device = 0;
	const char *name;
	int r;

	switch (link->asked) {
	case GP_TOP_HELLO:
		name = gp_field_text(result, "server");
		snprintf(link->server, sizeof link->server, "%s", name ? name : "");
		return ask_devices(link, now_ns, err);
	case GP_TOP_DEVICES:
		r = gp_top_read_devices(&link->next, result, link->keep_json);
		if (!r)
			r = choose_device(link, err);
		break;
	default:
		r = gp_top_read_tasks(&link->next, result, link->keep_json);
		device = link->asked_device + 1;
		break;
	}
	if (r)
		return r == -ENODEV ? r
				    : gp_fail(err, r,
					      "cannot read the daemon's answer: gpreempt and "
					      "gpreemptd may have different versions");
	if (device < link->next.ndevices)
		return ask_tasks(link, device, now_ns, err);
	*changes |= finish_snapshot(link);
	return 0;
}

/* The answer to a command; an answer to no open command is ignored. */
static unsigned read_command(struct gp_top_connection *link, const struct gp_client_answer *answer)
{
	for (unsigned i = 0; i < link->ncommands; i++) {
		struct gp_top_command *c = &link->command[i];

		if (c->id != answer->id)
			continue;
		link->refused = answer->err.code;
		snprintf(link->message, sizeof link->message, "%s: %s", c->target,
			 link->refused ? answer->err.text : c->done);
		*c = link->command[--link->ncommands];
		link->due_ns = 0; /* the next snapshot shows the effect */
		return GP_TOP_MESSAGE;
	}
	return 0;
}

static int handle_answer(struct gp_top_connection *link, struct gp_client_answer *answer,
			 uint64_t now_ns, unsigned *changes, struct gp_error *err)
{
	if (!answer->id && answer->err.code) { /* the reason why the daemon closes the connection */
		*err = answer->err;
		return err->code;
	}
	if (answer->id != link->question) {
		*changes |= read_command(link, answer);
		return 0;
	}
	link->question = 0;
	if (answer->err.code) {
		*err = answer->err;
		return err->code;
	}
	return continue_snapshot(link, answer->result, now_ns, changes, err);
}

static int connect_daemon(struct gp_top_connection *link, uint64_t now_ns, struct gp_error *err)
{
	int r = gp_client_begin(NULL, &link->client, err);

	link->due_ns = now_ns + link->every_ns;
	return r ? r : ask_hello(link, now_ns, err);
}

static int receive_and_ask(struct gp_top_connection *link, uint64_t now_ns, unsigned *changes,
			   struct gp_error *err)
{
	struct gp_client_answer answer;
	int r;

	while (!(r = gp_client_answer(link->client, &answer, err))) {
		r = handle_answer(link, &answer, now_ns, changes, err);
		json_object_put(answer.result);
		if (r)
			return r;
	}
	if (r != -EAGAIN)
		return r;
	if (link->question || now_ns < link->due_ns)
		return 0;
	/* Keeps the period, unless this snapshot is already late. */
	link->due_ns += link->every_ns;
	if (link->due_ns <= now_ns)
		link->due_ns = now_ns + link->every_ns;
	return ask_devices(link, now_ns, err);
}

unsigned gp_top_connection_work(struct gp_top_connection *link, uint64_t now_ns)
{
	struct gp_error err = {0};
	unsigned changes = 0;
	int r;

	if (!link->client) {
		if (now_ns < link->due_ns)
			return 0;
		r = connect_daemon(link, now_ns, &err);
	} else {
		r = receive_and_ask(link, now_ns, &changes, &err);
	}
	return changes | (r ? disconnect(link, now_ns, &err) : notice_delay(link, now_ns));
}

uint64_t gp_top_connection_due(const struct gp_top_connection *link, uint64_t now_ns)
{
	if (!link->client || !link->question)
		return link->due_ns;
	/* After LATE_NS every second, because the message counts the seconds. */
	return now_ns - link->asked_ns < LATE_NS ? link->asked_ns + LATE_NS : now_ns + GP_NS_PER_S;
}

int gp_top_connection_fd(const struct gp_top_connection *link)
{
	return link->client ? gp_client_fd(link->client) : -1;
}

int gp_top_command(struct gp_top_connection *link, const char *method, struct json_object *params,
		   const char *target, const char *done, struct gp_error *err)
{
	struct gp_top_command *c = &link->command[link->ncommands];
	int r = 0;

	if (!link->client)
		r = gp_fail(err, -ECONNREFUSED,
			    "not connected to the daemon; is gpreemptd running?");
	else if (link->ncommands == GP_TOP_COMMANDS)
		r = gp_fail(err, -EBUSY, "the daemon has not answered the last %u commands yet",
			    GP_TOP_COMMANDS);
	if (r) {
		json_object_put(params);
		return r;
	}
	r = gp_client_ask(link->client, method, params, &c->id, err);
	if (r)
		return r;
	snprintf(c->target, sizeof c->target, "%s", target);
	snprintf(c->done, sizeof c->done, "%s", done);
	link->ncommands++;
	return 0;
}

void gp_top_connection_end(struct gp_top_connection *link)
{
	gp_client_close(link->client);
	link->client = NULL;
	gp_top_snapshot_clear(&link->next);
	gp_top_snapshot_clear(&link->snapshot);
}
