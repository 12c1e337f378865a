/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the objects of a client by asking RM for one handle after the other, around the handles
 * that RM names.
 *
 * RM can deny an object that exists, or not answer. After several denials in a row it is asked for
 * the client, which exists: if it denies that, too, the last denials are not believed. The denied
 * handles between and next to those in use are asked for once more, after all the others, and again
 * as long as that finds an object. An object that was named has a parent: RM is asked for it until
 * it names one.
 */
#include <stdlib.h>

#include "gpu/nvidia/target.h"

#define MISSES_UP      64    /* unused handles in a row end a region */
#define MISSES_DOWN    8     /* libraries number objects upwards */
#define MISSES_ADDED   16    /* instead of MISSES_UP if only newer objects are searched */
#define HANDLES_MAX    65536 /* of one region */
#define UNANSWERED_MAX 8     /* questions, then a search ends: each may take 5 ms */
#define LOOKS_MAX      4     /* at the handles that were denied */
#define DENIALS        3     /* of a single question, then they are believed */
#define DENIED_RUN     8     /* denials, then the client is asked for */
#define DENYING_MAX    512   /* denials of the client, then the search ends */

uint32_t gp_nv_class(int fd, uint32_t client, uint32_t object)
{
	uint32_t class = 0;

	for (int i = 0; i < DENIALS && !class; i++)
		class = gp_rm_class(fd, client, object);
	return class;
}

uint32_t gp_nv_child(int fd, uint32_t client, uint32_t parent, uint32_t kind)
{
	uint32_t child = 0;

	for (int i = 0; i < DENIALS && (!child || child == GP_RM_UNKNOWN); i++)
		child = gp_rm_child(fd, client, parent, kind);
	return child;
}

static uint32_t parent_of(struct gp_nv_client *c, int fd, uint32_t object)
{
	uint32_t parent = 0;

	for (int i = 0; i < DENIALS && (!parent || parent == GP_RM_UNKNOWN); i++)
		parent = gp_rm_parent(fd, c->handle, object);
	return parent == GP_RM_UNKNOWN ? 0 : parent;
}

static bool matters(uint32_t class)
{
	return class == NV01_DEVICE_0 || class == NV20_SUBDEVICE_0 ||
	       class == KEPLER_CHANNEL_GROUP_A || NV_IS_CHANNEL_CLASS(class) ||
	       NV_IS_COMPUTE_CLASS(class);
}

static bool add_object(struct gp_nv_client *c, struct gp_nv_object o)
{
	if (c->nobjects == c->object_capacity) {
		unsigned capacity = c->object_capacity ? 2 * c->object_capacity : 64;
		struct gp_nv_object *p = realloc(c->object, capacity * sizeof *p);

		if (!p)
			return false;
		c->object = p;
		c->object_capacity = capacity;
	}
	c->object[c->nobjects++] = o;
	return true;
}

/* Without memory the handle is not asked for again. */
static void note_denied(struct gp_nv_client *c, uint32_t handle)
{
	if (c->ndenied == c->denied_capacity) {
		unsigned capacity = c->denied_capacity ? 2 * c->denied_capacity : 256;
		uint32_t *p = realloc(c->denied, capacity * sizeof *p);

		if (!p)
			return;
		c->denied = p;
		c->denied_capacity = capacity;
	}
	c->denied[c->ndenied++] = handle;
}

/* Whether the handle is in use, and RM has told what is needed. Objects of the classes above are
 * added to the list. */
static bool ask(struct gp_nv_client *c, int fd, uint32_t handle)
{
	struct gp_nv_object o = {.handle = handle, .class = gp_rm_class(fd, c->handle, handle)};

	c->doubtful += o.class == GP_RM_UNKNOWN;
	if (!o.class || o.class == GP_RM_UNKNOWN)
		return false;
	if (!matters(o.class))
		return true;
	o.parent = parent_of(c, fd, handle);
	c->doubtful += !o.parent;
	return o.parent && add_object(c, o);
}

/* Whether RM names the client. If it denies the client for a while, this waits, and is false. */
static bool is_answering(struct gp_nv_client *c, int fd)
{
	for (unsigned i = 0; i < DENYING_MAX && c->doubtful < UNANSWERED_MAX; i++) {
		uint32_t class = gp_rm_class(fd, c->handle, c->handle);

		c->doubtful += class == GP_RM_UNKNOWN;
		if (class && class != GP_RM_UNKNOWN)
			return !i;
	}
	c->doubtful = UNANSWERED_MAX;
	return false;
}

static void grow(struct gp_nv_region *r, uint32_t handle)
{
	r->low = handle < r->low ? handle : r->low;
	r->high = handle >= r->high ? handle + 1 : r->high;
}

