/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions of runtimes by their numbers.
 */
#include "device/cuda/cuda.h"
#include "device/device.h"
#include "device/opencl/opencl.h"

const struct device_operations *device_operations(enum device_service service)
{
	switch (service) {
	case DEVICE_SERVICE_CALLS_OPENCL:
		return &opencl_operations;
	case DEVICE_SERVICE_CALLS_CUDA_RUNTIME:
		return &cuda_runtime_operations;
	case DEVICE_SERVICE_CALLS_CUDA_DRIVER:
		return &cuda_driver_operations;
	default:
		return NULL;
	}
}
