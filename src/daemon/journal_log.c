/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/journal_log.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include "base/journal_stream.h"
#include "base/log.h"

struct record {
	char *text;
	size_t left;
	struct iovec *field;
	unsigned n;
};

__attribute__((format(printf, 2, 3))) static void add(struct record *r, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(r->text, r->left, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= r->left || r->n == GP_JOURNAL_FIELDS)
		return;
	r->field[r->n++] = (struct iovec){.iov_base = r->text, .iov_len = (size_t)n};
	r->text += n + 1;
	r->left -= (size_t)n + 1;
}

/* The end of a value: a blank, or the closing quote. */
static const char *end_of_value(const char *p)
{
	if (*p != '"')
		return p + strcspn(p, " ");
	for (p++; *p && *p != '"'; p++)
		p += *p == '\\' && p[1];
	return *p ? p + 1 : p;
}

static void add_field(struct record *r, const char *name, size_t length, const char *value,
		      const char *end)
{
	char upper[32];

	if (!length || length >= sizeof upper)
		return;
	for (size_t i = 0; i < length; i++)
		upper[i] = (char)(isalnum((unsigned char)name[i]) ? toupper((unsigned char)name[i])
								  : '_');
	upper[length] = 0;
	if (*value == '"' && end - value >= 2) { /* strips the quotes */
		value++;
		end--;
	}
	add(r, "GPREEMPT_%s=%.*s", upper, (int)(end - value), value);
}

unsigned gp_journal_split(const char *line, int priority, char *text, size_t size,
			  struct iovec field[GP_JOURNAL_FIELDS])
{
	struct record r = {.text = text, .left = size, .field = field};
	const char *p = strchr(line, ' ');
	size_t event;

	p = p ? p + 1 : line; /* the level becomes the priority */
	add(&r, "MESSAGE=%s", p);
	add(&r, "PRIORITY=%d", priority);
	event = strcspn(p, " ");
	add(&r, "GPREEMPT_EVENT=%.*s", (int)event, p);
	for (p += event; *p;) {
		const char *end;
		size_t name;

		p += strspn(p, " ");
		name = strcspn(p, "= ");
		if (p[name] == '=') {
			end = end_of_value(p + name + 1);
			add_field(&r, p, name, p + name + 1, end);
		} else {
			end = p + name;
		}
		p = end;
	}
	return r.n;
}

/*
 * The journal's native protocol: a datagram with one field per line (the values contain no
 * newline). sd_journal_sendv does the same, but blocks while the journal does not read, and would
 * block device threads.
 */
static struct {
	int fd;
	struct sockaddr_un to;
	_Atomic unsigned lost;
} journal = {.fd = -1};

static int deliver(const char *line, int priority)
{
	static char newline[] = "\n", identifier[] = "SYSLOG_IDENTIFIER=gpreemptd\n";
	struct iovec field[GP_JOURNAL_FIELDS], part[2 * GP_JOURNAL_FIELDS + 1];
	char text[2 * GP_LOG_LINE_MAX + 512];
	struct msghdr m = {
		.msg_name = &journal.to, .msg_namelen = sizeof journal.to, .msg_iov = part};
	unsigned n = gp_journal_split(line, priority, text, sizeof text, field);

	part[m.msg_iovlen++] = (struct iovec){identifier, sizeof identifier - 1};
	for (unsigned i = 0; i < n; i++) {
		part[m.msg_iovlen++] = field[i];
		part[m.msg_iovlen++] = (struct iovec){newline, 1};
	}
	return sendmsg(journal.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static void send_record(void *arg, enum gp_log_level level, const char *line)
{
	static const int priorities[] = {LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERR};
	unsigned lost = atomic_exchange(&journal.lost, 0);
	char text[64];

	(void)arg;
	snprintf(text, sizeof text, "warn log.lost records=%u", lost);
	if (lost && deliver(text, LOG_WARNING))
		atomic_fetch_add(&journal.lost, lost);
	if (deliver(line, priorities[level]))
		atomic_fetch_add(&journal.lost, 1);
}

int gp_journal_to(const char *path)
{
	int fd;

	if (strlen(path) >= sizeof journal.to.sun_path)
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (journal.fd >= 0)
		close(journal.fd);
	journal.fd = fd;
	journal.to = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(journal.to.sun_path, path, strlen(path));
	gp_log_set_sink(send_record, NULL);
	return 0;
}

void gp_journal_begin(void)
{
	gp_log_set_sink(gp_log_if_possible, NULL); /* device threads log too and must not block */
	if (gp_stderr_is_journal())
		gp_journal_to("/run/systemd/journal/socket"); /* else standard error */
}
