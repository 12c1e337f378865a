/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rights-table [UID]: the table of tests/config/rights_table.h against a running gpreemptd, each
 * cell done by a process of that user in that pid namespace, and its effect looked at. With UID,
 * who runs the daemon: only what an administrator may, with that user in root's place.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../config/rights_table.h"
#include "actor.h"

#define MAX_TASKS 4 /* as in the configuration */

static const char *const who_names[RIGHTS_WHO] = {"user",
						  "member",
						  "administrator",
						  "user in a container",
						  "member in a container",
						  "root in a container"};
static const char *const whose_names[RIGHTS_WHOSE] = {
	"itself", "own", "own elsewhere", "own, set-uid", "another's", "another's elsewhere"};
static const char *const what_names[RIGHTS_WHAT] = {
	"read",        "hint",           "lower",           "raise within",   "raise above",
	"to the rule", "above the rule", "too many",        "hold",           "hold gang",
	"release",     "release gang",   "release admin's", "release others'"};

static struct {
	uid_t admin; /* 0, or who runs the daemon */
	int container;
	struct actor *steward;       /* sets up, and looks what came of it */
	struct actor *bob, *partner; /* bob asks; partner is in gangs */
	unsigned failures;
} test;

static bool is_contained(enum rights_who who)
{
	return who >= WHO_CONTAINED_USER;
}

static bool is_member(enum rights_who who)
{
	return who == WHO_MEMBER || who == WHO_CONTAINED_MEMBER;
}

static uid_t uid_of(enum rights_who who)
{
	if (is_member(who))
		return MEMBER;
	return who == WHO_ROOT || who == WHO_CONTAINED_ROOT ? test.admin : ALICE;
}

static struct actor_kind kind_of(enum rights_who who)
{
	uid_t uid = uid_of(who);

	return (struct actor_kind){.uid = {uid, uid, uid},
				   .group = is_member(who) ? GROUP : 0,
				   .container = is_contained(who) ? test.container : -1,
				   .queue = true};
}

static struct actor_kind kind_of_target(enum rights_who who, enum rights_whose whose)
{
	struct actor_kind k = kind_of(who);

	if (whose == WHOSE_OWN_ELSEWHERE || whose == WHOSE_OTHERS_ELSEWHERE)
		k.container = is_contained(who) ? -1 : test.container;
	if (whose == WHOSE_OWN_SETUID)
		k.uid[1] = k.uid[2] = CAROL;
	if (whose == WHOSE_OTHERS || whose == WHOSE_OTHERS_ELSEWHERE)
		k.uid[0] = k.uid[1] = k.uid[2] = BOB;
	return k;
}

struct scene {
	struct actor *asker, *target;
	const struct actor_kind *kind; /* of the target */
	char source[ACTOR_TEXT];
};

static void steward_does(const char *method, const struct actor *whom, const char *more)
{
	static char source[ACTOR_TEXT];

	if (!actor_ask_about(test.steward, method, whom, more, source))
		return;
	fprintf(stderr, "the administrator cannot %s %s: %s\n", method, more, source);
	_exit(1);
}

static bool is(const struct actor *whom, const char *field, const char *value)
{
	char now[64];

	MUST(actor_task(test.steward, whom, field, now, sizeof now));
	return !strcmp(now, value);
}

static bool set(struct scene *s, const char *from, const char *more, const char *class)
{
	bool done;

	steward_does("set", s->target, from);
	done = !actor_ask_about(s->asker, "set", s->target, more, s->source);
	if (done != is(s->target, "class", class)) {
		printf("said %s, but class is not %s: ", done ? "done" : "refused", class);
		test.failures++;
	}
	return done;
}

/* The rule of all these tests gives a ceiling of 50 percent, and no limit is written for ceilings.
 */
static bool set_ceiling(struct scene *s, const char *permille)
{
	char more[64];
	bool done;

	steward_does("set", s->target, ",\"class\":\"be\",\"ceiling_permille\":100");
	snprintf(more, sizeof more, ",\"ceiling_permille\":%s", permille);
	done = !actor_ask_about(s->asker, "set", s->target, more, s->source);
	if (done != is(s->target, "ceiling_permille", permille)) {
		printf("said %s, but ceiling is not %s: ", done ? "done" : "refused", permille);
		test.failures++;
	}
	return done;
}

