/* SPDX-License-Identifier: Apache-2.0 */
/* Lines, JSON, UTF-8, parameters and names of errors, without a socket. */
#include "support/test.h"
#include "base/rng.h"
#include "rpc/params.h"
#include "rpc_world.h"

static void add(struct gp_lines *lines, const char *bytes, size_t n)
{
	while (n) {
		char *room;
		size_t size;

		assert_int_equal(gp_lines_room(lines, 100000, &room, &size), 0);
		size = size < n ? size : n;
		memcpy(room, bytes, size);
		gp_lines_added(lines, size);
		bytes += size;
		n -= size;
	}
}

TEST(lines_come_out_as_they_went_in)
{
	struct gp_lines lines = {0};
	struct gp_rng rng;
	char *text = malloc(200000), *at = text, *line;
	size_t fed = 0, total, length;

	gp_rng_init(&rng, 1, 0);
	for (unsigned i = 0; i < 1000; i++)
		at += sprintf(at, "%u:%*s\n", i, (int)gp_rng_below(&rng, 150), "x");
	total = (size_t)(at - text);
	at = text;
	while (fed < total || at < text + total) {
		size_t n = gp_rng_below(&rng, 300);

		n = n < total - fed ? n : total - fed;
		add(&lines, text + fed, n);
		fed += n;
		while ((line = gp_lines_next(&lines, &length))) {
			assert_memory_equal(line, at, length);
			assert_int_equal(at[length], '\n');
			assert_int_equal(line[length], 0);
			at += length + 1;
		}
		gp_lines_shrink(&lines);
		assert_int_equal(gp_lines_waiting(&lines), text + fed - at);
	}
	assert_null(lines.bytes); /* nothing waits: nothing is kept */
	gp_lines_free(&lines);
	free(text);
}

TEST(a_line_longer_than_allowed_is_noticed_without_its_end)
{
	struct gp_lines lines = {0};
	char *room;
	size_t size, all = 0;

	while (!gp_lines_room(&lines, 10000, &room, &size)) {
		memset(room, 'x', size);
		gp_lines_added(&lines, size);
		all += size;
		assert_null(gp_lines_next(&lines, &size));
	}
	assert_int_equal(all, 10001);
	gp_lines_free(&lines);
}

static int read_json(const char *text, struct json_object **json)
{
	struct json_tokener *tokener = gp_json_tokener();
	struct gp_error err = {0};
	int r = gp_json_read(tokener, text, strlen(text), json, &err);

	assert_true(!r == !err.text[0]); /* a failure has a sentence, and nothing else has */
	json_tokener_free(tokener);
	return r;
}

TEST(json_that_is_right_is_read)
{
	static const char *const good[] = {
		"{}",
		"[]",
		"true",
		"-1",
		"18446744073709551615",
		"-9223372036854775808",
		"1.5",
		"1e10",
		"\"\"",
		"\"'NaN':\\\"\\\\\\u00e9\\ud83d\\ude00\"",
		"\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf\"",
		"{\"a\":{\"a\":{\"a\":1}},\"b\":{\"a\":\"::\"}}", /* the same key, but elsewhere */
		" { \"a\" : [ 1 , 2 ] } \r",
		"{\"\":1}",
		"{\"u0000\":\"\\\\u0000\"}", /* a backslash and letters, no zero */
	};
	struct json_object *json;

	for (unsigned i = 0; i < sizeof good / sizeof *good; i++) {
		if (read_json(good[i], &json))
			fail_msg("%s was refused", good[i]);
		json_object_put(json);
	}
	assert_int_equal(read_json("null", &json), 0);
	assert_null(json);
}

TEST(a_tokener_goes_on_after_an_error)
{
	struct json_tokener *tokener = gp_json_tokener();
	struct json_object *json;
	struct gp_error err = {0};

	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(gp_json_read(tokener, "{\"a\":[", 6, &json, &err), -EBADMSG);
		assert_int_equal(gp_json_read(tokener, "[1,2]", 5, &json, &err), 0);
		assert_int_equal(json_object_array_length(json), 2);
		json_object_put(json);
	}
	json_tokener_free(tokener);
}

