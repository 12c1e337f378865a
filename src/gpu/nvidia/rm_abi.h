/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control numbers, class numbers, status codes and parameter layouts of NVIDIA's resource manager
 * (RM), under the driver's own names, as in the open kernel modules 550 to 595. A control number or
 * layout of a new driver is added here.
 *
 * Every size is asserted: RM compares the size of the parameters with its own and returns
 * NV_ERR_INVALID_ARGUMENT when they differ.
 */
#ifndef GP_GPU_NVIDIA_RM_ABI_H
#define GP_GPU_NVIDIA_RM_ABI_H

#include <assert.h>
#include <stdint.h>
#include <sys/ioctl.h>

/* The control file and its ioctls. */

#define NV_CTL_DEVICE       "/dev/nvidiactl"
#define NV_MAJOR            195
#define NV_CTL_DEVICE_MINOR 255

#define NV_IOCTL_MAGIC      'F'

struct nv_rm_free { /* NVOS00 */
	uint32_t root;
	uint32_t parent;
	uint32_t object;
	uint32_t status;
};

struct nv_rm_control { /* NVOS54 */
	uint32_t client;
	uint32_t object;
	uint32_t cmd;
	uint32_t flags;
	uint64_t params;
	uint32_t params_size;
	uint32_t status; /* the ioctl itself returns 0 even when this is an error */
};

struct nv_rm_alloc { /* NVOS64 */
	uint32_t root;
	uint32_t parent;
	uint32_t object;
	uint32_t class;
	uint64_t params;
	uint64_t rights;
	uint32_t params_size;
	uint32_t flags;
	uint32_t status;
	uint32_t pad;
};

struct nv_rm_map { /* NVOS33 and the file to map through */
	uint32_t client;
	uint32_t device;
	uint32_t memory;
	uint32_t pad0;
	uint64_t offset;
	uint64_t length;
	uint64_t linear_address;
	uint32_t status;
	uint32_t flags;
	int32_t fd; /* a control file opened for this one mapping */
	uint32_t pad1;
};

static_assert(sizeof(struct nv_rm_free) == 16, "NVOS00");
static_assert(sizeof(struct nv_rm_control) == 32, "NVOS54");
static_assert(sizeof(struct nv_rm_alloc) == 48, "NVOS64");
static_assert(sizeof(struct nv_rm_map) == 56, "NVOS33");

#define NV_ESC_RM_FREE                _IOWR(NV_IOCTL_MAGIC, 0x29, struct nv_rm_free)
#define NV_ESC_RM_CONTROL             _IOWR(NV_IOCTL_MAGIC, 0x2a, struct nv_rm_control)
#define NV_ESC_RM_ALLOC               _IOWR(NV_IOCTL_MAGIC, 0x2b, struct nv_rm_alloc)
#define NV_ESC_RM_MAP_MEMORY          _IOWR(NV_IOCTL_MAGIC, 0x4e, struct nv_rm_map)
#define NVOS33_FLAGS_ACCESS_READ_ONLY 1u

/* Status codes. */

#define NV_OK                           0x00u
#define NV_ERR_BUSY_RETRY               0x03u
#define NV_ERR_GPU_IS_LOST              0x0fu
#define NV_ERR_GPU_IN_FULLCHIP_RESET    0x10u
#define NV_ERR_IN_USE                   0x17u
#define NV_ERR_INSERT_DUPLICATE_NAME    0x19u
#define NV_ERR_INSUFFICIENT_RESOURCES   0x1au
#define NV_ERR_INSUFFICIENT_PERMISSIONS 0x1bu
#define NV_ERR_INVALID_ADDRESS          0x1eu
#define NV_ERR_INVALID_ARGUMENT         0x1fu
#define NV_ERR_INVALID_CHANNEL          0x21u
#define NV_ERR_INVALID_CLASS            0x22u
#define NV_ERR_INVALID_CLIENT           0x23u
#define NV_ERR_INVALID_OBJECT           0x31u
#define NV_ERR_INVALID_OBJECT_HANDLE    0x33u
#define NV_ERR_INVALID_OBJECT_PARENT    0x36u
#define NV_ERR_INVALID_PARAM_STRUCT     0x3au
#define NV_ERR_INVALID_POINTER          0x3du
#define NV_ERR_INVALID_STATE            0x40u
#define NV_ERR_NO_MEMORY                0x51u
#define NV_ERR_NOT_SUPPORTED            0x56u
#define NV_ERR_OBJECT_NOT_FOUND         0x57u
#define NV_ERR_RESET_REQUIRED           0x62u
#define NV_ERR_STATE_IN_USE             0x63u
#define NV_ERR_TIMEOUT                  0x65u
#define NV_ERR_TIMEOUT_RETRY            0x66u
#define NV_ERR_GENERIC                  0xffffu

