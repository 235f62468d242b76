/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See device_calls.h. A call lives in its thread's pool: backends see only a handle.
 */
#include "libkymo-sdk/device_calls.h"

#include "libkymo-sdk/emit.h"
#include "libkymo-sdk/thread.h"

struct device_call_open {
	struct sdk_pooled pooled;
	struct sdk_device_call_data data;
	struct sdk_call call;
};

static enum sdk_domain call_domain(enum device_service service)
{
	switch (service) {
	case DEVICE_SERVICE_CALLS_OPENCL:
		return SDK_DOMAIN_OPENCL;
	case DEVICE_SERVICE_CALLS_CUDA_RUNTIME:
		return SDK_DOMAIN_CUDA_RUNTIME;
	case DEVICE_SERVICE_CALLS_CUDA_DRIVER:
		return SDK_DOMAIN_CUDA_DRIVER;
	case DEVICE_SERVICE_CALLS_HSA:
		return SDK_DOMAIN_HSA_CORE;
	default:
		return SDK_DOMAIN_NONE;
	}
}

device_handle sdk_device_call_enter(const struct device_call *call)
{
	enum sdk_domain domain = call_domain(call->service);
	struct sdk_thread *thread = sdk_wants(domain, call->operation) ? sdk_thread_self() : NULL;
	struct device_call_open *open;

	/* A signal handler must not take from a pool that its thread is taking from. */
	if (!thread || thread->busy)
		return DEVICE_NONE;
	open = sdk_pool_take(&thread->calls, sizeof(*open));
	if (!open)
		return DEVICE_NONE;
	open->data = (struct sdk_device_call_data){sizeof(open->data), call->arguments, NULL,
						   call->service};
	if (sdk_call_enter(&open->call, domain, call->operation, &open->data))
		return (device_handle)(uintptr_t)open;
	sdk_pool_give(open, &thread->calls);
	return DEVICE_NONE;
}

void sdk_device_call_exit(device_handle handle, const struct device_call *call, const void *result)
{
	struct device_call_open *open = (void *)(uintptr_t)handle; // NOLINT: made of a pointer
	struct sdk_thread *thread = sdk_thread_current;

	if (!open)
		return;
	if (call)
		open->data.arguments = call->arguments;
	open->data.result = result;
	sdk_call_exit(&open->call, &open->data);
	sdk_pool_give(open, thread ? &thread->calls : NULL);
}
