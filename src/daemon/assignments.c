/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/assignments.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/process.h"
#include "base/table.h"

#define ANCESTORS_MAX 16        /* enough for a program started through shells and wrappers */
#define FILE_MAX      (1 << 20) /* at this size a file that has doubled is rewritten */

struct gp_assignments {
	pthread_mutex_t lock; /* held only briefly: the file is written without it */
	struct gp_table by_key;
	struct gp_assignment *entry;
	unsigned n, capacity;
	struct gp_chosen_policy policy;

	char path[256];
	int fd; /* -1: no file */
	off_t size;
	off_t compact_at; /* size at which the file is rewritten */
};

static struct gp_assignment *find(struct gp_assignments *r, pid_t pid, uint64_t start_time)
{
	uint64_t i;

	return gp_table_get(&r->by_key, gp_process_key(start_time, pid), &i) ? &r->entry[i] : NULL;
}

static int add(struct gp_assignments *r, const struct gp_assignment *entry)
{
	struct gp_assignment *e = find(r, entry->pid, entry->start_time);

	if (e) {
		*e = *entry;
		return 0;
	}
	if (r->n == r->capacity) {
		unsigned capacity = r->capacity ? 2 * r->capacity : 64;
		struct gp_assignment *more = realloc(r->entry, capacity * sizeof *more);

		if (!more)
			return -ENOMEM;
		r->entry = more;
		r->capacity = capacity;
	}
	if (gp_table_put(&r->by_key, gp_process_key(entry->start_time, entry->pid), r->n))
		return -ENOMEM;
	r->entry[r->n++] = *entry;
	return 0;
}

/* Removes an entry; the last one takes its slot. */
static void remove_entry(struct gp_assignments *r, struct gp_assignment *e)
{
	struct gp_assignment *last = &r->entry[r->n - 1];

	gp_table_remove(&r->by_key, gp_process_key(e->start_time, e->pid));
	if (e != last) {
		*e = *last;
		gp_table_put(&r->by_key, gp_process_key(e->start_time, e->pid),
			     (uint64_t)(e - r->entry)); /* replaces the existing key */
	}
	r->n--;
}

/*
 * Lines of the file consist of numbers and words, separated by one blank. The gang's name, which a
 * user chose, comes last and has no control characters.
 */

static int print_entry(char *out, size_t size, const struct gp_assignment *e)
{
	const struct gp_task_attr *a = &e->attr;

	return snprintf(out, size,
			"set %d %" PRIu64 " %u %u %u %u %u %" PRIu64 " %" PRIu64 " %" PRIu64
			" %d %u %s\n",
			e->pid, e->start_time, a->class, a->priority, a->weight, a->share_permille,
			a->ceiling_permille, a->deadline_ns, a->budget_ns, a->gang, e->inherit,
			e->by, e->gang);
}

/* Reads `n` whole numbers, each after one blank. Returns the rest of the text, or NULL. */
static const char *read_numbers(const char *text, uint64_t *number, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		char *end;

		if (text[0] != ' ' || text[1] < '0' || text[1] > '9')
			return NULL;
		errno = 0;
		number[i] = strtoull(text + 1, &end, 10);
		if (errno)
			return NULL;
		text = end;
	}
	return text;
}

static bool read_entry(const char *line, struct gp_assignment *e)
{
	uint64_t n[12];
	const char *rest = strncmp(line, "set", 3) ? NULL : read_numbers(line + 3, n, 12);

	if (!rest || *rest != ' ' || n[0] > INT32_MAX || n[2] > GP_LATENCY_CRITICAL ||
	    n[3] > GP_PRIORITY_MAX || n[4] > 10000 || n[5] > 1000 || n[6] > 1000)
		return false;
	*e = (struct gp_assignment){.pid = (pid_t)n[0],
				    .start_time = n[1],
				    .source = GP_ATTR_BY_USER,
				    .inherit = n[10],
				    .by = (uid_t)n[11],
				    .attr = {.class = (uint8_t)n[2],
					     .priority = (uint8_t)n[3],
					     .weight = (uint32_t)n[4],
					     .share_permille = (uint32_t)n[5],
					     .ceiling_permille = (uint32_t)n[6],
					     .deadline_ns = n[7],
					     .budget_ns = n[8],
					     .gang = n[9]}};
	snprintf(e->gang, sizeof e->gang, "%s", rest + 1);
	return true;
}

