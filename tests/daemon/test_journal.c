/* SPDX-License-Identifier: Apache-2.0 */
/* A record of the log becomes fields of the journal. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "daemon/journal.h"

static void fields_are(const char *line, const char *const *wanted, unsigned n)
{
	struct iovec field[GP_JOURNAL_FIELDS];
	char text[1024];

	assert_int_equal(gp_journal_split(line, 4, text, sizeof text, field), n);
	for (unsigned i = 0; i < n; i++) {
		assert_string_equal(field[i].iov_base, wanted[i]);
		assert_int_equal(field[i].iov_len, strlen(wanted[i]));
	}
}

static void the_event_and_every_field_can_be_searched_for(void **state)
{
	(void)state;
	fields_are("warn hold.failed task=7 errno=16",
	           (const char *const[]){"MESSAGE=hold.failed task=7 errno=16", "PRIORITY=4",
	                                 "GPREEMPT_EVENT=hold.failed", "GPREEMPT_TASK=7",
	                                 "GPREEMPT_ERRNO=16"},
	           5);
}

static void a_quoted_value_may_hold_anything(void **state)
{
	(void)state;
	fields_are("info process name=\"a b=\\\"c\\\" d\" pid=3",
	           (const char *const[]){"MESSAGE=process name=\"a b=\\\"c\\\" d\" pid=3",
	                                 "PRIORITY=4", "GPREEMPT_EVENT=process",
	                                 "GPREEMPT_NAME=a b=\\\"c\\\" d", "GPREEMPT_PID=3"},
	           5);
}

static void odd_records_lose_nothing_but_their_fields(void **state)
{
	(void)state;
	fields_are("info config.wrong x.yaml:3: no such key; the old one stays",
	           (const char *const[]){
			   "MESSAGE=config.wrong x.yaml:3: no such key; the old one stays",
			   "PRIORITY=4", "GPREEMPT_EVENT=config.wrong"},
	           3);
	fields_are("info end text=\"cut",
	           (const char *const[]){"MESSAGE=end text=\"cut", "PRIORITY=4",
	                                 "GPREEMPT_EVENT=end", "GPREEMPT_TEXT=cu"},
	           4);
}

static void what_does_not_fit_is_left_out(void **state)
{
	struct iovec field[GP_JOURNAL_FIELDS];
	char text[40];

	(void)state;
	assert_int_equal(gp_journal_split("info a b=1 c=2", 6, text, sizeof text, field), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_event_and_every_field_can_be_searched_for),
		cmocka_unit_test(a_quoted_value_may_hold_anything),
		cmocka_unit_test(odd_records_lose_nothing_but_their_fields),
		cmocka_unit_test(what_does_not_fit_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
