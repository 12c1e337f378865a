/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts a process back by an undo record that another, perhaps dead, process wrote. The groups are
 * searched again. The record has their slices; a group that it does not list gets the slice of the
 * first group that it lists. The slices are set if the owner of the record may have changed them,
 * whatever RM reads back before.
 *
 * RM can deny for a while that a group or channel exists, and it would stay disabled for ever. So
 * an undo has succeeded only if each recorded group was found, or is gone by two kinds of answers,
 * and if a second search finds nothing more and reads everything back as enabled.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "gpu/nvidia/nvml.h"
#include "gpu/nvidia/target.h"

#define TRIES         3
#define ROUNDS        6 /* searches, until two agree */
#define PAUSE_US      20000
#define LOOK_PAUSE_US 1000
#define SEARCH_NS     (5 * GP_NS_PER_S) /* RM takes 4 us an index */
#define LATE_US       800000            /* a sample may be of work so long before it is read */
#define WORK_NS       (3 * GP_NS_PER_S / 2)
#define WORK_PAUSE_US 50000
#define NO_ANSWER     (GP_RM_ERRNO | EIO) /* RM does not name groups that must be there */

#define GROUPS_MAX    13

struct record {
	uint32_t gpu_id;
	uint32_t slice_us; /* for groups that are not listed */
	uint32_t n;
	struct {
		uint32_t client;
		uint32_t handle;
		uint32_t tsg_id;
		uint32_t slice_us;
	} group[GROUPS_MAX];
	uint8_t channels[GROUPS_MAX]; /* of each group; 0: not known */
};

/* Records of earlier versions end here. */
#define OLD_SIZE offsetof(struct record, channels)

static_assert(sizeof(struct record) <= sizeof((struct gp_undo *)0)->data, "fits an undo record");

void gp_nv_undo_record(const struct gp_nv_target *t, uint32_t gpu_id, struct gp_undo *undo)
{
	struct record r = {.gpu_id = gpu_id};

	undo->corrected = false;
	for (unsigned i = 0; i < t->ngroups; i++) {
		const struct gp_nv_group *g = &t->group[i];

		if (!g->compute || g->gpu_id != gpu_id)
			continue;
		undo->corrected |= g->slice_corrected;
		if (!r.n)
			r.slice_us = g->slice_found_us;
		if (r.n == GROUPS_MAX)
			break;
		r.group[r.n].client = g->client;
		r.group[r.n].handle = g->handle;
		r.group[r.n].tsg_id = g->tsg_id;
		r.channels[r.n] = (uint8_t)g->nchannels;
		r.group[r.n++].slice_us = g->slice_found_us;
	}
	undo->pid = t->pid;
	undo->start_time = t->start_time;
	undo->size = sizeof r;
	memcpy(undo->data, &r, sizeof r);
}

static uint32_t slice_of(const struct record *r, const struct gp_nv_group *g)
{
	for (uint32_t i = 0; i < r->n; i++)
		if (r->group[i].client == g->client && r->group[i].handle == g->handle)
			return r->group[i].slice_us;
	return r->slice_us;
}

/* The group with the handle of a recorded one, if it is the same. */
static struct gp_nv_group *find_recorded(struct gp_nv_target *t, const struct record *r, uint32_t i)
{
	for (unsigned k = 0; k < t->ngroups; k++)
		if (t->group[k].client == r->group[i].client &&
		    t->group[k].handle == r->group[i].handle &&
		    t->group[k].tsg_id == r->group[i].tsg_id)
			return &t->group[k];
	return NULL;
}

/* Whether RM denies a recorded group in two kinds of answers, or names another one, through every
 * file of the process. */
static bool is_gone(const struct gp_nv_target *t, const struct record *r, uint32_t i)
{
	uint32_t client = r->group[i].client, handle = r->group[i].handle;

	if (t->list_error || t->borrow_error)
		return false;
	for (unsigned f = 0; f < t->nfiles; f++) {
		struct nva06c_info info = {0};
		uint32_t class, status;

		if (t->borrowed[f] < 0)
			return false;
		class = gp_nv_class(t->borrowed[f], client, handle);
		status = gp_rm_control(t->borrowed[f], client, handle, NVA06C_CTRL_CMD_GET_INFO,
				       &info, sizeof info);
		if (class == GP_RM_UNKNOWN || (!status && info.tsg_id == r->group[i].tsg_id) ||
		    (status && !gp_rm_is_gone(status) && status != NV_ERR_INSUFFICIENT_PERMISSIONS))
			return false;
	}
	return true;
}

/* A recorded group computes, also if RM denies its compute object. If RM names fewer channels than
 * it had, the handle of the group replaces them. */
