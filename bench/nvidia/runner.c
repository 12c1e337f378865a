/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The benchmark's main program: goes through parts, rounds and cells, lets the arms take turns,
 * and writes what is known so far after every run, since it may be stopped at any time.
 */
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "child.h"
#include "gather.h"
#include "machine.h"
#include "options.h"
#include "report.h"
#include "stop.h"
#include "trial.h"

enum { EXIT_SKIPPED = 77 };

struct session {
	struct options options;
	struct gather gather;
	struct report report;
	char own[64]; /* our private directory */
};

/* ---- one run, and what it adds ---- */

enum what { LC_ALONE, BE_ALONE, ARM_RUN };

struct item {
	enum what what;
	enum arm arm;
};

static struct trial trial_for(const struct session *s, unsigned i, const struct item *item,
                              unsigned round)
{
	const struct effort *e = &s->options.effort;
	const struct cell *c = s->gather.cell[i];
	struct trial t = {.label = c->name,
	                  .arm = item->arm,
	                  .lc = c->lc,
	                  .requests = cell_requests(c, item->arm, e),
	                  .iterations = s->gather.iterations[gather_lc_home(&s->gather, i)],
	                  .be = c->be,
	                  .nbe = c->nbe,
	                  .settle_ms = cell_settle_ms(c),
	                  .window_ms = cell_window_ms(c, e),
	                  .seed = round + 1};

	if (item->what == LC_ALONE) {
		t.nbe = 0;
		t.settle_ms = 0;
		t.requests = cells_alone_requests(s->gather.cell, s->gather.ncells, i, e);
	} else if (item->what == BE_ALONE) {
		t.lc = NULL;
		t.nbe = 1;
		t.window_ms = cell_alone_ms(c, e);
	}
	return t;
}

static const char *item_name(const struct item *item)
{
	return item->what == LC_ALONE   ? "lc alone"
	       : item->what == BE_ALONE ? "be alone"
	                                : arm_name[item->arm];
}

static void show_progress(const char *where, const struct trial *t, struct outcome *out,
                          double took_s)
{
	double done = 0;

	fprintf(stderr, "%s:", where);
	samples_sort(&out->latency);
	if (t->lc)
		fprintf(stderr, " p50 %.0f us, p99 %.0f us;",
		        (double)samples_quantile(&out->latency, 0.5) / 1e3,
		        (double)samples_quantile(&out->latency, 0.99) / 1e3);
	for (unsigned i = 0; i < t->nbe; i++)
		done += out->work[i];
	if (t->nbe)
		fprintf(stderr, " %.2f kernels/s;", done / out->window_s);
	fprintf(stderr, " took %.1f s\n", took_s);
}

static void take_outcome(struct session *s, unsigned i, const struct item *item,
                         struct outcome *out, int rc)
{
	struct gather *g = &s->gather;

	if (!rc && out->gpu[0])
		snprintf(s->report.gpu, sizeof s->report.gpu, "%s", out->gpu);
	if (!rc && item->what == LC_ALONE) {
		g->kernel_us[i] = (double)out->kernel_ns / 1e3;
		if (!g->iterations[i])
			g->iterations[i] = out->iterations;
	}
	gather_add(item->what == LC_ALONE   ? &g->lc_alone[i]
	           : item->what == BE_ALONE ? &g->be_alone[i]
	                                    : &g->arm[i][item->arm],
	           out, rc);
}

/* -EINTR when told to stop; a run that failed otherwise is noted, and the next one goes on. */
static int run_item(struct session *s, unsigned i, const struct item *item, unsigned round)
{
	struct cell_result *c = &s->report.cell[i];
	struct trial t = trial_for(s, i, item, round);
	struct gp_error err = {0}, write_err = {0};
	struct outcome out;
	char where[128];
	uint64_t begin_ns = gp_monotonic_ns();
	int rc = trial_run(&s->options.bench, &t, &out, &err);

	snprintf(where, sizeof where, "%s, round %u, %s", c->cell->name, round + 1,
	         item_name(item));
	if (rc == -EINTR) {
		samples_free(&out.latency);
		return rc;
	}
	if (out.skipped) {
		c->skipped = true;
		report_note(c, "skipped: %s", err.text);
		fprintf(stderr, "%s: skipped: %s\n", where, err.text);
		samples_free(&out.latency);
		return 0;
	}
	if (rc) {
		report_note(c, "round %u, %s: %s", round + 1, item_name(item), err.text);
		fprintf(stderr, "%s: FAILED: %s\n", where, err.text);
	} else {
		show_progress(where, &t, &out, (double)(gp_monotonic_ns() - begin_ns) / 1e9);
	}
	take_outcome(s, i, item, &out, rc);
	gather_report(&s->gather, &s->report);
	if (report_write(s->options.json, &s->report, report_json, &write_err))
		fprintf(stderr, "bench: %s\n", write_err.text);
	return 0;
}

/* ---- the order of things ---- */

static unsigned items_of(const struct session *s, unsigned i, unsigned round, struct item *item)
{
	const struct effort *e = &s->options.effort;
	unsigned n = 0;

	/* First of all in the first round: it finds the length of the kernel for the others. */
	if (e->arm[ARM_ALONE] && cells_first_with_lc(s->gather.cell, i))
		item[n++] = (struct item){LC_ALONE, ARM_ALONE};
	if (e->arm[ARM_ALONE] && cells_first_with_be(s->gather.cell, i))
		item[n++] = (struct item){BE_ALONE, ARM_ALONE};
	for (enum arm arm = ARM_DEFAULT; arm < ARMS; arm++)
		if (cell_runs_arm(s->gather.cell[i], arm, round, e))
			item[n++] = (struct item){ARM_RUN, arm};
	return n;
}

