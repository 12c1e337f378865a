/* SPDX-License-Identifier: Apache-2.0 */
#include "hold/records.h"

#include <unistd.h>

#include "base/process.h"
#include "gpu/backends.h"

bool gp_record_process_lives(const struct gp_undo_entry *entry)
{
	return entry->undo.pid > 0 &&
	       gp_process_start_time(entry->undo.pid) == entry->undo.start_time;
}

bool gp_records_find(const struct gp_undo_file *file, pid_t pid, uint64_t start_time,
                     struct gp_undo_entry *entry)
{
	struct gp_undo_entry e;
	bool found = false;

	for (unsigned i = 0; file && i < GP_UNDO_SLOTS; i++) {
		if (!gp_undo_get(file, i, &e) || e.undo.pid != pid ||
		    e.undo.start_time != start_time)
			continue;
		*entry = e;
		found = true;
		if (gp_undo_holder_lives(&e))
			break;
	}
	return found;
}

void gp_records_replay_dead(struct gp_undo_file *file)
{
	struct gp_undo_entry e;

	for (unsigned i = 0; i < GP_UNDO_SLOTS; i++) {
		const struct gp_gpu_ops *ops;
		int r;

		if (!gp_undo_get(file, i, &e) || gp_undo_holder_lives(&e))
			continue;
		ops = gp_backend_find(e.backend);
		r = ops && ops->undo ? ops->undo(&e.undo, NULL) : -ENOTSUP;
		if (!r || r == -ESRCH)
			gp_undo_drop_same(file, i, &e); /* otherwise it stays for who can do it */
	}
}

int gp_records_check_free(const struct gp_undo_file *file, pid_t pid, uint64_t start_time,
                          struct gp_error *err)
{
	struct gp_undo_entry e;
	char name[32];

	if (!gp_records_find(file, pid, start_time, &e) || e.holder == getpid() ||
	    !gp_undo_holder_lives(&e))
		return 0;
	return gp_fail(err, -EBUSY,
	               "process %d is in the hands of process %d (%s) already; end that, or run "
	               "gpreempt resume %d",
	               pid, e.holder, gp_process_name(e.holder, name, sizeof name), pid);
}
