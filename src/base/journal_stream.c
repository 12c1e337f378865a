/* SPDX-License-Identifier: Apache-2.0 */
#include "base/journal_stream.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

bool gp_stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat s;
	char *end;

	if (!stream)
		return false;
	device = strtoull(stream, &end, 10);
	if (*end != ':')
		return false;
	inode = strtoull(end + 1, NULL, 10);
	return !fstat(STDERR_FILENO, &s) && s.st_dev == device && s.st_ino == inode;
}
