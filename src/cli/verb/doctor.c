/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt doctor: checks what this machine can do, what is missing, and how to fix it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "cli/ask/ask.h"
#include "cli/cli.h"
#include "cli/lib/options.h"
#include "cli/lib/fields.h"
#include "hold/devices.h"
#include "hold/replay.h"

enum { LEVEL = 8, SUBJECT = 13, INDENT = 2 + LEVEL + 1 + SUBJECT + 1, WIDTH = 100 };

#define DAEMON_LATE_NS (2 * GP_NS_PER_S) /* the keeper acts after this time */
#define KEEPER_LATE_NS (5 * GP_NS_PER_S)

static struct {
	bool json;
} env;

static const struct gp_option options[] = {
	{"json", 'j', NULL, "Write JSON", .flag = &env.json},
	{0},
};

struct report {
	bool colour;
	bool absent;  /* this machine has no GPU of the back end, but one of another */
	bool missing; /* the back end lacks something */
	struct json_object *findings; /* with --json: the list of the back end */
	char todo[256];               /* the first thing to do, all back ends */
};

static const char *const level_names[] = {
	[GP_FINDING_OK] = "ok",
	[GP_FINDING_NOTE] = "note",
	[GP_FINDING_WARNING] = "warning",
	[GP_FINDING_MISSING] = "missing",
};

/* Wraps on a terminal only: programs read whole lines. */
static void print_text(const char *text, int indent)
{
	const size_t room = isatty(STDOUT_FILENO) ? (size_t)(WIDTH - indent) : SIZE_MAX;
	size_t left = room;

	for (const char *word = text; *word;) {
		size_t length = strcspn(word, " ");

		if (word != text && length + 1 > left) {
			printf("\n%*s", indent, "");
			left = room;
		} else if (word != text) {
			putchar(' ');
			left--;
		}
		printf("%.*s", (int)length, word);
		left -= length < left ? length : left;
		word += length + strspn(word + length, " ");
	}
	putchar('\n');
}

static void print_finding(const struct report *r, const struct gp_finding *f)
{
	static const char *const colours[] = {"\033[32m", "", "\033[33m", "\033[31m"};

	printf("  %s%-*s%s %-*s ", r->colour ? colours[f->level] : "", LEVEL, level_names[f->level],
	       r->colour ? "\033[0m" : "", SUBJECT, f->subject);
	print_text(f->text, INDENT);
	if (!f->advice)
		return;
	printf("%*s-> ", INDENT, "");
	print_text(f->advice, INDENT + 3);
}

static void add_finding(struct json_object *list, const struct gp_finding *f)
{
	struct json_object *o = gp_list_object(list);

	gp_field_put_text(o, "level", level_names[f->level]);
	gp_field_put_text(o, "subject", f->subject);
	gp_field_put_text(o, "text", f->text);
	if (f->advice)
		gp_field_put_text(o, "advice", f->advice);
}

static void take_finding(void *arg, const struct gp_finding *f)
{
	struct report *r = arg;
	struct gp_finding note = *f;

	/* The driver of a GPU that the machine does not have is not missing. */
	if (r->absent && f->level == GP_FINDING_MISSING) {
		note.level = GP_FINDING_NOTE;
		note.advice = NULL;
		f = &note;
	}
	if (f->level == GP_FINDING_MISSING) {
		r->missing = true;
		if (!*r->todo)
			snprintf(r->todo, sizeof r->todo, "%s", f->advice ? f->advice : f->text);
	}
	if (env.json)
		add_finding(r->findings, f);
	else
		print_finding(r, f);
}

/* The daemon that answers this user (see gp_daemon_connect), which may be another user's. */
struct daemon {
	pid_t pid;           /* 0: none answers */
	struct gp_error err; /* why */
	bool foreign;        /* its undo file is not the one of this user */
	bool has_keeper;
	struct json_object *devices; /* with "backend"; NULL: not known */
};

/* Whether the scheduler of this user's undo file is the daemon. */
static bool is_of_this_file(pid_t daemon)
{
	struct gp_undo_scheduler scheduler = {0};
	struct gp_undo_file *file = NULL;

	if (!gp_undo_open(&file, false, NULL))
		gp_undo_scheduler(file, &scheduler);
	gp_undo_close(file);
	return scheduler.pid == daemon;
}