/* Classes. */

#define NV01_ROOT_CLIENT        0x00000041u /* a client */
#define NV01_DEVICE_0           0x00000080u
#define NV20_SUBDEVICE_0        0x00002080u
#define KEPLER_CHANNEL_GROUP_A  0x0000a06cu
#define HOPPER_CHANNEL_GPFIFO_A 0x0000c86fu
#define HOPPER_COMPUTE_A        0x0000cbc0u
#define HOPPER_DMA_COPY_A       0x0000c8b5u

/* Every generation has its own channel and compute class. All channel classes end in the byte 0x6f,
 * all compute classes in 0xc0. */
#define NV_IS_CHANNEL_CLASS(class) \
	((class) >= 0xa06fu && ((class) & 0xffffu) == (class) && ((class) & 0xffu) == 0x6fu)
#define NV_IS_COMPUTE_CLASS(class) \
	((class) >= 0xa0c0u && ((class) & 0xffffu) == (class) && ((class) & 0xffu) == 0xc0u)

struct nv0080_alloc {
	uint32_t device_id;
	uint32_t client_share;
	uint32_t target_client;
	uint32_t target_device;
	uint32_t flags;
	uint32_t pad0;
	uint64_t va_space_size;
	uint64_t va_start;
	uint64_t va_limit;
	uint32_t va_mode;
	uint32_t pad1;
};
static_assert(sizeof(struct nv0080_alloc) == 56, "NV0080_ALLOC_PARAMETERS");

struct nv2080_alloc {
	uint32_t subdevice_id;
};

#define NV20_SUBDEVICE_DIAG 0x0000208fu
#define NV_EVENT_BUFFER     0x000090cdu
#define NV_MEMORY_NO_DEVICE 0x000090ceu /* NV01_MEMORY_DEVICELESS */

/*
 * RM's internal numbers for kinds of objects. CLIENT_GET_CHILD_HANDLE takes these, not the class
 * numbers above (measured with 580.159.04; the same in the sources of 550 to 595).
 */
#define NV_INTERNAL_DEVICE          0x00e0ac20u
#define NV_INTERNAL_SUBDEVICE       0x004b01b3u
#define NV_INTERNAL_CHANNEL_GROUP   0x002b5b80u
#define NV_INTERNAL_CHANNEL         0x005d8d70u
#define NV_INTERNAL_GRAPHICS_OBJECT 0x00097648u /* compute objects are of this kind */

/* Clients of user processes are numbered by an index that grows by one per client and wraps. */
#define NV_CLIENT_BASE  0xc1d00000u
#define NV_CLIENT_COUNT 0x00100000u

/* Controls on a client (object = the client). */

#define NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION_V2 0x13eu
struct nv0000_build_version {
	char driver_version[256]; /* "580.159.04" */
	char version[256];
	char driver_branch[256]; /* not in 550 */
	char title[256];
	uint32_t changelist;
	uint32_t official_changelist;
};
static_assert(sizeof(struct nv0000_build_version) == 1032, "GET_BUILD_VERSION_V2");
#define NV0000_BUILD_VERSION_SIZE_OLD        776u

#define NV0000_CTRL_CMD_GPU_GET_ATTACHED_IDS 0x201u
struct nv0000_gpu_ids {
	uint32_t gpu_id[32]; /* unused entries: NV0000_CTRL_GPU_INVALID_ID */
};
static_assert(sizeof(struct nv0000_gpu_ids) == 128, "GET_ATTACHED_IDS");
#define NV0000_CTRL_GPU_INVALID_ID 0xffffffffu

/* The third array came after 570. An older driver accepts only the size without it. */
#define NV0000_CTRL_CMD_GPU_GET_PROBED_IDS 0x214u
struct nv0000_probed_ids {
	uint32_t gpu_id[32];
	uint32_t excluded_gpu_id[32];
	uint32_t gpu_flags[32];
};
static_assert(sizeof(struct nv0000_probed_ids) == 384, "GET_PROBED_IDS");
#define NV0000_PROBED_IDS_SIZE_OLD       256u

#define NV0000_CTRL_CMD_GPU_GET_PCI_INFO 0x21bu
struct nv0000_pci_info {
	uint32_t gpu_id;
	uint32_t domain;
	uint16_t bus;
	uint16_t slot;
};
static_assert(sizeof(struct nv0000_pci_info) == 12, "GET_PCI_INFO");

#define NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2 0x205u
struct nv0000_id_info {
	uint32_t gpu_id;
	uint32_t gpu_flags;
	uint32_t device_instance;
	uint32_t subdevice_instance;
	uint32_t sli_status;
	uint32_t board_id;
	uint32_t gpu_instance;
	int32_t numa_id;
};
static_assert(sizeof(struct nv0000_id_info) == 32, "GET_ID_INFO_V2");

