/* SPDX-License-Identifier: Apache-2.0 */
/* The main program of every test: see test.h. */
#include "support/test.h"

#include <time.h>

static struct test_case *cases;
static struct test_hook *hooks;
static CMFixtureFunction group_set_up, group_tear_down;

/* Constructors of one file may run in any order. */
void test_add(struct test_case *test)
{
	struct test_case **at = &cases;

	while (*at && (*at)->position < test->position)
		at = &(*at)->next;
	test->next = *at;
	*at = test;
}

/* Hooks run in link order: first the test's, then those of the libraries below it. */
void test_add_hook(struct test_hook *hook)
{
	struct test_hook **at = &hooks;

	while (*at)
		at = &(*at)->next;
	*at = hook;
}

void test_set_group(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
	group_set_up = set_up;
	group_tear_down = tear_down;
}

uint64_t test_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static size_t count_cases(void)
{
	size_t n = 0;

	for (const struct test_case *c = cases; c; c = c->next)
		n++;
	return n;
}

static int list_cases(void)
{
	for (const struct test_case *c = cases; c; c = c->next)
		puts(c->cmocka.name);
	return 0;
}

static int run_cases(size_t n)
{
	struct CMUnitTest *tests = calloc(n, sizeof(*tests));
	size_t i = 0;
	int failed;

	if (!tests)
		return 1;
	for (const struct test_case *c = cases; c; c = c->next)
		tests[i++] = c->cmocka;
	failed = _cmocka_run_group_tests("tests", tests, n, group_set_up, group_tear_down);
	free(tests);
	return failed;
}

int main(int argc, char **argv)
{
	const char *pattern = getenv("CMOCKA_TEST_FILTER");

	if (argc > 1 && !strcmp(argv[1], "--list"))
		return list_cases();
	for (const struct test_hook *h = hooks; h; h = h->next)
		h->run(argc, argv);
	if (argc > 1 && argv[1])
		pattern = argv[1];
	if (pattern)
		cmocka_set_test_filter(pattern);
	return cases ? run_cases(count_cases()) : TEST_SKIPPED;
}
