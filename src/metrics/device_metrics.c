/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of each device: one table of numbers and one of histograms. */
#include <string.h>

#include "metrics/page_parts.h"

#define AT(member) offsetof(struct gp_engine_stats, member)
#define ALWAYS     SIZE_MAX /* shown for every device */

enum unit { COUNT, SECONDS };

static const struct number {
	const char *name;
	const char *help;
	enum unit unit;
	size_t value; /* offset of a uint64_t, in ns for SECONDS */
	size_t seen;  /* offset of a bool, false: this device cannot show it */
} numbers[] = {
	{"gpreempt_device_busy_seconds_total",
	 "Measured run time of its tasks; exceeds elapsed time if several tasks run at once.",
	 SECONDS, AT(busy_ns), AT(busy_seen)},
	{"gpreempt_device_idle_seconds_total", "Time without work of any task, sampled at ticks.",
	 SECONDS, AT(idle_ns), AT(idle_seen)},
	{"gpreempt_device_switching_seconds_total",
	 "Upper bound of the time spent switching tasks: the number of switches multiplied by the "
	 "cost of one switch.",
	 SECONDS, AT(switch_ns), AT(switches_seen)},
	{"gpreempt_device_switches_total", "How often a task was put on the hardware.", COUNT,
	 AT(switches), AT(switches_seen)},
	{"gpreempt_ticks_total", "Ticks of the engine.", COUNT, AT(ticks), ALWAYS},
	{"gpreempt_blind_ticks_total", "Ticks at which the device could report nothing.", COUNT,
	 AT(blind), ALWAYS},
	{"gpreempt_decisions_total", "How often the policy decided.", COUNT, AT(decisions), ALWAYS},
	{"gpreempt_preemptions_total", "Active tasks that the policy held.", COUNT, AT(preemptions),
	 ALWAYS},
	{"gpreempt_inversions_total",
	 "How often a task of higher rank waited while one of lower rank ran.", COUNT,
	 AT(inversions), AT(inversions_seen)},
	{"gpreempt_inversion_seconds_total", "Duration of inversions, sampled at ticks.", SECONDS,
	 AT(inversion_ns), AT(inversions_seen)},
	{"gpreempt_ejections_total",
	 "Policies that were replaced by none because they broke a rule.", COUNT, AT(ejections),
	 ALWAYS},
	{"gpreempt_action_failures_total",
	 "Actions that the device refused or that had no effect; they are tried again.", COUNT,
	 AT(failures), ALWAYS},
	{"gpreempt_actions_deferred_total",
	 "Actions postponed because another had to finish first.", COUNT, AT(deferred), ALWAYS},
	{"gpreempt_settings_undone_total",
	 "Settings that another process reverted; they are applied again.", COUNT, AT(undone),
	 ALWAYS},
};

static const struct number starved = {
	"gpreempt_starved_seconds", "Longest current starvation of a task that the policy causes.",
	SECONDS, AT(starved_ns), ALWAYS};

static const struct {
	const char *action;
	size_t value;
	uint32_t cap; /* the action requires this capability */
} actions[] = {
	{"hold", AT(holds), GP_CAP_HOLD},
	{"release", AT(releases), GP_CAP_HOLD},
	{"slice", AT(slices), GP_CAP_SLICE},
};

static const struct times {
	const char *name;
	const char *help;
	size_t value;
	uint32_t cap; /* shown only with this capability; 0: shown after the first sample */
} times[] = {
	{"gpreempt_hold_seconds", "From the request of a hold to its effect.", AT(hold_ns),
	 GP_CAP_HOLD},
	{"gpreempt_release_seconds", "From the request of a release to its effect.", AT(release_ns),
	 GP_CAP_HOLD},
	{"gpreempt_detection_seconds",
	 "From the start of a task's work to the tick that saw it; absent if starts are not known.",
	 AT(detect_ns), 0},
	{"gpreempt_decision_seconds", "Time that the policy took to decide.", AT(decide_ns), 0},
};

static const void *at(const struct gp_metrics_device *d, size_t offset)
{
	return (const char *)d->stats + offset;
}

static bool is_seen(const struct gp_metrics_device *d, const struct number *n)
{
	return n->seen == ALWAYS || *(const bool *)at(d, n->seen);
}

static void write_number(FILE *out, const struct gp_metrics_page *p, const struct number *n,
			 const char *type)
{
	bool headed = false;

	for (unsigned i = 0; i < p->ndevices; i++) {
		const uint64_t *value = at(&p->device[i], n->value);

		if (!is_seen(&p->device[i], n))
			continue;
		if (!headed)
			gp_metrics_head(out, n->name, type, n->help);
		headed = true;
		fprintf(out, "%s{device=\"%u\"}", n->name, i);
		if (n->unit == SECONDS)
			gp_metrics_seconds(out, *value);
		else
			gp_metrics_count(out, *value);
	}
}

