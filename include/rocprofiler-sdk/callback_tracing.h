/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Tracing with callbacks: called on the thread where something happens, before and after it.
 *
 * What a record's payload points to is the struct of its kind, *_data_t. Arguments are the caller's
 * own; the returned value is there in ROCPROFILER_CALLBACK_PHASE_EXIT.
 */
#ifndef ROCPROFILER_SDK_CALLBACK_TRACING_H
#define ROCPROFILER_SDK_CALLBACK_TRACING_H

#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/fwd.h>
#include <rocprofiler-sdk/hip.h>
#include <rocprofiler-sdk/hsa.h>
#include <rocprofiler-sdk/marker.h>
#include <rocprofiler-sdk/ompt.h>
#include <rocprofiler-sdk/rccl.h>
#include <rocprofiler-sdk/rocdecode.h>
#include <rocprofiler-sdk/rocjpeg.h>

ROCPROFILER_EXTERN_C_INIT

typedef enum rocprofiler_code_object_storage_type_t {
	ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_NONE = 0,
	ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_FILE = 1,
	ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_MEMORY = 2,
	ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_LAST = 3,
} rocprofiler_code_object_storage_type_t;

typedef struct rocprofiler_callback_tracing_hsa_api_data_t {
	uint64_t size;
	rocprofiler_hsa_api_args_t args;
	rocprofiler_hsa_api_retval_t retval;
} rocprofiler_callback_tracing_hsa_api_data_t;

typedef struct rocprofiler_callback_tracing_hip_api_data_t {
	uint64_t size;
	rocprofiler_hip_api_args_t args;
	rocprofiler_hip_api_retval_t retval;
} rocprofiler_callback_tracing_hip_api_data_t;

typedef struct rocprofiler_callback_tracing_ompt_data_t {
	uint64_t size;
	rocprofiler_ompt_args_t args;
} rocprofiler_callback_tracing_ompt_data_t;

typedef struct rocprofiler_callback_tracing_marker_api_data_t {
	uint64_t size;
	rocprofiler_marker_api_args_t args;
	rocprofiler_marker_api_retval_t retval;
} rocprofiler_callback_tracing_marker_api_data_t;

typedef struct rocprofiler_callback_tracing_rccl_api_data_t {
	uint64_t size;
	rocprofiler_rccl_api_args_t args;
	rocprofiler_rccl_api_retval_t retval;
} rocprofiler_callback_tracing_rccl_api_data_t;

typedef struct rocprofiler_callback_tracing_rocdecode_api_data_t {
	uint64_t size;
	rocprofiler_rocdecode_api_args_t args;
	rocprofiler_rocdecode_api_retval_t retval;
} rocprofiler_callback_tracing_rocdecode_api_data_t;

typedef struct rocprofiler_callback_tracing_rocjpeg_api_data_t {
	uint64_t size;
	rocprofiler_rocjpeg_api_args_t args;
	rocprofiler_rocjpeg_api_retval_t retval;
} rocprofiler_callback_tracing_rocjpeg_api_data_t;

#define ROCPROFILER_CODE_OBJECT_ID_NONE ROCPROFILER_UINT64_C(0)

/* Code for a device that was loaded. hsa_agent is 0 where the device has none. */
typedef struct rocprofiler_callback_tracing_code_object_load_data_t {
	uint64_t size;
	uint64_t code_object_id;
	__extension__ union {
		rocprofiler_agent_id_t rocp_agent;
		rocprofiler_agent_id_t agent_id;
	};
	hsa_agent_t hsa_agent;
	const char *uri;
	uint64_t load_base;
	uint64_t load_size;
	int64_t load_delta;
	rocprofiler_code_object_storage_type_t storage_type;
	__extension__ union {
		__extension__ struct {
			int storage_file;
		};
		__extension__ struct {
			uint64_t memory_base;
			uint64_t memory_size;
		};
	};
} rocprofiler_callback_tracing_code_object_load_data_t;

/* A kernel in it; kernel_id is what launches name. */
typedef struct rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t {
	uint64_t size;
	uint64_t kernel_id;
	uint64_t code_object_id;
	const char *kernel_name;
	uint64_t kernel_object;
	uint32_t kernarg_segment_size;
	uint32_t kernarg_segment_alignment;
	uint32_t group_segment_size;
	uint32_t private_segment_size;
	uint32_t sgpr_count;
	uint32_t arch_vgpr_count;
	uint32_t accum_vgpr_count;
	int64_t kernel_code_entry_byte_offset;
	rocprofiler_address_t kernel_address;
} rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t;

/* The function of the host that stands for a kernel. */
typedef struct rocprofiler_callback_tracing_code_object_host_kernel_symbol_register_data_t {
	uint64_t size;
	uint64_t host_function_id;
	uint64_t kernel_id;
	uint64_t code_object_id;
	rocprofiler_address_t host_function;
	rocprofiler_address_t modules;
	const char *device_function;
	uint32_t thread_limit;
	rocprofiler_dim3_t thread_ids;
	rocprofiler_dim3_t block_ids;
	rocprofiler_dim3_t block_dims;
	rocprofiler_dim3_t grid_dims;
	uint64_t workgroup_size;
} rocprofiler_callback_tracing_code_object_host_kernel_symbol_register_data_t;

