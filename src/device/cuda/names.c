/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * CUDA's functions have the numbers that CUPTI gives them. Those of later versions than our lists
 * have the names that CUPTI knows, once it is loaded. Their parameters are structs of NVIDIA's
 * headers, of which only the address can be told.
 */

#include "device/cuda/cuda.h"

#define CALL_IDS_MAX 1024

static const char *const driver_call_names[CALL_IDS_MAX] = {
#define X(number, name) [number] = #name,
#include "device/cuda/driver_calls.h"
#undef X
};

static const char *const runtime_call_names[CALL_IDS_MAX] = {
#define X(number, name) [number] = #name,
#include "device/cuda/runtime_calls.h"
#undef X
};

static const char *read_cupti_call_name(int domain, int32_t call)
{
	const char *name = NULL;

	if (!cuda_is_tracing() ||
	    cupti.GetCallbackName(domain, (uint32_t)call, &name) != CUPTI_SUCCESS)
		return NULL;
	return name;
}

static const char *find_driver_call_name(int32_t call)
{
	if (call <= 0 || call >= CALL_IDS_MAX)
		return NULL;
	return driver_call_names[call] != NULL ? driver_call_names[call]
					       : read_cupti_call_name(CUPTI_DOMAIN_DRIVER, call);
}

static const char *find_runtime_call_name(int32_t call)
{
	if (call <= 0 || call >= CALL_IDS_MAX)
		return NULL;
	return runtime_call_names[call] != NULL ? runtime_call_names[call]
						: read_cupti_call_name(CUPTI_DOMAIN_RUNTIME, call);
}

static int pass_call_parameters_address(const struct device_api_call_info *call,
					int (*each)(void *context, uint32_t number,
						    const char *type, const char *name,
						    const void *value),
					void *context)
{
	return each(context, 0, "const void *", "parameters", &call->arguments);
}

const struct device_call_catalog cuda_driver_call_catalog = {DEVICE_SERVICE_CALLS_CUDA_DRIVER,
							     CALL_IDS_MAX, find_driver_call_name,
							     pass_call_parameters_address};
const struct device_call_catalog cuda_runtime_call_catalog = {DEVICE_SERVICE_CALLS_CUDA_RUNTIME,
							      CALL_IDS_MAX, find_runtime_call_name,
							      pass_call_parameters_address};
