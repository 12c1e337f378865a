/* SPDX-License-Identifier: Apache-2.0 */
/* What is known and what is looked at, as time goes on. */
#include <stdarg.h>
#include <string.h>

#include "base/clock.h"
#include "cli/top/top.h"

#define SAID_FOR_NS (8 * GP_NS_PER_S) /* time to read a sentence */

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
	gp_link_end(&top->link);
	gp_top_past_clear(&top->past);
	gp_top_view_free(&top->view);
}

void gp_top_say(struct gp_top *top, uint64_t now_ns, bool refused, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(top->said, sizeof top->said, format, args);
	va_end(args);
	top->refused = refused;
	top->said_ns = now_ns;
}

static void take_shot(struct gp_top *top, uint64_t now_ns)
{
	struct gp_top_shot *shot = &top->link.shot;

	gp_top_past_add(&top->past, shot, now_ns);
	for (unsigned i = 0; i < shot->ndevices; i++)
		if (shot->device[i].number < GP_DEVICES_MAX)
			gp_minute_add(&top->minute[shot->device[i].number], now_ns,
			              shot->device[i].busy);
	gp_top_view_update(&top->view, shot, top->task_rows);
}

bool gp_top_work(struct gp_top *top, uint64_t now_ns)
{
	unsigned news = gp_link_work(&top->link, now_ns);

	if (news & GP_LINK_LOST) /* another one counts from 0, and its tasks have other ids */
		gp_top_past_clear(&top->past);
	if (news & GP_LINK_SHOT)
		take_shot(top, now_ns);
	if (news & GP_LINK_SAID)
		gp_top_say(top, now_ns, top->link.refused, "%s", top->link.said);
	if (*top->said && now_ns - top->said_ns >= SAID_FOR_NS) {
		*top->said = 0;
		news |= GP_LINK_SAID;
	}
	return news;
}

uint64_t gp_top_due(const struct gp_top *top, uint64_t now_ns)
{
	uint64_t due_ns = gp_link_due(&top->link, now_ns);

	if (*top->said && top->said_ns + SAID_FOR_NS < due_ns)
		due_ns = top->said_ns + SAID_FOR_NS;
	return due_ns;
}
