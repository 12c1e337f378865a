/* SPDX-License-Identifier: Apache-2.0 */
/* Under a sanitizer an allocation fails as it does without: NULL, not an abort. Once per program.
 */
#ifndef TESTS_SUPPORT_FAILING_MALLOC_H
#define TESTS_SUPPORT_FAILING_MALLOC_H

const char *__asan_default_options(void);
const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
	return "allocator_may_return_null=1";
}

#endif
