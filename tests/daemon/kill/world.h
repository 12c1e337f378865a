/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kill test's machine: an emulated GPU, programs on it, gpreemptd and gpreempt-keeper in a
 * folder of their own, two clients; and the test itself, which is their service manager.
 */
#ifndef TESTS_DAEMON_KILL_WORLD_H
#define TESTS_DAEMON_KILL_WORLD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/rng.h"
#include "tests/hostile/hostile_page.h"
#include "gpu.h"
#include "undo/undo.h"

#define TARGETS      6
#define UNMANAGED    5
#define STEERED      2 /* the target whose weight a client changes all the time */
#define WEIGHT_FIRST 100
#define KEEPER_LIMIT "0.7" /* seconds: the keeper's patience with a daemon that is silent */
#define RESTART_MS   200   /* of the daemon, as in its unit */
#define LIMIT_MS     1000  /* for everything to be as it should, after a kill or a restart */
#define HOSTILE_MS   5000 /* the same after hostile answers: failed calls are repeated within 1 s */

/* Under a sanitizer everything takes several times as long. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Who said what a target is. */
enum source { BY_NOBODY, BY_RULE, BY_USER };

struct target {
	const char *class;
	enum source source;
	bool busy;    /* all the time, or now and then */
	bool lasting; /* lives as long as the test */
	struct load load;
	uint64_t start_time;
	uint64_t mark_ns; /* GPU time that it had when the waiting began */
};

/* A page that test and clients share: what was done stands in it also after a client was killed. */
struct shared {
	/* The control: by how much a bare timer came too late, in all, and how long bare calls to
	 * the emulated driver took. */
	_Atomic uint64_t late_ns, calls, call_ns, best_call_ns;
	struct {
		_Atomic int pid; /* 0: leave it alone */
		_Atomic uint64_t start_time;
	} target[TARGETS];
	/* Of the steered target: pid in the upper half, weight in the lower one. */
	_Atomic uint64_t asked, answered;
	_Atomic uint64_t sets, holds, refusals, broken; /* of the client that steers */
	_Atomic uint64_t events, undone;                /* seen by the client that listens */
	_Atomic uint64_t odd;                           /* answers that nobody should get */
	char odd_text[384];
};

enum client { LISTENER, STEERER, CLIENTS };

struct world {
	const struct gpu *gpu;
	char folder[64];
	char config[96], log[96];
	struct target target[TARGETS];
	struct shared *shared;
	struct gp_undo_file *undo;
	pid_t daemon, keeper; /* 0: not running */
	pid_t client[CLIENTS];
	pid_t timer;                  /* the control */
	bool is_hostile;              /* the case with hostile answers */
	struct hostile_page *hostile; /* NULL: the driver is honest */

	/* Where it stands, for who reads of a failure. */
	uint64_t seed;
	unsigned round;
	const char *doing;
};

/* Says where and what, shows what there is to see, ends everything and exits 1. */
__attribute__((format(printf, 2, 3), noreturn)) void fail(struct world *w, const char *format, ...);

/* world.c: from the beginning to the end */

/* Exits with 77 where it cannot be tried. */
void world_begin(struct world *w, const struct gpu *gpu);
/* Everything ends in an orderly way, and nothing is left. */
/* Fails if a line of the log has it. */
void check_log(struct world *w, const char *bad);
void world_end(struct world *w);
/* Whatever there is, at once. */
void world_abandon(struct world *w);

/* services.c: what a service manager does */

pid_t spawn(struct world *w, const char *program, ...) __attribute__((sentinel));
void start_daemon(struct world *w);
void start_keeper(struct world *w);
/* gpreempt-keeper --once, which the unit runs whenever the daemon has ended: its pid. */
pid_t start_after_stop(struct world *w);
void kill_now(struct world *w, pid_t *pid); /* SIGKILL, and waits for its end */
/* SIGTERM; its exit status, -1: a signal ended it, or it does not end. */
int end_orderly(pid_t *pid);
int wait_for(pid_t *pid, unsigned limit_ms);
/* Children of somebody who was killed are ours. Fails when one ended that should not have. */
void reap_orphans(struct world *w);
/* Waits until there is no child left: false, if there is one after `limit_ms`. */
bool nobody_is_left(struct world *w, unsigned limit_ms);

/* targets.c */

void start_target(struct world *w, unsigned i);
void kill_target(struct world *w, unsigned i);
void end_target(struct world *w, unsigned i); /* it must have lost nothing */
void mark_progress(struct world *w);          /* from now on */
void read_targets(struct world *w);           /* what they print, so that they can go on */

/* clients.c */

void start_client(struct world *w, enum client which);
/* As a user would: gives the target its class, and waits until a daemon has taken it. */
void set_class(struct world *w, unsigned i);
/* hold, release; TARGETS: release_all. */
void steer(struct world *w, const char *method, unsigned i);

/* settle.c: is all well? */

struct limit {
	uint64_t limit_ns;
	uint64_t start_ns, late_ns, calls, call_ns; /* when it began */
};

struct limit limit_begin(const struct world *w, unsigned limit_ms);
bool limit_is_over(const struct world *w, const struct limit *l);
uint64_t limit_elapsed_ns(const struct limit *l);

/*
 * Wait until everybody has run since mark_progress, no record of the dead is left, and the daemon
 * knows everybody; or, where none is at work, all is as its owner made it. They fail when that is
 * not so in time, and return how long it took, in ns.
 */
uint64_t settle(struct world *w, const struct limit *limit);
uint64_t settle_untouched(struct world *w, const struct limit *limit);
/* Records of this holder. */
unsigned count_records(const struct world *w, pid_t owner);
/* The longest wait, and how often the limit was passed by the clock and not by the control. */
void settle_report(void);

/* leaks.c */

unsigned open_files(pid_t pid);
uint64_t resident_kb(pid_t pid);
/* What is usual; and after every round, whether it is more. */
void learn_files(struct world *w);
void check_files(struct world *w);
void check_memory(struct world *w, bool first);

/* hostile.c: drivers that lie and fail, see tests/hostile */

void hostile_begin(struct world *w);                   /* before the first service starts */
void hostile_set(struct world *w, struct gp_rng *rng); /* a rule that chance decides */
void hostile_clear(struct world *w);
void hostile_report(const struct world *w);

/* The cases. */

void case_rounds(struct world *w, unsigned rounds); /* rounds.c */
void case_stopped(struct world *w);                 /* stopped.c */

#endif
