/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up users and groups of this machine. */
#include "build_config.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>

#include "config/config.h"

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
