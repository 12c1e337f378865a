/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top/colours.h"

#include "policy/policy.h"

const struct gp_appearance gp_appearance[GP_STYLES] = {
	[GP_STYLE_PLAIN] = {GP_COLOUR_DEFAULT},
	[GP_STYLE_TITLE] = {GP_COLOUR_DEFAULT, .bold = true},
	[GP_STYLE_HEAD] = {GP_COLOUR_DEFAULT, .reverse = true},
	[GP_STYLE_HEAD_SORTED] = {GP_COLOUR_DEFAULT, .reverse = true, .bold = true},
	[GP_STYLE_FAINT] = {GP_COLOUR_DEFAULT, .faint = true},
	[GP_STYLE_CLASS_LC] = {GP_COLOUR_CYAN, .bold = true},
	[GP_STYLE_CLASS_BE] = {GP_COLOUR_DEFAULT},
	[GP_STYLE_CLASS_UNMANAGED] = {GP_COLOUR_DEFAULT, .faint = true},
	[GP_STYLE_RUNNING] = {GP_COLOUR_GREEN},
	[GP_STYLE_WAITING] = {GP_COLOUR_YELLOW},
	[GP_STYLE_HELD] = {GP_COLOUR_MAGENTA},
	[GP_STYLE_SUSPENDED] = {GP_COLOUR_RED, .bold = true},
	[GP_STYLE_BAR] = {GP_COLOUR_BLUE},
	[GP_STYLE_GOOD] = {GP_COLOUR_GREEN},
	[GP_STYLE_WARNING] = {GP_COLOUR_YELLOW, .bold = true},
	[GP_STYLE_BAD] = {GP_COLOUR_RED, .bold = true},
};

enum gp_style gp_class_style(uint8_t class)
{
	switch (class) {
	case GP_LATENCY_CRITICAL: return GP_STYLE_CLASS_LC;
	case GP_BEST_EFFORT: return GP_STYLE_CLASS_BE;
	default: return GP_STYLE_CLASS_UNMANAGED;
	}
}
