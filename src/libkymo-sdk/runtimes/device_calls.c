/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See device_calls.h. A call lives in its thread's pool: backends see only a handle. One of CUDA's
 * runtime may be told twice, as itself and as HIP's, with one id.
 */
#include "libkymo-sdk/runtimes/device_calls.h"

#include "common/hot.h"
#include "libkymo-sdk/base/thread.h"
#include "libkymo-sdk/emit.h"
#include "libkymo-sdk/runtimes/cuda_as_hip.h"

struct device_call_in_progress {
	struct sdk_pooled_object_header pooled_object;
	struct device_call_in_progress *outer_hip_call; /* the same call, open around it */
	bool is_reported, has_arguments;
	union {
		struct sdk_device_call_data own_payload;
		rocprofiler_callback_tracing_hip_api_data_t hip_payload;
	} data;
	struct sdk_call_state call;
};

static enum sdk_domain device_service_to_domain(enum device_service_kind service)
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
static const void *hide_arguments_from_tools_if_none(struct sdk_thread_state *thread,
						     const struct device_call_in_progress *open)
{
	const void *before = thread->payload_without_arguments;

	if (!open->has_arguments)
		thread->payload_without_arguments = &open->data;
	return before;
}

static struct device_call_in_progress *enter_call_as_hip(struct sdk_thread_state *thread,
							 const struct device_api_call_info *call)
{
	struct device_call_in_progress *open =
		sdk_object_pool_take(&thread->call_pool, sizeof(*open));
	const void *before;
	bool is_told;

	if (!open)
		return NULL;
	open->has_arguments = sdk_cuda_arguments_to_hip(call->operation, call->arguments,
							&open->data.hip_payload);
	before = hide_arguments_from_tools_if_none(thread, open);
	is_told = sdk_call_enter(&open->call, SDK_DOMAIN_HIP_RUNTIME,
				 sdk_cuda_call_to_hip_operation(call->operation),
				 &open->data.hip_payload);
	thread->payload_without_arguments = before;
	if (is_told)
		return open;
	sdk_object_pool_return(open, &thread->call_pool);
	return NULL;
}

static void exit_call_as_hip(struct sdk_thread_state *thread, struct device_call_in_progress *open,
			     const struct device_api_call_info *call, const void *result)
{
	const void *before = hide_arguments_from_tools_if_none(thread, open);

	sdk_cuda_result_to_hip(call->operation, result, &open->data.hip_payload);
	sdk_call_exit(&open->call, &open->data.hip_payload);
	thread->payload_without_arguments = before;
	sdk_object_pool_return(open, &thread->call_pool);
}

static bool enter_device_call(struct device_call_in_progress *open,
			      const struct device_api_call_info *call, enum sdk_domain domain)
{
	if (!sdk_is_operation_wanted(domain, call->operation))
		return false;
	if (open->outer_hip_call)
		return sdk_call_enter_in_second_domain(&open->call, &open->outer_hip_call->call,
						       domain, call->operation,
						       &open->data.own_payload);
	return sdk_call_enter(&open->call, domain, call->operation, &open->data.own_payload);
}

KYMO_HOT device_handle sdk_device_call_enter(const struct device_api_call_info *call)
{
	enum sdk_domain domain = device_service_to_domain(call->service);
	bool as_hip = domain == SDK_DOMAIN_CUDA_RUNTIME &&
		      sdk_is_cuda_call_wanted_as_hip(call->operation);
	struct sdk_thread_state *thread = as_hip || sdk_is_operation_wanted(domain, call->operation)
						  ? sdk_thread_get_or_create_own_state()
						  : NULL;
	struct device_call_in_progress *open;

	/* A signal handler must not take from a pool that its thread is taking from. */
	if (!thread || thread->busy)
		return DEVICE_HANDLE_NONE;
	open = sdk_object_pool_take(&thread->call_pool, sizeof(*open));
	if (!open)
		return DEVICE_HANDLE_NONE;
	open->data.own_payload = (struct sdk_device_call_data){
		sizeof(open->data.own_payload), call->arguments, NULL, call->service};
	open->outer_hip_call = as_hip ? enter_call_as_hip(thread, call) : NULL;
	open->is_reported = enter_device_call(open, call, domain);
	if (open->is_reported || open->outer_hip_call)
		return (device_handle)(uintptr_t)open;
	sdk_object_pool_return(open, &thread->call_pool);
	return DEVICE_HANDLE_NONE;
}

KYMO_HOT void sdk_device_call_exit(device_handle handle, const struct device_api_call_info *call,
				   const void *result)
{
	struct device_call_in_progress *open =
		(void *)(uintptr_t)handle; // NOLINT: made of a pointer
	struct sdk_thread_state *thread = sdk_current_thread_state;

	if (!open)
		return;
	if (call)
		open->data.own_payload.arguments = call->arguments;
	open->data.own_payload.result = result;
	if (open->is_reported)
		sdk_call_exit(&open->call, &open->data.own_payload);
	if (open->outer_hip_call && thread && call)
		exit_call_as_hip(thread, open->outer_hip_call, call, result);
	sdk_object_pool_return(open, thread ? &thread->call_pool : NULL);
}
