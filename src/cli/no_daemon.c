/* SPDX-License-Identifier: Apache-2.0 */
/* A build without json-c cannot ask a daemon: what else it can do, it does as without one. */
#include "build_config.h"

#if !GP_HAVE_JSON

#include "cli/cli.h"
#include "cli/ask/with_daemon.h"

#define SENTENCE                                                                           \
	"gpreempt: this build cannot ask a daemon: it has no json-c; build it again with " \
	"libjson-c-dev\n"

static int refuse(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	fputs(SENTENCE, stderr);
	return GP_EXIT_FAILED;
}

static int refuse_to_run(int argc, char **argv)
{
	refuse(argc, argv);
	return 125; /* see daemon/run.c */
}

const struct gp_verb gp_verb_run = {"run", "start a command under the scheduler", refuse_to_run};
const struct gp_verb gp_verb_set = {
	"set", "change class, priority and the like of running processes", refuse};
const struct gp_verb gp_verb_events = {"events", "follow what the daemon sees and does", refuse};
const struct gp_verb gp_verb_trace = {
	"trace", "a timeline of what the daemon's tasks did, for Perfetto", refuse};

bool gp_daemon_ps(uint64_t for_ns, bool json, int *exit)
{
	(void)for_ns, (void)json, (void)exit;
	return false;
}

bool gp_daemon_stats(uint64_t for_ns, bool json, int *exit)
{
	(void)for_ns, (void)json, (void)exit;
	return false;
}

int gp_daemon_policies(char name[][GP_DAEMON_POLICY_SIZE], unsigned max)
{
	(void)name;
	(void)max;
	return -1;
}

void gp_daemon_show_policy(void)
{
}

int gp_daemon_set_policy(const char *text, int device, bool json)
{
	(void)text, (void)device, (void)json;
	return refuse(0, NULL);
}

bool gp_daemon_suspend(const struct gp_targets *targets, uint64_t for_ns, bool force, bool json,
                       int *exit)
{
	(void)targets, (void)for_ns, (void)force, (void)json, (void)exit;
	return false;
}

bool gp_daemon_resume(const struct gp_targets *targets, bool all, struct gp_daemon_released *out)
{
	(void)targets, (void)all, (void)out;
	return false;
}

#endif