/* Upwards with step 1, downwards with step -1. `misses_max` is a multiple of DENIED_RUN. */
static void extend_towards(struct gp_nv_client *c, int fd, struct gp_nv_region *r, int step,
			   unsigned misses_max)
{
	uint32_t handle = step > 0 ? r->high : r->low - 1;
	unsigned misses = 0, believed = c->ndenied;

	while (misses < misses_max && r->high - r->low < HANDLES_MAX &&
	       c->doubtful < UNANSWERED_MAX) {
		misses++;
		if (handle != c->handle && ask(c, fd, handle)) {
			grow(r, handle);
			misses = 0;
		} else if (handle != c->handle) {
			note_denied(c, handle);
		}
		handle += (uint32_t)step;
		if (misses % DENIED_RUN)
			continue;
		if (misses && !is_answering(c, fd)) {
			handle -= (uint32_t)step * DENIED_RUN;
			misses -= DENIED_RUN;
			c->ndenied = believed;
		}
		believed = c->ndenied;
	}
}

/* Asks for the denied handles again. true: one of them is in use. */
static bool look_again(struct gp_nv_client *c, int fd, struct gp_nv_region *r)
{
	unsigned kept = 0, n = c->ndenied;

	for (unsigned i = 0; i < n; i++) {
		uint32_t handle = c->denied[i];

		if (c->doubtful >= UNANSWERED_MAX || !ask(c, fd, handle)) {
			c->denied[kept++] = handle;
			continue;
		}
		grow(r, handle);
	}
	c->ndenied = kept;
	return kept < n;
}

/* Drops the handles that are `margin` or more outside the region. */
static void drop_outside(struct gp_nv_client *c, const struct gp_nv_region *r, uint32_t margin)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < c->ndenied; i++)
		if (c->denied[i] + margin >= r->low && c->denied[i] < r->high + margin)
			c->denied[kept++] = c->denied[i];
	c->ndenied = kept;
}

static void extend(struct gp_nv_client *c, int fd, struct gp_nv_region *r, unsigned up,
		   unsigned down)
{
	bool grew = true;

	c->ndenied = 0;
	for (int look = 0; look < LOOKS_MAX; look++) {
		struct gp_nv_region was;

		if (grew) {
			drop_outside(c, r, 0); /* the extension asks for these */
			extend_towards(c, fd, r, 1, up);
			extend_towards(c, fd, r, -1, down);
			drop_outside(c, r, DENIED_RUN);
		}
		was = *r;
		if (!look_again(c, fd, r) && is_answering(c, fd))
			break;
		grew = r->low != was.low || r->high != was.high;
	}
}

static bool is_covered(const struct gp_nv_client *c, uint32_t handle)
{
	for (unsigned i = 0; i < c->nregions; i++)
		if (handle >= c->region[i].low && handle < c->region[i].high)
			return true;
	return false;
}

/* Searches around a handle that RM named. */
static void explore(struct gp_nv_client *c, int fd, uint32_t handle)
{
	struct gp_nv_region *r;

	c->doubtful += handle == GP_RM_UNKNOWN;
	if (handle == GP_RM_UNKNOWN)
		return;
	if (!handle || handle == c->handle || is_covered(c, handle) ||
	    c->nregions == GP_NV_REGIONS_MAX)
		return;
	r = &c->region[c->nregions++];
	r->low = r->high = handle;
	extend(c, fd, r, MISSES_UP, MISSES_DOWN);
}

/* Whether the list has a channel of the group. */
static bool has_channel(const struct gp_nv_client *c, uint32_t group)
{
	for (unsigned i = 0; i < c->nobjects; i++)
		if (c->object[i].parent == group && NV_IS_CHANNEL_CLASS(c->object[i].class))
			return true;
	return false;
}

/* Libraries choose handles freely, so the first children that RM names are searched, too. */
static void explore_named(struct gp_nv_client *c, int fd)
{
	for (unsigned i = 0; i < c->nobjects; i++) {
		struct gp_nv_object o = c->object[i]; /* a copy: the array may move */

		if (o.class == NV01_DEVICE_0) {
			explore(c, fd, gp_nv_child(fd, c->handle, o.handle, NV_INTERNAL_SUBDEVICE));
			explore(c, fd,
				gp_nv_child(fd, c->handle, o.handle, NV_INTERNAL_CHANNEL_GROUP));
		}
		if (o.class == KEPLER_CHANNEL_GROUP_A && !has_channel(c, o.handle))
			explore(c, fd, gp_nv_child(fd, c->handle, o.handle, NV_INTERNAL_CHANNEL));
	}
}

void gp_nv_search_objects(struct gp_nv_client *c, int fd)
{
	c->nobjects = c->nregions = 0;
	explore(c, fd, gp_nv_child(fd, c->handle, c->handle, NV_INTERNAL_DEVICE));
	explore_named(c, fd);
}

void gp_nv_search_new_objects(struct gp_nv_client *c, int fd)
{
	for (unsigned r = 0; r < c->nregions; r++)
		extend(c, fd, &c->region[r], MISSES_ADDED, 0);
}

void gp_nv_forget_objects(struct gp_nv_client *c)
{
	free(c->object);
	free(c->denied);
}