#define NV0000_CTRL_CMD_CLIENT_GET_HANDLE_INFO 0xd02u
#define NV0000_HANDLE_INFO_PARENT              1u
#define NV0000_HANDLE_INFO_CLASSID             2u
struct nv0000_handle_info {
	uint32_t object;
	uint32_t index;
	uint64_t value; /* u32 parent or class */
};
static_assert(sizeof(struct nv0000_handle_info) == 16, "GET_HANDLE_INFO");

#define NV0000_CTRL_CMD_CLIENT_GET_CHILD_HANDLE 0xd05u
struct nv0000_child_handle {
	uint32_t parent;
	uint32_t kind; /* NV_INTERNAL_* */
	uint32_t object;
};
static_assert(sizeof(struct nv0000_child_handle) == 12, "GET_CHILD_HANDLE");

/* Controls on a subdevice. */

#define NV2080_CTRL_CMD_GPU_GET_ID 0x20800142u
struct nv2080_gpu_id {
	uint32_t gpu_id;
};

#define NV2080_CTRL_CMD_GPU_GET_PIDS 0x2080018du
#define NV2080_GET_PIDS_MAX          950u
struct nv2080_pids {
	uint32_t id_type; /* 0: a class */
	uint32_t id;
	uint32_t count;
	uint32_t pid[NV2080_GET_PIDS_MAX];
};
static_assert(sizeof(struct nv2080_pids) == 3812, "GPU_GET_PIDS");

#define NV2080_CTRL_CMD_TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO 0x20800406u
struct nv2080_time_correlation {
	uint8_t cpu_clock_id; /* 3: CLOCK_MONOTONIC_RAW */
	uint8_t count;
	uint8_t pad[6];
	struct {
		uint64_t cpu_ns;
		uint64_t gpu_ns;
	} sample[16];
};
static_assert(sizeof(struct nv2080_time_correlation) == 264, "GPU_CPU_TIME_CORRELATION_INFO");

#define NV2080_CTRL_CMD_GR_FECS_BIND_EVTBUF_FOR_UID_V2 0x20801238u
struct nv2080_bind_evtbuf {
	uint32_t event_buffer;
	uint32_t record_size;
	uint32_t level_of_detail; /* RM always uses the simple level for users */
	uint32_t event_filter;
	uint8_t all_users;
	uint8_t pad[3];
	uint32_t reason; /* out, when it fails */
};
static_assert(sizeof(struct nv2080_bind_evtbuf) == 24, "FECS_BIND_EVTBUF_FOR_UID_V2");

#define NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS 0x2080110bu
#define NV2080_DISABLE_CHANNELS_MAX           64u
struct nv2080_disable_channels {
	uint8_t disable;
	uint8_t pad0[3];
	uint32_t count;
	uint8_t only_disable_scheduling; /* do not preempt running work */
	uint8_t rewind_gp_put;
	uint8_t pad1[6];
	uint64_t runlist_preempt_event; /* for the kernel only; 0 */
	uint32_t client[NV2080_DISABLE_CHANNELS_MAX];
	uint32_t channel[NV2080_DISABLE_CHANNELS_MAX];
};
static_assert(sizeof(struct nv2080_disable_channels) == 536, "FIFO_DISABLE_CHANNELS");

#define NV2080_CTRL_CMD_FIFO_GET_CHANNEL_GROUP_UNIQUE_ID_INFO 0x20801123u
struct nv2080_group_ids {
	uint32_t client;
	uint32_t channel_or_group;
	uint32_t group_id;
	uint32_t count;
	uint32_t channel_id[128];
	uint32_t va_space_id[128];
	uint32_t veid[128];
};
static_assert(sizeof(struct nv2080_group_ids) == 1552, "GET_CHANNEL_GROUP_UNIQUE_ID_INFO");

#define NV2080_CTRL_CMD_GR_SET_CTXSW_PREEMPTION_MODE 0x20801210u
#define NV2080_PREEMPTION_FLAGS_COMPUTE              1u
struct nv2080_preemption_mode {
	uint32_t flags;
	uint32_t channel_or_group;
	uint32_t graphics_mode;
	uint32_t compute_mode; /* enum gp_nv_preempt_mode */
	uint32_t route_flags;
	uint32_t pad;
	uint64_t route;
};
static_assert(sizeof(struct nv2080_preemption_mode) == 32, "GR_SET_CTXSW_PREEMPTION_MODE");

/* Controls on a diagnostic subdevice. */

#define NV208F_CTRL_CMD_FIFO_GET_CHANNEL_STATE 0x208f0403u
struct nv208f_channel_state {
	uint32_t channel;
	uint32_t client;
	uint8_t bound;
	uint8_t enabled;
	uint8_t scheduled;
	uint8_t cpu_map;
	uint8_t contention;
	uint8_t runlist_set;
	uint8_t defer_rc;
	uint8_t pad;
};
static_assert(sizeof(struct nv208f_channel_state) == 16, "FIFO_GET_CHANNEL_STATE");

