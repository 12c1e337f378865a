/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a handle has attached. A task stays attached after it was released: to attach costs much
 * more than to hold, and who preempts once does it again.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/lib.h"

static bool is_place(const struct gp_place *a, const struct gp_place *b)
{
	return a->device == b->device && a->seen.key == b->seen.key;
}

struct lib_grip *lib_grip_of(struct gpreempt *g, const struct gp_place *place)
{
	for (unsigned i = 0; i < g->ngrips; i++)
		if (is_place(&g->grip[i].hold.place, place))
			return &g->grip[i];
	return NULL;
}

bool lib_holds_all_on(const struct gpreempt *g, unsigned device)
{
	for (unsigned i = 0; i < g->ngrips; i++) {
		const struct gp_place *place = &g->grip[i].hold.place;

		if (place->device == device && place->seen.queue == GP_QUEUE_ALL)
			return g->grip[i].wanted;
	}
	return false;
}

/* ---- attaching ----------------------------------------------------------------------------------
 */

static int begin(struct gpreempt *g, const struct gp_place *place, unsigned n)
{
	struct lib_grip *list = realloc(g->grip, (g->ngrips + n) * sizeof *list);
	struct gp_holds fresh;
	int r;

	if (!list)
		return gp_fail(&g->err, -ENOMEM, "no memory");
	g->grip = list;
	r = gp_holds_begin(&fresh, &g->machine->devices, place, n, &g->err);
	if (r) {
		gp_holds_end(&fresh);
		return r;
	}
	for (unsigned i = 0; i < fresh.n; i++)
		list[g->ngrips++] = (struct lib_grip){.hold = fresh.hold[i]};
	/* One of them is enough: it is the same file. */
	if (g->undo)
		gp_undo_close(fresh.undo);
	else
		g->undo = fresh.undo;
	free(fresh.hold);
	return 0;
}

int lib_take(struct gpreempt *g, const struct gp_place *place, unsigned n)
{
	struct gp_place *missing = calloc(n + 1, sizeof *missing);
	unsigned nmissing = 0;
	int r = 0;

	if (!missing)
		return gp_fail(&g->err, -ENOMEM, "no memory");
	for (unsigned i = 0; i < n; i++)
		if (!lib_grip_of(g, &place[i]))
			missing[nmissing++] = place[i];
	if (nmissing)
		r = begin(g, missing, nmissing);
	free(missing);
	return r;
}

/* ---- switching ----------------------------------------------------------------------------------
 */

/* Some of the grips, as the layer below wants them; `grip` says whose they are. */
struct selection {
	struct gp_holds holds;
	struct lib_grip **grip;
};

static bool is_meant(const struct lib_grip *grip, const struct gp_place *place, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (is_place(&grip->hold.place, &place[i]))
			return true;
	return !place;
}

static int gather(struct gpreempt *g, const struct gp_place *place, unsigned n, struct selection *s)
{
	*s = (struct selection){.holds = {.devices = &g->machine->devices, .undo = g->undo}};
	s->holds.hold = calloc(g->ngrips + 1, sizeof *s->holds.hold);
	s->grip = calloc(g->ngrips + 1, sizeof(struct lib_grip *));
	if (!s->holds.hold || !s->grip)
		return -ENOMEM;
	for (unsigned i = 0; i < g->ngrips; i++)
		if (is_meant(&g->grip[i], place, n)) {
			s->grip[s->holds.n] = &g->grip[i];
			s->holds.hold[s->holds.n++] = g->grip[i].hold;
		}
	return 0;
}

static void give_back(struct selection *s)
{
	for (unsigned i = 0; i < s->holds.n; i++)
		s->grip[i]->hold = s->holds.hold[i];
	free(s->holds.hold);
	free(s->grip);
}

/* After a failure: what was not to be held before is not held now. */
static void take_back(const struct selection *s)
{
	struct gp_holds one = s->holds;

	for (unsigned i = 0; i < s->holds.n; i++) {
		one.n = 1;
		one.hold = &s->holds.hold[i];
		if (!s->grip[i]->wanted)
			gp_holds_release(&one, NULL);
	}
}

int lib_switch(struct gpreempt *g, const struct gp_place *place, unsigned n, bool hold,
               struct gp_error *err)
{
	struct selection s;
	int r = gather(g, place, n, &s);

	if (r) {
		s.holds.n = 0;
		give_back(&s);
		return gp_fail(err, r, "no memory");
	}
	gp_holds_look(&s.holds);
	r = (hold ? gp_holds_hold : gp_holds_release)(&s.holds, err);
	if (r && hold)
		take_back(&s);
	for (unsigned i = 0; i < s.holds.n; i++)
		if (!r)
			s.grip[i]->wanted = hold;
		else if (!hold && !s.holds.hold[i].status)
			s.grip[i]->wanted = false;
	give_back(&s);
	return r;
}

/* ---- letting go ---------------------------------------------------------------------------------
 */

bool lib_drop_gone(struct gpreempt *g)
{
	bool any = false;

	for (unsigned i = g->ngrips; i-- > 0;) {
		struct gp_holds one = {.devices = &g->machine->devices,
		                       .undo = g->undo,
		                       .n = 1,
		                       .hold = &g->grip[i].hold};

		if (!gp_hold_has_ended(&one, one.hold) && gp_hold_is_recorded(&one, one.hold))
			continue;
		gp_holds_remove(&one, 0, true);
		g->grip[i] = g->grip[--g->ngrips];
		any = true;
	}
	return any;
}

void lib_drop_all(struct gpreempt *g)
{
	struct selection s;

	lib_release_self(g);
	if (!gather(g, NULL, 0, &s)) {
		gp_holds_release(&s.holds, NULL);
		gp_holds_end(&s.holds); /* and with it the undo file */
		g->undo = NULL;
	} else {
		free(s.holds.hold); /* the records stay */
	}
	free(s.grip);
	free(g->grip);
	g->grip = NULL;
	g->ngrips = 0;
}