static void write_actions(FILE *out, const struct gp_metrics_page *p)
{
	gp_metrics_head(out, "gpreempt_actions_total", "counter",
			"Actions requested from the device.");
	for (unsigned i = 0; i < p->ndevices; i++)
		for (unsigned k = 0; k < sizeof actions / sizeof *actions; k++) {
			if (!(p->device[i].caps & actions[k].cap))
				continue;
			fprintf(out, "gpreempt_actions_total{device=\"%u\",action=\"%s\"}", i,
				actions[k].action);
			gp_metrics_count(out,
					 *(const uint64_t *)at(&p->device[i], actions[k].value));
		}
}

static void write_times(FILE *out, const struct gp_metrics_page *p, const struct times *t)
{
	bool headed = false;
	char labels[32];

	for (unsigned i = 0; i < p->ndevices; i++) {
		const struct gp_hist *h = at(&p->device[i], t->value);

		if (t->cap ? !(p->device[i].caps & t->cap) : !h->count)
			continue;
		if (!headed)
			gp_metrics_head(out, t->name, "histogram", t->help);
		headed = true;
		snprintf(labels, sizeof labels, "device=\"%u\"", i);
		gp_metrics_hist(out, t->name, labels, h);
	}
}

/* Waits are separated by class: waits of best-effort tasks do not measure latency. */
static void write_waits(FILE *out, const struct gp_metrics_page *p)
{
	char labels[48];

	gp_metrics_head(out, "gpreempt_wait_seconds", "histogram",
			"Completed waits: from when a task wanted the device until it got it.");
	for (unsigned i = 0; i < p->ndevices; i++)
		for (unsigned class = 0; class <= GP_LATENCY_CRITICAL; class ++) {
			snprintf(labels, sizeof labels, "device=\"%u\",class=\"%s\"", i,
				 gp_class_name(class));
			gp_metrics_log2_hist(out, "gpreempt_wait_seconds", labels,
					     &p->device[i].stats->class_waits[class]);
		}
}

static void write_lag(FILE *out, const struct gp_metrics_page *p)
{
	char labels[32];

	gp_metrics_head(out, "gpreempt_loop_lag_seconds", "histogram",
			"Delay between the planned and the actual wake-up of the device thread.");
	for (unsigned i = 0; i < p->ndevices; i++) {
		snprintf(labels, sizeof labels, "device=\"%u\"", i);
		gp_metrics_hist(out, "gpreempt_loop_lag_seconds", labels, p->device[i].lag_ns);
	}
}

static void write_info(FILE *out, const struct gp_metrics_page *p)
{
	gp_metrics_head(out, "gpreempt_device_info", "gauge",
			"Always 1; labels describe the device.");
	for (unsigned i = 0; i < p->ndevices; i++) {
		fprintf(out, "gpreempt_device_info{device=\"%u\",", i);
		gp_metrics_label(out, "name", p->device[i].name);
		fputc(',', out);
		gp_metrics_label(out, "backend", p->device[i].backend);
		fputs("} 1\n", out);
	}
	gp_metrics_head(out, "gpreempt_device_up", "gauge",
			"0: the device thread no longer ticks, or a driver call hangs.");
	for (unsigned i = 0; i < p->ndevices; i++)
		fprintf(out, "gpreempt_device_up{device=\"%u\"} %d\n", i, !p->device[i].stuck);
}

static void write_policy(FILE *out, const struct gp_metrics_page *p)
{
	gp_metrics_head(out, "gpreempt_policy_info", "gauge",
			"Always 1; labels name the policy in force and the requested policy.");
	for (unsigned i = 0; i < p->ndevices; i++) {
		if (!p->device[i].policy)
			continue;
		fprintf(out, "gpreempt_policy_info{device=\"%u\",", i);
		gp_metrics_label(out, "policy", p->device[i].policy);
		fputc(',', out);
		gp_metrics_label(out, "wanted", p->device[i].wanted);
		fputs("} 1\n", out);
	}
	gp_metrics_head(out, "gpreempt_policy_in_force", "gauge",
			"0: the requested policy was ejected and is not in force.");
	for (unsigned i = 0; i < p->ndevices; i++)
		if (p->device[i].policy)
			fprintf(out, "gpreempt_policy_in_force{device=\"%u\"} %d\n", i,
				!strcmp(p->device[i].policy, p->device[i].wanted));
	gp_metrics_head(out, "gpreempt_starvation_limit_seconds", "gauge",
			"A policy that starves a task for longer than this is ejected.");
	for (unsigned i = 0; i < p->ndevices; i++) {
		fprintf(out, "gpreempt_starvation_limit_seconds{device=\"%u\"}", i);
		gp_metrics_seconds(out, p->device[i].starve_limit_ns);
	}
}

void gp_metrics_devices(FILE *out, const struct gp_metrics_page *p)
{
	if (!p->ndevices)
		return;
	write_info(out, p);
	write_policy(out, p);
	write_number(out, p, &starved, "gauge");
	for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
		write_number(out, p, &numbers[i], "counter");
	write_actions(out, p);
	for (unsigned i = 0; i < sizeof times / sizeof *times; i++)
		write_times(out, p, &times[i]);
	write_waits(out, p);
	write_lag(out, p);
}
