/* SPDX-License-Identifier: Apache-2.0 */
/* A record of the log becomes fields of the journal. */
#include "support/test.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "base/log.h"
#include "daemon/journal_log.h"

static void fields_are(const char *line, const char *const *wanted, unsigned n)
{
	struct iovec field[GP_JOURNAL_FIELDS];
	char text[1024];

	assert_int_equal(gp_journal_split(line, 4, text, sizeof text, field), n);
	for (unsigned i = 0; i < n; i++) {
		assert_string_equal(field[i].iov_base, wanted[i]);
		assert_int_equal(field[i].iov_len, strlen(wanted[i]));
	}
}

TEST(the_event_and_every_field_can_be_searched_for)
{
	fields_are("warn hold.failed task=7 errno=16",
		   (const char *const[]){"MESSAGE=hold.failed task=7 errno=16", "PRIORITY=4",
					 "GPREEMPT_EVENT=hold.failed", "GPREEMPT_TASK=7",
					 "GPREEMPT_ERRNO=16"},
		   5);
}

TEST(a_quoted_value_may_hold_anything)
{
	fields_are("info process name=\"a b=\\\"c\\\" d\" pid=3",
		   (const char *const[]){"MESSAGE=process name=\"a b=\\\"c\\\" d\" pid=3",
					 "PRIORITY=4", "GPREEMPT_EVENT=process",
					 "GPREEMPT_NAME=a b=\\\"c\\\" d", "GPREEMPT_PID=3"},
		   5);
}

TEST(odd_records_lose_nothing_but_their_fields)
{
	fields_are("info config.rejected x.yaml:3: no such key; the old one stays",
		   (const char *const[]){
			   "MESSAGE=config.rejected x.yaml:3: no such key; the old one stays",
			   "PRIORITY=4", "GPREEMPT_EVENT=config.rejected"},
		   3);
	fields_are("info daemon.stopping text=\"cut",
		   (const char *const[]){"MESSAGE=daemon.stopping text=\"cut", "PRIORITY=4",
					 "GPREEMPT_EVENT=daemon.stopping", "GPREEMPT_TEXT=cu"},
		   4);
}

TEST(what_does_not_fit_is_left_out)
{
	struct iovec field[GP_JOURNAL_FIELDS];
	char text[40];

	assert_int_equal(gp_journal_split("info a b=1 c=2", 6, text, sizeof text, field), 2);
}

static void receive(int fd, char *text, size_t size)
{
	ssize_t n = recv(fd, text, size - 1, MSG_DONTWAIT);

	assert_true(n > 0);
	text[n] = 0;
}

/* A journal that hangs costs records, and nobody's time. */
TEST(a_journal_that_does_not_read_is_not_waited_for)
{
	char folder[] = "/tmp/gpreempt-journal-XXXXXX", text[4096];
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	unsigned taken = 0, lost = 0;
	int fd;

	assert_non_null(mkdtemp(folder));
	snprintf(a.sun_path, sizeof a.sun_path, "%s/socket", folder);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
	assert_int_equal(gp_journal_to(a.sun_path), 0);
	gp_log(GP_LOG_WARN, "hold.failed", "task=%d", 7);
	receive(fd, text, sizeof text);
	assert_string_equal(text, "SYSLOG_IDENTIFIER=gpreemptd\nMESSAGE=hold.failed task=7\n"
				  "PRIORITY=4\nGPREEMPT_EVENT=hold.failed\nGPREEMPT_TASK=7\n");
	for (unsigned i = 0; i < 5000; i++) /* its queue is shorter */
		gp_log(GP_LOG_INFO, "flood", "number=%u", i);
	while (recv(fd, text, sizeof text, MSG_DONTWAIT) > 0)
		taken++;
	gp_log(GP_LOG_INFO, "again", "number=0");
	receive(fd, text, sizeof text);
	assert_int_equal(sscanf(strstr(text, "records="), "records=%u", &lost), 1);
	assert_int_equal(taken + lost, 5000);
	receive(fd, text, sizeof text);
	assert_non_null(strstr(text, "GPREEMPT_EVENT=again"));
	close(fd);
	unlink(a.sun_path);
	gp_log(GP_LOG_INFO, "nobody", "there=0");
	gp_log_set_sink(NULL, NULL);
	rmdir(folder);
}
