/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's part of gpreempt resume: releases the tasks that users hold. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ask/ask.h"
#include "cli/ask/with_daemon.h"

static bool add(struct gp_daemon_released *out, pid_t pid)
{
	pid_t *p;

	for (unsigned i = 0; i < out->n; i++)
		if (out->pid[i] == pid)
			return true;
	p = realloc(out->pid, (out->n + 1) * sizeof *p);
	if (!p)
		return false;
	out->pid = p;
	out->pid[out->n++] = pid;
	return true;
}

static bool is_held_by_user(struct json_object *task)
{
	char words[64];

	return gp_field_words(task, "held_by", words, sizeof words) && strstr(words, "user");
}

/* The pid of the daemon, which owns its records; 0: not known. With socket activation the peer of
 * the socket may be another process. */
static pid_t daemon_pid(struct gp_client *client)
{
	struct json_object *answer = NULL;
	pid_t pid;

	gp_ask(client, "stats", NULL, &answer, NULL);
	pid = (pid_t)gp_field_number_or(gp_field(answer, "daemon"), "pid", 0);
	json_object_put(answer);
	return pid;
}

/* All tasks; NULL if the daemon does not answer. */
static struct json_object *ask_tasks(struct gp_client *client)
{
	struct json_object *devices, *tasks;
	int r = gp_ask_devices(client, &devices, NULL);

	if (r)
		return NULL;
	r = gp_ask_tasks(client, devices, 0, &tasks, NULL);
	json_object_put(devices);
	return r ? NULL : tasks;
}

static bool is_still_held(struct json_object *tasks, struct json_object *task)
{
	for (size_t i = 0; i < json_object_array_length(tasks); i++) {
		struct json_object *t = json_object_array_get_idx(tasks, i);

		if (gp_field_number_or(t, "task", 0) == gp_field_number_or(task, "task", 0) &&
		    gp_field_number_or(t, "device", 0) == gp_field_number_or(task, "device", 0))
			return is_held_by_user(t);
	}
	return false;
}

/* Tasks of other users may stay held: only root and the group gpreempt release them. */
static int release_all(struct gp_client *client, struct gp_daemon_released *out)
{
	struct json_object *before = ask_tasks(client);
	int r = gp_ask(client, "release_all", NULL, NULL, NULL);
	struct json_object *after = r ? NULL : ask_tasks(client);

	for (size_t i = 0; before && after && i < json_object_array_length(before); i++) {
		struct json_object *t = json_object_array_get_idx(before, i);

		if (!is_held_by_user(t))
			continue;
		if (is_still_held(after, t))
			out->others++;
		else
			add(out, (pid_t)gp_field_number_or(t, "pid", 0));
	}
	json_object_put(before);
	json_object_put(after);
	return r;
}

/* Only tasks that a user held are reported as released. */
static bool is_held(struct json_object *tasks, pid_t pid)
{
	for (size_t i = 0; tasks && i < json_object_array_length(tasks); i++) {
		struct json_object *t = json_object_array_get_idx(tasks, i);

		if (gp_field_number_or(t, "pid", 0) == (uint64_t)pid && is_held_by_user(t))
			return true;
	}
	return false;
}

static int release_named(struct gp_client *client, const struct gp_targets *targets,
			 struct gp_daemon_released *out)
{
	struct json_object *tasks = ask_tasks(client);
	int r = 0;

	out->err = calloc(targets->n, sizeof *out->err);
	for (unsigned i = 0; i < targets->n && out->err && !r; i++) {
		int code =
			gp_ask_about(client, "release", targets->pid[i], NULL, NULL, &out->err[i]);

		if (!code && is_held(tasks, targets->pid[i]))
			add(out, targets->pid[i]);
		if (code == -ETIMEDOUT || code == -ECONNRESET || code == -EPROTO)
			r = code;
	}
	json_object_put(tasks);
	return out->err ? r : -ENOMEM;
}

bool gp_daemon_resume(const struct gp_targets *targets, bool all, struct gp_daemon_released *out)
{
	struct gp_client *client = gp_ask_if_there();
	int r;

	*out = (struct gp_daemon_released){0};
	if (!client)
		return false;
	gp_client_set_timeout(client, GP_ASK_SHORT_MS);
	out->daemon = daemon_pid(client);
	r = all ? release_all(client, out) : release_named(client, targets, out);
	gp_client_close(client);
	if (r)
		fputs("gpreempt: the daemon does not answer; using the undo records instead\n",
		      stderr);
	return !r;
}
