/* SPDX-License-Identifier: Apache-2.0 */
/* Undo records: slots, owners and where a record is stored. */
#include "undo/undo.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "undo/undo_layout.h"

#define NONE (-1)

/* Slots. */

#define COUNTER_AT GP_UNDO_STATE_BITS
#define START_AT   (COUNTER_AT + GP_UNDO_COUNTER_BITS)
#define PID_AT     (START_AT + GP_UNDO_START_BITS)

static uint64_t low_bits(uint64_t value, unsigned bits)
{
	return value & ((1ull << bits) - 1);
}

static enum gp_undo_state kind(uint64_t state)
{
	return (enum gp_undo_state)low_bits(state, GP_UNDO_STATE_BITS);
}

/* A process that has the writer's pid, but started at another time, is another process. */
static bool writer_lives(uint64_t state)
{
	pid_t pid = (pid_t)(state >> PID_AT);
	uint64_t start_time;

	if (pid <= 0 || (kill(pid, 0) && errno == ESRCH))
		return false;
	start_time = gp_process_start_time(pid);
	return !start_time || (low_bits(start_time, GP_UNDO_START_BITS) ==
				       low_bits(state >> START_AT, GP_UNDO_START_BITS) &&
			       gp_process_lives(pid, start_time));
}

static uint64_t our_start_time(const struct gp_undo_file *file)
{
	/* After a fork, the child uses the file with its own pid. */
	return getpid() == file->pid ? file->start_time : gp_process_start_time(getpid());
}

/* The state after `state`, without a writer. */
static uint64_t next_state(uint64_t state, enum gp_undo_state kind)
{
	return low_bits(state + (1u << COUNTER_AT), START_AT) >> COUNTER_AT << COUNTER_AT | kind;
}

