/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The types of HSA's functions: from ROCm's own headers where they are installed, otherwise words
 * of the same size and the same names. What only pointers lead to is opaque then.
 */
#ifndef ROCPROFILER_SDK_HSA_TYPES_H
#define ROCPROFILER_SDK_HSA_TYPES_H

#include <rocprofiler-sdk/defines.h>

#include <stdbool.h>

#if !defined(ROCPROFILER_SDK_NO_ROCM_HEADERS) && defined(__has_include)
#if __has_include(<hsa/hsa_amd_tool.h>) && __has_include(<hsa/hsa_api_trace_version.h>)
#define ROCPROFILER_SDK_HAS_HSA_TYPES 1
#endif
#endif

#if defined(ROCPROFILER_SDK_HAS_HSA_TYPES)

#include <hsa/hsa.h>
#include <hsa/hsa_amd_tool.h>
#include <hsa/hsa_api_trace_version.h>
#include <hsa/hsa_ext_amd.h>
#include <hsa/hsa_ext_finalize.h>
#include <hsa/hsa_ext_image.h>
#include <hsa/hsa_ven_amd_loader.h>

/* These are in hsa_api_trace.h, which is C++. */
typedef void (*hsa_amd_queue_intercept_packet_writer)(const void *packets, uint64_t count);
typedef void (*hsa_amd_queue_intercept_handler)(const void *packets, uint64_t count,
						uint64_t user_packet_index, void *data,
						hsa_amd_queue_intercept_packet_writer writer);
typedef void (*hsa_amd_runtime_queue_notifier)(const hsa_queue_t *queue, hsa_agent_t agent,
					       void *data);

#else

#define HSA_API_TABLE_MAJOR_VERSION             0x03
#define HSA_CORE_API_TABLE_MAJOR_VERSION        0x02
#define HSA_AMD_EXT_API_TABLE_MAJOR_VERSION     0x02
#define HSA_FINALIZER_API_TABLE_MAJOR_VERSION   0x02
#define HSA_IMAGE_API_TABLE_MAJOR_VERSION       0x02
#define HSA_AQLPROFILE_API_TABLE_MAJOR_VERSION  0x01
#define HSA_TOOLS_API_TABLE_MAJOR_VERSION       0x01
#define HSA_PC_SAMPLING_API_TABLE_MAJOR_VERSION 0x01
#define HSA_API_TABLE_STEP_VERSION              0x01
#define HSA_CORE_API_TABLE_STEP_VERSION         0x00
#define HSA_AMD_EXT_API_TABLE_STEP_VERSION      0x07
#define HSA_FINALIZER_API_TABLE_STEP_VERSION    0x00
#define HSA_IMAGE_API_TABLE_STEP_VERSION        0x01
#define HSA_AQLPROFILE_API_TABLE_STEP_VERSION   0x00
#define HSA_TOOLS_API_TABLE_STEP_VERSION        0x00
#define HSA_PC_SAMPLING_API_TABLE_STEP_VERSION  0x00

typedef enum {
	HSA_STATUS_SUCCESS = 0,
	HSA_STATUS_INFO_BREAK = 1,
	HSA_STATUS_ERROR = 0x1000
} hsa_status_t;

typedef int hsa_access_permission_t;
typedef int hsa_agent_info_t;
typedef int hsa_amd_agent_memory_pool_info_t;
typedef int hsa_amd_coherency_type_t;
typedef int hsa_amd_copy_direction_t;
typedef int hsa_amd_memory_pool_info_t;
typedef int hsa_amd_memory_type_t;
typedef int hsa_amd_queue_priority_t;
typedef int hsa_amd_sdma_engine_id_t;
typedef int hsa_cache_info_t;
typedef int hsa_code_object_info_t;
typedef int hsa_code_object_type_t;
typedef int hsa_code_symbol_info_t;
typedef int hsa_default_float_rounding_mode_t;
typedef int hsa_executable_info_t;
typedef int hsa_executable_state_t;
typedef int hsa_executable_symbol_info_t;
typedef int hsa_ext_image_data_layout_t;
typedef int hsa_ext_image_geometry_t;
typedef int hsa_ext_program_info_t;
typedef int hsa_file_t;
typedef int hsa_flush_mode_t;
typedef int hsa_fp_type_t;
typedef int hsa_isa_info_t;
typedef int hsa_machine_model_t;
typedef int hsa_profile_t;
typedef int hsa_queue_info_attribute_t;
typedef int hsa_region_info_t;
typedef int hsa_round_method_t;
typedef int hsa_signal_condition_t;
typedef int hsa_system_info_t;
typedef int hsa_wait_state_t;
typedef int hsa_wavefront_info_t;
typedef uint32_t hsa_queue_type32_t;
typedef int64_t hsa_signal_value_t;

#define ROCP_HANDLE(name)                                                                          \
	typedef struct name##_s {                                                                  \
		uint64_t handle;                                                                   \
	} name##_t
