/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See device_calls.h. A call lives in its thread's pool: backends see only a handle. One of CUDA's
 * runtime may be told twice, as itself and as HIP's, with one id.
 */
#include "libkymo-sdk/device_calls.h"

#include "common/hot.h"
#include "libkymo-sdk/cuda_as_hip.h"
#include "libkymo-sdk/emit.h"
#include "libkymo-sdk/thread.h"

struct device_call_open {
	struct sdk_pooled pooled;
	struct device_call_open *as_hip; /* the same call, open around it */
	bool is_told, has_arguments;
	union {
		struct sdk_device_call_data own;
		rocprofiler_callback_tracing_hip_api_data_t hip;
	} data;
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
	default:
		return SDK_DOMAIN_NONE;
	}
}

/* What tools are shown has no arguments while they look at it. */
static const void *hide_arguments(struct sdk_thread *thread, const struct device_call_open *open)
{
	const void *before = thread->without_arguments;

	if (!open->has_arguments)
		thread->without_arguments = &open->data;
	return before;
}

static struct device_call_open *enter_as_hip(struct sdk_thread *thread,
					     const struct device_call *call)
{
	struct device_call_open *open = sdk_pool_take(&thread->calls, sizeof(*open));
	const void *before;
	bool is_told;

	if (!open)
		return NULL;
	open->has_arguments =
		sdk_cuda_as_hip_arguments(call->operation, call->arguments, &open->data.hip);
	before = hide_arguments(thread, open);
	is_told = sdk_call_enter(&open->call, SDK_DOMAIN_HIP_RUNTIME,
				 sdk_cuda_as_hip(call->operation), &open->data.hip);
	thread->without_arguments = before;
	if (is_told)
		return open;
	sdk_pool_give(open, &thread->calls);
	return NULL;
}

static void exit_as_hip(struct sdk_thread *thread, struct device_call_open *open,
			const struct device_call *call, const void *result)
{
	const void *before = hide_arguments(thread, open);

	sdk_cuda_as_hip_result(call->operation, result, &open->data.hip);
	sdk_call_exit(&open->call, &open->data.hip);
	thread->without_arguments = before;
	sdk_pool_give(open, &thread->calls);
}

static bool enter_own(struct device_call_open *open, const struct device_call *call,
		      enum sdk_domain domain)
{
	if (!sdk_wants(domain, call->operation))
		return false;
	if (open->as_hip)
		return sdk_call_enter_as(&open->call, &open->as_hip->call, domain, call->operation,
					 &open->data.own);
	return sdk_call_enter(&open->call, domain, call->operation, &open->data.own);
}

KYMO_HOT device_handle sdk_device_call_enter(const struct device_call *call)
{
	enum sdk_domain domain = call_domain(call->service);
	bool as_hip = domain == SDK_DOMAIN_CUDA_RUNTIME && sdk_cuda_as_hip_wanted(call->operation);
	struct sdk_thread *thread =
		as_hip || sdk_wants(domain, call->operation) ? sdk_thread_self() : NULL;
	struct device_call_open *open;

	/* A signal handler must not take from a pool that its thread is taking from. */
	if (!thread || thread->busy)
		return DEVICE_NONE;
	open = sdk_pool_take(&thread->calls, sizeof(*open));
	if (!open)
		return DEVICE_NONE;
	open->data.own = (struct sdk_device_call_data){sizeof(open->data.own), call->arguments,
						       NULL, call->service};
	open->as_hip = as_hip ? enter_as_hip(thread, call) : NULL;
	open->is_told = enter_own(open, call, domain);
	if (open->is_told || open->as_hip)
		return (device_handle)(uintptr_t)open;
	sdk_pool_give(open, &thread->calls);
	return DEVICE_NONE;
}

KYMO_HOT void sdk_device_call_exit(device_handle handle, const struct device_call *call,
				   const void *result)
{
	struct device_call_open *open = (void *)(uintptr_t)handle; // NOLINT: made of a pointer
	struct sdk_thread *thread = sdk_thread_current;

	if (!open)
		return;
	if (call)
		open->data.own.arguments = call->arguments;
	open->data.own.result = result;
	if (open->is_told)
		sdk_call_exit(&open->call, &open->data.own);
	if (open->as_hip && thread && call)
		exit_as_hip(thread, open->as_hip, call, result);
	sdk_pool_give(open, thread ? &thread->calls : NULL);
}
