/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Tracing into buffers: one record an event, when it is over.
 *
 * The category of such records is ROCPROFILER_BUFFER_CATEGORY_TRACING and their kind one of
 * rocprofiler_buffer_tracing_kind_t. Each begins with its size, kind and operation.
 */
#ifndef ROCPROFILER_SDK_BUFFER_TRACING_H
#define ROCPROFILER_SDK_BUFFER_TRACING_H

#include <rocprofiler-sdk/agent.h>
#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/fwd.h>
#include <rocprofiler-sdk/hip.h>
#include <rocprofiler-sdk/hsa.h>
#include <rocprofiler-sdk/kfd/kfd_id.h>
#include <rocprofiler-sdk/marker.h>
#include <rocprofiler-sdk/ompt.h>
#include <rocprofiler-sdk/rccl.h>
#include <rocprofiler-sdk/rocdecode.h>
#include <rocprofiler-sdk/rocjpeg.h>

ROCPROFILER_EXTERN_C_INIT

typedef struct rocprofiler_buffer_tracing_hsa_api_record_t {
	uint64_t size;
	rocprofiler_buffer_tracing_kind_t kind;
	rocprofiler_tracing_operation_t operation;
	rocprofiler_correlation_id_t correlation_id;
	rocprofiler_timestamp_t start_timestamp;
	rocprofiler_timestamp_t end_timestamp;
	rocprofiler_thread_id_t thread_id;
} rocprofiler_buffer_tracing_hsa_api_record_t;

typedef struct rocprofiler_buffer_tracing_hip_api_record_t {
	uint64_t size;
	rocprofiler_buffer_tracing_kind_t kind;
	rocprofiler_tracing_operation_t operation;
	rocprofiler_correlation_id_t correlation_id;
	rocprofiler_timestamp_t start_timestamp;
	rocprofiler_timestamp_t end_timestamp;
	rocprofiler_thread_id_t thread_id;
} rocprofiler_buffer_tracing_hip_api_record_t;

/* Kinds HIP_RUNTIME_API_EXT and HIP_COMPILER_API_EXT. */
typedef struct rocprofiler_buffer_tracing_hip_api_ext_record_t {
	uint64_t size;
	rocprofiler_buffer_tracing_kind_t kind;
	rocprofiler_tracing_operation_t operation;
	rocprofiler_correlation_id_t correlation_id;
	rocprofiler_timestamp_t start_timestamp;
	rocprofiler_timestamp_t end_timestamp;
	rocprofiler_thread_id_t thread_id;
	rocprofiler_hip_api_args_t args;
	rocprofiler_hip_api_retval_t retval;
} rocprofiler_buffer_tracing_hip_api_ext_record_t;

typedef struct rocprofiler_buffer_tracing_ompt_target_t {
	int32_t kind;
	int32_t device_num;
	uint64_t task_id;
	uint64_t target_id;
	const void *codeptr_ra;
} rocprofiler_buffer_tracing_ompt_target_t;

typedef struct rocprofiler_buffer_tracing_ompt_target_data_op_t {
	uint64_t host_op_id;
	int32_t optype;
	int32_t src_device_num;
	int32_t dst_device_num;
	int32_t reserved;
	uint64_t bytes;
	const void *codeptr_ra;
} rocprofiler_buffer_tracing_ompt_target_data_op_t;

typedef struct rocprofiler_buffer_tracing_ompt_target_kernel_t {
	uint64_t host_op_id;
	int32_t device_num;
	uint32_t requested_num_teams;
} rocprofiler_buffer_tracing_ompt_target_kernel_t;

typedef struct rocprofiler_buffer_tracing_ompt_record_t {
	uint64_t size;
	rocprofiler_buffer_tracing_kind_t kind;
	rocprofiler_tracing_operation_t operation;
	rocprofiler_correlation_id_t correlation_id;
	rocprofiler_timestamp_t start_timestamp;
	rocprofiler_timestamp_t end_timestamp;
	rocprofiler_thread_id_t thread_id;
	__extension__ union {
		rocprofiler_buffer_tracing_ompt_target_t target;
		rocprofiler_buffer_tracing_ompt_target_data_op_t target_data_op;
		rocprofiler_buffer_tracing_ompt_target_kernel_t target_kernel;
		uint64_t reserved[5];
	};
} rocprofiler_buffer_tracing_ompt_record_t;