static void take_from_record(struct gp_nv_target *t, const struct record *r)
{
	for (uint32_t i = 0; i < r->n; i++) {
		struct gp_nv_group *g = find_recorded(t, r, i);

		if (!g)
			continue;
		g->compute = true;
		g->incomplete |= g->nchannels < r->channels[i];
	}
}

/* Whether each recorded group was found, or is gone. A process that RM lists as computing has a
 * group. A client of the process must be left: a program with a control file has one, and RM can
 * deny all clients for a while. */
static bool is_complete(struct gp_nv_target *t, const struct record *r)
{
	unsigned groups = 0;

	for (uint32_t i = 0; i < r->n; i++)
		if (!find_recorded(t, r, i) && !is_gone(t, r, i))
			return false;
	for (unsigned i = 0; i < t->ngroups; i++)
		groups += t->group[i].compute && t->group[i].gpu_id == r->gpu_id;
	if (!groups && r->n && (!t->nclients || gp_rm_lists(t->rm, t->pid) > 0))
		return false;
	return groups >= r->n || !gp_nv_is_doubtful(t);
}

/* Each client has a file of its own. If each file has a known client, no client is missing. */
static bool knows_all_files(const struct gp_nv_target *t)
{
	for (unsigned f = 0; f < t->nfiles; f++) {
		bool known = false;

		for (unsigned i = 0; i < t->nclients; i++)
			known |= t->client[i].file == t->file[f];
		if (!known)
			return false;
	}
	return true;
}

/* Searches the recorded clients first, which is often sufficient, then newer clients and a little
 * further back. Without a record, or with a full one, it searches far back. */
static void find_groups(struct gp_nv_target *t, const struct gp_rm *rm, const struct record *r)
{
	bool complete = r && r->n && r->n < GROUPS_MAX;

	for (uint32_t i = 0; r && i < r->n; i++)
		gp_nv_search_client(t, r->group[i].client);
	if (complete && knows_all_files(t))
		return;
	if (rm->fd < 0) {
		t->doubtful = true;
		return;
	}
	gp_nv_search_begin(t, rm->client);
	gp_nv_search(t, GP_NV_SEARCH_QUICK, complete);
	while (t->uses_cuda && !gp_nv_computes(t) && !gp_nv_is_doubtful(t) &&
	       gp_nv_search(t, GP_NV_SEARCH_QUICK, true))
		;
}

/* The number of compute groups that were found, and of their channels. */
static unsigned extent(const struct gp_nv_target *t)
{
	unsigned n = 0;

	for (unsigned i = 0; i < t->ngroups; i++)
		n += t->group[i].compute ? 1 + t->group[i].nchannels : 0;
	return n;
}

/* true: the search finds what the last one has found, and RM answers all its questions. */
static bool search_again(struct gp_nv_target *t, const struct record *r)
{
	unsigned before = extent(t);

	usleep(LOOK_PAUSE_US);
	find_groups(t, t->rm, r);
	gp_nv_rescan(t, true);
	if (r)
		take_from_record(t, r);
	for (unsigned i = 0; i < t->nclients; i++)
		if (t->client[i].doubtful)
			return false;
	return extent(t) == before;
}

/* Whether every group is enabled. */
static uint32_t read_all_back(struct gp_nv_target *t, uint32_t gpu_id)
{
	for (unsigned i = 0; i < t->ngroups; i++) {
		struct gp_nv_group *g = &t->group[i];

		if (!g->compute || g->gpu_id != gpu_id || gp_pidfd_ended(t->pidfd))
			continue;
		gp_nv_read_back(t, g);
		if (g->disabled)
			return GP_RM_NO_EFFECT;
		if (g->doubtful)
			return GP_RM_PARTLY;
		if (g->unread)
			return NO_ANSWER;
	}
	return NV_OK;
}

/* Enables all groups, then sets the slices. Goes on after an error and returns the first. */
static uint32_t restore_once(struct gp_nv_target *t, const struct record *r)
{
	uint32_t status;

	take_from_record(t, r);
	status = is_complete(t, r) ? NV_OK : NO_ANSWER;
	for (unsigned i = 0; i < t->ngroups; i++) {
		struct gp_nv_group_ref ref = {.target = t, .group = &t->group[i]};

		if (!t->group[i].compute || t->group[i].gpu_id != r->gpu_id)
			continue;
		gp_nv_switch(&ref, 1, false);
		status = status ? status : ref.status;
	}
	for (unsigned i = 0; i < t->ngroups; i++) {
		struct gp_nv_group *g = &t->group[i];
		uint32_t slice_us = slice_of(r, g), now;

		if (!g->compute || g->gpu_id != r->gpu_id || !slice_us)
			continue;
		g->slice_is_ours = true; /* it is not the original one */
		now = gp_nv_set_slice(t, g, slice_us);
		status = status ? status : now;
	}
	return status;
}

