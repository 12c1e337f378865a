/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access rights: no driver, an old driver, a device file without permission, another user's
 * process, the caller's own process, and one in a pid namespace. Each case has its errno and a
 * sentence that says what to do.
 */
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "folder.h"
#include "gpu/amd/kfd.h"

/* What a process of its own answered. */
struct answer {
	int code, other;
	char text[512];
};

#define as_user(user, f, pid)                                           \
	({                                                              \
		struct answer answer_ = {.code = 12345};                \
		pid_t pid_ = (pid);                                     \
                                                                        \
		test_as_user(user, f, &pid_, &answer_, sizeof answer_); \
		answer_;                                                \
	})

static void note_error(struct answer *a, const struct gp_error *err)
{
	snprintf(a->text, sizeof a->text, "%s", err->text);
}

static void open_it(void *answer, const void *pid)
{
	struct answer *a = answer;
	struct gp_error err = {0};
	struct gp_gpu *gpu;

	(void)pid;
	a->code = gp_kfd_open(&err);
	a->other = gp_amd_ops.open(0, 0, &gpu);
	if (!a->other)
		gp_amd_ops.close(gpu);
	note_error(a, &err);
}

static void probe_it(void *answer, const void *pid)
{
	struct answer *a = answer;

	(void)pid;
	a->code = gp_amd_ops.probe();
}

/* The first thing that the doctor finds missing, or notes. */
static void note_finding(void *arg, const struct gp_finding *finding)
{
	struct answer *a = arg;

	if (finding->level < GP_FINDING_NOTE || a->text[0])
		return;
	a->code = (int)finding->level;
	snprintf(a->text, sizeof a->text, "%s; %s", finding->text,
		 finding->advice ? finding->advice : "nothing to do");
}

static void ask_doctor(void *answer, const void *pid)
{
	struct answer *a = answer;

	(void)pid;
	a->code = -1;
	gp_backend_doctor(&gp_amd_ops, note_finding, a);
}

AMD_TEST(without_a_driver_there_are_no_devices)
{
	struct answer a;

	setenv("GPREEMPT_KFD", "/nonexistent/kfd", 1);
	assert_int_equal(as_user(0, probe_it, 0).code, 0);
	a = as_user(0, open_it, 0);
	assert_int_equal(a.code, -ENOENT);
	assert_int_equal(a.other, -ENOENT);
	assert_non_null(strstr(a.text, "/nonexistent/kfd"));
	assert_non_null(strstr(a.text, "amdgpu"));
	a = as_user(0, ask_doctor, 0);
	assert_int_equal(a.code, GP_FINDING_NOTE); /* most machines have none */
}

AMD_TEST(a_file_that_is_no_driver_is_refused)
{
	struct folder f;
	struct answer a;
	char path[128];

	folder_make(&f, "UNUSED");
	folder_print(&f, "kfd", "nothing");
	snprintf(path, sizeof path, "%s/kfd", f.path);
	setenv("GPREEMPT_KFD", path, 1);
	a = as_user(0, open_it, 0);
	assert_true(a.code < 0);
	assert_int_equal(a.other, a.code);
	assert_non_null(strstr(a.text, path));
	folder_remove(&f);
}

AMD_TEST(a_driver_that_is_too_old_is_told_so)
{
	static const char *const version[] = {"1.12", "1.0", "0.99"};

	for (int i = 0; i < 3; i++) {
		struct answer a;

		assert_int_equal(kfd_emu_control(&w->emu, "version %s", version[i]), 0);
		a = as_user(0, open_it, 0);
		assert_int_equal(a.code, -ENOTSUP);
		assert_int_equal(a.other, -ENOTSUP);
		assert_non_null(strstr(a.text, version[i]));
		assert_non_null(strstr(a.text, "Linux 6.5"));
		a = as_user(0, ask_doctor, 0);
		assert_int_equal(a.code, GP_FINDING_MISSING);
		assert_non_null(strstr(a.text, "Linux 6.5"));
	}
	assert_int_equal(kfd_emu_control(&w->emu, "version 1.13"), 0);
	assert_true(as_user(0, open_it, 0).code >= 0);
	assert_int_equal(as_user(0, open_it, 0).other, 0);
}

