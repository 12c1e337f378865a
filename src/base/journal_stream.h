/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GP_BASE_JOURNAL_STREAM_H
#define GP_BASE_JOURNAL_STREAM_H

#include <stdbool.h>

/* Whether the journal reads standard error, as sd-daemon(3) says: the variable JOURNAL_STREAM names
 * the file that the service manager gave us, and standard error is still that one. */
bool gp_stderr_is_journal(void);

#endif