static uint32_t restore_surely(struct gp_nv_target *t, const struct record *r)
{
	uint32_t status = NO_ANSWER;

	for (int i = 0; i < ROUNDS; i++) {
		if (i)
			usleep(PAUSE_US);
		status = restore_once(t, r);
		/* A failure that RM reports is reported; the others are tried again. */
		if (status && !gp_rm_is_unproven(status) && status != NO_ANSWER)
			break;
		if (!search_again(t, r))
			status = status ? status : NO_ANSWER;
		else if (!status)
			status = read_all_back(t, r->gpu_id);
		if (!status || gp_pidfd_ended(t->pidfd))
			break;
	}
	return status;
}

/* Whether NVML has a sample after *newest_us in which the process worked. Updates *newest_us, which
 * is in NVML's own time. */
static bool has_worked(struct gp_nvml *nvml, void *device, pid_t pid, uint64_t *newest_us)
{
	struct gp_nvml_use use[256];
	int n = gp_nvml_use(nvml, device, *newest_us, use, 256);
	bool worked = false;

	for (int i = 0; i < n; i++) {
		worked |= use[i].pid == (uint32_t)pid && use[i].percent;
		if (use[i].at_us > *newest_us)
			*newest_us = use[i].at_us;
	}
	return worked;
}

/*
 * RM accepted the release, and does not tell the state of channels. The release counts if the
 * process works after it. Without NVML there is no other source than RM: the accepted call counts.
 */
static uint32_t see_work(const struct gp_nv_target *t, struct gp_nvml *nvml, void *device)
{
	uint64_t until_ns, newest_us = 0;

	if (!device || gp_nvml_use(nvml, device, 0, NULL, 0) < 0)
		return NV_OK;
	usleep(LATE_US);
	has_worked(nvml, device, t->pid, &newest_us); /* perhaps before the hold */
	until_ns = gp_monotonic_ns() + WORK_NS;
	while (gp_monotonic_ns() < until_ns && !gp_pidfd_ended(t->pidfd)) {
		if (has_worked(nvml, device, t->pid, &newest_us))
			return NV_OK;
		usleep(WORK_PAUSE_US);
	}
	return gp_pidfd_ended(t->pidfd) ? NV_OK : GP_RM_UNSEEN;
}

/* The status of a release that RM accepted. The borrowed files keep the memory of a process that
 * ends meanwhile, so they are given back first. */
static uint32_t prove_release(struct gp_nv_target *t)
{
	struct gp_nvml *nvml;
	char why[128], pci[16];
	uint32_t status;

	if (!gp_nv_is_untold(t) || !t->rm || !gp_rm_pci(t->rm, t->rm->gpu_id, pci))
		return NV_OK;
	gp_nv_target_give_back(t);
	nvml = gp_nvml_open(why, sizeof why);
	status = see_work(t, nvml, nvml ? gp_nvml_device(nvml, pci) : NULL);
	gp_nvml_close(nvml);
	return status;
}

static uint32_t restore(struct gp_nv_target *t, const struct record *r)
{
	uint32_t status = restore_surely(t, r);

	return status ? status : prove_release(t);
}

/* RM without a client, or without its diagnostic object, cannot read back; the rest works. */
static void open_rm(struct gp_rm *rm, const struct record *r)
{
	if (!gp_rm_open(rm, NULL) && r)
		gp_rm_open_gpu(rm, r->gpu_id, NULL);
}

/* Opens a target and finds its groups. 0 or -errno. The caller closes the target after 0. */
static int open_with_groups(struct gp_nv_target *t, struct gp_rm *rm, pid_t pid,
			    const struct record *r, struct gp_error *err)
{
	int code = gp_nv_target_open(t, pid, NULL, err);

	if (code)
		return code;
	t->rm = rm;
	code = gp_nv_target_borrow(t);
	if (!code) {
		find_groups(t, rm, r);
		return 0;
	}
	gp_nv_target_close(t);
	if (code == -EPERM || code == -EACCES)
		return gp_process_denied(err, pid, code);
	return gp_fail(err, code, "process %d cannot be reached: %s", pid, gp_error_name(code));
}

/* A search for a process that inherited the recorded groups from the process that ended. */
struct heir {
	const struct record *record;
	struct gp_rm *rm;
	pid_t pid; /* of the record; a process that has this pid now is another */
	uint32_t status;
	bool found;
	bool doubtful; /* whether a process has the groups is not known */
};

