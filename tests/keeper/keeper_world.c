/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper_world.h"

void kw_spawn(struct kw_program *p, char **words)
{
	assert_int_equal(p->pid, 0);
	assert_int_equal(emulator_spawn(words, SIGKILL, &p->pid, &p->out), 0);
}

static void kw_forget(struct kw_program *p)
{
	close(p->out);
	p->pid = 0;
}

void kw_kill(struct kw_program *p)
{
	if (!p->pid)
		return;
	kill(p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
	kw_forget(p);
}

int kw_wait_end(struct kw_program *p)
{
	int status = emulator_wait_end(p->pid);

	kw_forget(p);
	return status;
}

void kw_keeper_is_there(struct kw *w)
{
	struct gp_undo_scheduler k;

	TEST_WAIT((gp_undo_keeper(w->undo, &k), k.lives && k.pid == w->keeper.pid && k.heartbeats));
}

void kw_start_keeper(struct kw *w, const char *timeout)
{
	char program[] = KEEPER, option[] = "--timeout", value[16];
	char *words[] = {program, timeout ? option : NULL, value, NULL};

	snprintf(value, sizeof value, "%s", timeout ? timeout : "");
	kw_spawn(&w->keeper, words);
	kw_keeper_is_there(w);
}

void kw_start_load(struct kw *w, int load)
{
	if (w->machine->rule)
		assert_int_equal(kfd_load_start(&w->amd_load[load], NULL), 0);
	else
		assert_int_equal(emu_load_start(&w->nv_load[load], "--memory", "1000000000", NULL),
				 0);
}

void kw_kill_load(struct kw *w, int load)
{
	if (w->machine->rule)
		kfd_load_kill(&w->amd_load[load]);
	else
		emu_load_kill(&w->nv_load[load]);
}

int kw_load(struct kw *w)
{
	assert_true(w->nloads < KW_LOADS);
	kw_start_load(w, (int)w->nloads);
	return (int)w->nloads++;
}

bool kw_is_held(struct kw *w, int load)
{
	return w->machine->rule ? kfd_emu_process_sum(&w->kfd, kw_pid(w, load), "suspended")
				: emu_groups_held(&w->emu, kw_pid(w, load));
}

static uint64_t kw_done(struct kw *w, int load)
{
	return w->machine->rule ? kfd_emu_process_sum(&w->kfd, kw_pid(w, load), "executed")
				: emu_group_sum(&w->emu, kw_pid(w, load), "run_ns");
}

void kw_wait_progress(struct kw *w, int load)
{
	uint64_t before = kw_done(w, load);

	TEST_WAIT(kw_done(w, load) > before);
}

void kw_spawn_scheduler(struct kw *w, int first, int second)
{
	char program[] = SCHEDULER, text[2][24], *words[] = {program, NULL, NULL, NULL};
	int load[2] = {first, second};

	for (int i = 0; i < 2 && load[i] >= 0; i++) {
		snprintf(text[i], sizeof text[i], "%s%d", load[i] >= 100 ? "s:" : "",
			 kw_pid(w, load[i] % 100));
		words[i + 1] = text[i];
	}
	kw_spawn(&w->scheduler, words);
}

/* The next thing it says. */
static void kw_says(struct kw_program *p, const char *word)
{
	char line[16] = "";
	struct pollfd said = {.fd = p->out, .events = POLLIN};

	for (size_t n = 0; n < sizeof line - 1; n++) {
		assert_int_equal(poll(&said, 1, 20000), 1);
		assert_int_equal(read(p->out, &line[n], 1), 1);
		if (line[n] == '\n') {
			line[n] = 0;
			break;
		}
	}
	assert_string_equal(line, word);
}

void kw_start_scheduler(struct kw *w, int first, int second)
{
	kw_spawn_scheduler(w, first, second);
	kw_says(&w->scheduler, "ready");
}

int kw_held(struct kw *w, const char *timeout)
{
	int load = kw_load(w);

	kw_start_keeper(w, timeout);
	kw_start_scheduler(w, load, -1);
	return load;
}

void kw_stop_scheduler(struct kw *w)
{
	kill(w->scheduler.pid, SIGSTOP);
	TEST_WAIT(test_process_state(w->scheduler.pid) == 'T');
}

unsigned kw_records(struct kw *w)
{
	struct gp_undo_entry e;
	unsigned n = 0;

	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++)
		n += gp_undo_get(w->undo, i, &e);
	return n;
}

pid_t kw_holder(struct kw *w, int load)
{
	struct gp_undo_entry e;

	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++)
		if (gp_undo_get(w->undo, i, &e) && e.undo.pid == kw_pid(w, load))
			return e.owner;
	return 0;
}

int kw_set_up(void **state)
{
	struct kw *w = calloc(1, sizeof *w);

	if (!w)
		return -1;
	w->machine = *state ? *state : &nvidia;
	*state = w;
	strcpy(w->dir, "/tmp/gp-keeper-XXXXXX");
	if (!mkdtemp(w->dir))
		return -1;
	snprintf(w->path, sizeof w->path, "%s/undo", w->dir);
	setenv("GPREEMPT_UNDO", w->path, 1);
	unsetenv("NOTIFY_SOCKET");
	if (w->machine->rule) {
		setenv("GPREEMPT_NVIDIACTL", "/nonexistent/nvidiactl", 1);
		setenv("LSAN_OPTIONS", "detect_leaks=0",
		       1); /* not in a process that is traced when it ends */
		if (kfd_emu_start(&w->kfd, "--gpu", "mi300x", "--rule", w->machine->rule, "--slots",
				  "1", NULL))
			return -1;
	} else {
		setenv("GPREEMPT_KFD", "/nonexistent/kfd", 1);
		if (emu_start(&w->emu, "--gpus", "2", NULL))
			return -1;
	}
	return gp_undo_open(&w->undo, true, NULL);
}

int kw_tear_down(void **state)
{
	struct kw *w = *state;
	int r;

	kw_kill(&w->keeper);
	kw_kill(&w->scheduler);
	for (unsigned i = 0; i < w->nloads; i++)
		kw_kill_load(w, (int)i);
	r = w->machine->rule ? kfd_emu_stop(&w->kfd) : emu_stop(&w->emu);
	gp_undo_close(w->undo);
	unlink(w->path);
	r |= rmdir(w->dir);
	unsetenv("LSAN_OPTIONS");
	free(w);
	return r;
}

/* Skips the tests where there is no FUSE. */
TEST_BEGIN
{
	struct emu emu;

	if (emu_start(&emu, NULL) == -ENODEV)
		exit(KW_SKIP);
	emu_stop(&emu);
}
