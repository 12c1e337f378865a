/* SPDX-License-Identifier: Apache-2.0 */
#include "trial.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "child.h"
#include "mps.h"

enum { EXIT_WRONG_RESULT = 3, EXIT_SKIPPED = 77 }; /* of a load */
enum { WARM_UP = 20 };                             /* requests before the window */

/* A load's process and its files. */
struct worker {
	struct child child;
	char name[32], result[320], errors[320];
};

struct run {
	struct bench *bench;
	const struct trial *trial;
	struct mps mps;
	struct worker lc, be[BE_MAX];
	struct child scheduler;
	char scheduler_errors[320], scheduler_says[320];
	char lock[300], no_mps_env[320];
	uint64_t from_ns, to_ns;
	bool starved;
};

static uint64_t in_ms(uint64_t ms)
{
	return gp_monotonic_ns() + ms * GP_NS_PER_MS;
}

static bool uses_torch(const struct trial *t)
{
	return (t->lc && t->lc->torch) || (t->nbe && t->be[0] == BE_TRAIN);
}

/* ---- starting the loads ---- */

static void name_files(const struct run *r, struct worker *w, const char *name)
{
	snprintf(w->name, sizeof w->name, "%s", name);
	snprintf(w->result, sizeof w->result, "%s/%03u-%s-%s-%s.log", r->bench->logs,
	         r->bench->trials, r->trial->label, arm_name[r->trial->arm], name);
	snprintf(w->errors, sizeof w->errors, "%s/%03u-%s-%s-%s.err", r->bench->logs,
	         r->bench->trials, r->trial->label, arm_name[r->trial->arm], name);
}

static int start_worker(struct run *r, struct worker *w, const char *const *argv, bool is_lc,
                        struct gp_error *err)
{
	struct child_spec spec = {
		.name = w->name, .argv = argv, .stderr_path = w->errors, .death_signal = SIGKILL};

	if (r->trial->arm == ARM_MPS) {
		spec.env[0] = r->mps.pipe_env;
		spec.env[1] = r->mps.log_env;
		spec.env[2] = is_lc ? "CUDA_MPS_CLIENT_PRIORITY=0" : "CUDA_MPS_CLIENT_PRIORITY=1";
	} else {
		spec.env[0] = r->no_mps_env; /* not into an MPS that happens to run here */
	}
	return child_start(&w->child, &spec, err);
}

static int start_lc(struct run *r, struct gp_error *err)
{
	const struct trial *t = r->trial;
	const char *argv[24];
	char period[24], count[24], warmup[24], seed[24], kernel[24], turns[24];
	unsigned n = 0;

	name_files(r, &r->lc, "lc");
	snprintf(period, sizeof period, "%u", t->lc->period_us);
	snprintf(count, sizeof count, "%u", t->requests);
	snprintf(warmup, sizeof warmup, "%d", WARM_UP);
	snprintf(seed, sizeof seed, "%u", t->seed);
	snprintf(kernel, sizeof kernel, "%u", t->lc->kernel_us);
	snprintf(turns, sizeof turns, "%llu", (unsigned long long)t->iterations);
	if (t->lc->torch) {
		argv[n++] = r->bench->python;
		argv[n++] = r->bench->torch_script;
		argv[n++] = "infer";
	} else {
		argv[n++] = r->bench->load;
		argv[n++] = "lc";
		argv[n++] = "--kernel-us";
		argv[n++] = kernel;
		argv[n++] = "--iterations";
		argv[n++] = turns;
	}
	const char *rest[] = {"--period-us", period,   "--count", count,   "--warmup",
	                      warmup,        "--seed", seed,      "--out", r->lc.result,
	                      "--lock",      r->lock,  NULL};

	memcpy(argv + n, rest, sizeof rest);
	return start_worker(r, &r->lc, argv, true, err);
}

static int start_be(struct run *r, unsigned i, struct gp_error *err)
{
	const struct trial *t = r->trial;
	struct worker *w = &r->be[i];
	const char *cuda[] = {r->bench->load, "be",     be_name[t->be[i]], "--out",
	                      w->result,      "--lock", r->lock,           NULL};
	const char *torch[] = {r->bench->python, r->bench->torch_script,
	                       "train",          "--out",
	                       w->result,        "--lock",
	                       r->lock,          NULL};
	char name[32];

	snprintf(name, sizeof name, "be%u-%s", i, be_name[t->be[i]]);
	name_files(r, w, name);
	return start_worker(r, w, t->be[i] == BE_TRAIN ? torch : cuda, false, err);
}