ROCP_HANDLE(hsa_agent);
ROCP_HANDLE(hsa_amd_memory_pool);
ROCP_HANDLE(hsa_amd_vmem_alloc_handle);
ROCP_HANDLE(hsa_cache);
ROCP_HANDLE(hsa_callback_data);
ROCP_HANDLE(hsa_code_object_reader);
ROCP_HANDLE(hsa_code_object);
ROCP_HANDLE(hsa_code_symbol);
ROCP_HANDLE(hsa_executable_symbol);
ROCP_HANDLE(hsa_executable);
ROCP_HANDLE(hsa_ext_image);
ROCP_HANDLE(hsa_ext_program);
ROCP_HANDLE(hsa_ext_sampler);
ROCP_HANDLE(hsa_isa);
ROCP_HANDLE(hsa_loaded_code_object);
ROCP_HANDLE(hsa_region);
ROCP_HANDLE(hsa_signal_group);
ROCP_HANDLE(hsa_signal);
ROCP_HANDLE(hsa_wavefront);
#undef ROCP_HANDLE

typedef struct hsa_dim3_s {
	uint32_t x;
	uint32_t y;
	uint32_t z;
} hsa_dim3_t;
typedef struct hsa_ext_control_directives_s {
	uint64_t control_directives_mask;
	uint16_t break_exceptions_mask;
	uint16_t detect_exceptions_mask;
	uint32_t max_dynamic_group_size;
	uint64_t max_flat_grid_size;
	uint32_t max_flat_workgroup_size;
	uint32_t reserved1;
	uint64_t required_grid_size[3];
	hsa_dim3_t required_workgroup_size;
	uint8_t required_dim;
	uint8_t reserved2[75];
} hsa_ext_control_directives_t;

typedef struct BrigModuleHeader *hsa_ext_module_t;
typedef struct hsa_queue_s hsa_queue_t;
typedef struct hsa_amd_event_s hsa_amd_event_t;
typedef struct hsa_amd_image_descriptor_s hsa_amd_image_descriptor_t;
typedef struct hsa_amd_ipc_memory_s hsa_amd_ipc_memory_t;
typedef hsa_amd_ipc_memory_t hsa_amd_ipc_signal_t;
typedef struct hsa_amd_memory_access_desc_s hsa_amd_memory_access_desc_t;
typedef struct hsa_amd_pointer_info_s hsa_amd_pointer_info_t;
typedef struct hsa_amd_profiling_async_copy_time_s hsa_amd_profiling_async_copy_time_t;
typedef struct hsa_amd_profiling_dispatch_time_s hsa_amd_profiling_dispatch_time_t;
typedef struct hsa_amd_svm_attribute_pair_s hsa_amd_svm_attribute_pair_t;
typedef struct hsa_ext_image_data_info_s hsa_ext_image_data_info_t;
typedef struct hsa_ext_image_descriptor_s hsa_ext_image_descriptor_t;
typedef struct hsa_ext_image_format_s hsa_ext_image_format_t;
typedef struct hsa_ext_image_region_s hsa_ext_image_region_t;
typedef struct hsa_ext_sampler_descriptor_s hsa_ext_sampler_descriptor_t;
typedef struct hsa_pitched_ptr_s hsa_pitched_ptr_t;

typedef bool (*hsa_amd_signal_handler)(hsa_signal_value_t value, void *arg);
typedef hsa_status_t (*hsa_amd_system_event_callback_t)(const hsa_amd_event_t *event, void *data);
typedef void (*hsa_amd_deallocation_callback_t)(void *ptr, void *user_data);
typedef void (*hsa_amd_queue_intercept_packet_writer)(const void *packets, uint64_t count);
typedef void (*hsa_amd_queue_intercept_handler)(const void *packets, uint64_t count,
						uint64_t user_packet_index, void *data,
						hsa_amd_queue_intercept_packet_writer writer);
typedef void (*hsa_amd_runtime_queue_notifier)(const hsa_queue_t *queue, hsa_agent_t agent,
					       void *data);

typedef enum {
	HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_NONE = 0,
	HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_FILE = 1,
	HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_MEMORY = 2
} hsa_ven_amd_loader_code_object_storage_type_t;

typedef enum {
	HSA_AMD_EVENT_SCRATCH_ALLOC_FLAG_NONE = 0,
	HSA_AMD_EVENT_SCRATCH_ALLOC_FLAG_USE_ONCE = 1,
	HSA_AMD_EVENT_SCRATCH_ALLOC_FLAG_ALT = 2
} hsa_amd_event_scratch_alloc_flag_t;

typedef enum {
	HSA_AMD_TOOL_EVENT_MIN = 0,
	HSA_AMD_TOOL_EVENT_SCRATCH_ALLOC_START,
	HSA_AMD_TOOL_EVENT_SCRATCH_ALLOC_END,
	HSA_AMD_TOOL_EVENT_SCRATCH_FREE_START,
	HSA_AMD_TOOL_EVENT_SCRATCH_FREE_END,
	HSA_AMD_TOOL_EVENT_SCRATCH_ASYNC_RECLAIM_START,
	HSA_AMD_TOOL_EVENT_SCRATCH_ASYNC_RECLAIM_END,
	HSA_AMD_TOOL_EVENT_MAX
} hsa_amd_tool_event_kind_t;

#endif

typedef hsa_status_t (*hsa_ext_program_iterate_modules_cb_t)(hsa_ext_program_t program,
							     hsa_ext_module_t module, void *data);

#endif
