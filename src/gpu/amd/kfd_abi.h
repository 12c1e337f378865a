/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface of amdkfd, version 1.13 and later (Linux 6.5): ioctl numbers, structures and names
 * of the driver. A number of a new driver is added here. kfd_abi_check.c checks every size and
 * offset at compile time.
 */
#ifndef GP_GPU_AMD_KFD_ABI_H
#define GP_GPU_AMD_KFD_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

#define KFD_DEBUG_MAJOR 1
#define KFD_DEBUG_MINOR 13 /* the first version with this AMDKFD_IOC_DBG_TRAP */

/* Version, queues, runtime. */

struct kfd_version {
	uint32_t major;
	uint32_t minor;
};

/* Numbers in ioctls. sysfs uses other numbers (KFD_SYSFS_QUEUE_*). */
enum kfd_queue_type {
	KFD_QUEUE_COMPUTE = 0, /* PM4 packets */
	KFD_QUEUE_SDMA = 1,
	KFD_QUEUE_COMPUTE_AQL = 2,
	KFD_QUEUE_SDMA_XGMI = 3,
	KFD_QUEUE_SDMA_BY_ENG_ID = 4,
};

enum kfd_sysfs_queue_type {
	KFD_SYSFS_QUEUE_COMPUTE = 0, /* PM4 and AQL */
	KFD_SYSFS_QUEUE_SDMA = 1,
	KFD_SYSFS_QUEUE_HIQ = 2,
	KFD_SYSFS_QUEUE_DIQ = 3,
	KFD_SYSFS_QUEUE_SDMA_XGMI = 4,
	KFD_SYSFS_QUEUE_SDMA_BY_ENG_ID = 5,
};

#define KFD_QUEUE_PERCENT_MAX  100
#define KFD_QUEUE_PRIORITY_MAX 15

struct kfd_create_queue {
	uint64_t ring_base_address;
	uint64_t write_pointer_address;
	uint64_t read_pointer_address;
	uint64_t doorbell_offset; /* out */
	uint32_t ring_size;
	uint32_t gpu_id;
	uint32_t queue_type;
	uint32_t queue_percentage; /* bits 0 to 7 */
	uint32_t queue_priority;
	uint32_t queue_id; /* out */
	uint64_t eop_buffer_address;
	uint64_t eop_buffer_size;
	uint64_t ctx_save_restore_address;
	uint32_t ctx_save_restore_size;
	uint32_t ctl_stack_size;
	uint32_t sdma_engine_id;
	uint32_t pad;
};

struct kfd_destroy_queue {
	uint32_t queue_id;
	uint32_t pad;
};

/* Percentage 0 saves the waves of a queue and takes it off the hardware. Own process only. */
struct kfd_update_queue {
	uint64_t ring_base_address;
	uint32_t queue_id;
	uint32_t ring_size;
	uint32_t queue_percentage;
	uint32_t queue_priority;
};

struct kfd_acquire_vm {
	uint32_t drm_fd;
	uint32_t gpu_id;
};

struct kfd_process_apertures {
	uint64_t apertures_ptr;
	uint32_t num_of_nodes;
	uint32_t pad;
};

struct kfd_set_cu_mask {
	uint32_t queue_id;
	uint32_t num_cu_mask; /* bits: a multiple of 32 */
	uint64_t cu_mask_ptr;
};

struct kfd_get_queue_wave_state {
	uint64_t ctl_stack_address;
	uint32_t ctl_stack_used_size;
	uint32_t save_area_used_size;
	uint32_t queue_id;
	uint32_t pad;
};

struct kfd_smi_events {
	uint32_t gpuid;
	uint32_t anon_fd; /* out */
};

struct kfd_criu {
	uint64_t devices;
	uint64_t bos;
	uint64_t priv_data;
	uint64_t priv_data_size;
	uint32_t num_devices;
	uint32_t num_bos;
	uint32_t num_objects;
	uint32_t pid;
	uint32_t op;
	uint32_t pad;
};

enum kfd_runtime_state {
	KFD_RUNTIME_DISABLED = 0,
	KFD_RUNTIME_ENABLED = 1,
	KFD_RUNTIME_BUSY = 2,  /* another process has the hardware's only debug slot */
	KFD_RUNTIME_ERROR = 3, /* the hardware could not be set up */
};

