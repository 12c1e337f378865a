/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attributes of a task as keys of a YAML file: rows for the key tables of a rule
 * (src/config) and of a simulated task (src/sim/scenario). The including file defines the
 * enumerators KEY_CLASS to KEY_GANG and the macro IN(member), which locates `attr` and `gang` in
 * its entry, and includes yaml/keys.h.
 */
#ifndef GP_TASK_ATTR_KEYS_H
#define GP_TASK_ATTR_KEYS_H

/* clang-format off */
#define GP_ATTR_KEYS \
	[KEY_CLASS]     = {"class",    WORD(gp_class_words), IN(attr.class)}, \
	[KEY_PRIORITY]  = {"priority", WHOLE(0, GP_PRIORITY_MAX), IN(attr.priority)}, \
	[KEY_WEIGHT]    = {"weight",   WHOLE(1, 10000), IN(attr.weight)}, \
	[KEY_SHARE]     = {"share",    PERCENT, IN(attr.share_permille)}, \
	[KEY_CEILING]   = {"ceiling",  PERCENT, IN(attr.ceiling_permille)}, \
	[KEY_DEADLINE]  = {"deadline", DURATION(GP_NS_PER_US, HOUR), IN(attr.deadline_ns)}, \
	[KEY_BUDGET]    = {"budget",   DURATION(GP_NS_PER_US, HOUR), IN(attr.budget_ns)}, \
	[KEY_GANG]      = {"gang",     TEXT, IN(gang)}
/* clang-format on */

#endif