TEST(bytes_become_utf8)
{
	static const struct {
		const char *bytes, *text;
	} table[] = {
		{"plain", "plain"},
		{"", ""},
		{"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
		{"a\xff"
		 "b",
		 "a\xef\xbf\xbd"
		 "b"},
		{"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"}, /* cut off */
		{"\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd"}, /* a longer form */
		{"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
	};

	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		struct json_object *json = gp_json_from_bytes(table[i].bytes);

		assert_string_equal(json_object_get_string(json), table[i].text);
		assert_true(gp_utf8_valid(json_object_get_string(json)));
		assert_int_equal(gp_utf8_valid(table[i].bytes),
				 strcmp(table[i].bytes, table[i].text) == 0);
		json_object_put(json);
	}
}

TEST(names_of_errors_come_back)
{
	for (int e = 1; e < 134; e++) {
		const char *name = gp_rpc_errno_name(-e);

		if (strcmp(name, "EIO") != 0)
			assert_int_equal(gp_rpc_errno_parse(name), -e);
	}
	assert_int_equal(gp_rpc_errno_parse("EPERM"), -EPERM);
	assert_int_equal(gp_rpc_errno_parse("ENOTHING"), -EIO);
	assert_string_equal(gp_rpc_errno_name(-100000), "EIO");
}

static struct json_object *params(void)
{
	return object("{\"n\":7,\"big\":18446744073709551615,\"minus\":-1,\"half\":0.5,\"no\":null,"
		      "\"yes\":true,\"word\":\"be\",\"list\":[1,2,3],\"map\":{\"a\":1},"
		      "\"empty\":\"\",\"bell\":\"\\u0007\"}");
}

#define assert_sentence(call, words)                                                         \
	do {                                                                                 \
		struct gp_error err = {0};                                                   \
		assert_int_equal((call), -EINVAL);                                           \
		if (!strstr(err.text, words))                                                \
			fail_msg("'%s' does not say '%s'", err.text, (const char *)(words)); \
	} while (0)

TEST(parameters_have_types)
{
	static const char *const word[] = {"lc", "be", "unmanaged"};
	struct json_object *p = params(), *json = NULL;
	struct gp_error none = {0};
	const char *text = NULL;
	uint64_t n = 99;
	unsigned choice = 99;
	bool b = false, has = true;

	assert_int_equal(gp_params_u64(p, "n", 0, 15, &n, &has, &none), 0);
	assert_true(n == 7 && has);
	assert_int_equal(gp_params_u64(p, "big", 0, UINT64_MAX, &n, NULL, &none), 0);
	assert_true(n == UINT64_MAX);
	assert_int_equal(gp_params_u64(p, "absent", 0, 15, &n, &has, &none), 0);
	assert_true(n == UINT64_MAX && !has); /* left alone */
	assert_int_equal(gp_params_u64(p, "no", 0, 15, &n, &has, &none), 0);
	assert_false(has);
	assert_int_equal(gp_params_bool(p, "yes", &b, NULL, &none), 0);
	assert_true(b);
	assert_int_equal(gp_params_string(p, "word", 2, &text, NULL, &none), 0);
	assert_string_equal(text, "be");
	assert_int_equal(gp_params_choice(p, "word", word, 3, &choice, NULL, &none), 0);
	assert_int_equal(choice, 1);
	assert_int_equal(gp_params_object(p, "map", &json, NULL, &none), 0);
	assert_int_equal(gp_params_array(p, "list", 3, &json, NULL, &none), 0);
	assert_int_equal(json_object_array_length(json), 3);
	json_object_put(p);
}

TEST(wrong_parameters_are_explained)
{
	static const char *const word[] = {"lc", "be", "unmanaged"};
	static const char *const other[] = {"lc", "unmanaged"};
	struct json_object *p = params(), *json;
	const char *text;
	uint64_t n;
	unsigned choice;
	bool b, has;

	assert_sentence(gp_params_u64(p, "n", 0, 6, &n, &has, &err),
			"'n' must be a whole number from "
			"0 to 6");
	assert_sentence(gp_params_u64(p, "n", 8, 9, &n, &has, &err), "from 8 to 9");
	assert_sentence(gp_params_u64(p, "n", 8, UINT64_MAX, &n, &has, &err), "8 or more");
	assert_sentence(gp_params_u64(p, "big", 0, INT64_MAX, &n, &has, &err), "whole number");
	assert_sentence(gp_params_u64(p, "minus", 0, 9, &n, &has, &err), "whole number");
	assert_sentence(gp_params_u64(p, "half", 0, 9, &n, &has, &err), "whole number");
	assert_sentence(gp_params_u64(p, "yes", 0, 9, &n, &has, &err), "whole number");
	assert_sentence(gp_params_u64(p, "absent", 0, 9, &n, NULL, &err), "'absent' is missing");
	assert_sentence(gp_params_u64(p, "no", 0, 9, &n, NULL, &err), "'no' is missing");
	assert_sentence(gp_params_bool(p, "n", &b, &has, &err), "true or false");
	assert_sentence(gp_params_string(p, "n", 9, &text, &has, &err), "must be a string");
	assert_sentence(gp_params_string(p, "word", 1, &text, &has, &err), "1 to 1 bytes");
	assert_sentence(gp_params_string(p, "empty", 9, &text, &has, &err), "1 to 9 bytes");
	assert_sentence(gp_params_string(p, "bell", 9, &text, &has, &err), "control character");
	assert_sentence(gp_params_choice(p, "word", other, 2, &choice, &has, &err), "word 'be'");
	assert_sentence(gp_params_choice(p, "n", word, 3, &choice, &has, &err), "a string");
	assert_sentence(gp_params_object(p, "list", &json, &has, &err), "a JSON object");
	assert_sentence(gp_params_array(p, "map", 3, &json, &has, &err), "a list");
	assert_sentence(gp_params_array(p, "list", 2, &json, &has, &err), "at most 2");
	json_object_put(p);
}

TEST(unknown_parameters_get_a_suggestion)
{
	struct json_object *p = object("{\"class\":\"be\",\"weigth\":3}");

	assert_sentence(GP_PARAMS_KNOWN(p, &err, "class", "weight"), "perhaps 'weight' is meant");
	assert_sentence(GP_PARAMS_KNOWN(p, &err, "class", "gang"), "there are class, gang");
	assert_int_equal(GP_PARAMS_KNOWN(p, NULL, "class", "weigth"), 0);
	json_object_put(p);
}
