/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt monitor: samples the queues of a process and says how stable they are. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "cli/cli.h"
#include "cli/grid.h"
#include "cli/plot.h"
#include "cli/progress.h"
#include "cli/share.h"
#include "cli/stop.h"
#include "cli/targets.h"
#include "hold/devices.h"

#define SLICES_MAX 8
#define SERIES_MAX 256
#define IDS_SHOWN  40 /* all are in the JSON */

static struct {
	struct gp_targets targets;
	bool json, closely;
	const char *plot;
	uint64_t for_ns, every_ns;
} env = {.for_ns = 30 * GP_NS_PER_S, .every_ns = GP_NS_PER_S};

static const struct argp_option options[] = {
	{"for", 'f', "TIME", 0, "How long (30s); Ctrl-C ends it earlier", 0},
	{"every", 'e', "TIME", 0, "How often to look (1s)", 0},
	{"plot", 'p', "FILE.svg", 0, "Draw the number of queues over time", 0},
	{"closely", 'c', NULL, 0, "Attach to the process where that tells more", 0},
	{"json", 'j', NULL, 0, "Write JSON", 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case ARGP_KEY_INIT: gp_targets_init(&env.targets, 1, state); break;
	case 'f': env.for_ns = gp_option_duration(state, "--for", arg); break;
	case 'e':
		env.every_ns = gp_option_duration(state, "--every", arg);
		if (env.every_ns < GP_NS_PER_MS)
			argp_error(state, "--every takes 1ms or more, not '%s'", arg);
		break;
	case 'p': env.plot = arg; break;
	case 'c': env.closely = true; break;
	case 'j': env.json = true; break;
	case ARGP_KEY_END:
		if (!env.targets.n)
			argp_error(state, "which process? gpreempt ps lists them");
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* ---- what is kept -------------------------------------------------------------------------------
 */

/* How many of something there were in the samples. */
struct number {
	unsigned now; /* in the sample at hand */
	unsigned min, max;
	uint64_t sum;
};

/* The queues of one type on one device. */
struct series {
	unsigned device;
	char type[16];
	bool copies;
	struct number number;
	unsigned came, went;
	unsigned nslices;
	uint32_t slice_us[SLICES_MAX];
	struct gp_plot_line line;
};

/* A queue that was there in a sample. */
struct known {
	unsigned device;
	struct gp_queue queue;
	unsigned times; /* in how many samples */
	bool here;      /* in the last one */
	bool seen;      /* in the sample at hand */
};

struct monitor {
	const struct gp_devices *devices;
	unsigned samples;
	uint64_t begin_ns, last_ns;
	bool ended;
	char name[32];
	struct number all;
	unsigned nseries;
	struct series series[SERIES_MAX];
	unsigned nknown, known_capacity;
	struct known *known;
	struct gp_share share[GP_DEVICES_MAX];
	struct gp_place place[GP_DEVICES_MAX]; /* .gpu is NULL until the process was seen there */
};

static struct series *series_of(struct monitor *m, unsigned device, const struct gp_queue *q)
{
	struct series *s = m->series;

	for (unsigned i = 0; i < m->nseries; i++, s++)
		if (s->device == device && !strcmp(s->type, q->type))
			return s;
	if (m->nseries == SERIES_MAX)
		return NULL;
	m->nseries++;
	*s = (struct series){.device = device, .copies = q->copies};
	s->number.min = m->samples ? 0 : UINT32_MAX;
	snprintf(s->type, sizeof s->type, "%s", q->type);
	if (m->samples)
		gp_plot_add(&s->line, m->begin_ns, 0);
	return s;
}

static void note_slice(struct series *s, uint32_t slice_us)
{
	for (unsigned i = 0; i < s->nslices; i++)
		if (s->slice_us[i] == slice_us)
			return;
	if (slice_us && s->nslices < SLICES_MAX)
		s->slice_us[s->nslices++] = slice_us;
}

/* The hardware's number is used again; the serial number, or else the driver's names and where its
 * ring is, tell the new one from the old. */
static bool is_same(const struct gp_queue *a, const struct gp_queue *b)
{
	if (a->id != b->id || strcmp(a->type, b->type) != 0)
		return false;
	if (a->serial && b->serial)
		return a->serial == b->serial;
	return a->owner == b->owner && a->object == b->object && a->ring_address == b->ring_address;
}

/* NULL: no memory. */
static struct known *known_of(struct monitor *m, unsigned device, const struct gp_queue *q)
{
	struct known *k = m->known;

	for (unsigned i = 0; i < m->nknown; i++, k++)
		if (k->device == device && is_same(&k->queue, q))
			return k;
	if (m->nknown == m->known_capacity) {
		unsigned capacity = m->known_capacity ? 2 * m->known_capacity : 64;

		k = realloc(m->known, capacity * sizeof *k);
		if (!k)
			return NULL;
		m->known = k;
		m->known_capacity = capacity;
	}
	k = &m->known[m->nknown++];
	*k = (struct known){.device = device, .queue = *q};
	return k;
}

static void note_queue(struct monitor *m, unsigned device, const struct gp_queue *q)
{
	struct series *s = series_of(m, device, q);
	struct known *k = s ? known_of(m, device, q) : NULL;

	if (!k || k->seen)
		return;
	m->all.now++;
	s->number.now++;
	note_slice(s, q->slice_us);
	s->came += m->samples > 0 && !k->here;
	k->seen = true;
	k->times++;
}

/* ---- sampling -----------------------------------------------------------------------------------
 */

static void close_number(struct number *n)
{
	n->min = n->now < n->min ? n->now : n->min;
	n->max = n->now > n->max ? n->now : n->max;
	n->sum += n->now;
	n->now = 0;
}

static void close_sample(struct monitor *m, uint64_t now_ns)
{
	for (unsigned i = 0; i < m->nknown; i++) {
		struct known *k = &m->known[i];
		struct series *s = series_of(m, k->device, &k->queue);

		if (s)
			s->went += k->here && !k->seen;
		k->here = k->seen;
		k->seen = false;
	}
	m->last_ns = now_ns;
	m->samples++;
	gp_progress("sample %u: %u queue%s", m->samples, m->all.now, m->all.now == 1 ? "" : "s");
	close_number(&m->all);
	for (unsigned i = 0; i < m->nseries; i++) {
		if (env.plot)
			gp_plot_add(&m->series[i].line, now_ns, m->series[i].number.now);
		close_number(&m->series[i].number);
	}
}

static int sample_place(struct monitor *m, const struct gp_place *place, struct gp_error *err)
{
	struct gp_place *known = &m->place[place->device];
	struct gp_queue *queue;
	int n = gp_place_queues(place, env.closely, &queue, err);

	for (int i = 0; i < n; i++)
		note_queue(m, place->device, &queue[i]);
	free(queue);
	if (!known->gpu)
		gp_share_begin(&m->share[place->device], place);
	*known = *place;
	gp_share_look(&m->share[place->device], place);
	snprintf(m->name, sizeof m->name, "%s", place->seen.name);
	return n < 0 ? n : 0;
}

/* No queues is a sample as well: they may come. */
static int sample(struct monitor *m, pid_t pid, struct gp_error *err)
{
	struct gp_place place[GP_DEVICES_MAX];
	struct gp_error why = {0};
	uint64_t now_ns = gp_now_ns(&gp_clock_monotonic);
	int n = gp_devices_find(m->devices, pid, place, GP_DEVICES_MAX, &why), r = 0;

	if (n < 0 && n != -ENODEV)
		return gp_fail(err, n, "%s", why.text);
	m->begin_ns = m->begin_ns ? m->begin_ns : now_ns;
	for (int i = 0; i < n && (!r || r == -ESRCH); i++)
		r = sample_place(m, &place[i], &why);
	if (r && r != -ESRCH)
		return gp_fail(err, r, "%s", why.text);
	close_sample(m, now_ns);
	return 0;
}

static int watch(struct monitor *m, pid_t pid, struct gp_error *err)
{
	uint64_t next_ns = gp_now_ns(&gp_clock_monotonic);
	uint64_t end_ns = gp_time_add(next_ns, env.for_ns);
	int r;

	m->all.min = UINT32_MAX;
	do {
		r = sample(m, pid, err);
		next_ns = gp_time_add(next_ns, env.every_ns);
	} while (!r && next_ns <= end_ns && !gp_stop_sleep(next_ns));
	gp_progress_end();
	if (r == -ESRCH && m->samples) {
		m->ended = true;
		*err = (struct gp_error){0};
		return 0;
	}
	return r;
}

/* ---- what it comes to ---------------------------------------------------------------------------
 */

static bool is_stable(const struct monitor *m)
{
	for (unsigned i = 0; i < m->nseries; i++)
		if (m->series[i].came || m->series[i].went)
			return false;
	return true;
}

static const char *advice(const struct monitor *m)
{
	if (m->ended)
		return "the process has ended";
	if (m->samples < 2)
		return "one sample does not tell whether it is stable: take more (--for, --every)";
	if (is_stable(m))
		return "stable: ready to be scheduled";
	for (unsigned i = 0; i < m->nseries; i++)
		if (!m->series[i].copies && (m->series[i].came || m->series[i].went))
			return "changing: schedule the process as a whole, never single queues; "
			       "one that is new runs until it is seen";
	return "only queues that copy change: ready to be scheduled";
}

static double average(const struct monitor *m, const struct number *n)
{
	return (double)n->sum / m->samples;
}

static double percent_of_all(const struct monitor *m, const struct series *s)
{
	return m->all.sum ? 100.0 * (double)s->number.sum / (double)m->all.sum : 0;
}

static void add_slices(struct gp_grid *grid, const struct series *s)
{
	char text[32], list[192] = "";

	for (unsigned i = 0; i < s->nslices; i++) {
		size_t used = strlen(list);

		snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
		         gp_cli_duration(text, sizeof text, 1000ull * s->slice_us[i]));
	}
	gp_grid_text(grid, s->nslices ? list : NULL);
}

static void print_types(const struct monitor *m)
{
	static const struct gp_column columns[] = {
		{"DEVICE", 0},
		{"TYPE", GP_COLUMN_LEFT},
		{"MIN", 0},
		{"MAX", 0},
		{"AVERAGE", 0},
		{"OF ALL", 0},
		{"CAME", 0},
		{"WENT", 0},
		{"SLICES", GP_COLUMN_LEFT},
	};
	struct gp_grid grid;

	gp_grid_begin(&grid, columns, sizeof columns / sizeof columns[0]);
	for (unsigned i = 0; i < m->nseries; i++) {
		const struct series *s = &m->series[i];

		gp_grid_cell(&grid, "%u", s->device);
		gp_grid_text(&grid, s->type);
		gp_grid_cell(&grid, "%u", s->number.min);
		gp_grid_cell(&grid, "%u", s->number.max);
		gp_grid_cell(&grid, "%.1f", average(m, &s->number));
		gp_grid_cell(&grid, "%.0f %%", percent_of_all(m, s));
		gp_grid_cell(&grid, "%u", s->came);
		gp_grid_cell(&grid, "%u", s->went);
		add_slices(&grid, s);
	}
	gp_grid_end(&grid, stdout);
}

static int compare_known(const void *a, const void *b)
{
	const struct known *p = a, *q = b;

	if (p->device != q->device)
		return p->device < q->device ? -1 : 1;
	return p->queue.id < q->queue.id ? -1 : p->queue.id > q->queue.id;
}

static void print_ids(const struct monitor *m)
{
	static const struct gp_column columns[] = {
		{"ID", 0}, {"DEVICE", 0}, {"TYPE", GP_COLUMN_LEFT}, {"SEEN", 0}};
	unsigned n = m->nknown < IDS_SHOWN ? m->nknown : IDS_SHOWN;
	struct gp_grid grid;

	gp_grid_begin(&grid, columns, sizeof columns / sizeof columns[0]);
	for (unsigned i = 0; i < n; i++) {
		gp_grid_cell(&grid, "%u", m->known[i].queue.id);
		gp_grid_cell(&grid, "%u", m->known[i].device);
		gp_grid_text(&grid, m->known[i].queue.type);
		gp_grid_cell(&grid, "%u of %u", m->known[i].times, m->samples);
	}
	gp_grid_end(&grid, stdout);
	if (m->nknown > n)
		printf("and %u more; --json has them all\n", m->nknown - n);
}

static void print_summary(const struct monitor *m, pid_t pid)
{
	char text[32];

	printf("%d (%s): %u sample%s in %s; ", pid, m->name, m->samples, m->samples == 1 ? "" : "s",
	       gp_cli_duration(text, sizeof text, m->last_ns - m->begin_ns));
	if (m->all.min == m->all.max)
		printf("%u queue%s all the time\n\n", m->all.max, m->all.max == 1 ? "" : "s");
	else
		printf("%u to %u queues, %.1f on average\n\n", m->all.min, m->all.max,
		       average(m, &m->all));
	print_types(m);
	putchar('\n');
	print_ids(m);
	putchar('\n');
	for (unsigned i = 0; i < m->devices->n; i++)
		if (m->place[i].gpu && m->share[i].known)
			printf("share of device %u (%s): %s\n", i, m->place[i].gpu->info.name,
			       gp_share_text(text, sizeof text, &m->share[i]));
	puts(advice(m));
}

static void json_number(const struct monitor *m, const struct number *n)
{
	printf("\"min\":%u,\"max\":%u,\"average\":%.2f", n->min, n->max, average(m, n));
}

static void json_series(const struct monitor *m, const struct series *s, bool first)
{
	printf("%s{\"device\":%u,\"type\":", first ? "" : ",", s->device);
	gp_json_string(stdout, s->type);
	putchar(',');
	json_number(m, &s->number);
	printf(",\"of_all_pct\":%.1f,\"came\":%u,\"went\":%u,\"slices_us\":[", percent_of_all(m, s),
	       s->came, s->went);
	for (unsigned i = 0; i < s->nslices; i++)
		printf("%s%u", i ? "," : "", s->slice_us[i]);
	fputs("]}", stdout);
}

static void json_ids(const struct monitor *m)
{
	fputs("],\"ids\":[", stdout);
	for (unsigned i = 0; i < m->nknown; i++) {
		const struct known *k = &m->known[i];

		printf("%s{\"device\":%u,\"id\":%u,\"type\":", i ? "," : "", k->device,
		       k->queue.id);
		gp_json_string(stdout, k->queue.type);
		gp_json_number("serial", k->queue.serial, k->queue.serial);
		printf(",\"seen\":%u}", k->times);
	}
}

static void json_summary(const struct monitor *m, pid_t pid)
{
	bool first = true;

	printf("{\"pid\":%d,\"name\":", pid);
	gp_json_string(stdout, m->name);
	printf(",\"samples\":%u,\"total\":{", m->samples);
	json_number(m, &m->all);
	fputs("},\"queues\":[", stdout);
	for (unsigned i = 0; i < m->nseries; i++)
		json_series(m, &m->series[i], !i);
	json_ids(m);
	fputs("],\"devices\":[", stdout);
	for (unsigned i = 0; i < m->devices->n; i++) {
		if (!m->place[i].gpu)
			continue;
		printf("%s{\"device\":%u,\"name\":", first ? "" : ",", i);
		gp_json_string(stdout, m->place[i].gpu->info.name);
		gp_share_json(&m->share[i]);
		putchar('}');
		first = false;
	}
	printf("],\"stable\":%s,\"ended\":%s,\"advice\":", is_stable(m) ? "true" : "false",
	       m->ended ? "true" : "false");
	gp_json_string(stdout, advice(m));
	puts("}");
}

/* ---- the plot -----------------------------------------------------------------------------------
 */

/* That it cannot be written is said before the time is spent. */
static int open_plot(struct gp_error *err)
{
	int fd = open(env.plot, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

	return fd < 0 ? gp_fail(err, -errno, "cannot write %s: %s", env.plot, strerror(errno)) : fd;
}

static int write_plot(struct monitor *m, pid_t pid, int fd, struct gp_error *err)
{
	struct gp_plot_line line[SERIES_MAX];
	char title[96];
	struct gp_plot plot = {.title = title,
	                       .unit = "queues",
	                       .from_ns = m->begin_ns,
	                       .to_ns = m->last_ns,
	                       .n = m->nseries,
	                       .line = line};
	FILE *out = ftruncate(fd, 0) && errno != EINVAL ? NULL : fdopen(dup(fd), "w");
	int r = out ? 0 : -errno;

	snprintf(title, sizeof title, "Queues of %d (%s), %u samples", pid, m->name, m->samples);
	for (unsigned i = 0; i < m->nseries; i++) {
		struct series *s = &m->series[i];

		line[i] = s->line;
		snprintf(line[i].label, sizeof line[i].label, "%s on device %u (%s)", s->type,
		         s->device, m->devices->device[s->device].gpu->info.name);
	}
	if (out) {
		r = gp_plot_svg(out, &plot);
		if (fclose(out))
			r = -errno;
	}
	return r ? gp_fail(err, r, "cannot write %s: %s", env.plot, gp_error_name(r)) : 0;
}

/* What there is nothing to draw of leaves no empty file. */
static void close_plot(int fd)
{
	struct stat s;

	if (fd < 0)
		return;
	if (!fstat(fd, &s) && S_ISREG(s.st_mode) && !s.st_size)
		unlink(env.plot);
	close(fd);
}

/* ---- the whole ----------------------------------------------------------------------------------
 */

static void forget(struct monitor *m)
{
	for (unsigned i = 0; i < m->devices->n; i++)
		gp_share_end(&m->share[i], &m->place[i]);
	for (unsigned i = 0; i < m->nseries; i++)
		free(m->series[i].line.step);
	free(m->known);
	free(m);
}

static int monitor(const struct gp_devices *devices, pid_t pid, int plot_fd, struct gp_error *err)
{
	struct monitor *m = calloc(1, sizeof *m);
	int r;

	if (!m)
		return gp_fail(err, -ENOMEM, "no memory");
	m->devices = devices;
	gp_process_name(pid, m->name, sizeof m->name);
	r = watch(m, pid, err);
	if (!r && !m->nseries)
		r = gp_fail(err, -ENODEV, "process %d had no queues in %u sample%s", pid,
		            m->samples, m->samples == 1 ? "" : "s");
	if (!r) {
		if (m->nknown)
			qsort(m->known, m->nknown, sizeof *m->known, compare_known);
		(env.json ? json_summary : print_summary)(m, pid);
		if (plot_fd >= 0)
			r = write_plot(m, pid, plot_fd, err);
	}
	forget(m);
	return r;
}

static int run(int argc, char **argv)
{
	static const struct argp_child children[] = {{&gp_targets_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "PID",
		.children = children,
		.doc = "Sample the queues of a process: how many, how stable, which slices, how "
		       "much of the GPU, and what that means for scheduling it.\v"
		       "Examples:\n"
		       "  gpreempt monitor 4711 --for 30s --every 5s\n"
		       "  gpreempt monitor 4711 --for 10s --every 200ms --plot queues.svg\n",
	};
	struct gp_devices devices;
	struct gp_error err = {0};
	int r, plot_fd = -1;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	r = gp_targets_resolve(&env.targets, &err);
	if (!r)
		r = gp_devices_open(&devices, 0, &err);
	if (r)
		return gp_cli_fail(&err);
	r = gp_stop_open();
	if (r < 0)
		gp_fail(&err, r, "cannot wait for signals: %s", gp_error_name(r));
	else if (env.plot)
		r = plot_fd = open_plot(&err);
	if (r >= 0)
		r = monitor(&devices, env.targets.pid[0], plot_fd, &err);
	close_plot(plot_fd);
	gp_devices_close(&devices);
	return r ? gp_cli_fail(&err) : GP_EXIT_DONE;
}

const struct gp_verb gp_verb_monitor = {
	.name = "monitor",
	.summary = "sample the queues of a process: how many, how stable",
	.run = run,
};
