/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the kernel's dump of queue descriptors (MQDs; debugfs, root only), which describes queues
 * without attaching to their process. Lines of hexadecimal numbers follow a line for the process
 * and a line for the queue. A chip with several XCCs has a dump for each XCC.
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
	bool ours;  /* in the part of the process */
	bool queue; /* in the part of a compute queue on the GPU */
	unsigned dwords;
	uint32_t dword[KFD_MQD_COMPUTE_DWORDS];
	struct gp_amd_mqd *mqd;
	unsigned max, n;
};

static uint64_t pair(const struct reader *r, unsigned dword)
{
	return (uint64_t)r->dword[dword + 1] << 32 | r->dword[dword];
}

/* A mask for the difference of write and read pointer. A ring of dwords (PM4, whose read pointer
 * wraps) has more entries than a ring of packets (AQL), so its mask is valid for both. */
static uint64_t pointer_mask(const struct reader *r)
{
	unsigned log2 = (r->dword[KFD_MQD_PQ_CONTROL] & KFD_MQD_PQ_SIZE_MASK) + 1;

	return log2 >= 32 ? UINT64_MAX : (1ull << log2) - 1;
}

/* The dump of a queue has ended. Only the dump of the first XCC is used. */
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
		return; /* another queue, or the next XCC, whose offsets begin at 0 again */
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
