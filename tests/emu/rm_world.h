/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the emulator share: each has an emulator of its own, and one client on it. */
#ifndef TESTS_EMU_RM_WORLD_H
#define TESTS_EMU_RM_WORLD_H

#include "support/test.h"

#include <sys/syscall.h>

#include "emu/nvidia/emu.h"
#include "emu/nvidia/rm_client.h"

struct world {
	struct emu emu;
	int fd;
	uint32_t client, device, subdevice, group, channel;
	struct emu_load load; /* killed at the end of the test */
};

/* The load of the world, with options of rm-load. */
#define rm_load(w, ...)                                                                       \
	({                                                                                    \
		assert_int_equal(emu_load_start(&(w)->load, ##__VA_ARGS__, (char *)NULL), 0); \
		&(w)->load;                                                                   \
	})

uint32_t make(const struct world *w, uint32_t parent, uint32_t class, void *params, uint32_t size);
uint32_t make_group(const struct world *w, uint32_t engine);
uint32_t make_channel(const struct world *w, uint32_t parent);
uint32_t make_memory(const struct world *w, uint64_t bytes);

/* A client with a device, and a compute group with one channel, on the world's file. */
void make_client(struct world *w);
int rm_set_up(void **state);
int rm_tear_down(void **state);

#define WORLD_TEST(f) TEST_IN(struct world, f, rm_set_up, rm_tear_down)

/* Calls. */

static inline uint32_t control(const struct world *w, uint32_t object, uint32_t cmd, void *params,
			       uint32_t size)
{
	return rm_call_control(w->fd, w->client, object, cmd, params, size);
}

#define ask(w, object, cmd, params) control(w, object, cmd, params, sizeof(*(params)))

/* The class of an object, or 0; through any file. */
uint32_t class_of(int fd, uint32_t client, uint32_t object);
uint32_t set_slice(const struct world *w, uint32_t group, uint64_t us);
uint32_t disable(const struct world *w, uint32_t client, uint32_t channel, bool disable);
void submit(const struct world *w, uint32_t channel, uint64_t kernels, uint64_t us);

/* What is done, at the latest after `ms`. */
struct emu_query wait_done(const struct world *w, uint32_t channel, uint64_t done, unsigned ms);
uint64_t digest_of(uint64_t kernels, uint64_t us);

/* A duplicate of another process's file. */
int duplicate(pid_t pid, int fd);

#endif
