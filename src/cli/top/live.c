/* SPDX-License-Identifier: Apache-2.0 */
/* In the terminal: keys, the daemon, changes of size, and signals, whichever comes first. */
#define _XOPEN_SOURCE_EXTENDED 1 /* curses: wide characters */
#include <curses.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/lib/stop.h"
#include "cli/top/top.h"

/* ---- how styles look ----------------------------------------------------------------------------
 */

/* Without colour the words differ all the same. */
static const struct {
	chtype attributes;
	short colour; /* -1: the terminal's own */
} ticks[GP_STYLES] = {
	[GP_STYLE_PLAIN] = {A_NORMAL, -1},
	[GP_STYLE_TITLE] = {A_BOLD, -1},
	[GP_STYLE_HEAD] = {A_REVERSE, -1},
	[GP_STYLE_HEAD_SORTED] = {A_REVERSE | A_BOLD, -1},
	[GP_STYLE_FAINT] = {A_DIM, -1},
	[GP_STYLE_RUNNING] = {A_NORMAL, COLOR_GREEN},
	[GP_STYLE_WAITING] = {A_NORMAL, COLOR_YELLOW},
	[GP_STYLE_HELD] = {A_NORMAL, COLOR_MAGENTA},
	[GP_STYLE_SUSPENDED] = {A_BOLD, COLOR_RED},
	[GP_STYLE_URGENT] = {A_BOLD, COLOR_CYAN},
	[GP_STYLE_BAR] = {A_NORMAL, COLOR_BLUE},
	[GP_STYLE_GOOD] = {A_NORMAL, COLOR_GREEN},
	[GP_STYLE_WARNING] = {A_BOLD, COLOR_YELLOW},
	[GP_STYLE_BAD] = {A_BOLD, COLOR_RED},
};

static bool with_colour;

static void begin_colour(bool wanted)
{
	with_colour = wanted && has_colors();
	if (!with_colour)
		return;
	start_color();
	use_default_colors();
	for (int i = 0; i < GP_STYLES; i++)
		init_pair((short)(i + 1), ticks[i].colour, -1);
}

/* Who is selected is told by reverse video alone: colours would be backgrounds then. */
static void apply_style(uint8_t style)
{
	unsigned what = style % GP_STYLE_SELECTED;

	if (style & GP_STYLE_SELECTED) {
		attrset((int)(A_REVERSE | (ticks[what].attributes & A_BOLD)));
		return;
	}
	attrset((int)ticks[what].attributes);
	if (with_colour)
		color_set((short)(what + 1), NULL);
}

static void show(const struct gp_cells *cells)
{
	erase();
	for (unsigned row = 0; row < cells->rows; row++)
		for (unsigned col = 0; col < cells->cols; col++) {
			const struct gp_cell *cell = &cells->cell[row * cells->cols + col];

			if (!cell->c)
				continue;
			apply_style(cell->style);
			mvaddnwstr((int)row, (int)col, &cell->c, 1);
		}
	move((int)cells->rows - 1, 0);
	refresh();
}

/* ---- keys --------------------------------------------------------------------------------------
 */

static int key_of(int c)
{
	switch (c) {
	case KEY_UP: return GP_KEY_UP;
	case KEY_DOWN: return GP_KEY_DOWN;
	case KEY_PPAGE: return GP_KEY_PAGE_UP;
	case KEY_NPAGE: return GP_KEY_PAGE_DOWN;
	case KEY_HOME: return GP_KEY_HOME;
	case KEY_END: return GP_KEY_END;
	case KEY_ENTER:
	case '\r': return GP_KEY_ENTER;
	case KEY_BACKSPACE:
	case '\b': return GP_KEY_BACKSPACE;
	default: return c < 0x100 ? c : 0;
	}
}

/* False: nothing was pressed. */
static bool read_keys(struct gp_top *top, uint64_t now_ns)
{
	bool any = false;
	int c;

	while ((c = getch()) != ERR) {
		any = true;
		if (c != KEY_RESIZE)
			gp_top_press(top, key_of(c), now_ns);
	}
	return any;
}

/* ---- the loop ----------------------------------------------------------------------------------
 */

static void paint(struct gp_top *top, struct gp_cells *cells)
{
	gp_top_paint(top, cells, (unsigned)LINES, (unsigned)COLS);
	show(cells);
}

/*
 * SIGWINCH is let in only while waiting, so that none is missed; curses' own handler takes it, and
 * getch then says so.
 */
static void wait_for_something(const struct gp_top *top, struct pollfd p[3], uint64_t now_ns)
{
	uint64_t due_ns = gp_top_due(top, now_ns);
	struct timespec wait = gp_timespec(due_ns > now_ns ? due_ns - now_ns : 0);
	sigset_t mask;

	p[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
	p[1] = (struct pollfd){.fd = gp_top_connection_fd(&top->link), .events = POLLIN};
	p[2] = (struct pollfd){.fd = gp_stop_fd(), .events = POLLIN};
	sigprocmask(SIG_SETMASK, NULL, &mask);
	sigdelset(&mask, SIGWINCH);
	if (ppoll(p, 3, &wait, &mask) < 0)
		p[0].revents = p[1].revents = p[2].revents = 0;
}

/* A daemon that was never there is an error; one that has gone may come back. */
static bool is_hopeless(const struct gp_top *top)
{
	return top->link.trouble.code && top->link.trouble.code != -ETIMEDOUT &&
	       !top->link.was_there;
}

static void follow(struct gp_top *top)
{
	struct gp_cells cells = {.utf8 = gp_top_utf8()};
	struct pollfd p[3] = {{0}};
	bool changed = true;

	while (!top->done) {
		uint64_t now_ns = gp_monotonic_ns();

		changed |= gp_top_work(top, now_ns);
		if (is_hopeless(top))
			break;
		changed |= read_keys(top, now_ns);
		if (changed && !top->done)
			paint(top, &cells);
		changed = false;
		if (top->done)
			break;
		wait_for_something(top, p, gp_monotonic_ns());
		/* The terminal has gone, or somebody wants an end of it. */
		if (p[2].revents || (p[0].revents & (POLLHUP | POLLERR | POLLNVAL)))
			break;
	}
	gp_cells_free(&cells);
}

int gp_top_live(struct gp_top *top, bool colour)
{
	sigset_t resized;
	SCREEN *screen;

	if (gp_stop_open() < 0) {
		struct gp_error err;

		gp_fail(&err, -errno, "cannot wait for signals");
		return gp_cli_fail(&err);
	}
	sigemptyset(&resized);
	sigaddset(&resized, SIGWINCH);
	sigprocmask(SIG_BLOCK, &resized, NULL);
	screen = newterm(NULL, stdout, stdin);
	if (!screen) {
		fputs("gpreempt: this terminal cannot show it (see TERM); gpreempt top --once "
		      "can be read anywhere\n",
		      stderr);
		return GP_EXIT_FAILED;
	}
	cbreak();
	noecho();
	nonl();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(50);
	begin_colour(colour);
	follow(top);
	endwin();
	delscreen(screen);
	return is_hopeless(top) ? gp_cli_fail(&top->link.trouble) : GP_EXIT_DONE;
}
