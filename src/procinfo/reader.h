/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader: a helper process (base/helper.h) that reads process info into memory that it shares
 * with the pool.
 *
 * The pool sends a question. The child reads the fields that cannot block and asks for permission
 * to read the others. The pool sends a set of GP_PROCINFO_*. The child reads these and reports the
 * end. A field is valid as soon as its bit is set in `known`.
 */
#ifndef GP_PROCINFO_READER_H
#define GP_PROCINFO_READER_H

#include <limits.h>
#include <stdatomic.h>

#include "procinfo/procinfo.h"

#define GP_PROCINFO_CGROUP_MAX 16384u

/* Fields for which the kernel may have to call the user's own file system or page-fault handler. */
#define GP_PROCINFO_MEMORY ((uint32_t)GP_PROCINFO_CMDLINE | GP_PROCINFO_ENVIRON)
#define GP_PROCINFO_RISKY  ((uint32_t)GP_PROCINFO_EXE | GP_PROCINFO_MEMORY)

struct gp_procinfo_area {
	_Atomic uint32_t known, reading; /* GP_PROCINFO_*; `reading` has one bit, or none */
	uid_t uid[3];
	gid_t gid;
	uint32_t ngroups;
	bool other_pidns, cgroup_trusted, exe_trusted;
	char comm[16];
	gid_t group[GP_PROCINFO_GROUPS_MAX];
	char cgroup[GP_PROCINFO_CGROUP_MAX];
	char exe[PATH_MAX];
	char cmdline[GP_PROCINFO_CMDLINE_MAX + 1];
	uint32_t environ_size;
	char environ[GP_PROCINFO_ENVIRON_MAX + 1];
};

struct gp_procinfo_request {
	pid_t pid;
	uint64_t start_time;
	uint32_t want;
};

/* Messages of the child, one byte each. */
enum gp_procinfo_message {
	GP_PROCINFO_MAY_I = 'm',
	GP_PROCINFO_DONE = 'd',
	GP_PROCINFO_GONE = 'g', /* done; the process has ended, or its pid was reused */
};

/* Runs in the helper: answers requests from the socket. `area` is a struct gp_procinfo_area. */
void gp_procinfo_serve(int fd, void *area);

#endif
