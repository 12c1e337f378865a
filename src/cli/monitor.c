/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt monitor: samples the queues of a process and says how stable they are. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/process.h"
#include "cli/cli.h"
#include "hold/devices.h"
#include "cli/share.h"
#include "cli/stop.h"
#include "cli/targets.h"

#define SLICES_MAX 8
#define SERIES_MAX 256

static struct {
	struct gp_targets targets;
	bool json;
	uint64_t for_ns, every_ns;
} env = {.for_ns = 30 * GP_NS_PER_S, .every_ns = GP_NS_PER_S};

static const struct argp_option options[] = {
	{"for", 'f', "TIME", 0, "How long (30s); Ctrl-C ends it earlier", 0},
	{"every", 'e', "TIME", 0, "How often to look (1s)", 0},
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

/* The queues of one type on one device. */
struct series {
	unsigned device;
	char type[16];
	unsigned now; /* in the sample at hand */
	unsigned min, max, came, went;
	uint64_t sum;
	unsigned nslices;
	uint32_t slice_us[SLICES_MAX];
};

/* A queue that was there in the last sample. */
struct known {
	unsigned device;
	struct gp_queue queue;
	bool seen; /* in the sample at hand */
};

struct monitor {
	const struct gp_devices *devices;
	unsigned samples;
	bool ended;
	char name[32];
	unsigned nseries;
	struct series series[SERIES_MAX];
	unsigned nknown, known_capacity;
	struct known *known;
	struct gp_share share[GP_DEVICES_MAX];
	struct gp_place place[GP_DEVICES_MAX]; /* .gpu is NULL until the process was seen there */
};

static struct series *series_of(struct monitor *m, unsigned device, const char *type)
{
	struct series *s = m->series;

	for (unsigned i = 0; i < m->nseries; i++, s++)
		if (s->device == device && !strcmp(s->type, type))
			return s;
	if (m->nseries == SERIES_MAX)
		return NULL;
	m->nseries++;
	*s = (struct series){.device = device, .min = m->samples ? 0 : UINT32_MAX};
	snprintf(s->type, sizeof s->type, "%s", type);
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

/* The hardware's number is used again; the driver's names tell the new one from the old. */
static bool is_same(const struct gp_queue *a, const struct gp_queue *b)
{
	return a->id == b->id && a->owner == b->owner && a->object == b->object;
}

static void note_queue(struct monitor *m, unsigned device, const struct gp_queue *q)
{
	struct series *s = series_of(m, device, q->type);
	struct known *k = m->known;

	if (!s)
		return;
	s->now++;
	note_slice(s, q->slice_us);
	for (unsigned i = 0; i < m->nknown; i++, k++)
		if (k->device == device && is_same(&k->queue, q)) {
			k->seen = true;
			return;
		}
	if (m->nknown == m->known_capacity) {
		unsigned capacity = m->known_capacity ? 2 * m->known_capacity : 64;

		k = realloc(m->known, capacity * sizeof *k);
		if (!k)
			return;
		m->known = k;
		m->known_capacity = capacity;
	}
	m->known[m->nknown++] = (struct known){.device = device, .queue = *q, .seen = true};
	s->came += m->samples > 0;
}

/* ---- sampling -----------------------------------------------------------------------------------
 */

static void close_sample(struct monitor *m)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < m->nknown; i++) {
		struct known *k = &m->known[i];
		struct series *s = series_of(m, k->device, k->queue.type);

		if (k->seen) {
			k->seen = false;
			m->known[kept++] = *k;
		} else if (s) {
			s->went++;
		}
	}
	m->nknown = kept;
	for (unsigned i = 0; i < m->nseries; i++) {
		struct series *s = &m->series[i];

		s->min = s->now < s->min ? s->now : s->min;
		s->max = s->now > s->max ? s->now : s->max;
		s->sum += s->now;
		s->now = 0;
	}
	m->samples++;
}

static void sample_place(struct monitor *m, const struct gp_place *place)
{
	struct gp_place *known = &m->place[place->device];
	struct gp_queue *queue;
	int n = gp_place_queues(place, true, &queue, NULL);

	for (int i = 0; i < n; i++)
		note_queue(m, place->device, &queue[i]);
	free(queue);
	if (!known->gpu)
		gp_share_begin(&m->share[place->device], place);
	*known = *place;
	gp_share_look(&m->share[place->device], place);
	snprintf(m->name, sizeof m->name, "%s", place->seen.name);
}

