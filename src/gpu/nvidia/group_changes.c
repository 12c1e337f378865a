/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes to channel groups. Each change first verifies that the group is still the same, and then
 * reads back the effect: RM can accept a change and do nothing, or fail after it has done it.
 */
#include "base/process.h"
#include "gpu/nvidia/target.h"

static void drop_ended_channels(int fd, struct gp_nv_group *g)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < g->nchannels; i++) {
		uint32_t parent = gp_rm_parent(fd, g->client, g->channel[i]);

		if (parent == g->handle || parent == GP_RM_UNKNOWN)
			g->channel[kept++] = g->channel[i];
	}
	g->nchannels = kept;
}

/* Whether the group still has its class and hardware number: an RM status. The borrowed file keeps
 * the memory of a process that has ended, so no call is made for such a process. */
static uint32_t check_group(struct gp_nv_target *t, struct gp_nv_group *g)
{
	int fd = gp_nv_file(t, g->client);
	struct nva06c_info info = {0};
	uint32_t class, status;

	if (fd < 0 || gp_pidfd_ended(t->pidfd))
		return NV_ERR_OBJECT_NOT_FOUND;
	class = gp_rm_class(fd, g->client, g->handle);
	if (class == GP_RM_UNKNOWN)
		return GP_RM_ERRNO | EIO;
	if (class != KEPLER_CHANNEL_GROUP_A)
		return NV_ERR_OBJECT_NOT_FOUND;
	status = gp_rm_control(fd, g->client, g->handle, NVA06C_CTRL_CMD_GET_INFO, &info,
			       sizeof info);
	if (status)
		return status;
	drop_ended_channels(fd, g);
	return info.tsg_id == g->tsg_id ? NV_OK : NV_ERR_OBJECT_NOT_FOUND;
}

/* Reads back the slice. RM returns the requested value, not the one that it has rounded. */
static bool read_slice(struct gp_nv_target *t, struct gp_nv_group *g)
{
	struct nva06c_timeslice p = {0};

	if (gp_rm_control(gp_nv_file(t, g->client), g->client, g->handle,
			  NVA06C_CTRL_CMD_GET_TIMESLICE, &p, sizeof p) ||
	    !p.us)
		return false;
	g->slice_us = p.us > UINT32_MAX ? UINT32_MAX : (uint32_t)p.us;
	return true;
}

/*
 * Before the first change: the slice must be the one in the undo record, or -EAGAIN; the caller
 * tries again with a new record. *has: the group has the new slice already. A call would change
 * nothing then, or, if RM reads back a wrong value, something that could not be put back.
 */
static uint32_t check_original(struct gp_nv_target *t, struct gp_nv_group *g, uint32_t slice_us,
			       bool *has)
{
	uint32_t own_us;

	if (g->slice_is_ours || !read_slice(t, g))
		return NV_OK;
	own_us = gp_nv_own_slice(g->slice_us);
	*has = g->slice_us == slice_us;
	if (own_us != g->slice_found_us) {
		g->slice_found_us = own_us;
		g->slice_corrected = true;
		return GP_RM_ERRNO | EAGAIN;
	}
	return NV_OK;
}

uint32_t gp_nv_set_slice(struct gp_nv_target *t, struct gp_nv_group *g, uint32_t slice_us)
{
	struct nva06c_timeslice p = {.us = slice_us};
	uint32_t status = check_group(t, g);
	bool has = false;

	status = status ? status : check_original(t, g, slice_us, &has);
	if (status || has)
		return status;
	g->slice_is_ours |= slice_us != g->slice_found_us; /* also if the call fails */
	status = gp_rm_control(gp_nv_file(t, g->client), g->client, g->handle,
			       NVA06C_CTRL_CMD_SET_TIMESLICE, &p, sizeof p);
	if (!status)
		g->slice_us = slice_us;
	if (read_slice(t, g) && g->slice_us != slice_us && !status)
		status = GP_RM_NO_EFFECT;
	if (!status)
		g->slice_is_ours = slice_us != g->slice_found_us;
	if (status != GP_RM_NO_EFFECT)
		return status;
	/* The call changed nothing, or the values that RM reads back are wrong. The value that was
	 * read before may be wrong then, too, and must not be set. */
	g->slice_found_us = GP_NV_SLICE_DEFAULT_US;
	g->slice_corrected = true;
	return status;
}

uint32_t gp_nv_set_mode(struct gp_nv_target *t, struct gp_nv_group *g, unsigned mode)
{
	struct nv2080_preemption_mode p = {
		.flags = NV2080_PREEMPTION_FLAGS_COMPUTE,
		.channel_or_group = g->handle,
		.compute_mode = mode,
	};

	uint32_t status = check_group(t, g);

	if (status)
		return status;
	g->mode_is_ours = true;
	return gp_rm_control(gp_nv_file(t, g->client), g->client, g->subdevice,
			     NV2080_CTRL_CMD_GR_SET_CTXSW_PREEMPTION_MODE, &p, sizeof p);
}

uint32_t gp_nv_get_interleave(struct gp_nv_target *t, const struct gp_nv_group *g, uint32_t *level)
{
	struct nva06c_interleave p = {0};
	uint32_t status;

	status = gp_rm_control(gp_nv_file(t, g->client), g->client, g->handle,
			       NVA06C_CTRL_CMD_GET_INTERLEAVE_LEVEL, &p, sizeof p);
	*level = p.level;
	return status;
}

