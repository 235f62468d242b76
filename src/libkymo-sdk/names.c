/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The tables of kinds. See names.h.
 */
#include <string.h>

#include <rocprofiler-sdk/rocprofiler.h>

#include "libkymo-sdk/domains.h"
#include "libkymo-sdk/names.h"

#define COUNT(array) ((int32_t)(sizeof(array) / sizeof((array)[0])))

static const char *const names_code_object[] = {
	"CODE_OBJECT_NONE",
	"CODE_OBJECT_LOAD",
	"CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER",
	"CODE_OBJECT_HOST_KERNEL_SYMBOL_REGISTER",
};
static const char *const names_scratch_memory[] = {
	"SCRATCH_MEMORY_NONE",
	"SCRATCH_MEMORY_ALLOC",
	"SCRATCH_MEMORY_FREE",
	"SCRATCH_MEMORY_ASYNC_RECLAIM",
};
static const char *const names_kernel_dispatch[] = {
	"KERNEL_DISPATCH_NONE",
	"KERNEL_DISPATCH_ENQUEUE",
	"KERNEL_DISPATCH_COMPLETE",
};
static const char *const names_memory_copy[] = {
	"MEMORY_COPY_NONE",           "MEMORY_COPY_HOST_TO_HOST",     "MEMORY_COPY_HOST_TO_DEVICE",
	"MEMORY_COPY_DEVICE_TO_HOST", "MEMORY_COPY_DEVICE_TO_DEVICE",
};
static const char *const names_memory_allocation[] = {
	"MEMORY_ALLOCATION_NONE", "MEMORY_ALLOCATION_ALLOCATE",  "MEMORY_ALLOCATION_VMEM_ALLOCATE",
	"MEMORY_ALLOCATION_FREE", "MEMORY_ALLOCATION_VMEM_FREE",
};
static const char *const names_runtime_initialization[] = {
	"RUNTIME_INITIALIZATION_NONE",    "RUNTIME_INITIALIZATION_HSA",
	"RUNTIME_INITIALIZATION_HIP",     "RUNTIME_INITIALIZATION_MARKER",
	"RUNTIME_INITIALIZATION_RCCL",    "RUNTIME_INITIALIZATION_ROCDECODE",
	"RUNTIME_INITIALIZATION_ROCJPEG",
};
static const char *const names_hip_stream[] = {
	"HIP_STREAM_NONE",
	"HIP_STREAM_CREATE",
	"HIP_STREAM_DESTROY",
	"HIP_STREAM_SET",
};
static const char *const names_kfd_event_page_migrate[] = {
	"ROCPROFILER_KFD_EVENT_PAGE_MIGRATE_PREFETCH",
	"ROCPROFILER_KFD_EVENT_PAGE_MIGRATE_PAGEFAULT_GPU",
	"ROCPROFILER_KFD_EVENT_PAGE_MIGRATE_PAGEFAULT_CPU",
	"ROCPROFILER_KFD_EVENT_PAGE_MIGRATE_TTM_EVICTION",
	"ROCPROFILER_KFD_EVENT_PAGE_MIGRATE_END",
};
static const char *const names_kfd_event_page_fault[] = {
	"ROCPROFILER_KFD_EVENT_PAGE_FAULT_START",
	"ROCPROFILER_KFD_EVENT_PAGE_FAULT_START_READ_FAULT",
	"ROCPROFILER_KFD_EVENT_PAGE_FAULT_START_WRITE_FAULT",
	"ROCPROFILER_KFD_EVENT_PAGE_FAULT_END_PAGE_MIGRATED",
	"ROCPROFILER_KFD_EVENT_PAGE_FAULT_END_PAGE_UPDATED",
};
static const char *const names_kfd_event_queue[] = {
	"ROCPROFILER_KFD_EVENT_QUEUE_EVICT_SVM",
	"ROCPROFILER_KFD_EVENT_QUEUE_EVICT_USERPTR",
	"ROCPROFILER_KFD_EVENT_QUEUE_EVICT_TTM",
	"ROCPROFILER_KFD_EVENT_QUEUE_EVICT_SUSPEND",
	"ROCPROFILER_KFD_EVENT_QUEUE_EVICT_CRIU_CHECKPOINT",
	"ROCPROFILER_KFD_EVENT_QUEUE_EVICT_CRIU_RESTORE",
	"ROCPROFILER_KFD_EVENT_QUEUE_RESTORE_RESCHEDULED",
	"ROCPROFILER_KFD_EVENT_QUEUE_RESTORE",
};
static const char *const names_kfd_event_unmap_from_gpu[] = {
	"ROCPROFILER_KFD_EVENT_UNMAP_FROM_GPU_MMU_NOTIFY",
	"ROCPROFILER_KFD_EVENT_UNMAP_FROM_GPU_MMU_NOTIFY_MIGRATE",
	"ROCPROFILER_KFD_EVENT_UNMAP_FROM_GPU_UNMAP_FROM_CPU",
};
static const char *const names_kfd_event_dropped_events[] = {
	"ROCPROFILER_KFD_EVENT_DROPPED_EVENTS"};
