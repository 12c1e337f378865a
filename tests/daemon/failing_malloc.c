/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded: allocations fail. $FAIL names a file with two 64-bit numbers, which a test may change
 * at any time: how many allocations succeed before the next failure, and how many then fail (0:
 * none).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);

static struct {
	int64_t left, failures;
} * plan;

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("FAIL");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;

	plan = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (plan == MAP_FAILED)
		abort();
	close(fd);
}

static bool fails(void)
{
	if (!plan || __atomic_load_n(&plan->failures, __ATOMIC_RELAXED) <= 0 ||
	    __atomic_fetch_sub(&plan->left, 1, __ATOMIC_RELAXED) > 0 ||
	    __atomic_fetch_sub(&plan->failures, 1, __ATOMIC_RELAXED) <= 0)
		return false;
	errno = ENOMEM;
	return true;
}

__attribute__((visibility("default"))) void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

__attribute__((visibility("default"))) void *calloc(size_t n, size_t size)
{
	return fails() ? NULL : __libc_calloc(n, size);
}

__attribute__((visibility("default"))) void *realloc(void *p, size_t size)
{
	return fails() ? NULL : __libc_realloc(p, size);
}