static void ask_daemon(struct daemon *d)
{
	struct json_object *answer = NULL, *about;
	struct gp_client *client = NULL;
	const char *keeper;

	if (gp_client_connect_within(NULL, GP_ASK_SHORT_MS, &client, &d->err))
		return;
	if (!gp_client_call(client, "stats", NULL, &answer, &d->err)) {
		about = gp_field(answer, "daemon");
		keeper = gp_field_text(about, "keeper");
		d->pid = (pid_t)gp_field_number_or(about, "pid", 0);
		d->has_keeper = keeper && !strcmp(keeper, "running");
		d->foreign = !is_of_this_file(d->pid);
		d->devices = json_object_get(gp_field(answer, "devices"));
	}
	json_object_put(answer);
	gp_client_close(client);
}

/* The devices that the daemon uses and that have not gone: of the back end, or of all with NULL. */
static unsigned daemon_devices(const struct daemon *d, const char *backend)
{
	size_t n = json_object_is_type(d->devices, json_type_array)
			   ? json_object_array_length(d->devices)
			   : 0;
	unsigned found = 0;

	for (size_t i = 0; i < n; i++) {
		struct json_object *device = json_object_array_get_idx(d->devices, i);
		const char *name = gp_field_text(device, "backend"),
			   *state = gp_field_text(device, "state");

		if (state && !strcmp(state, "gone"))
			continue;
		found += !backend || (name && !strcmp(name, backend));
	}
	return found;
}

struct left {
	unsigned records; /* of living processes */
	unsigned behind;  /* of these, the owner has ended */
};

static struct left count_records(const struct gp_undo_file *file)
{
	struct left left = {0};
	struct gp_undo_entry e;

	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++) {
		if (!gp_undo_get(file, i, &e) || !gp_record_process_lives(&e))
			continue;
		left.records++;
		left.behind += !gp_undo_owner_lives(&e);
	}
	return left;
}

/* Names the owner of a record and what is known of it. */
static void report_owner(struct report *r, const struct gp_undo_file *file, unsigned slot,
			 const struct gp_undo_entry *e)
{
	enum gp_owner_state state = gp_record_owner_state(file, slot, e);
	struct gp_finding f = {.subject = "held"};
	char text[512], advice[192], name[2][32];

	snprintf(text, sizeof text,
		 "process %d (%s) is held or scheduled by process %d (%s), which %s%s%s",
		 e->undo.pid, gp_process_name(e->undo.pid, name[0], sizeof name[0]), e->owner,
		 gp_process_name(e->owner, name[1], sizeof name[1]), gp_owner_state_text(state),
		 e->release_asked ? "; gpreempt resume has asked it for the release, which it has "
				    "not confirmed"
				  : "",
		 gp_undo_failed_ns(file, slot) ? "; the keeper could not release the process" : "");
	snprintf(advice, sizeof advice, "run gpreempt resume %d", e->undo.pid);
	if (e->release_asked && state != GP_OWNER_ENDED) /* the process may run all the same */
		snprintf(advice + strlen(advice), sizeof advice - strlen(advice),
			 "; if this line stays, process %d does not answer, and can hold process "
			 "%d again until it ends",
			 e->owner, e->undo.pid);
	f.text = text;
	if (state != GP_OWNER_RUNS || e->release_asked) {
		f.level = GP_FINDING_WARNING;
		f.advice = advice;
	}
	take_finding(r, &f);
}

/* A process with several records of one owner is named once. */
static bool is_first(const struct gp_undo_file *file, unsigned slot, const struct gp_undo_entry *e)
{
	struct gp_undo_entry other;

	for (unsigned i = 0; i < slot; i++)
		if (gp_undo_get(file, i, &other) && other.undo.pid == e->undo.pid &&
		    other.owner == e->owner)
			return false;
	return true;
}

static void report_owners(struct report *r, const struct gp_undo_file *file)
{
	struct gp_undo_entry e;

	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++)
		if (gp_undo_get(file, i, &e) && gp_record_process_lives(&e) &&
		    is_first(file, i, &e))
			report_owner(r, file, i, &e);
}

