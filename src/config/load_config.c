/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the configuration file and refuses one that other users could have written. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config.h"

#define FILE_MAX ((size_t)1 << 20)

const char *gp_config_path(const char *option, bool *chosen)
{
	const char *path = option ? option : secure_getenv("GPREEMPT_CONFIG");
	bool asked = path && *path;

	if (chosen)
		*chosen = asked;
	return asked ? path : GP_CONFIG_PATH;
}

static int check_file(int fd, const char *path, struct gp_error *err)
{
	struct stat s;

	if (fstat(fd, &s))
		return gp_fail(err, -errno, "cannot read %s: %s", path, gp_error_name(-errno));
	if (!S_ISREG(s.st_mode))
		return gp_fail(err, -EINVAL, "%s is not a regular file; choose another path", path);
	if (geteuid())
		return 0;
	if (s.st_uid)
		return gp_fail(err, -EPERM,
			       "%s belongs to user %u instead of root; run: chown root %s", path,
			       s.st_uid, path);
	if (s.st_mode & (S_IWGRP | S_IWOTH))
		return gp_fail(err, -EPERM,
			       "users other than root may write %s; run: chmod go-w %s", path,
			       path);
	return 0;
}

static ssize_t read_all(int fd, char *text, size_t size)
{
	size_t length = 0;

	while (length < size) {
		ssize_t n = read(fd, text + length, size - length);

		if (!n)
			break;
		if (n < 0 && errno != EINTR)
			return -errno;
		length += n > 0 ? (size_t)n : 0;
	}
	return (ssize_t)length;
}

/* Looks up users and groups of this machine. */

#define ENTRY_MAX ((size_t)1 << 20) /* a group may have many members */

static int system_user(const char *name, uid_t *uid)
{
	struct passwd entry, *found = NULL;
	char *room = malloc(ENTRY_MAX);
	int r = room ? getpwnam_r(name, &entry, room, ENTRY_MAX, &found) : ENOMEM;

	if (!r && found)
		*uid = found->pw_uid;
	free(room);
	return r == ENOMEM ? -ENOMEM : found ? 0 : -ENOENT;
}

static int system_group(const char *name, gid_t *gid)
{
	struct group entry, *found = NULL;
	char *room = malloc(ENTRY_MAX);
	int r = room ? getgrnam_r(name, &entry, room, ENTRY_MAX, &found) : ENOMEM;

	if (!r && found)
		*gid = found->gr_gid;
	free(room);
	return r == ENOMEM ? -ENOMEM : found ? 0 : -ENOENT;
}

const struct gp_config_names gp_config_system_names = {system_user, system_group};

static int load(int fd, const char *path, struct gp_config **config, struct gp_error *err)
{
	size_t size =
		FILE_MAX + 1; /* one byte more than allowed, to notice a file that is too large */
	char *text = malloc(size);
	ssize_t n = text ? read_all(fd, text, size) : -ENOMEM;
	int r;

	if (n < 0)
		r = gp_fail(err, (int)n, "cannot read %s: %s", path, gp_error_name((int)n));
	else
		r = gp_config_parse(path, text, (size_t)n, &gp_config_system_names, config, err);
	free(text);
	return r;
}

int gp_config_load(const char *path, struct gp_config **config, struct gp_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK |
				    O_NOCTTY); /* O_NONBLOCK: does not wait for a FIFO */
	int r;

	*config = NULL;
	if (fd < 0)
		return gp_fail(err, -errno, "cannot read %s: %s", path, gp_error_name(-errno));
	r = check_file(fd, path, err);
	if (!r)
		r = load(fd, path, config, err);
	close(fd);
	return r;
}
