/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The tables of kinds. See names.h.
 */
#include <string.h>

#include <rocprofiler-sdk/rocprofiler.h>

#include "common/array.h"
#include "device/registry/devices.h"
#include "libkymo-sdk/tables/domains.h"
#include "libkymo-sdk/tables/names.h"

#define ARRAY_LENGTH_AS_INT(array) ((int32_t)ARRAY_SIZE(array))

static const char *const operation_names_code_object[] = {
	"CODE_OBJECT_NONE",
	"CODE_OBJECT_LOAD",
	"CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER",
	"CODE_OBJECT_HOST_KERNEL_SYMBOL_REGISTER",
};
static const char *const operation_names_scratch_memory[] = {
	"SCRATCH_MEMORY_NONE",
	"SCRATCH_MEMORY_ALLOC",
	"SCRATCH_MEMORY_FREE",
	"SCRATCH_MEMORY_ASYNC_RECLAIM",
};
static const char *const operation_names_kernel_dispatch[] = {
	"KERNEL_DISPATCH_NONE",
	"KERNEL_DISPATCH_ENQUEUE",
	"KERNEL_DISPATCH_COMPLETE",
};
static const char *const operation_names_memory_copy[] = {
	"MEMORY_COPY_NONE",           "MEMORY_COPY_HOST_TO_HOST",     "MEMORY_COPY_HOST_TO_DEVICE",
	"MEMORY_COPY_DEVICE_TO_HOST", "MEMORY_COPY_DEVICE_TO_DEVICE",
};
static const char *const operation_names_memory_allocation[] = {
	"MEMORY_ALLOCATION_NONE", "MEMORY_ALLOCATION_ALLOCATE",  "MEMORY_ALLOCATION_VMEM_ALLOCATE",
	"MEMORY_ALLOCATION_FREE", "MEMORY_ALLOCATION_VMEM_FREE",
};
static const char *const operation_names_runtime_initialization[] = {
	"RUNTIME_INITIALIZATION_NONE",    "RUNTIME_INITIALIZATION_HSA",
	"RUNTIME_INITIALIZATION_HIP",     "RUNTIME_INITIALIZATION_MARKER",
	"RUNTIME_INITIALIZATION_RCCL",    "RUNTIME_INITIALIZATION_ROCDECODE",
	"RUNTIME_INITIALIZATION_ROCJPEG",
};
static const char *const operation_names_hip_stream[] = {
	"HIP_STREAM_NONE",
	"HIP_STREAM_CREATE",
	"HIP_STREAM_DESTROY",
	"HIP_STREAM_SET",
};
static const char *const operation_names_kfd_event_page_migrate[] = {
	"ROCPROFILER_KFD_EVENT_PAGE_MIGRATE_PREFETCH",
	"ROCPROFILER_KFD_EVENT_PAGE_MIGRATE_PAGEFAULT_GPU",
	"ROCPROFILER_KFD_EVENT_PAGE_MIGRATE_PAGEFAULT_CPU",
	"ROCPROFILER_KFD_EVENT_PAGE_MIGRATE_TTM_EVICTION",
	"ROCPROFILER_KFD_EVENT_PAGE_MIGRATE_END",
};
static const char *const operation_names_kfd_event_page_fault[] = {
	"ROCPROFILER_KFD_EVENT_PAGE_FAULT_START",
	"ROCPROFILER_KFD_EVENT_PAGE_FAULT_START_READ_FAULT",
	"ROCPROFILER_KFD_EVENT_PAGE_FAULT_START_WRITE_FAULT",
	"ROCPROFILER_KFD_EVENT_PAGE_FAULT_END_PAGE_MIGRATED",
	"ROCPROFILER_KFD_EVENT_PAGE_FAULT_END_PAGE_UPDATED",
};
static const char *const operation_names_kfd_event_queue[] = {
	"ROCPROFILER_KFD_EVENT_QUEUE_EVICT_SVM",
	"ROCPROFILER_KFD_EVENT_QUEUE_EVICT_USERPTR",
	"ROCPROFILER_KFD_EVENT_QUEUE_EVICT_TTM",
	"ROCPROFILER_KFD_EVENT_QUEUE_EVICT_SUSPEND",
	"ROCPROFILER_KFD_EVENT_QUEUE_EVICT_CRIU_CHECKPOINT",
	"ROCPROFILER_KFD_EVENT_QUEUE_EVICT_CRIU_RESTORE",
	"ROCPROFILER_KFD_EVENT_QUEUE_RESTORE_RESCHEDULED",
	"ROCPROFILER_KFD_EVENT_QUEUE_RESTORE",
};
static const char *const operation_names_kfd_event_unmap_from_gpu[] = {
	"ROCPROFILER_KFD_EVENT_UNMAP_FROM_GPU_MMU_NOTIFY",
	"ROCPROFILER_KFD_EVENT_UNMAP_FROM_GPU_MMU_NOTIFY_MIGRATE",
	"ROCPROFILER_KFD_EVENT_UNMAP_FROM_GPU_UNMAP_FROM_CPU",
};
static const char *const operation_names_kfd_event_dropped_events[] = {
	"ROCPROFILER_KFD_EVENT_DROPPED_EVENTS"};