/* Client handles are reused, so the group must match the record, too. */
static bool has_recorded_group(struct gp_nv_target *t, const struct record *r)
{
	for (uint32_t i = 0; i < r->n; i++) {
		if (!gp_nv_search_client(t, r->group[i].client))
			continue;
		if (find_recorded(t, r, i))
			return true;
	}
	return false;
}

/* Whether a process with this error may be the heir. A process that must not be examined is not:
 * its parent could not have been changed. */
static bool may_be_heir(int error)
{
	return error && error != -ESRCH && error != -ENODEV && error != -EPERM && error != -EACCES;
}

static int try_heir(void *arg, pid_t pid)
{
	struct heir *h = arg;
	struct gp_nv_target t;
	int r;

	if (pid == getpid() || pid == h->pid || gp_process_is_gpreempt(pid))
		return 0;
	r = gp_nv_target_open(&t, pid, NULL, NULL);
	if (r) {
		h->doubtful |= may_be_heir(r);
		return 0;
	}
	t.rm = h->rm;
	r = gp_nv_target_borrow(&t);
	if (!r) {
		h->found = has_recorded_group(&t, h->record);
		if (h->found)
			h->status = restore(&t, h->record);
	}
	if (!gp_pidfd_ended(t.pidfd))
		h->doubtful |= r ? may_be_heir(r) : gp_nv_is_doubtful(&t);
	gp_nv_target_close(&t);
	return h->found;
}

/* RM lists the process that made a group, as long as the group exists, also if it has ended. */
static bool is_still_listed(const struct gp_undo *undo, const struct gp_rm *rm)
{
	uint64_t start_time = gp_process_start_time(undo->pid);

	if (start_time && start_time != undo->start_time)
		return false; /* another process has the pid now */
	return gp_rm_lists(rm, undo->pid) > 0;
}

/* A forked child has the same open file, which keeps the queues alive. */
static int replay_on_heir(const struct gp_undo *undo, struct gp_rm *rm, const struct record *r,
			  struct gp_error *err)
{
	struct heir h = {.record = r, .rm = rm, .pid = undo->pid};

	if (gp_process_each(try_heir, &h) < 0)
		h.doubtful = true;
	if (!h.found && (h.doubtful || is_still_listed(undo, rm)))
		return gp_fail(err, -EIO,
			       "process %d has ended or closed its GPU files; whether another "
			       "process inherited its queues is not known",
			       undo->pid);
	if (!h.found)
		return gp_fail(err, -ESRCH,
			       "process %d has ended or closed its GPU files, and no process "
			       "inherited its queues",
			       undo->pid);
	if (h.status)
		return gp_fail(err, gp_rm_errno(h.status),
			       "the process that inherited the queues of process %d cannot be put "
			       "back: %s",
			       undo->pid, gp_rm_status_name(h.status));
	return 0;
}

static int replay_on_process(const struct gp_undo *undo, struct gp_rm *rm, const struct record *r,
			     struct gp_error *err)
{
	struct gp_nv_target t;
	uint32_t status;
	int code = open_with_groups(&t, rm, undo->pid, r, err);

	if (code == -ESRCH || code == -ENODEV)
		return replay_on_heir(undo, rm, r, err);
	if (code)
		return code;
	status = t.start_time == undo->start_time ? restore(&t, r) : NV_OK;
	gp_nv_target_close(&t);
	if (status)
		return gp_fail(err, gp_rm_errno(status), "process %d cannot be put back: %s",
			       undo->pid, gp_rm_status_name(status));
	return 0;
}

/* 0: the slice is not set. */
static void forget_slices(struct record *r)
{
	r->slice_us = 0;
	for (uint32_t i = 0; i < GROUPS_MAX; i++)
		r->group[i].slice_us = 0;
}

int gp_nv_undo_replay(const struct gp_undo *undo, struct gp_error *err)
{
	struct record r = {0};
	struct gp_rm rm;
	int code;

	if (undo->size != sizeof r && undo->size != OLD_SIZE)
		return gp_fail(err, -EINVAL, "the undo record of process %d has a wrong size",
			       undo->pid);
	memcpy(&r, undo->data, undo->size);
	if (r.n > GROUPS_MAX || undo->pid <= 0)
		return gp_fail(err, -EINVAL, "the undo record of process %d is damaged", undo->pid);
	if (undo->hold_only)
		forget_slices(&r);
	open_rm(&rm, &r);
	if (gp_process_gone(undo->pid, undo->start_time))
		code = replay_on_heir(undo, &rm, &r, err);
	else
		code = replay_on_process(undo, &rm, &r, err);
	gp_rm_close(&rm);
	return code;
}

