/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Enumerators as text: rocprofiler::sdk::get_enum_label(value).
 */
#ifndef ROCPROFILER_SDK_CXX_ENUM_STRING_HPP
#define ROCPROFILER_SDK_CXX_ENUM_STRING_HPP

#include <rocprofiler-sdk/agent.h>
#include <rocprofiler-sdk/buffer_tracing.h>
#include <rocprofiler-sdk/callback_tracing.h>
#include <rocprofiler-sdk/external_correlation.h>
#include <rocprofiler-sdk/fwd.h>
#include <rocprofiler-sdk/pc_sampling.h>

#include <string_view>

namespace rocprofiler
{
namespace sdk
{
namespace details
{
inline constexpr std::string_view label(rocprofiler_status_t value)
{
	switch (value) {
	case ROCPROFILER_STATUS_SUCCESS:
		return "ROCPROFILER_STATUS_SUCCESS";
	case ROCPROFILER_STATUS_ERROR:
		return "ROCPROFILER_STATUS_ERROR";
	case ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND:
		return "ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND";
	case ROCPROFILER_STATUS_ERROR_BUFFER_NOT_FOUND:
		return "ROCPROFILER_STATUS_ERROR_BUFFER_NOT_FOUND";
	case ROCPROFILER_STATUS_ERROR_KIND_NOT_FOUND:
		return "ROCPROFILER_STATUS_ERROR_KIND_NOT_FOUND";
	case ROCPROFILER_STATUS_ERROR_OPERATION_NOT_FOUND:
		return "ROCPROFILER_STATUS_ERROR_OPERATION_NOT_FOUND";
	case ROCPROFILER_STATUS_ERROR_THREAD_NOT_FOUND:
		return "ROCPROFILER_STATUS_ERROR_THREAD_NOT_FOUND";
	case ROCPROFILER_STATUS_ERROR_AGENT_NOT_FOUND:
		return "ROCPROFILER_STATUS_ERROR_AGENT_NOT_FOUND";
	case ROCPROFILER_STATUS_ERROR_COUNTER_NOT_FOUND:
		return "ROCPROFILER_STATUS_ERROR_COUNTER_NOT_FOUND";
	case ROCPROFILER_STATUS_ERROR_CONTEXT_ERROR:
		return "ROCPROFILER_STATUS_ERROR_CONTEXT_ERROR";
	case ROCPROFILER_STATUS_ERROR_CONTEXT_INVALID:
		return "ROCPROFILER_STATUS_ERROR_CONTEXT_INVALID";
	case ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_STARTED:
		return "ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_STARTED";
	case ROCPROFILER_STATUS_ERROR_CONTEXT_CONFLICT:
		return "ROCPROFILER_STATUS_ERROR_CONTEXT_CONFLICT";
	case ROCPROFILER_STATUS_ERROR_CONTEXT_ID_NOT_ZERO:
		return "ROCPROFILER_STATUS_ERROR_CONTEXT_ID_NOT_ZERO";
	case ROCPROFILER_STATUS_ERROR_BUFFER_BUSY:
		return "ROCPROFILER_STATUS_ERROR_BUFFER_BUSY";
	case ROCPROFILER_STATUS_ERROR_SERVICE_ALREADY_CONFIGURED:
		return "ROCPROFILER_STATUS_ERROR_SERVICE_ALREADY_CONFIGURED";
	case ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED:
		return "ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED";
	case ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED:
		return "ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED";
	case ROCPROFILER_STATUS_ERROR_INCOMPATIBLE_ABI:
		return "ROCPROFILER_STATUS_ERROR_INCOMPATIBLE_ABI";
	case ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT:
		return "ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT";
	case ROCPROFILER_STATUS_ERROR_METRIC_NOT_VALID_FOR_AGENT:
		return "ROCPROFILER_STATUS_ERROR_METRIC_NOT_VALID_FOR_AGENT";
	case ROCPROFILER_STATUS_ERROR_FINALIZED:
		return "ROCPROFILER_STATUS_ERROR_FINALIZED";
	case ROCPROFILER_STATUS_ERROR_HSA_NOT_LOADED:
		return "ROCPROFILER_STATUS_ERROR_HSA_NOT_LOADED";
	case ROCPROFILER_STATUS_ERROR_DIM_NOT_FOUND:
		return "ROCPROFILER_STATUS_ERROR_DIM_NOT_FOUND";
	case ROCPROFILER_STATUS_ERROR_PROFILE_COUNTER_NOT_FOUND:
		return "ROCPROFILER_STATUS_ERROR_PROFILE_COUNTER_NOT_FOUND";
	case ROCPROFILER_STATUS_ERROR_AST_GENERATION_FAILED:
		return "ROCPROFILER_STATUS_ERROR_AST_GENERATION_FAILED";
	case ROCPROFILER_STATUS_ERROR_AST_NOT_FOUND:
		return "ROCPROFILER_STATUS_ERROR_AST_NOT_FOUND";
	case ROCPROFILER_STATUS_ERROR_AQL_NO_EVENT_COORD:
		return "ROCPROFILER_STATUS_ERROR_AQL_NO_EVENT_COORD";
	case ROCPROFILER_STATUS_ERROR_INCOMPATIBLE_KERNEL:
		return "ROCPROFILER_STATUS_ERROR_INCOMPATIBLE_KERNEL";
	case ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES:
		return "ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES";
	case ROCPROFILER_STATUS_ERROR_PROFILE_NOT_FOUND:
		return "ROCPROFILER_STATUS_ERROR_PROFILE_NOT_FOUND";
	case ROCPROFILER_STATUS_ERROR_AGENT_DISPATCH_CONFLICT:
		return "ROCPROFILER_STATUS_ERROR_AGENT_DISPATCH_CONFLICT";
	case ROCPROFILER_STATUS_INTERNAL_NO_AGENT_CONTEXT:
		return "ROCPROFILER_STATUS_INTERNAL_NO_AGENT_CONTEXT";
	case ROCPROFILER_STATUS_ERROR_SAMPLE_RATE_EXCEEDED:
		return "ROCPROFILER_STATUS_ERROR_SAMPLE_RATE_EXCEEDED";
	case ROCPROFILER_STATUS_ERROR_NO_PROFILE_QUEUE:
		return "ROCPROFILER_STATUS_ERROR_NO_PROFILE_QUEUE";
	case ROCPROFILER_STATUS_ERROR_NO_HARDWARE_COUNTERS:
		return "ROCPROFILER_STATUS_ERROR_NO_HARDWARE_COUNTERS";
	case ROCPROFILER_STATUS_ERROR_AGENT_MISMATCH:
		return "ROCPROFILER_STATUS_ERROR_AGENT_MISMATCH";
	case ROCPROFILER_STATUS_ERROR_NOT_AVAILABLE:
		return "ROCPROFILER_STATUS_ERROR_NOT_AVAILABLE";
	case ROCPROFILER_STATUS_ERROR_EXCEEDS_HW_LIMIT:
		return "ROCPROFILER_STATUS_ERROR_EXCEEDS_HW_LIMIT";
	case ROCPROFILER_STATUS_ERROR_AGENT_ARCH_NOT_SUPPORTED:
		return "ROCPROFILER_STATUS_ERROR_AGENT_ARCH_NOT_SUPPORTED";
	case ROCPROFILER_STATUS_ERROR_PERMISSION_DENIED:
		return "ROCPROFILER_STATUS_ERROR_PERMISSION_DENIED";
	default:
		return "unsupported_rocprofiler_status_t";
	}
}

inline constexpr std::string_view label(rocprofiler_buffer_category_t value)
{
	switch (value) {
	case ROCPROFILER_BUFFER_CATEGORY_NONE:
		return "ROCPROFILER_BUFFER_CATEGORY_NONE";
	case ROCPROFILER_BUFFER_CATEGORY_TRACING:
		return "ROCPROFILER_BUFFER_CATEGORY_TRACING";
	case ROCPROFILER_BUFFER_CATEGORY_PC_SAMPLING:
		return "ROCPROFILER_BUFFER_CATEGORY_PC_SAMPLING";
	case ROCPROFILER_BUFFER_CATEGORY_COUNTERS:
		return "ROCPROFILER_BUFFER_CATEGORY_COUNTERS";
	default:
		return "unsupported_rocprofiler_buffer_category_t";
	}
}

inline constexpr std::string_view label(rocprofiler_agent_type_t value)
{
	switch (value) {
	case ROCPROFILER_AGENT_TYPE_NONE:
		return "ROCPROFILER_AGENT_TYPE_NONE";
	case ROCPROFILER_AGENT_TYPE_CPU:
		return "ROCPROFILER_AGENT_TYPE_CPU";
	case ROCPROFILER_AGENT_TYPE_GPU:
		return "ROCPROFILER_AGENT_TYPE_GPU";
	default:
		return "unsupported_rocprofiler_agent_type_t";
	}
}

inline constexpr std::string_view label(rocprofiler_callback_phase_t value)
{
	switch (value) {
	case ROCPROFILER_CALLBACK_PHASE_NONE:
		return "ROCPROFILER_CALLBACK_PHASE_NONE";
	case ROCPROFILER_CALLBACK_PHASE_ENTER:
		return "ROCPROFILER_CALLBACK_PHASE_ENTER";
	case ROCPROFILER_CALLBACK_PHASE_EXIT:
		return "ROCPROFILER_CALLBACK_PHASE_EXIT";
	default:
		return "unsupported_rocprofiler_callback_phase_t";
	}
}

inline constexpr std::string_view label(rocprofiler_callback_tracing_kind_t value)
{
	switch (value) {
	case ROCPROFILER_CALLBACK_TRACING_NONE:
		return "ROCPROFILER_CALLBACK_TRACING_NONE";
	case ROCPROFILER_CALLBACK_TRACING_HSA_CORE_API:
		return "ROCPROFILER_CALLBACK_TRACING_HSA_CORE_API";
	case ROCPROFILER_CALLBACK_TRACING_HSA_AMD_EXT_API:
		return "ROCPROFILER_CALLBACK_TRACING_HSA_AMD_EXT_API";
	case ROCPROFILER_CALLBACK_TRACING_HSA_IMAGE_EXT_API:
		return "ROCPROFILER_CALLBACK_TRACING_HSA_IMAGE_EXT_API";
	case ROCPROFILER_CALLBACK_TRACING_HSA_FINALIZE_EXT_API:
		return "ROCPROFILER_CALLBACK_TRACING_HSA_FINALIZE_EXT_API";
	case ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API:
		return "ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API";
	case ROCPROFILER_CALLBACK_TRACING_HIP_COMPILER_API:
		return "ROCPROFILER_CALLBACK_TRACING_HIP_COMPILER_API";
	case ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API:
		return "ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API";
	case ROCPROFILER_CALLBACK_TRACING_MARKER_CONTROL_API:
		return "ROCPROFILER_CALLBACK_TRACING_MARKER_CONTROL_API";
	case ROCPROFILER_CALLBACK_TRACING_MARKER_NAME_API:
		return "ROCPROFILER_CALLBACK_TRACING_MARKER_NAME_API";
	case ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT:
		return "ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT";
	case ROCPROFILER_CALLBACK_TRACING_SCRATCH_MEMORY:
		return "ROCPROFILER_CALLBACK_TRACING_SCRATCH_MEMORY";
	case ROCPROFILER_CALLBACK_TRACING_KERNEL_DISPATCH:
		return "ROCPROFILER_CALLBACK_TRACING_KERNEL_DISPATCH";
	case ROCPROFILER_CALLBACK_TRACING_MEMORY_COPY:
		return "ROCPROFILER_CALLBACK_TRACING_MEMORY_COPY";
	case ROCPROFILER_CALLBACK_TRACING_RCCL_API:
		return "ROCPROFILER_CALLBACK_TRACING_RCCL_API";
	case ROCPROFILER_CALLBACK_TRACING_OMPT:
		return "ROCPROFILER_CALLBACK_TRACING_OMPT";
	case ROCPROFILER_CALLBACK_TRACING_MEMORY_ALLOCATION:
		return "ROCPROFILER_CALLBACK_TRACING_MEMORY_ALLOCATION";
	case ROCPROFILER_CALLBACK_TRACING_RUNTIME_INITIALIZATION:
		return "ROCPROFILER_CALLBACK_TRACING_RUNTIME_INITIALIZATION";
	case ROCPROFILER_CALLBACK_TRACING_ROCDECODE_API:
		return "ROCPROFILER_CALLBACK_TRACING_ROCDECODE_API";
	case ROCPROFILER_CALLBACK_TRACING_ROCJPEG_API:
		return "ROCPROFILER_CALLBACK_TRACING_ROCJPEG_API";
	case ROCPROFILER_CALLBACK_TRACING_HIP_STREAM:
		return "ROCPROFILER_CALLBACK_TRACING_HIP_STREAM";
	case ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_RANGE_API:
		return "ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_RANGE_API";
	default:
		return "unsupported_rocprofiler_callback_tracing_kind_t";
	}
}

inline constexpr std::string_view label(rocprofiler_buffer_tracing_kind_t value)
{
	switch (value) {
	case ROCPROFILER_BUFFER_TRACING_NONE:
		return "ROCPROFILER_BUFFER_TRACING_NONE";
	case ROCPROFILER_BUFFER_TRACING_HSA_CORE_API:
		return "ROCPROFILER_BUFFER_TRACING_HSA_CORE_API";
	case ROCPROFILER_BUFFER_TRACING_HSA_AMD_EXT_API:
		return "ROCPROFILER_BUFFER_TRACING_HSA_AMD_EXT_API";
	case ROCPROFILER_BUFFER_TRACING_HSA_IMAGE_EXT_API:
		return "ROCPROFILER_BUFFER_TRACING_HSA_IMAGE_EXT_API";
	case ROCPROFILER_BUFFER_TRACING_HSA_FINALIZE_EXT_API:
		return "ROCPROFILER_BUFFER_TRACING_HSA_FINALIZE_EXT_API";
	case ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API:
		return "ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API";
	case ROCPROFILER_BUFFER_TRACING_HIP_COMPILER_API:
		return "ROCPROFILER_BUFFER_TRACING_HIP_COMPILER_API";
	case ROCPROFILER_BUFFER_TRACING_MARKER_CORE_API:
		return "ROCPROFILER_BUFFER_TRACING_MARKER_CORE_API";
	case ROCPROFILER_BUFFER_TRACING_MARKER_CONTROL_API:
		return "ROCPROFILER_BUFFER_TRACING_MARKER_CONTROL_API";
	case ROCPROFILER_BUFFER_TRACING_MARKER_NAME_API:
		return "ROCPROFILER_BUFFER_TRACING_MARKER_NAME_API";
	case ROCPROFILER_BUFFER_TRACING_MEMORY_COPY:
		return "ROCPROFILER_BUFFER_TRACING_MEMORY_COPY";
	case ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH:
		return "ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH";
	case ROCPROFILER_BUFFER_TRACING_SCRATCH_MEMORY:
		return "ROCPROFILER_BUFFER_TRACING_SCRATCH_MEMORY";
	case ROCPROFILER_BUFFER_TRACING_CORRELATION_ID_RETIREMENT:
		return "ROCPROFILER_BUFFER_TRACING_CORRELATION_ID_RETIREMENT";
	case ROCPROFILER_BUFFER_TRACING_RCCL_API:
		return "ROCPROFILER_BUFFER_TRACING_RCCL_API";
	case ROCPROFILER_BUFFER_TRACING_OMPT:
		return "ROCPROFILER_BUFFER_TRACING_OMPT";
	case ROCPROFILER_BUFFER_TRACING_MEMORY_ALLOCATION:
		return "ROCPROFILER_BUFFER_TRACING_MEMORY_ALLOCATION";
	case ROCPROFILER_BUFFER_TRACING_RUNTIME_INITIALIZATION:
		return "ROCPROFILER_BUFFER_TRACING_RUNTIME_INITIALIZATION";
	case ROCPROFILER_BUFFER_TRACING_ROCDECODE_API:
		return "ROCPROFILER_BUFFER_TRACING_ROCDECODE_API";
	case ROCPROFILER_BUFFER_TRACING_ROCJPEG_API:
		return "ROCPROFILER_BUFFER_TRACING_ROCJPEG_API";
	case ROCPROFILER_BUFFER_TRACING_HIP_STREAM:
		return "ROCPROFILER_BUFFER_TRACING_HIP_STREAM";
	case ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT:
		return "ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT";
	case ROCPROFILER_BUFFER_TRACING_HIP_COMPILER_API_EXT:
		return "ROCPROFILER_BUFFER_TRACING_HIP_COMPILER_API_EXT";
	case ROCPROFILER_BUFFER_TRACING_ROCDECODE_API_EXT:
		return "ROCPROFILER_BUFFER_TRACING_ROCDECODE_API_EXT";
	case ROCPROFILER_BUFFER_TRACING_KFD_EVENT_PAGE_MIGRATE:
		return "ROCPROFILER_BUFFER_TRACING_KFD_EVENT_PAGE_MIGRATE";
	case ROCPROFILER_BUFFER_TRACING_KFD_EVENT_PAGE_FAULT:
		return "ROCPROFILER_BUFFER_TRACING_KFD_EVENT_PAGE_FAULT";
	case ROCPROFILER_BUFFER_TRACING_KFD_EVENT_QUEUE:
		return "ROCPROFILER_BUFFER_TRACING_KFD_EVENT_QUEUE";
	case ROCPROFILER_BUFFER_TRACING_KFD_EVENT_UNMAP_FROM_GPU:
		return "ROCPROFILER_BUFFER_TRACING_KFD_EVENT_UNMAP_FROM_GPU";
	case ROCPROFILER_BUFFER_TRACING_KFD_EVENT_DROPPED_EVENTS:
		return "ROCPROFILER_BUFFER_TRACING_KFD_EVENT_DROPPED_EVENTS";
	case ROCPROFILER_BUFFER_TRACING_KFD_PAGE_MIGRATE:
		return "ROCPROFILER_BUFFER_TRACING_KFD_PAGE_MIGRATE";
	case ROCPROFILER_BUFFER_TRACING_KFD_PAGE_FAULT:
		return "ROCPROFILER_BUFFER_TRACING_KFD_PAGE_FAULT";
	case ROCPROFILER_BUFFER_TRACING_KFD_QUEUE:
		return "ROCPROFILER_BUFFER_TRACING_KFD_QUEUE";
	case ROCPROFILER_BUFFER_TRACING_MARKER_CORE_RANGE_API:
		return "ROCPROFILER_BUFFER_TRACING_MARKER_CORE_RANGE_API";
	default:
		return "unsupported_rocprofiler_buffer_tracing_kind_t";
	}
}

inline constexpr std::string_view label(rocprofiler_code_object_operation_t value)
{
	switch (value) {
	case ROCPROFILER_CODE_OBJECT_NONE:
		return "ROCPROFILER_CODE_OBJECT_NONE";
	case ROCPROFILER_CODE_OBJECT_LOAD:
		return "ROCPROFILER_CODE_OBJECT_LOAD";
	case ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER:
		return "ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER";
	case ROCPROFILER_CODE_OBJECT_HOST_KERNEL_SYMBOL_REGISTER:
		return "ROCPROFILER_CODE_OBJECT_HOST_KERNEL_SYMBOL_REGISTER";
	default:
		return "unsupported_rocprofiler_code_object_operation_t";
	}
}

inline constexpr std::string_view label(rocprofiler_hip_stream_operation_t value)
{
	switch (value) {
	case ROCPROFILER_HIP_STREAM_NONE:
		return "ROCPROFILER_HIP_STREAM_NONE";
	case ROCPROFILER_HIP_STREAM_CREATE:
		return "ROCPROFILER_HIP_STREAM_CREATE";
	case ROCPROFILER_HIP_STREAM_DESTROY:
		return "ROCPROFILER_HIP_STREAM_DESTROY";
	case ROCPROFILER_HIP_STREAM_SET:
		return "ROCPROFILER_HIP_STREAM_SET";
	default:
		return "unsupported_rocprofiler_hip_stream_operation_t";
	}
}

inline constexpr std::string_view label(rocprofiler_memory_copy_operation_t value)
{
	switch (value) {
	case ROCPROFILER_MEMORY_COPY_NONE:
		return "ROCPROFILER_MEMORY_COPY_NONE";
	case ROCPROFILER_MEMORY_COPY_HOST_TO_HOST:
		return "ROCPROFILER_MEMORY_COPY_HOST_TO_HOST";
	case ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE:
		return "ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE";
	case ROCPROFILER_MEMORY_COPY_DEVICE_TO_HOST:
		return "ROCPROFILER_MEMORY_COPY_DEVICE_TO_HOST";
	case ROCPROFILER_MEMORY_COPY_DEVICE_TO_DEVICE:
		return "ROCPROFILER_MEMORY_COPY_DEVICE_TO_DEVICE";
	default:
		return "unsupported_rocprofiler_memory_copy_operation_t";
	}
}

inline constexpr std::string_view label(rocprofiler_memory_allocation_operation_t value)
{
	switch (value) {
	case ROCPROFILER_MEMORY_ALLOCATION_NONE:
		return "ROCPROFILER_MEMORY_ALLOCATION_NONE";
	case ROCPROFILER_MEMORY_ALLOCATION_ALLOCATE:
		return "ROCPROFILER_MEMORY_ALLOCATION_ALLOCATE";
	case ROCPROFILER_MEMORY_ALLOCATION_VMEM_ALLOCATE:
		return "ROCPROFILER_MEMORY_ALLOCATION_VMEM_ALLOCATE";
	case ROCPROFILER_MEMORY_ALLOCATION_FREE:
		return "ROCPROFILER_MEMORY_ALLOCATION_FREE";
	case ROCPROFILER_MEMORY_ALLOCATION_VMEM_FREE:
		return "ROCPROFILER_MEMORY_ALLOCATION_VMEM_FREE";
	default:
		return "unsupported_rocprofiler_memory_allocation_operation_t";
	}
}

inline constexpr std::string_view label(rocprofiler_kernel_dispatch_operation_t value)
{
	switch (value) {
	case ROCPROFILER_KERNEL_DISPATCH_NONE:
		return "ROCPROFILER_KERNEL_DISPATCH_NONE";
	case ROCPROFILER_KERNEL_DISPATCH_ENQUEUE:
		return "ROCPROFILER_KERNEL_DISPATCH_ENQUEUE";
	case ROCPROFILER_KERNEL_DISPATCH_COMPLETE:
		return "ROCPROFILER_KERNEL_DISPATCH_COMPLETE";
	default:
		return "unsupported_rocprofiler_kernel_dispatch_operation_t";
	}
}

inline constexpr std::string_view label(rocprofiler_pc_sampling_method_t value)
{
	switch (value) {
	case ROCPROFILER_PC_SAMPLING_METHOD_NONE:
		return "ROCPROFILER_PC_SAMPLING_METHOD_NONE";
	case ROCPROFILER_PC_SAMPLING_METHOD_STOCHASTIC:
		return "ROCPROFILER_PC_SAMPLING_METHOD_STOCHASTIC";
	case ROCPROFILER_PC_SAMPLING_METHOD_HOST_TRAP:
		return "ROCPROFILER_PC_SAMPLING_METHOD_HOST_TRAP";
	default:
		return "unsupported_rocprofiler_pc_sampling_method_t";
	}
}

inline constexpr std::string_view label(rocprofiler_pc_sampling_unit_t value)
{
	switch (value) {
	case ROCPROFILER_PC_SAMPLING_UNIT_NONE:
		return "ROCPROFILER_PC_SAMPLING_UNIT_NONE";
	case ROCPROFILER_PC_SAMPLING_UNIT_INSTRUCTIONS:
		return "ROCPROFILER_PC_SAMPLING_UNIT_INSTRUCTIONS";
	case ROCPROFILER_PC_SAMPLING_UNIT_CYCLES:
		return "ROCPROFILER_PC_SAMPLING_UNIT_CYCLES";
	case ROCPROFILER_PC_SAMPLING_UNIT_TIME:
		return "ROCPROFILER_PC_SAMPLING_UNIT_TIME";
	default:
		return "unsupported_rocprofiler_pc_sampling_unit_t";
	}
}

inline constexpr std::string_view label(rocprofiler_buffer_policy_t value)
{
	switch (value) {
	case ROCPROFILER_BUFFER_POLICY_NONE:
		return "ROCPROFILER_BUFFER_POLICY_NONE";
	case ROCPROFILER_BUFFER_POLICY_DISCARD:
		return "ROCPROFILER_BUFFER_POLICY_DISCARD";
	case ROCPROFILER_BUFFER_POLICY_LOSSLESS:
		return "ROCPROFILER_BUFFER_POLICY_LOSSLESS";
	default:
		return "unsupported_rocprofiler_buffer_policy_t";
	}
}

inline constexpr std::string_view label(rocprofiler_scratch_memory_operation_t value)
{
	switch (value) {
	case ROCPROFILER_SCRATCH_MEMORY_NONE:
		return "ROCPROFILER_SCRATCH_MEMORY_NONE";
	case ROCPROFILER_SCRATCH_MEMORY_ALLOC:
		return "ROCPROFILER_SCRATCH_MEMORY_ALLOC";
	case ROCPROFILER_SCRATCH_MEMORY_FREE:
		return "ROCPROFILER_SCRATCH_MEMORY_FREE";
	case ROCPROFILER_SCRATCH_MEMORY_ASYNC_RECLAIM:
		return "ROCPROFILER_SCRATCH_MEMORY_ASYNC_RECLAIM";
	default:
		return "unsupported_rocprofiler_scratch_memory_operation_t";
	}
}

inline constexpr std::string_view label(rocprofiler_runtime_library_t value)
{
	switch (value) {
	case ROCPROFILER_LIBRARY:
		return "ROCPROFILER_LIBRARY";
	case ROCPROFILER_HSA_LIBRARY:
		return "ROCPROFILER_HSA_LIBRARY";
	case ROCPROFILER_HIP_LIBRARY:
		return "ROCPROFILER_HIP_LIBRARY";
	case ROCPROFILER_MARKER_LIBRARY:
		return "ROCPROFILER_MARKER_LIBRARY";
	case ROCPROFILER_RCCL_LIBRARY:
		return "ROCPROFILER_RCCL_LIBRARY";
	case ROCPROFILER_ROCDECODE_LIBRARY:
		return "ROCPROFILER_ROCDECODE_LIBRARY";
	case ROCPROFILER_ROCJPEG_LIBRARY:
		return "ROCPROFILER_ROCJPEG_LIBRARY";
	default:
		return "unsupported_rocprofiler_runtime_library_t";
	}
}

inline constexpr std::string_view label(rocprofiler_intercept_table_t value)
{
	switch (value) {
	case ROCPROFILER_HSA_TABLE:
		return "ROCPROFILER_HSA_TABLE";
	case ROCPROFILER_HIP_RUNTIME_TABLE:
		return "ROCPROFILER_HIP_RUNTIME_TABLE";
	case ROCPROFILER_HIP_COMPILER_TABLE:
		return "ROCPROFILER_HIP_COMPILER_TABLE";
	case ROCPROFILER_MARKER_CORE_TABLE:
		return "ROCPROFILER_MARKER_CORE_TABLE";
	case ROCPROFILER_MARKER_CONTROL_TABLE:
		return "ROCPROFILER_MARKER_CONTROL_TABLE";
	case ROCPROFILER_MARKER_NAME_TABLE:
		return "ROCPROFILER_MARKER_NAME_TABLE";
	case ROCPROFILER_RCCL_TABLE:
		return "ROCPROFILER_RCCL_TABLE";
	case ROCPROFILER_ROCDECODE_TABLE:
		return "ROCPROFILER_ROCDECODE_TABLE";
	case ROCPROFILER_ROCJPEG_TABLE:
		return "ROCPROFILER_ROCJPEG_TABLE";
	default:
		return "unsupported_rocprofiler_intercept_table_t";
	}
}

inline constexpr std::string_view label(rocprofiler_runtime_initialization_operation_t value)
{
	switch (value) {
	case ROCPROFILER_RUNTIME_INITIALIZATION_NONE:
		return "ROCPROFILER_RUNTIME_INITIALIZATION_NONE";
	case ROCPROFILER_RUNTIME_INITIALIZATION_HSA:
		return "ROCPROFILER_RUNTIME_INITIALIZATION_HSA";
	case ROCPROFILER_RUNTIME_INITIALIZATION_HIP:
		return "ROCPROFILER_RUNTIME_INITIALIZATION_HIP";
	case ROCPROFILER_RUNTIME_INITIALIZATION_MARKER:
		return "ROCPROFILER_RUNTIME_INITIALIZATION_MARKER";
	case ROCPROFILER_RUNTIME_INITIALIZATION_RCCL:
		return "ROCPROFILER_RUNTIME_INITIALIZATION_RCCL";
	case ROCPROFILER_RUNTIME_INITIALIZATION_ROCDECODE:
		return "ROCPROFILER_RUNTIME_INITIALIZATION_ROCDECODE";
	case ROCPROFILER_RUNTIME_INITIALIZATION_ROCJPEG:
		return "ROCPROFILER_RUNTIME_INITIALIZATION_ROCJPEG";
	default:
		return "unsupported_rocprofiler_runtime_initialization_operation_t";
	}
}

inline constexpr std::string_view label(rocprofiler_counter_info_version_id_t value)
{
	switch (value) {
	case ROCPROFILER_COUNTER_INFO_VERSION_NONE:
		return "ROCPROFILER_COUNTER_INFO_VERSION_NONE";
	case ROCPROFILER_COUNTER_INFO_VERSION_0:
		return "ROCPROFILER_COUNTER_INFO_VERSION_0";
	case ROCPROFILER_COUNTER_INFO_VERSION_1:
		return "ROCPROFILER_COUNTER_INFO_VERSION_1";
	default:
		return "unsupported_rocprofiler_counter_info_version_id_t";
	}
}

inline constexpr std::string_view label(rocprofiler_counter_record_kind_t value)
{
	switch (value) {
	case ROCPROFILER_COUNTER_RECORD_NONE:
		return "ROCPROFILER_COUNTER_RECORD_NONE";
	case ROCPROFILER_COUNTER_RECORD_PROFILE_COUNTING_DISPATCH_HEADER:
		return "ROCPROFILER_COUNTER_RECORD_PROFILE_COUNTING_DISPATCH_HEADER";
	case ROCPROFILER_COUNTER_RECORD_VALUE:
		return "ROCPROFILER_COUNTER_RECORD_VALUE";
	default:
		return "unsupported_rocprofiler_counter_record_kind_t";
	}
}

inline constexpr std::string_view label(rocprofiler_counter_flag_t value)
{
	switch (value) {
	case ROCPROFILER_COUNTER_FLAG_NONE:
		return "ROCPROFILER_COUNTER_FLAG_NONE";
	case ROCPROFILER_COUNTER_FLAG_ASYNC:
		return "ROCPROFILER_COUNTER_FLAG_ASYNC";
	case ROCPROFILER_COUNTER_FLAG_APPEND_DEFINITION:
		return "ROCPROFILER_COUNTER_FLAG_APPEND_DEFINITION";
	default:
		return "unsupported_rocprofiler_counter_flag_t";
	}
}

inline constexpr std::string_view label(rocprofiler_pc_sampling_record_kind_t value)
{
	switch (value) {
	case ROCPROFILER_PC_SAMPLING_RECORD_NONE:
		return "ROCPROFILER_PC_SAMPLING_RECORD_NONE";
	case ROCPROFILER_PC_SAMPLING_RECORD_INVALID_SAMPLE:
		return "ROCPROFILER_PC_SAMPLING_RECORD_INVALID_SAMPLE";
	case ROCPROFILER_PC_SAMPLING_RECORD_HOST_TRAP_V0_SAMPLE:
		return "ROCPROFILER_PC_SAMPLING_RECORD_HOST_TRAP_V0_SAMPLE";
	case ROCPROFILER_PC_SAMPLING_RECORD_STOCHASTIC_V0_SAMPLE:
		return "ROCPROFILER_PC_SAMPLING_RECORD_STOCHASTIC_V0_SAMPLE";
	default:
		return "unsupported_rocprofiler_pc_sampling_record_kind_t";
	}
}

inline constexpr std::string_view label(rocprofiler_agent_version_t value)
{
	switch (value) {
	case ROCPROFILER_AGENT_INFO_VERSION_NONE:
		return "ROCPROFILER_AGENT_INFO_VERSION_NONE";
	case ROCPROFILER_AGENT_INFO_VERSION_0:
		return "ROCPROFILER_AGENT_INFO_VERSION_0";
	default:
		return "unsupported_rocprofiler_agent_version_t";
	}
}

inline constexpr std::string_view label(rocprofiler_code_object_storage_type_t value)
{
	switch (value) {
	case ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_NONE:
		return "ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_NONE";
	case ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_FILE:
		return "ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_FILE";
	case ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_MEMORY:
		return "ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_MEMORY";
	default:
		return "unsupported_rocprofiler_code_object_storage_type_t";
	}
}

inline constexpr std::string_view label(rocprofiler_pc_sampling_configuration_flags_t value)
{
	switch (value) {
	case ROCPROFILER_PC_SAMPLING_CONFIGURATION_FLAGS_NONE:
		return "ROCPROFILER_PC_SAMPLING_CONFIGURATION_FLAGS_NONE";
	case ROCPROFILER_PC_SAMPLING_CONFIGURATION_FLAGS_INTERVAL_POW2:
		return "ROCPROFILER_PC_SAMPLING_CONFIGURATION_FLAGS_INTERVAL_POW2";
	default:
		return "unsupported_rocprofiler_pc_sampling_configuration_flags_t";
	}
}

inline constexpr std::string_view label(rocprofiler_pc_sampling_instruction_type_t value)
{
	switch (value) {
	case ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_NONE:
		return "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_NONE";
	case ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_VALU:
		return "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_VALU";
	case ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_MATRIX:
		return "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_MATRIX";
	case ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_SCALAR:
		return "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_SCALAR";
	case ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_TEX:
		return "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_TEX";
	case ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_LDS:
		return "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_LDS";
	case ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_LDS_DIRECT:
		return "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_LDS_DIRECT";
	case ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_FLAT:
		return "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_FLAT";
	case ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_EXPORT:
		return "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_EXPORT";
	case ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_MESSAGE:
		return "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_MESSAGE";
	case ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_BARRIER:
		return "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_BARRIER";
	case ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_BRANCH_NOT_TAKEN:
		return "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_BRANCH_NOT_TAKEN";
	case ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_BRANCH_TAKEN:
		return "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_BRANCH_TAKEN";
	case ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_JUMP:
		return "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_JUMP";
	case ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_OTHER:
		return "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_OTHER";
	case ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_NO_INST:
		return "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_NO_INST";
	case ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_DUAL_VALU:
		return "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_DUAL_VALU";
	default:
		return "unsupported_rocprofiler_pc_sampling_instruction_type_t";
	}
}

inline constexpr std::string_view
label(rocprofiler_pc_sampling_instruction_not_issued_reason_t value)
{
	switch (value) {
	case ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_NONE:
		return "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_NONE";
	case ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_NO_INSTRUCTION_AVAILABLE:
		return "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_NO_INSTRUCTION_"
		       "AVAILABLE";
	case ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_ALU_DEPENDENCY:
		return "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_ALU_DEPENDENCY";
	case ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_WAITCNT:
		return "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_WAITCNT";
	case ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_INTERNAL_INSTRUCTION:
		return "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_INTERNAL_INSTRUCTION";
	case ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_BARRIER_WAIT:
		return "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_BARRIER_WAIT";
	case ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_ARBITER_NOT_WIN:
		return "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_ARBITER_NOT_WIN";
	case ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_ARBITER_WIN_EX_STALL:
		return "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_ARBITER_WIN_EX_STALL";
	case ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_OTHER_WAIT:
		return "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_OTHER_WAIT";
	case ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_SLEEP_WAIT:
		return "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_SLEEP_WAIT";
	default:
		return "unsupported_rocprofiler_pc_sampling_instruction_not_issued_reason_t";
	}
}

inline constexpr std::string_view label(rocprofiler_external_correlation_id_request_kind_t value)
{
	switch (value) {
	case ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_NONE:
		return "ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_NONE";
	case ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HSA_CORE_API:
		return "ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HSA_CORE_API";
	case ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HSA_AMD_EXT_API:
		return "ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HSA_AMD_EXT_API";
	case ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HSA_IMAGE_EXT_API:
		return "ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HSA_IMAGE_EXT_API";
	case ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HSA_FINALIZE_EXT_API:
		return "ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HSA_FINALIZE_EXT_API";
	case ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HIP_RUNTIME_API:
		return "ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HIP_RUNTIME_API";
	case ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HIP_COMPILER_API:
		return "ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_HIP_COMPILER_API";
	case ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MARKER_CORE_API:
		return "ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MARKER_CORE_API";
	case ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MARKER_CONTROL_API:
		return "ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MARKER_CONTROL_API";
	case ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MARKER_NAME_API:
		return "ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MARKER_NAME_API";
	case ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MEMORY_COPY:
		return "ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MEMORY_COPY";
	case ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_KERNEL_DISPATCH:
		return "ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_KERNEL_DISPATCH";
	case ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_SCRATCH_MEMORY:
		return "ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_SCRATCH_MEMORY";
	case ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_RCCL_API:
		return "ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_RCCL_API";
	case ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_OMPT:
		return "ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_OMPT";
	case ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MEMORY_ALLOCATION:
		return "ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MEMORY_ALLOCATION";
	case ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_ROCDECODE_API:
		return "ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_ROCDECODE_API";
	case ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_ROCJPEG_API:
		return "ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_ROCJPEG_API";
	case ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MARKER_CORE_RANGE_API:
		return "ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MARKER_CORE_RANGE_API";
	default:
		return "unsupported_rocprofiler_external_correlation_id_request_kind_t";
	}
}

inline constexpr std::string_view label(rocprofiler_hsa_core_api_id_t value)
{
	switch (value) {
#define ROCP_F(name, args)                                                                         \
	case ROCPROFILER_HSA_CORE_API_ID_##name:                                                   \
		return "ROCPROFILER_HSA_CORE_API_ID_" #name;
#include <rocprofiler-sdk/hsa/core_api_list.h>
#undef ROCP_F
	default:
		return "unsupported_rocprofiler_hsa_core_api_id_t";
	}
}

inline constexpr std::string_view label(rocprofiler_hsa_amd_ext_api_id_t value)
{
	switch (value) {
#define ROCP_F(name, args)                                                                         \
	case ROCPROFILER_HSA_AMD_EXT_API_ID_##name:                                                \
		return "ROCPROFILER_HSA_AMD_EXT_API_ID_" #name;
#include <rocprofiler-sdk/hsa/amd_ext_api_list.h>
#undef ROCP_F
	default:
		return "unsupported_rocprofiler_hsa_amd_ext_api_id_t";
	}
}

inline constexpr std::string_view label(rocprofiler_hsa_image_ext_api_id_t value)
{
	switch (value) {
#define ROCP_F(name, args)                                                                         \
	case ROCPROFILER_HSA_IMAGE_EXT_API_ID_##name:                                              \
		return "ROCPROFILER_HSA_IMAGE_EXT_API_ID_" #name;
#include <rocprofiler-sdk/hsa/image_ext_api_list.h>
#undef ROCP_F
	default:
		return "unsupported_rocprofiler_hsa_image_ext_api_id_t";
	}
}

inline constexpr std::string_view label(rocprofiler_hsa_finalize_ext_api_id_t value)
{
	switch (value) {
#define ROCP_F(name, args)                                                                         \
	case ROCPROFILER_HSA_FINALIZE_EXT_API_ID_##name:                                           \
		return "ROCPROFILER_HSA_FINALIZE_EXT_API_ID_" #name;
#include <rocprofiler-sdk/hsa/finalize_ext_api_list.h>
#undef ROCP_F
	default:
		return "unsupported_rocprofiler_hsa_finalize_ext_api_id_t";
	}
}

inline constexpr std::string_view label(rocprofiler_hip_runtime_api_id_t value)
{
	switch (value) {
#define ROCP_F(name, args)                                                                         \
	case ROCPROFILER_HIP_RUNTIME_API_ID_##name:                                                \
		return "ROCPROFILER_HIP_RUNTIME_API_ID_" #name;
#include <rocprofiler-sdk/hip/runtime_api_list.h>
#undef ROCP_F
	default:
		return "unsupported_rocprofiler_hip_runtime_api_id_t";
	}
}

inline constexpr std::string_view label(rocprofiler_hip_compiler_api_id_t value)
{
	switch (value) {
#define ROCP_F(name, args)                                                                         \
	case ROCPROFILER_HIP_COMPILER_API_ID_##name:                                               \
		return "ROCPROFILER_HIP_COMPILER_API_ID_" #name;
#include <rocprofiler-sdk/hip/compiler_api_list.h>
#undef ROCP_F
	default:
		return "unsupported_rocprofiler_hip_compiler_api_id_t";
	}
}

inline constexpr std::string_view label(rocprofiler_marker_core_api_id_t value)
{
	switch (value) {
#define ROCP_F(name, args)                                                                         \
	case ROCPROFILER_MARKER_CORE_API_ID_##name:                                                \
		return "ROCPROFILER_MARKER_CORE_API_ID_" #name;
#include <rocprofiler-sdk/marker/core_api_list.h>
#undef ROCP_F
	default:
		return "unsupported_rocprofiler_marker_core_api_id_t";
	}
}

inline constexpr std::string_view label(rocprofiler_marker_control_api_id_t value)
{
	switch (value) {
#define ROCP_F(name, args)                                                                         \
	case ROCPROFILER_MARKER_CONTROL_API_ID_##name:                                             \
		return "ROCPROFILER_MARKER_CONTROL_API_ID_" #name;
#include <rocprofiler-sdk/marker/control_api_list.h>
#undef ROCP_F
	default:
		return "unsupported_rocprofiler_marker_control_api_id_t";
	}
}

inline constexpr std::string_view label(rocprofiler_marker_name_api_id_t value)
{
	switch (value) {
#define ROCP_F(name, args)                                                                         \
	case ROCPROFILER_MARKER_NAME_API_ID_##name:                                                \
		return "ROCPROFILER_MARKER_NAME_API_ID_" #name;
#include <rocprofiler-sdk/marker/name_api_list.h>
#undef ROCP_F
	default:
		return "unsupported_rocprofiler_marker_name_api_id_t";
	}
}

inline constexpr std::string_view label(rocprofiler_marker_core_range_api_id_t value)
{
	switch (value) {
#define ROCP_F(name, args)                                                                         \
	case ROCPROFILER_MARKER_CORE_RANGE_API_ID_##name:                                          \
		return "ROCPROFILER_MARKER_CORE_RANGE_API_ID_" #name;
#include <rocprofiler-sdk/marker/core_range_api_list.h>
#undef ROCP_F
	default:
		return "unsupported_rocprofiler_marker_core_range_api_id_t";
	}
}

inline constexpr std::string_view label(rocprofiler_rccl_api_id_t value)
{
	switch (value) {
#define ROCP_F(name, args)                                                                         \
	case ROCPROFILER_RCCL_API_ID_##name:                                                       \
		return "ROCPROFILER_RCCL_API_ID_" #name;
#include <rocprofiler-sdk/rccl/api_list.h>
#undef ROCP_F
	default:
		return "unsupported_rocprofiler_rccl_api_id_t";
	}
}

inline constexpr std::string_view label(rocprofiler_rocdecode_api_id_t value)
{
	switch (value) {
#define ROCP_F(name, args)                                                                         \
	case ROCPROFILER_ROCDECODE_API_ID_##name:                                                  \
		return "ROCPROFILER_ROCDECODE_API_ID_" #name;
#include <rocprofiler-sdk/rocdecode/api_list.h>
#undef ROCP_F
	default:
		return "unsupported_rocprofiler_rocdecode_api_id_t";
	}
}

inline constexpr std::string_view label(rocprofiler_rocjpeg_api_id_t value)
{
	switch (value) {
#define ROCP_F(name, args)                                                                         \
	case ROCPROFILER_ROCJPEG_API_ID_##name:                                                    \
		return "ROCPROFILER_ROCJPEG_API_ID_" #name;
#include <rocprofiler-sdk/rocjpeg/api_list.h>
#undef ROCP_F
	default:
		return "unsupported_rocprofiler_rocjpeg_api_id_t";
	}
}

inline constexpr std::string_view label(rocprofiler_ompt_operation_t value)
{
	switch (value) {
#define ROCP_F(name, args)                                                                         \
	case ROCPROFILER_OMPT_ID_##name:                                                           \
		return "ROCPROFILER_OMPT_ID_" #name;
#include <rocprofiler-sdk/ompt/api_list.h>
#undef ROCP_F
	default:
		return "unsupported_rocprofiler_ompt_operation_t";
	}
}
} // namespace details

template <typename EnumT> constexpr std::string_view get_enum_label(EnumT value)
{
	return details::label(value);
}
} // namespace sdk
} // namespace rocprofiler

#endif
