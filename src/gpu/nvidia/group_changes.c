/* SPDX-License-Identifier: Apache-2.0 */
/* Changes to channel groups. Each change first verifies that the group is still the same. */
#include "base/process.h"
#include "gpu/nvidia/target.h"

/* Whether the group still has its class and hardware number. */
static bool is_same_group(struct gp_nv_target *t, struct gp_nv_group *g)
{
	int fd = gp_nv_file(t, g->client);
	struct nva06c_info info;
	unsigned kept = 0;

	if (fd < 0 || gp_rm_class(fd, g->client, g->handle) != KEPLER_CHANNEL_GROUP_A ||
	    gp_rm_control(fd, g->client, g->handle, NVA06C_CTRL_CMD_GET_INFO, &info, sizeof info))
		return false;
	for (unsigned i = 0; i < g->nchannels; i++)
		if (gp_rm_parent(fd, g->client, g->channel[i]) == g->handle)
			g->channel[kept++] = g->channel[i];
	g->nchannels = kept;
	return info.tsg_id == g->tsg_id;
}

uint32_t gp_nv_set_slice(struct gp_nv_target *t, struct gp_nv_group *g, uint32_t slice_us)
{
	struct nva06c_timeslice p = {.us = slice_us};
	uint32_t status;

	if (gp_pidfd_ended(t->pidfd) || !is_same_group(t, g))
		return NV_ERR_OBJECT_NOT_FOUND;
	status = gp_rm_control(gp_nv_file(t, g->client), g->client, g->handle,
			       NVA06C_CTRL_CMD_SET_TIMESLICE, &p, sizeof p);
	if (!status) {
		g->slice_us = slice_us;
		g->slice_is_ours = slice_us != g->slice_found_us;
	}
	return status;
}

uint32_t gp_nv_set_mode(struct gp_nv_target *t, struct gp_nv_group *g, unsigned mode)
{
	struct nv2080_preemption_mode p = {
		.flags = NV2080_PREEMPTION_FLAGS_COMPUTE,
		.channel_or_group = g->handle,
		.compute_mode = mode,
	};

	if (!is_same_group(t, g))
		return NV_ERR_OBJECT_NOT_FOUND;
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
		whole = g->ncontexts > g->nchannels;
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

static bool verify(struct gp_nv_group_ref *ref)
{
	bool there = is_same_group(ref->target, ref->group);

	ref->status = there ? NV_OK : NV_ERR_OBJECT_NOT_FOUND;
	return there;
}

void gp_nv_switch(struct gp_nv_group_ref *ref, unsigned n, bool disable)
{
	unsigned good = 0;

	for (unsigned i = 0; i < n; i++)
		good += verify(&ref[i]);
	/* A failed call has switched the entries before the one that failed. */
	if (good && switch_together(ref, n, disable))
		for (unsigned i = 0; i < n; i++)
			if (!ref[i].status && verify(&ref[i]))
				ref[i].status = switch_together(&ref[i], 1, disable);
	for (unsigned i = 0; i < n; i++)
		if (!ref[i].status)
			ref[i].group->disabled = disable;
}
