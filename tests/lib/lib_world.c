/* SPDX-License-Identifier: Apache-2.0 */
#include "lib_world.h"

struct gpreempt *lw_opened[LW_HANDLES];

void lw_close(struct gpreempt *g)
{
	for (unsigned i = 0; i < LW_HANDLES; i++)
		if (g && lw_opened[i] == g)
			lw_opened[i] = NULL;
	gpreempt_close(g);
}

void lw_hide_drivers(void)
{
	setenv("GPREEMPT_NVIDIACTL", "/nonexistent/nvidiactl", 1);
	setenv("GPREEMPT_KFD", "/nonexistent/kfd", 1);
	setenv("GPREEMPT_KFD_SYSFS", "/nonexistent/sysfs", 1);
}

static int lw_start(struct lib_world *w, enum lw_vendor vendor)
{
	int fd;

	w->vendor = vendor;
	lw_hide_drivers();
	snprintf(w->undo, sizeof w->undo, "/tmp/lib-undo-XXXXXX");
	fd = mkstemp(w->undo);
	if (fd < 0)
		return -errno;
	close(fd);
	setenv("GPREEMPT_UNDO", w->undo, 1);
	if (vendor == LW_NVIDIA)
		return emu_start(&w->nvidia, "--gpus", "2", NULL);
	return kfd_emu_start(&w->amd, "--gpu", "mi250", "--gpu", "mi250", NULL);
}

int lw_set_up(void **state)
{
	enum lw_vendor vendor = *(const enum lw_vendor *)*state;
	struct lib_world *w = calloc(1, sizeof *w);

	*state = w;
	return w && !lw_start(w, vendor) ? 0 : -1;
}

int lw_stop_load(struct lib_world *w, struct lw_load *load)
{
	load->pid = 0;
	return w->vendor == LW_NVIDIA ? emu_load_stop(&load->is.nvidia)
				      : kfd_load_stop(&load->is.amd);
}

void lw_kill_load(struct lib_world *w, struct lw_load *load)
{
	if (!load->pid)
		return;
	load->pid = 0;
	if (w->vendor == LW_NVIDIA)
		emu_load_kill(&load->is.nvidia);
	else
		kfd_load_kill(&load->is.amd);
}

int lw_tear_down(void **state)
{
	struct lib_world *w = *state;
	int r = 0;

	for (unsigned i = 0; i < LW_HANDLES; i++)
		lw_close(lw_opened[i]);
	for (unsigned i = 0; i < w->nloads; i++)
		if (w->load[i].pid && lw_stop_load(w, &w->load[i])) {
			print_error("load %u did not end right\n", i);
			r = -1;
		}
	r |= w->vendor == LW_NVIDIA ? emu_stop(&w->nvidia) : kfd_emu_stop(&w->amd);
	unlink(w->undo);
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

struct lw_load *lw_load_with(struct lib_world *w, const char *a, const char *b, const char *c,
			     const char *d)
{
	struct lw_load *load = &w->load[w->nloads++];
	int r;

	assert_in_range(w->nloads, 1, LW_LOADS);
	if (w->vendor == LW_NVIDIA) {
		r = emu_load_start(&load->is.nvidia, a, b, c, d, NULL);
		load->pid = load->is.nvidia.pid;
	} else {
		r = kfd_load_start(&load->is.amd, a, b, c, d, NULL);
		load->pid = load->is.amd.pid;
	}
	assert_int_equal(r, 0);
	return load;
}

struct lw_load *lw_load(struct lib_world *w, const char *queues)
{
	return lw_load_with(w, w->vendor == LW_NVIDIA ? "--contexts" : "--queues", queues, NULL,
			    NULL);
}

static uint64_t lw_run_ns(struct lib_world *w, pid_t pid)
{
	return w->vendor == LW_NVIDIA ? emu_group_sum(&w->nvidia, pid, "run_ns")
				      : kfd_emu_process_sum(&w->amd, pid, "run_ns");
}

unsigned lw_held(struct lib_world *w, pid_t pid)
{
	return w->vendor == LW_NVIDIA ? emu_groups_held(&w->nvidia, pid)
				      : (unsigned)kfd_emu_process_sum(&w->amd, pid, "suspended");
}

void lw_must_run(struct lib_world *w, pid_t pid)
{
	uint64_t before = lw_run_ns(w, pid);

	TEST_WAIT(lw_run_ns(w, pid) > before);
}

void lw_must_stand(struct lib_world *w, pid_t pid, pid_t other)
{
	uint64_t before = lw_run_ns(w, pid);

	lw_must_run(w, other);
	lw_must_run(w, other);
	assert_int_equal(lw_run_ns(w, pid), before);
}

struct gpreempt *lw_open_with(pid_t pid, unsigned flags)
{
	struct gpreempt *g = NULL;
	char why[256] = "";
	int r = gpreempt_open(pid, flags, &g, why, sizeof why);

	if (r)
		fail_msg("open %d: %d: %s", pid, r, why);
	for (unsigned i = 0; i < LW_HANDLES; i++)
		if (!lw_opened[i]) {
			lw_opened[i] = g;
			break;
		}
	return g;
}

struct gpreempt_queue lw_queue(struct gpreempt *g, unsigned n)
{
	struct gpreempt_queue queue[64];
	int count = gpreempt_get_all_queues(g, queue, 64);

	assert_in_range(count, 1, 64);
	for (int i = 0; i < count; i++)
		if (!queue[i].copies && !n--)
			return queue[i];
	fail_msg("the process has fewer compute queues");
	return queue[0];
}

pid_t lw_start_holder(pid_t target, const char *mode, int *in)
{
	char number[16], line[512] = "";
	const char *const words[] = {LIB_HOLDER, number, mode, NULL};
	struct test_child holder;
	FILE *out;

	snprintf(number, sizeof number, "%d", target);
	test_spawn(&holder, words);
	*in = holder.to;
	out = fdopen(holder.from, "r");
	if (!out || !fgets(line, sizeof line, out) || strncmp(line, "held", 4) != 0)
		fail_msg("lib-holder: %s", line);
	fclose(out);
	return holder.pid;
}

int lw_sh(const char *format, ...)
{
	char command[512];
	va_list args;
	int status;

	va_start(args, format);
	vsnprintf(command, sizeof command, format, args);
	va_end(args);
	status = system(command); /* NOLINT(cert-env33-c): of a test's own making */
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
