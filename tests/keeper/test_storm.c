/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scheduler, keeper and targets are killed, stopped and restarted at random moments, in every
 * order. Soon after the last restart, the right task is held by a living owner and has a record.
 * All others run, and no other record, file or process is left.
 *
 * 17 rounds on each of three machines, and no new round after 12 s; 350 with GPREEMPT_SOAK.
 * The seed is printed; the first argument replaces it.
 */
#include "base/rng.h"
#include "keeper_world.h"

#define ROUNDS      17
#define BOX_NS      (12 * GP_NS_PER_S)
#define LONG_ROUNDS 350
#define LONG_BOX_NS (1000 * GP_NS_PER_S)
#define LOADS       3

static uint64_t seed;
static struct gp_rng rng;

static bool toss(void)
{
	return gp_rng_below(&rng, 2);
}

/* From nothing to longer than anything here takes, short times more often. */
static void wait_a_moment(void)
{
	usleep((useconds_t)gp_rng_below(&rng, 1u << (6 + gp_rng_below(&rng, 13))));
}

static void start_missing(struct kw *w, int held)
{
	bool keeper_first = toss();

	for (int i = 0; i < 2; i++)
		if (keeper_first == (i == 0)) {
			if (!w->keeper.pid) {
				char program[] = KEEPER, option[] = "--timeout", value[] = "1";
				char *words[] = {program, option, value, NULL};

				kw_spawn(&w->keeper, words);
			}
		} else if (!w->scheduler.pid) {
			kw_spawn_scheduler(w, held, -1);
		}
}

/* One way to lose a process. */
static void strike(struct kw *w)
{
	int load = (int)gp_rng_below(&rng, LOADS);

	switch (gp_rng_below(&rng, 7)) {
	case 0: kw_kill(&w->keeper); break;
	case 1:
		kw_kill(&w->scheduler);
		wait_a_moment();
		kw_kill(&w->keeper);
		break;
	case 2:
		kw_kill(&w->keeper);
		wait_a_moment();
		break;
	case 3:
		kill(w->scheduler.pid, SIGSTOP);
		wait_a_moment();
		if (toss())
			emulator_sleep_ms(1200);
		if (toss())
			kill(w->scheduler.pid, SIGCONT);
		break;
	case 4:
		kw_kill_load(w, load);
		wait_a_moment();
		kw_start_load(w, load);
		break;
	default: break;
	}
	wait_a_moment();
	kw_kill(&w->scheduler); /* the next one holds another */
}

static bool is_right(struct kw *w, int held)
{
	struct gp_undo_entry e;
	unsigned records = 0, ours = 0;

	for (int i = 0; i < LOADS; i++)
		if (kw_is_held(w, i) != (i == held))
			return false;
	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++)
		if (gp_undo_get(w->undo, i, &e)) {
			records++;
			ours += e.owner == w->scheduler.pid && e.undo.pid == kw_pid(w, held);
		}
	return records == 1 && ours == 1;
}

static void storm(struct kw *w, unsigned rounds, uint64_t box_ns)
{
	uint64_t end_ns = test_now_ns() + box_ns;
	unsigned round;

	for (round = 0; round < rounds && test_now_ns() < end_ns; round++) {
		int held = (int)gp_rng_below(&rng, LOADS);

		for (unsigned i = 0, strikes = 1 + (unsigned)gp_rng_below(&rng, 3); i < strikes;
		     i++) {
			start_missing(w, held);
			if (toss())
				wait_a_moment();
			if (i + 1 < strikes)
				strike(w);
		}
		KW_WITHIN(5000, is_right(w, held)); /* most of it is the start of the scheduler */
		for (int i = 0; i < LOADS; i++)
			if (i != held)
				kw_wait_progress(w, i);
		strike(w);
	}
	print_message("    %u rounds\n", round);
	assert_true(round >= 3);
}

KEEPER_TEST_EVERYWHERE(whoever_is_killed_and_when_all_is_right_soon)
{
	const char *soak = getenv("GPREEMPT_SOAK");
	bool long_form = soak && atoi(soak);

	gp_rng_init(&rng, seed, w->machine->rule ? (uint64_t)w->machine->rule[0] : 0);
	for (int i = 0; i < LOADS; i++)
		kw_load(w);
	storm(w, long_form ? LONG_ROUNDS : ROUNDS, long_form ? LONG_BOX_NS : BOX_NS);
	kw_kill(&w->scheduler);
	if (!w->keeper.pid)
		kw_start_keeper(w, "1");
	TEST_WAIT(kw_records(w) == 0);
	for (int i = 0; i < LOADS; i++) {
		TEST_WAIT(!kw_is_held(w, i));
		kw_wait_progress(w, i);
		kw_kill_load(w, i);
	}
	w->nloads = 0;
	if (!w->machine->rule)
		KW_WITHIN(1000, emu_memory(&w->emu) == 0);
}

TEST_BEGIN
{
	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : test_now_ns() ^ (uint64_t)getpid() << 32;
	print_message("seed %llu\n", (unsigned long long)seed);
	if (argc > 1)
		argv[1] = NULL;
}
