/* SPDX-License-Identifier: Apache-2.0 */
#include "hand_made.h"

void gw_close(struct gpu_world *w)
{
	if (w->gpu)
		gp_nvidia_ops.close(w->gpu);
	w->gpu = NULL;
}

int gw_set_up(void **state)
{
	struct gpu_world *w = calloc(1, sizeof *w);

	*state = w;
	return w && !emu_start(&w->emu, "--gpus", "2", NULL) ? 0 : -1;
}

int gw_tear_down(void **state)
{
	struct gpu_world *w = *state;
	int r;

	for (unsigned i = 0; i < w->nhands; i++) {
		hand_stop(w->hand[i]);
		free(w->hand[i]);
	}
	for (unsigned i = 0; i < w->nloads; i++)
		emu_load_kill(&w->load[i]);
	gw_close(w);
	r = emu_stop(&w->emu);
	free(w);
	return r;
}

/* Skips the tests where there is no FUSE. */
TEST_BEGIN
{
	struct emu emu;

	if (emu_start(&emu, NULL) == -ENODEV)
		exit(EMU_SKIP);
	emu_stop(&emu);
}

pid_t gw_kill(struct emu_load *load)
{
	pid_t pid = load->pid;

	emu_load_kill(load);
	return pid;
}

uint32_t gw_attach(struct gpu_world *w, pid_t pid)
{
	struct gp_error err = {0};
	struct gp_seen seen;
	uint32_t handle = 0;

	if (!w->gpu)
		gw_open(w);
	if (gp_gpu_find(w->gpu, pid, &seen, &err))
		fail_msg("find %d: %s", pid, err.text);
	assert_int_equal(gp_gpu_attach(w->gpu, seen.key, &handle), 0);
	return handle;
}

struct gp_observation gw_look(struct gpu_world *w, uint32_t handle)
{
	struct gp_observation o = {.handle = handle};

	assert_int_equal(gp_gpu_observe(w->gpu, gw_now(), &o, 1), 0);
	return o;
}

struct gp_observation gw_settled(struct gpu_world *w, uint32_t handle)
{
	struct gp_observation o = {0};

	for (int i = 0; i < 5000; i++) {
		o = gw_look(w, handle);
		if (!o.under_way && (o.known & GP_KNOWN_HELD))
			break;
		usleep(1000);
	}
	assert_int_equal(o.under_way, 0);
	return o;
}

struct gp_action gw_settled_action(struct gpu_world *w, pid_t pid, uint32_t slice_us)
{
	struct gp_action a = {.handle = gw_attach(w, pid), .slice_us = slice_us};

	gw_settled(w, a.handle);
	return a;
}

void gw_load_batch(struct gpu_world *w, struct emu_load **load, struct gp_action *a, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		load[i] = gw_load(w);
	for (unsigned i = 0; i < n; i++)
		a[i] = (struct gp_action){.handle = gw_attach(w, load[i]->pid)};
	for (unsigned i = 0; i < n; i++)
		gw_settled(w, a[i].handle);
}

struct gp_observation gw_act(struct gpu_world *w, enum gw_action what, uint32_t handle,
			     uint32_t slice_us)
{
	struct gp_action a = {.handle = handle, .slice_us = slice_us};
	int r = what == GW_HOLD      ? gp_gpu_hold(w->gpu, gw_now(), &a, 1)
		: what == GW_RELEASE ? gp_gpu_release(w->gpu, gw_now(), &a, 1)
				     : gp_gpu_set_slice(w->gpu, gw_now(), &a, 1);

	assert_int_equal(r, 0);
	assert_int_equal(a.status, -EINPROGRESS);
	return gw_settled(w, handle);
}

void gw_slice_and_hold(struct gpu_world *w, uint32_t handle)
{
	gw_act(w, GW_SLICE, handle, 1);
	gw_act(w, GW_HOLD, handle, 0);
}

bool gw_makes_progress(struct gpu_world *w, pid_t pid)
{
	uint64_t before = gw_run_ns(w, pid);

	emulator_sleep_ms(60);
	return gw_run_ns(w, pid) > before;
}

bool gw_state_has(struct gpu_world *w, const char *text)
{
	char *json = emu_state(&w->emu);
	bool has = json && strstr(json, text);

	free(json);
	return has;
}

bool gw_sees(struct gpu_world *w, pid_t pid, struct gp_seen *out)
{
	struct gp_seen seen[64];
	int n = gp_gpu_scan(w->gpu, gw_now(), seen, 64);

	if (out)
		*out = (struct gp_seen){0};
	if (n != -EAGAIN) /* still searching */
		assert_in_range(n, 0, 64);
	for (int i = 0; i < n; i++)
		if (seen[i].pid == pid && seen[i].queue == GP_QUEUE_ALL) {
			if (out)
				*out = seen[i];
			return true;
		}
	return false;
}

unsigned gw_queues(struct gpu_world *w, uint64_t key, const char *type)
{
	struct gp_queue queue[64];
	int n = gp_gpu_queues(w->gpu, key, true, queue, 64, NULL);
	unsigned found = 0;

	assert_in_range(n, 0, 64);
	for (int i = 0; i < n; i++)
		found += !strcmp(queue[i].type, type);
	return found;
}

struct gp_gpu *gw_open_index(unsigned index)
{
	struct gp_gpu *gpu = NULL;

	assert_int_equal(gp_nvidia_ops.open(index, 0, &gpu), 0);
	return gpu;
}