static const char *const names_kfd_page_migrate[] = {
	"ROCPROFILER_KFD_PAGE_MIGRATE_PREFETCH",
	"ROCPROFILER_KFD_PAGE_MIGRATE_PAGEFAULT_GPU",
	"ROCPROFILER_KFD_PAGE_MIGRATE_PAGEFAULT_CPU",
	"ROCPROFILER_KFD_PAGE_MIGRATE_TTM_EVICTION",
};
static const char *const names_kfd_page_fault[] = {
	"ROCPROFILER_KFD_PAGE_FAULT_READ_FAULT_MIGRATED",
	"ROCPROFILER_KFD_PAGE_FAULT_READ_FAULT_UPDATED",
	"ROCPROFILER_KFD_PAGE_FAULT_WRITE_FAULT_MIGRATED",
	"ROCPROFILER_KFD_PAGE_FAULT_WRITE_FAULT_UPDATED",
};
static const char *const names_kfd_queue[] = {
	"ROCPROFILER_KFD_QUEUE_EVICT_SVM",
	"ROCPROFILER_KFD_QUEUE_EVICT_USERPTR",
	"ROCPROFILER_KFD_QUEUE_EVICT_TTM",
	"ROCPROFILER_KFD_QUEUE_EVICT_SUSPEND",
	"ROCPROFILER_KFD_QUEUE_EVICT_CRIU_CHECKPOINT",
	"ROCPROFILER_KFD_QUEUE_EVICT_CRIU_RESTORE",
};

/* Functions that are told without arguments, with them, and operations that are no functions. */
#define FUNCTIONS(kind, table)                                                                     \
	{                                                                                          \
		.name = kind, .functions = &sdk_functions_##table                                  \
	}
#define CALLS(kind, table, payload)                                                                \
	{                                                                                          \
		.name = kind, .functions = &sdk_functions_##table, .has_arguments = true,          \
		.arguments_offset = offsetof(payload, args)                                        \
	}
#define EVENTS(kind, table)                                                                        \
	{                                                                                          \
		.name = kind, .names = names_##table, .names_count = COUNT(names_##table)          \
	}
#define DEVICE(kind, which)                                                                        \
	{                                                                                          \
		.name = kind, .is_device = true, .service = DEVICE_SERVICE_CALLS_##which           \
	}

#define CALLBACK(kind)     [ROCPROFILER_CALLBACK_TRACING_##kind]
#define CALLBACK_DATA(api) rocprofiler_callback_tracing_##api##_data_t

