/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Test cases that register themselves with test_main.c, which runs them in the order of the file:
 *
 *	TEST(a_full_heap_refuses_another_timer)
 *	{
 *		...
 *	}
 *
 * `PROGRAM --list` prints the names of the test cases. An argument, or the environment variable
 * CMOCKA_TEST_FILTER, selects test cases by a pattern with * and ?. A program without test cases
 * exits with TEST_SKIPPED.
 *
 * This header includes cmocka, and the standard headers that most tests need.
 */
#ifndef TESTS_SUPPORT_TEST_H
#define TESTS_SUPPORT_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define TEST_SKIPPED 77 /* exit status: the tests cannot run here */

struct test_case {
	struct CMUnitTest cmocka;
	int position; /* in its file */
	struct test_case *next;
};

struct test_hook {
	void (*run)(int argc, char **argv);
	struct test_hook *next;
};

void test_add(struct test_case *test);
void test_add_hook(struct test_hook *hook);
void test_set_group(CMFixtureFunction set_up, CMFixtureFunction tear_down);

#define TEST_JOIN_(a, b) a##b
#define TEST_JOIN(a, b)  TEST_JOIN_(a, b)
#define TEST_CONSTRUCTOR(number) \
	__attribute__((constructor)) static void TEST_JOIN(test_register_, number)(void)
#define TEST_ADD_AT(number, title, function, ...)                                          \
	TEST_CONSTRUCTOR(number)                                                           \
	{                                                                                  \
		static struct test_case test_ = {.cmocka = {title, function, __VA_ARGS__}, \
						 .position = number};                      \
		test_add(&test_);                                                          \
	}

/* Adds a test case: its name, function, set-up, tear-down, and initial state. */
#define TEST_ADD(title, ...)    TEST_ADD_AT(__COUNTER__, title, __VA_ARGS__)

#define TEST_FUNCTION(function) static void function(__attribute__((unused)) void **state)

/* Defines a test case with a set-up and a tear-down; each may be NULL. */
#define TEST_WITH(function, set_up, tear_down)                 \
	static void function(void **state);                    \
	TEST_ADD(#function, function, set_up, tear_down, NULL) \
	TEST_FUNCTION(function)
#define TEST(function) TEST_WITH(function, NULL, NULL)

/*
 * Defines a test case for each of up to 8 variants. add(function, variant) calls TEST_ADD:
 * see AMD_TEST_ON.
 */
#define TEST_EACH(function, add, ...)        \
	static void function(void **state);  \
	TEST_MAP(add, function, __VA_ARGS__) \
	TEST_FUNCTION(function)

#define TEST_MAP_1(m, f, a)                        m(f, a)
#define TEST_MAP_2(m, f, a, ...)                   m(f, a) TEST_MAP_1(m, f, __VA_ARGS__)
#define TEST_MAP_3(m, f, a, ...)                   m(f, a) TEST_MAP_2(m, f, __VA_ARGS__)
#define TEST_MAP_4(m, f, a, ...)                   m(f, a) TEST_MAP_3(m, f, __VA_ARGS__)
#define TEST_MAP_5(m, f, a, ...)                   m(f, a) TEST_MAP_4(m, f, __VA_ARGS__)
#define TEST_MAP_6(m, f, a, ...)                   m(f, a) TEST_MAP_5(m, f, __VA_ARGS__)
#define TEST_MAP_7(m, f, a, ...)                   m(f, a) TEST_MAP_6(m, f, __VA_ARGS__)
#define TEST_MAP_8(m, f, a, ...)                   m(f, a) TEST_MAP_7(m, f, __VA_ARGS__)
#define TEST_MAP_N(a, b, c, d, e, f, g, h, n, ...) TEST_MAP_##n
#define TEST_MAP(m, f, ...)                        TEST_MAP_N(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0)(m, f, __VA_ARGS__)

/* As TEST_WITH and TEST_EACH; the function has the state that the set-up made as `type *w`. */
#define TEST_IN(type, function, set_up, tear_down)             \
	static void function(void **state);                    \
	TEST_ADD(#function, function, set_up, tear_down, NULL) \
	TEST_BODY(type, function)
#define TEST_EACH_IN(type, function, add, ...) \
	static void function(void **state);    \
	TEST_MAP(add, function, __VA_ARGS__)   \
	TEST_BODY(type, function)
/* A type cannot stand in parentheses. */
/* NOLINTBEGIN(bugprone-macro-parentheses) */
#define TEST_BODY(type, function)             \
	static void function##_body(type *w); \
	static void function(void **state)    \
	{                                     \
		function##_body(*state);      \
	}                                     \
	static void function##_body(__attribute__((unused)) type *w)
/* NOLINTEND(bugprone-macro-parentheses) */

/*
 * A block that runs before all tests, with argc and argv. It may exit, with TEST_SKIPPED where the
 * tests cannot run. It sets an argument to NULL that is not a pattern.
 */
#define TEST_BEGIN_AT(number)                                                            \
	static void TEST_JOIN(test_begin_, number)(int argc, char **argv);               \
	TEST_CONSTRUCTOR(number)                                                         \
	{                                                                                \
		static struct test_hook hook_ = {.run = TEST_JOIN(test_begin_, number)}; \
		test_add_hook(&hook_);                                                   \
	}                                                                                \
	static void TEST_JOIN(test_begin_, number)(__attribute__((unused)) int argc,     \
						   __attribute__((unused)) char **argv)
#define TEST_BEGIN TEST_BEGIN_AT(__COUNTER__)

/* Monotonic time. */
uint64_t test_now_ns(void);

/* Waits for the condition. If it does not come true within the seconds, the test fails. */
#define TEST_WAIT_S(seconds, condition)                                           \
	do {                                                                      \
		uint64_t until_ = test_now_ns() + (uint64_t)(seconds)*1000000000; \
		bool so_ = (condition);                                           \
                                                                                  \
		while (!so_ && test_now_ns() < until_) {                          \
			usleep(1000);                                             \
			so_ = (condition);                                        \
		}                                                                 \
		if (!so_)                                                         \
			fail_msg("never: %s", #condition);                        \
	} while (0)

/* Long enough for a slow machine and a sanitizer. */
#define TEST_WAIT(condition) TEST_WAIT_S(20, condition)

/* Functions of cmocka that run once before and after all tests of the program. */
#define TEST_GROUP(set_up, tear_down)              \
	TEST_CONSTRUCTOR(group)                    \
	{                                          \
		test_set_group(set_up, tear_down); \
	}

/* The kinds of actions of a back end, by name. */
#define gp_gpu_hold(g, ...)                  gp_gpu_act_now(GP_ACT_HOLD, g, __VA_ARGS__)
#define gp_gpu_release(g, ...)               gp_gpu_act_now(GP_ACT_RELEASE, g, __VA_ARGS__)
#define gp_gpu_set_slice(g, ...)             gp_gpu_act_now(GP_ACT_SLICE, g, __VA_ARGS__)
#define gp_gpu_act_now(kind, g, now_ns, ...) gp_gpu_act(g, now_ns, kind, __VA_ARGS__)

#endif
