/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/nvidia/ctxsw.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RECORDS     8192
#define HEADER_SIZE 4096
#define RECORD_SIZE (RECORDS * sizeof(struct nv_fecs_record))

bool gp_ctxsw_next(struct gp_ctxsw_ring *ring, struct gp_ctxsw_event *event)
{
	for (;;) {
		uint32_t put = __atomic_load_n(&ring->header->record_put, __ATOMIC_ACQUIRE);
		struct nv_fecs_record r;

		if (put >= ring->count || ring->next == put)
			return false;
		r = ring->record[ring->next];
		ring->next = (ring->next + 1) % ring->count;
		if (ring->has_seqno)
			ring->lost += (uint16_t)(r.seqno - ring->seqno - 1);
		ring->seqno = r.seqno;
		ring->has_seqno = true;
		if (r.tag != NV_FECS_TAG_SIMPLE_START && r.tag != NV_FECS_TAG_SIMPLE_END)
			continue;
		*event = (struct gp_ctxsw_event){
			.context_id = r.context_id,
			.pid = r.pid,
			.on = r.tag == NV_FECS_TAG_SIMPLE_START,
			.at_ns = r.timestamp_ns,
		};
		return true;
	}
}

/* Memory that RM writes and this process only reads. */
static uint32_t alloc_memory(const struct gp_rm *rm, uint32_t *handle, uint64_t size)
{
	struct nv_memory_alloc p = {
		.attr = NVOS32_ATTR_COHERENCY_CACHED,
		.attr2 = NVOS32_ATTR2_PROTECTION_USER_READ_ONLY,
		.size = size,
	};

	return gp_rm_alloc(rm->fd, rm->client, rm->client, handle, NV_MEMORY_NO_DEVICE, &p,
			   sizeof p);
}

/* A file carries one mapping, so each mapping opens a file, and closes it after mmap. */
static uint32_t map_memory(const struct gp_rm *rm, uint32_t handle, size_t size, void **address)
{
	int fd = open(gp_rm_path(), O_RDWR | O_CLOEXEC);
	struct nv_rm_map m = {
		.client = rm->client,
		.device = rm->client,
		.memory = handle,
		.length = size,
		.flags = NVOS33_FLAGS_ACCESS_READ_ONLY,
		.fd = fd,
	};
	uint32_t status;

	if (fd < 0)
		return GP_RM_ERRNO | (uint32_t)errno;
	status = ioctl(rm->fd, NV_ESC_RM_MAP_MEMORY, &m) < 0 ? GP_RM_ERRNO | (uint32_t)errno
							     : m.status;
	if (!status) {
		*address = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
		if (*address == MAP_FAILED) {
			*address = NULL;
			status = GP_RM_ERRNO | (uint32_t)errno;
		}
	}
	close(fd);
	return status;
}

static uint32_t make_buffer(struct gp_ctxsw *c)
{
	const struct gp_rm *rm = c->rm;
	struct nv_event_buffer_alloc p = {
		.record_size = sizeof(struct nv_fecs_record), /* RM overruns a smaller one */
		.record_count = RECORDS,
		.records_free_threshold = RECORDS,
		.subdevice = rm->subdevice, /* RM does not check for 0 */
		.header_memory = c->header_memory,
		.record_memory = c->record_memory,
	};

	return gp_rm_alloc(rm->fd, rm->client, rm->client, &c->buffer, NV_EVENT_BUFFER, &p,
			   sizeof p);
}

static uint32_t start_recording(struct gp_ctxsw *c)
{
	const struct gp_rm *rm = c->rm;
	struct nv2080_bind_evtbuf bind = {
		.event_buffer = c->buffer,
		.record_size = sizeof(struct nv_fecs_record),
		.event_filter = ~0u,
		.all_users = 1,
	};
	struct nv90cd_enable enable = {.enable = 1, .flags = 2};
	uint32_t status;

	status = gp_rm_control(rm->fd, rm->client, rm->subdevice,
			       NV2080_CTRL_CMD_GR_FECS_BIND_EVTBUF_FOR_UID_V2, &bind, sizeof bind);
	if (!status)
		status = gp_rm_control(rm->fd, rm->client, c->buffer,
				       NV90CD_CTRL_CMD_EVENT_BUFFER_ENABLE_EVENT, &enable,
				       sizeof enable);
	return status;
}

int gp_ctxsw_open(struct gp_ctxsw *c, const struct gp_rm *rm, struct gp_error *err)
{
	uint32_t status;

	*c = (struct gp_ctxsw){.rm = rm};
	if (!rm->subdevice)
		return gp_fail(err, -ENOTSUP,
			       "context switches cannot be seen without the GPU's "
			       "device file");
	status = alloc_memory(rm, &c->header_memory, HEADER_SIZE);
	if (!status)
		status = alloc_memory(rm, &c->record_memory, RECORD_SIZE);
	if (!status)
		status = map_memory(rm, c->header_memory, HEADER_SIZE, &c->header);
	if (!status)
		status = map_memory(rm, c->record_memory, RECORD_SIZE, &c->record);
	if (!status)
		status = make_buffer(c);
	if (!status)
		status = start_recording(c);
	if (status) {
		gp_ctxsw_close(c);
		return gp_fail(err, gp_rm_errno(status), "context switches cannot be seen: %s",
			       gp_rm_status_name(status));
	}
	c->ring =
		(struct gp_ctxsw_ring){.header = c->header, .record = c->record, .count = RECORDS};
	c->ring.next = c->ring.header->record_put % RECORDS;
	return 0;
}

void gp_ctxsw_close(struct gp_ctxsw *c)
{
	const struct gp_rm *rm = c->rm;

	if (!rm)
		return;
	if (c->buffer)
		gp_rm_free(rm->fd, rm->client, rm->client, c->buffer);
	if (c->record)
		munmap(c->record, RECORD_SIZE);
	if (c->header)
		munmap(c->header, HEADER_SIZE);
	if (c->record_memory)
		gp_rm_free(rm->fd, rm->client, rm->client, c->record_memory);
	if (c->header_memory)
		gp_rm_free(rm->fd, rm->client, rm->client, c->header_memory);
	*c = (struct gp_ctxsw){0};
}

uint32_t gp_ctxsw_flush(struct gp_ctxsw *c)
{
	return gp_rm_control(c->rm->fd, c->rm->client, c->buffer,
			     NV90CD_CTRL_CMD_EVENT_BUFFER_FLUSH, NULL, 0);
}
