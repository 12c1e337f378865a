/* SPDX-License-Identifier: Apache-2.0 */
/* A cgroup that freezes a process, as `docker pause` does. */
#ifndef TESTS_KEEPER_FREEZER_H
#define TESTS_KEEPER_FREEZER_H

#include <stdbool.h>
#include <sys/types.h>

/* Moves the process into a new cgroup and freezes it. False: this machine does not allow it. */
bool freezer_freeze(pid_t pid);

/* Lets the process of the last freezer_freeze continue. */
void freezer_thaw(void);

/* Removes the cgroup. Its process must have ended. */
void freezer_remove(void);

#endif
