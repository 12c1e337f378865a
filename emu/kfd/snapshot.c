/* SPDX-License-Identifier: Apache-2.0 */
/* What there is: queues and devices of a target, and a process's own devices. */
#include "kfd.h"

#define LDS_BASE     0x1000000000000ull
#define SCRATCH_BASE 0x2000000000000ull
#define GPUVM_LIMIT  0x7fffffffffffull

int snapshot_queues(struct call *call, struct process *target, struct kfd_dbg_trap *args)
{
	uint32_t room = args->queue_snapshot.num_queues, stride = args->queue_snapshot.entry_size;
	uint64_t at = args->queue_snapshot.snapshot_buf_ptr;

	args->queue_snapshot.num_queues = 0;
	if (!stride)
		return -EINVAL;
	if (stride > sizeof(struct kfd_queue_snapshot_entry))
		args->queue_snapshot.entry_size = sizeof(struct kfd_queue_snapshot_entry);
	for (struct queue *q = target->queues; q; q = q->next) {
		struct kfd_queue_snapshot_entry entry = {
			.exception_status = q->exceptions,
			.ring_base_address = q->ring,
			.write_pointer_address = q->wptr,
			.read_pointer_address = q->rptr,
			.ctx_save_restore_address = q->cwsr,
			.queue_id = q->id,
			.gpu_id = q->device->gpu_id,
			.ring_size = q->ring_size,
			.queue_type = q->type,
			.ctx_save_restore_area_size = q->cwsr_size,
		};

		if (args->queue_snapshot.num_queues < room) {
			q->exceptions &= ~args->queue_snapshot.exception_mask;
			if (memory_write(call->pid, at, &entry, args->queue_snapshot.entry_size))
				return -EFAULT;
			at += stride;
		}
		args->queue_snapshot.num_queues++;
	}
	return 0;
}

static struct kfd_device_snapshot_entry device_entry(const struct process *p,
						     const struct device *d)
{
	const struct model *m = d->model;

	return (struct kfd_device_snapshot_entry){
		.exception_status = p->on[d->index].exceptions,
		.lds_base = LDS_BASE,
		.lds_limit = LDS_BASE + 0xffffffff,
		.scratch_base = SCRATCH_BASE,
		.scratch_limit = SCRATCH_BASE + 0xffffffff,
		.gpuvm_base = 0x4000,
		.gpuvm_limit = GPUVM_LIMIT,
		.gpu_id = d->gpu_id,
		.location_id = (d->index + 1) << 8,
		.vendor_id = 0x1002,
		.device_id = m->device_id,
		.fw_version = m->fw_version,
		.gfx_target_version = m->gfx_target_version,
		.simd_count = m->cus * m->simds_per_cu,
		.max_waves_per_simd = m->waves_per_simd,
		.array_count = m->arrays,
		.simd_arrays_per_engine = m->arrays_per_engine,
		.num_xcc = m->xccs,
		.capability = model_capability(m),
	};
}

int snapshot_devices(struct call *call, struct process *target, struct kfd_dbg_trap *args)
{
	uint32_t room = args->device_snapshot.num_devices,
		 stride = args->device_snapshot.entry_size;
	uint64_t at = args->device_snapshot.snapshot_buf_ptr;

	if (!at)
		return -EINVAL;
	args->device_snapshot.num_devices = kfd.ndevices;
	if (stride > sizeof(struct kfd_device_snapshot_entry))
		args->device_snapshot.entry_size = sizeof(struct kfd_device_snapshot_entry);
	for (uint32_t i = 0; i < kfd.ndevices && i < room; i++) {
		struct kfd_device_snapshot_entry entry = device_entry(target, &kfd.device[i]);

		target->on[i].exceptions &= ~args->device_snapshot.exception_mask;
		if (memory_write(call->pid, at, &entry, args->device_snapshot.entry_size))
			return -EFAULT;
		at += stride;
	}
	return 0;
}

struct apertures {
	uint64_t lds_base, lds_limit, scratch_base, scratch_limit, gpuvm_base, gpuvm_limit;
	uint32_t gpu_id, pad;
};

int node_apertures(struct call *call, void *data)
{
	struct kfd_process_apertures *args = data;
	struct apertures all[MAX_DEVICES];
	uint32_t n = args->num_of_nodes;

	if (!n) {
		args->num_of_nodes = kfd.ndevices;
		return 0;
	}
	if (n > kfd.ndevices + 1) /* the CPU is a node too */
		return -EINVAL;
	if (n > kfd.ndevices)
		n = kfd.ndevices;
	memset(all, 0, sizeof(all));
	for (uint32_t i = 0; i < n; i++)
		all[i] = (struct apertures){LDS_BASE,
					    LDS_BASE + 0xffffffff,
					    SCRATCH_BASE,
					    SCRATCH_BASE + 0xffffffff,
					    0x4000,
					    GPUVM_LIMIT,
					    kfd.device[i].gpu_id,
					    0};
	args->num_of_nodes = n;
	return memory_write(call->pid, args->apertures_ptr, all, n * sizeof(all[0]));
}
