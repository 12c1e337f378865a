/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page for Prometheus, from hand-made snapshots: what is not known is absent, labels are
 * escaped, histograms add up, and every family stands in one piece under its head.
 */
#include "support/test.h"

#include "metrics/page.h"

#define DEVICES 2

struct world {
	struct gp_metrics_page page;
	struct gp_metrics_device device[DEVICES];
	struct gp_engine_stats stats[DEVICES];
	struct gp_hist lag_ns[DEVICES];
	struct gp_task_stats task[GP_METRICS_TASKS_MAX + 50];
	char *text; /* as last written */
	size_t size;
};

static struct world *world_new(unsigned ndevices)
{
	struct world *w = calloc(1, sizeof *w);

	assert_non_null(w);
	for (unsigned i = 0; i < DEVICES; i++) {
		struct gp_engine_stats *s = &w->stats[i];

		gp_hist_init(&s->hold_ns);
		gp_hist_init(&s->release_ns);
		gp_hist_init(&s->decide_ns);
		gp_hist_init(&s->wait_ns);
		gp_hist_init(&s->detect_ns);
		for (unsigned k = 0; k <= GP_LATENCY_CRITICAL; k++)
			gp_log2_hist_init(&s->class_waits[k]);
		gp_hist_init(&w->lag_ns[i]);
		w->device[i] = (struct gp_metrics_device){.name = "fake GPU",
							  .backend = "fake",
							  .policy = "priority",
							  .wanted = "priority",
							  .caps = GP_CAP_HOLD | GP_CAP_SLICE,
							  .starve_limit_ns = 10 * GP_NS_PER_S,
							  .stats = s,
							  .lag_ns = &w->lag_ns[i],
							  .task = w->task};
	}
	w->page = (struct gp_metrics_page){
		.version = "1.2.3", .ndevices = ndevices, .device = w->device};
	return w;
}

static void world_free(struct world *w)
{
	free(w->text);
	free(w);
}

/* A test with a page of `ndevices` devices. */
#define PAGE_TEST(function, ndevices)                  \
	static void function##_on(struct world *w);    \
	TEST(function)                                 \
	{                                              \
		struct world *w = world_new(ndevices); \
                                                       \
		function##_on(w);                      \
		world_free(w);                         \
	}                                              \
	static void function##_on(struct world *w)

static void write_page(struct world *w)
{
	FILE *out;

	free(w->text);
	out = open_memstream(&w->text, &w->size);
	assert_non_null(out);
	gp_metrics_write(out, &w->page);
	assert_int_equal(fclose(out), 0);
}

/* A line of the page that begins so, or NULL. */
static const char *find_line(const char *page, const char *begins)
{
	for (const char *at = page; (at = strstr(at, begins)); at++)
		if (at == page || at[-1] == '\n')
			return at;
	return NULL;
}

/* The page has this line. */
static void assert_line(const struct world *w, const char *line)
{
	const char *at = find_line(w->text, line);

	if (!at || at[strlen(line)] != '\n')
		fail_msg("no line '%s'", line);
}

static void assert_absent(const struct world *w, const char *begins)
{
	if (find_line(w->text, begins))
		fail_msg("'%s' is there", begins);
}

/* The family that a sample belongs to has this name: what is left without the suffix. */
static bool belongs(const char *line, const char *family)
{
	static const char *const suffix[] = {"", "_bucket", "_sum", "_count"};
	size_t n = strcspn(line, "{ ");

	for (unsigned i = 0; i < 4; i++)
		if (n == strlen(family) + strlen(suffix[i]) &&
		    !strncmp(line, family, strlen(family)) &&
		    !strncmp(line + strlen(family), suffix[i], strlen(suffix[i])))
			return true;
	return false;
}

static void check_line(char *line, char *family, const char *rest)
{
	char head[160];

	if (!strncmp(line, "# HELP ", 7)) {
		snprintf(family, 128, "%.*s", (int)strcspn(line + 7, " "), line + 7);
		snprintf(head, sizeof head, "# HELP %s ", family);
		assert_null(find_line(rest, head)); /* a second one */
		assert_true(strlen(line) > strlen(head));
		snprintf(head, sizeof head, "# TYPE %s ", family);
		assert_true(!strncmp(rest, head, strlen(head)));
		return;
	}
	if (*line == '#')
		return;
	if (!belongs(line, family))
		fail_msg("'%s' stands under %s", line, family);
}

