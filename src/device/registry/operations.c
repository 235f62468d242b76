/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions of runtimes by their numbers.
 */
#include "device/cuda/cuda.h"
#include "device/opencl/opencl.h"
#include "device/registry/devices.h"

const struct device_call_catalog *
device_find_call_catalog_of_service(enum device_service_kind service)
{
	switch (service) {
	case DEVICE_SERVICE_CALLS_OPENCL:
		return &opencl_call_catalog;
	case DEVICE_SERVICE_CALLS_CUDA_RUNTIME:
		return &cuda_runtime_call_catalog;
	case DEVICE_SERVICE_CALLS_CUDA_DRIVER:
		return &cuda_driver_call_catalog;
	default:
		return NULL;
	}
}
