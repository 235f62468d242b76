/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * CUDA's functions have the numbers that CUPTI gives them. Those of later versions than our lists
 * have the names that CUPTI knows, once it is loaded. Their parameters are structs of NVIDIA's
 * headers, of which only the address can be told.
 */

#include "device/cuda/cuda.h"

#define CALLS_MAX 1024

static const char *const driver_names[CALLS_MAX] = {
#define X(number, name) [number] = #name,
#include "device/cuda/driver_calls.h"
#undef X
};

static const char *const runtime_names[CALLS_MAX] = {
#define X(number, name) [number] = #name,
#include "device/cuda/runtime_calls.h"
#undef X
};

static const char *later_name(int domain, int32_t call)
{
	const char *name = NULL;

	if (!cuda_is_on() || cupti.GetCallbackName(domain, (uint32_t)call, &name) != CUPTI_SUCCESS)
		return NULL;
	return name;
}

static const char *driver_name(int32_t call)
{
	if (call <= 0 || call >= CALLS_MAX)
		return NULL;
	return driver_names[call] != NULL ? driver_names[call]
					  : later_name(CUPTI_DOMAIN_DRIVER, call);
}

static const char *runtime_name(int32_t call)
{
	if (call <= 0 || call >= CALLS_MAX)
		return NULL;
	return runtime_names[call] != NULL ? runtime_names[call]
					   : later_name(CUPTI_DOMAIN_RUNTIME, call);
}

static int parameters(const struct device_call *call,
		      int (*each)(void *context, uint32_t number, const char *type,
				  const char *name, const void *value),
		      void *context)
{
	return each(context, 0, "const void *", "parameters", &call->arguments);
}

const struct device_operations cuda_driver_operations = {DEVICE_SERVICE_CALLS_CUDA_DRIVER,
							 CALLS_MAX, driver_name, parameters};
const struct device_operations cuda_runtime_operations = {DEVICE_SERVICE_CALLS_CUDA_RUNTIME,
							  CALLS_MAX, runtime_name, parameters};