typedef struct rocprofiler_callback_tracing_kernel_dispatch_data_t {
	uint64_t size;
	rocprofiler_timestamp_t start_timestamp;
	rocprofiler_timestamp_t end_timestamp;
	rocprofiler_kernel_dispatch_info_t dispatch_info;
} rocprofiler_callback_tracing_kernel_dispatch_data_t;

typedef struct rocprofiler_callback_tracing_memory_copy_data_t {
	uint64_t size;
	rocprofiler_timestamp_t start_timestamp;
	rocprofiler_timestamp_t end_timestamp;
	rocprofiler_agent_id_t dst_agent_id;
	rocprofiler_agent_id_t src_agent_id;
	uint64_t bytes;
	rocprofiler_address_t dst_address;
	rocprofiler_address_t src_address;
} rocprofiler_callback_tracing_memory_copy_data_t;

typedef struct rocprofiler_callback_tracing_memory_allocation_data_t {
	uint64_t size;
	rocprofiler_timestamp_t start_timestamp;
	rocprofiler_timestamp_t end_timestamp;
	rocprofiler_agent_id_t agent_id;
	rocprofiler_address_t address;
	uint64_t allocation_size;
} rocprofiler_callback_tracing_memory_allocation_data_t;

typedef struct rocprofiler_callback_tracing_scratch_memory_data_t {
	uint64_t size;
	rocprofiler_agent_id_t agent_id;
	rocprofiler_queue_id_t queue_id;
	rocprofiler_scratch_alloc_flag_t flags;
	hsa_amd_tool_event_kind_t args_kind;
	rocprofiler_scratch_memory_args_t args;
} rocprofiler_callback_tracing_scratch_memory_data_t;

typedef struct rocprofiler_callback_tracing_runtime_initialization_data_t {
	uint64_t size;
	uint64_t version;
	uint64_t instance;
} rocprofiler_callback_tracing_runtime_initialization_data_t;

/* stream_id 0 is the default stream. */
typedef struct rocprofiler_callback_tracing_hip_stream_data_t {
	uint64_t size;
	rocprofiler_stream_id_t stream_id;
	rocprofiler_address_t stream_value;
} rocprofiler_callback_tracing_hip_stream_data_t;

/* *user_data is 0 before, and after it what the callback has left there before. */
typedef void (*rocprofiler_callback_tracing_cb_t)(rocprofiler_callback_tracing_record_t record,
						  rocprofiler_user_data_t *user_data,
						  void *callback_data) ROCPROFILER_NONNULL(2);

/* Anything but 0 ends the iteration. */
typedef int (*rocprofiler_callback_tracing_kind_cb_t)(rocprofiler_callback_tracing_kind_t kind,
						      void *data);
typedef int (*rocprofiler_callback_tracing_kind_operation_cb_t)(
	rocprofiler_callback_tracing_kind_t kind, rocprofiler_tracing_operation_t operation,
	void *data);
typedef int (*rocprofiler_callback_tracing_operation_args_cb_t)(
	rocprofiler_callback_tracing_kind_t kind, rocprofiler_tracing_operation_t operation,
	uint32_t arg_number, const void *const arg_value_addr, int32_t arg_indirection_count,
	const char *arg_type, const char *arg_name, const char *arg_value_str,
	int32_t arg_dereference_count, void *data);

/* One kind once a context. "operations" NULL: all. */
rocprofiler_status_t rocprofiler_configure_callback_tracing_service(
	rocprofiler_context_id_t context_id, rocprofiler_callback_tracing_kind_t kind,
	const rocprofiler_tracing_operation_t *operations, size_t operations_count,
	rocprofiler_callback_tracing_cb_t callback, void *callback_args) ROCPROFILER_API;

/* Names live as long as the process. "name" and "name_len" may be NULL. */
rocprofiler_status_t
rocprofiler_query_callback_tracing_kind_name(rocprofiler_callback_tracing_kind_t kind,
					     const char **name, uint64_t *name_len) ROCPROFILER_API;
rocprofiler_status_t rocprofiler_query_callback_tracing_kind_operation_name(
	rocprofiler_callback_tracing_kind_t kind, rocprofiler_tracing_operation_t operation,
	const char **name, uint64_t *name_len) ROCPROFILER_API;

/* In ascending order; all kinds, NONE too. */
rocprofiler_status_t
rocprofiler_iterate_callback_tracing_kinds(rocprofiler_callback_tracing_kind_cb_t callback,
					   void *data) ROCPROFILER_API ROCPROFILER_NONNULL(1);
rocprofiler_status_t rocprofiler_iterate_callback_tracing_kind_operations(
	rocprofiler_callback_tracing_kind_t kind,
	rocprofiler_callback_tracing_kind_operation_cb_t callback, void *data) ROCPROFILER_API
	ROCPROFILER_NONNULL(2);

/* The arguments of a call, within its callback. Pointers are followed up to max_dereference_count
 * times; those that the function writes through lead to something only after it. */
rocprofiler_status_t rocprofiler_iterate_callback_tracing_kind_operation_args(
	rocprofiler_callback_tracing_record_t record,
	rocprofiler_callback_tracing_operation_args_cb_t callback, int32_t max_dereference_count,
	void *user_data) ROCPROFILER_API ROCPROFILER_NONNULL(2);

ROCPROFILER_EXTERN_C_FINI

#endif
