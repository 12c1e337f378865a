/* SPDX-License-Identifier: Apache-2.0 */
#include "base/run_dir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *gp_run_dir(char *out, size_t size)
{
	const char *own = secure_getenv("GPREEMPT_RUN");
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");

	if (own && *own)
		snprintf(out, size, "%s", own);
	else if (geteuid() == 0)
		snprintf(out, size, GP_RUN_DIR_SYSTEM);
	else if (runtime && *runtime)
		snprintf(out, size, "%s/gpreempt", runtime);
	else
		snprintf(out, size, "/tmp/gpreempt-%u", geteuid());
	return out;
}

/* A user who can write to this folder controls processes, because undo records are replayed from
 * it. */
static int check(const char *path, struct gp_error *err)
{
	struct stat s;

	if (lstat(path, &s))
		return gp_fail(err, -errno, "cannot check folder %s: %s", path,
			       gp_error_name(-errno));
	if (!S_ISDIR(s.st_mode) || s.st_uid != geteuid() || (s.st_mode & 022))
		return gp_fail(err, -EPERM,
			       "%s is not a folder that belongs to user %u and only that user may "
			       "write to; remove it, or name another with GPREEMPT_RUN",
			       path, geteuid());
	return 0;
}

int gp_run_dir_check(struct gp_error *err)
{
	char path[GP_RUN_DIR_SIZE];

	return check(gp_run_dir(path, sizeof path), err);
}

int gp_run_dir_make(struct gp_error *err)
{
	mode_t mode = geteuid() ? 0700 : 0755;
	char path[GP_RUN_DIR_SIZE + 1];

	if (strlen(gp_run_dir(path, sizeof path)) >= GP_RUN_DIR_SIZE)
		return gp_fail(err, -ENAMETOOLONG,
			       "the name of the run-time folder, %.60s..., is too long; "
			       "name another with GPREEMPT_RUN",
			       path);
	if (mkdir(path, mode) == 0 &&
	    chmod(path, mode) == 0) /* mkdir applies the umask, chmod does not */
		return 0;
	if (errno != EEXIST)
		return gp_fail(err, -errno, "cannot create folder %s: %s%s", path,
			       gp_error_name(-errno),
			       errno == EACCES ? "; name another folder with GPREEMPT_RUN" : "");
	return check(path, err);
}