/* One call for the listed channels, through the file and subdevice of `via`. */
static uint32_t send(const struct gp_nv_group_ref *via, struct nv2080_disable_channels *p)
{
	if (!p->count)
		return NV_OK;
	if (gp_pidfd_ended(via->target->pidfd))
		return NV_ERR_INVALID_CLIENT;
	return gp_rm_control(gp_nv_file(via->target, via->group->client), via->group->client,
			     via->group->subdevice, NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS, p,
			     sizeof *p);
}

/* Switches the groups whose status is 0, with as few calls as possible. */
static uint32_t switch_together(struct gp_nv_group_ref *ref, unsigned n, bool disable)
{
	struct nv2080_disable_channels p = {.disable = disable};
	const struct gp_nv_group_ref *via = NULL;
	uint32_t status = NV_OK;
	bool whole;

	for (unsigned i = 0; i < n; i++) {
		const struct gp_nv_group *g = ref[i].group;

		if (ref[i].status)
			continue;
		via = via ? via : &ref[i];
		/* If not all channels are known, the group handle replaces its channels. */
		whole = g->ncontexts > g->nchannels || !g->nchannels;
		for (unsigned k = 0; k < (whole ? 1 : g->nchannels) && !status; k++) {
			p.client[p.count] = g->client;
			p.channel[p.count++] = whole ? g->handle : g->channel[k];
			if (p.count < NV2080_DISABLE_CHANNELS_MAX)
				continue;
			status = send(via, &p);
			p.count = 0;
		}
	}
	return status || !via ? status : send(via, &p);
}

/*
 * Whether the group may be switched. A release is also tried if RM does not confirm that the group
 * is the same: the file belongs to the process, and enabled channels harm no other process.
 */
static bool is_switchable(struct gp_nv_group_ref *ref, bool disable)
{
	ref->status = check_group(ref->target, ref->group);
	if (!disable && ref->status && !gp_rm_is_gone(ref->status))
		ref->status = NV_OK;
	return !ref->status;
}

/* 1, 0, or -errno: not known. */
static int is_disabled(const struct gp_nv_target *t, const struct gp_nv_group *g, unsigned i)
{
	/* The borrowed file keeps the memory of a process that has ended. */
	int enabled = t->rm && t->rm->gpu_id == g->gpu_id && !gp_pidfd_ended(t->pidfd)
			      ? gp_rm_is_enabled(t->rm, g->client, g->channel[i])
			      : -ENOTSUP;

	return enabled < 0 ? enabled : !enabled;
}

/*
 * RM accepted a hold, and reads back that the channels run: the process has enabled them, or RM is
 * wrong. They are enabled here, so that the group runs for certain.
 */
static void give_up_hold(struct gp_nv_target *t, struct gp_nv_group *g)
{
	struct gp_nv_group_ref ref = {.target = t, .group = g};

	g->asked_disable = false;
	g->doubtful = switch_together(&ref, 1, false);
}

void gp_nv_read_back(struct gp_nv_target *t, struct gp_nv_group *g)
{
	int first, last;

	if (!g->nchannels)
		return;
	last = is_disabled(t, g, g->nchannels - 1); /* newer channels are the last */
	first = g->nchannels > 1 && last >= 0 ? is_disabled(t, g, 0) : last;
	if (first < 0 || last < 0)
		return;
	/* If only a part was switched, the last change is not in force. */
	g->disabled = first == last ? last : !g->asked_disable;
	g->contradicted &= g->disabled;
	g->doubtful = g->contradicted;
	g->unread = false;
	if (g->asked_disable && !g->disabled)
		give_up_hold(t, g);
}

/*
 * Compares a change with its effect. A call switches the channels in order, so the last one shows
 * whether all were switched. A release that failed, but is in force, is good. A hold that failed
 * is not: the channels can be disabled, and their work still be on the hardware.
 */
static void take_effect(struct gp_nv_group_ref *ref, bool disable)
{
	struct gp_nv_group *g = ref->group;
	int is = -ENOTSUP;

	g->asked_disable = disable;
	g->contradicted = false;
	if (ref->status) {
		g->doubtful = true;
		gp_nv_read_back(ref->target, g);
		if (!disable && !g->doubtful && !g->disabled)
			ref->status = NV_OK;
		return;
	}
	if (g->nchannels)
		is = is_disabled(ref->target, g, g->nchannels - 1);
	g->disabled = is < 0 ? disable : is;
	g->doubtful = g->unread = false;
	if (g->disabled == disable)
		return;
	ref->status = GP_RM_NO_EFFECT;
	if (disable)
		give_up_hold(ref->target, g);
	else
		g->contradicted = g->doubtful = true; /* which of the two is true is not known */
}

void gp_nv_switch(struct gp_nv_group_ref *ref, unsigned n, bool disable)
{
	bool good = false, failed;

	for (unsigned i = 0; i < n; i++) {
		ref[i].tried = is_switchable(&ref[i], disable);
		good |= ref[i].tried;
	}
	failed = good && switch_together(ref, n, disable);
	/* A failed call has switched the entries before the one that failed. */
	for (unsigned i = 0; failed && i < n; i++)
		if (ref[i].tried && is_switchable(&ref[i], disable))
			ref[i].status = switch_together(&ref[i], 1, disable);
	for (unsigned i = 0; i < n; i++)
		if (ref[i].tried)
			take_effect(&ref[i], disable);
}
