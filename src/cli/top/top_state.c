/* SPDX-License-Identifier: Apache-2.0 */
/* The state of gpreempt top: takes snapshots, computes rates, shows messages. */
#include <stdarg.h>

#include "base/clock.h"
#include "cli/top/top.h"

#define MESSAGE_FOR_NS (8 * GP_NS_PER_S) /* how long a message stays */

void gp_top_init(struct gp_top *top, uint64_t every_ns, int device)
{
	*top = (struct gp_top){
		.link = {.every_ns = every_ns, .device = device},
		.view = {.sort = GP_COL_SHARE},
	};
	for (unsigned i = 0; i < GP_DEVICES_MAX; i++)
		gp_minute_init(&top->minute[i]);
}

void gp_top_free(struct gp_top *top)
{
	gp_top_connection_end(&top->link);
	gp_top_history_clear(&top->history);
	gp_top_view_free(&top->view);
}

void gp_top_show_message(struct gp_top *top, uint64_t now_ns, bool refused, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(top->message, sizeof top->message, format, args);
	va_end(args);
	top->refused = refused;
	top->message_ns = now_ns;
}

static void take_snapshot(struct gp_top *top, uint64_t now_ns)
{
	struct gp_top_snapshot *snapshot = &top->link.snapshot;

	gp_top_history_add(&top->history, snapshot, now_ns);
	for (unsigned i = 0; i < snapshot->ndevices; i++)
		if (snapshot->device[i].number < GP_DEVICES_MAX)
			gp_minute_add(&top->minute[snapshot->device[i].number], now_ns,
				      snapshot->device[i].busy);
	gp_top_view_update(&top->view, snapshot, top->task_rows);
}

bool gp_top_work(struct gp_top *top, uint64_t now_ns)
{
	unsigned changes = gp_top_connection_work(&top->link, now_ns);

	if (changes & GP_TOP_LOST) /* a new daemon counts from 0 and has other task ids */
		gp_top_history_clear(&top->history);
	if (changes & GP_TOP_SNAPSHOT)
		take_snapshot(top, now_ns);
	if (changes & GP_TOP_MESSAGE)
		gp_top_show_message(top, now_ns, top->link.refused, "%s", top->link.message);
	if (*top->message && now_ns - top->message_ns >= MESSAGE_FOR_NS) {
		*top->message = 0;
		changes |= GP_TOP_MESSAGE;
	}
	return changes;
}

uint64_t gp_top_due(const struct gp_top *top, uint64_t now_ns)
{
	uint64_t due_ns = gp_top_connection_due(&top->link, now_ns);

	if (*top->message && top->message_ns + MESSAGE_FOR_NS < due_ns)
		due_ns = top->message_ns + MESSAGE_FOR_NS;
	return due_ns;
}