static const char *const operation_names_kfd_page_migrate[] = {
	"ROCPROFILER_KFD_PAGE_MIGRATE_PREFETCH",
	"ROCPROFILER_KFD_PAGE_MIGRATE_PAGEFAULT_GPU",
	"ROCPROFILER_KFD_PAGE_MIGRATE_PAGEFAULT_CPU",
	"ROCPROFILER_KFD_PAGE_MIGRATE_TTM_EVICTION",
};
static const char *const operation_names_kfd_page_fault[] = {
	"ROCPROFILER_KFD_PAGE_FAULT_READ_FAULT_MIGRATED",
	"ROCPROFILER_KFD_PAGE_FAULT_READ_FAULT_UPDATED",
	"ROCPROFILER_KFD_PAGE_FAULT_WRITE_FAULT_MIGRATED",
	"ROCPROFILER_KFD_PAGE_FAULT_WRITE_FAULT_UPDATED",
};
static const char *const operation_names_kfd_queue[] = {
	"ROCPROFILER_KFD_QUEUE_EVICT_SVM",
	"ROCPROFILER_KFD_QUEUE_EVICT_USERPTR",
	"ROCPROFILER_KFD_QUEUE_EVICT_TTM",
	"ROCPROFILER_KFD_QUEUE_EVICT_SUSPEND",
	"ROCPROFILER_KFD_QUEUE_EVICT_CRIU_CHECKPOINT",
	"ROCPROFILER_KFD_QUEUE_EVICT_CRIU_RESTORE",
};

/* Functions that are reported without arguments, with them, and operations that are no functions.
 */
#define KIND_WITHOUT_ARGUMENTS_INITIALIZER(kind, table)                                            \
	{                                                                                          \
		.name = kind, .functions = &sdk_function_list_of_##table                           \
	}
#define KIND_WITH_ARGUMENTS_INITIALIZER(kind, table, payload)                                      \
	{                                                                                          \
		.name = kind, .functions = &sdk_function_list_of_##table, .has_arguments = true,   \
		.arguments_offset = offsetof(payload, args)                                        \
	}
