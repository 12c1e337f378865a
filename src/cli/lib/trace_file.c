/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lib/trace_file.h"

#include <inttypes.h>

#include "cli/lib/fields.h"

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
static void put_time(struct json_object *event, const char *key, uint64_t ns)
{
	char text[32];

	snprintf(text, sizeof text, "%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));
	json_object_object_add(event, key, json_object_new_double_s((double)ns / 1e3, text));
}

static struct json_object *new_event(const char *phase, struct gp_track track)
{
	struct json_object *event = json_object_new_object();

	gp_field_put_text(event, "ph", phase);
	gp_field_put(event, "pid", track.pid);
	gp_field_put(event, "tid", track.tid);
	return event;
}

/* Writes the event and frees it. `category` may be NULL. */
static void put_event(struct gp_trace_file *t, struct json_object *event, const char *category,
		      const char *name)
{
	if (category)
		gp_field_put_text(event, "cat", category);
	gp_field_put_text(event, "name", name);
	fprintf(t->file.out, "%s\n%s", t->any ? "," : "", gp_json_line(event));
	t->any = true;
	json_object_put(event);
}

void gp_trace_name(struct gp_trace_file *t, struct gp_track track, const char *what,
		   const char *name)
{
	struct json_object *event = new_event("M", track);
	char key[32];

	gp_field_put_text(gp_field_put_object(event, "args"), "name", name);
	snprintf(key, sizeof key, "%s_name", what);
	put_event(t, event, NULL, key);
	event = new_event("M", track);
	gp_field_put(gp_field_put_object(event, "args"), "sort_index", track.tid);
	snprintf(key, sizeof key, "%s_sort_index", what);
	put_event(t, event, NULL, key);
}

void gp_trace_span(struct gp_trace_file *t, struct gp_track track, const char *category,
		   const char *name, uint64_t from_ns, uint64_t to_ns)
{
	struct json_object *event = new_event("X", track);

	put_time(event, "ts", from_ns);
	put_time(event, "dur", to_ns - from_ns);
	put_event(t, event, category, name);
}

void gp_trace_overlapping(struct gp_trace_file *t, struct gp_track track, const char *category,
			  const char *name, uint64_t from_ns, uint64_t to_ns)
{
	for (unsigned i = 0; i < 2; i++) {
		struct json_object *event = new_event(i ? "e" : "b", track);

		put_time(event, "ts", i ? to_ns : from_ns);
		gp_field_put_address(event, "id", t->next_id);
		put_event(t, event, category, name);
	}
	t->next_id++;
}

void gp_trace_moment(struct gp_trace_file *t, struct gp_track track, const char *category,
		     const char *name, uint64_t at_ns)
{
	struct json_object *event = new_event("i", track);

	put_time(event, "ts", at_ns);
	gp_field_put_text(event, "s", "t");
	put_event(t, event, category, name);
}

void gp_trace_value(struct gp_trace_file *t, struct gp_track track, const char *name,
		    uint64_t from_ns, double value)
{
	struct json_object *event = new_event("C", track);

	put_time(event, "ts", from_ns);
	gp_field_put_decimal(gp_field_put_object(event, "args"), "value", value, 1);
	put_event(t, event, NULL, name);
}