PAGE_TEST(every_sample_stands_under_the_head_of_its_family, 2)
{
	char family[128] = "", *line, *rest;

	w->page.tasks = true;
	w->page.started_s = w->page.resident_bytes = w->page.open_fds = w->page.max_fds = 1;
	for (unsigned i = 0; i < 2; i++) {
		w->stats[i].busy_seen = w->stats[i].idle_seen = w->stats[i].switches_seen = true;
		w->stats[i].inversions_seen = true;
		gp_hist_add(&w->stats[i].detect_ns, 1);
		gp_hist_add(&w->stats[i].decide_ns, 1);
		w->device[i].ntasks = 2;
	}
	w->task[0] = (struct gp_task_stats){.id = 1, .memory = 5, .waits = 1, .run_source = 1};
	write_page(w);
	for (line = w->text; *line; line = rest) {
		rest = strchr(line, '\n');
		assert_non_null(rest); /* the last line ends, too */
		*rest++ = '\0';
		check_line(line, family, rest);
	}
}

PAGE_TEST(labels_are_escaped_and_always_utf8, 1)
{
	w->device[0].name = "a \"b\" \\ c\nd";
	w->device[0].ntasks = 1;
	w->page.tasks = true;
	w->task[0] = (struct gp_task_stats){.id = 7, .pid = 42};
	strcpy(w->task[0].name, "k\xc3\xa4se\xff\xc3");
	write_page(w);
	assert_line(w, "gpreempt_device_info{device=\"0\",name=\"a \\\"b\\\" \\\\ c\\nd\","
		       "backend=\"fake\"} 1");
	assert_line(w, "gpreempt_task_preemptions_total{device=\"0\",task=\"7\",pid=\"42\","
		       "name=\"k\xc3\xa4se\xef\xbf\xbd\xef\xbf\xbd\"} 0");
}

/* What is told, and what not. */

PAGE_TEST(counters_are_told_in_base_units_for_each_device, 2)
{
	w->stats[0].preemptions = 3;
	w->stats[1].preemptions = UINT64_MAX;
	w->stats[1].busy_seen = true;
	w->stats[1].busy_ns = 12 * GP_NS_PER_S + 34;
	w->stats[0].holds = 5;
	w->stats[0].starved_ns = 1500 * GP_NS_PER_MS;
	w->page.cpu_ns = 1;
	w->page.keeper = true;
	write_page(w);
	assert_line(w, "gpreempt_build_info{version=\"1.2.3\"} 1");
	assert_line(w, "gpreempt_preemptions_total{device=\"0\"} 3");
	assert_line(w, "gpreempt_preemptions_total{device=\"1\"} 18446744073709551615");
	assert_line(w, "gpreempt_device_busy_seconds_total{device=\"1\"} 12.000000034");
	assert_line(w, "gpreempt_actions_total{device=\"0\",action=\"hold\"} 5");
	assert_line(w, "gpreempt_starved_seconds{device=\"0\"} 1.500000000");
	assert_line(w, "gpreempt_starvation_limit_seconds{device=\"0\"} 10.000000000");
	assert_line(w, "process_cpu_seconds_total 0.000000001");
	assert_line(w, "gpreempt_keeper_up 1");
}

PAGE_TEST(what_a_device_cannot_show_is_absent, 2)
{
	static const char *const names[] = {
		"gpreempt_device_busy_seconds_total", "gpreempt_device_idle_seconds_total",
		"gpreempt_device_switching_seconds_total", "gpreempt_inversions_total",
		"gpreempt_inversion_seconds_total"};
	char line[80];

	w->stats[1] = w->stats[0];
	w->stats[1].busy_seen = w->stats[1].idle_seen = w->stats[1].switches_seen = true;
	w->stats[1].inversions_seen = true;
	write_page(w);
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(line, sizeof line, "%s{device=\"0\"}", names[i]);
		assert_absent(w, line);
		snprintf(line, sizeof line, "%s{device=\"1\"} 0", names[i]);
		assert_non_null(find_line(w->text, line));
	}
	assert_absent(w, "gpreempt_detection_seconds");
	assert_absent(w, "gpreempt_tasks_memory_bytes");
	assert_absent(w, "process_resident_memory_bytes");
	w->stats[1] = w->stats[0]; /* no device shows it: the head is absent, too */
	write_page(w);
	assert_absent(w, "# HELP gpreempt_inversions_total");
}

