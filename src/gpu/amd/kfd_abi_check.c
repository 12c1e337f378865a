/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks at compile time that every member of every structure in kfd_abi.h has the offset and size
 * of the driver's own header. tests/kfd/abi.sh checks that no member is left out.
 */
#include "gpu/amd/kfd_abi.h"

#define SIZE(type, size) _Static_assert(sizeof(struct type) == (size), #type)
#define AT(type, member, at, size)                                                \
	_Static_assert(offsetof(struct type, member) == (at), #type "." #member); \
	_Static_assert(sizeof(((struct type *)NULL)->member) == (size), #type "." #member " size")

SIZE(kfd_version, 8);
AT(kfd_version, major, 0, 4);
AT(kfd_version, minor, 4, 4);

SIZE(kfd_create_queue, 96);
AT(kfd_create_queue, ring_base_address, 0, 8);
AT(kfd_create_queue, write_pointer_address, 8, 8);
AT(kfd_create_queue, read_pointer_address, 16, 8);
AT(kfd_create_queue, doorbell_offset, 24, 8);
AT(kfd_create_queue, ring_size, 32, 4);
AT(kfd_create_queue, gpu_id, 36, 4);
AT(kfd_create_queue, queue_type, 40, 4);
AT(kfd_create_queue, queue_percentage, 44, 4);
AT(kfd_create_queue, queue_priority, 48, 4);
AT(kfd_create_queue, queue_id, 52, 4);
AT(kfd_create_queue, eop_buffer_address, 56, 8);
AT(kfd_create_queue, eop_buffer_size, 64, 8);
AT(kfd_create_queue, ctx_save_restore_address, 72, 8);
AT(kfd_create_queue, ctx_save_restore_size, 80, 4);
AT(kfd_create_queue, ctl_stack_size, 84, 4);
AT(kfd_create_queue, sdma_engine_id, 88, 4);
AT(kfd_create_queue, pad, 92, 4);

SIZE(kfd_destroy_queue, 8);
AT(kfd_destroy_queue, queue_id, 0, 4);
AT(kfd_destroy_queue, pad, 4, 4);

SIZE(kfd_update_queue, 24);
AT(kfd_update_queue, ring_base_address, 0, 8);
AT(kfd_update_queue, queue_id, 8, 4);
AT(kfd_update_queue, ring_size, 12, 4);
AT(kfd_update_queue, queue_percentage, 16, 4);
AT(kfd_update_queue, queue_priority, 20, 4);

SIZE(kfd_acquire_vm, 8);
AT(kfd_acquire_vm, drm_fd, 0, 4);
AT(kfd_acquire_vm, gpu_id, 4, 4);

SIZE(kfd_process_apertures, 16);
AT(kfd_process_apertures, apertures_ptr, 0, 8);
AT(kfd_process_apertures, num_of_nodes, 8, 4);
AT(kfd_process_apertures, pad, 12, 4);

SIZE(kfd_set_cu_mask, 16);
AT(kfd_set_cu_mask, queue_id, 0, 4);
AT(kfd_set_cu_mask, num_cu_mask, 4, 4);
AT(kfd_set_cu_mask, cu_mask_ptr, 8, 8);

SIZE(kfd_get_queue_wave_state, 24);
AT(kfd_get_queue_wave_state, ctl_stack_address, 0, 8);
AT(kfd_get_queue_wave_state, ctl_stack_used_size, 8, 4);
AT(kfd_get_queue_wave_state, save_area_used_size, 12, 4);
AT(kfd_get_queue_wave_state, queue_id, 16, 4);
AT(kfd_get_queue_wave_state, pad, 20, 4);

SIZE(kfd_smi_events, 8);
AT(kfd_smi_events, gpuid, 0, 4);
AT(kfd_smi_events, anon_fd, 4, 4);

SIZE(kfd_criu, 56);
AT(kfd_criu, devices, 0, 8);
AT(kfd_criu, bos, 8, 8);
AT(kfd_criu, priv_data, 16, 8);
AT(kfd_criu, priv_data_size, 24, 8);
AT(kfd_criu, num_devices, 32, 4);
AT(kfd_criu, num_bos, 36, 4);
AT(kfd_criu, num_objects, 40, 4);
AT(kfd_criu, pid, 44, 4);
AT(kfd_criu, op, 48, 4);
AT(kfd_criu, pad, 52, 4);

SIZE(kfd_runtime_enable, 16);
AT(kfd_runtime_enable, r_debug, 0, 8);
AT(kfd_runtime_enable, mode_mask, 8, 4);
AT(kfd_runtime_enable, capabilities_mask, 12, 4);

SIZE(kfd_runtime_info, 16);
AT(kfd_runtime_info, r_debug, 0, 8);
AT(kfd_runtime_info, runtime_state, 8, 4);
AT(kfd_runtime_info, ttmp_setup, 12, 4);

SIZE(kfd_save_area_header, 40);
AT(kfd_save_area_header, control_stack_offset, 0, 4);
AT(kfd_save_area_header, control_stack_size, 4, 4);
AT(kfd_save_area_header, wave_state_offset, 8, 4);
AT(kfd_save_area_header, wave_state_size, 12, 4);
AT(kfd_save_area_header, debug_offset, 16, 4);
AT(kfd_save_area_header, debug_size, 20, 4);
AT(kfd_save_area_header, err_payload_addr, 24, 8);
AT(kfd_save_area_header, err_event_id, 32, 4);
AT(kfd_save_area_header, reserved, 36, 4);

SIZE(kfd_dbg_trap, 32);
AT(kfd_dbg_trap, pid, 0, 4);
AT(kfd_dbg_trap, op, 4, 4);
AT(kfd_dbg_trap, enable.exception_mask, 8, 8);
AT(kfd_dbg_trap, enable.rinfo_ptr, 16, 8);
AT(kfd_dbg_trap, enable.rinfo_size, 24, 4);
AT(kfd_dbg_trap, enable.dbg_fd, 28, 4);
AT(kfd_dbg_trap, send_runtime_event.exception_mask, 8, 8);
AT(kfd_dbg_trap, send_runtime_event.gpu_id, 16, 4);
AT(kfd_dbg_trap, send_runtime_event.queue_id, 20, 4);
AT(kfd_dbg_trap, set_exceptions_enabled.exception_mask, 8, 8);
AT(kfd_dbg_trap, launch_override.override_mode, 8, 4);
AT(kfd_dbg_trap, launch_override.enable_mask, 12, 4);
AT(kfd_dbg_trap, launch_override.support_request_mask, 16, 4);
AT(kfd_dbg_trap, launch_override.pad, 20, 4);
AT(kfd_dbg_trap, launch_mode.launch_mode, 8, 4);
AT(kfd_dbg_trap, launch_mode.pad, 12, 4);
AT(kfd_dbg_trap, suspend_queues.exception_mask, 8, 8);
AT(kfd_dbg_trap, suspend_queues.queue_array_ptr, 16, 8);
AT(kfd_dbg_trap, suspend_queues.num_queues, 24, 4);
AT(kfd_dbg_trap, suspend_queues.grace_period, 28, 4);
AT(kfd_dbg_trap, resume_queues.queue_array_ptr, 8, 8);
AT(kfd_dbg_trap, resume_queues.num_queues, 16, 4);
AT(kfd_dbg_trap, resume_queues.pad, 20, 4);
AT(kfd_dbg_trap, set_node_address_watch.address, 8, 8);
AT(kfd_dbg_trap, set_node_address_watch.mode, 16, 4);
AT(kfd_dbg_trap, set_node_address_watch.mask, 20, 4);
AT(kfd_dbg_trap, set_node_address_watch.gpu_id, 24, 4);
AT(kfd_dbg_trap, set_node_address_watch.id, 28, 4);
AT(kfd_dbg_trap, clear_node_address_watch.gpu_id, 8, 4);
AT(kfd_dbg_trap, clear_node_address_watch.id, 12, 4);
AT(kfd_dbg_trap, set_flags.flags, 8, 4);
AT(kfd_dbg_trap, set_flags.pad, 12, 4);
AT(kfd_dbg_trap, query_debug_event.exception_mask, 8, 8);
AT(kfd_dbg_trap, query_debug_event.gpu_id, 16, 4);
AT(kfd_dbg_trap, query_debug_event.queue_id, 20, 4);
AT(kfd_dbg_trap, query_exception_info.info_ptr, 8, 8);
AT(kfd_dbg_trap, query_exception_info.info_size, 16, 4);
AT(kfd_dbg_trap, query_exception_info.source_id, 20, 4);
AT(kfd_dbg_trap, query_exception_info.exception_code, 24, 4);
AT(kfd_dbg_trap, query_exception_info.clear_exception, 28, 4);
AT(kfd_dbg_trap, queue_snapshot.exception_mask, 8, 8);
AT(kfd_dbg_trap, queue_snapshot.snapshot_buf_ptr, 16, 8);
AT(kfd_dbg_trap, queue_snapshot.num_queues, 24, 4);
AT(kfd_dbg_trap, queue_snapshot.entry_size, 28, 4);
AT(kfd_dbg_trap, device_snapshot.exception_mask, 8, 8);
AT(kfd_dbg_trap, device_snapshot.snapshot_buf_ptr, 16, 8);
AT(kfd_dbg_trap, device_snapshot.num_devices, 24, 4);
AT(kfd_dbg_trap, device_snapshot.entry_size, 28, 4);

SIZE(kfd_queue_snapshot_entry, 64);
AT(kfd_queue_snapshot_entry, exception_status, 0, 8);
AT(kfd_queue_snapshot_entry, ring_base_address, 8, 8);
AT(kfd_queue_snapshot_entry, write_pointer_address, 16, 8);
AT(kfd_queue_snapshot_entry, read_pointer_address, 24, 8);
AT(kfd_queue_snapshot_entry, ctx_save_restore_address, 32, 8);
AT(kfd_queue_snapshot_entry, queue_id, 40, 4);
AT(kfd_queue_snapshot_entry, gpu_id, 44, 4);
AT(kfd_queue_snapshot_entry, ring_size, 48, 4);
AT(kfd_queue_snapshot_entry, queue_type, 52, 4);
AT(kfd_queue_snapshot_entry, ctx_save_restore_area_size, 56, 4);
AT(kfd_queue_snapshot_entry, reserved, 60, 4);

SIZE(kfd_device_snapshot_entry, 120);
AT(kfd_device_snapshot_entry, exception_status, 0, 8);
AT(kfd_device_snapshot_entry, lds_base, 8, 8);
AT(kfd_device_snapshot_entry, lds_limit, 16, 8);
AT(kfd_device_snapshot_entry, scratch_base, 24, 8);
AT(kfd_device_snapshot_entry, scratch_limit, 32, 8);
AT(kfd_device_snapshot_entry, gpuvm_base, 40, 8);
AT(kfd_device_snapshot_entry, gpuvm_limit, 48, 8);
AT(kfd_device_snapshot_entry, gpu_id, 56, 4);
AT(kfd_device_snapshot_entry, location_id, 60, 4);
AT(kfd_device_snapshot_entry, vendor_id, 64, 4);
AT(kfd_device_snapshot_entry, device_id, 68, 4);
AT(kfd_device_snapshot_entry, revision_id, 72, 4);
AT(kfd_device_snapshot_entry, subsystem_vendor_id, 76, 4);
AT(kfd_device_snapshot_entry, subsystem_device_id, 80, 4);
AT(kfd_device_snapshot_entry, fw_version, 84, 4);
AT(kfd_device_snapshot_entry, gfx_target_version, 88, 4);
AT(kfd_device_snapshot_entry, simd_count, 92, 4);
AT(kfd_device_snapshot_entry, max_waves_per_simd, 96, 4);
AT(kfd_device_snapshot_entry, array_count, 100, 4);
AT(kfd_device_snapshot_entry, simd_arrays_per_engine, 104, 4);
AT(kfd_device_snapshot_entry, num_xcc, 108, 4);
AT(kfd_device_snapshot_entry, capability, 112, 4);
AT(kfd_device_snapshot_entry, debug_prop, 116, 4);