static const struct sdk_kind callback_kinds[ROCPROFILER_CALLBACK_TRACING_LAST] = {
	CALLBACK(NONE) = {.name = "NONE"},
	CALLBACK(HSA_CORE_API) = CALLS("HSA_CORE_API", hsa_core, CALLBACK_DATA(hsa_api)),
	CALLBACK(HSA_AMD_EXT_API) = CALLS("HSA_AMD_EXT_API", hsa_amd_ext, CALLBACK_DATA(hsa_api)),
	CALLBACK(HSA_IMAGE_EXT_API) =
		CALLS("HSA_IMAGE_EXT_API", hsa_image_ext, CALLBACK_DATA(hsa_api)),
	CALLBACK(HSA_FINALIZE_EXT_API) =
		CALLS("HSA_FINALIZE_EXT_API", hsa_finalize_ext, CALLBACK_DATA(hsa_api)),
	CALLBACK(HIP_RUNTIME_API) = CALLS("HIP_RUNTIME_API", hip_runtime, CALLBACK_DATA(hip_api)),
	CALLBACK(HIP_COMPILER_API) =
		CALLS("HIP_COMPILER_API", hip_compiler, CALLBACK_DATA(hip_api)),
	CALLBACK(MARKER_CORE_API) =
		CALLS("MARKER_CORE_API", marker_core, CALLBACK_DATA(marker_api)),
	CALLBACK(MARKER_CONTROL_API) =
		CALLS("MARKER_CONTROL_API", marker_control, CALLBACK_DATA(marker_api)),
	CALLBACK(MARKER_NAME_API) =
		CALLS("MARKER_NAME_API", marker_name, CALLBACK_DATA(marker_api)),
	CALLBACK(CODE_OBJECT) = EVENTS("CODE_OBJECT", code_object),
	CALLBACK(SCRATCH_MEMORY) = EVENTS("SCRATCH_MEMORY", scratch_memory),
	CALLBACK(KERNEL_DISPATCH) = EVENTS("KERNEL_DISPATCH", kernel_dispatch),
	CALLBACK(MEMORY_COPY) = EVENTS("MEMORY_COPY", memory_copy),
	CALLBACK(RCCL_API) = CALLS("RCCL_API", rccl, CALLBACK_DATA(rccl_api)),
	CALLBACK(OMPT) = CALLS("OMPT", ompt, CALLBACK_DATA(ompt)),
	CALLBACK(MEMORY_ALLOCATION) = EVENTS("MEMORY_ALLOCATION", memory_allocation),
	CALLBACK(RUNTIME_INITIALIZATION) = EVENTS("RUNTIME_INITIALIZATION", runtime_initialization),
	CALLBACK(ROCDECODE_API) = CALLS("ROCDECODE_API", rocdecode, CALLBACK_DATA(rocdecode_api)),
	CALLBACK(ROCJPEG_API) = CALLS("ROCJPEG_API", rocjpeg, CALLBACK_DATA(rocjpeg_api)),
	CALLBACK(HIP_STREAM) = EVENTS("HIP_STREAM", hip_stream),
	CALLBACK(MARKER_CORE_RANGE_API) =
		CALLS("MARKER_CORE_RANGE_API", marker_core_range, CALLBACK_DATA(marker_api)),
};

#define BUFFER(kind)     [ROCPROFILER_BUFFER_TRACING_##kind]
#define BUFFER_DATA(api) rocprofiler_buffer_tracing_##api##_ext_record_t

static const struct sdk_kind buffer_kinds[ROCPROFILER_BUFFER_TRACING_LAST] = {
	BUFFER(NONE) = {.name = "NONE"},
	BUFFER(HSA_CORE_API) = FUNCTIONS("HSA_CORE_API", hsa_core),
	BUFFER(HSA_AMD_EXT_API) = FUNCTIONS("HSA_AMD_EXT_API", hsa_amd_ext),
	BUFFER(HSA_IMAGE_EXT_API) = FUNCTIONS("HSA_IMAGE_EXT_API", hsa_image_ext),
	BUFFER(HSA_FINALIZE_EXT_API) = FUNCTIONS("HSA_FINALIZE_EXT_API", hsa_finalize_ext),
	BUFFER(HIP_RUNTIME_API) = FUNCTIONS("HIP_RUNTIME_API", hip_runtime),
	BUFFER(HIP_COMPILER_API) = FUNCTIONS("HIP_COMPILER_API", hip_compiler),
	BUFFER(MARKER_CORE_API) = FUNCTIONS("MARKER_CORE_API", marker_core),
	BUFFER(MARKER_CONTROL_API) = FUNCTIONS("MARKER_CONTROL_API", marker_control),
	BUFFER(MARKER_NAME_API) = FUNCTIONS("MARKER_NAME_API", marker_name),
	BUFFER(MEMORY_COPY) = EVENTS("MEMORY_COPY", memory_copy),
	BUFFER(KERNEL_DISPATCH) = EVENTS("KERNEL_DISPATCH", kernel_dispatch),
	BUFFER(SCRATCH_MEMORY) = EVENTS("SCRATCH_MEMORY", scratch_memory),
	BUFFER(CORRELATION_ID_RETIREMENT) = {.name = "CORRELATION_ID_RETIREMENT"},
	BUFFER(RCCL_API) = FUNCTIONS("RCCL_API", rccl),
	BUFFER(OMPT) = FUNCTIONS("OMPT", ompt),
	BUFFER(MEMORY_ALLOCATION) = EVENTS("MEMORY_ALLOCATION", memory_allocation),
	BUFFER(RUNTIME_INITIALIZATION) = EVENTS("RUNTIME_INITIALIZATION", runtime_initialization),
	BUFFER(ROCDECODE_API) = FUNCTIONS("ROCDECODE_API", rocdecode),
	BUFFER(ROCJPEG_API) = FUNCTIONS("ROCJPEG_API", rocjpeg),
	BUFFER(HIP_STREAM) = EVENTS("HIP_STREAM", hip_stream),
	BUFFER(HIP_RUNTIME_API_EXT) =
		CALLS("HIP_RUNTIME_API_EXT", hip_runtime, BUFFER_DATA(hip_api)),
	BUFFER(HIP_COMPILER_API_EXT) =
		CALLS("HIP_COMPILER_API_EXT", hip_compiler, BUFFER_DATA(hip_api)),
	BUFFER(ROCDECODE_API_EXT) =
		CALLS("ROCDECODE_API_EXT", rocdecode, BUFFER_DATA(rocdecode_api)),
	BUFFER(KFD_EVENT_PAGE_MIGRATE) = EVENTS("KFD_EVENT_PAGE_MIGRATE", kfd_event_page_migrate),
	BUFFER(KFD_EVENT_PAGE_FAULT) = EVENTS("KFD_EVENT_PAGE_FAULT", kfd_event_page_fault),
	BUFFER(KFD_EVENT_QUEUE) = EVENTS("KFD_EVENT_QUEUE", kfd_event_queue),
	BUFFER(KFD_EVENT_UNMAP_FROM_GPU) =
		EVENTS("KFD_EVENT_UNMAP_FROM_GPU", kfd_event_unmap_from_gpu),
	BUFFER(KFD_EVENT_DROPPED_EVENTS) =
		EVENTS("KFD_EVENT_DROPPED_EVENTS", kfd_event_dropped_events),
	BUFFER(KFD_PAGE_MIGRATE) = EVENTS("KFD_PAGE_MIGRATE", kfd_page_migrate),
	BUFFER(KFD_PAGE_FAULT) = EVENTS("KFD_PAGE_FAULT", kfd_page_fault),
	BUFFER(KFD_QUEUE) = EVENTS("KFD_QUEUE", kfd_queue),
	BUFFER(MARKER_CORE_RANGE_API) = FUNCTIONS("MARKER_CORE_RANGE_API", marker_core_range),
};

