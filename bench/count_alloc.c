/* SPDX-License-Identifier: Apache-2.0 */
#include "count_alloc.h"

#include <stdatomic.h>
#include <stddef.h>

/* The linker defines these names: __wrap_X is called for X, __real_X is the original. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t number, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t number, size_t size);
void *__wrap_realloc(void *old, size_t size);

static atomic_uint_fast64_t allocations;
static atomic_uint_fast64_t bytes;

static void count(size_t size)
{
	atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&bytes, size, memory_order_relaxed);
}

void *__wrap_malloc(size_t size)
{
	count(size);
	return __real_malloc(size);
}

void *__wrap_calloc(size_t number, size_t size)
{
	count(number * size);
	return __real_calloc(number, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	count(size);
	return __real_realloc(old, size);
}

uint64_t bench_allocations(void)
{
	return atomic_load_explicit(&allocations, memory_order_relaxed);
}

uint64_t bench_allocated_bytes(void)
{
	return atomic_load_explicit(&bytes, memory_order_relaxed);
}
