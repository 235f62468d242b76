/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See cuda_as_hip.h.
 */
#include "libkymo-sdk/runtimes/cuda_as_hip.h"

#include <string.h>

#include "libkymo-sdk/emit.h"
#include "libkymo-sdk/tables/names.h"

enum { HIP_ARGUMENTS_DIFFER, HIP_ARGUMENTS_SAME };

static const struct {
	int16_t operation; /* one more; 0: HIP has none */
	int8_t arguments;
} hip_operation_by_cuda_call[SDK_OPERATIONS_MAX] = {
#define X(call, name, arguments) [call] = {ROCPROFILER_HIP_RUNTIME_API_ID_##name + 1, arguments},
#include "libkymo-sdk/runtimes/cuda_as_hip_list.h"
#undef X
};

int32_t sdk_cuda_call_to_hip_operation(int32_t call)
{
	return call >= 0 && call < SDK_OPERATIONS_MAX
		       ? hip_operation_by_cuda_call[call].operation - 1
		       : -1;
}

bool sdk_is_cuda_call_wanted_as_hip(int32_t call)
{
	int32_t operation = sdk_cuda_call_to_hip_operation(call);

	return operation >= 0 && sdk_is_operation_wanted(SDK_DOMAIN_HIP_RUNTIME, operation);
}

bool sdk_cuda_arguments_to_hip(int32_t call, const void *arguments,
			       rocprofiler_callback_tracing_hip_api_data_t *data)
{
	const struct sdk_function_description *function =
		&sdk_function_list_of_hip_runtime.list[sdk_cuda_call_to_hip_operation(call)];
	size_t size = 0;

	*data = (rocprofiler_callback_tracing_hip_api_data_t){.size = sizeof(*data)};
	if (hip_operation_by_cuda_call[call].arguments != HIP_ARGUMENTS_SAME)
		return false;
	for (uint32_t i = 0; i < function->count; i++) {
		const struct sdk_argument_layout *argument = &function->arguments[i];
		size_t alignment = argument->alignment;

		size = ((size + alignment - 1) & ~(alignment - 1)) + argument->size;
	}
	if (size && !arguments)
		return false;
	if (size <= sizeof(data->args))
		memcpy(&data->args, arguments, size);
	return true;
}

/* What is no status is left 0. */
void sdk_cuda_result_to_hip(int32_t call, const void *result,
			    rocprofiler_callback_tracing_hip_api_data_t *data)
{
	int32_t operation = sdk_cuda_call_to_hip_operation(call), status;

	if (!result || operation == ROCPROFILER_HIP_RUNTIME_API_ID_hipGetErrorString ||
	    operation == ROCPROFILER_HIP_RUNTIME_API_ID_hipGetErrorName ||
	    operation == ROCPROFILER_HIP_RUNTIME_API_ID_hipCreateChannelDesc)
		return;
	memcpy(&status, result, sizeof(status));
	data->retval.int_retval = status;
}
