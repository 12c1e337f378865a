/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the allocations of a benchmark, so that "allocates nothing" can be measured. The
 * linker (--wrap) sends every malloc, calloc and realloc of the program and of the internal
 * libraries through here. What a shared library allocates for itself (libc's strdup or fopen)
 * is not seen.
 */
#ifndef BENCH_COUNT_ALLOC_H
#define BENCH_COUNT_ALLOC_H

#include <stdint.h>

/* Since the start of the program, all threads together; freeing does not count backwards. */
uint64_t bench_allocations(void);
uint64_t bench_allocated_bytes(void); /* as asked for; a realloc counts its new size */

#endif