/* All at once; their lock lets them make their references one after the other. */
static int start_loads(struct run *r, struct gp_error *err)
{
	const struct trial *t = r->trial;
	uint64_t deadline_ns = in_ms(1000ull * r->bench->ready_s * (uses_torch(t) ? 2 : 1));
	int rc = 0;

	if (t->arm == ARM_MPS)
		rc = mps_start(&r->mps, r->bench->mps_control, r->bench->own, err);
	for (unsigned i = 0; !rc && i < t->nbe; i++)
		rc = start_be(r, i, err);
	if (!rc && t->lc)
		rc = start_lc(r, err);
	for (unsigned i = 0; !rc && i < t->nbe; i++)
		rc = child_expect(&r->be[i].child, "ready", deadline_ns, err);
	if (!rc && t->lc)
		rc = child_expect(&r->lc.child, "ready", deadline_ns, err);
	return rc;
}

/* ---- the scheduler ---- */

static int start_scheduler(struct run *r, struct gp_error *err)
{
	const char *argv[2 * BE_MAX + 8];
	char pid[BE_MAX + 1][16];
	unsigned n = 0, npid = 0;
	struct child_spec spec = {.name = "gpreempt",
	                          .argv = argv,
	                          .stderr_path = r->scheduler_errors,
	                          .stdout_path = r->scheduler_says,
	                          .death_signal = SIGTERM}; /* it has things to put back */
	int rc;

	argv[n++] = r->bench->gpreempt;
	argv[n++] = "schedule";
	if (r->trial->lc) {
		snprintf(pid[npid], sizeof pid[npid], "%d", (int)r->lc.child.pid);
		argv[n++] = "--lc";
		argv[n++] = pid[npid++];
	}
	for (unsigned i = 0; i < r->trial->nbe; i++) {
		snprintf(pid[npid], sizeof pid[npid], "%d", (int)r->be[i].child.pid);
		argv[n++] = "--be";
		argv[n++] = pid[npid++];
	}
	argv[n++] = "--policy";
	argv[n++] = r->bench->policy;
	argv[n] = NULL;
	snprintf(r->scheduler_errors, sizeof r->scheduler_errors, "%s/%03u-%s-scheduler.err",
	         r->bench->logs, r->bench->trials, r->trial->label);
	snprintf(r->scheduler_says, sizeof r->scheduler_says, "%s/%03u-%s-scheduler.out",
	         r->bench->logs, r->bench->trials, r->trial->label);
	rc = child_start(&r->scheduler, &spec, err);
	return rc ? rc : child_expect(&r->scheduler, "ready", in_ms(20000), err);
}

/* It puts everything back and must say so with its exit status. */
static int stop_scheduler(struct run *r, struct gp_error *err)
{
	char words[192];
	int rc = child_end(&r->scheduler, true, 10000, err);

	if (rc || !r->scheduler.pid || !child_exit(&r->scheduler))
		return rc;
	child_last_words(&r->scheduler, words, sizeof words);
	return gp_fail(err, -ECHILD, "gpreempt ended with status %d%s%s", child_exit(&r->scheduler),
	               words[0] ? ": " : "", words);
}

/* ---- the window ---- */

static int watch(struct run *r, const struct child *awaited, uint64_t ms, struct gp_error *err)
{
	struct child *all[BE_MAX + 3] = {&r->lc.child, &r->scheduler, &r->mps.daemon};

	for (unsigned i = 0; i < BE_MAX; i++)
		all[3 + i] = &r->be[i].child;
	return child_watch(all, BE_MAX + 3, awaited, in_ms(ms), err);
}

static int measure(struct run *r, struct gp_error *err)
{
	const struct trial *t = r->trial;
	int rc = 0;

	for (unsigned i = 0; i < t->nbe; i++)
		child_tell(&r->be[i].child, "go");
	if (t->arm == ARM_GPREEMPT)
		rc = start_scheduler(r, err);
	if (!rc)
		rc = watch(r, NULL, t->settle_ms, err);
	if (rc)
		return rc;
	if (!t->lc) {
		r->from_ns = gp_monotonic_ns();
		rc = watch(r, NULL, t->window_ms, err);
		r->to_ns = gp_monotonic_ns();
		return rc;
	}
	child_tell(&r->lc.child, "go");
	/* Three times what it should take: a load that is starved that badly has failed. */
	rc = watch(r, &r->lc.child,
	           30000 + 3ull * (t->requests + WARM_UP) * t->lc->period_us / 1000, err);
	r->starved = rc == -ETIMEDOUT;
	return rc;
}

