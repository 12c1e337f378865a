/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's dump of queue descriptors (debugfs, root only): what is known of the queues of a
 * process that nobody is attached to. Lines of hexadecimal numbers under a line for the process and
 * one for the queue; several dumps follow each other where the chip has several XCCs.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/amd/amd_device.h"

#define DWORDS_PER_LINE 8

const char *gp_amd_debugfs(void)
{
	const char *path = secure_getenv("GPREEMPT_KFD_DEBUGFS");

	return path && *path ? path : "/sys/kernel/debug/kfd";
}

struct reader {
	pid_t pid;
	uint32_t gpu_id;
	bool ours;  /* below the line of the process */
	bool queue; /* below the line of a compute queue on the GPU */
	unsigned dwords;
	uint32_t dword[KFD_MQD_COMPUTE_DWORDS];
	struct gp_amd_mqd *mqd;
	unsigned max, n;
};

static uint64_t pair(const struct reader *r, unsigned dword)
{
	return (uint64_t)r->dword[dword + 1] << 32 | r->dword[dword];
}

/* What read and write pointer differ by at the most, and a bit more: a ring of dwords (PM4, whose
 * read pointer wraps) is longer than one of packets (AQL), so this does for both. */
static uint64_t pointer_mask(const struct reader *r)
{
	unsigned log2 = (r->dword[KFD_MQD_PQ_CONTROL] & KFD_MQD_PQ_SIZE_MASK) + 1;

	return log2 >= 32 ? UINT64_MAX : (1ull << log2) - 1;
}

/* The dump of a queue has ended. Of several XCCs the first counts. */
static void end_queue(struct reader *r)
{
	if (r->queue && r->dwords > KFD_MQD_PQ_WPTR + 1) {
		if (r->n < r->max)
			r->mqd[r->n] = (struct gp_amd_mqd){
				.ring_address = pair(r, KFD_MQD_PQ_BASE) << 8,
				.read_address = pair(r, KFD_MQD_RPTR_REPORT_ADDR),
				.write_address = pair(r, KFD_MQD_WPTR_POLL_ADDR),
				.pointer_mask = pointer_mask(r),
				.priority = r->dword[KFD_MQD_QUEUE_PRIORITY],
			};
		r->n++;
	}
	r->queue = false;
	r->dwords = 0;
}

/* "    00000020: 00000000 ..." */
static void take_dwords(struct reader *r, const char *line)
{
	char *end;
	unsigned long offset = strtoul(line, &end, 16);

	if (!r->queue || *end != ':' || offset != r->dwords * sizeof(uint32_t))
		return; /* not ours, or the next XCC's, which begins at 0 again */
	end++;
	for (unsigned i = 0; i < DWORDS_PER_LINE && r->dwords < KFD_MQD_COMPUTE_DWORDS; i++) {
		char *next;
		unsigned long value = strtoul(end, &next, 16);

		if (next == end)
			return;
		r->dword[r->dwords++] = (uint32_t)value;
		end = next;
	}
}

static void take_line(struct reader *r, const char *line)
{
	static const char process[] = "Process ", compute[] = "  Compute queue on device ",
			  sdma[] = "  SDMA queue on device ";

	if (!strncmp(line, process, sizeof process - 1)) {
		end_queue(r);
		r->ours = strtol(line + sizeof process - 1, NULL, 10) == r->pid;
	} else if (!strncmp(line, compute, sizeof compute - 1)) {
		end_queue(r);
		r->queue = r->ours && strtoul(line + sizeof compute - 1, NULL, 16) == r->gpu_id;
	} else if (!strncmp(line, sdma, sizeof sdma - 1)) {
		end_queue(r);
	} else if (!strncmp(line, "    ", 4)) {
		take_dwords(r, line + 4);
	}
}

bool gp_amd_has_mqds(void)
{
	char path[320];

	snprintf(path, sizeof path, "%s/mqds", gp_amd_debugfs());
	return !access(path, R_OK);
}

int gp_amd_read_mqds(pid_t pid, uint32_t gpu_id, struct gp_amd_mqd *mqd, unsigned max)
{
	struct reader r = {.pid = pid, .gpu_id = gpu_id, .mqd = mqd, .max = max};
	char path[320], line[256];
	FILE *f;

	snprintf(path, sizeof path, "%s/mqds", gp_amd_debugfs());
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (fgets(line, sizeof line, f))
		take_line(&r, line);
	end_queue(&r);
	fclose(f);
	return (int)r.n;
}