static bool change_state(struct gp_undo_slot *s, uint64_t was, uint64_t now)
{
	return __atomic_compare_exchange_n(&s->state, &was, now, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

/* Marks the slot as being changed by this process. False: another process changed it first. */
static bool begin_change(const struct gp_undo_file *file, struct gp_undo_slot *s, uint64_t was,
			 enum gp_undo_state kind)
{
	return change_state(s, was,
			    next_state(was, kind) | (uint64_t)(uint32_t)getpid() << PID_AT |
				    low_bits(our_start_time(file), GP_UNDO_START_BITS) << START_AT);
}

static void end_change(struct gp_undo_file *file, struct gp_undo_slot *s, enum gp_undo_state kind)
{
	uint64_t state = __atomic_load_n(&s->state, __ATOMIC_RELAXED);

	__atomic_store_n(&s->state, next_state(state, kind), __ATOMIC_RELEASE);
	__atomic_add_fetch(&file->map->head.changes, 1, __ATOMIC_ACQ_REL);
}

static void write_entry(struct gp_undo_slot *s, const struct gp_undo_entry *entry)
{
	uint64_t word[GP_UNDO_ENTRY_WORDS];

	memcpy(word, entry, sizeof word);
	for (size_t i = 0; i < GP_UNDO_ENTRY_WORDS; i++)
		__atomic_store_n(&s->word[i], word[i], __ATOMIC_RELAXED);
}

/*
 * Reads the record and the state of the slot. False: the slot has no record, or it is being
 * changed. If a process died while it took a record over, the record is complete but has no owner.
 */
static bool read_slot(const struct gp_undo_slot *s, struct gp_undo_entry *entry, uint64_t *state)
{
	uint64_t word[GP_UNDO_ENTRY_WORDS];
	bool abandoned;

	*state = __atomic_load_n(&s->state, __ATOMIC_ACQUIRE);
	abandoned = kind(*state) == GP_UNDO_TAKING && !writer_lives(*state);
	if (kind(*state) != GP_UNDO_READY && kind(*state) != GP_UNDO_ASKED && !abandoned)
		return false;
	for (size_t i = 0; i < GP_UNDO_ENTRY_WORDS; i++)
		word[i] = __atomic_load_n(&s->word[i], __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (__atomic_load_n(&s->state, __ATOMIC_RELAXED) != *state)
		return false; /* the slot changed during the read */
	memcpy(entry, word, sizeof *entry);
	entry->backend[sizeof entry->backend - 1] = 0;
	entry->release_asked = kind(*state) == GP_UNDO_ASKED;
	if (abandoned) {
		entry->owner = 0;
		entry->owner_start_time = entry->claimed = 0;
	}
	return entry->undo.pid > 0 && entry->undo.size <= sizeof entry->undo.data;
}

bool gp_undo_get(const struct gp_undo_file *file, unsigned slot, struct gp_undo_entry *entry)
{
	uint64_t state;

	return read_slot(&file->map->slot[slot], entry, &state);
}

/* Owners. */

bool gp_undo_owner_lives(const struct gp_undo_entry *entry)
{
	return entry->owner > 0 && gp_process_lives(entry->owner, entry->owner_start_time);
}

bool gp_undo_owner_can_run(const struct gp_undo_entry *entry)
{
	return entry->owner > 0 && gp_process_can_run(entry->owner, entry->owner_start_time);
}

static void set_owner(const struct gp_undo_file *file, struct gp_undo_entry *entry)
{
	entry->owner = getpid();
	entry->owner_start_time = our_start_time(file);
}

static bool is_ours(const struct gp_undo_file *file, const struct gp_undo_entry *entry)
{
	return entry->owner == getpid() && entry->owner_start_time == our_start_time(file);
}

/* Whether the record is of this task. */
static bool is_task(const struct gp_undo_entry *e, const struct gp_undo *undo, const char *backend)
{
	return e->undo.key == undo->key && e->undo.pid == undo->pid &&
	       e->undo.start_time == undo->start_time && strcmp(e->backend, backend) == 0;
}

/* Whether both are the same record with the same owner. */
static bool is_same(const struct gp_undo_entry *a, const struct gp_undo_entry *b)
{
	return a->owner == b->owner && a->owner_start_time == b->owner_start_time &&
	       a->claimed == b->claimed && is_task(a, &b->undo, b->backend);
}

/* Marks the slot as being changed if it still holds the record `was`. */
static bool take_same(const struct gp_undo_file *file, struct gp_undo_slot *s,
		      const struct gp_undo_entry *was, enum gp_undo_state kind)
{
	struct gp_undo_entry e;
	uint64_t state;

	return read_slot(s, &e, &state) && is_same(&e, was) && begin_change(file, s, state, kind);
}

/* Writes the record of a new owner, which has sent no heartbeat for it. */
static void write_for_owner(struct gp_undo_slot *s, const struct gp_undo_entry *entry)
{
	__atomic_store_n(&s->heartbeat_ns, 0, __ATOMIC_RELAXED);
	write_entry(s, entry);
}

/* Where a record is stored. */

static unsigned set_of(const struct gp_undo *undo)
{
	uint64_t h = undo->key ^ undo->start_time << 20 ^ (uint64_t)(uint32_t)undo->pid;

	h ^= h >> 33;
	h *= 0x9e3779b97f4a7c15ull;
	return (unsigned)(h >> 32) % GP_UNDO_SETS;
}

/* Counts through the slots of the set first, then through the others. */
static unsigned slot_at(unsigned set, unsigned i)
{
	return (set * GP_UNDO_SET_SLOTS + i) % GP_UNDO_SLOTS;
}

static unsigned slots_to_search(const struct gp_undo_file *file, unsigned set)
{
	bool spilled = __atomic_load_n(&file->map->head.spilled[set], __ATOMIC_ACQUIRE);

	return spilled ? GP_UNDO_SLOTS : GP_UNDO_SET_SLOTS;
}

/* Writing records. */

/* Replaces the data of the caller's own record if they proved wrong, and lets its slices count if
 * they are to be changed. If the caller dies meanwhile, each word is the old or the new one. */
static bool correct(struct gp_undo_file *file, struct gp_undo_slot *s, uint64_t state,
		    const struct gp_undo_entry *was, const struct gp_undo_entry *mine)
{
	struct gp_undo_entry e = *was;

	if (mine->undo.corrected)
		e.undo = mine->undo;
	e.undo.hold_only = was->undo.hold_only && mine->undo.hold_only;
	if (e.undo.hold_only == was->undo.hold_only &&
	    !memcmp(was->undo.data, e.undo.data, sizeof was->undo.data))
		return true;
	if (!begin_change(file, s, state, GP_UNDO_TAKING))
		return false;
	write_entry(s, &e);
	end_change(file, s, was->release_asked ? GP_UNDO_ASKED : GP_UNDO_READY);
	return true;
}

/* Makes the caller the owner of an existing record of the same task. Returns its slot, -EBUSY, or
 * NONE if there is none. */
static int take_over(struct gp_undo_file *file, unsigned set, const struct gp_undo_entry *mine)
{
	unsigned n = slots_to_search(file, set);
	struct gp_undo_entry e;
	uint64_t state;

	for (unsigned i = 0; i < n; i++) {
		unsigned slot = slot_at(set, i);
		struct gp_undo_slot *s = &file->map->slot[slot];

		if (!read_slot(s, &e, &state) || !is_task(&e, &mine->undo, mine->backend))
			continue;
		if (is_ours(file, &e))
			return e.claimed || !correct(file, s, state, &e, mine) ? -EBUSY : (int)slot;
		if (gp_undo_owner_can_run(&e) || !begin_change(file, s, state, GP_UNDO_TAKING))
			return -EBUSY;
		e.owner = mine->owner;
		e.owner_start_time = mine->owner_start_time;
		e.claimed = 0;
		e.undo.hold_only = e.undo.hold_only && mine->undo.hold_only;
		__atomic_store_n(&s->undone_ns, 0, __ATOMIC_RELAXED);
		write_for_owner(s, &e);
		end_change(file, s, GP_UNDO_READY);
		return (int)slot;
	}
	return NONE;
}

/* Takes a free slot, or one that a dead writer left incomplete. */
static int take_free(struct gp_undo_file *file, unsigned set)
{
	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++) {
		unsigned slot = slot_at(set, i);
		struct gp_undo_slot *s = &file->map->slot[slot];
		uint64_t state = __atomic_load_n(&s->state, __ATOMIC_ACQUIRE);

		if (kind(state) != GP_UNDO_FREE &&
		    (kind(state) != GP_UNDO_WRITING || writer_lives(state)))
			continue;
		if (i >= GP_UNDO_SET_SLOTS) /* set before the record can be searched for */
			__atomic_store_n(&file->map->head.spilled[set], 1, __ATOMIC_RELEASE);
		if (begin_change(file, s, state, GP_UNDO_WRITING))
			return (int)slot;
	}
	return -ENOSPC;
}

int gp_undo_put(struct gp_undo_file *file, const char *backend, const struct gp_undo *undo)
{
	struct gp_undo_entry e = {.undo = *undo};
	unsigned set = set_of(undo);
	struct gp_undo_slot *s;
	int slot;

	snprintf(e.backend, sizeof e.backend, "%s", backend);
	set_owner(file, &e);
	slot = take_over(file, set, &e);
	if (slot != NONE)
		return slot;
	slot = take_free(file, set);
	if (slot < 0)
		return slot;
	s = &file->map->slot[slot];
	__atomic_store_n(&s->failed_ns, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&s->undone_ns, 0, __ATOMIC_RELAXED);
	write_for_owner(s, &e);
	end_change(file, s, GP_UNDO_READY);
	return slot;
}

static bool has_task(const struct gp_undo_file *file, const struct gp_undo_entry *entry)
{
	unsigned set = set_of(&entry->undo), n = slots_to_search(file, set);
	struct gp_undo_entry e;

	for (unsigned i = 0; i < n; i++)
		if (gp_undo_get(file, slot_at(set, i), &e) &&
		    is_task(&e, &entry->undo, entry->backend))
			return true;
	return false;
}

void gp_undo_carry_over(const struct gp_undo_file *old, struct gp_undo_file *file)
{
	struct gp_undo_entry e;

	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++) {
		int slot;

		if (!gp_undo_get(old, i, &e) || has_task(file, &e))
			continue;
		slot = take_free(file, set_of(&e.undo));
		if (slot < 0)
			return;
		__atomic_store_n(&file->map->slot[slot].undone_ns, 0, __ATOMIC_RELAXED);
		write_for_owner(&file->map->slot[slot], &e);
		end_change(file, &file->map->slot[slot], GP_UNDO_READY);
	}
}

bool gp_undo_drop_same(struct gp_undo_file *file, unsigned slot, const struct gp_undo_entry *was)
{
	struct gp_undo_slot *s = &file->map->slot[slot];

	/* If this process dies in the state GP_UNDO_WRITING, the record is dropped. */
	if (!take_same(file, s, was, GP_UNDO_WRITING))
		return false;
	end_change(file, s, GP_UNDO_FREE);
	return true;
}

/* Claiming records in order to undo them. */

bool gp_undo_claim(struct gp_undo_file *file, unsigned slot, struct gp_undo_entry *entry)
{
	struct gp_undo_slot *s = &file->map->slot[slot];

	if (gp_undo_owner_lives(entry) || !take_same(file, s, entry, GP_UNDO_TAKING))
		return false;
	set_owner(file, entry);
	entry->claimed = 1;
	write_for_owner(s, entry);
	end_change(file, s, GP_UNDO_READY);
	return true;
}

void gp_undo_give_back(struct gp_undo_file *file, unsigned slot, const struct gp_undo_entry *entry)
{
	struct gp_undo_slot *s = &file->map->slot[slot];
	struct gp_undo_entry e = *entry;

	if (!take_same(file, s, entry, GP_UNDO_TAKING))
		return;
	e.owner = 0;
	e.owner_start_time = e.claimed = 0;
	write_for_owner(s, &e);
	end_change(file, s, GP_UNDO_READY);
}

/* Requests and heartbeats. */

bool gp_undo_ask_release(struct gp_undo_file *file, unsigned slot, const struct gp_undo_entry *was)
{
	struct gp_undo_slot *s = &file->map->slot[slot];
	struct gp_undo_entry e;
	uint64_t state;

	if (!read_slot(s, &e, &state) || !is_same(&e, was))
		return false;
	if (e.release_asked)
		return true;
	if (kind(state) != GP_UNDO_READY ||
	    !change_state(s, state, next_state(state, GP_UNDO_ASKED)))
		return false;
	__atomic_add_fetch(&file->map->head.changes, 1, __ATOMIC_ACQ_REL);
	return true;
}

void gp_undo_record_heartbeat(struct gp_undo_file *file, unsigned slot, uint64_t now_ns)
{
	__atomic_store_n(&file->map->slot[slot].heartbeat_ns, now_ns, __ATOMIC_RELEASE);
}

uint64_t gp_undo_record_heartbeat_ns(const struct gp_undo_file *file, unsigned slot)
{
	return __atomic_load_n(&file->map->slot[slot].heartbeat_ns, __ATOMIC_ACQUIRE);
}

void gp_undo_note_failure(struct gp_undo_file *file, unsigned slot, uint64_t now_ns)
{
	__atomic_store_n(&file->map->slot[slot].failed_ns, now_ns, __ATOMIC_RELEASE);
}

uint64_t gp_undo_failed_ns(const struct gp_undo_file *file, unsigned slot)
{
	return __atomic_load_n(&file->map->slot[slot].failed_ns, __ATOMIC_ACQUIRE);
}

void gp_undo_note_undone(struct gp_undo_file *file, unsigned slot, uint64_t began_ns)
{
	__atomic_store_n(&file->map->slot[slot].undone_ns, began_ns, __ATOMIC_RELEASE);
}

uint64_t gp_undo_undone_ns(const struct gp_undo_file *file, unsigned slot)
{
	return __atomic_load_n(&file->map->slot[slot].undone_ns, __ATOMIC_ACQUIRE);
}

uint64_t gp_undo_changes(const struct gp_undo_file *file)
{
	return __atomic_load_n(&file->map->head.changes, __ATOMIC_ACQUIRE);
}

uint64_t gp_undo_epoch(const struct gp_undo_file *file)
{
	return __atomic_load_n(&file->map->head.epoch, __ATOMIC_ACQUIRE);
}

void gp_undo_bump(struct gp_undo_file *file)
{
	__atomic_add_fetch(&file->map->head.epoch, 1, __ATOMIC_ACQ_REL);
}
