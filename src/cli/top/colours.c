/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top/colours.h"

#include "policy/policy.h"

const struct gp_appearance gp_appearance[GP_STYLES] = {
	[GP_STYLE_PLAIN] = {.colour = GP_COLOUR_DEFAULT},
	[GP_STYLE_TITLE] = {.colour = GP_COLOUR_DEFAULT, .bold = true},
	[GP_STYLE_HEAD] = {.colour = GP_COLOUR_DEFAULT, .reverse = true},
	[GP_STYLE_HEAD_SORTED] = {.colour = GP_COLOUR_DEFAULT, .reverse = true, .bold = true},
	[GP_STYLE_FAINT] = {.colour = GP_COLOUR_DEFAULT, .faint = true},
	[GP_STYLE_CLASS_LC] = {.colour = GP_COLOUR_CYAN, .bold = true},
	[GP_STYLE_CLASS_BE] = {.colour = GP_COLOUR_DEFAULT},
	[GP_STYLE_CLASS_UNMANAGED] = {.colour = GP_COLOUR_DEFAULT, .faint = true},
	[GP_STYLE_RUNNING] = {.colour = GP_COLOUR_GREEN},
	[GP_STYLE_WAITING] = {.colour = GP_COLOUR_YELLOW},
	[GP_STYLE_HELD] = {.colour = GP_COLOUR_MAGENTA},
	[GP_STYLE_SUSPENDED] = {.colour = GP_COLOUR_RED, .bold = true},
	[GP_STYLE_BAR] = {.colour = GP_COLOUR_BLUE},
	[GP_STYLE_GOOD] = {.colour = GP_COLOUR_GREEN},
	[GP_STYLE_WARNING] = {.colour = GP_COLOUR_YELLOW, .bold = true},
	[GP_STYLE_BAD] = {.colour = GP_COLOUR_RED, .bold = true},
};

enum gp_style gp_class_style(uint8_t class)
{
	switch (class) {
	case GP_LATENCY_CRITICAL: return GP_STYLE_CLASS_LC;
	case GP_BEST_EFFORT: return GP_STYLE_CLASS_BE;
	default: return GP_STYLE_CLASS_UNMANAGED;
	}
}