/* No queues is a sample as well: they may come. */
static int sample(struct monitor *m, pid_t pid, struct gp_error *err)
{
	struct gp_place place[GP_DEVICES_MAX];
	struct gp_error why = {0};
	int n = gp_devices_find(m->devices, pid, place, GP_DEVICES_MAX, &why);

	if (n < 0 && n != -ENODEV)
		return gp_fail(err, n, "%s", why.text);
	for (int i = 0; i < n; i++)
		sample_place(m, &place[i]);
	close_sample(m);
	return 0;
}

static int watch(struct monitor *m, pid_t pid, struct gp_error *err)
{
	uint64_t next_ns = gp_now_ns(&gp_clock_monotonic);
	uint64_t end_ns = gp_time_add(next_ns, env.for_ns);
	int r;

	do {
		r = sample(m, pid, err);
		next_ns = gp_time_add(next_ns, env.every_ns);
	} while (!r && next_ns <= end_ns && !gp_stop_sleep(next_ns));
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
	if (is_stable(m))
		return "stable: ready to be scheduled";
	for (unsigned i = 0; i < m->nseries; i++)
		if (strcmp(m->series[i].type, "copy") != 0 &&
		    (m->series[i].came || m->series[i].went))
			return "changing: schedule the process as a whole, never single queues; "
			       "one that is new runs until it is seen";
	return "only queues that copy change: ready to be scheduled";
}

static void print_slices(const struct series *s)
{
	char text[32];

	for (unsigned i = 0; i < s->nslices; i++)
		printf("%s%s", i ? ", " : "",
		       gp_cli_duration(text, sizeof text, 1000ull * s->slice_us[i]));
	puts(s->nslices ? "" : "-");
}

static void print_summary(const struct monitor *m, pid_t pid)
{
	char share[32];

	printf("%d (%s): %u sample%s\n\n%6s %-8s %5s %5s %7s %5s %5s  %s\n", pid, m->name,
	       m->samples, m->samples == 1 ? "" : "s", "DEVICE", "TYPE", "MIN", "MAX", "AVERAGE",
	       "CAME", "WENT", "SLICES");
	for (unsigned i = 0; i < m->nseries; i++) {
		const struct series *s = &m->series[i];

		printf("%6u %-8s %5u %5u %7.1f %5u %5u  ", s->device, s->type, s->min, s->max,
		       (double)s->sum / m->samples, s->came, s->went);
		print_slices(s);
	}
	putchar('\n');
	for (unsigned i = 0; i < m->devices->n; i++)
		if (m->place[i].gpu)
			printf("share of device %u (%s): %s\n", i, m->place[i].gpu->info.name,
			       gp_share_text(share, sizeof share, &m->share[i]));
	puts(advice(m));
}

static void json_series(const struct monitor *m, const struct series *s, bool first)
{
	printf("%s{\"device\":%u,\"type\":", first ? "" : ",", s->device);
	gp_json_string(stdout, s->type);
	printf(",\"min\":%u,\"max\":%u,\"average\":%.2f,\"came\":%u,\"went\":%u,\"slices_us\":[",
	       s->min, s->max, (double)s->sum / m->samples, s->came, s->went);
	for (unsigned i = 0; i < s->nslices; i++)
		printf("%s%u", i ? "," : "", s->slice_us[i]);
	fputs("]}", stdout);
}

static void json_summary(const struct monitor *m, pid_t pid)
{
	bool first = true;

	printf("{\"pid\":%d,\"name\":", pid);
	gp_json_string(stdout, m->name);
	printf(",\"samples\":%u,\"queues\":[", m->samples);
	for (unsigned i = 0; i < m->nseries; i++)
		json_series(m, &m->series[i], !i);
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

/* ---- the whole ----------------------------------------------------------------------------------
 */

static int monitor(const struct gp_devices *devices, pid_t pid, struct gp_error *err)
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
	if (!r)
		(env.json ? json_summary : print_summary)(m, pid);
	for (unsigned i = 0; i < devices->n; i++)
		gp_share_end(&m->share[i], &m->place[i]);
	free(m->known);
	free(m);
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
		       "Example:\n"
		       "  gpreempt monitor 4711 --for 10s --every 200ms\n",
	};
	struct gp_devices devices;
	struct gp_error err = {0};
	int r;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	r = gp_targets_resolve(&env.targets, &err);
	if (!r)
		r = gp_devices_open(&devices, 0, &err);
	if (r)
		return gp_cli_fail(&err);
	r = gp_stop_open();
	if (r < 0)
		gp_fail(&err, r, "cannot wait for signals: %s", gp_error_name(r));
	else
		r = monitor(&devices, env.targets.pid[0], &err);
	gp_devices_close(&devices);
	return r ? gp_cli_fail(&err) : GP_EXIT_DONE;
}

const struct gp_verb gp_verb_monitor = {
	.name = "monitor",
	.summary = "sample the queues of a process: how many, how stable",
	.run = run,
};