static int print_policy(char *out, size_t size, const struct gp_chosen_policy *p)
{
	return snprintf(out, size, "chosen %u %" PRIu64 " %" PRIu64 " %s\n", p->by, p->at_ns,
			p->configured, p->text);
}

/* Older versions wrote "policy TEXT". */
static bool read_policy(const char *line, struct gp_chosen_policy *p)
{
	uint64_t n[3] = {GP_BY_UNKNOWN, 0, 0};
	const char *rest = !strncmp(line, "policy ", 7)   ? line + 6
			   : !strncmp(line, "chosen ", 7) ? read_numbers(line + 6, n, 3)
							  : NULL;

	if (!rest || *rest != ' ')
		return false;
	*p = (struct gp_chosen_policy){.by = (uid_t)n[0], .at_ns = n[1], .configured = n[2]};
	snprintf(p->text, sizeof p->text, "%s", rest + 1);
	return true;
}

static void read_line(struct gp_assignments *r, const char *line)
{
	struct gp_assignment e, *known;
	uint64_t id[2];

	if (read_policy(line, &r->policy))
		return;
	if (!strncmp(line, "drop", 4) && read_numbers(line + 4, id, 2)) {
		known = find(r, (pid_t)id[0], id[1]);
		if (known)
			remove_entry(r, known);
	} else if (read_entry(line, &e)) {
		add(r, &e);
	} else {
		gp_log(GP_LOG_WARN, "assignments.bad-line", "file=%s", r->path);
	}
}

/*
 * An incomplete last line was being written when the daemon died. Its request was not answered, so
 * the line is ignored.
 */
static int read_file(struct gp_assignments *r)
{
	FILE *f = fopen(r->path, "re");
	size_t size = 0;
	char *line = NULL;
	ssize_t n;

	if (!f)
		return errno == ENOENT ? 0 : -errno;
	while ((n = getline(&line, &size, f)) > 0)
		if (line[n - 1] == '\n') {
			line[n - 1] = 0;
			read_line(r, line);
		}
	free(line);
	fclose(f);
	for (unsigned i = r->n; i-- > 0;)
		if (gp_process_gone(r->entry[i].pid, r->entry[i].start_time))
			remove_entry(r, &r->entry[i]);
	return 0;
}

static int append(struct gp_assignments *r, const char *line, int length)
{
	ssize_t n;
	int code;

	if (r->fd < 0)
		return 0;
	n = write(r->fd, line, (size_t)length);
	if (n == length) {
		r->size += length;
		return 0;
	}
	code = n < 0 ? -errno : -ENOSPC;
	if (n > 0 && ftruncate(r->fd, r->size)) /* or the next line would be appended to this one */
		gp_log(GP_LOG_ERROR, "assignments.truncate-failed", "file=%s errno=%d", r->path,
		       errno);
	return code;
}

/* Writes all current entries to a new file, which replaces the old one. */
static int write_file(struct gp_assignments *r)
{
	char path[sizeof r->path + 4], line[512];
	int old = r->fd, fd, code = 0;
	off_t old_size = r->size;

	snprintf(path, sizeof path, "%s.new", r->path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	r->fd = fd;
	r->size = 0;
	if (*r->policy.text)
		code = append(r, line, print_policy(line, sizeof line, &r->policy));
	for (unsigned i = 0; i < r->n && !code; i++)
		if (r->entry[i].source == GP_ATTR_BY_USER)
			code = append(r, line, print_entry(line, sizeof line, &r->entry[i]));
	if (!code && rename(path, r->path))
		code = -errno;
	if (code) {
		unlink(path);
		close(fd);
		r->fd = old;
		r->size = old_size;
		return code;
	}
	if (old >= 0)
		close(old);
	return 0;
}

/*
 * Rewrites the file if it is too large. Called after the appended entry is in memory, which is what
 * the new file contains. If this fails, the old file stays valid.
 */
static void compact(struct gp_assignments *r)
{
	int code;

	if (r->size <= r->compact_at)
		return;
	code = write_file(r);
	if (code)
		gp_log(GP_LOG_WARN, "assignments.compact-failed", "file=%s error=%s", r->path,
		       gp_error_name(code));
	r->compact_at = 2 * r->size > FILE_MAX ? 2 * r->size : FILE_MAX;
}

/* Device threads may have real-time priority, so the lock inherits it. */
static void init_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(lock, &a);
	pthread_mutexattr_destroy(&a);
}

