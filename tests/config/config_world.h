/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations written in a test, on a machine with known users and groups. */
#ifndef TESTS_CONFIG_CONFIG_WORLD_H
#define TESTS_CONFIG_CONFIG_WORLD_H

#include "support/test.h"

#include "build_config.h"
#include "config/config.h"

enum { ALICE = 1000, BOB = 1001, STUDENTS = 2000, TEACHERS = 2001, GPREEMPT = 2002 };

struct gp_config *read_good(const char *text);

/* Both `a` and `b` stand in the sentence, and no more than fits into one. */
void read_bad(const char *text, unsigned line, const char *a, const char *b);

/* A process of alice's, of which everything is known. */
struct gp_procinfo alices(void);
struct gp_match match_in(const char *text, const struct gp_procinfo *info);

#endif
