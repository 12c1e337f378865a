/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top/top_connection.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define RETRY_NS (1 * GP_NS_PER_S)
#define LATE_NS  (3 * GP_NS_PER_S) /* an answer that takes so long is mentioned */

/* ---- trouble -----------------------------------------------------------------------------------
 */

static unsigned lose(struct gp_top_connection *link, uint64_t now_ns, const struct gp_error *err)
{
	unsigned news = GP_TOP_TROUBLE | (link->client ? GP_TOP_LOST : 0);

	if (link->ncommands) {
		snprintf(link->message, sizeof link->message,
		         "%s: the daemon went away before it "
		         "answered",
		         link->command[0].whom);
		link->refused = true;
		news |= GP_TOP_MESSAGE;
	}
	gp_client_close(link->client);
	link->client = NULL;
	link->ncommands = 0;
	link->question = 0;
	gp_top_snapshot_clear(&link->coming);
	link->trouble = *err;
	link->due_ns = now_ns + RETRY_NS;
	return news;
}

/* Also says for how long. */
static unsigned notice_delay(struct gp_top_connection *link, uint64_t now_ns)
{
	if (!link->question || now_ns - link->asked_ns < LATE_NS)
		return 0;
	gp_fail(&link->trouble, -ETIMEDOUT, "the daemon has not answered for %u s",
	        (unsigned)((now_ns - link->asked_ns) / GP_NS_PER_S));
	return GP_TOP_TROUBLE;
}

static unsigned all_is_well(struct gp_top_connection *link)
{
	unsigned news = link->trouble.code ? GP_TOP_TROUBLE : 0;

	link->trouble = (struct gp_error){0};
	return news;
}

/* ---- questions, one after the other: replies of 1,000 tasks are long ----------------------------
 */

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
	link->about = GP_TOP_HELLO;
	return ask(link, "hello", params, now_ns, err);
}

static int ask_devices(struct gp_top_connection *link, uint64_t now_ns, struct gp_error *err)
{
	gp_top_snapshot_clear(&link->coming);
	link->about = GP_TOP_DEVICES;
	return ask(link, "stats", NULL, now_ns, err);
}

static int ask_tasks(struct gp_top_connection *link, unsigned device, uint64_t now_ns,
                     struct gp_error *err)
{
	struct json_object *params = json_object_new_object();

	json_object_object_add(params, "device",
	                       json_object_new_int((int32_t)link->coming.device[device].number));
	link->about = GP_TOP_TASKS;
	link->asked_device = device;
	return ask(link, "tasks", params, now_ns, err);
}

/* ---- answers -----------------------------------------------------------------------------------
 */

static void heard_hello(struct gp_top_connection *link, struct json_object *result)
{
	struct json_object *name;

	if (json_object_object_get_ex(result, "server", &name))
		snprintf(link->server, sizeof link->server, "%s", json_object_get_string(name));
}

