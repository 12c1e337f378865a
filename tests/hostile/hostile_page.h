/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file HOSTILE that hostile_shim.so maps and a test writes: rules, and counts of calls. A test
 * clears the first byte of the text, writes the rest, and sets the first byte last.
 */
#ifndef TESTS_HOSTILE_PAGE_H
#define TESTS_HOSTILE_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

#define HOSTILE_TEXT_BYTES 4096
#define HOSTILE_RULES_MAX  16

struct hostile_page {
	char text[HOSTILE_TEXT_BYTES];
	_Atomic uint32_t hang;    /* calls with the fault `hang` wait while this is 1 */
	_Atomic uint32_t hanging; /* so many wait */
	_Atomic uint32_t seen[HOSTILE_RULES_MAX], applied[HOSTILE_RULES_MAX];
};

#endif
