/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt doctor for NVIDIA: what can be used, what is missing, the reason and the remedy. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "gpu/finding.h"
#include "gpu/nvidia/nvidia_backend.h"
#include "gpu/nvidia/ctxsw.h"
#include "gpu/nvidia/nvml.h"
#include "gpu/nvidia/target.h"

#define EXAMINED_MAX 4 /* processes */
#define EXAMINE_NS   (3 * GP_NS_PER_S)

/* Older drivers lack the firmware that disables channels. */
static void check_version(const struct gp_reporter *to, const struct gp_rm *rm)
{
	long branch = strtol(rm->version, NULL, 10);

	if (branch >= 550)
		gp_report(to, GP_FINDING_OK, "driver", NULL, "NVIDIA driver %s", rm->version);
	else
		gp_report(to, GP_FINDING_WARNING, "driver", "use a driver of branch 550 or later",
			  "NVIDIA driver %s was not tested",
			  *rm->version ? rm->version : "(unknown)");
}

static void check_sources(const struct gp_reporter *to, const struct gp_rm *rm)
{
	struct gp_error err = {0};
	struct gp_ctxsw ctxsw;

	if (rm->diag)
		gp_report(to, GP_FINDING_OK, "holds", NULL,
			  "the hardware confirms that a channel is held or runs");
	else
		gp_report(to, GP_FINDING_NOTE, "holds", NULL,
			  "the driver reports holds; the hardware does not confirm them");
	if (!gp_ctxsw_open(&ctxsw, rm, &err)) {
		gp_ctxsw_close(&ctxsw);
		gp_report(to, GP_FINDING_OK, "activity", NULL,
			  "run times are measured from the firmware's records of context switches");
	} else {
		gp_report(to, GP_FINDING_NOTE, "activity",
			  geteuid() ? "run as root to see every process's switches" : NULL, "%s",
			  err.text);
	}
}

/* Whether the compute queues of a process can be found. -EIO: RM does not name them. */
static int examine(const struct gp_rm *rm, pid_t pid)
{
	uint64_t until_ns = gp_monotonic_ns() + EXAMINE_NS;
	struct gp_nv_target t;
	int r = gp_nv_target_open(&t, pid, NULL, NULL);

	if (r)
		return r;
	r = gp_nv_target_borrow(&t);
	gp_nv_search_begin(&t, rm->client);
	while (!r && !gp_nv_computes(&t) && !gp_nv_is_doubtful(&t) &&
	       gp_nv_search(&t, GP_NV_SEARCH_QUICK, true) && gp_monotonic_ns() < until_ns)
		;
	if (!r && !gp_nv_computes(&t) && !gp_pidfd_ended(t.pidfd))
		r = -EIO;
	gp_nv_target_close(&t);
	return r;
}

/* RM lists the processes that compute; each of them has a queue. */
static void check_processes(const struct gp_reporter *to, const struct gp_rm *rm)
{
	struct nv2080_pids pids;
	int n = gp_rm_pids(rm, &pids);

	for (int i = 0; i < n && i < EXAMINED_MAX; i++) {
		pid_t pid = (pid_t)pids.pid[i];

		if (pid <= 0 || pid == getpid() || examine(rm, pid) != -EIO ||
		    gp_rm_lists(rm, pid) <= 0) /* it may have ended its GPU work meanwhile */
			continue;
		gp_report(to, GP_FINDING_MISSING, "queues",
			  "look for messages of the driver in the kernel's log",
			  "the NVIDIA driver does not name the compute queues of process %d", pid);
		return;
	}
}

static void check_nvml_device(const struct gp_reporter *to, struct gp_nvml *nvml, const char *pci,
			      void **device)
{
	char name[64];
	int mig;

	*device = gp_nvml_device(nvml, pci);
	if (!*device)
		return;
	if (gp_nvml_name(nvml, *device, name, sizeof name))
		gp_report(to, GP_FINDING_OK, "gpu", NULL, "%s at %s", name, pci);
	if (gp_nvml_use(nvml, *device, 0, NULL, 0) < 0)
		gp_report(to, GP_FINDING_NOTE, "utilisation", NULL,
			  "NVML does not report the use of this GPU by process");
	mig = gp_nvml_mig_instances(nvml, *device);
	if (mig >= 0)
		gp_report(to, GP_FINDING_WARNING, "mig",
			  "instances are isolated by hardware; gpreempt schedules inside one",
			  "MIG is on, with %d instances: gpreempt was not tested with it", mig);
}

static void check_gpus(const struct gp_reporter *to, const struct gp_rm *own)
{
	char why[128] = "", pci[16] = "";
	struct gp_nvml *nvml = gp_nvml_open(why, sizeof why);
	uint32_t id[32];
	int n = gp_rm_gpus(own, id);

	if (!nvml)
		gp_report(to, GP_FINDING_NOTE, "nvml", "install the driver's libnvidia-ml",
			  "names, memory and utilisation are not known: %s", why);
	for (int i = 0; i < n; i++) {
		struct gp_error err = {0};
		void *device = NULL;
		struct gp_rm rm;

		if (gp_rm_open(&rm, &err))
			continue;
		gp_rm_pci(&rm, id[i], pci);
		if (nvml)
			check_nvml_device(to, nvml, pci, &device);
		if (!device)
			gp_report(to, GP_FINDING_OK, "gpu", NULL, "an NVIDIA GPU at %s", pci);
		if (gp_rm_open_gpu(&rm, id[i], &err))
			gp_report(to, GP_FINDING_NOTE, "activity",
				  "check that /dev/nvidiaN exists and that this user may read it",
				  "%s", err.text);
		else
			check_sources(to, &rm);
		check_processes(to, &rm);
		gp_rm_close(&rm);
	}
	if (n < 0)
		gp_report(to, GP_FINDING_MISSING, "gpu", NULL,
			  "the NVIDIA driver does not list its GPUs: %s", gp_error_name(n));
	if (n == 0)
		gp_report(to, GP_FINDING_MISSING, "gpu", NULL,
			  "the NVIDIA driver is loaded, but lists no GPU");
	gp_nvml_close(nvml);
}

void gp_nv_doctor(gp_finding_fn *say, void *arg)
{
	struct gp_reporter to = {.say = say, .arg = arg};
	struct gp_error err = {0};
	struct gp_rm rm;
	int r = gp_rm_open(&rm, &err);

	if (r) {
		gp_report(&to, GP_FINDING_MISSING, "driver",
			  r == -ENODEV ? "install the NVIDIA driver, or, in a container, pass the "
					 "device in"
				       : "make the file readable and writable for this user",
			  "%s", err.text);
		return;
	}
	check_version(&to, &rm);
	gp_report_rights(&to);
	check_gpus(&to, &rm);
	gp_rm_close(&rm);
}