#define NAMED_OPERATIONS_KIND_INITIALIZER(kind, table)                                             \
	{                                                                                          \
		.name = kind, .operation_names = operation_names_##table,                          \
		.operation_names_count = ARRAY_LENGTH_AS_INT(operation_names_##table)              \
	}
#define BACKEND_KIND_INITIALIZER(kind, which)                                                      \
	{                                                                                          \
		.name = kind, .has_device_service = true,                                          \
		.device_service = DEVICE_SERVICE_CALLS_##which                                     \
	}

#define CALLBACK_KIND_DESIGNATOR(kind) [ROCPROFILER_CALLBACK_TRACING_##kind]
#define CALLBACK_DATA_TYPE_NAME(api)   rocprofiler_callback_tracing_##api##_data_t

static const struct sdk_tracing_kind_info
	callback_tracing_kinds[ROCPROFILER_CALLBACK_TRACING_LAST] = {
		CALLBACK_KIND_DESIGNATOR(NONE) = {.name = "NONE"},
		CALLBACK_KIND_DESIGNATOR(HSA_CORE_API) = KIND_WITH_ARGUMENTS_INITIALIZER(
			"HSA_CORE_API", hsa_core, CALLBACK_DATA_TYPE_NAME(hsa_api)),
		CALLBACK_KIND_DESIGNATOR(HSA_AMD_EXT_API) = KIND_WITH_ARGUMENTS_INITIALIZER(
			"HSA_AMD_EXT_API", hsa_amd_ext, CALLBACK_DATA_TYPE_NAME(hsa_api)),
		CALLBACK_KIND_DESIGNATOR(HSA_IMAGE_EXT_API) = KIND_WITH_ARGUMENTS_INITIALIZER(
			"HSA_IMAGE_EXT_API", hsa_image_ext, CALLBACK_DATA_TYPE_NAME(hsa_api)),
		CALLBACK_KIND_DESIGNATOR(HSA_FINALIZE_EXT_API) = KIND_WITH_ARGUMENTS_INITIALIZER(
			"HSA_FINALIZE_EXT_API", hsa_finalize_ext, CALLBACK_DATA_TYPE_NAME(hsa_api)),
		CALLBACK_KIND_DESIGNATOR(HIP_RUNTIME_API) = KIND_WITH_ARGUMENTS_INITIALIZER(
			"HIP_RUNTIME_API", hip_runtime, CALLBACK_DATA_TYPE_NAME(hip_api)),
		CALLBACK_KIND_DESIGNATOR(HIP_COMPILER_API) = KIND_WITH_ARGUMENTS_INITIALIZER(
			"HIP_COMPILER_API", hip_compiler, CALLBACK_DATA_TYPE_NAME(hip_api)),
		CALLBACK_KIND_DESIGNATOR(MARKER_CORE_API) = KIND_WITH_ARGUMENTS_INITIALIZER(
			"MARKER_CORE_API", marker_core, CALLBACK_DATA_TYPE_NAME(marker_api)),
		CALLBACK_KIND_DESIGNATOR(MARKER_CONTROL_API) = KIND_WITH_ARGUMENTS_INITIALIZER(
			"MARKER_CONTROL_API", marker_control, CALLBACK_DATA_TYPE_NAME(marker_api)),
		CALLBACK_KIND_DESIGNATOR(MARKER_NAME_API) = KIND_WITH_ARGUMENTS_INITIALIZER(
			"MARKER_NAME_API", marker_name, CALLBACK_DATA_TYPE_NAME(marker_api)),
		CALLBACK_KIND_DESIGNATOR(CODE_OBJECT) =
			NAMED_OPERATIONS_KIND_INITIALIZER("CODE_OBJECT", code_object),
		CALLBACK_KIND_DESIGNATOR(SCRATCH_MEMORY) =
			NAMED_OPERATIONS_KIND_INITIALIZER("SCRATCH_MEMORY", scratch_memory),
		CALLBACK_KIND_DESIGNATOR(KERNEL_DISPATCH) =
			NAMED_OPERATIONS_KIND_INITIALIZER("KERNEL_DISPATCH", kernel_dispatch),
		CALLBACK_KIND_DESIGNATOR(MEMORY_COPY) =
			NAMED_OPERATIONS_KIND_INITIALIZER("MEMORY_COPY", memory_copy),
		CALLBACK_KIND_DESIGNATOR(RCCL_API) = KIND_WITH_ARGUMENTS_INITIALIZER(
			"RCCL_API", rccl, CALLBACK_DATA_TYPE_NAME(rccl_api)),
		CALLBACK_KIND_DESIGNATOR(OMPT) = KIND_WITH_ARGUMENTS_INITIALIZER(
			"OMPT", ompt, CALLBACK_DATA_TYPE_NAME(ompt)),
		CALLBACK_KIND_DESIGNATOR(MEMORY_ALLOCATION) =
			NAMED_OPERATIONS_KIND_INITIALIZER("MEMORY_ALLOCATION", memory_allocation),
		CALLBACK_KIND_DESIGNATOR(RUNTIME_INITIALIZATION) =
			NAMED_OPERATIONS_KIND_INITIALIZER("RUNTIME_INITIALIZATION",
							  runtime_initialization),
		CALLBACK_KIND_DESIGNATOR(ROCDECODE_API) = KIND_WITH_ARGUMENTS_INITIALIZER(
			"ROCDECODE_API", rocdecode, CALLBACK_DATA_TYPE_NAME(rocdecode_api)),
		CALLBACK_KIND_DESIGNATOR(ROCJPEG_API) = KIND_WITH_ARGUMENTS_INITIALIZER(
			"ROCJPEG_API", rocjpeg, CALLBACK_DATA_TYPE_NAME(rocjpeg_api)),
		CALLBACK_KIND_DESIGNATOR(HIP_STREAM) =
			NAMED_OPERATIONS_KIND_INITIALIZER("HIP_STREAM", hip_stream),
		CALLBACK_KIND_DESIGNATOR(MARKER_CORE_RANGE_API) =
			KIND_WITH_ARGUMENTS_INITIALIZER("MARKER_CORE_RANGE_API", marker_core_range,
							CALLBACK_DATA_TYPE_NAME(marker_api)),
};

#define BUFFER_KIND_DESIGNATOR(kind)     [ROCPROFILER_BUFFER_TRACING_##kind]
#define BUFFER_EXT_RECORD_TYPE_NAME(api) rocprofiler_buffer_tracing_##api##_ext_record_t

static const struct sdk_tracing_kind_info buffer_tracing_kinds[ROCPROFILER_BUFFER_TRACING_LAST] = {
	BUFFER_KIND_DESIGNATOR(NONE) = {.name = "NONE"},
	BUFFER_KIND_DESIGNATOR(HSA_CORE_API) =
		KIND_WITHOUT_ARGUMENTS_INITIALIZER("HSA_CORE_API", hsa_core),
	BUFFER_KIND_DESIGNATOR(HSA_AMD_EXT_API) =
		KIND_WITHOUT_ARGUMENTS_INITIALIZER("HSA_AMD_EXT_API", hsa_amd_ext),
	BUFFER_KIND_DESIGNATOR(HSA_IMAGE_EXT_API) =
		KIND_WITHOUT_ARGUMENTS_INITIALIZER("HSA_IMAGE_EXT_API", hsa_image_ext),
	BUFFER_KIND_DESIGNATOR(HSA_FINALIZE_EXT_API) =
		KIND_WITHOUT_ARGUMENTS_INITIALIZER("HSA_FINALIZE_EXT_API", hsa_finalize_ext),
	BUFFER_KIND_DESIGNATOR(HIP_RUNTIME_API) =
		KIND_WITHOUT_ARGUMENTS_INITIALIZER("HIP_RUNTIME_API", hip_runtime),
	BUFFER_KIND_DESIGNATOR(HIP_COMPILER_API) =
		KIND_WITHOUT_ARGUMENTS_INITIALIZER("HIP_COMPILER_API", hip_compiler),
	BUFFER_KIND_DESIGNATOR(MARKER_CORE_API) =
		KIND_WITHOUT_ARGUMENTS_INITIALIZER("MARKER_CORE_API", marker_core),
	BUFFER_KIND_DESIGNATOR(MARKER_CONTROL_API) =
		KIND_WITHOUT_ARGUMENTS_INITIALIZER("MARKER_CONTROL_API", marker_control),
	BUFFER_KIND_DESIGNATOR(MARKER_NAME_API) =
		KIND_WITHOUT_ARGUMENTS_INITIALIZER("MARKER_NAME_API", marker_name),
	BUFFER_KIND_DESIGNATOR(MEMORY_COPY) =
		NAMED_OPERATIONS_KIND_INITIALIZER("MEMORY_COPY", memory_copy),
	BUFFER_KIND_DESIGNATOR(KERNEL_DISPATCH) =
		NAMED_OPERATIONS_KIND_INITIALIZER("KERNEL_DISPATCH", kernel_dispatch),
	BUFFER_KIND_DESIGNATOR(SCRATCH_MEMORY) =
		NAMED_OPERATIONS_KIND_INITIALIZER("SCRATCH_MEMORY", scratch_memory),
	BUFFER_KIND_DESIGNATOR(CORRELATION_ID_RETIREMENT) = {.name = "CORRELATION_ID_RETIREMENT"},
	BUFFER_KIND_DESIGNATOR(RCCL_API) = KIND_WITHOUT_ARGUMENTS_INITIALIZER("RCCL_API", rccl),
	BUFFER_KIND_DESIGNATOR(OMPT) = KIND_WITHOUT_ARGUMENTS_INITIALIZER("OMPT", ompt),
	BUFFER_KIND_DESIGNATOR(MEMORY_ALLOCATION) =
		NAMED_OPERATIONS_KIND_INITIALIZER("MEMORY_ALLOCATION", memory_allocation),
	BUFFER_KIND_DESIGNATOR(RUNTIME_INITIALIZATION) =
		NAMED_OPERATIONS_KIND_INITIALIZER("RUNTIME_INITIALIZATION", runtime_initialization),
	BUFFER_KIND_DESIGNATOR(ROCDECODE_API) =
		KIND_WITHOUT_ARGUMENTS_INITIALIZER("ROCDECODE_API", rocdecode),
	BUFFER_KIND_DESIGNATOR(ROCJPEG_API) =
		KIND_WITHOUT_ARGUMENTS_INITIALIZER("ROCJPEG_API", rocjpeg),
	BUFFER_KIND_DESIGNATOR(HIP_STREAM) =
		NAMED_OPERATIONS_KIND_INITIALIZER("HIP_STREAM", hip_stream),
	BUFFER_KIND_DESIGNATOR(HIP_RUNTIME_API_EXT) = KIND_WITH_ARGUMENTS_INITIALIZER(
		"HIP_RUNTIME_API_EXT", hip_runtime, BUFFER_EXT_RECORD_TYPE_NAME(hip_api)),
	BUFFER_KIND_DESIGNATOR(HIP_COMPILER_API_EXT) = KIND_WITH_ARGUMENTS_INITIALIZER(
		"HIP_COMPILER_API_EXT", hip_compiler, BUFFER_EXT_RECORD_TYPE_NAME(hip_api)),
	BUFFER_KIND_DESIGNATOR(ROCDECODE_API_EXT) = KIND_WITH_ARGUMENTS_INITIALIZER(
		"ROCDECODE_API_EXT", rocdecode, BUFFER_EXT_RECORD_TYPE_NAME(rocdecode_api)),
	BUFFER_KIND_DESIGNATOR(KFD_EVENT_PAGE_MIGRATE) =
		NAMED_OPERATIONS_KIND_INITIALIZER("KFD_EVENT_PAGE_MIGRATE", kfd_event_page_migrate),
	BUFFER_KIND_DESIGNATOR(KFD_EVENT_PAGE_FAULT) =
		NAMED_OPERATIONS_KIND_INITIALIZER("KFD_EVENT_PAGE_FAULT", kfd_event_page_fault),
	BUFFER_KIND_DESIGNATOR(KFD_EVENT_QUEUE) =
		NAMED_OPERATIONS_KIND_INITIALIZER("KFD_EVENT_QUEUE", kfd_event_queue),
	BUFFER_KIND_DESIGNATOR(KFD_EVENT_UNMAP_FROM_GPU) = NAMED_OPERATIONS_KIND_INITIALIZER(
		"KFD_EVENT_UNMAP_FROM_GPU", kfd_event_unmap_from_gpu),
	BUFFER_KIND_DESIGNATOR(KFD_EVENT_DROPPED_EVENTS) = NAMED_OPERATIONS_KIND_INITIALIZER(
		"KFD_EVENT_DROPPED_EVENTS", kfd_event_dropped_events),
	BUFFER_KIND_DESIGNATOR(KFD_PAGE_MIGRATE) =
		NAMED_OPERATIONS_KIND_INITIALIZER("KFD_PAGE_MIGRATE", kfd_page_migrate),
	BUFFER_KIND_DESIGNATOR(KFD_PAGE_FAULT) =
		NAMED_OPERATIONS_KIND_INITIALIZER("KFD_PAGE_FAULT", kfd_page_fault),
	BUFFER_KIND_DESIGNATOR(KFD_QUEUE) =
		NAMED_OPERATIONS_KIND_INITIALIZER("KFD_QUEUE", kfd_queue),
	BUFFER_KIND_DESIGNATOR(MARKER_CORE_RANGE_API) =
		KIND_WITHOUT_ARGUMENTS_INITIALIZER("MARKER_CORE_RANGE_API", marker_core_range),
};

static const struct sdk_tracing_kind_info kymo_own_kinds[SDK_KIND_KYMO_COUNT] = {
	[SDK_KIND_CUDA_RUNTIME_API - SDK_KIND_KYMO_FIRST] =
		BACKEND_KIND_INITIALIZER("CUDA_RUNTIME_API", CUDA_RUNTIME),
	[SDK_KIND_CUDA_DRIVER_API - SDK_KIND_KYMO_FIRST] =
		BACKEND_KIND_INITIALIZER("CUDA_DRIVER_API", CUDA_DRIVER),
	[SDK_KIND_OPENCL_API - SDK_KIND_KYMO_FIRST] =
		BACKEND_KIND_INITIALIZER("OPENCL_API", OPENCL),
};

static const struct sdk_tracing_kind_info *find_kymo_own_kind_by_number(int kind)
{
	if (kind < SDK_KIND_KYMO_FIRST || kind >= SDK_KIND_KYMO_FIRST + SDK_KIND_KYMO_COUNT)
		return NULL;
	return &kymo_own_kinds[kind - SDK_KIND_KYMO_FIRST];
}

const struct sdk_tracing_kind_info *sdk_find_callback_kind_by_number(int kind)
{
	if (kind < 0 || kind >= ARRAY_LENGTH_AS_INT(callback_tracing_kinds))
		return find_kymo_own_kind_by_number(kind);
	return &callback_tracing_kinds[kind];
}

const struct sdk_tracing_kind_info *sdk_find_buffer_kind_by_number(int kind)
{
	if (kind < 0 || kind >= ARRAY_LENGTH_AS_INT(buffer_tracing_kinds))
		return find_kymo_own_kind_by_number(kind);
	return &buffer_tracing_kinds[kind];
}

int32_t sdk_kind_get_operation_count(const struct sdk_tracing_kind_info *kind)
{
	if (kind->has_device_service) {
		const struct device_call_catalog *operations =
			device_find_call_catalog_of_service(kind->device_service);

		return operations ? (int32_t)operations->count : 0;
	}
	return kind->functions ? kind->functions->count : kind->operation_names_count;
}

const char *sdk_kind_get_operation_name(const struct sdk_tracing_kind_info *kind, int32_t operation)
{
	if (operation < 0 || operation >= sdk_kind_get_operation_count(kind))
		return NULL;
	if (kind->has_device_service)
		return device_find_call_catalog_of_service(kind->device_service)->name(operation);
	return kind->functions ? kind->functions->list[operation].name
			       : kind->operation_names[operation];
}

int sdk_argument_get_pointer_depth(const struct sdk_argument_description *argument)
{
	int count = 0;

	for (const char *at = argument->type; *at; at++)
		count += *at == '*';
	return count || argument->value != SDK_VALUE_POINTER ? count : 1;
}