AMD_TEST(an_interface_of_the_future_asks_for_a_newer_gpreempt_and_not_for_another_kernel)
{
	struct answer a;

	assert_int_equal(kfd_emu_control(&w->emu, "version 2.0"), 0);
	a = as_user(0, open_it, 0);
	assert_int_equal(a.code, -EPROTONOSUPPORT);
	assert_non_null(strstr(a.text, "2.0"));
	assert_non_null(strstr(a.text, "newer gpreempt"));
	assert_null(strstr(a.text, "Linux"));
	a = as_user(0, ask_doctor, 0);
	assert_int_equal(a.code, GP_FINDING_MISSING);
	assert_null(strstr(a.text, "Linux 6.5"));
}

AMD_TEST(a_driver_that_answers_without_doing_anything_is_not_ready)
{
	static const char *const lie[] = {"ignore any 0", "ignore get_queue_snapshot 0"};
	struct answer a;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(kfd_emu_control(&w->emu, "%s 1000", lie[i]), 0);
		a = as_user(0, ask_doctor, 0);
		assert_int_equal(kfd_emu_control(&w->emu, "clear_faults"), 0);
		assert_int_equal(a.code, GP_FINDING_MISSING);
		assert_non_null(strstr(a.text, "reload amdgpu"));
		assert_null(strstr(a.text, "Linux 6.5"));
	}
	a = as_user(0, ask_doctor, 0);
	assert_null(strstr(a.text, "driver"));
}

AMD_TEST(a_device_file_that_may_not_be_opened_is_told_so)
{
	struct folder f;
	struct answer a;
	char path[128];

	folder_make(&f, "UNUSED");
	folder_print(&f, "kfd", "nothing");
	snprintf(path, sizeof path, "%s/kfd", f.path);
	chmod(path, 0600);
	chmod(f.path, 0755);
	setenv("GPREEMPT_KFD", path, 1);
	a = as_user(TEST_NOBODY, open_it, 0);
	assert_int_equal(a.code, -EACCES);
	assert_int_equal(a.other, -EACCES);
	assert_non_null(strstr(a.text, "render"));
	assert_int_equal(as_user(TEST_NOBODY, probe_it, 0).code, -EACCES); /* they are there */
	a = as_user(TEST_NOBODY, ask_doctor, 0);
	assert_int_equal(a.code, GP_FINDING_MISSING);
	assert_non_null(strstr(a.text, "group `render`"));
	folder_remove(&f);
}

/* `gfx` and the advice: newer firmware helps only a GPU whose kind can suspend queues. */
AMD_TEST(newer_firmware_is_not_advised_for_a_gpu_that_cannot_suspend_with_any)
{
	static const struct {
		unsigned gfx;
		bool helps;
	} chip[] = {{80003, false}, {100103, false}, {90402, true}};

	for (unsigned i = 0; i < 3; i++) {
		struct folder f;
		struct answer a;

		folder_make(&f, "GPREEMPT_KFD_SYSFS");
		chmod(f.path, 0755);
		folder_print(&f, "topology/nodes/0/gpu_id", "7");
		folder_print(&f, "topology/nodes/0/name", "chip\n");
		folder_print(&f, "topology/nodes/0/properties",
			     "cpu_cores_count 0\ngfx_target_version %u\n", chip[i].gfx);
		a = as_user(0, ask_doctor, 0);
		folder_remove(&f);
		assert_int_equal(a.code, GP_FINDING_MISSING);
		assert_int_equal(!!strstr(a.text, "newer firmware"), chip[i].helps);
		assert_int_equal(!!strstr(a.text, "hide this GPU"), !chip[i].helps);
	}
}

AMD_TEST(firmware_that_cannot_is_told_by_the_doctor)
{
	struct answer a;

	assert_int_equal(kfd_emu_stop(&w->emu), 0);
	assert_int_equal(kfd_emu_start(&w->emu, "--no-debug-firmware", NULL), 0);
	a = as_user(0, ask_doctor, 0);
	assert_int_equal(a.code, GP_FINDING_MISSING);
	assert_non_null(strstr(a.text, "firmware"));
	aw_open(w);
	assert_false(w->gpu->info.caps & GP_CAP_HOLD);
	assert_int_equal(w->gpu->info.max_held, 0);
}