/* Leaves the one device that is wanted. */
static int choose_device(struct gp_top_connection *link, struct gp_error *err)
{
	struct gp_top_snapshot *s = &link->coming;
	unsigned i = 0;

	if (link->device < 0)
		return 0;
	while (i < s->ndevices && s->device[i].number != (unsigned)link->device)
		i++;
	if (i == s->ndevices)
		return gp_fail(err, -ENODEV, "there is no device %d: the daemon has %u, from 0 on",
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
	gp_top_snapshot_settle(&link->coming);
	snprintf(link->coming.daemon, sizeof link->coming.daemon, "%s", link->server);
	gp_top_snapshot_clear(&link->snapshot);
	link->snapshot = link->coming;
	link->coming = (struct gp_top_snapshot){0};
	link->was_there = true;
	return GP_TOP_SNAPSHOT | all_is_well(link);
}

/* Takes what was answered, and asks the next question of the shot. */
static int go_on(struct gp_top_connection *link, struct json_object *result, uint64_t now_ns,
                 unsigned *news, struct gp_error *err)
{
	unsigned next = 0;
	int r;

	switch (link->about) {
	case GP_TOP_HELLO: heard_hello(link, result); return ask_devices(link, now_ns, err);
	case GP_TOP_DEVICES:
		r = gp_top_read_devices(&link->coming, result, link->keep_json);
		if (!r)
			r = choose_device(link, err);
		break;
	default:
		r = gp_top_read_tasks(&link->coming, result, link->keep_json);
		next = link->asked_device + 1;
		break;
	}
	if (r)
		return r == -ENODEV ? r : gp_fail(err, r, "the daemon's answer cannot be read");
	if (next < link->coming.ndevices)
		return ask_tasks(link, next, now_ns, err);
	*news |= finish_snapshot(link);
	return 0;
}

/* The answer to an order, or to nothing that is still open. */
static unsigned read_command(struct gp_top_connection *link, const struct gp_client_answer *answer)
{
	for (unsigned i = 0; i < link->ncommands; i++) {
		struct gp_top_command *o = &link->command[i];

		if (o->id != answer->id)
			continue;
		link->refused = answer->err.code;
		snprintf(link->message, sizeof link->message, "%s: %s", o->whom,
		         link->refused ? answer->err.text : o->done);
		*o = link->command[--link->ncommands];
		gp_top_connection_hurry(link);
		return GP_TOP_MESSAGE;
	}
	return 0;
}

static int hear(struct gp_top_connection *link, struct gp_client_answer *answer, uint64_t now_ns,
                unsigned *news, struct gp_error *err)
{
	if (!answer->id && answer->err.code) { /* why it hangs up */
		*err = answer->err;
		return err->code;
	}
	if (answer->id != link->question) {
		*news |= read_command(link, answer);
		return 0;
	}
	link->question = 0;
	if (answer->err.code) {
		*err = answer->err;
		return err->code;
	}
	return go_on(link, answer->result, now_ns, news, err);
}

/* ---- the whole ---------------------------------------------------------------------------------
 */

static int start(struct gp_top_connection *link, uint64_t now_ns, struct gp_error *err)
{
	int r = gp_client_begin(NULL, &link->client, err);

	link->due_ns = now_ns + link->every_ns;
	return r ? r : ask_hello(link, now_ns, err);
}

static int listen_and_ask(struct gp_top_connection *link, uint64_t now_ns, unsigned *news,
                          struct gp_error *err)
{
	struct gp_client_answer answer;
	int r;

	while (!(r = gp_client_answer(link->client, &answer, err))) {
		r = hear(link, &answer, now_ns, news, err);
		json_object_put(answer.result);
		if (r)
			return r;
	}
	if (r != -EAGAIN)
		return r;
	if (link->question || now_ns < link->due_ns)
		return 0;
	/* In step, unless it is late. */
	link->due_ns += link->every_ns;
	if (link->due_ns <= now_ns)
		link->due_ns = now_ns + link->every_ns;
	return ask_devices(link, now_ns, err);
}

unsigned gp_top_connection_work(struct gp_top_connection *link, uint64_t now_ns)
{
	struct gp_error err = {0};
	unsigned news = 0;
	int r;

	if (!link->client) {
		if (now_ns < link->due_ns)
			return 0;
		r = start(link, now_ns, &err);
	} else {
		r = listen_and_ask(link, now_ns, &news, &err);
	}
	return news | (r ? lose(link, now_ns, &err) : notice_delay(link, now_ns));
}

uint64_t gp_top_connection_due(const struct gp_top_connection *link, uint64_t now_ns)
{
	if (!link->client || !link->question)
		return link->due_ns;
	/* Then every second, for the sentence says how long it takes. */
	return now_ns - link->asked_ns < LATE_NS ? link->asked_ns + LATE_NS : now_ns + GP_NS_PER_S;
}

int gp_top_connection_fd(const struct gp_top_connection *link)
{
	return link->client ? gp_client_fd(link->client) : -1;
}

void gp_top_connection_hurry(struct gp_top_connection *link)
{
	if (link->client)
		link->due_ns = 0;
}

int gp_top_command(struct gp_top_connection *link, const char *method, struct json_object *params,
                   const char *whom, const char *done, struct gp_error *err)
{
	struct gp_top_command *o = &link->command[link->ncommands];
	int r = 0;

	if (!link->client)
		r = gp_fail(err, -ECONNREFUSED, "there is no daemon to ask");
	else if (link->ncommands == GP_TOP_COMMANDS)
		r = gp_fail(err, -EBUSY, "the daemon has not answered the last %u orders yet",
		            GP_TOP_COMMANDS);
	if (r) {
		json_object_put(params);
		return r;
	}
	r = gp_client_ask(link->client, method, params, &o->id, err);
	if (r)
		return r;
	snprintf(o->whom, sizeof o->whom, "%s", whom);
	snprintf(o->done, sizeof o->done, "%s", done);
	link->ncommands++;
	return 0;
}

void gp_top_connection_end(struct gp_top_connection *link)
{
	gp_client_close(link->client);
	link->client = NULL;
	gp_top_snapshot_clear(&link->coming);
	gp_top_snapshot_clear(&link->snapshot);
}
