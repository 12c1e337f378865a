/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt top in the terminal: the loop that waits for keys, the daemon, resizes and signals. */
#define _XOPEN_SOURCE_EXTENDED 1 /* curses: wide characters */
#include <curses.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/lib/stop.h"
#include "cli/top/top.h"

_Static_assert(GP_COLOUR_RED == COLOR_RED && GP_COLOUR_CYAN == COLOR_CYAN, "curses numbers");

static bool with_colour;

static void begin_colour(bool wanted)
{
	with_colour = wanted && has_colors();
	if (!with_colour)
		return;
	start_color();
	use_default_colors();
	for (int i = 0; i < GP_STYLES; i++)
		init_pair((short)(i + 1), (short)gp_appearance[i].colour, -1);
}

/* The selected line has no colours: with reverse video they would become backgrounds. */
static void apply_style(uint8_t style)
{
	unsigned i = style % GP_STYLE_SELECTED;
	const struct gp_appearance *a = &gp_appearance[i];
	attr_t attributes =
		(a->bold ? A_BOLD : 0) | (a->faint ? A_DIM : 0) | (a->reverse ? A_REVERSE : 0);

	if (style & GP_STYLE_SELECTED) {
		attrset((int)(A_REVERSE | (attributes & A_BOLD)));
		return;
	}
	attrset((int)attributes);
	if (with_colour)
		color_set((short)(i + 1), NULL);
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

/* Returns false if no key was pressed. */
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

/*
 * SIGWINCH is unblocked only during ppoll, so that none is missed. The handler of curses runs then,
 * and getch returns KEY_RESIZE.
 */
static void wait_for_event(const struct gp_top *top, struct pollfd p[3], uint64_t now_ns)
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

/* No daemon at the start is an error. A daemon that was lost later may come back. */
static bool never_connected(const struct gp_top *top)
{
	return top->link.trouble.code && top->link.trouble.code != -ETIMEDOUT &&
	       !top->link.had_snapshot;
}

static void follow(struct gp_top *top)
{
	struct gp_cells cells = {.utf8 = gp_top_utf8()};
	struct pollfd p[3] = {{0}};
	bool changed = true;

	while (!top->done) {
		uint64_t now_ns = gp_monotonic_ns();

		changed |= gp_top_work(top, now_ns);
		if (never_connected(top))
			break;
		changed |= read_keys(top, now_ns);
		if (changed && !top->done) {
			gp_top_paint(top, &cells, (unsigned)LINES, (unsigned)COLS);
			show(&cells);
		}
		changed = false;
		if (top->done)
			break;
		wait_for_event(top, p, gp_monotonic_ns());
		/* A signal to stop, or the terminal was closed. */
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

		gp_fail(&err, -errno, "cannot set up signal handling");
		return gp_cli_fail(&err);
	}
	sigemptyset(&resized);
	sigaddset(&resized, SIGWINCH);
	sigprocmask(SIG_BLOCK, &resized, NULL);
	screen = newterm(NULL, stdout, stdin);
	if (!screen) {
		fputs("gpreempt: curses cannot use this terminal; check TERM, or use top --once\n",
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
	return never_connected(top) ? gp_cli_fail(&top->link.trouble) : GP_EXIT_DONE;
}
