/* SPDX-License-Identifier: Apache-2.0 */
/* A build without json-c or ncursesw has no gpreempt top: it says so. */
#include "build_config.h"

#if !GP_HAVE_TOP

#include "cli/cli.h"

static int refuse(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	fputs("gpreempt: this build has no top: it was made without json-c or ncursesw; build it "
	      "again with libjson-c-dev and libncurses-dev\n",
	      stderr);
	return GP_EXIT_FAILED;
}

const struct gp_verb gp_verb_top = {"top", "the daemon's tasks, live, and keys to steer them",
                                    refuse};

#endif
