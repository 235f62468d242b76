/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * CUDA's functions have the numbers that CUPTI gives them; it also knows their names, once it is
 * loaded. Their parameters are structs of NVIDIA's headers, of which only the address can be told.
 */
#include "device/cuda/cuda.h"

#define CALLS_MAX 1024

static const char *name_of(int domain, int32_t call)
{
	const char *name = NULL;

	if (!cuda_is_on() || call <= 0 || call >= CALLS_MAX ||
	    cupti.GetCallbackName(domain, (uint32_t)call, &name) != CUPTI_SUCCESS)
		return NULL;
	return name;
}

static const char *driver_name(int32_t call)
{
	return name_of(CUPTI_DOMAIN_DRIVER, call);
}

static const char *runtime_name(int32_t call)
{
	return name_of(CUPTI_DOMAIN_RUNTIME, call);
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