/* `other`: whether it was held at the end. */
static void hold_it(void *answer, const void *arg)
{
	struct answer *a = answer;
	pid_t pid = *(const pid_t *)arg;
	struct gp_observation o = {0};
	struct gp_action action = {0};
	struct gp_error err = {0};
	struct gp_seen seen = {0};
	struct gp_gpu *gpu;

	a->code = gp_amd_ops.open(0, 0, &gpu);
	if (a->code)
		return;
	a->code = gp_gpu_find(gpu, pid, &seen, &err);
	if (!a->code)
		a->code = gp_gpu_attach(gpu, seen.key, &action.handle);
	if (!a->code) {
		gp_gpu_hold(gpu, aw_now(), &action, 1);
		do {
			usleep(1000);
			o.handle = action.handle;
			gp_gpu_observe(gpu, aw_now(), &o, 1);
		} while (o.under_way);
		a->code = o.failed;
		gp_gpu_why(gpu, action.handle, &err);
	}
	a->other = o.held;
	note_error(a, &err);
	gp_amd_ops.close(gpu);
}

AMD_TEST_ON(anothers_process_is_refused_in_a_sentence, mi250, mi250_old)
{
	struct kfd_load *load = aw_load(w);
	struct answer a = as_user(TEST_NOBODY, hold_it, load->pid);

	assert_int_equal(a.code, -EPERM);
	assert_false(a.other);
	assert_non_null(strstr(a.text, "belongs to user 0"));
	assert_int_equal(kfd_emu_count(&w->emu, "enable"), 0);
	assert_int_equal(kfd_load_stop(load), 0);
}

AMD_TEST_ON(ones_own_process_can_be_held_or_it_is_said_why_not, mi250, mi250_old)
{
	struct kfd_load *load = aw_load(w, "--drop-to", "65534");
	struct answer a = as_user(TEST_NOBODY, hold_it, load->pid);

	if (a.code)
		assert_non_null(strstr(a.text, "Yama"));
	else
		assert_true(a.other);
	TEST_WAIT(aw_process(w, load->pid, "debugged") == 0);
	assert_int_equal(aw_suspended(w, load->pid), 0); /* the close put it back */
	assert_int_equal(kfd_load_stop(load), 0);
}

AMD_TEST(root_holds_everybodys)
{
	struct kfd_load *load = aw_load(w, "--drop-to", "65534");

	aw_must_hold(w, aw_attach(w, load->pid));
	aw_close(w);
	assert_int_equal(kfd_load_stop(load), 0);
}

/* As fork(), in a pid namespace of its own. */
static pid_t fork_in_namespace(const void *arg)
{
	int before = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
	pid_t pid = unshare(CLONE_NEWPID) ? -1 : fork(); /* it is for children */

	(void)arg;
	if (pid && setns(before, CLONE_NEWPID))
		exit(1);
	close(before);
	return pid;
}

/* In a container: pid 1 there, and another number here. */
AMD_TEST(a_process_in_a_pid_namespace_is_held_by_its_number_here)
{
	uint32_t handle = 0;
	struct target t;

	if (target_start_by(&t, fork_in_namespace, NULL) != 1) {
		target_forget(&t);
		print_message("no pid namespaces here\n");
		skip();
	}
	target_become_rocm(&t, 1);
	handle = aw_attach(w, t.pid);
	aw_must_hold(w, handle);
	assert_int_equal(aw_suspended(w, t.pid), 1);
	target_do(&t, "submit 0 5 1");
	aw_must_release(w, handle);
	TEST_WAIT(target_ask(&t, "done 0") == 1);
	target_kill(&t);
}

static void release_it(void *answer, const void *arg)
{
	struct answer *a = answer;
	pid_t pid = *(const pid_t *)arg;
	struct gp_error err = {0};

	a->code = gp_backend_release_process(&gp_amd_ops, pid, NULL, &err);
	note_error(a, &err);
}

AMD_TEST(who_has_nothing_here_cannot_be_released)
{
	struct kfd_load *load = aw_load(w, "--queues", "2");
	struct answer a = as_user(0, release_it, getpid());

	assert_int_equal(a.code, -ENODEV);
	assert_non_null(strstr(a.text, "does not use an AMD GPU"));
	a = as_user(0, release_it, load->pid);
	assert_true(a.code >= 0);
}