/* Memory without a device, and the event buffer in it. */

struct nv_memory_alloc { /* NV_MEMORY_ALLOCATION_PARAMS */
	uint32_t owner, type, flags, width, height;
	int32_t pitch;
	uint32_t attr;  /* NVOS32_ATTR_* */
	uint32_t attr2; /* NVOS32_ATTR2_* */
	uint32_t format, compr, zcull, pad0;
	uint64_t range_low, range_high, size, alignment, offset, limit, address;
	uint32_t ctag, va_space, internal_flags, tag;
	int32_t numa_node;
	uint32_t pad1;
};
static_assert(sizeof(struct nv_memory_alloc) == 128, "NV_MEMORY_ALLOCATION_PARAMS");
#define NVOS32_ATTR_COHERENCY_CACHED           (1u << 29)
#define NVOS32_ATTR2_PROTECTION_USER_READ_ONLY (1u << 22)

struct nv_event_buffer_alloc {
	uint64_t buffer_header; /* out */
	uint64_t record_buffer; /* out */
	uint32_t record_size;
	uint32_t record_count;
	uint64_t vardata_buffer;
	uint32_t vardata_size;
	uint32_t records_free_threshold;
	uint64_t notification;
	uint32_t vardata_free_threshold;
	uint32_t subdevice;
	uint32_t flags;
	uint32_t header_memory;
	uint32_t record_memory;
	uint32_t vardata_memory;
};
static_assert(sizeof(struct nv_event_buffer_alloc) == 72, "NV_EVENT_BUFFER_ALLOC_PARAMETERS");

struct nv_event_buffer_header {
	uint32_t record_get;
	uint32_t record_put;
	uint64_t record_count;
	uint64_t record_dropcount;
	uint64_t vardata_dropcount;
};
static_assert(sizeof(struct nv_event_buffer_header) == 32, "NV_EVENT_BUFFER_HEADER");

struct nv_fecs_record { /* NV_EVENT_BUFFER_RECORD with a FECS_EVENT_RECORD_V2 */
	uint16_t type;
	uint16_t subtype;
	uint32_t vardata;
	uint8_t tag; /* NV_FECS_TAG_* */
	uint8_t vmid;
	uint16_t seqno;
	uint32_t context_id; /* the unique id of a channel of the context */
	uint32_t pid;        /* in the initial pid namespace; ~0 = the kernel */
	uint16_t pad;
	uint8_t gpu_instance;
	uint8_t compute_instance;
	uint64_t timestamp_ns; /* the GPU's timer */
};
static_assert(sizeof(struct nv_fecs_record) == 32, "FECS record");
#define NV_FECS_TAG_SIMPLE_START                  6u /* the context is now on the engine */
#define NV_FECS_TAG_SIMPLE_END                    7u /* saved; off the engine */

#define NV90CD_CTRL_CMD_EVENT_BUFFER_ENABLE_EVENT 0x90cd0101u
struct nv90cd_enable {
	uint8_t enable;
	uint8_t pad[3];
	uint32_t flags; /* 1 = keep the oldest, 2 = keep the newest */
};
#define NV90CD_CTRL_CMD_EVENT_BUFFER_FLUSH 0x90cd0104u /* no parameters */

/* Controls on a channel group. */

#define NVA06C_CTRL_CMD_GPFIFO_SCHEDULE 0xa06c0101u /* accepted without effect; not used */
struct nva06c_gpfifo_schedule {
	uint8_t enable;
	uint8_t skip_submit;
	uint8_t skip_enable; /* came with 570 */
};

#define NVA06C_CTRL_CMD_SET_TIMESLICE 0xa06c0103u
#define NVA06C_CTRL_CMD_GET_TIMESLICE 0xa06c0104u
struct nva06c_timeslice {
	uint64_t us;
};

#define NVA06C_CTRL_CMD_PREEMPT 0xa06c0105u
struct nva06c_preempt {
	uint8_t wait;
	uint8_t manual_timeout;
	uint8_t pad[2];
	uint32_t timeout_us;
};
static_assert(sizeof(struct nva06c_preempt) == 8, "PREEMPT");

#define NVA06C_CTRL_CMD_GET_INFO 0xa06c0106u
struct nva06c_info {
	uint32_t tsg_id;
};

#define NVA06C_CTRL_CMD_SET_INTERLEAVE_LEVEL 0xa06c0107u
#define NVA06C_CTRL_CMD_GET_INTERLEAVE_LEVEL 0xa06c0108u
struct nva06c_interleave {
	uint32_t level; /* 0 low, 1 medium, 2 high */
};

#endif
