/* SPDX-License-Identifier: Apache-2.0 */
/* Somebody is killed at a random moment, again and again; the service manager does its part. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hist.h"
#include "emu/common/emulator.h"
#include "world.h"

#define DELAY_US    300000 /* up to this, before somebody is killed */
#define GAP_US      20000  /* up to this, between two who are */
#define STOP_MS     1500   /* up to this, SIGSTOP: shorter and longer than the keeper's patience */
#define ONCE_MS     10000  /* for what the unit runs after the daemon */
#define AWAY_IN     4      /* one of so many: the service manager gives the daemon up for a while */
#define QUIET_SHARE 4      /* one of so many rounds: none of daemon and keeper dies */

enum action {
	KILL_DAEMON,
	KILL_KEEPER,
	KILL_DAEMON_THEN_KEEPER,
	KILL_KEEPER_THEN_DAEMON,
	KILL_DAEMON_AND_WHO_CLEARS, /* the unit's gpreempt-keeper --once */
	STOP_DAEMON,
	KILL_TARGET,
	END_TARGET,
	KILL_CLIENT,
	ACTIONS,
};

static const char *const names[ACTIONS] = {
	[KILL_DAEMON] = "kill gpreemptd",
	[KILL_KEEPER] = "kill gpreempt-keeper",
	[KILL_DAEMON_THEN_KEEPER] = "kill gpreemptd, then gpreempt-keeper",
	[KILL_KEEPER_THEN_DAEMON] = "kill gpreempt-keeper, then gpreemptd",
	[KILL_DAEMON_AND_WHO_CLEARS] = "kill gpreemptd, then gpreempt-keeper --once",
	[STOP_DAEMON] = "stop gpreemptd for a while",
	[KILL_TARGET] = "kill a target",
	[END_TARGET] = "end a target",
	[KILL_CLIENT] = "kill a client",
};

static struct {
	unsigned n;
	struct gp_hist took_ns;
} tally[ACTIONS];

/* All that chance decides in a round, drawn at its beginning: a seed gives the same kills. */
struct round {
	enum action action;
	unsigned delay_us, gap_us, stop_ms;
	unsigned target, client;
	bool away;
};

static unsigned draw(struct gp_rng *rng, unsigned below)
{
	return (unsigned)gp_rng_below(rng, below);
}

static struct round draw_round(const struct world *w, struct gp_rng *rng, bool quiet)
{
	struct round r = {
		.action =
			quiet ? KILL_TARGET + draw(rng, ACTIONS - KILL_TARGET) : draw(rng, ACTIONS),
		.delay_us = draw(rng, DELAY_US),
		.gap_us = draw(rng, GAP_US),
		.stop_ms = draw(rng, STOP_MS),
		.target = draw(rng, TARGETS),
		.client = draw(rng, CLIENTS),
		.away = !draw(rng, AWAY_IN),
	};

	while (w->target[r.target].lasting)
		r.target = (r.target + 1) % TARGETS;
	return r;
}

static void pause_us(unsigned us)
{
	struct timespec t = gp_timespec(us * GP_NS_PER_US);

	nanosleep(&t, NULL);
}

/* What the daemon's unit says for its end: clear up, wait, start again. */
static void restart_daemon(struct world *w, const struct round *r)
{
	struct limit limit = limit_begin(w, LIMIT_MS);
	pid_t once = start_after_stop(w);
	int status;

	if (r->action == KILL_DAEMON_AND_WHO_CLEARS) {
		pause_us(r->gap_us / 4);
		kill(once, SIGKILL);
	}
	mark_progress(w);
	status = wait_for(&once, ONCE_MS);
	if (once || (status > 0 && !w->hostile))
		fail(w, "gpreempt-keeper --once failed, or does not end");
	hostile_clear(w);
	if (w->hostile) /* only from now on can all be undone */
		limit = limit_begin(w, HOSTILE_MS);
	if (r->away)
		settle_untouched(w, &limit); /* nobody needs a daemon to go on */
	else
		emulator_sleep_ms(RESTART_MS);
	start_daemon(w);
}