/* Held or not afterwards, as was said. */
static bool steer(struct scene *s, const char *method, const char *state)
{
	bool done = !actor_ask_about(s->asker, method, s->target, "", s->source);
	char now[64] = "";

	/* Who is not held may be idle, or at work. */
	MUST(actor_task(test.steward, s->target, "state", now, sizeof now));
	if (done != (!strcmp(state, "suspended") == !strcmp(now, "suspended"))) {
		printf("said %s, but state is %s, not %s: ", done ? "done" : "refused", now, state);
		test.failures++;
	}
	return done;
}

static void make_gang(const struct scene *s, const char *name)
{
	char more[64];

	snprintf(more, sizeof more, ",\"gang\":\"%s\"", name);
	steward_does("set", s->target, more);
	steward_does("set", test.partner, more);
}

static bool hint(struct scene *s)
{
	if (s->asker != s->target) /* nobody can even name another */
		return !actor_ask_about(s->asker, "hint", s->target, "", s->source);
	return !actor_ask(s->asker, ACTOR_HINT, "hint", "{}", s->source) &&
	       strstr(s->source, "\"tasks\":1") &&
	       !actor_ask(s->asker, ACTOR_HINT, "mark", "{\"begins\":true}", s->source) &&
	       !actor_ask(s->asker, ACTOR_CONTROL, "mark", "{\"begins\":false}", s->source);
}

/* By bob, while it is his; then it is its owner's again. */
static void let_bob_hold(const struct scene *s)
{
	static const uid_t bobs[3] = {BOB, BOB, BOB};

	actor_become(s->target, bobs);
	MUST(!actor_ask_about(test.bob, "hold", s->target, "", NULL));
	actor_become(s->target, s->kind->uid);
}

static bool release(struct scene *s, enum rights_what what)
{
	bool done;

	if (what == WHAT_RELEASE_OTHERS)
		let_bob_hold(s);
	else if (what == WHAT_RELEASE_ADMINS ||
		 actor_ask_about(s->asker, "hold", s->target, "", s->source))
		steward_does("hold", s->target, ""); /* who may not hold has no hold of his own */
	if (what == WHAT_RELEASE_GANG)
		make_gang(s, "both");
	done = steer(s, "release", "idle");
	if (what == WHAT_RELEASE_GANG)
		make_gang(s, "");
	steward_does("release", s->target, "");
	return done;
}

static bool hold(struct scene *s, bool gang)
{
	bool done;

	if (gang)
		make_gang(s, "both");
	done = steer(s, "hold", "suspended");
	if (gang)
		make_gang(s, "");
	steward_does("release", s->target, "");
	return done;
}

static bool try_it(struct scene *s, enum rights_what what)
{
	char class[64];

	switch (what) {
	case WHAT_READ: return actor_task(s->asker, s->target, "class", class, sizeof class);
	case WHAT_HINT: return hint(s);
	case WHAT_LOWER: return set(s, ",\"class\":\"lc\"", ",\"class\":\"be\"", "be");
	case WHAT_WITHIN:
		return set(s, ",\"class\":\"be\",\"priority\":0",
			   ",\"class\":\"lc\",\"priority\":4", "lc");
	case WHAT_ABOVE:
		return set(s, ",\"class\":\"be\",\"priority\":0",
			   ",\"class\":\"lc\",\"priority\":5", "lc");
	case WHAT_TO_RULE: return set_ceiling(s, "500");
	case WHAT_ABOVE_RULE: return set_ceiling(s, "501");
	case WHAT_HOLD: return hold(s, false);
	case WHAT_HOLD_GANG: return hold(s, true);
	default: return release(s, what);
	}
}

static void check(bool may, char expected, const char *what, const char *source)
{
	if (may == (expected == '+'))
		return;
	printf("\nFAILED: %s was %s (%s)\n", what, may ? "allowed" : "refused", source);
	test.failures++;
}