/* ---- the end ---- */

/* The scheduler first: a load that is held cannot end. */
static int end_all(struct run *r, struct gp_error *err)
{
	int rc = stop_scheduler(r, err);

	/* To all, then to wait. Once: a second one kills a Python that is on its way out. */
	for (unsigned i = 0; i < BE_MAX; i++)
		if (r->be[i].child.pid && !r->be[i].child.ended)
			kill(r->be[i].child.pid, SIGTERM);
	for (unsigned i = 0; i < BE_MAX; i++) {
		int one = child_end(&r->be[i].child, false, 15000, err);

		rc = rc ? rc : one;
	}
	if (child_end(&r->lc.child, true, 5000, err))
		rc = -ETIMEDOUT;
	mps_stop(&r->mps);
	child_end_orphans();
	return rc;
}

static int read_worker(const struct worker *w, struct loadlog *log, struct outcome *out,
                       struct gp_error *err)
{
	int status = child_exit(&w->child);
	char words[160];
	int rc;

	*log = (struct loadlog){0};
	if (status && status != EXIT_WRONG_RESULT) {
		child_last_words(&w->child, words, sizeof words);
		return gp_fail(err, -ECHILD, "%s ended with status %d%s%s", w->name, status,
		               words[0] ? ": " : "", words);
	}
	rc = loadlog_read(log, w->result, err);
	if (rc)
		return rc;
	if (log->gpu[0])
		snprintf(out->gpu, sizeof out->gpu, "%s", log->gpu);
	if (!log->right || status) {
		out->mismatched = true;
		return gp_fail(err, -EBADMSG, "%s: WRONG RESULT: %s", w->name, log->check);
	}
	return 0;
}

static int read_lc(struct run *r, struct outcome *out, struct gp_error *err)
{
	struct loadlog log;
	int rc = read_worker(&r->lc, &log, out, err);

	if (!rc && log.latency.count != r->trial->requests)
		rc = gp_fail(err, -ENODATA, "lc answered %zu of %u requests", log.latency.count,
		             r->trial->requests);
	if (!rc)
		rc = samples_append(&out->latency, &log.latency);
	r->from_ns = log.from_ns;
	r->to_ns = log.to_ns;
	out->iterations = log.iterations;
	out->kernel_ns = log.kernel_ns;
	out->late = log.late;
	loadlog_free(&log);
	return rc;
}

static int read_results(struct run *r, struct outcome *out, struct gp_error *err)
{
	int rc = r->trial->lc ? read_lc(r, out, err) : 0;

	/* All of them, even after an error: a wrong result anywhere must come to light. */
	for (unsigned i = 0; i < r->trial->nbe; i++) {
		struct loadlog log;
		int one = read_worker(&r->be[i], &log, out, err);

		if (!one && !rc)
			out->work[i] = loadlog_work(&log, r->from_ns, r->to_ns);
		loadlog_free(&log);
		rc = rc ? rc : one;
	}
	out->window_s = (double)(r->to_ns - r->from_ns) / 1e9;
	return rc;
}

static bool anyone_skipped(const struct run *r)
{
	bool skipped = r->lc.child.ended && child_exit(&r->lc.child) == EXIT_SKIPPED;

	for (unsigned i = 0; i < BE_MAX; i++)
		skipped |= r->be[i].child.ended && child_exit(&r->be[i].child) == EXIT_SKIPPED;
	return skipped;
}

int trial_run(struct bench *b, const struct trial *t, struct outcome *out, struct gp_error *err)
{
	struct run r = {.bench = b, .trial = t};
	int rc, ended;

	*out = (struct outcome){0};
	b->trials++;
	snprintf(r.lock, sizeof r.lock, "%s/lock", b->own);
	snprintf(r.no_mps_env, sizeof r.no_mps_env, "CUDA_MPS_PIPE_DIRECTORY=%s/none", b->own);
	rc = start_loads(&r, err);
	if (!rc)
		rc = measure(&r, err);
	ended = end_all(&r, err);
	if (!rc)
		rc = ended;
	out->skipped = rc && anyone_skipped(&r);
	out->starved = r.starved;
	if (rc && !r.starved)
		return rc;
	/* What was done too slowly must be right as well. */
	ended = read_results(&r, out, err);
	return rc ? rc : ended;
}
