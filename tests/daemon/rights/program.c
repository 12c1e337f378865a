/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rights-program [--memfd] [--comm NAME] [--bind FILE ONTO] [--delete] [--socket PATH]
 * [WORD...]: a program with a
 * queue on the simulated GPU, which calls itself what it likes. Says `ready` and waits to be
 * killed.
 *
 * --bind: starts ONTO again where FILE seems to stand there: in a user and mount namespace of its
 * own. 77: users may not make any here.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "gpu/simclient/connection.h"

static void run_from_memory(char **argv)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int to = memfd_create("copied", MFD_CLOEXEC);

	while (sendfile(to, from, NULL, 1 << 20) > 0)
		;
	fexecve(to, argv, environ);
	perror("fexecve");
	exit(1);
}

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	if (!f || fputs(text, f) < 0 || fclose(f))
		exit(77);
}

/* argv: --bind FILE ONTO and what follows. */
static void run_behind_a_mount(char **argv)
{
	char users[32], groups[32];

	snprintf(users, sizeof users, "0 %u 1", getuid());
	snprintf(groups, sizeof groups, "0 %u 1", getgid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		exit(77);
	write_text("/proc/self/setgroups", "deny");
	write_text("/proc/self/uid_map", users);
	write_text("/proc/self/gid_map", groups);
	if (mount(argv[1], argv[2], NULL, MS_BIND, NULL)) {
		perror(argv[2]);
		exit(1);
	}
	execv(argv[2], argv + 2);
	perror(argv[2]);
	exit(1);
}

int main(int argc, char **argv)
{
	struct gp_simgpu_hello hello = {0};
	struct gp_error err = {0};
	char usual[GP_SIMGPU_PATH_SIZE];
	const char *path = gp_simgpu_path(usual, sizeof usual);

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--memfd"))
			run_from_memory((char *[]){argv[0], NULL});
		else if (!strcmp(argv[i], "--bind") && i + 2 < argc)
			run_behind_a_mount(argv + i);
		else if (!strcmp(argv[i], "--comm") && i + 1 < argc)
			prctl(PR_SET_NAME, argv[++i]);
		else if (!strcmp(argv[i], "--socket") && i + 1 < argc)
			path = argv[++i]; /* a set-uid program does not look into its environment */
		else if (!strcmp(argv[i], "--delete"))
			unlink(argv[0]);
	}
	if (gp_simgpu_join(path, &hello, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	if (write(STDOUT_FILENO, "ready\n", 6) != 6)
		return 1;
	for (;;)
		pause();
}
