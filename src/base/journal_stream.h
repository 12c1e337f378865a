/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GP_BASE_JOURNAL_STREAM_H
#define GP_BASE_JOURNAL_STREAM_H

#include <stdbool.h>

/*
 * Whether standard error is connected to the systemd journal, as sd-daemon(3) describes.
 * JOURNAL_STREAM holds the device and inode of the stream that the service manager opened; standard
 * error must still be that stream.
 */
bool gp_stderr_is_journal(void);

#endif
