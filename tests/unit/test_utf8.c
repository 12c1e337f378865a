/* SPDX-License-Identifier: Apache-2.0 */
/* Names that other users chose: what remains of them is UTF-8 that a terminal only shows. */
#include "support/test.h"

#include "base/utf8.h"

static const struct {
	const char *name, *clean;
} table[] = {
	{"", ""},
	{"train", "train"},
	{"\xc3\xa9t\xc3\xa9 \xe6\xbc\xa2 \xf0\x9f\x98\x80",
	 "\xc3\xa9t\xc3\xa9 \xe6\xbc\xa2 \xf0\x9f\x98\x80"},
	{"\xff", "\\xff"},
	{"a\xc3", "a\\xc3"},                 /* cut in a character */
	{"\xc0\xaf", "\\xc0\\xaf"},          /* overlong */
	{"\xed\xa0\x80", "\\xed\\xa0\\x80"}, /* a surrogate */
	{"a\nb\r\t", "a\\x0ab\\x0d\\x09"},
	{"\x1b[2J", "\\x1b[2J"},
	{"\x7f", "\\x7f"},
	{"\xc2\x9b"
	 "2J",
	 "\\xc2\\x9b2J"},                      /* CSI as one character */
	{"\xe2\x80\xae", "\\xe2\\x80\\xae"},   /* right to left from here on */
	{"\xe2\x80\xa8", "\\xe2\\x80\\xa8"},   /* a line separator */
	{"\xe2\x81\xa6x", "\\xe2\\x81\\xa6x"}, /* an isolate */
	{"\xd8\x9c", "\\xd8\\x9c"},            /* a direction mark */
	{"a\xe2\x80\x93z", "a\xe2\x80\x93z"},  /* a dash is none of these */
};

TEST(a_name_becomes_harmless_text)
{
	char out[128];

	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		assert_string_equal(gp_utf8_clean(out, sizeof out, table[i].name), table[i].clean);
		assert_int_equal(gp_utf8_is_clean(table[i].name),
				 !strcmp(table[i].name, table[i].clean));
		assert_true(gp_utf8_is_clean(table[i].clean));
	}
}

TEST(a_name_is_cut_between_characters)
{
	char out[8];

	assert_string_equal(gp_utf8_clean(out, 3, "\xc3\xa9\xc3\xa9"), "\xc3\xa9");
	assert_string_equal(gp_utf8_clean(out, 4, "\xc3\xa9\xc3\xa9"), "\xc3\xa9");
	assert_string_equal(gp_utf8_clean(out, 5, "\xc3\xa9\xc3\xa9"), "\xc3\xa9\xc3\xa9");
	assert_string_equal(gp_utf8_clean(out, 5, "a\xff"), "a");
	assert_string_equal(gp_utf8_clean(out, 6, "a\xff"), "a\\xff");
	assert_string_equal(gp_utf8_clean(out, 1, "a"), "");
	out[0] = 'x';
	gp_utf8_clean(out, 0, "a");
	assert_int_equal(out[0], 'x');
}
