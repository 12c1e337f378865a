/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the clients of a process by asking RM for one handle after the other, from the newest
 * client of the machine downwards. object_search.c finds their objects.
 *
 * RM has no list of clients or objects. It returns the class of a handle without taking a GPU lock,
 * in 2 to 4 us (H200, driver 580).
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/process.h"
#include "gpu/nvidia/target.h"

#define GO_ON_INDICES 32 /* after a find: clients of a process have close indices */
#define GROUP_READS   3
#define SLICE_READS   4 /* two readings in a row must agree */

int gp_nv_file(const struct gp_nv_target *t, uint32_t client)
{
	for (unsigned i = 0; i < t->nclients; i++)
		for (unsigned f = 0; t->client[i].handle == client && f < t->nfiles; f++)
			if (t->file[f] == t->client[i].file)
				return t->borrowed[f];
	return -1;
}

static const struct gp_nv_object *find_object(const struct gp_nv_client *c, uint32_t handle)
{
	for (unsigned i = 0; i < c->nobjects; i++)
		if (c->object[i].handle == handle)
			return &c->object[i];
	return NULL;
}

static const struct gp_nv_object *find_child(const struct gp_nv_client *c, uint32_t parent,
					     uint32_t class)
{
	for (unsigned i = 0; i < c->nobjects; i++)
		if (c->object[i].parent == parent && c->object[i].class == class)
			return &c->object[i];
	return NULL;
}

/* A group is a compute group if one of its channels has a compute object. Copy objects occur in
 * both kinds of groups. */
static void list_channels(const struct gp_nv_client *c, struct gp_nv_group *g)
{
	g->nchannels = 0;
	g->compute = false;
	for (unsigned i = 0; i < c->nobjects; i++) {
		const struct gp_nv_object *o = &c->object[i], *channel;

		if (NV_IS_CHANNEL_CLASS(o->class) && o->parent == g->handle &&
		    g->nchannels < GP_NV_CHANNELS_MAX)
			g->channel[g->nchannels++] = o->handle;
		if (!NV_IS_COMPUTE_CLASS(o->class))
			continue;
		channel = find_object(c, o->parent);
		g->compute |= channel && channel->parent == g->handle;
	}
}

/* The handle of a compute object may be far from that of its channel. */
static void ask_for_compute(const struct gp_nv_client *c, int fd, struct gp_nv_group *g)
{
	uint32_t object = gp_nv_child(fd, c->handle, g->channel[0], NV_INTERNAL_GRAPHICS_OBJECT);

	g->compute = object && object != GP_RM_UNKNOWN &&
		     NV_IS_COMPUTE_CLASS(gp_nv_class(fd, c->handle, object));
}

/* If any compute object is in the list, the others are, too. */
static bool any_compute(const struct gp_nv_client *c)
{
	for (unsigned i = 0; i < c->nobjects; i++)
		if (NV_IS_COMPUTE_CLASS(c->object[i].class))
			return true;
	return false;
}

/* The ids that name the group in the records of context switches. Older drivers lack the call. */
static void read_context_ids(const struct gp_nv_client *c, int fd, struct gp_nv_group *g)
{
	struct nv2080_group_ids ids = {.client = c->handle, .channel_or_group = g->handle};

	if (!g->compute ||
	    gp_rm_control(fd, c->handle, g->subdevice,
			  NV2080_CTRL_CMD_FIFO_GET_CHANNEL_GROUP_UNIQUE_ID_INFO, &ids, sizeof ids))
		return;
	g->ncontexts = ids.count < GP_NV_CHANNELS_MAX ? ids.count : GP_NV_CHANNELS_MAX;
	memcpy(g->context_id, ids.channel_id, g->ncontexts * sizeof *g->context_id);
}

/* Reads the slice. Any value but CUDA's default is read again: the undo record will have it. */
static bool read_slice(const struct gp_nv_client *c, int fd, struct gp_nv_group *g)
{
	uint64_t last_us = 0;

	for (unsigned i = 0; i < SLICE_READS; i++) {
		struct nva06c_timeslice slice = {0};

		if (gp_rm_control(fd, c->handle, g->handle, NVA06C_CTRL_CMD_GET_TIMESLICE, &slice,
				  sizeof slice) ||
		    !slice.us)
			return false;
		g->slice_us = slice.us > UINT32_MAX ? UINT32_MAX : (uint32_t)slice.us;
		if (slice.us == GP_NV_SLICE_DEFAULT_US || slice.us == last_us)
			return true;
		last_us = slice.us;
	}
	return false;
}