/* The arms of a cell in turn, beginning with another one in every round. */
static int run_cell(struct session *s, unsigned i, unsigned round)
{
	struct item item[ARMS + 2];
	unsigned n = items_of(s, i, round, item);
	int rc = 0;

	for (unsigned k = 0; k < n && !rc && !s->report.cell[i].skipped; k++)
		rc = run_item(s, i, &item[(k + round) % n], round);
	return rc;
}

static int run_part(struct session *s, const char *part)
{
	int rc = 0;

	for (unsigned round = 0; round < s->options.effort.rounds; round++)
		for (unsigned i = 0; i < s->gather.ncells && !rc; i++)
			if (!strcmp(s->gather.cell[i]->part, part) &&
			    round < cell_rounds(s->gather.cell[i], &s->options.effort))
				rc = run_cell(s, i, round);
	return rc;
}

static int run_all(struct session *s)
{
	int rc = 0;

	for (unsigned i = 0; parts[i] && !rc; i++)
		rc = run_part(s, parts[i]);
	return rc;
}

/* ---- list ---- */

static void list(const struct options *o)
{
	double all_s = 0;

	printf("%-22s %-36s %9s %9s\n", "cell", "what", "requests", "seconds");
	for (unsigned p = 0; parts[p]; p++) {
		double part_s = 0;

		for (unsigned i = 0; i < o->ncells; i++) {
			double s = cells_estimate_s(o->cell, o->ncells, i, &o->effort);

			if (strcmp(o->cell[i]->part, parts[p]) != 0)
				continue;
			part_s += s;
			printf("%-22s %-36s %9u %9.0f\n", o->cell[i]->name, o->cell[i]->about,
			       cell_requests(o->cell[i], ARM_GPREEMPT, &o->effort) *
			               cell_rounds(o->cell[i], &o->effort),
			       s);
		}
		if (part_s > 0)
			printf("--part %-15s %36s %9s %9.0f  (%.1f min)\n", parts[p], "", "",
			       part_s, part_s / 60);
		all_s += part_s;
	}
	printf("%-22s %36s %9s %9.0f  (%.1f min)\n", "all", "", "", all_s, all_s / 60);
}

/* ---- set-up and end ---- */

static bool can_run(const char *program)
{
	char path[4096], file[4200];

	if (strchr(program, '/'))
		return !access(program, X_OK);
	snprintf(path, sizeof path, "%s", getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
	for (char *dir = strtok(path, ":"); dir; dir = strtok(NULL, ":")) {
		snprintf(file, sizeof file, "%s/%s", dir, program);
		if (!access(file, X_OK))
			return true;
	}
	return false;
}

static int set_up(struct session *s)
{
	struct options *o = &s->options;

	if (o->effort.arm[ARM_MPS] && !can_run(o->bench.mps_control)) {
		fprintf(stderr, "bench: no %s here, so no mps arm\n", o->bench.mps_control);
		o->effort.arm[ARM_MPS] = false;
	}
	snprintf(s->own, sizeof s->own, P_tmpdir "/gpreempt-bench-XXXXXX");
	if (!mkdtemp(s->own)) {
		s->own[0] = '\0';
		return -errno;
	}
	if (o->keep && mkdir(o->keep, 0755) && errno != EEXIST)
		return -errno;
	o->bench.own = s->own;
	o->bench.logs = o->keep ? o->keep : s->own;
	s->gather.cell = o->cell;
	s->gather.ncells = s->report.ncells = o->ncells;
	for (unsigned i = 0; i < o->ncells; i++)
		s->report.cell[i].cell = o->cell[i];
	s->report.rounds = o->effort.rounds;
	s->report.quick = o->effort.quick;
	snprintf(s->report.command, sizeof s->report.command, "%s", o->command ? o->command : "");
	machine_describe(&s->report);
	machine_keep_gpu();
	child_adopt_orphans();
	return stop_init();
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int exit_status(const struct report *r)
{
	struct claim claim[CLAIMS_MAX];
	unsigned n = report_judge(r, claim), skipped = 0;

	for (unsigned i = 0; i < n; i++)
		if (claim[i].verdict == FAIL)
			return 1;
	for (unsigned i = 0; i < r->ncells; i++)
		skipped += r->cell[i].skipped;
	return skipped == r->ncells ? EXIT_SKIPPED : 0;
}

static int show(const struct session *s)
{
	struct gp_error err = {0};
	int rc = report_write(s->options.json, &s->report, report_json, &err);

	if (!rc)
		rc = report_write(s->options.svg, &s->report, report_svg, &err);
	report_table(stdout, &s->report);
	if (rc)
		fprintf(stderr, "bench: %s\n", err.text);
	return rc || fflush(stdout) ? 1 : exit_status(&s->report);
}

static int merge(struct session *s)
{
	for (unsigned i = 0; i < s->options.nfrom; i++) {
		struct gp_error err = {0};

		if (report_read(&s->report, s->options.from_json[i], &err)) {
			fprintf(stderr, "bench: %s\n", err.text);
			return 1;
		}
	}
	return show(s);
}

int main(int argc, char **argv)
{
	static struct session s;
	int rc, status;

	options_parse(&s.options, argc, argv);
	if (s.options.nfrom)
		return merge(&s);
	if (s.options.list) {
		list(&s.options);
		return 0;
	}
	rc = set_up(&s);
	if (!rc)
		run_all(&s);
	else
		fprintf(stderr, "bench: cannot start: %s\n", strerror(-rc));
	child_end_orphans();
	if (s.own[0])
		nftw(s.own, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	if (rc)
		return 1;
	gather_report(&s.gather, &s.report);
	status = show(&s);
	gather_free(&s.gather);
	return stop_signal() ? 128 + stop_signal() : status;
}
