/* SPDX-License-Identifier: Apache-2.0 */
/* Files that come with a line (SCM_RIGHTS): the right ones with the right line, and none is left.
 */
#include "support/test.h"

#include <sys/mman.h>

#include "rpc_world.h"

#define FILES "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"files\"}\n"
#define MANY  200 /* the kernel takes 253 */

static int file[MANY]; /* file[i] has i bytes */

static int make_files(void **state)
{
	(void)state;
	for (int i = 0; i < MANY; i++) {
		file[i] = memfd_create("file", MFD_CLOEXEC);
		if (file[i] < 0 || ftruncate(file[i], i))
			return -1;
	}
	return 0;
}

/* The next answer's files, by their size: "[1,2]". */
static void hear_files(int fd, const char *sizes)
{
	struct json_object *json = raw_hear(fd);

	assert_string_equal(gp_json_text(json_object_object_get(json, "result"), NULL), sizes);
	json_object_put(json);
}

WORLD_TEST(files_come_with_their_line)
{
	struct gp_client *client = client_of(w);
	unsigned before = open_files();
	struct json_object *result;
	struct gp_error err = {0};

	for (unsigned n = 0; n <= GP_RPC_FDS_MAX; n++) {
		assert_int_equal(gp_client_call(client, "files", NULL, file + 1, n, &result, &err),
				 0);
		assert_int_equal(json_object_array_length(result), n);
		for (unsigned i = 0; i < n; i++)
			assert_int_equal(json_object_get_int(json_object_array_get_idx(result, i)),
					 i + 1);
		json_object_put(result);
	}
	assert_int_equal(gp_client_call(client, "files", NULL, file, 5, &result, &err), -EINVAL);
	await_files(before);
	gp_client_close(client);
}

/* The server reads all of these at once, or in any other way; it must not matter. */
WORLD_TEST(files_go_to_the_line_they_were_sent_with)
{
	struct gp_client *other = client_of(w);
	unsigned before = open_files();
	int fd = raw_connect(w->path);

	for (unsigned i = 0; i < 16; i++) /* so that nothing more is read for now */
		raw_say(fd, "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"keep\"}");
	await_counter(other, "kept", 16);
	raw_send(fd, FILES FILES, 2 * strlen(FILES));
	raw_send_files(fd, FILES, file + 1, 1);
	raw_send(fd, FILES, strlen(FILES));
	raw_send_files(fd, FILES, file, GP_RPC_FDS_MAX + 1);
	raw_send_files(fd, FILES, file + 2, 2);
	raw_send_files(fd, "{\"jsonrpc\":\"2.0\",", file + 4, 1); /* half a line ... */
	raw_send(fd, "\"id\":1,", 7);
	raw_send_files(fd, "\"method\":\"files\"}\n", file + 5, 1); /* ... and the rest */
	raw_send(fd, FILES, strlen(FILES));
	json_object_put(ask(other, "let_go", object("{\"count\":16}")));
	for (unsigned i = 0; i < 16; i++)
		raw_hear_result(fd, 9);
	hear_files(fd, "[]");
	hear_files(fd, "[]");
	hear_files(fd, "[1]");
	hear_files(fd, "[]");
	assert_error(fd, GP_RPC_INVALID_REQUEST);
	hear_files(fd, "[2,3]");
	hear_files(fd, "[4,5]");
	hear_files(fd, "[]");
	close(fd);
	await_counter(other, "gone", 1);
	await_files(before);
	gp_client_close(other);
}

WORLD_TEST(too_many_files_are_refused_and_closed)
{
	struct gp_client *other = client_of(w);
	unsigned before = open_files();
	int fd = raw_connect(w->path);

	for (unsigned n = GP_RPC_FDS_MAX + 1; n <= MANY; n *= 3) {
		raw_send_files(fd, FILES, file, n);
		assert_error(fd, GP_RPC_INVALID_REQUEST);
		raw_send_files(fd, FILES, file + 7, 1);
		hear_files(fd, "[7]");
	}
	for (unsigned i = 0; i < 50; i++) /* a few at a time, and the line never ends */
		raw_send_files(fd, " ", file, 4);
	raw_send(fd, FILES, strlen(FILES));
	assert_error(fd, GP_RPC_INVALID_REQUEST);
	raw_send(fd, FILES, strlen(FILES));
	hear_files(fd, "[]");
	await_files(before + 3); /* this end, the server's, and a pidfd */
	close(fd);
	gp_client_close(other);
}

WORLD_TEST(files_of_lines_that_nobody_can_use_are_closed)
{
	static const char *const lines[] = {
		"\n",
		"rubbish\n",
		"[]\n",
		"{\"jsonrpc\":\"2.0\",\"id\":1}\n",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"nothing\"}\n",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}\n",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"let_go\"}\n",
		"{\"jsonrpc\":\"2.0\",\"method\":\"hint\"}\n",
		"half a line",
	};
	struct gp_client *other = client_of(w);
	unsigned before = open_files(), n = 0;

	for (unsigned i = 0; i < sizeof lines / sizeof *lines; i++)
		for (unsigned round = 0; round < 5; round++) {
			int fd = raw_connect(w->path);

			raw_send_files(fd, lines[i], file, 3);
			close(fd);
			n++;
		}
	await_counter(other, "gone", n);
	await_files(before);
	gp_client_close(other);
}

WORLD_TEST(a_flood_of_files_slows_nobody_else)
{
	struct bystander beside;
	unsigned before;
	int fd = raw_connect(w->path);

	bystander_start(&beside, w);
	bystander_goes_on(&beside, 1);
	before = open_files();
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < 10; i++)
			raw_send_files(fd, " ", file, MANY);
		bystander_goes_on(&beside, 5);
		/* Of 200 messages: those of one may just have come. */
		assert_in_range(open_files(), before - 8, before + 2 * MANY + 8);
	}
	bystander_stop(&beside);
	close(fd);
}

TEST_GROUP(make_files, NULL)