/* Reads a group from RM. false: it is gone, or RM did not answer. */
static bool read_group(const struct gp_nv_client *c, int fd, struct gp_nv_group *g)
{
	const struct gp_nv_object *sub = find_child(c, g->device, NV20_SUBDEVICE_0);
	struct nv2080_gpu_id id = {0};
	struct nva06c_info info = {0};

	if (!sub)
		return false;
	g->subdevice = sub->handle;
	if (gp_rm_control(fd, c->handle, sub->handle, NV2080_CTRL_CMD_GPU_GET_ID, &id, sizeof id) ||
	    gp_rm_control(fd, c->handle, g->handle, NVA06C_CTRL_CMD_GET_INFO, &info, sizeof info) ||
	    !read_slice(c, fd, g))
		return false;
	g->gpu_id = id.gpu_id;
	g->tsg_id = info.tsg_id;
	list_channels(c, g);
	if (!g->compute && g->nchannels && !any_compute(c))
		ask_for_compute(c, fd, g);
	read_context_ids(c, fd, g);
	return true;
}

static struct gp_nv_group *find_group(struct gp_nv_target *t, uint32_t client, uint32_t handle)
{
	for (unsigned i = 0; i < t->ngroups; i++)
		if (t->group[i].client == client && t->group[i].handle == handle)
			return &t->group[i];
	return NULL;
}

static bool lists_channel(const struct gp_nv_group *g, uint32_t channel)
{
	for (unsigned i = 0; i < g->nchannels; i++)
		if (g->channel[i] == channel)
			return true;
	return false;
}

/* What the last reading of the same group had and this one may have missed: RM does not always
 * answer. A compute group stays one, and keeps its channels until gp_nv_read_back finds that they
 * have ended. true: it has channels that this reading missed. */
static bool keep_known(const struct gp_nv_client *c, const struct gp_nv_group *was,
		       struct gp_nv_group *g)
{
	unsigned read = g->nchannels;

	g->compute |= was->compute;
	for (unsigned i = 0; (g->compute || c->doubtful) && i < was->nchannels; i++)
		if (g->nchannels < GP_NV_CHANNELS_MAX && !lists_channel(g, was->channel[i]))
			g->channel[g->nchannels++] = was->channel[i];
	return g->nchannels > read;
}

/* What gpreempt did to the group. */
static void keep_changes(const struct gp_nv_group *was, struct gp_nv_group *g)
{
	g->since_ns = was->since_ns;
	g->slice_is_ours = was->slice_is_ours;
	g->slice_corrected = was->slice_corrected;
	if (was->slice_is_ours)
		g->slice_found_us = was->slice_found_us;
	g->mode_is_ours = was->mode_is_ours;
	g->incomplete = was->incomplete;
	g->asked_disable = was->asked_disable;
	g->doubtful = was->doubtful;
	g->contradicted = was->contradicted;
	g->untold = was->untold;
	/* New channels are enabled, so the group does not count as disabled. */
	g->disabled = was->disabled && g->nchannels <= was->nchannels;
	g->unread = was->unread || g->nchannels != was->nchannels;
}

/* true: the group is new, or differs from the known group with this handle. */
static bool take_group(struct gp_nv_target *t, const struct gp_nv_client *c, struct gp_nv_group now)
{
	struct gp_nv_group *g = find_group(t, now.client, now.handle), *p;
	bool is_new = !g || g->tsg_id != now.tsg_id || g->gpu_id != now.gpu_id;

	now.seen = now.unread = true;
	now.since_ns = gp_monotonic_ns();
	now.slice_found_us = gp_nv_own_slice(now.slice_us);
	if (!is_new) {
		bool missed = keep_known(c, g, &now);

		keep_changes(g, &now);
		now.unread |= missed;
	} else if (g) {
		now.doubtful = g->disabled || g->doubtful; /* until it is read back */
	}
	if (!g) {
		p = realloc(t->group, (t->ngroups + 1) * sizeof *p);
		if (!p)
			return false;
		t->group = p;
		g = &t->group[t->ngroups++];
	}
	*g = now;
	return is_new;
}

/* RM must say so three times. */
static bool is_gone(int fd, uint32_t client, uint32_t object)
{
	struct nv0000_handle_info p = {.object = object, .index = NV0000_HANDLE_INFO_CLASSID};
	bool gone = fd >= 0;

	for (int look = 0; gone && look < 3; look++)
		gone = gp_rm_is_gone(gp_rm_control(
			fd, client, client, NV0000_CTRL_CMD_CLIENT_GET_HANDLE_INFO, &p, sizeof p));
	return gone;
}