#define KFD_RUNTIME_ENABLE_MODE_ENABLE    1u
#define KFD_RUNTIME_ENABLE_MODE_TTMP_SAVE 2u

struct kfd_runtime_enable {
	uint64_t r_debug;
	uint32_t mode_mask;
	uint32_t capabilities_mask;
};

struct kfd_runtime_info {
	uint64_t r_debug;
	uint32_t runtime_state; /* enum kfd_runtime_state */
	uint32_t ttmp_setup;
};

/* At the beginning of a queue's save area, once for each XCC. */
struct kfd_save_area_header {
	uint32_t control_stack_offset;
	uint32_t control_stack_size;
	uint32_t wave_state_offset;
	uint32_t wave_state_size;
	uint32_t debug_offset;
	uint32_t debug_size;
	uint64_t err_payload_addr;
	uint32_t err_event_id;
	uint32_t reserved;
};

/* The debugger's interface. */

enum kfd_dbg_op {
	KFD_DBG_ENABLE = 0,
	KFD_DBG_DISABLE = 1,
	KFD_DBG_SEND_RUNTIME_EVENT = 2,
	KFD_DBG_SET_EXCEPTIONS_ENABLED = 3,
	KFD_DBG_SET_WAVE_LAUNCH_OVERRIDE = 4,
	KFD_DBG_SET_WAVE_LAUNCH_MODE = 5,
	KFD_DBG_SUSPEND_QUEUES = 6,
	KFD_DBG_RESUME_QUEUES = 7,
	KFD_DBG_SET_NODE_ADDRESS_WATCH = 8,
	KFD_DBG_CLEAR_NODE_ADDRESS_WATCH = 9,
	KFD_DBG_SET_FLAGS = 10,
	KFD_DBG_QUERY_DEBUG_EVENT = 11,
	KFD_DBG_QUERY_EXCEPTION_INFO = 12,
	KFD_DBG_GET_QUEUE_SNAPSHOT = 13,
	KFD_DBG_GET_DEVICE_SNAPSHOT = 14,
};

/* Exceptions, as bits of a mask: 1 << (code - 1). */
#define KFD_EC_QUEUE_PREEMPTION_ERROR 0x20000000ull /* never raised by 6.12 */
#define KFD_EC_QUEUE_NEW              0x40000000ull
#define KFD_EC_QUEUE_DELETE           0x80000000ull
#define KFD_EC_MEMORY_VIOLATION       0x100000000ull
#define KFD_EC_PROCESS_RUNTIME        0x800000000000ull
#define KFD_EC_MASK_QUEUE             0x607f803full
#define KFD_EC_MASK_DEVICE            0xf80000000ull
#define KFD_EC_MASK_PROCESS           0x1800000000000ull

/* Bits that SUSPEND and RESUME set in the array of queue ids. */
#define KFD_DBG_QUEUE_ERROR   0x40000000u
#define KFD_DBG_QUEUE_INVALID 0x80000000u
#define KFD_DBG_QUEUE_ID_MASK 0x3fffffffu

#define KFD_DBG_QUEUES_MAX    1024u /* in one call, since 6.12.93 */

/* How long waves may run before they are saved, in units of 1,000 GPU clocks: MIN to MAX, or the
 * driver's DEFAULT. The driver keeps only the low 8 bits of other values. If these are 0, there is
 * no limit. */
#define KFD_GRACE_MIN     1u
#define KFD_GRACE_MAX     255u
#define KFD_GRACE_DEFAULT 0xffffffffu

