/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log as records of the journal, where standard error leads there: the event is
 * GPREEMPT_EVENT, and each field NAME=value is GPREEMPT_NAME.
 */
#ifndef GP_DAEMON_JOURNAL_LOG_H
#define GP_DAEMON_JOURNAL_LOG_H

#include <sys/uio.h>

/* Elsewhere it goes to standard error, as far as somebody reads that. */
void gp_journal_begin(void);

/* To the journal that listens at `path`. What it does not take at once is lost, and said when it
 * takes something again: nobody waits for it. 0 or -errno. */
int gp_journal_to(const char *path);

#define GP_JOURNAL_FIELDS 16

/*
 * A record of the log ("warn hold.failed task=7") as fields of the journal, in `text`, which has
 * `size` bytes. Returns how many; the rest did not fit.
 */
unsigned gp_journal_split(const char *line, int priority, char *text, size_t size,
                          struct iovec field[GP_JOURNAL_FIELDS]);

#endif