PAGE_TEST(a_device_that_cannot_hold_has_no_hold_times, 2)
{
	w->device[0].caps = GP_CAP_SLICE;
	write_page(w);
	assert_absent(w, "gpreempt_hold_seconds_count{device=\"0\"}");
	assert_line(w, "gpreempt_hold_seconds_count{device=\"1\"} 0");
	assert_absent(w, "gpreempt_actions_total{device=\"0\",action=\"hold\"}");
	assert_line(w, "gpreempt_actions_total{device=\"0\",action=\"slice\"} 0");
}

PAGE_TEST(an_ejected_policy_is_not_in_force, 2)
{
	w->device[0].policy = "none";
	w->device[1].policy = NULL; /* there was no tick yet */
	w->device[1].stuck = true;
	write_page(w);
	assert_line(w, "gpreempt_policy_info{device=\"0\",policy=\"none\",wanted=\"priority\"} 1");
	assert_line(w, "gpreempt_policy_in_force{device=\"0\"} 0");
	assert_absent(w, "gpreempt_policy_in_force{device=\"1\"}");
	assert_line(w, "gpreempt_device_up{device=\"0\"} 1");
	assert_line(w, "gpreempt_device_up{device=\"1\"} 0");
}

PAGE_TEST(a_daemon_without_devices_tells_of_itself, 0)
{
	write_page(w);
	assert_line(w, "gpreempt_clients 0");
	assert_absent(w, "gpreempt_ticks_total");
	assert_absent(w, "# HELP gpreempt_tasks ");
}

static uint64_t value_of(const struct world *w, const char *sample)
{
	const char *at = find_line(w->text, sample);

	if (!at) {
		fail_msg("no '%s'", sample);
		return 0;
	}
	return strtoull(at + strlen(sample), NULL, 10);
}

/* Both kinds: as many below each bound as there are samples below it. */
static void check_buckets(const struct world *w, const char *name, const char *labels,
			  const uint64_t *sample, unsigned n)
{
	char line[160];
	uint64_t below, sum_ns = 0;

	for (unsigned power = 0; power <= 24; power++) {
		uint64_t us = 1ull << power;

		snprintf(line, sizeof line, "%s_bucket{%s,le=\"%llu.%06llu\"} ", name, labels,
			 (unsigned long long)(us / 1000000), (unsigned long long)(us % 1000000));
		below = 0;
		for (unsigned i = 0; i < n; i++)
			below += sample[i] < us * 1000;
		assert_int_equal(value_of(w, line), below);
	}
	for (unsigned i = 0; i < n; i++)
		sum_ns += sample[i];
	snprintf(line, sizeof line, "%s_bucket{%s,le=\"+Inf\"} ", name, labels);
	assert_int_equal(value_of(w, line), n);
	snprintf(line, sizeof line, "%s_count{%s} ", name, labels);
	assert_int_equal(value_of(w, line), n);
	snprintf(line, sizeof line, "%s_sum{%s} %llu.%09llu", name, labels,
		 (unsigned long long)(sum_ns / GP_NS_PER_S),
		 (unsigned long long)(sum_ns % GP_NS_PER_S));
	assert_line(w, line);
}

PAGE_TEST(buckets_count_what_is_below_their_bounds, 1)
{
	static const uint64_t sample[] = {0,         999,         1001,        1999,
					  2001,      3500000,     4095999999,  4096000001,
					  900000000, 16777215999, 16777216001, 3600000000000};
	const unsigned n = sizeof sample / sizeof *sample;

	for (unsigned i = 0; i < n; i++) {
		gp_hist_add(&w->stats[0].hold_ns, sample[i]);
		gp_hist_add(&w->lag_ns[0], sample[i]);
		gp_log2_hist_add(&w->stats[0].class_waits[GP_LATENCY_CRITICAL], sample[i]);
	}
	write_page(w);
	check_buckets(w, "gpreempt_hold_seconds", "device=\"0\"", sample, n);
	check_buckets(w, "gpreempt_loop_lag_seconds", "device=\"0\"", sample, n);
	check_buckets(w, "gpreempt_wait_seconds", "device=\"0\",class=\"lc\"", sample, n);
	check_buckets(w, "gpreempt_wait_seconds", "device=\"0\",class=\"be\"", sample, 0);
}