int gp_assignments_open(const char *path, struct gp_assignments **assignments, struct gp_error *err)
{
	struct gp_assignments *r = calloc(1, sizeof *r);
	int code = 0;

	*assignments = NULL;
	if (!r)
		return -ENOMEM;
	init_lock(&r->lock);
	gp_table_init(&r->by_key);
	r->fd = -1;
	r->compact_at = FILE_MAX;
	if (path) {
		snprintf(r->path, sizeof r->path, "%s", path);
		code = read_file(r);
		if (!code)
			code = write_file(r);
	}
	if (code) {
		gp_assignments_close(r);
		return gp_fail(err, code, "cannot read or write %s: %s", path, gp_error_name(code));
	}
	*assignments = r;
	return 0;
}

void gp_assignments_close(struct gp_assignments *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	gp_table_free(&r->by_key);
	pthread_mutex_destroy(&r->lock);
	free(r->entry);
	free(r);
}

bool gp_assignments_get(struct gp_assignments *r, pid_t pid, uint64_t start_time,
			struct gp_assignment *entry)
{
	const struct gp_assignment *e;

	pthread_mutex_lock(&r->lock);
	e = find(r, pid, start_time);
	if (e)
		*entry = *e;
	pthread_mutex_unlock(&r->lock);
	return e;
}

bool gp_assignments_find(struct gp_assignments *r, pid_t pid, uint64_t start_time,
			 struct gp_assignment *entry)
{
	uid_t owner;

	if (gp_assignments_get(r, pid, start_time, entry))
		return true;
	if (!gp_process_uid(pid, &owner))
		return false;
	for (unsigned i = 0; i < ANCESTORS_MAX; i++) {
		pid = gp_process_parent(pid);
		if (pid <= 1)
			return false;
		if (gp_assignments_get(r, pid, gp_process_start_time(pid), entry))
			return entry->inherit && (entry->by == GP_BY_ADMIN || entry->by == owner);
	}
	return false;
}

int gp_assignments_put(struct gp_assignments *r, const struct gp_assignment *entry,
		       struct gp_error *err)
{
	char line[512];
	int code = 0;

	if (entry->source == GP_ATTR_BY_USER)
		code = append(r, line, print_entry(line, sizeof line, entry));
	if (code)
		return gp_fail(err, code, "cannot write %s: %s", r->path, gp_error_name(code));
	pthread_mutex_lock(&r->lock);
	code = add(r, entry);
	pthread_mutex_unlock(&r->lock);
	compact(r);
	return code;
}

void gp_assignments_drop(struct gp_assignments *r, pid_t pid, uint64_t start_time)
{
	struct gp_assignment *e = find(
		r, pid, start_time); /* only this thread changes entries, so no lock is needed */
	char line[64];

	if (!e)
		return;
	if (e->source == GP_ATTR_BY_USER)
		append(r, line,
		       snprintf(line, sizeof line, "drop %d %" PRIu64 "\n", pid, start_time));
	pthread_mutex_lock(&r->lock);
	remove_entry(r, e);
	pthread_mutex_unlock(&r->lock);
	compact(r);
}

void gp_assignments_drop_rules(struct gp_assignments *r)
{
	pthread_mutex_lock(&r->lock);
	for (unsigned i = r->n; i-- > 0;)
		if (r->entry[i].source == GP_ATTR_BY_RULE)
			remove_entry(r, &r->entry[i]);
	pthread_mutex_unlock(&r->lock);
}

void gp_assignments_each(struct gp_assignments *r,
			 void (*each)(void *arg, const struct gp_assignment *entry), void *arg)
{
	for (unsigned i = 0; i < r->n; i++)
		each(arg, &r->entry[i]);
}

int gp_assignments_set_policy(struct gp_assignments *r, const struct gp_chosen_policy *chosen,
			      struct gp_error *err)
{
	char line[400];
	int code;

	r->policy = *chosen;
	code = append(r, line, print_policy(line, sizeof line, chosen));
	compact(r);
	return code ? gp_fail(err, code, "cannot write %s: %s", r->path, gp_error_name(code)) : 0;
}

const struct gp_chosen_policy *gp_assignments_policy(const struct gp_assignments *r)
{
	return &r->policy;
}