/* His own word about as many processes as he may; MAX_TASKS of them, without queues. */
static bool try_one_too_many(struct scene *s, const struct actor_kind *asker)
{
	struct actor *filler[MAX_TASKS];
	struct actor_kind kind = *asker;
	bool done;

	kind.queue = false;
	for (int i = 0; i < MAX_TASKS; i++) {
		filler[i] = actor_start(&kind);
		MUST(filler[i] &&
		     !actor_ask(filler[i], ACTOR_CONTROL, "set", "{\"class\":\"be\"}", s->source));
	}
	done = !actor_ask_about(s->asker, "set", s->target, ",\"class\":\"be\"", s->source);
	for (int i = 0; i < MAX_TASKS; i++)
		actor_end(filler[i]);
	return done;
}

static void play_row(enum rights_who who, enum rights_whose whose, const struct actor_kind *asks,
		     const struct actor_kind *owns, const char *may)
{
	static struct scene s;
	char got[RIGHTS_WHAT + 1] = "";

	s.asker = actor_start(asks);
	if (!s.asker && asks->rootless) {
		printf("%-22s %-20s skipped: users may not make namespaces here\n", who_names[who],
		       whose_names[whose]);
		return;
	}
	s.target = whose == WHOSE_SELF ? s.asker : actor_start(owns);
	MUST(s.asker && s.target);
	s.kind = owns;
	actor_wait_for_task(test.steward, s.target);
	while (!is(s.target, "set_by", "rule"))
		usleep(5000);
	/* First, while nobody has said anything of it. */
	got[WHAT_MANY] = try_one_too_many(&s, asks) ? '+' : '-';
	check(got[WHAT_MANY] == '+', may[WHAT_MANY], what_names[WHAT_MANY], s.source);
	for (int what = 0; what < RIGHTS_WHAT; what++) {
		if (what == WHAT_MANY)
			continue;
		if (what == WHAT_RELEASE_OTHERS && (asks->rootless || test.admin)) {
			got[what] = '?'; /* it cannot be bob's for a while */
			continue;
		}
		*s.source = 0;
		got[what] = try_it(&s, (enum rights_what)what) ? '+' : '-';
		check(got[what] == '+', may[what], what_names[what], s.source);
	}
	printf("%-22s %-20s expected %s got %s\n", who_names[who], whose_names[whose], may, got);
	if (s.target != s.asker)
		actor_end(s.target);
	actor_end(s.asker);
}

static void play_rows(void)
{
	for (unsigned i = 0; i < sizeof rights_rows / sizeof *rights_rows; i++) {
		const struct rights_row *row = &rights_rows[i];
		struct actor_kind asks = kind_of(row->who);
		struct actor_kind owns = kind_of_target(row->who, row->whose);

		if (!test.admin || row->who == WHO_ROOT)
			play_row(row->who, row->whose, &asks, &owns, row->may);
	}
}

/* Who is root only where he made himself root is a user in a container. */
static void play_rootless(void)
{
	for (unsigned i = 0; i < sizeof rights_rows / sizeof *rights_rows; i++) {
		const struct rights_row *row = &rights_rows[i];
		struct actor_kind asks = kind_of(WHO_USER);
		struct actor_kind owns = kind_of_target(row->who, row->whose);

		if (row->who != WHO_CONTAINED_USER || test.admin)
			continue;
		if (row->whose != WHOSE_SELF && row->whose != WHOSE_OWN_ELSEWHERE &&
		    row->whose != WHOSE_OTHERS_ELSEWHERE)
			continue; /* there is one user in it, and one process */
		asks.rootless = true;
		printf("rootless: ");
		play_row(row->who, row->whose, &asks, &owns, row->may);
	}
}

static bool read_all(struct actor *asker, char *source)
{
	char class[64];
	bool sees = actor_task(asker, test.bob, "class", class, sizeof class);

	if (sees == !!actor_ask(asker, ACTOR_CONTROL, "subscribe", "{}", source)) {
		printf("FAILED: tasks %s others', subscribe says %s\n", sees ? "shows" : "hides",
		       source);
		test.failures++;
	}
	return sees;
}

