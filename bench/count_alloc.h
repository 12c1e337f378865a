/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the allocations of a benchmark, so that "allocates nothing" can be measured. The linker
 * (--wrap) redirects every malloc, calloc and realloc of the program and of the internal libraries.
 * Allocations inside shared libraries (libc's strdup or fopen) are not counted.
 */
#ifndef BENCH_COUNT_ALLOC_H
#define BENCH_COUNT_ALLOC_H

#include <stdint.h>

/* Allocations of all threads since the start of the program; free() is not subtracted. */
uint64_t bench_allocations(void);
uint64_t bench_allocated_bytes(void); /* requested sizes; a realloc counts its new size */

#endif