/* Two kinds of questions: RM may deny a group in the answers to one of them. */
static bool group_is_gone(int fd, uint32_t client, uint32_t group)
{
	struct nva06c_info info = {0};

	return is_gone(fd, client, group) &&
	       gp_rm_is_gone(gp_rm_control(fd, client, group, NVA06C_CTRL_CMD_GET_INFO, &info,
					   sizeof info));
}

/* RM named the group: an answer that is missing is asked for again. */
static bool read_surely(const struct gp_nv_client *c, int fd, struct gp_nv_group *g)
{
	bool done = false;

	for (int i = 0; i < GROUP_READS && !done; i++)
		done = read_group(c, fd, g);
	return done;
}

static void keep_groups(struct gp_nv_target *t, const struct gp_nv_client *c)
{
	for (unsigned i = 0; i < t->ngroups; i++)
		t->group[i].seen |= t->group[i].client == c->handle;
}

static bool take_groups(struct gp_nv_target *t, struct gp_nv_client *c, int fd)
{
	bool changed = false;

	for (unsigned i = 0; i < c->nobjects; i++) {
		const struct gp_nv_object *o = &c->object[i];
		struct gp_nv_group g = {
			.client = c->handle, .handle = o->handle, .device = o->parent};

		if (o->class != KEPLER_CHANNEL_GROUP_A)
			continue;
		if (gp_pidfd_ended(t->pidfd)) { /* the borrowed file keeps its memory */
			keep_groups(t, c);
			break;
		}
		if (read_surely(c, fd, &g))
			changed |= take_group(t, c, g);
		else
			c->doubtful += !group_is_gone(fd, c->handle, o->handle);
	}
	return changed;
}

static bool knows_client(const struct gp_nv_target *t, uint32_t client)
{
	for (unsigned i = 0; i < t->nclients; i++)
		if (t->client[i].handle == client)
			return true;
	return false;
}

bool gp_nv_computes(const struct gp_nv_target *t)
{
	for (unsigned i = 0; i < t->ngroups; i++)
		if (t->group[i].compute)
			return true;
	return false;
}

bool gp_nv_draws(const struct gp_nv_target *t)
{
	for (unsigned i = 0; i < t->nclients; i++)
		for (unsigned k = 0; k < t->client[i].nobjects; k++)
			if ((t->client[i].object[k].class & 0xff) == 0x97)
				return true;
	return false;
}

bool gp_nv_has_open_questions(const struct gp_nv_target *t)
{
	for (unsigned i = 0; i < t->nclients; i++)
		if (t->client[i].doubtful)
			return true;
	return false;
}

bool gp_nv_is_doubtful(const struct gp_nv_target *t)
{
	return gp_nv_has_open_questions(t) || t->doubtful || t->list_error || t->borrow_error;
}

/* `surely`: one answer that no file reaches the client is not believed. */
static bool search_client(struct gp_nv_target *t, uint32_t client, bool surely)
{
	uint32_t (*class_of)(int fd, uint32_t client, uint32_t object) =
		surely ? gp_nv_class : gp_rm_class;
	struct gp_nv_client *p;

	if (knows_client(t, client))
		return true;
	for (unsigned f = 0; f < t->nfiles; f++) {
		uint32_t class = t->borrowed[f] < 0 ? 0 : class_of(t->borrowed[f], client, client);

		t->doubtful += class == GP_RM_UNKNOWN;
		if (!class || class == GP_RM_UNKNOWN)
			continue;
		p = realloc(t->client, (t->nclients + 1) * sizeof *p);
		if (!p)
			return false;
		t->client = p;
		p = &t->client[t->nclients++];
		*p = (struct gp_nv_client){.handle = client, .file = t->file[f]};
		gp_nv_search_objects(p, t->borrowed[f]);
		take_groups(t, p, t->borrowed[f]);
		return true;
	}
	return false;
}

bool gp_nv_search_client(struct gp_nv_target *t, uint32_t client)
{
	return search_client(t, client, true);
}

void gp_nv_search_begin(struct gp_nv_target *t, uint32_t top)
{
	t->search_top = (top - NV_CLIENT_BASE) % NV_CLIENT_COUNT;
	t->searched = 0;
	t->doubtful = 0;
}