static const struct sdk_kind own_kinds[SDK_KIND_OWN_COUNT] = {
	[SDK_KIND_CUDA_RUNTIME_API - SDK_KIND_FIRST_OWN] = DEVICE("CUDA_RUNTIME_API", CUDA_RUNTIME),
	[SDK_KIND_CUDA_DRIVER_API - SDK_KIND_FIRST_OWN] = DEVICE("CUDA_DRIVER_API", CUDA_DRIVER),
	[SDK_KIND_OPENCL_API - SDK_KIND_FIRST_OWN] = DEVICE("OPENCL_API", OPENCL),
};

static const struct sdk_kind *names_own_kind(int kind)
{
	if (kind < SDK_KIND_FIRST_OWN || kind >= SDK_KIND_FIRST_OWN + SDK_KIND_OWN_COUNT)
		return NULL;
	return &own_kinds[kind - SDK_KIND_FIRST_OWN];
}

const struct sdk_kind *sdk_callback_kind(int kind)
{
	if (kind < 0 || kind >= COUNT(callback_kinds))
		return names_own_kind(kind);
	return &callback_kinds[kind];
}

const struct sdk_kind *sdk_buffer_kind(int kind)
{
	if (kind < 0 || kind >= COUNT(buffer_kinds))
		return names_own_kind(kind);
	return &buffer_kinds[kind];
}

int32_t sdk_kind_operations(const struct sdk_kind *kind)
{
	if (kind->is_device) {
		const struct device_operations *operations = device_operations(kind->service);

		return operations ? (int32_t)operations->count : 0;
	}
	return kind->functions ? kind->functions->count : kind->names_count;
}

const char *sdk_kind_operation(const struct sdk_kind *kind, int32_t operation)
{
	if (operation < 0 || operation >= sdk_kind_operations(kind))
		return NULL;
	if (kind->is_device)
		return device_operations(kind->service)->name(operation);
	return kind->functions ? kind->functions->list[operation].name : kind->names[operation];
}

int sdk_argument_indirections(const struct sdk_argument *argument)
{
	int count = 0;

	for (const char *at = argument->type; *at; at++)
		count += *at == '*';
	return count || argument->value != SDK_VALUE_POINTER ? count : 1;
}
