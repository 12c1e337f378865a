/* SPDX-License-Identifier: Apache-2.0 */
/* The control thread's part of a daemon with one device (still_gpu.h) and one client, which is this
 * process: the test is the loop. */
#ifndef TESTS_DAEMON_CONTROL_WORLD_H
#define TESTS_DAEMON_CONTROL_WORLD_H

#include "support/test.h"

#include "still_gpu.h"

#include <json-c/json.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "daemon/control.h"

#define PATIENCE_NS (60 * GP_NS_PER_S)

struct world {
	struct gp_control c;
	struct still_gpu *gpu;
	int client;
	char folder[64];
	char assignments[80], socket[80];
};

void world_begin(struct world *w, unsigned tasks, uint32_t caps);
void world_end(struct world *w);

/* A test with such a world, `w`. */
#define CONTROL_TEST(function, tasks, caps)         \
	static void function##_in(struct world *w); \
	TEST(function)                              \
	{                                           \
		struct world world;                 \
                                                    \
		world_begin(&world, tasks, caps);   \
		function##_in(&world);              \
		world_end(&world);                  \
	}                                           \
	static void function##_in(struct world *w)

/* Runs the loop until `is_so`; false: it never is. */
bool world_until(struct world *w, bool (*is_so)(struct world *w));
bool world_has_reply(struct world *w);

static inline bool world_device_waits(struct world *w)
{
	return w->gpu->at_gate;
}

/* The answer to a request, which the caller puts. */
struct json_object *world_ask(struct world *w, const char *method, const char *params);

/* The request is answered with a result, or with an error whose JSON contains `part`. */
void world_expect_result(struct world *w, const char *method, const char *params);
void world_expect_error(struct world *w, const char *method, const char *params, const char *part);

#endif
