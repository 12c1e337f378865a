/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt doctor for AMD: what can be used, what is missing, the reason and the remedy. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "gpu/amd/amd_device.h"
#include "gpu/finding.h"

static const char *driver_advice(int code)
{
	switch (code) {
	case -ENOTSUP: return "use Linux 6.5 or later";
	case -EPROTONOSUPPORT: return "use a version of gpreempt that knows this interface";
	case -EBUSY: return "try again in a few seconds; the kernel's log has the reason";
	case -EPROTO: return "see the kernel log (dmesg), or reload amdgpu";
	default: return "run as root, or as a member of the group `render`";
	}
}

/* Asks for a debug session of this process, which it does not have. A driver that does the call
 * refuses it. */
static int check_answers(int kfd, struct gp_error *err)
{
	if (gp_kfd_has_session(kfd, getpid()) != -EPROTO)
		return 0;
	return gp_fail(err, -EPROTO,
		       "amdkfd answers calls of its debugger interface without doing them, so no "
		       "process can be suspended");
}

static bool check_driver(const struct gp_reporter *to)
{
	struct gp_error err = {0};
	struct kfd_version version = {0};
	int kfd = gp_kfd_open(&err), r = kfd < 0 ? kfd : gp_kfd_version(kfd, &version);

	if (!r)
		r = check_answers(kfd, &err);
	if (kfd >= 0)
		close(kfd);
	if (!r) {
		gp_report(to, GP_FINDING_OK, "driver", NULL, "amdkfd, interface %u.%u",
			  version.major, version.minor);
		return true;
	}
	if (r == -ENOENT)
		gp_report(to, GP_FINDING_NOTE, "driver", NULL, "%s", err.text);
	else
		gp_report(to, GP_FINDING_MISSING, "driver", driver_advice(r), "%s", err.text);
	return false;
}

/* GPUs without debug support in any firmware: before gfx9, and two APUs. */
static bool never_suspends(const struct gp_amd_node *node)
{
	return node->gfx < 90000 || node->gfx == 100103 || node->gfx == 100303;
}

static void report_no_suspend(const struct gp_reporter *to, const struct gp_amd_node *node,
			      const char *gfx)
{
	if (never_suspends(node))
		gp_report(to, GP_FINDING_MISSING, "suspend",
			  "hide this GPU from the programs to be held (a container without its "
			  "device files), or remove it",
			  "%s: this kind of GPU cannot suspend queues with any firmware, and "
			  "programs that can see it cannot be suspended on any GPU",
			  gfx);
	else
		gp_report(to, GP_FINDING_MISSING, "suspend",
			  "install newer firmware for this GPU (linux-firmware, "
			  "firmware-amd-graphics)",
			  "%s: its firmware cannot suspend queues, and ROCm then does not enable "
			  "suspends on any GPU of the machine",
			  gfx);
}

static void check_node(const struct gp_reporter *to, const struct gp_amd_node *node)
{
	char gfx[16];

	gp_amd_gfx_name(node, gfx, sizeof gfx);
	gp_report(to, GP_FINDING_OK, "gpu", NULL, "%s (%s), %u compute units, %u XCC%s, id %u", gfx,
		  *node->name ? node->name : "unnamed", node->compute_units, node->xccs,
		  node->xccs == 1 ? "" : "s", node->gpu_id);
	if (!gp_amd_can_suspend(node)) {
		report_no_suspend(to, node, gfx);
		return;
	}
	if (gp_amd_has_mes(node))
		gp_report(to, GP_FINDING_OK, "suspend", NULL, "%s: queues are suspended one by one",
			  gfx);
	else
		gp_report(to, GP_FINDING_NOTE, "suspend", NULL,
			  "%s: each suspend and each resume stops every queue of the GPU for a "
			  "moment, the latency-critical ones too",
			  gfx);
	if (!gp_amd_chip_debugs_many(node))
		gp_report(
			to, GP_FINDING_WARNING, "processes",
			"name one best-effort process; services are watched without attaching",
			"%s: only one process at a time can be held or debugged, on any GPU of the "
			"machine",
			gfx);
	if (node->gfx >= 110000 && node->gfx <= 110003)
		gp_report(
			to, GP_FINDING_WARNING, "compute units", NULL,
			"%s: the driver halves the compute units of a process while it is attached",
			gfx);
}

/* `one_slot`: a GPU has one debug slot, which held processes need; services cannot be attached to.
 */
static void check_sources(const struct gp_reporter *to, bool one_slot)
{
	char path[320];
	int fd;

	snprintf(path, sizeof path, "%s/mqds", gp_amd_debugfs());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		close(fd);
		gp_report(to, GP_FINDING_OK, "activity", NULL,
			  "the queues of processes can be watched without attaching to them");
	} else {
		gp_report(to, one_slot ? GP_FINDING_WARNING : GP_FINDING_NOTE, "activity",
			  geteuid() ? "run as root" : "mount debugfs, or switch lockdown off",
			  "%s cannot be read (%s): %s", path, gp_error_name(-errno),
			  one_slot ? "the work of services cannot be seen on a GPU that debugs one "
				     "process at a time"
				   : "gpreempt must attach to a process to see its activity");
	}
}

/* Other ways to take queues off the GPU: the one that the library offers, and those that gpreempt
 * does not offer, with the reason. */
static void report_other_ways(const struct gp_reporter *to)
{
	gp_report(to, GP_FINDING_OK, "from inside", NULL,
		  "a program that links the library can take its own queues off the GPU: "
		  "gpreempt_hold_self(3)");
	gp_report(to, GP_FINDING_NOTE, "cu masks", NULL,
		  "not offered: they preempt nothing, and cannot be put back, because the driver "
		  "does "
		  "not show the mask of a queue");
	gp_report(to, GP_FINDING_NOTE, "criu pause", NULL,
		  "not offered: the queues stay paused if the process that paused them dies");
	gp_report(to, GP_FINDING_NOTE, "whole device", NULL,
		  "stopping a whole GPU is not offered: the kernel's means (enforce_isolation, "
		  "hang_hws) cannot be undone, or reset the GPU");
	gp_report(to, GP_FINDING_NOTE, "reset", NULL,
		  "stopping a queue by a reset is not offered: its program would lose its work");
}

void gp_amd_doctor(gp_finding_fn *say, void *arg)
{
	struct gp_reporter to = {.say = say, .arg = arg};
	struct gp_amd_node node[GP_AMD_NODES_MAX];
	bool one_slot = false;
	int n;

	if (!check_driver(&to))
		return;
	if (!gp_amd_sees_host_pids()) {
		gp_report(&to, GP_FINDING_MISSING, "processes",
			  "run it on the host, or in a container with the host's pid namespace",
			  "amdkfd names processes by the host's numbers, which are not valid here: "
			  "run "
			  "in the host's pid namespace");
		return;
	}
	n = gp_amd_nodes(node, GP_AMD_NODES_MAX);
	if (n <= 0) {
		gp_report(&to, GP_FINDING_MISSING, "gpu", NULL,
			  n < 0 ? "%s cannot be read" : "amdkfd has no GPU in %s", gp_amd_sysfs());
		return;
	}
	for (int i = 0; i < n && i < GP_AMD_NODES_MAX; i++) {
		check_node(&to, &node[i]);
		one_slot |= !gp_amd_debugs_many(&node[i]);
	}
	gp_report_rights(&to);
	check_sources(&to, one_slot);
	report_other_ways(&to);
}
