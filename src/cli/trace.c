/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two things are shaped by Perfetto's reader: a thread's name goes by its number alone, whatever
 * the process, so numbers are never used twice; and spans of one thread must lie inside or beside
 * each other, so what can overlap (requests, holds) is told as pairs of asynchronous events with
 * a number of their own. Events need not be in the order of time.
 */
#include "cli/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/report.h"

static void told(void *arg, const struct gp_span *span);

int gp_trace_open(struct gp_trace *t, const char *path, uint64_t from_ns, uint64_t to_ns,
                  struct gp_error *err)
{
	*t = (struct gp_trace){
		.path = path,
		.next = 1,
		.next_id = 1,
		.spans = {.from_ns = from_ns, .to_ns = to_ns, .told = told, .arg = t}};
	t->out = fopen(path, "we");
	if (!t->out)
		return gp_fail(err, -errno, "cannot write the trace to %s: %s", path,
		               gp_error_name(-errno));
	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", t->out);
	return 0;
}

/* ---- events -----------------------------------------------------------------------------------
 */

/* Microseconds, as the format has it, with the nanoseconds behind the point. */
static void put_time(FILE *out, const char *key, uint64_t ns)
{
	fprintf(out, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
}

static void begin_event(struct gp_trace *t, char phase, uint32_t tid)
{
	fprintf(t->out, "%s\n{\"ph\":\"%c\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32,
	        t->any ? "," : "", phase, t->pid, tid);
	t->any = true;
}

static void put_metadata(struct gp_trace *t, uint32_t tid, const char *what, const char *text)
{
	begin_event(t, 'M', tid);
	fprintf(t->out, ",\"name\":\"%s_name\",\"args\":{\"name\":", what);
	gp_json_string(t->out, text);
	fputs("}}", t->out);
	begin_event(t, 'M', tid);
	fprintf(t->out, ",\"name\":\"%s_sort_index\",\"args\":{\"sort_index\":%" PRIu32 "}}", what,
	        tid);
}

static uint32_t thread_of(const struct gp_trace *t, uint32_t task)
{
	return t->pid + 1 + task;
}

static void begin_device(struct gp_trace *t, uint32_t device)
{
	char name[192];

	t->device = device;
	t->pid = t->next;
	t->next += 1 + t->scenario->ntasks;
	memset(t->named, 0, t->scenario->ntasks * sizeof *t->named);
	snprintf(name, sizeof name, "%s, device %" PRIu32, t->label, device);
	put_metadata(t, t->pid, "process", name);
}

static void name_thread(struct gp_trace *t, uint32_t task)
{
	char name[64];

	if (t->named[task])
		return;
	t->named[task] = true;
	snprintf(name, sizeof name, "%s (%s)", t->scenario->task[task].name,
	         gp_class_name(t->scenario->attr[task].class));
	put_metadata(t, thread_of(t, task), "thread", name);
}

static void put_span(struct gp_trace *t, const struct gp_span *s)
{
	bool switches = s->kind == GP_SPAN_SWITCH;

	begin_event(t, 'X', thread_of(t, s->task));
	put_time(t->out, "ts", s->from_ns);
	put_time(t->out, "dur", s->to_ns - s->from_ns);
	fprintf(t->out, ",\"cat\":\"%s\",\"name\":\"%s\"}", switches ? "switch" : "run",
	        switches ? "switching" : "running");
}

static void put_async(struct gp_trace *t, const struct gp_span *s, char phase, uint64_t ns)
{
	bool request = s->kind == GP_SPAN_REQUEST;
	char name[64];

	snprintf(name, sizeof name, "%s %s", t->scenario->task[s->task].name,
	         request ? "request" : "held");
	begin_event(t, phase, thread_of(t, s->task));
	put_time(t->out, "ts", ns);
	fprintf(t->out,
	        ",\"cat\":\"%s\",\"id\":\"0x%" PRIx64 "\",\"name\":", request ? "request" : "hold",
	        t->next_id);
	gp_json_string(t->out, name);
	fputc('}', t->out);
}

static void told(void *arg, const struct gp_span *s)
{
	struct gp_trace *t = arg;

	if (!t->pid || s->device != t->device)
		begin_device(t, s->device);
	name_thread(t, s->task);
	if (s->kind == GP_SPAN_RUN || s->kind == GP_SPAN_SWITCH) {
		put_span(t, s);
		return;
	}
	put_async(t, s, 'b', s->from_ns);
	put_async(t, s, 'e', s->to_ns);
	t->next_id++;
}

/* ---- runs -------------------------------------------------------------------------------------
 */

int gp_trace_begin(struct gp_trace *t, const struct gp_scenario *scenario, const char *label)
{
	t->scenario = scenario;
	t->label = label;
	t->pid = 0;
	t->named = calloc(scenario->ntasks ? scenario->ntasks : 1, sizeof *t->named);
	return t->named ? gp_spans_begin(&t->spans, scenario) : -ENOMEM;
}

void gp_trace_watch(void *trace, const struct gp_sim_event *event)
{
	gp_spans_watch(&((struct gp_trace *)trace)->spans, event);
}

void gp_trace_end(struct gp_trace *t)
{
	gp_spans_end(&t->spans);
	free(t->named);
	t->named = NULL;
}

int gp_trace_close(struct gp_trace *t, struct gp_error *err)
{
	bool failed;

	if (!t->out)
		return 0;
	fputs("\n]}\n", t->out);
	errno = 0;
	failed = ferror(t->out);
	failed |= fclose(t->out) != 0;
	t->out = NULL;
	if (!failed)
		return 0;
	return gp_fail(err, errno ? -errno : -EIO, "cannot write the trace to %s: %s", t->path,
	               gp_error_name(errno ? -errno : -EIO));
}