typedef struct rocprofiler_buffer_tracing_marker_api_record_t {
	uint64_t size;
	rocprofiler_buffer_tracing_kind_t kind;
	rocprofiler_tracing_operation_t operation;
	rocprofiler_correlation_id_t correlation_id;
	rocprofiler_timestamp_t start_timestamp;
	rocprofiler_timestamp_t end_timestamp;
	rocprofiler_thread_id_t thread_id;
} rocprofiler_buffer_tracing_marker_api_record_t;

typedef struct rocprofiler_buffer_tracing_rccl_api_record_t {
	uint64_t size;
	rocprofiler_buffer_tracing_kind_t kind;
	rocprofiler_tracing_operation_t operation;
	rocprofiler_correlation_id_t correlation_id;
	rocprofiler_timestamp_t start_timestamp;
	rocprofiler_timestamp_t end_timestamp;
	rocprofiler_thread_id_t thread_id;
} rocprofiler_buffer_tracing_rccl_api_record_t;

typedef struct rocprofiler_buffer_tracing_rocdecode_api_record_t {
	uint64_t size;
	rocprofiler_buffer_tracing_kind_t kind;
	rocprofiler_rocdecode_api_id_t operation;
	rocprofiler_correlation_id_t correlation_id;
	rocprofiler_timestamp_t start_timestamp;
	rocprofiler_timestamp_t end_timestamp;
	rocprofiler_thread_id_t thread_id;
} rocprofiler_buffer_tracing_rocdecode_api_record_t;

/* Kind ROCDECODE_API_EXT. */
typedef struct rocprofiler_buffer_tracing_rocdecode_api_ext_record_t {
	uint64_t size;
	rocprofiler_buffer_tracing_kind_t kind;
	rocprofiler_rocdecode_api_id_t operation;
	rocprofiler_correlation_id_t correlation_id;
	rocprofiler_timestamp_t start_timestamp;
	rocprofiler_timestamp_t end_timestamp;
	rocprofiler_thread_id_t thread_id;
	rocprofiler_rocdecode_api_args_t args;
	rocprofiler_rocdecode_api_retval_t retval;
} rocprofiler_buffer_tracing_rocdecode_api_ext_record_t;

typedef struct rocprofiler_buffer_tracing_rocjpeg_api_record_t {
	uint64_t size;
	rocprofiler_buffer_tracing_kind_t kind;
	rocprofiler_tracing_operation_t operation;
	rocprofiler_correlation_id_t correlation_id;
	rocprofiler_timestamp_t start_timestamp;
	rocprofiler_timestamp_t end_timestamp;
	rocprofiler_thread_id_t thread_id;
} rocprofiler_buffer_tracing_rocjpeg_api_record_t;

typedef struct rocprofiler_buffer_tracing_memory_copy_record_t {
	uint64_t size;
	rocprofiler_buffer_tracing_kind_t kind;
	rocprofiler_memory_copy_operation_t operation;
	rocprofiler_async_correlation_id_t correlation_id;
	rocprofiler_thread_id_t thread_id;
	rocprofiler_timestamp_t start_timestamp;
	rocprofiler_timestamp_t end_timestamp;
	rocprofiler_agent_id_t dst_agent_id;
	rocprofiler_agent_id_t src_agent_id;
	uint64_t bytes;
	rocprofiler_address_t dst_address;
	rocprofiler_address_t src_address;
} rocprofiler_buffer_tracing_memory_copy_record_t;

typedef struct rocprofiler_buffer_tracing_memory_allocation_record_t {
	uint64_t size;
	rocprofiler_buffer_tracing_kind_t kind;
	rocprofiler_memory_allocation_operation_t operation;
	rocprofiler_correlation_id_t correlation_id;
	rocprofiler_thread_id_t thread_id;
	rocprofiler_timestamp_t start_timestamp;
	rocprofiler_timestamp_t end_timestamp;
	rocprofiler_agent_id_t agent_id;
	rocprofiler_address_t address;
	uint64_t allocation_size;
} rocprofiler_buffer_tracing_memory_allocation_record_t;

typedef struct rocprofiler_buffer_tracing_kernel_dispatch_record_t {
	uint64_t size;
	rocprofiler_buffer_tracing_kind_t kind;
	rocprofiler_kernel_dispatch_operation_t operation;
	rocprofiler_async_correlation_id_t correlation_id;
	rocprofiler_thread_id_t thread_id;
	rocprofiler_timestamp_t start_timestamp;
	rocprofiler_timestamp_t end_timestamp;
	rocprofiler_kernel_dispatch_info_t dispatch_info;
} rocprofiler_buffer_tracing_kernel_dispatch_record_t;

