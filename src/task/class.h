/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Classes, priorities and reasons of holds. Freestanding: policies in the kernel module use it. */
#ifndef GP_TASK_CLASS_H
#define GP_TASK_CLASS_H

/* `unmanaged` is the default. Unmanaged tasks are never changed. */
enum gp_class { GP_UNMANAGED, GP_BEST_EFFORT, GP_LATENCY_CRITICAL };

#define GP_PRIORITY_MAX 15u /* 0 is the lowest */

/* Sources of a hold. Both bits may be set. */
enum gp_holder { GP_HELD_BY_POLICY = 1u << 0, GP_HELD_BY_USER = 1u << 1 };

#endif
