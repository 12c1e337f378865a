/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lib/trace_file.h"

#include <errno.h>
#include <inttypes.h>

#include "cli/cli.h"

static int cannot_write(const struct gp_trace_file *t, int r, struct gp_error *err)
{
	return gp_fail(err, r, "cannot write the trace to %s: %s", t->path, gp_error_name(r));
}

int gp_trace_file_open(struct gp_trace_file *t, const char *path, struct gp_error *err)
{
	int r;

	*t = (struct gp_trace_file){.path = path, .next = 1, .next_id = 1};
	r = gp_out_open(&t->file, path);
	if (r)
		return cannot_write(t, r, err);
	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", t->file.out);
	return 0;
}

int gp_trace_file_close(struct gp_trace_file *t, struct gp_error *err)
{
	int r;

	if (!t->file.out)
		return 0;
	fputs("\n]}\n", t->file.out);
	r = gp_out_keep(&t->file);
	return r ? cannot_write(t, r, err) : 0;
}

void gp_trace_file_drop(struct gp_trace_file *t)
{
	gp_out_drop(&t->file);
}

/* The format has microseconds; nanoseconds are its decimals. */
static void put_time(FILE *out, const char *key, uint64_t ns)
{
	fprintf(out, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
}

static void begin_event(struct gp_trace_file *t, char phase, struct gp_track track)
{
	fprintf(t->file.out, "%s\n{\"ph\":\"%c\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32,
		t->any ? "," : "", phase, track.pid, track.tid);
	t->any = true;
}

static void end_event(struct gp_trace_file *t, const char *category, const char *name)
{
	fprintf(t->file.out, ",\"cat\":\"%s\",\"name\":", category);
	gp_json_string(t->file.out, name);
	fputc('}', t->file.out);
}

void gp_trace_name(struct gp_trace_file *t, struct gp_track track, const char *what,
		   const char *name)
{
	begin_event(t, 'M', track);
	fprintf(t->file.out, ",\"name\":\"%s_name\",\"args\":{\"name\":", what);
	gp_json_string(t->file.out, name);
	fputs("}}", t->file.out);
	begin_event(t, 'M', track);
	fprintf(t->file.out, ",\"name\":\"%s_sort_index\",\"args\":{\"sort_index\":%" PRIu32 "}}",
		what, track.tid);
}

void gp_trace_span(struct gp_trace_file *t, struct gp_track track, const char *category,
		   const char *name, uint64_t from_ns, uint64_t to_ns)
{
	begin_event(t, 'X', track);
	put_time(t->file.out, "ts", from_ns);
	put_time(t->file.out, "dur", to_ns - from_ns);
	end_event(t, category, name);
}

void gp_trace_overlapping(struct gp_trace_file *t, struct gp_track track, const char *category,
			  const char *name, uint64_t from_ns, uint64_t to_ns)
{
	for (unsigned i = 0; i < 2; i++) {
		begin_event(t, "be"[i], track);
		put_time(t->file.out, "ts", i ? to_ns : from_ns);
		fprintf(t->file.out, ",\"id\":\"0x%" PRIx64 "\"", t->next_id);
		end_event(t, category, name);
	}
	t->next_id++;
}

void gp_trace_moment(struct gp_trace_file *t, struct gp_track track, const char *category,
		     const char *name, uint64_t at_ns)
{
	begin_event(t, 'i', track);
	put_time(t->file.out, "ts", at_ns);
	fputs(",\"s\":\"t\"", t->file.out);
	end_event(t, category, name);
}

void gp_trace_value(struct gp_trace_file *t, struct gp_track track, const char *name,
		    uint64_t from_ns, double value)
{
	begin_event(t, 'C', track);
	put_time(t->file.out, "ts", from_ns);
	fprintf(t->file.out, ",\"args\":{\"value\":%.1f},\"name\":", value);
	gp_json_string(t->file.out, name);
	fputc('}', t->file.out);
}