/* What AMD's kernel driver reports: events as they come, and begin and end in one. */
typedef struct rocprofiler_buffer_tracing_kfd_event_page_migrate_record_t {
	uint64_t size;
	rocprofiler_buffer_tracing_kind_t kind;
	rocprofiler_kfd_event_page_migrate_operation_t operation;
	rocprofiler_timestamp_t timestamp;
	uint32_t pid;
	rocprofiler_address_t start_address;
	rocprofiler_address_t end_address;
	rocprofiler_agent_id_t src_agent;
	rocprofiler_agent_id_t dst_agent;
	rocprofiler_agent_id_t prefetch_agent;
	rocprofiler_agent_id_t preferred_agent;
	int32_t error_code;
} rocprofiler_buffer_tracing_kfd_event_page_migrate_record_t;

typedef struct rocprofiler_buffer_tracing_kfd_event_page_fault_record_t {
	uint64_t size;
	rocprofiler_buffer_tracing_kind_t kind;
	rocprofiler_kfd_event_page_fault_operation_t operation;
	rocprofiler_timestamp_t timestamp;
	uint32_t pid;
	rocprofiler_agent_id_t agent_id;
	rocprofiler_address_t address;
} rocprofiler_buffer_tracing_kfd_event_page_fault_record_t;

typedef struct rocprofiler_buffer_tracing_kfd_event_queue_record_t {
	uint64_t size;
	rocprofiler_buffer_tracing_kind_t kind;
	rocprofiler_kfd_event_queue_operation_t operation;
	rocprofiler_timestamp_t timestamp;
	uint32_t pid;
	rocprofiler_agent_id_t agent_id;
} rocprofiler_buffer_tracing_kfd_event_queue_record_t;

typedef struct rocprofiler_buffer_tracing_kfd_event_unmap_from_gpu_record_t {
	uint64_t size;
	rocprofiler_buffer_tracing_kind_t kind;
	rocprofiler_kfd_event_unmap_from_gpu_operation_t operation;
	rocprofiler_timestamp_t timestamp;
	uint32_t pid;
	rocprofiler_agent_id_t agent_id;
	rocprofiler_address_t start_address;
	rocprofiler_address_t end_address;
} rocprofiler_buffer_tracing_kfd_event_unmap_from_gpu_record_t;

typedef struct rocprofiler_buffer_tracing_kfd_event_dropped_events_record_t {
	uint64_t size;
	rocprofiler_buffer_tracing_kind_t kind;
	rocprofiler_kfd_event_dropped_events_operation_t operation;
	rocprofiler_timestamp_t timestamp;
	uint32_t pid;
	uint32_t count;
} rocprofiler_buffer_tracing_kfd_event_dropped_events_record_t;

typedef struct rocprofiler_buffer_tracing_kfd_page_migrate_record_t {
	uint64_t size;
	rocprofiler_buffer_tracing_kind_t kind;
	rocprofiler_kfd_page_migrate_operation_t operation;
	rocprofiler_timestamp_t start_timestamp;
	rocprofiler_timestamp_t end_timestamp;
	uint32_t pid;
	rocprofiler_address_t start_address;
	rocprofiler_address_t end_address;
	rocprofiler_agent_id_t src_agent;
	rocprofiler_agent_id_t dst_agent;
	rocprofiler_agent_id_t prefetch_agent;
	rocprofiler_agent_id_t preferred_agent;
	int32_t error_code;
} rocprofiler_buffer_tracing_kfd_page_migrate_record_t;

typedef struct rocprofiler_buffer_tracing_kfd_page_fault_record_t {
	uint64_t size;
	rocprofiler_buffer_tracing_kind_t kind;
	rocprofiler_kfd_page_fault_operation_t operation;
	rocprofiler_timestamp_t start_timestamp;
	rocprofiler_timestamp_t end_timestamp;
	uint32_t pid;
	rocprofiler_agent_id_t agent_id;
	rocprofiler_address_t address;
} rocprofiler_buffer_tracing_kfd_page_fault_record_t;

typedef struct rocprofiler_buffer_tracing_kfd_queue_record_t {
	uint64_t size;
	rocprofiler_buffer_tracing_kind_t kind;
	rocprofiler_kfd_queue_operation_t operation;
	rocprofiler_timestamp_t start_timestamp;
	rocprofiler_timestamp_t end_timestamp;
	uint32_t pid;
	rocprofiler_agent_id_t agent_id;
} rocprofiler_buffer_tracing_kfd_queue_record_t;