/* Opens the GPU if it is not open: the state of its channels can be read back then. */
static void open_gpu(struct gp_rm *rm, uint32_t gpu_id)
{
	if (rm->fd >= 0 && rm->gpu_id == gpu_id && rm->device)
		return;
	gp_rm_close(rm);
	if (!gp_rm_open(rm, NULL))
		gp_rm_open_gpu(rm, gpu_id, NULL);
}

/* Enables a group and resets a tiny slice. */
static uint32_t release_group(struct gp_nv_target *t, struct gp_rm *rm, struct gp_nv_group *g)
{
	struct gp_nv_group_ref ref = {.target = t, .group = g};

	open_gpu(rm, g->gpu_id);
	for (int i = 0; i < TRIES; i++) {
		if (i)
			usleep(PAUSE_US);
		gp_nv_switch(&ref, 1, false);
		if (!ref.status && g->slice_us <= GP_TINY_SLICE_US)
			ref.status = gp_nv_set_slice(t, g, GP_NV_SLICE_DEFAULT_US);
		if (!gp_rm_is_unproven(ref.status))
			break;
	}
	return ref.status;
}

/* Whether a process of which no compute group was found has one: RM lists it. Without the list, a
 * program with a control file has a client. */
static bool seems_to_compute(const struct gp_nv_target *t, struct gp_rm *rm)
{
	uint32_t id[32];
	int n = rm->fd < 0 ? 0 : gp_rm_gpus(rm, id), listed = -ENOTSUP;

	for (int i = 0; i < n && listed <= 0; i++) {
		open_gpu(rm, id[i]);
		listed = rm->fd < 0 ? -EIO : gp_rm_lists(rm, t->pid);
	}
	return listed < 0 ? !knows_all_files(t) : listed;
}

/* Enables all compute groups. *groups: their number. */
static uint32_t release_groups(struct gp_nv_target *t, struct gp_rm *rm, int *groups)
{
	uint32_t status = NV_OK;

	*groups = 0;
	for (unsigned i = 0; i < t->ngroups; i++) {
		uint32_t now;

		if (!t->group[i].compute)
			continue;
		now = release_group(t, rm, &t->group[i]);
		status = status ? status : now;
		++*groups;
	}
	return !*groups && (gp_nv_is_doubtful(t) || seems_to_compute(t, rm)) ? NO_ANSWER : status;
}

/* For a process that computes, and whose client is older than the last GP_NV_SEARCH_QUICK. */
static void search_far(struct gp_nv_target *t)
{
	uint64_t until_ns = gp_monotonic_ns() + SEARCH_NS;

	while (!gp_nv_computes(t) && !gp_nv_is_doubtful(t) && gp_monotonic_ns() < until_ns &&
	       gp_nv_search(t, GP_NV_SEARCH_QUICK, true))
		;
}

static bool has_tiny_slice(const struct gp_nv_target *t)
{
	for (unsigned i = 0; i < t->ngroups; i++)
		if (t->group[i].compute && t->group[i].slice_us <= GP_TINY_SLICE_US)
			return true;
	return false;
}

/* The same until two searches agree, and two readings of the slices. */
static uint32_t release_surely(struct gp_nv_target *t, struct gp_rm *rm, int *groups)
{
	uint32_t status = NO_ANSWER;

	if (!gp_nv_computes(t) && !gp_nv_is_doubtful(t) && seems_to_compute(t, rm))
		search_far(t);
	for (int i = 0; i < ROUNDS; i++) {
		if (i)
			usleep(PAUSE_US);
		status = release_groups(t, rm, groups);
		if ((status && status != NO_ANSWER) || gp_pidfd_ended(t->pidfd))
			break;
		if (!search_again(t, NULL))
			status = NO_ANSWER;
		if (!status && !has_tiny_slice(t))
			break;
	}
	return status;
}

int gp_nv_release_process(pid_t pid, bool *released, struct gp_error *err)
{
	struct gp_nv_target t;
	uint32_t status;
	struct gp_rm rm;
	int groups, code;

	(void)released;
	open_rm(&rm, NULL);
	code = open_with_groups(&t, &rm, pid, NULL, err);
	if (code) {
		gp_rm_close(&rm);
		return code;
	}
	status = release_surely(&t, &rm, &groups);
	if (!status)
		status = prove_release(&t);
	gp_nv_target_close(&t);
	gp_rm_close(&rm);
	if (status)
		return gp_fail(err, gp_rm_errno(status), "process %d cannot be released: %s", pid,
			       gp_rm_status_name(status));
	return groups;
}