PAGE_TEST(tasks_are_counted_by_class_and_state, 2)
{
	const uint32_t both = GP_KNOWN_ACTIVE | GP_KNOWN_RUNNING;

	w->task[0] = (struct gp_task_stats){.known = both, .active = true, .running = true};
	w->task[1] = (struct gp_task_stats){.known = both, .active = true};
	w->task[2] = (struct gp_task_stats){.known = GP_KNOWN_ACTIVE, .active = true};
	w->task[3] = (struct gp_task_stats){.known = GP_KNOWN_ACTIVE, .memory = 1000};
	w->task[4] = (struct gp_task_stats){0};
	w->task[5] = (struct gp_task_stats){.held = true, .held_by = GP_HELD_BY_POLICY};
	w->task[6] = (struct gp_task_stats){.held = true, .held_by = GP_HELD_BY_USER, .memory = 1};
	for (unsigned i = 0; i < 7; i++)
		w->task[i].attr.class = i < 5 ? GP_BEST_EFFORT : GP_LATENCY_CRITICAL;
	w->device[0].ntasks = 7;
	write_page(w);
	assert_line(w, "gpreempt_tasks{device=\"0\",class=\"be\",state=\"running\"} 1");
	assert_line(w, "gpreempt_tasks{device=\"0\",class=\"be\",state=\"waiting\"} 1");
	assert_line(w, "gpreempt_tasks{device=\"0\",class=\"be\",state=\"active\"} 1");
	assert_line(w, "gpreempt_tasks{device=\"0\",class=\"be\",state=\"idle\"} 1");
	assert_line(w, "gpreempt_tasks{device=\"0\",class=\"be\",state=\"unknown\"} 1");
	assert_line(w, "gpreempt_tasks{device=\"0\",class=\"be\",state=\"held\"} 0");
	assert_line(w, "gpreempt_tasks{device=\"0\",class=\"lc\",state=\"held\"} 1");
	assert_line(w, "gpreempt_tasks{device=\"0\",class=\"lc\",state=\"suspended\"} 1");
	assert_line(w, "gpreempt_tasks{device=\"1\",class=\"unmanaged\",state=\"idle\"} 0");
	assert_line(w, "gpreempt_tasks_memory_bytes{device=\"0\"} 1001");
	assert_absent(w, "gpreempt_tasks_memory_bytes{device=\"1\"}");
	assert_absent(w, "# HELP gpreempt_task_"); /* only where asked for */
}

PAGE_TEST(a_task_has_its_own_series_where_asked_for, 1)
{
	w->page.tasks = true;
	w->device[0].ntasks = 2;
	w->task[0] = (struct gp_task_stats){.id = 1,
					    .pid = 10,
					    .name = "a",
					    .attr.class = GP_LATENCY_CRITICAL,
					    .run_source = GP_RUN_MEASURED,
					    .run_ns = 5 * GP_NS_PER_MS,
					    .memory = 77,
					    .waits = 4,
					    .wait_p50_ns = 1000,
					    .wait_p99_ns = 2000,
					    .wait_sum_ns = 5000};
	w->task[1] = (struct gp_task_stats){.id = 2, .pid = 20, .name = "b"};
	write_page(w);
#define A "device=\"0\",task=\"1\",pid=\"10\",name=\"a\""
	assert_line(w, "gpreempt_task_info{" A ",class=\"lc\"} 1");
	assert_line(w, "gpreempt_task_run_seconds_total{" A ",source=\"measured\"} 0.005000000");
	assert_line(w, "gpreempt_task_memory_bytes{" A "} 77");
	assert_line(w, "gpreempt_task_wait_seconds{" A ",quantile=\"0.5\"} 0.000001000");
	assert_line(w, "gpreempt_task_wait_seconds{" A ",quantile=\"0.99\"} 0.000002000");
	assert_line(w, "gpreempt_task_wait_seconds_sum{" A "} 0.000005000");
	assert_line(w, "gpreempt_task_wait_seconds_count{" A "} 4");
#undef A
	assert_absent(w, "gpreempt_task_run_seconds_total{device=\"0\",task=\"2\"");
	assert_absent(w, "gpreempt_task_memory_bytes{device=\"0\",task=\"2\"");
	assert_absent(w, "gpreempt_task_wait_seconds{device=\"0\",task=\"2\"");
	assert_line(w, "gpreempt_tasks_without_series 0");
}

PAGE_TEST(a_crowd_has_no_more_series_than_the_limit, 2)
{
	unsigned n = 0;

	w->page.tasks = true;
	w->device[0].ntasks = GP_METRICS_TASKS_MAX - 10;
	w->device[1].ntasks = GP_METRICS_TASKS_MAX + 10;
	write_page(w);
	for (const char *at = w->text; (at = find_line(at, "gpreempt_task_info{")); at++)
		n++;
	assert_int_equal(n, GP_METRICS_TASKS_MAX);
	assert_line(w, "gpreempt_tasks_without_series 200");
}