typedef struct rocprofiler_buffer_tracing_scratch_memory_record_t {
	uint64_t size;
	rocprofiler_buffer_tracing_kind_t kind;
	rocprofiler_scratch_memory_operation_t operation;
	rocprofiler_correlation_id_t correlation_id;
	rocprofiler_agent_id_t agent_id;
	rocprofiler_queue_id_t queue_id;
	rocprofiler_thread_id_t thread_id;
	rocprofiler_timestamp_t start_timestamp;
	rocprofiler_timestamp_t end_timestamp;
	rocprofiler_scratch_alloc_flag_t flags;
	uint64_t allocation_size;
} rocprofiler_buffer_tracing_scratch_memory_record_t;

/* No record stored after this one has the id. */
typedef struct rocprofiler_buffer_tracing_correlation_id_retirement_record_t {
	uint64_t size;
	rocprofiler_buffer_tracing_kind_t kind;
	rocprofiler_timestamp_t timestamp;
	uint64_t internal_correlation_id;
} rocprofiler_buffer_tracing_correlation_id_retirement_record_t;

typedef struct rocprofiler_buffer_tracing_runtime_initialization_record_t {
	uint64_t size;
	rocprofiler_buffer_tracing_kind_t kind;
	rocprofiler_runtime_initialization_operation_t operation;
	rocprofiler_correlation_id_t correlation_id;
	rocprofiler_thread_id_t thread_id;
	rocprofiler_timestamp_t timestamp;
	uint64_t version;
	uint64_t instance;
} rocprofiler_buffer_tracing_runtime_initialization_record_t;

/* Anything but 0 ends the iteration. */
typedef int (*rocprofiler_buffer_tracing_kind_cb_t)(rocprofiler_buffer_tracing_kind_t kind,
						    void *data);
typedef int (*rocprofiler_buffer_tracing_kind_operation_cb_t)(
	rocprofiler_buffer_tracing_kind_t kind, rocprofiler_tracing_operation_t operation,
	void *data);
typedef int (*rocprofiler_buffer_tracing_operation_args_cb_t)(
	rocprofiler_buffer_tracing_kind_t kind, rocprofiler_tracing_operation_t operation,
	uint32_t arg_number, const void *const arg_value_addr, int32_t arg_indirection_count,
	const char *arg_type, const char *arg_name, const char *arg_value_str, void *data);

/* One kind once a context. "operations" NULL: all. */
rocprofiler_status_t rocprofiler_configure_buffer_tracing_service(
	rocprofiler_context_id_t context_id, rocprofiler_buffer_tracing_kind_t kind,
	const rocprofiler_tracing_operation_t *operations, size_t operations_count,
	rocprofiler_buffer_id_t buffer_id) ROCPROFILER_API;

/* Names live as long as the process. "name" and "name_len" may be NULL. */
rocprofiler_status_t
rocprofiler_query_buffer_tracing_kind_name(rocprofiler_buffer_tracing_kind_t kind,
					   const char **name, uint64_t *name_len) ROCPROFILER_API;
rocprofiler_status_t rocprofiler_query_buffer_tracing_kind_operation_name(
	rocprofiler_buffer_tracing_kind_t kind, rocprofiler_tracing_operation_t operation,
	const char **name, uint64_t *name_len) ROCPROFILER_API;

/* In ascending order; all kinds, NONE too. */
rocprofiler_status_t
rocprofiler_iterate_buffer_tracing_kinds(rocprofiler_buffer_tracing_kind_cb_t callback,
					 void *data) ROCPROFILER_API ROCPROFILER_NONNULL(1);
rocprofiler_status_t rocprofiler_iterate_buffer_tracing_kind_operations(
	rocprofiler_buffer_tracing_kind_t kind,
	rocprofiler_buffer_tracing_kind_operation_cb_t callback, void *data) ROCPROFILER_API
	ROCPROFILER_NONNULL(2);

/* The arguments in a record of one of the kinds *_EXT. */
rocprofiler_status_t rocprofiler_iterate_buffer_tracing_record_args(
	rocprofiler_record_header_t record, rocprofiler_buffer_tracing_operation_args_cb_t callback,
	void *user_data) ROCPROFILER_API ROCPROFILER_NONNULL(2);

ROCPROFILER_EXTERN_C_FINI

#endif