/* Tasks that are held although no record says by which process. */
static void report_unrecorded(struct report *r, const struct gp_devices *devices,
			      const struct gp_undo_file *file)
{
	struct gp_task_ref *ref;
	int n = gp_devices_scan(devices, GP_DEVICES_MAX, &ref, NULL);

	for (int i = 0; i < n; i++) {
		const struct gp_seen *seen = &ref[i].seen;
		struct gp_finding f = {.level = GP_FINDING_WARNING, .subject = "held"};
		char text[256], advice[64];
		struct gp_undo_entry e;

		if (gp_records_find(file, seen->pid, seen->start_time, &e) ||
		    !gp_task_ref_looks_changed(&ref[i]))
			continue;
		snprintf(
			text, sizeof text,
			"process %d (%s) is held or has a tiny slice on %s, and has no undo record",
			seen->pid, seen->name, ref[i].gpu->info.name);
		snprintf(advice, sizeof advice, "run gpreempt resume %d", seen->pid);
		f.text = text;
		f.advice = advice;
		take_finding(r, &f);
	}
	free(ref);
}

/* What the undo file of this user does not say: other users, and root, have their own. */
static const char *other_records(const struct daemon *d, char *out, size_t size)
{
	if (d->foreign)
		snprintf(out, size, "; the daemon (%d) has its own undo file", d->pid);
	else
		snprintf(out, size, "%s", geteuid() ? "; other users have their own" : "");
	return out;
}

static void check_undo(struct report *r, const struct gp_devices *devices, const struct daemon *d,
		       struct left *left)
{
	const char *whose = geteuid() || d->foreign ? " of this user" : "";
	struct gp_finding f = {.subject = "undo"};
	struct gp_undo_file *file = NULL;
	struct gp_error err = {0};
	char path[256], text[512], others[64];
	int code = gp_undo_open(&file, false, &err);

	gp_undo_path(path, sizeof path);
	f.text = text;
	if (code == -ENOENT) {
		snprintf(text, sizeof text, "no undo records%s; they would be in %s%s", whose, path,
			 other_records(d, others, sizeof others));
	} else if (code) {
		f.level = GP_FINDING_WARNING;
		f.advice = "without it nothing can be suspended or scheduled";
		snprintf(text, sizeof text, "%s", err.text);
	} else {
		*left = count_records(file);
		if (left->behind) {
			f.level = GP_FINDING_WARNING;
			f.advice = "run gpreempt resume --all";
		}
		if (left->records)
			snprintf(text, sizeof text,
				 "%u record%s%s in %s, %u of them of owners that have ended%s",
				 left->records, left->records == 1 ? "" : "s", whose, path,
				 left->behind, other_records(d, others, sizeof others));
		else
			snprintf(text, sizeof text, "no undo records%s in %s%s", whose, path,
				 other_records(d, others, sizeof others));
	}
	take_finding(r, &f);
	if (file)
		report_owners(r, file);
	report_unrecorded(r, devices, file);
	gp_undo_close(file);
}

/* A process of gpreempt, from its heartbeat in the undo file. */
static bool is_late(const struct gp_undo_scheduler *s, uint64_t limit_ns)
{
	return s->lives && gp_monotonic_ns() > s->heartbeat_ns + limit_ns;
}

/* "gpreemptd runs as process 4711, its last heartbeat was 0.2 s ago". Returns `out`. */
static const char *heartbeat_text(char *out, size_t size, const char *program,
				  const struct gp_undo_scheduler *s)
{
	snprintf(out, size, "%s runs as process %d, its last heartbeat was %.1f s ago", program,
		 s->pid, (double)(gp_monotonic_ns() - s->heartbeat_ns) / (double)GP_NS_PER_S);
	return out;
}

/* `s` is of this user's undo file, which need not be the daemon's. */
static void report_daemon(struct report *r, const struct daemon *d,
			  const struct gp_undo_scheduler *s)
{
	struct gp_finding f = {.subject = "daemon"};
	char text[512];

	f.text = text;
	if (s->lives)
		heartbeat_text(text, sizeof text, "gpreemptd", s);
	else if (d->pid)
		snprintf(text, sizeof text, "gpreemptd runs as process %d and answers", d->pid);
	else
		snprintf(text, sizeof text, "%s", d->err.text);
	if (s->lives && !d->pid)
		snprintf(text + strlen(text), sizeof text - strlen(text), ", and %s", d->err.text);
	if (!d->pid && !s->lives && d->err.code == -ECONNREFUSED) {
		f.level = GP_FINDING_NOTE;
	} else if (!d->pid || is_late(s, DAEMON_LATE_NS)) {
		f.level = GP_FINDING_WARNING;
		f.advice = "it hangs, is stopped, or is not reached: see its log; gpreempt resume "
			   "--all releases what it holds";
	}
	take_finding(r, &f);
}