/* Everybody may ask: each gets what is his, and what an administrator holds stays held. */
static bool resume_all(struct actor *asker, char *source)
{
	bool done, own = !actor_ask(asker, ACTOR_CONTROL, "hold", "{}", source);

	MUST(own);
	steward_does("hold", test.bob, "");
	MUST(!actor_ask(asker, ACTOR_CONTROL, "release_all", "{}", source));
	done = !is(test.bob, "state", "suspended");
	if (is(asker, "state", "suspended")) {
		printf("FAILED: release_all does not release one's own\n");
		test.failures++;
	}
	steward_does("release", test.bob, "");
	return done;
}

static bool choose_policy(struct actor *asker, char *source)
{
	bool done = !actor_ask(asker, ACTOR_CONTROL, "policy", "{\"policy\":\"fair\"}", source);
	static char now[ACTOR_TEXT];

	MUST(!actor_ask(asker, ACTOR_CONTROL, "policy", "{}", now)); /* reads: everybody */
	check(strstr(now, "\"devices\":[\"fair\"]"), done ? '+' : '-', "the policy itself", now);
	MUST(!actor_ask(test.steward, ACTOR_CONTROL, "policy", "{\"policy\":\"priority\"}", now));
	return done;
}

static bool try_general(struct actor *asker, enum rights_general what, char *source)
{
	switch (what) {
	case GENERAL_READ_ALL: return read_all(asker, source);
	case GENERAL_RESUME_ALL: return resume_all(asker, source);
	case GENERAL_POLICY: return choose_policy(asker, source);
	default: return !actor_ask(asker, ACTOR_CONTROL, "reload", "{}", source);
	}
}

/* The hint socket takes hints, from whomever. */
static void check_hint_socket(struct actor *asker)
{
	static const char *const others[] = {"devices", "tasks",    "stats",       "set",
					     "hold",    "release",  "release_all", "policy",
					     "reload",  "subscribe"};
	static char source[ACTOR_TEXT];

	for (unsigned i = 0; i < sizeof others / sizeof *others; i++)
		check(actor_ask(asker, ACTOR_HINT, others[i], "{}", source) != -ENOSYS, '-',
		      others[i], "on the hint socket");
}

static void play_general(void)
{
	static const char *const names[] = {"read all", "resume all", "policy", "reload"};
	static char source[ACTOR_TEXT];

	for (unsigned i = 0; i < RIGHTS_WHO; i++) {
		enum rights_who who = rights_general[i].who;
		struct actor_kind kind = kind_of(who);
		char got[RIGHTS_GENERAL + 1] = "";
		struct actor *asker;

		if (test.admin && who != WHO_ROOT)
			continue;
		asker = actor_start(&kind);
		MUST(asker);
		actor_wait_for_task(test.steward, asker);
		for (int what = 0; what < RIGHTS_GENERAL; what++) {
			*source = 0;
			got[what] =
				try_general(asker, (enum rights_general)what, source) ? '+' : '-';
			check(got[what] == '+', rights_general[i].may[what], names[what], source);
		}
		check_hint_socket(asker);
		printf("%-22s %-20s expected %s got %s\n", who_names[who], "in general",
		       rights_general[i].may, got);
		actor_end(asker);
	}
}

int main(int argc, char **argv)
{
	struct actor_kind kind;

	if (geteuid()) {
		puts("needs root, to be other users");
		return 77;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	test.admin = argc > 1 ? (uid_t)atoi(argv[1]) : 0;
	test.container = container_start();
	kind = kind_of(WHO_ROOT);
	test.steward = actor_start(&kind);
	kind = (struct actor_kind){.uid = {BOB, BOB, BOB}, .container = -1, .queue = true};
	test.bob = actor_start(&kind);
	kind.uid[0] = kind.uid[1] = kind.uid[2] = CAROL;
	test.partner = actor_start(&kind);
	MUST(test.steward && test.bob && test.partner);
	actor_wait_for_task(test.steward, test.bob);
	actor_wait_for_task(test.steward, test.partner);
	play_rows();
	play_rootless();
	play_general();
	actor_end(test.partner);
	actor_end(test.bob);
	actor_end(test.steward);
	printf("%u failures\n", test.failures);
	return test.failures ? 1 : 0;
}
