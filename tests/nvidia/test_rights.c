/* SPDX-License-Identifier: Apache-2.0 */
/* Access: others' processes, own processes, no device, a device that cannot be opened. */
#include <sys/stat.h>

#include "gpu/nvidia/rm.h"
#include "hand_made.h"

#define NOBODY "65534"

/* The answer of a process of user `nobody`. */
struct answer {
	int code, other;
	char text[256];
};

#define as_nobody(f, pid)                                                      \
	({                                                                     \
		struct answer answer_ = {.code = 12345};                       \
		pid_t pid_ = (pid);                                            \
                                                                               \
		test_as_user(TEST_NOBODY, f, &pid_, &answer_, sizeof answer_); \
		answer_;                                                       \
	})

static void find_it(void *answer, const void *arg)
{
	struct answer *a = answer;
	pid_t pid = *(const pid_t *)arg;
	struct gp_error err = {0};
	struct gp_seen seen;
	struct gp_gpu *gpu;

	a->other = gp_nvidia_ops.open(0, 0, &gpu);
	if (a->other)
		return;
	a->code = gp_gpu_find(gpu, pid, &seen, &err);
	snprintf(a->text, sizeof a->text, "%s", err.text);
	a->other = gp_gpu_scan(gpu, gw_now(), NULL, 0);
	gpu->ops->close(gpu);
}

static void release_it(void *answer, const void *arg)
{
	struct answer *a = answer;
	pid_t pid = *(const pid_t *)arg;
	struct gp_error err = {0};

	a->code = gp_backend_release_process(&gp_nvidia_ops, pid, NULL, &err);
	snprintf(a->text, sizeof a->text, "%s", err.text);
}

static void hold_it(void *answer, const void *arg)
{
	struct answer *a = answer;
	pid_t pid = *(const pid_t *)arg;
	struct gpu_world w = {0};
	struct gp_seen seen;
	struct gp_action action = {0};
	struct gp_observation o = {0};
	struct gp_error err = {0};

	if (gp_nvidia_ops.open(0, 0, &w.gpu))
		return;
	a->code = gp_gpu_find(w.gpu, pid, &seen, &err);
	snprintf(a->text, sizeof a->text, "%s", err.text);
	if (a->code || gp_gpu_attach(w.gpu, seen.key, &action.handle))
		return;
	gp_gpu_hold(w.gpu, gw_now(), &action, 1);
	do {
		o.handle = action.handle;
		usleep(1000);
		gp_gpu_observe(w.gpu, gw_now(), &o, 1);
	} while (o.under_way);
	a->other = o.held;
	w.gpu->ops->close(w.gpu);
}

GPU_TEST(anothers_process_is_refused_in_a_sentence)
{
	struct emu_load *load = gw_load(w);
	struct answer a = as_nobody(find_it, load->pid);

	assert_true(a.code == -EPERM || a.code == -EACCES);
	assert_non_null(strstr(a.text, "belongs to user 0"));
	assert_int_equal(a.other, 0); /* nor is it in the list */
	a = as_nobody(release_it, load->pid);
	assert_true(a.code == -EPERM || a.code == -EACCES);
	assert_non_null(strstr(a.text, "belongs to user 0"));
	assert_int_equal(emu_count(&w->emu, "disable"), 0);
}

GPU_TEST(ones_own_process_can_be_held_or_it_is_said_why_not)
{
	struct emu_load *load = gw_load(w, "--drop-to", NOBODY);
	struct answer a = as_nobody(hold_it, load->pid);

	if (a.code) {
		assert_non_null(strstr(a.text, "Yama"));
	} else {
		assert_true(a.other);
		assert_int_equal(emu_groups_held(&w->emu, load->pid),
				 0); /* the close put it back */
	}
	assert_int_equal(emu_load_stop(load), 0);
}

GPU_TEST(root_finds_everybody)
{
	struct emu_load *load = gw_load(w, "--drop-to", NOBODY);

	assert_true(gw_act(w, GW_HOLD, gw_attach(w, load->pid), 0).held);
	gw_close(w);
	assert_int_equal(emu_load_stop(load), 0);
}

GPU_TEST(without_a_driver_there_are_no_devices)
{
	struct gp_error err = {0};
	struct gp_gpu *gpu = NULL;
	struct gp_rm rm;

	setenv("GPREEMPT_NVIDIACTL", "/nonexistent/nvidiactl", 1);
	assert_int_equal(gp_nvidia_ops.probe(), 0);
	assert_int_equal(gp_nvidia_ops.open(0, 0, &gpu), -ENODEV);
	assert_int_equal(gp_rm_open(&rm, &err), -ENODEV);
	assert_non_null(strstr(err.text, "no NVIDIA driver"));
	err = (struct gp_error){0};
	assert_true(gp_backend_release_process(&gp_nvidia_ops, getpid(), NULL, &err) < 0);
}

GPU_TEST(a_file_that_is_no_driver_is_refused)
{
	char path[] = "/tmp/gp-no-driver-XXXXXX";
	struct gp_error err = {0};
	struct gp_gpu *gpu = NULL;
	struct gp_rm rm;
	int fd = mkstemp(path);

	setenv("GPREEMPT_NVIDIACTL", path, 1);
	assert_true(gp_nvidia_ops.probe() < 0);
	assert_true(gp_nvidia_ops.open(0, 0, &gpu) < 0);
	assert_true(gp_rm_open(&rm, &err) < 0);
	assert_non_null(strstr(err.text, path));
	close(fd);
	unlink(path);
}

static void open_rm(void *answer, const void *pid)
{
	struct answer *a = answer;
	struct gp_error err = {0};
	struct gp_gpu *gpu;
	struct gp_rm rm;

	(void)pid;
	a->code = gp_rm_open(&rm, &err);
	a->other = gp_nvidia_ops.open(0, 0, &gpu);
	snprintf(a->text, sizeof a->text, "%s", err.text);
}

GPU_TEST(a_device_file_that_may_not_be_opened_is_said_so)
{
	char path[] = "/tmp/gp-no-driver-XXXXXX";
	int fd = mkstemp(path); /* 0600 and root's */
	struct answer a;

	setenv("GPREEMPT_NVIDIACTL", path, 1);
	a = as_nobody(open_rm, 0);
	close(fd);
	unlink(path);
	assert_int_equal(a.code, -EACCES);
	assert_int_equal(a.other, -EACCES);
	assert_non_null(strstr(a.text, "cannot open"));
}
