/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lib/hold_event.h"

#include <stdio.h>

#include "cli/cli.h"
#include "cli/lib/fields.h"

static void print_json(const struct gp_hold_event *e)
{
	static const char *const kinds[] = {"held", "again", "ended", "resumed", "released"};
	static const char *const until[] = {"signal", "time", "resume"};
	struct json_object *o = json_object_new_object();

	gp_field_put_text(o, "event", kinds[e->kind]);
	gp_field_put(o, "pid", (uint64_t)e->pid);
	gp_field_put_text(o, "name", e->name);
	if (e->device >= 0)
		gp_field_put(o, "device", (uint64_t)e->device);
	gp_field_put_decimal(o, e->kind == GP_HOLD_BEGAN ? "took_us" : "held_us",
			     (double)e->ns / 1e3, 1);
	gp_field_put_known(o, "again", e->again);
	if (e->kind == GP_HOLD_BEGAN) {
		gp_field_put_text(o, "until", until[e->lifetime]);
		if (e->lifetime == GP_HOLD_FOR_TIME)
			gp_field_put_decimal(o, "for_us", (double)e->for_ns / 1e3, 1);
	}
	gp_print_json_once(o);
}

static void print_lifetime(const struct gp_hold_event *e)
{
	char text[32];

	switch (e->lifetime) {
	case GP_HOLD_UNTIL_SIGNAL: fputs(", until Ctrl-C", stdout); break;
	case GP_HOLD_FOR_TIME:
		printf(", for %s", gp_cli_duration(text, sizeof text, e->for_ns));
		break;
	case GP_HOLD_UNTIL_RESUME:
		fputs(", kept by the daemon until gpreempt resume", stdout);
		break;
	}
}

static void print_text(const struct gp_hold_event *e)
{
	char task[160], time[32];

	snprintf(task, sizeof task, "%d (%s)%s%s", e->pid, e->name, e->device_name ? " on " : "",
		 e->device_name ? e->device_name : "");
	gp_cli_duration(time, sizeof time, e->ns);
	switch (e->kind) {
	case GP_HOLD_BEGAN:
		printf("held %s in %s", task, time);
		print_lifetime(e);
		break;
	case GP_HOLD_AGAIN:
		printf("%s ran again after %s (a new queue?): holding it again", task, time);
		break;
	case GP_HOLD_ENDED:
		printf("%s has ended; it was held for %s until then", task, time);
		break;
	case GP_HOLD_RESUMED:
		printf("%s was released by another process after %s", task, time);
		break;
	case GP_HOLD_RELEASED:
		printf("released %s after %s", task, time);
		if (e->again)
			printf(" (held again %u time%s)", e->again, e->again == 1 ? "" : "s");
		break;
	}
	putchar('\n');
	fflush(stdout); /* a reader may wait at a pipe */
}

void gp_hold_event_print(const struct gp_hold_event *event, bool json)
{
	(json ? print_json : print_text)(event);
}