static void report_keeper(struct report *r, const struct daemon *d,
			  const struct gp_undo_scheduler *k, bool daemon_lives)
{
	struct gp_finding f = {.subject = "keeper"};
	char text[160];
	bool runs = d->foreign ? d->has_keeper : k->lives;

	f.text = text;
	if (d->foreign)
		snprintf(text, sizeof text, "gpreempt-keeper %s, says the daemon (%d)",
			 runs ? "runs" : "does not run", d->pid);
	else if (runs)
		heartbeat_text(text, sizeof text, "gpreempt-keeper", k);
	else
		snprintf(text, sizeof text, "gpreempt-keeper does not run%s",
			 geteuid() ? " for the undo file of this user" : "");
	if (!runs) {
		f.level = GP_FINDING_NOTE;
		f.advice = daemon_lives ? "start it: it releases what a killed daemon leaves held"
					: NULL;
	} else if (!d->foreign && is_late(k, KEEPER_LATE_NS)) {
		f.level = GP_FINDING_WARNING;
		f.advice = "it hangs or is stopped: see its log";
	}
	take_finding(r, &f);
}

static void check_processes(struct report *r, const struct daemon *d)
{
	struct gp_undo_scheduler scheduler = {0}, keeper = {0};
	struct gp_undo_file *file = NULL;

	if (!gp_undo_open(&file, false, NULL)) {
		gp_undo_scheduler(file, &scheduler);
		gp_undo_keeper(file, &keeper);
	}
	gp_undo_close(file);
	if (d->pid && scheduler.pid != d->pid) /* another file, or one that was replaced */
		scheduler = (struct gp_undo_scheduler){0};
	report_daemon(r, d, &scheduler);
	report_keeper(r, d, &keeper, d->pid || scheduler.lives);
}

/* A simulated GPU is used only where it is asked for, so one that runs is easily overlooked. */
static void check_simulated(struct report *r, const struct daemon *d)
{
	const struct gp_gpu_ops *sim = gp_backend_find("sim");
	char text[128];
	struct gp_finding f = {.subject = "simulated",
			       .text = "a simulated GPU runs here and is not used",
			       .advice = "set GPREEMPT_GPU=sim to use it",
			       .level = GP_FINDING_NOTE};

	for (const struct gp_gpu_ops *const *b = gp_backends; *b; b++)
		if (*b == sim)
			return;
	if (daemon_devices(d, "sim")) {
		snprintf(text, sizeof text,
			 "a simulated GPU runs here, and the daemon (%d) uses it", d->pid);
		f = (struct gp_finding){.subject = f.subject, .text = text};
		take_finding(r, &f);
	} else if (sim && sim->probe && sim->probe() > 0) {
		take_finding(r, &f);
	}
}

static unsigned ready_devices(const struct gp_devices *devices, const struct gp_gpu_ops *ops)
{
	unsigned n = 0;

	for (unsigned i = 0; i < devices->n; i++)
		n += devices->device[i].gpu->ops == ops &&
		     devices->device[i].gpu->info.caps & GP_CAP_HOLD;
	return n;
}

static bool is_there(const struct gp_gpu_ops *ops)
{
	return ops->probe && ops->probe() != 0; /* an error means that something is there */
}

/* The machine has no GPU of this kind, but one of another kind. */
static bool is_absent(const struct daemon *d, const struct gp_gpu_ops *ops)
{
	bool others = daemon_devices(d, NULL) > daemon_devices(d, ops->name);

	for (const struct gp_gpu_ops *const *b = gp_backends; *b; b++)
		others |= *b != ops && is_there(*b);
	return others && !is_there(ops);
}

/* The daemon's devices of back ends that do not look here (a simulated GPU). Of the others, what
 * was found here counts: the daemon may not have noticed that a driver has gone. */
