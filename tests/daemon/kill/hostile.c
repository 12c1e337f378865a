/* SPDX-License-Identifier: Apache-2.0 */
/* While a process is killed or stopped, the driver fails, lies or is slow: hostile_shim.so. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "world.h"

/* Only operations after the start: without a driver at its start the daemon ends, and should. */
static const char *const amd_ops[] = {"suspend", "resume",         "enable",
				      "disable", "queue_snapshot", "query_event"};
static const char *const amd_faults[] = {"errno 5",
					 "errno 4",
					 "errno 16",
					 "errno 3",
					 "errno 22",
					 "do_errno 5",
					 "lie",
					 "lie_zero",
					 "count 0",
					 "bits 0x40000000",
					 "half_bits 0x80000000",
					 "delay 30"};
static const char *const nvidia_ops[] = {"hold",          "release",    "set_slice",  "get_slice",
					 "channel_state", "group_info", "handle_info"};
static const char *const nvidia_faults[] = {
	"errno 5",     "errno 4",    "status 0x65",    "status 0x33", "status 0x3",
	"status 0x1b", "do_errno 5", "do_status 0x65", "lie",         "delay 30"};
static const char *const times[] = {"1", "2", "1+", "%2", "%3"};

#define PICK(rng, list) ((list)[gp_rng_below(rng, sizeof(list) / sizeof *(list))])

void hostile_begin(struct world *w)
{
	char path[96];
	int fd;

	snprintf(path, sizeof path, "%s/hostile", w->folder);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof *w->hostile))
		fail(w, "%s cannot be made", path);
	w->hostile = mmap(NULL, sizeof *w->hostile, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (w->hostile == MAP_FAILED)
		fail(w, "no memory");
	setenv("HOSTILE", path, 1);
}

void hostile_set(struct world *w, struct gp_rng *rng)
{
	bool amd = !strcmp(w->gpu->kind, "amd");
	char *text;

	if (!w->hostile)
		return;
	text = w->hostile->text;
	snprintf(text + 1, HOSTILE_TEXT_BYTES - 1, " %s %s %s\n",
		 amd ? PICK(rng, amd_ops) : PICK(rng, nvidia_ops), PICK(rng, times),
		 amd ? PICK(rng, amd_faults) : PICK(rng, nvidia_faults));
	atomic_store(&w->hostile->seen[0], 0);
	text[0] = '*';
}

static unsigned long answers; /* of the shim, in all */

void hostile_clear(struct world *w)
{
	if (!w->hostile)
		return;
	w->hostile->text[0] = 0;
	answers += atomic_exchange(&w->hostile->applied[0], 0);
}

void hostile_report(const struct world *w)
{
	if (w->hostile)
		printf("%lu hostile answers of the driver\n", answers);
}