static void kill_two(struct world *w, const struct round *r, pid_t *first, pid_t *second)
{
	kill_now(w, first);
	pause_us(r->gap_us);
	kill_now(w, second);
	start_keeper(w);
	restart_daemon(w, r);
}

static void stop_daemon(struct world *w, const struct round *r)
{
	kill(w->daemon, SIGSTOP);
	emulator_sleep_ms(r->stop_ms);
	kill(w->daemon, SIGCONT);
}

static void act(struct world *w, const struct round *r)
{
	switch (r->action) {
	case KILL_DAEMON:
	case KILL_DAEMON_AND_WHO_CLEARS:
		kill_now(w, &w->daemon);
		restart_daemon(w, r);
		break;
	case KILL_KEEPER:
		kill_now(w, &w->keeper);
		start_keeper(w);
		break;
	case KILL_DAEMON_THEN_KEEPER: kill_two(w, r, &w->daemon, &w->keeper); break;
	case KILL_KEEPER_THEN_DAEMON: kill_two(w, r, &w->keeper, &w->daemon); break;
	case STOP_DAEMON: stop_daemon(w, r); break;
	case KILL_TARGET:
		kill_target(w, r->target);
		start_target(w, r->target);
		break;
	case END_TARGET:
		hostile_clear(w); /* a target that cannot be released cannot finish its work */
		end_target(w, r->target);
		start_target(w, r->target);
		break;
	case KILL_CLIENT:
		kill_now(w, &w->client[r->client]);
		start_client(w, r->client);
		break;
	case ACTIONS: break;
	}
}

static void play(struct world *w, const struct round *r, struct gp_rng *rng)
{
	struct limit limit;

	w->doing = names[r->action];
	hostile_set(w, rng);
	pause_us(r->delay_us);
	act(w, r);
	hostile_clear(w);
	limit = limit_begin(w, w->hostile ? HOSTILE_MS : LIMIT_MS);
	mark_progress(w);
	gp_hist_add(&tally[r->action].took_ns, settle(w, &limit));
	tally[r->action].n++;
	check_files(w);
	if (atomic_load(&w->shared->odd) && !w->hostile)
		fail(w, "a client was told: %s", w->shared->odd_text);
}

static void report(const struct world *w)
{
	const struct shared *s = w->shared;

	for (unsigned i = 0; i < ACTIONS; i++)
		if (tally[i].n)
			printf("%5u x %-45s all well after %4llu ms, p99 %4llu ms\n", tally[i].n,
			       names[i],
			       (unsigned long long)gp_hist_quantile(&tally[i].took_ns, 500000) /
				       GP_NS_PER_MS,
			       (unsigned long long)gp_hist_quantile(&tally[i].took_ns, 990000) /
				       GP_NS_PER_MS);
	settle_report();
	hostile_report(w);
	printf("clients: %llu sets, %llu holds, %llu refused, %llu broken off; %llu events, %llu "
	       "of them 'undone'\n",
	       (unsigned long long)s->sets, (unsigned long long)s->holds,
	       (unsigned long long)s->refusals, (unsigned long long)s->broken,
	       (unsigned long long)s->events, (unsigned long long)s->undone);
}

void case_rounds(struct world *w, unsigned rounds)
{
	struct limit limit = limit_begin(w, 5 * LIMIT_MS);
	unsigned quiet = rounds - rounds / QUIET_SHARE;
	struct gp_rng rng;

	gp_rng_init(&rng, w->seed, 0);
	for (unsigned i = 0; i < ACTIONS; i++)
		gp_hist_init(&tally[i].took_ns);
	mark_progress(w);
	settle(w, &limit);
	learn_files(w);
	for (w->round = 0; w->round < rounds; w->round++) {
		struct round r = draw_round(w, &rng, w->round >= quiet);

		play(w, &r, &rng);
		/* Not at once: rings of messages become resident as they are first filled. */
		if (w->round == (quiet + rounds) / 2)
			check_memory(w, true);
	}
	check_memory(w, false);
	report(w);
}
