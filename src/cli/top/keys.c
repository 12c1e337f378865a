/* SPDX-License-Identifier: Apache-2.0 */
/* What the keys do. The daemon answers later; the answer is shown in the last line. */
#include <ctype.h>
#include <string.h>

#include "cli/top/top.h"
#include "policy/registry.h"

/* Names the process by pid and start time, because a pid may be reused. */
static struct json_object *target_params(const struct gp_top_task *t)
{
	struct json_object *params = json_object_new_object(), *target = json_object_new_object();

	json_object_object_add(target, "pid", json_object_new_int64(t->pid));
	json_object_object_add(target, "start_time", json_object_new_uint64(t->start_time));
	json_object_object_add(params, "target", target);
	return params;
}

static void command(struct gp_top *top, uint64_t now_ns, const struct gp_top_task *t,
		    const char *method, struct json_object *params, const char *done)
{
	struct gp_error err = {0};
	char name[96];

	snprintf(name, sizeof name, "%d %s", (int)t->pid, t->name);
	if (gp_top_command(&top->link, method, params, name, done, &err))
		gp_top_show_message(top, now_ns, true, "%s", err.text);
}

static void set_class(struct gp_top *top, uint64_t now_ns, const char *class)
{
	struct json_object *params = target_params(&top->target);
	char done[32];

	json_object_object_add(params, "class", json_object_new_string(class));
	snprintf(done, sizeof done, "class %s", class);
	command(top, now_ns, &top->target, "set", params, done);
}

/* Also changes the snapshot, so that a second key press before the next snapshot continues from the
 * new value. */
static void change_priority(struct gp_top *top, uint64_t now_ns, const struct gp_top_task *t,
			    int by)
{
	int priority = t->priority + by;
	struct json_object *params;
	char done[32];

	if (priority < 0 || priority > (int)GP_PRIORITY_MAX) {
		gp_top_show_message(top, now_ns, true, "the priority must be from 0 to %u",
				    GP_PRIORITY_MAX);
		return;
	}
	params = target_params(t);
	json_object_object_add(params, "priority", json_object_new_int(priority));
	snprintf(done, sizeof done, "priority %d", priority);
	command(top, now_ns, t, "set", params, done);
	top->link.snapshot.task[t - top->link.snapshot.task].priority = (uint8_t)priority;
}

static void press_for_task(struct gp_top *top, int key, uint64_t now_ns)
{
	const struct gp_top_task *t = gp_top_view_selected(&top->view, &top->link.snapshot);

	if (!t) {
		gp_top_show_message(top, now_ns, true, "no task is selected");
		return;
	}
	switch (key) {
	case 'c':
		top->target = *t;
		top->mode = GP_TOP_CLASS;
		break;
	case '+':
	case '=': change_priority(top, now_ns, t, 1); break;
	case '-': change_priority(top, now_ns, t, -1); break;
	case 'h':
		command(top, now_ns, t, "hold", target_params(t), "held until r is pressed");
		break;
	default: command(top, now_ns, t, "release", target_params(t), "released"); break;
	}
}

static void press_class(struct gp_top *top, int key, uint64_t now_ns)
{
	top->mode = GP_TOP_BROWSE;
	switch (key) {
	case 'l': set_class(top, now_ns, "lc"); break;
	case 'b': set_class(top, now_ns, "be"); break;
	case 'u': set_class(top, now_ns, "unmanaged"); break;
	default: gp_top_show_message(top, now_ns, false, "class not changed"); break;
	}
}

static void set_policy(struct gp_top *top, uint64_t now_ns, const char *name)
{
	struct json_object *params = json_object_new_object();
	struct gp_error err = {0};

	json_object_object_add(params, "policy", json_object_new_string(name));
	if (top->link.device >= 0)
		json_object_object_add(params, "device", json_object_new_int(top->link.device));
	if (gp_top_command(&top->link, "policy", params, "policy", name, &err))
		gp_top_show_message(top, now_ns, true, "%s", err.text);
}

static void begin_policy(struct gp_top *top)
{
	const struct gp_top_snapshot *snapshot = &top->link.snapshot;

	top->mode = GP_TOP_POLICY;
	top->chosen_policy = 0;
	for (unsigned i = 0; gp_policies[i] && snapshot->ndevices; i++)
		if (!strcmp(gp_policies[i]->name, snapshot->device[0].policy))
			top->chosen_policy = i;
}

