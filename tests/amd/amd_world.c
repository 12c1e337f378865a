/* SPDX-License-Identifier: Apache-2.0 */
#include "amd_world.h"

void aw_expect_leak_checks(bool possible)
{
	if (possible)
		unsetenv("LSAN_OPTIONS");
	else
		setenv("LSAN_OPTIONS", "detect_leaks=0", 1);
}

int aw_set_up(void **state)
{
	const struct aw_machine *m = *state;
	struct amd_world *w = calloc(1, sizeof *w);

	*state = w;
	if (!m)
		m = &mi250;
	if (!w || kfd_emu_start(&w->emu, "--gpu", m->gpu, "--rule", m->rule, "--slots",
				m->slots ? m->slots : "1", m->second_gpu ? "--gpu" : NULL,
				m->second_gpu, NULL))
		return -1;
	aw_expect_leak_checks(strcmp(m->rule, "old") != 0);
	return 0;
}

void aw_close(struct amd_world *w)
{
	if (w->gpu)
		gp_amd_ops.close(w->gpu);
	w->gpu = NULL;
}

int aw_tear_down(void **state)
{
	struct amd_world *w = *state;
	int r;

	for (unsigned i = 0; i < w->ntargets; i++)
		target_kill(&w->target[i]);
	aw_close(w);
	for (unsigned i = 0; i < w->nloads; i++)
		kfd_load_kill(&w->load[i]);
	r = kfd_emu_stop(&w->emu);
	free(w);
	aw_expect_leak_checks(true);
	return r;
}

/* Skips the tests where there is no FUSE. */
TEST_BEGIN
{
	struct kfd_emu emu;
	if (kfd_emu_start(&emu, NULL) == -ENODEV)
		exit(KFD_EMU_SKIP);
	kfd_emu_stop(&emu);
}

void aw_wait_progress(struct amd_world *w, pid_t pid)
{
	uint64_t before = aw_sum(w, pid, "executed");

	TEST_WAIT(aw_sum(w, pid, "executed") > before + 5);
}

void aw_stands_still(struct amd_world *w, pid_t pid)
{
	uint64_t run_ns = aw_sum(w, pid, "run_ns"), executed = aw_sum(w, pid, "executed");

	emulator_sleep_ms(50);
	assert_int_equal(aw_sum(w, pid, "run_ns"), run_ns);
	assert_int_equal(aw_sum(w, pid, "executed"), executed);
}

void aw_wait_released(struct amd_world *w, pid_t pid)
{
	TEST_WAIT(!aw_suspended(w, pid));
	aw_wait_progress(w, pid);
}

struct target *aw_target(struct amd_world *w)
{
	struct target *t = &w->target[w->ntargets++];

	assert_in_range(w->ntargets, 1, AW_TARGETS);
	target_start(t);
	return t;
}

struct target *aw_target_with(struct amd_world *w, unsigned queues)
{
	struct target *t = aw_target(w);

	target_become_rocm(t, queues);
	return t;
}

uint32_t aw_attach_on(struct gp_gpu *gpu, pid_t pid)
{
	struct gp_error err = {0};
	struct gp_seen seen;
	uint32_t handle = 0;
	int r = gp_gpu_find(gpu, pid, &seen, &err);

	if (r)
		fail_msg("find %d: %s", pid, err.text);
	assert_int_equal(gp_gpu_attach(gpu, seen.key, &handle), 0);
	return handle;
}

uint32_t aw_attach(struct amd_world *w, pid_t pid)
{
	if (!w->gpu)
		aw_open(w);
	return aw_attach_on(w->gpu, pid);
}

uint32_t aw_prepared(struct amd_world *w, pid_t pid)
{
	uint32_t handle = aw_attach(w, pid);

	gp_gpu_prepare(w->gpu, handle, true);
	TEST_WAIT(aw_is_debugged(w, pid));
	aw_settled(w, handle);
	return handle;
}

struct gp_observation aw_look_on(struct gp_gpu *gpu, uint32_t handle)
{
	struct gp_observation o = {.handle = handle};

	assert_int_equal(gp_gpu_observe(gpu, aw_now(), &o, 1), 0);
	return o;
}

struct gp_observation aw_settled_on(struct gp_gpu *gpu, uint32_t handle)
{
	TEST_WAIT(!aw_look_on(gpu, handle).under_way);
	return aw_look_on(gpu, handle);
}

struct gp_observation aw_act_on(struct gp_gpu *gpu, bool hold, uint32_t handle)
{
	struct gp_action a = {.handle = handle};
	int r = hold ? gp_gpu_hold(gpu, aw_now(), &a, 1) : gp_gpu_release(gpu, aw_now(), &a, 1);

	assert_int_equal(r, 0);
	assert_int_equal(a.status, -EINPROGRESS);
	return aw_settled_on(gpu, handle);
}

void aw_must_hold(struct amd_world *w, uint32_t handle)
{
	struct gp_observation o = aw_hold(w, handle);
	struct gp_error err = {0};

	gp_gpu_why(w->gpu, handle, &err);
	if (o.failed)
		fail_msg("hold: %d: %s", o.failed, err.text);
	assert_true(o.held);
}

void aw_must_release(struct amd_world *w, uint32_t handle)
{
	struct gp_observation o = aw_release(w, handle);

	assert_int_equal(o.failed, 0);
	assert_false(o.held);
}

void aw_must_say(struct amd_world *w, uint32_t handle, const char *words)
{
	struct gp_error err = {0};

	gp_gpu_why(w->gpu, handle, &err);
	if (!strstr(err.text, words))
		fail_msg("not \"%s\": %s", words, err.text);
}

bool aw_sees(struct amd_world *w, pid_t pid, struct gp_seen *out)
{
	struct gp_seen seen[64];
	int n = gp_gpu_scan(w->gpu, aw_now(), seen, 64);

	assert_in_range(n, 0, 64);
	for (int i = 0; i < n; i++)
		if (seen[i].pid == pid && seen[i].queue == GP_QUEUE_ALL) {
			if (out)
				*out = seen[i];
			return true;
		}
	return false;
}
