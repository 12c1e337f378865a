/* SPDX-License-Identifier: Apache-2.0 */
/* The state of gpreempt top, its keys, and drawing into a grid. Only live.c uses a terminal. */
#ifndef GP_CLI_TOP_TOP_H
#define GP_CLI_TOP_TOP_H

#include "cli/top/view.h"
#include "cli/top/top_connection.h"
#include "cli/top/top_snapshot.h"
#include "cli/top/cells.h"
#include "hold/devices.h"

/* What the next key does. */
enum gp_top_mode {
	GP_TOP_BROWSE,
	GP_TOP_HELP,
	GP_TOP_CLASS,  /* chooses a class for `target` */
	GP_TOP_POLICY, /* chooses a policy */
	GP_TOP_FILTER, /* edits the filter */
};

/* Keys other than characters. */
enum gp_top_key {
	GP_KEY_ESCAPE = 27,
	GP_KEY_ENTER = '\n',
	GP_KEY_BACKSPACE = 127,
	GP_KEY_UP = 0x1000,
	GP_KEY_DOWN,
	GP_KEY_PAGE_UP,
	GP_KEY_PAGE_DOWN,
	GP_KEY_HOME,
	GP_KEY_END,
};

struct gp_top {
	struct gp_top_connection link;
	struct gp_top_history history;
	struct gp_minute minute[GP_DEVICES_MAX];
	struct gp_top_view view;

	enum gp_top_mode mode;
	unsigned chosen_policy;    /* GP_TOP_POLICY: index in gp_policies */
	struct gp_top_task target; /* GP_TOP_CLASS: the task that was selected when c was pressed */
	char old_filter[64];       /* GP_TOP_FILTER: the filter before, restored by Esc */
	char message[384];         /* last line of the screen: result of the last key; "": none */
	bool refused;              /* `message` is an error */
	uint64_t message_ns;       /* when it was set */
	unsigned task_rows;        /* rows for tasks on the screen */
	bool done;                 /* q was pressed */
};

void gp_top_init(struct gp_top *top, uint64_t every_ns, int device);
void gp_top_free(struct gp_top *top);

/* Sends and receives what is possible now. True: the screen must be drawn again. */
bool gp_top_work(struct gp_top *top, uint64_t now_ns);

/* The latest time for the next call of gp_top_work. */
uint64_t gp_top_due(const struct gp_top *top, uint64_t now_ns);

/* Handles a key: a character or enum gp_top_key (keys.c). */
void gp_top_press(struct gp_top *top, int key, uint64_t now_ns);

/* Shows a message in the last line for 8 s. */
__attribute__((format(printf, 4, 5))) void gp_top_show_message(struct gp_top *top, uint64_t now_ns,
							       bool refused, const char *format,
							       ...);

/* Draw the whole screen (paint.c). The plain form shows all tasks, in as many rows as needed,
 * without selection and status line. */
void gp_top_paint(struct gp_top *top, struct gp_cells *cells, unsigned rows, unsigned cols);
void gp_top_paint_plain(struct gp_top *top, struct gp_cells *cells, unsigned cols);

/* The locale uses UTF-8. */
bool gp_top_utf8(void);

/* Runs in the terminal until q is pressed. Returns the exit code. */
int gp_top_live(struct gp_top *top, bool colour);

#endif