static void press_policy(struct gp_top *top, int key, uint64_t now_ns)
{
	switch (key) {
	case GP_KEY_UP:
	case 'k': top->chosen_policy -= top->chosen_policy > 0; break;
	case GP_KEY_DOWN:
	case 'j': top->chosen_policy += gp_policies[top->chosen_policy + 1] != NULL; break;
	case GP_KEY_ENTER:
		top->mode = GP_TOP_BROWSE;
		set_policy(top, now_ns, gp_policies[top->chosen_policy]->name);
		break;
	case GP_KEY_ESCAPE:
	case 'p':
	case 'q': top->mode = GP_TOP_BROWSE; break;
	default: break;
	}
}

/* The table follows every typed character. */
static void press_filter(struct gp_top *top, int key)
{
	char *filter = top->view.filter;
	size_t n = strlen(filter);

	if (key == GP_KEY_ENTER) {
		top->mode = GP_TOP_BROWSE;
	} else if (key == GP_KEY_ESCAPE) {
		memcpy(filter, top->old_filter, sizeof top->old_filter);
		top->mode = GP_TOP_BROWSE;
	} else if (key == GP_KEY_BACKSPACE) {
		/* Removes all bytes of the last UTF-8 character. */
		while (n && ((unsigned char)filter[--n] & 0xc0) == 0x80)
			;
		filter[n] = 0;
	} else if (key < 0x100 && (key >= 0x80 || isprint(key)) &&
		   n + 1 < sizeof top->view.filter) {
		filter[n] = (char)key;
		filter[n + 1] = 0;
	}
	gp_top_view_update(&top->view, &top->link.snapshot, top->task_rows);
}

static bool press_to_move(struct gp_top *top, int key)
{
	long page = top->task_rows > 1 ? (long)top->task_rows - 1 : 1, by;

	switch (key) {
	case GP_KEY_UP:
	case 'k': by = -1; break;
	case GP_KEY_DOWN:
	case 'j': by = 1; break;
	case GP_KEY_PAGE_UP: by = -page; break;
	case GP_KEY_PAGE_DOWN: by = page; break;
	case GP_KEY_HOME: by = -(long)top->view.n; break;
	case GP_KEY_END: by = (long)top->view.n; break;
	default: return false;
	}
	gp_top_view_move(&top->view, &top->link.snapshot, by, top->task_rows);
	return true;
}

static void press(struct gp_top *top, int key, uint64_t now_ns)
{
	switch (key) {
	case 'q': top->done = true; break;
	case '?': top->mode = GP_TOP_HELP; break;
	case 's':
		top->view.sort = gp_top_next_sort(top->view.sort);
		gp_top_view_update(&top->view, &top->link.snapshot, top->task_rows);
		gp_top_show_message(top, now_ns, false, "sorted by %s",
				    gp_top_columns[top->view.sort].head);
		break;
	case 'p': begin_policy(top); break;
	case 'f':
	case '/':
		memcpy(top->old_filter, top->view.filter, sizeof top->old_filter);
		top->mode = GP_TOP_FILTER;
		break;
	case 'c':
	case '+':
	case '=':
	case '-':
	case 'h':
	case 'r': press_for_task(top, key, now_ns); break;
	case GP_KEY_ESCAPE: *top->message = 0; break;
	default:
		if (isprint(key & 0xff) && key < 0x100)
			gp_top_show_message(top, now_ns, true,
					    "%c is not a key of gpreempt top; press ? for help",
					    key);
		break;
	}
}

void gp_top_press(struct gp_top *top, int key, uint64_t now_ns)
{
	switch (top->mode) {
	case GP_TOP_HELP: top->mode = GP_TOP_BROWSE; break;
	case GP_TOP_CLASS: press_class(top, key, now_ns); break;
	case GP_TOP_POLICY: press_policy(top, key, now_ns); break;
	case GP_TOP_FILTER: press_filter(top, key); break;
	default:
		if (!press_to_move(top, key))
			press(top, key, now_ns);
		break;
	}
}
