/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Styles and colours of gpreempt top. Drawing code names a style by its meaning; the table in
 * colours.c gives the colour of each style. Change the colour of a task class or state there.
 */
#ifndef GP_CLI_TOP_COLOURS_H
#define GP_CLI_TOP_COLOURS_H

#include <stdbool.h>
#include <stdint.h>

enum gp_style {
	GP_STYLE_PLAIN,
	GP_STYLE_TITLE,
	GP_STYLE_HEAD,        /* column headings */
	GP_STYLE_HEAD_SORTED, /* heading of the column by which the table is sorted */
	GP_STYLE_FAINT,
	GP_STYLE_CLASS_LC,
	GP_STYLE_CLASS_BE,
	GP_STYLE_CLASS_UNMANAGED,
	GP_STYLE_RUNNING,
	GP_STYLE_WAITING,
	GP_STYLE_HELD,
	GP_STYLE_SUSPENDED,
	GP_STYLE_BAR,
	GP_STYLE_GOOD,
	GP_STYLE_WARNING,
	GP_STYLE_BAD,
	GP_STYLES,
	GP_STYLE_SELECTED = 1u << 7, /* a flag: the selected line, combined with any style */
};

/* The numbers of ANSI terminals and of curses. */
enum gp_colour {
	GP_COLOUR_DEFAULT = -1, /* the terminal's own */
	GP_COLOUR_RED = 1,
	GP_COLOUR_GREEN,
	GP_COLOUR_YELLOW,
	GP_COLOUR_BLUE,
	GP_COLOUR_MAGENTA,
	GP_COLOUR_CYAN,
};

struct gp_appearance {
	enum gp_colour colour;
	bool bold, faint, reverse; /* also used in terminals without colour */
};

extern const struct gp_appearance gp_appearance[GP_STYLES];

/* `class` is an enum gp_class. */
enum gp_style gp_class_style(uint8_t class);

#endif
