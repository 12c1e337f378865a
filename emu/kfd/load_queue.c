/* SPDX-License-Identifier: Apache-2.0 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "load_queue.h"

#define RING_SIZE    65536u
#define RING_PACKETS (RING_SIZE / sizeof(struct kfd_emu_packet))
#define PAGE         4096u

/* As libhsakmt: a signal does not end a call. */
static int call(int fd, unsigned long cmd, void *args)
{
	int result;

	do {
		result = ioctl(fd, cmd, args);
	} while (result < 0 && (errno == EINTR || errno == EAGAIN));
	return result;
}

static void *map(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		err(1, "mmap");
	return memory;
}

int load_open(void)
{
	const char *path = getenv("GPREEMPT_KFD");
	struct kfd_version version;
	int fd = open(path ? path : "/dev/kfd", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		err(1, "%s", path ? path : "/dev/kfd");
	if (call(fd, KFD_IOC_GET_VERSION, &version))
		err(1, "GET_VERSION");
	return fd;
}

static uint32_t property(uint32_t node, const char *file, const char *name)
{
	const char *root = getenv("GPREEMPT_KFD_SYSFS");
	char path[512], word[64];
	unsigned long value = 0;
	FILE *in;

	snprintf(path, sizeof(path), "%s/topology/nodes/%u/%s", root ? root : "/sys/class/kfd/kfd",
		 node, file);
	in = fopen(path, "re");
	if (!in)
		err(1, "%s", path);
	if (!name && fscanf(in, "%lu", &value) != 1)
		errx(1, "%s: no number", path);
	while (name && fscanf(in, "%63s %lu", word, &value) == 2) {
		if (!strcmp(word, name))
			break;
		value = 0;
	}
	fclose(in);
	return (uint32_t)value;
}

static uint32_t node_of_gpu(uint32_t index)
{
	for (uint32_t node = 0;; node++)
		if (property(node, "gpu_id", NULL) && !index--)
			return node;
}

struct gpu load_gpu(int fd, uint32_t index)
{
	uint32_t node = node_of_gpu(index), simds = property(node, "properties", "simd_count"),
		 simds_per_cu = property(node, "properties", "simd_per_cu");
	struct gpu gpu = {
		.gpu_id = property(node, "gpu_id", NULL),
		.cwsr_size = property(node, "properties", "cwsr_size"),
		.ctl_stack_size = property(node, "properties", "ctl_stack_size"),
		.xccs = property(node, "properties", "num_xcc"),
	};
	struct kfd_acquire_vm vm = {.drm_fd = (uint32_t)fd, .gpu_id = gpu.gpu_id};

	gpu.debug_size = simds / simds_per_cu * 40 * 32; /* at least what the driver wants */
	if (call(fd, KFD_IOC_ACQUIRE_VM, &vm))
		err(1, "ACQUIRE_VM");
	return gpu;
}

void load_runtime(int fd, bool enable)
{
	struct kfd_runtime_enable args = {.r_debug = (uint64_t)(uintptr_t)&load_runtime,
					  .mode_mask = enable};

	if (call(fd, KFD_IOC_RUNTIME_ENABLE, &args))
		err(1, "RUNTIME_ENABLE");
}

/* Of the indices, a packet. */
static uint64_t units(const struct load_queue *q)
{
	if (q->type == KFD_QUEUE_COMPUTE_AQL)
		return 1;
	return q->type == KFD_QUEUE_COMPUTE ? 16 : 64;
}

void queue_open(int fd, const struct gpu *gpu, struct load_queue *q, uint32_t type,
		uint32_t priority)
{
	struct kfd_create_queue args = {.ring_size = RING_SIZE,
					.gpu_id = gpu->gpu_id,
					.queue_type = type,
					.queue_percentage = 100,
					.queue_priority = priority,
					.ctx_save_restore_size = gpu->cwsr_size,
					.ctl_stack_size = gpu->ctl_stack_size};

	memset(q, 0, sizeof(*q));
	q->type = type;
	q->ring = map(RING_SIZE);
	q->results = map(PAGE);
	q->save_size = (uint64_t)(gpu->cwsr_size + gpu->debug_size) * gpu->xccs;
	q->save_area = map(q->save_size);
	args.ring_base_address = (uint64_t)(uintptr_t)q->ring;
	args.read_pointer_address = (uint64_t)(uintptr_t)&q->results->rptr;
	args.write_pointer_address = (uint64_t)(uintptr_t)&q->results->wptr;
	args.ctx_save_restore_address = (uint64_t)(uintptr_t)q->save_area;
	if (call(fd, KFD_IOC_CREATE_QUEUE, &args))
		err(1, "CREATE_QUEUE");
	q->id = args.queue_id;
	q->doorbell = args.doorbell_offset;
}

void queue_close(int fd, struct load_queue *q)
{
	struct kfd_destroy_queue args = {.queue_id = q->id};

	if (call(fd, KFD_IOC_DESTROY_QUEUE, &args))
		err(1, "DESTROY_QUEUE");
	munmap(q->ring, RING_SIZE);
	munmap(q->results, PAGE);
	munmap(q->save_area, q->save_size);
}

static void ring_doorbell(int fd, const struct load_queue *q, uint64_t index)
{
	if (pwrite(fd, &index, sizeof(index), (off_t)q->doorbell) != sizeof(index))
		err(1, "doorbell");
}

void queue_submit(int fd, struct load_queue *q, uint32_t steps)
{
	uint64_t seed = (q->submitted + 1) * 0x9e3779b97f4a7c15ull + q->id, index;

	q->ring[q->submitted % RING_PACKETS] = (struct kfd_emu_packet){
		.header = KFD_EMU_PACKET_DISPATCH,
		.steps = steps,
		.accumulator = (uint64_t)(uintptr_t)&q->results->accumulator,
		.completed = (uint64_t)(uintptr_t)&q->results->completed,
		.seed = seed,
	};
	q->expected = kfd_emu_mix(q->expected, seed);
	index = ++q->submitted * units(q);
	__atomic_store_n(&q->results->wptr, index, __ATOMIC_RELEASE);
	ring_doorbell(fd, q, index);
}

void queue_delay(int fd, struct load_queue *q, bool waits)
{
	q->ring[(q->submitted - 1) % RING_PACKETS].header =
		waits ? KFD_EMU_PACKET_INVALID : KFD_EMU_PACKET_DISPATCH;
	if (!waits)
		ring_doorbell(fd, q, q->submitted * units(q));
}

uint64_t queue_room(const struct load_queue *q)
{
	return RING_PACKETS - 1 - (q->submitted - q->results->completed);
}

/* The hardware has taken all: it counts PM4 in the ring, the others for ever. */
static bool is_taken(const struct load_queue *q)
{
	uint64_t index = q->submitted * units(q);

	return q->results->rptr == (q->type == KFD_QUEUE_COMPUTE ? index % (RING_SIZE / 4) : index);
}

bool queue_is_done(const struct load_queue *q)
{
	return q->results->completed >= q->submitted && is_taken(q);
}

bool queue_is_right(const struct load_queue *q)
{
	return q->results->completed == q->submitted && q->results->accumulator == q->expected &&
	       is_taken(q);
}
