/* SPDX-License-Identifier: Apache-2.0 */
/* The dumps of debugfs: descriptors of queues as dwords, without a word about what they mean. */
#include "kfd.h"

#define SDMA_DWORDS 128u

static void put64(uint32_t *dword, uint64_t value)
{
	dword[0] = (uint32_t)value;
	dword[1] = (uint32_t)(value >> 32);
}

static uint32_t pipe_priority(uint32_t priority)
{
	return priority < 7 ? 0 : priority < 11 ? 1 : 2;
}

/* Pointers are those of the last time it was taken off. */
static void fill_mqd(uint32_t *mqd, const struct queue *q)
{
	uint32_t log2_dwords = (uint32_t)__builtin_ctz(q->ring_size ? q->ring_size : 1024) - 2;

	memset(mqd, 0, KFD_MQD_COMPUTE_DWORDS * sizeof(*mqd));
	mqd[0] = 0xc0310800;
	for (int i = 0; i < 4; i++)
		mqd[23 + i] = 0xffffffff; /* CUs it may use */
	put64(&mqd[128], 0x8000000000ull + ((uint64_t)q->process->pasid << 20) + q->id * 4096ull);
	mqd[KFD_MQD_HQD_ACTIVE] = q->mapped;
	mqd[KFD_MQD_PIPE_PRIORITY] = pipe_priority(q->priority);
	mqd[KFD_MQD_QUEUE_PRIORITY] = q->priority;
	put64(&mqd[KFD_MQD_PQ_BASE], q->ring >> 8);
	mqd[KFD_MQD_PQ_RPTR] = (uint32_t)q->saved_rptr;
	put64(&mqd[KFD_MQD_RPTR_REPORT_ADDR], q->rptr);
	put64(&mqd[KFD_MQD_WPTR_POLL_ADDR], q->wptr);
	mqd[143] = (uint32_t)q->doorbell << 2 | 1u << 30;
	mqd[KFD_MQD_PQ_CONTROL] = log2_dwords - 1;
	put64(&mqd[KFD_MQD_CTX_SAVE_BASE], q->cwsr);
	mqd[174] = q->control_stack - q->saved_control_stack;
	mqd[175] = q->control_stack;
	mqd[176] = q->control_stack + q->saved_waves;
	mqd[KFD_MQD_CTX_SAVE_SIZE] = q->cwsr_size;
	put64(&mqd[KFD_MQD_PQ_WPTR], q->saved_wptr);
}

static void dump(FILE *out, const uint32_t *dwords, uint32_t count)
{
	for (uint32_t i = 0; i < count; i += 8) {
		fprintf(out, "    %.8x: ", i * 4);
		for (uint32_t k = i; k < i + 8 && k < count; k++)
			fprintf(out, "%08x%s", dwords[k], k % 8 == 7 ? "\n" : " ");
	}
}

static bool is_compute(const struct queue *q)
{
	return q->type == KFD_QUEUE_COMPUTE || q->type == KFD_QUEUE_COMPUTE_AQL;
}

/* The driver forgets how many XCCs it printed for the queue before: copies of a copy queue. */
static void dump_queues(FILE *out, const struct process *p)
{
	uint32_t mqd[KFD_MQD_COMPUTE_DWORDS], copies = 1;

	for (const struct queue *q = p->queues; q; q = q->next) {
		if (is_compute(q))
			copies = q->device->model->xccs;
		fprintf(out, "  %s queue on device %x\n", is_compute(q) ? "Compute" : "SDMA",
			q->device->gpu_id);
		fill_mqd(mqd, q);
		for (uint32_t i = 0; i < copies; i++)
			dump(out, mqd, is_compute(q) ? KFD_MQD_COMPUTE_DWORDS : SDMA_DWORDS);
	}
}

void debugfs_mqds(FILE *out)
{
	for (const struct process *p = kfd.processes; p; p = p->next) {
		fprintf(out, "Process %d PASID 0x%x:\n", p->pid, p->pasid);
		dump_queues(out, p);
	}
}

/* The registers are the dwords 128 to 183 of what is mapped, one after the other. */
static void dump_hqds(FILE *out, const struct device *d)
{
	uint32_t mqd[KFD_MQD_COMPUTE_DWORDS], slot = 0;

	for (const struct process *p = kfd.processes; p; p = p->next)
		for (const struct queue *q = p->queues; q; q = q->next) {
			if (q->device != d || !q->mapped || !is_compute(q))
				continue;
			fprintf(out, " Inst 0,  CP Pipe %u, Queue %u", slot % 4, slot / 4);
			slot++;
			fill_mqd(mqd, q);
			for (uint32_t i = 128; i < 184; i++) {
				if (i % 8 == 0)
					fprintf(out, "\n    %08x: ", 0xc910 + (i - 128) * 4);
				fprintf(out, "%08x ", mqd[i]);
			}
			fputc('\n', out);
		}
}

void debugfs_hqds(FILE *out)
{
	for (uint32_t i = 0; i < kfd.ndevices; i++) {
		const struct device *d = &kfd.device[i];

		fprintf(out, "Node %u, gpu_id %x:\n", i + 1, d->gpu_id);
		if (d->in_reset)
			fputs(" Device is stopped\n", out);
		else
			dump_hqds(out, d);
	}
}

/* One MAP_QUEUES packet for each mapped queue; its header is the real one, the rest is not. */
static uint32_t dump_list(FILE *out, const struct device *d)
{
	uint32_t n = 0;

	for (const struct process *p = kfd.processes; p; p = p->next)
		for (const struct queue *q = p->queues; q; q = q->next) {
			if (q->device != d || !q->mapped)
				continue;
			fprintf(out, "  %.8x: %08x %08x %08x %08x %08x %08x %08x %08x\n", n * 32,
				0xc005a200u, 0u, (uint32_t)q->doorbell << 2, q->id, p->pasid, 0u,
				(uint32_t)q->wptr, (uint32_t)(q->wptr >> 32));
			n++;
		}
	return n;
}

void debugfs_rls(FILE *out)
{
	for (uint32_t i = 0; i < kfd.ndevices; i++) {
		fprintf(out, "Node %u, gpu_id %x:\n", i + 1, kfd.device[i].gpu_id);
		if (!dump_list(out, &kfd.device[i]))
			fputs("  No active runlist\n", out);
	}
}
