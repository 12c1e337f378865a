/* SPDX-License-Identifier: Apache-2.0 */
/* The order of uint64_t values, for qsort. */
#ifndef TESTS_SUPPORT_BY_VALUE_H
#define TESTS_SUPPORT_BY_VALUE_H

#include <stdint.h>
#include <string.h>

static inline int by_value(const void *a, const void *b)
{
	uint64_t x, y;

	memcpy(&x, a, sizeof x);
	memcpy(&y, b, sizeof y);
	return (x > y) - (x < y);
}

#endif