struct kfd_dbg_trap {
	uint32_t pid; /* in the caller's pid namespace */
	uint32_t op;  /* enum kfd_dbg_op */
	union {
		struct {
			uint64_t exception_mask;
			uint64_t rinfo_ptr;
			uint32_t rinfo_size; /* in and out */
			uint32_t dbg_fd;
		} enable;
		struct {
			uint64_t exception_mask;
			uint32_t gpu_id;
			uint32_t queue_id;
		} send_runtime_event;
		struct {
			uint64_t exception_mask;
		} set_exceptions_enabled;
		struct {
			uint32_t override_mode;
			uint32_t enable_mask;          /* in and out */
			uint32_t support_request_mask; /* in and out */
			uint32_t pad;
		} launch_override;
		struct {
			uint32_t launch_mode;
			uint32_t pad;
		} launch_mode;
		struct {
			uint64_t exception_mask; /* to be cleared */
			uint64_t queue_array_ptr;
			uint32_t num_queues;
			uint32_t grace_period;
		} suspend_queues;
		struct { /* the order of members differs from the struct above */
			uint64_t queue_array_ptr;
			uint32_t num_queues;
			uint32_t pad;
		} resume_queues;
		struct {
			uint64_t address;
			uint32_t mode;
			uint32_t mask;
			uint32_t gpu_id;
			uint32_t id; /* out */
		} set_node_address_watch;
		struct {
			uint32_t gpu_id;
			uint32_t id;
		} clear_node_address_watch;
		struct {
			uint32_t flags; /* in and out */
			uint32_t pad;
		} set_flags;
		struct {
			uint64_t exception_mask; /* in: to be cleared; out: raised */
			uint32_t gpu_id;         /* out */
			uint32_t queue_id;       /* out */
		} query_debug_event;
		struct {
			uint64_t info_ptr;
			uint32_t info_size; /* in and out */
			uint32_t source_id;
			uint32_t exception_code;
			uint32_t clear_exception;
		} query_exception_info;
		struct {
			uint64_t exception_mask; /* to be cleared */
			uint64_t snapshot_buf_ptr;
			uint32_t num_queues; /* in: room; out: number of queues */
			uint32_t entry_size; /* in: stride; out: bytes of each */
		} queue_snapshot;
		struct {
			uint64_t exception_mask;
			uint64_t snapshot_buf_ptr;
			uint32_t num_devices;
			uint32_t entry_size;
		} device_snapshot;
	};
};

struct kfd_queue_snapshot_entry {
	uint64_t exception_status;
	uint64_t ring_base_address;
	uint64_t write_pointer_address;
	uint64_t read_pointer_address;
	uint64_t ctx_save_restore_address;
	uint32_t queue_id;
	uint32_t gpu_id;
	uint32_t ring_size;
	uint32_t queue_type; /* enum kfd_queue_type */
	uint32_t ctx_save_restore_area_size;
	uint32_t reserved;
};

struct kfd_device_snapshot_entry {
	uint64_t exception_status;
	uint64_t lds_base, lds_limit;
	uint64_t scratch_base, scratch_limit;
	uint64_t gpuvm_base, gpuvm_limit;
	uint32_t gpu_id;
	uint32_t location_id;
	uint32_t vendor_id, device_id, revision_id;
	uint32_t subsystem_vendor_id, subsystem_device_id;
	uint32_t fw_version;
	uint32_t gfx_target_version;
	uint32_t simd_count;
	uint32_t max_waves_per_simd;
	uint32_t array_count;
	uint32_t simd_arrays_per_engine;
	uint32_t num_xcc;
	uint32_t capability;
	uint32_t debug_prop;
};

/* Numbers. */

#define KFD_IOC_GET_VERSION           _IOR('K', 0x01, struct kfd_version)
#define KFD_IOC_CREATE_QUEUE          _IOWR('K', 0x02, struct kfd_create_queue)
#define KFD_IOC_DESTROY_QUEUE         _IOWR('K', 0x03, struct kfd_destroy_queue)
#define KFD_IOC_UPDATE_QUEUE          _IOW('K', 0x07, struct kfd_update_queue)
#define KFD_IOC_GET_PROCESS_APERTURES _IOWR('K', 0x14, struct kfd_process_apertures)
#define KFD_IOC_ACQUIRE_VM            _IOW('K', 0x15, struct kfd_acquire_vm)
#define KFD_IOC_SET_CU_MASK           _IOW('K', 0x1a, struct kfd_set_cu_mask)
#define KFD_IOC_GET_QUEUE_WAVE_STATE  _IOWR('K', 0x1b, struct kfd_get_queue_wave_state)
#define KFD_IOC_SMI_EVENTS            _IOWR('K', 0x1f, struct kfd_smi_events)
#define KFD_IOC_CRIU_OP               _IOWR('K', 0x22, struct kfd_criu)
#define KFD_IOC_RUNTIME_ENABLE        _IOWR('K', 0x25, struct kfd_runtime_enable)
#define KFD_IOC_DBG_TRAP              _IOWR('K', 0x26, struct kfd_dbg_trap)

