/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the log as journal records if standard error is connected to the journal. The event is the
 * field GPREEMPT_EVENT, and each field NAME=value is GPREEMPT_NAME.
 */
#ifndef GP_DAEMON_JOURNAL_LOG_H
#define GP_DAEMON_JOURNAL_LOG_H

#include <sys/uio.h>

/* Selects the journal or standard error. Never blocks on a reader. */
void gp_journal_begin(void);

/*
 * Sends the log to the journal socket at `path`. A record that the journal does not take at once is
 * dropped; the number of dropped records is logged later. 0 or -errno.
 */
int gp_journal_to(const char *path);

#define GP_JOURNAL_FIELDS 16

/*
 * Splits a log line ("warn hold.failed task=7") into journal fields. `text` has `size` bytes.
 * Returns the number of fields; the rest did not fit.
 */
unsigned gp_journal_split(const char *line, int priority, char *text, size_t size,
			  struct iovec field[GP_JOURNAL_FIELDS]);

#endif
