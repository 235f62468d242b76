/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Calls of runtimes that upstream has no kinds for: OpenCL, CUDA.
 */
#ifndef KYMO_LIBKYMO_SDK_RUNTIMES_DEVICE_CALLS_H
#define KYMO_LIBKYMO_SDK_RUNTIMES_DEVICE_CALLS_H

#include "device/device.h"

/* The payload of their callbacks. */
struct sdk_device_call_data {
	uint64_t size;
	const void *arguments; /* the runtime's own struct of them */
	const void *result;    /* at EXIT; may be NULL */
	enum device_service_kind service;
};

device_handle sdk_device_call_enter(const struct device_api_call_info *call);
void sdk_device_call_exit(device_handle handle, const struct device_api_call_info *call,
			  const void *result);

#endif