_Static_assert(KFD_IOC_GET_VERSION == 0x80084b01, "");
_Static_assert(KFD_IOC_CREATE_QUEUE == 0xc0604b02, "");
_Static_assert(KFD_IOC_DESTROY_QUEUE == 0xc0084b03, "");
_Static_assert(KFD_IOC_UPDATE_QUEUE == 0x40184b07, "");
_Static_assert(KFD_IOC_GET_PROCESS_APERTURES == 0xc0104b14, "");
_Static_assert(KFD_IOC_ACQUIRE_VM == 0x40084b15, "");
_Static_assert(KFD_IOC_SET_CU_MASK == 0x40104b1a, "");
_Static_assert(KFD_IOC_GET_QUEUE_WAVE_STATE == 0xc0184b1b, "");
_Static_assert(KFD_IOC_SMI_EVENTS == 0xc0084b1f, "");
_Static_assert(KFD_IOC_CRIU_OP == 0xc0384b22, "");
_Static_assert(KFD_IOC_RUNTIME_ENABLE == 0xc0104b25, "");
_Static_assert(KFD_IOC_DBG_TRAP == 0xc0204b26, "");

#define KFD_IOC_LAST_NR 0x26

/* Topology. */

#define KFD_CAP_TRAP_DEBUG_SUPPORT  0x00008000u
#define KFD_CAP_TRAP_DEBUG_FIRMWARE 0x20000000u /* the firmware supports it */
#define KFD_CAP_DEBUG               (KFD_CAP_TRAP_DEBUG_SUPPORT | KFD_CAP_TRAP_DEBUG_FIRMWARE)

/* Dwords of a compute queue's MQD, the same on gfx9 to gfx12; rptr and wptr are old while mapped.
 */
enum kfd_mqd_dword {
	KFD_MQD_HQD_ACTIVE = 130,
	KFD_MQD_PIPE_PRIORITY = 133,
	KFD_MQD_QUEUE_PRIORITY = 134,
	KFD_MQD_PQ_BASE = 136, /* 64 bits, >> 8 */
	KFD_MQD_PQ_RPTR = 138,
	KFD_MQD_RPTR_REPORT_ADDR = 139, /* 64 bits */
	KFD_MQD_WPTR_POLL_ADDR = 141,   /* 64 bits */
	KFD_MQD_PQ_CONTROL = 145,
	KFD_MQD_CTX_SAVE_BASE = 171, /* 64 bits */
	KFD_MQD_CTX_SAVE_SIZE = 177,
	KFD_MQD_PQ_WPTR = 182, /* 64 bits */
};
#define KFD_MQD_COMPUTE_DWORDS 512u
#define KFD_MQD_PQ_SIZE_MASK   0x3fu /* of PQ_CONTROL: log2 of the ring's dwords, less 1 */

/* SMI events. */

enum kfd_smi_event {
	KFD_SMI_GPU_PRE_RESET = 3,
	KFD_SMI_GPU_POST_RESET = 4,
	KFD_SMI_QUEUE_EVICTION = 9,
	KFD_SMI_QUEUE_RESTORE = 10,
	KFD_SMI_ALL_PROCESS = 64,
};
#define KFD_SMI_BIT(event) (1ull << ((event)-1))

enum kfd_smi_trigger { /* of an eviction */
		       KFD_SMI_TRIGGER_SVM = 0,
		       KFD_SMI_TRIGGER_USERPTR = 1,
		       KFD_SMI_TRIGGER_TTM = 2,
		       KFD_SMI_TRIGGER_SUSPEND = 3, /* power management, or a reset */
		       KFD_SMI_TRIGGER_CRIU_CHECKPOINT = 4,
		       KFD_SMI_TRIGGER_CRIU_RESTORE = 5,
};

#define KFD_SMI_FIFO_SIZE   1024u /* of a client; a record that does not fit is dropped */
#define KFD_SMI_RECORD_SIZE 96u   /* the longest */

#endif
