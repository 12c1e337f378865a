/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void gp_notify(const char *message)
{
	const char *path = secure_getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	socklen_t size;
	int fd;

	if (!path || (*path != '/' && *path != '@') || strlen(path) >= sizeof to.sun_path)
		return;
	memcpy(to.sun_path, path, strlen(path));
	if (*path == '@')
		to.sun_path[0] = 0;
	size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	sendto(fd, message, strlen(message), MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&to,
	       size);
	close(fd);
}
