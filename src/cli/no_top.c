/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt top in a build without the daemon, which has no ncursesw: prints a message. */
#include "build_config.h"

#if !GP_HAVE_DAEMON

#include "cli/cli.h"

static int refuse(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	fputs("gpreempt: top is not in this build; configure it with -DGPREEMPT_DAEMON=ON\n",
	      stderr);
	return GP_EXIT_FAILED;
}

const struct gp_verb gp_verb_top = {"top", "not in this build", refuse};

#endif
