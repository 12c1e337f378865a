/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt top: what is known, what is looked at, and what the keys do. Knows no terminal. */
#ifndef GP_CLI_TOP_TOP_H
#define GP_CLI_TOP_TOP_H

#include "cli/top/columns.h"
#include "cli/top/top_connection.h"
#include "cli/top/rates.h"
#include "cli/top/cells.h"
#include "cli/top/spark.h"
#include "cli/top/view.h"
#include "hold/devices.h"

/* What the keys are for. */
enum gp_top_mode {
	GP_TOP_LOOK,
	GP_TOP_HELP,
	GP_TOP_CLASS,  /* choosing one for the selected task */
	GP_TOP_POLICY, /* choosing one */
	GP_TOP_FILTER, /* typing one */
};

/* Keys that are no characters. */
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
	struct gp_top_past past;
	struct gp_minute minute[GP_DEVICES_MAX];
	struct gp_top_view view;

	enum gp_top_mode mode;
	unsigned choice;         /* GP_TOP_POLICY: its place in gp_policies */
	struct gp_top_task whom; /* GP_TOP_CLASS: who was selected when it began */
	char typed[64];          /* GP_TOP_FILTER: what was there before */
	char message[384];       /* what came of the last key; "" = nothing to say */
	bool refused;
	uint64_t message_ns;
	unsigned task_rows; /* on the screen */
	bool done;
};

void gp_top_init(struct gp_top *top, uint64_t every_ns, int device);
void gp_top_free(struct gp_top *top);

/* Does what can be done with the daemon now. True: there is something new to be seen. */
bool gp_top_work(struct gp_top *top, uint64_t now_ns);

/* When gp_top_work wants to be called at the latest. */
uint64_t gp_top_due(const struct gp_top *top, uint64_t now_ns);

/* keys.c */
void gp_top_press(struct gp_top *top, int key, uint64_t now_ns);

/* The sentence for the last line, for a while. */
__attribute__((format(printf, 4, 5))) void gp_top_say(struct gp_top *top, uint64_t now_ns,
                                                      bool refused, const char *format, ...);

/* paint.c: the screen as it is now. `plain`: all tasks and nothing that is for keys, in as many
 * rows as it takes. */
void gp_top_paint(struct gp_top *top, struct gp_cells *cells, unsigned rows, unsigned cols);
void gp_top_paint_plain(struct gp_top *top, struct gp_cells *cells, unsigned cols);

/* paint_devices.c: how many rows they take; in the rows from `row` on. */
unsigned gp_top_device_rows(const struct gp_top_snapshot *snapshot);
void gp_top_paint_devices(const struct gp_top *top, struct gp_cells *cells, unsigned row,
                          unsigned rows);

/* paint_tasks.c: the heads in a row, the tasks from the next one on. `marks`: with who is
 * selected. */
void gp_top_paint_tasks(const struct gp_top *top, struct gp_cells *cells, unsigned row,
                        unsigned rows, bool marks);

/* paint_panels.c: the last line, and what covers the screen for a while. */
void gp_top_paint_status(const struct gp_top *top, struct gp_cells *cells, unsigned row);
void gp_top_paint_panel(const struct gp_top *top, struct gp_cells *cells);

/* "12.3", "1234"; "?" where it is not known. Returns `out`. */
const char *gp_top_rate_text(char *out, size_t size, double per_s);
/* "42%" with something before it, or "?". */
const char *gp_top_percent_text(char *out, size_t size, const char *before, double share);
const char *gp_top_class_name(uint8_t class);

/* Whether the terminal takes more than ASCII. */
bool gp_top_utf8(void);

/* Runs in the terminal until somebody quits; prints one screen; writes JSON. Exit codes. */
int gp_top_live(struct gp_top *top, bool colour);
int gp_top_once(struct gp_top *top);
int gp_top_json(struct gp_top *top);

#endif
