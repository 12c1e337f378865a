/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes to channel groups. Each change first verifies that the group is still the same, and then
 * reads back the effect: RM can accept a change and do nothing, or fail after it has done it.
 */
#include "base/process.h"
#include "gpu/nvidia/target.h"

/* RM can deny once that a channel exists. A channel that gpreempt has disabled must not be
 * forgotten then, so this only says how to name the channels in the next call. */
static void note_denied_channels(int fd, struct gp_nv_group *g)
{
	for (unsigned i = 0; i < g->nchannels && !g->incomplete; i++) {
		uint32_t parent = gp_rm_parent(fd, g->client, g->channel[i]);

		g->incomplete = parent != g->handle && parent != GP_RM_UNKNOWN;
	}
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
	if (class && class != KEPLER_CHANNEL_GROUP_A)
		return NV_ERR_OBJECT_NOT_FOUND;
	/* Also if RM names no class: a group is gone if both calls say so. */
	status = gp_rm_control(fd, g->client, g->handle, NVA06C_CTRL_CMD_GET_INFO, &info,
			       sizeof info);
	if (status)
		return status;
	note_denied_channels(fd, g);
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

/* Whether the handle of the group replaces its channels: RM counts more than the search has found,
 * or does not count them. */
static bool is_switched_whole(const struct gp_nv_group *g)
{
	return !g->ncontexts || g->ncontexts > g->nchannels || g->incomplete;
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
		whole = is_switched_whole(g);
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

static uint32_t read_channel(const struct gp_nv_target *t, const struct gp_nv_group *g, unsigned i,
			     bool *enabled)
{
	/* The borrowed file keeps the memory of a process that has ended. */
	if (gp_pidfd_ended(t->pidfd))
		return NV_ERR_INVALID_CLIENT;
	if (!t->rm || t->rm->gpu_id != g->gpu_id)
		return GP_RM_ERRNO | ENODEV;
	return gp_rm_is_enabled(t->rm, g->client, g->channel[i], enabled);
}

/* Whether a channel is gone: the reading of its state and two other answers must say so. Its handle
 * can name a channel of another group then. */
static bool has_ended(const struct gp_nv_target *t, const struct gp_nv_group *g, unsigned i,
		      uint32_t status)
{
	bool denied = gp_rm_is_gone(status) || status == NV_ERR_INVALID_CHANNEL ||
		      status == GP_RM_NOT_OFFERED;
	int fd = gp_nv_file(t, g->client);

	if (fd < 0)
		return false;
	for (int look = 0; look < 2; look++) {
		uint32_t parent = gp_rm_parent(fd, g->client, g->channel[i]);

		if (parent == g->handle || parent == GP_RM_UNKNOWN || (!parent && !denied))
			return false;
		if (parent && gp_rm_class(fd, g->client, parent) != KEPLER_CHANNEL_GROUP_A)
			return false;
	}
	return true;
}

/* What RM reads back: the number of channels that are enabled and disabled. */
struct reading {
	unsigned on, off;
	uint32_t status; /* of the reading that failed */
};

/* Reads all channels, or the last one, and drops those that have ended. */
static struct reading read_channels(const struct gp_nv_target *t, struct gp_nv_group *g, bool all)
{
	struct reading r = {0};
	unsigned first = all || !g->nchannels ? 0 : g->nchannels - 1, kept = first;

	for (unsigned i = first; i < g->nchannels; i++) {
		bool enabled = false;
		uint32_t status = read_channel(t, g, i, &enabled);

		if (has_ended(t, g, i, status))
			continue;
		g->channel[kept++] = g->channel[i];
		r.status = status ? status : r.status;
		r.on += !status && enabled;
		r.off += !status && !enabled;
	}
	g->nchannels = kept;
	if (!r.on && !r.off && !r.status)
		r.status = NV_ERR_OBJECT_NOT_FOUND;
	return r;
}

static bool is_mixed(const struct reading *r)
{
	return r->on && r->off;
}

/* If only a part is disabled, the last change is not in force. */
static void note_state(struct gp_nv_group *g, const struct reading *r)
{
	if (r->status == GP_RM_NOT_OFFERED && g->untold)
		return; /* nothing else is known than the accepted change */
	g->unread = r->status;
	if (r->status)
		return;
	g->untold = false;
	g->incomplete &= g->asked_disable || r->off; /* a hold by group is released by group */
	g->disabled = is_mixed(r) ? !g->asked_disable : r->off;
	g->contradicted &= g->disabled;
	g->doubtful = g->contradicted || is_mixed(r);
}

/*
 * RM accepted a hold that does not show: the process has enabled the channels, or RM is wrong. They
 * are enabled here, so that the group runs for certain.
 */
static void give_up_hold(struct gp_nv_target *t, struct gp_nv_group *g)
{
	struct gp_nv_group_ref ref = {.target = t, .group = g};
	struct reading r;

	g->asked_disable = false;
	g->doubtful = true;
	if (switch_together(&ref, 1, false))
		return;
	r = read_channels(t, g, true);
	note_state(g, &r);
}

bool gp_nv_is_untold(const struct gp_nv_target *t)
{
	for (unsigned i = 0; i < t->ngroups; i++)
		if (t->group[i].compute && t->group[i].untold)
			return true;
	return false;
}

void gp_nv_read_back(struct gp_nv_target *t, struct gp_nv_group *g)
{
	struct reading r = read_channels(t, g, true);

	/* One reading that differs may be wrong, and would end the hold. */
	if (!g->doubtful && !r.status && (g->disabled ? r.on : r.off))
		r = read_channels(t, g, true);
	note_state(g, &r);
	if (g->asked_disable && !g->disabled && !r.status)
		give_up_hold(t, g);
}

/* A release that failed, but is in force, is good. A hold that failed is not: the channels can be
 * disabled, and their work still be on the hardware. */
static void take_failure(struct gp_nv_group_ref *ref, bool disable)
{
	struct gp_nv_group *g = ref->group;

	g->doubtful = true;
	gp_nv_read_back(ref->target, g);
	if (!disable && !g->unread && !g->doubtful && !g->disabled)
		ref->status = NV_OK;
}

/* Compares an accepted change with what RM reads back. */
static void take_effect(struct gp_nv_group_ref *ref, bool disable, bool all)
{
	struct gp_nv_group *g = ref->group;
	struct reading r = read_channels(ref->target, g, all);

	if (r.status == GP_RM_NOT_OFFERED || gp_pidfd_ended(ref->target->pidfd)) {
		g->disabled = disable;
		g->doubtful = g->unread = false;
		g->untold = r.status == GP_RM_NOT_OFFERED;
		return;
	}
	note_state(g, &r);
	if (r.status)
		ref->status = GP_RM_UNREAD | r.status;
	else if (is_mixed(&r))
		ref->status = GP_RM_PARTLY;
	else if (g->disabled != disable)
		ref->status = GP_RM_NO_EFFECT;
	g->unread |= !all && g->nchannels > 1;
	if (!ref->status)
		return;
	g->doubtful = true;
	/* Which of the two is true is not known. */
	g->contradicted = ref->status == GP_RM_NO_EFFECT && !disable;
	if (disable)
		give_up_hold(ref->target, g);
}

void gp_nv_switch_in_turn(struct gp_nv_group_ref *ref, unsigned n, bool disable,
			  bool (*hurry)(void *arg), void *arg)
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
	for (unsigned i = 0; i < n; i++) {
		if (!ref[i].tried)
			continue;
		ref[i].group->asked_disable = disable;
		ref[i].group->contradicted = ref[i].group->untold = false;
		if (ref[i].status)
			take_failure(&ref[i], disable);
		else
			take_effect(&ref[i], disable, !hurry || !hurry(arg));
	}
}
