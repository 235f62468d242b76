/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See cuda_as_hip.h.
 */
#include "libkymo-sdk/cuda_as_hip.h"

#include <string.h>

#include "libkymo-sdk/emit.h"
#include "libkymo-sdk/names.h"

enum { OTHER, SAME };

static const struct {
	int16_t operation; /* one more; 0: HIP has none */
	int8_t arguments;
} as_hip[SDK_OPERATIONS_MAX] = {
#define X(call, name, arguments) [call] = {ROCPROFILER_HIP_RUNTIME_API_ID_##name + 1, arguments},
#include "libkymo-sdk/cuda_as_hip_list.h"
#undef X
};

int32_t sdk_cuda_as_hip(int32_t call)
{
	return call >= 0 && call < SDK_OPERATIONS_MAX ? as_hip[call].operation - 1 : -1;
}

bool sdk_cuda_as_hip_wanted(int32_t call)
{
	int32_t operation = sdk_cuda_as_hip(call);

	return operation >= 0 && sdk_wants(SDK_DOMAIN_HIP_RUNTIME, operation);
}

bool sdk_cuda_as_hip_arguments(int32_t call, const void *arguments,
			       rocprofiler_callback_tracing_hip_api_data_t *data)
{
	const struct sdk_function *function =
		&sdk_functions_hip_runtime.list[sdk_cuda_as_hip(call)];
	size_t size = 0;

	*data = (rocprofiler_callback_tracing_hip_api_data_t){.size = sizeof(*data)};
	if (as_hip[call].arguments != SAME)
		return false;
	for (uint32_t i = 0; i < function->count; i++) {
		const struct sdk_argument *argument = &function->arguments[i];
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
void sdk_cuda_as_hip_result(int32_t call, const void *result,
			    rocprofiler_callback_tracing_hip_api_data_t *data)
{
	int32_t operation = sdk_cuda_as_hip(call), status;

	if (!result || operation == ROCPROFILER_HIP_RUNTIME_API_ID_hipGetErrorString ||
	    operation == ROCPROFILER_HIP_RUNTIME_API_ID_hipGetErrorName ||
	    operation == ROCPROFILER_HIP_RUNTIME_API_ID_hipCreateChannelDesc)
		return;
	memcpy(&status, result, sizeof(status));
	data->retval.int_retval = status;
}
