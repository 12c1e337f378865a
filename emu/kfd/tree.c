/* SPDX-License-Identifier: Apache-2.0 */
/* The folder: which files there are, by name. A file's number says all about it. */
#include "kfd.h"

/* As in sysfs, what is made again under an old name gets a new number: a process by its PASID, a
 * queue by what is left of 24 bits beside its id. */
#define SERIALS ((1u << 24) / MAX_QUEUES)

static uint32_t queue_index(const struct queue *q)
{
	return q->id + q->serial % SERIALS * MAX_QUEUES;
}

const struct queue *node_queue(const struct process *p, uint32_t index)
{
	const struct queue *q = process_queue(p, index % MAX_QUEUES);

	return q && queue_index(q) == index ? q : NULL;
}

fuse_ino_t node_ino(struct node n)
{
	return (fuse_ino_t)n.kind | (fuse_ino_t)n.index << 8 | (fuse_ino_t)n.pid << 32;
}

struct node node_of(fuse_ino_t ino)
{
	return (struct node){
		.kind = ino & 0xff, .index = ino >> 8 & 0xffffff, .pid = (pid_t)(ino >> 32)};
}

bool node_is_folder(struct node n)
{
	switch (n.kind) {
	case NODE_ROOT:
	case NODE_SYSFS:
	case NODE_TOPOLOGY:
	case NODE_NODES:
	case NODE_NODE:
	case NODE_PROC:
	case NODE_PID:
	case NODE_QUEUES:
	case NODE_QUEUE:
	case NODE_STATS:
	case NODE_DEBUGFS: return true;
	default: return false;
	}
}

mode_t node_mode(struct node n)
{
	if (n.kind == NODE_DEBUGFS)
		return S_IFDIR | 0700; /* root's only, as the kernel's */
	if (node_is_folder(n))
		return S_IFDIR | 0755;
	if (n.kind == NODE_KFD || n.kind == NODE_SMI)
		return S_IFREG | 0666;
	return S_IFREG | (n.kind == NODE_CONTROL ? 0600 : 0444);
}

/* Folders with constant content. */

static const struct {
	enum node_kind folder, kind;
	const char *name;
} fixed[] = {
	{NODE_ROOT, NODE_KFD, "kfd"},
	{NODE_ROOT, NODE_STATE, "state"},
	{NODE_ROOT, NODE_COUNTS, "counts"},
	{NODE_ROOT, NODE_CONTROL, "control"},
	{NODE_ROOT, NODE_SYSFS, "sysfs"},
	{NODE_ROOT, NODE_DEBUGFS, "debugfs"},
	{NODE_SYSFS, NODE_TOPOLOGY, "topology"},
	{NODE_SYSFS, NODE_PROC, "proc"},
	{NODE_TOPOLOGY, NODE_SYSTEM_PROPERTIES, "system_properties"},
	{NODE_TOPOLOGY, NODE_NODES, "nodes"},
	{NODE_NODE, NODE_GPU_ID, "gpu_id"},
	{NODE_NODE, NODE_NAME, "name"},
	{NODE_NODE, NODE_PROPERTIES, "properties"},
	{NODE_PID, NODE_PASID, "pasid"},
	{NODE_PID, NODE_QUEUES, "queues"},
	{NODE_QUEUE, NODE_QUEUE_GPUID, "gpuid"},
	{NODE_QUEUE, NODE_QUEUE_SIZE, "size"},
	{NODE_QUEUE, NODE_QUEUE_TYPE, "type"},
	{NODE_STATS, NODE_EVICTED_MS, "evicted_ms"},
	{NODE_STATS, NODE_CU_OCCUPANCY, "cu_occupancy"},
	{NODE_DEBUGFS, NODE_MQDS, "mqds"},
	{NODE_DEBUGFS, NODE_HQDS, "hqds"},
	{NODE_DEBUGFS, NODE_RLS, "rls"},
};

static bool has(struct node folder, enum node_kind kind)
{
	return kind != NODE_CU_OCCUPANCY || kfd.device[folder.index].model->cu_occupancy;
}

/* `place` becomes what is left of it. */
static bool fixed_child(struct node folder, uint32_t *place, struct node *child, char name[64])
{
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		if (fixed[i].folder != folder.kind || !has(folder, fixed[i].kind) || (*place)--)
			continue;
		*child = (struct node){fixed[i].kind, folder.pid, folder.index};
		snprintf(name, 64, "%s", fixed[i].name);
		return true;
	}
	return false;
}

static bool nth_process(uint32_t place, struct node *child, char name[64])
{
	for (const struct process *p = kfd.processes; p; p = p->next) {
		if (place--)
			continue;
		*child = (struct node){NODE_PID, p->pid, p->pasid};
		snprintf(name, 64, "%d", p->pid);
		return true;
	}
	return false;
}

static bool nth_queue(pid_t pid, uint32_t place, struct node *child, char name[64])
{
	const struct process *p = kfd.processes;

	while (p && p->pid != pid)
		p = p->next;
	for (const struct queue *q = p ? p->queues : NULL; q; q = q->next) {
		if (place--)
			continue;
		*child = (struct node){NODE_QUEUE, pid, queue_index(q)};
		snprintf(name, 64, "%u", q->id);
		return true;
	}
	return false;
}

/* vram_ID, sdma_ID, stats_ID of each device. */
static bool nth_of_devices(pid_t pid, uint32_t place, struct node *child, char name[64])
{
	static const struct {
		enum node_kind kind;
		const char *name;
	} each[] = {{NODE_VRAM, "vram"}, {NODE_SDMA, "sdma"}, {NODE_STATS, "stats"}};

	if (place / 3 >= kfd.ndevices)
		return false;
	*child = (struct node){each[place % 3].kind, pid, place / 3};
	snprintf(name, 64, "%s_%u", each[place % 3].name, kfd.device[place / 3].gpu_id);
	return true;
}

static bool nth_stream(uint32_t place, struct node *child, char name[64])
{
	if (place >= kfd.ndevices)
		return false;
	*child = (struct node){NODE_SMI, 0, place};
	snprintf(name, 64, "smi_%u", kfd.device[place].gpu_id);
	return true;
}

bool node_child(struct node folder, uint32_t place, struct node *child, char name[64])
{
	if (fixed_child(folder, &place, child, name))
		return true;
	switch (folder.kind) {
	case NODE_NODES:
		*child = (struct node){NODE_NODE, 0, place};
		snprintf(name, 64, "%u", place);
		return place <= kfd.ndevices;
	case NODE_SYSFS: return nth_stream(place, child, name);
	case NODE_PROC: return nth_process(place, child, name);
	case NODE_QUEUES: return nth_queue(folder.pid, place, child, name);
	case NODE_PID: return nth_of_devices(folder.pid, place, child, name);
	default: return false;
	}
}
