/* SPDX-License-Identifier: Apache-2.0 */
/* What stands in the files that stand for sysfs. A process's have no newline, the topology's do. */
#include "kfd.h"

static void print_properties(const struct device *d, FILE *out)
{
	const struct model *m = d->model;

	fprintf(out,
		"cpu_cores_count 0\nsimd_count %u\nmax_waves_per_simd %u\nwave_front_size %u\n"
		"array_count %u\nsimd_arrays_per_engine %u\ncu_per_simd_array %u\nsimd_per_cu %u\n"
		"gfx_target_version %u\nvendor_id %u\ndevice_id %u\nlocation_id %u\ndomain 0\n"
		"drm_render_minor %u\n",
		m->cus * m->simds_per_cu, m->waves_per_simd, m->mes ? 32u : 64u,
		m->arrays * m->xccs, m->arrays_per_engine, m->cus / m->arrays, m->simds_per_cu,
		m->gfx_target_version, 0x1002u, m->device_id, (d->index + 1) << 8, 128 + d->index);
	fprintf(out,
		"num_sdma_engines 2\nnum_sdma_xgmi_engines 0\nnum_sdma_queues_per_engine 8\n"
		"num_cp_queues %u\ncwsr_size %u\nctl_stack_size %u\nfw_version %u\n"
		"capability %u\ndebug_prop 1495\nunique_id %u\nnum_xcc %u\n",
		m->cp_queues, d->sizes.cwsr, d->sizes.control_stack, m->fw_version,
		model_capability(m), 0xe5000000u + d->index, m->xccs);
}

static bool print_topology(struct node n, FILE *out)
{
	const struct device *d = n.index ? &kfd.device[n.index - 1] : NULL;

	if (n.kind == NODE_GPU_ID)
		fprintf(out, "%u\n", d ? d->gpu_id : 0);
	else if (n.kind == NODE_NAME)
		fprintf(out, "%s\n", d ? d->model->name : "");
	else if (d)
		print_properties(d, out);
	else
		fputs("cpu_cores_count 2\nsimd_count 0\ngfx_target_version 0\n", out);
	return true;
}

/* As the registers say at this instant. */
static uint32_t occupied_cus(const struct process *p, const struct device *d)
{
	for (const struct queue *q = p->queues; q; q = q->next)
		if (q->device == d && q->mapped && q->busy &&
		    (q->type == KFD_QUEUE_COMPUTE || q->type == KFD_QUEUE_COMPUTE_AQL))
			return d->model->cus;
	return 0;
}

/* The driver's internal types, which are not those of its ioctls. */
static uint32_t sysfs_type(uint32_t type)
{
	switch (type) {
	case KFD_QUEUE_SDMA: return KFD_SYSFS_QUEUE_SDMA;
	case KFD_QUEUE_SDMA_XGMI: return KFD_SYSFS_QUEUE_SDMA_XGMI;
	default: return KFD_SYSFS_QUEUE_COMPUTE;
	}
}

static bool print_queue_file(const struct process *p, struct node n, FILE *out)
{
	const struct queue *q = node_queue(p, n.index);

	if (!q)
		return false;
	if (n.kind == NODE_QUEUE_GPUID)
		fprintf(out, "%u", q->device->gpu_id);
	else if (n.kind == NODE_QUEUE_SIZE)
		fprintf(out, "%u", q->ring_size);
	else
		fprintf(out, "%u", sysfs_type(q->type));
	return true;
}

static bool print_process_file(struct node n, FILE *out)
{
	const struct process *p = kfd.processes;
	struct device *d = &kfd.device[n.index < kfd.ndevices ? n.index : 0];
	const struct process_device *on;

	while (p && p->pid != n.pid)
		p = p->next;
	if (!p)
		return false;
	on = &p->on[d->index];
	switch (n.kind) {
	case NODE_PASID: fprintf(out, "%u", p->pasid); return true;
	case NODE_VRAM: fprintf(out, "%lu", on->vram); return true;
	case NODE_SDMA: fprintf(out, "%llu", on->sdma_ns / GP_NS_PER_US); return true;
	case NODE_EVICTED_MS: fprintf(out, "%llu", on->evicted_ns / GP_NS_PER_MS); return true;
	case NODE_CU_OCCUPANCY:
		cp_settle(d);
		fprintf(out, "%u", occupied_cus(p, d));
		return true;
	default: return print_queue_file(p, n, out);
	}
}

bool node_print(struct node n, FILE *out)
{
	switch (n.kind) {
	case NODE_STATE: state_print(out); return true;
	case NODE_COUNTS: counts_print(out, "%s%s %lu\n", ""); return true;
	case NODE_SYSTEM_PROPERTIES:
		fputs("platform_oem 0\nplatform_id 0\nplatform_rev 0\n", out);
		return true;
	case NODE_GPU_ID:
	case NODE_NAME:
	case NODE_PROPERTIES: return print_topology(n, out);
	case NODE_MQDS: debugfs_mqds(out); return true;
	case NODE_HQDS: debugfs_hqds(out); return true;
	case NODE_RLS: debugfs_rls(out); return true;
	default: return print_process_file(n, out);
	}
}