static unsigned unexamined_devices(const struct daemon *d)
{
	unsigned n = daemon_devices(d, NULL);

	for (const struct gp_gpu_ops *const *b = gp_backends; *b; b++)
		n -= daemon_devices(d, (*b)->name);
	return n;
}

static bool any_there(void)
{
	for (const struct gp_gpu_ops *const *b = gp_backends; *b; b++)
		if (is_there(*b))
			return true;
	return false;
}

/* `backends` is the list with --json, else NULL. Returns the number of usable devices. */
static unsigned examine(struct report *r, const struct gp_devices *devices, const struct daemon *d,
			const struct gp_gpu_ops *ops, struct json_object *backends)
{
	struct json_object *o;
	unsigned ready;

	r->absent = is_absent(d, ops);
	r->missing = false;
	r->findings = backends ? json_object_new_array() : NULL;
	if (!backends)
		puts(ops->name);
	gp_backend_doctor(ops, take_finding, r);
	ready = r->missing ? 0 : ready_devices(devices, ops);
	if (backends) {
		o = gp_list_object(backends);
		gp_field_put_text(o, "name", ops->name);
		json_object_object_add(o, "findings", r->findings);
		gp_field_put(o, "ready", ready);
	}
	return ready;
}

/* `ready`: devices that can be used from here. */
static void print_verdict(const struct report *r, const struct daemon *d, unsigned ready,
			  const struct left *left)
{
	unsigned by_daemon = unexamined_devices(d);

	if (!ready && by_daemon)
		printf("\nready through the daemon: %u GPU%s; gpreempt ps shows the processes on "
		       "%s\n",
		       by_daemon, by_daemon == 1 ? "" : "s", by_daemon == 1 ? "it" : "them");
	else if (!ready && !any_there())
		puts("\nnot ready: no GPU with a driver was found; load amdgpu or NVIDIA's driver, "
		     "or, in a container, pass the device in");
	else if (!ready)
		printf("\nnot ready: %s\n", *r->todo ? r->todo : "there is no GPU here");
	else if (left->behind)
		printf("\nready: %u GPU%s, but first run gpreempt resume --all\n", ready,
		       ready == 1 ? "" : "s");
	else
		printf("\nready: %u GPU%s; gpreempt ps shows the processes on %s\n", ready,
		       ready == 1 ? "" : "s", ready == 1 ? "it" : "them");
}

/* Takes both lists. */
static void print_json(struct json_object *backends, struct json_object *undo,
		       const struct left *left, unsigned ready)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "backends", backends);
	json_object_object_add(o, "undo", undo);
	gp_field_put(o, "records", left->records);
	gp_field_put(o, "left_behind", left->behind);
	gp_field_put(o, "ready", ready);
	gp_print_json_once(o);
}

static int run(struct gp_error *err)
{
	struct json_object *backends;
	struct report report = {0};
	struct gp_devices devices;
	struct daemon daemon = {0};
	struct left left = {0};
	unsigned ready = 0;

	(void)err;
	ask_daemon(&daemon);
	report.colour = !env.json && isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
	gp_devices_open(&devices, 0, NULL); /* may fail: this verb explains why */
	backends = env.json ? json_object_new_array() : NULL;
	for (const struct gp_gpu_ops *const *b = gp_backends; *b; b++)
		ready += examine(&report, &devices, &daemon, *b, backends);
	report.findings = env.json ? json_object_new_array() : NULL;
	report.absent = false;
	if (!env.json)
		puts("gpreempt");
	check_simulated(&report, &daemon);
	check_processes(&report, &daemon);
	check_undo(&report, &devices, &daemon, &left);
	if (!env.json)
		print_verdict(&report, &daemon, ready, &left);
	ready = ready ? ready : unexamined_devices(&daemon);
	if (env.json)
		print_json(backends, report.findings, &left, ready);
	json_object_put(daemon.devices);
	gp_devices_close(&devices);
	return ready ? GP_EXIT_DONE : GP_EXIT_NO_DEVICE;
}

const struct gp_verb gp_verb_doctor = {
	.name = "doctor",
	.summary = "check what this machine can do, what is missing, how to fix it",
	.options = options,
	.doc = "Check which GPUs of this machine can be used, what is missing, and how to fix it.\v"
	       "Exit code 4: no GPU is ready.\n\n"
	       "Example:\n"
	       "  gpreempt doctor\n",
	.run = run,
};