bool gp_nv_search(struct gp_nv_target *t, uint32_t indices, bool until_found)
{
	uint32_t end = t->searched + indices;

	t->doubtful = 0;
	if (end > NV_CLIENT_COUNT)
		end = NV_CLIENT_COUNT;
	while (t->searched < end) {
		uint32_t index = (t->search_top - t->searched) % NV_CLIENT_COUNT;
		bool found = search_client(t, NV_CLIENT_BASE + index, false);

		if (t->doubtful)
			return true; /* the next call asks again */
		t->searched++;
		if (found && until_found && gp_nv_computes(t) &&
		    end > t->searched + GO_ON_INDICES) {
			end = t->searched + GO_ON_INDICES;
			until_found = false;
		}
	}
	return t->searched < NV_CLIENT_COUNT;
}

/* A program may duplicate its control file and close the first descriptor. */
static int find_file(const struct gp_nv_target *t, struct gp_nv_client *c)
{
	for (unsigned f = 0; f < t->nfiles; f++) {
		uint32_t class =
			t->borrowed[f] < 0 ? 0 : gp_nv_class(t->borrowed[f], c->handle, c->handle);

		c->doubtful += class == GP_RM_UNKNOWN;
		if (!class || class == GP_RM_UNKNOWN)
			continue;
		c->file = t->file[f];
		return t->borrowed[f];
	}
	return -1;
}

/* A client is gone if RM says so, or if no file reaches it and all files could be borrowed. */
static bool client_is_gone(const struct gp_nv_target *t, const struct gp_nv_client *c, int fd)
{
	if (fd >= 0)
		return is_gone(fd, c->handle, c->handle);
	for (unsigned f = 0; f < t->nfiles; f++)
		if (t->borrowed[f] < 0)
			return false;
	return !c->doubtful;
}

/* RM can deny a client for a while. A group that is held must not be forgotten then: its client is
 * believed to be gone when the process has closed the file of the client. */
static bool is_held_and_open(const struct gp_nv_target *t, const struct gp_nv_client *c)
{
	bool open = false, held = false;

	for (unsigned f = 0; f < t->nfiles; f++)
		open |= t->file[f] == c->file;
	for (unsigned i = 0; i < t->ngroups; i++) {
		const struct gp_nv_group *g = &t->group[i];

		held |= g->client == c->handle && g->compute &&
			(g->disabled || g->asked_disable || g->doubtful);
	}
	return open && held;
}

/*
 * RM says that all compute groups are gone, and still lists the process as computing: one of the
 * two is false. The groups stay: a group that was held must not be taken for one that has ended.
 */
static bool is_contradicted(const struct gp_nv_target *t)
{
	for (unsigned i = 0; i < t->ngroups; i++)
		if (t->group[i].compute && t->group[i].seen)
			return false;
	return gp_nv_computes(t) && t->rm && gp_rm_lists(t->rm, t->pid) > 0;
}

static void drop_gone_clients(struct gp_nv_target *t)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < t->nclients; i++)
		if (t->client[i].gone)
			gp_nv_forget_objects(&t->client[i]);
		else
			t->client[kept++] = t->client[i];
	t->nclients = kept;
}

/* A group is gone when RM says so, or when its client is gone. */
static bool drop_unseen_groups(struct gp_nv_target *t)
{
	unsigned kept = 0, before = t->ngroups;

	for (unsigned i = 0; i < t->ngroups; i++) {
		const struct gp_nv_group *g = &t->group[i];

		if (g->seen || (knows_client(t, g->client) &&
				!group_is_gone(gp_nv_file(t, g->client), g->client, g->handle)))
			t->group[kept++] = *g;
	}
	t->ngroups = kept;
	return kept != before;
}

bool gp_nv_rescan(struct gp_nv_target *t, bool all)
{
	bool changed = false;

	for (unsigned i = 0; i < t->ngroups; i++)
		t->group[i].seen = false;
	for (unsigned i = 0; i < t->nclients; i++) {
		struct gp_nv_client *c = &t->client[i];
		int fd = gp_nv_file(t, c->handle);

		c->doubtful = 0;
		if (fd < 0)
			fd = find_file(t, c);
		c->gone = client_is_gone(t, c, fd);
		if (c->gone && is_held_and_open(t, c)) {
			c->gone = false;
			c->doubtful++;
			keep_groups(t, c);
			continue;
		}
		if (c->gone)
			continue;
		if (fd < 0) { /* not reachable now: keep its groups */
			keep_groups(t, c);
			continue;
		}
		if (all || !c->nregions)
			gp_nv_search_objects(c, fd);
		else
			gp_nv_search_new_objects(c, fd);
		changed |= take_groups(t, c, fd);
	}
	t->doubtful = is_contradicted(t);
	if (t->doubtful)
		return changed;
	drop_gone_clients(t);
	return drop_unseen_groups(t) || changed;
}
