/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions of CUDA's runtime are told to tools that ask for HIP's.
 */
#include "scenario.h"

#include "libkymo-sdk/emit.h"
#include "libkymo-sdk/runtimes/cuda_as_hip.h"
#include "libkymo-sdk/runtimes/device_calls.h"

/* cupti_runtime_cbid.h */
enum {
	CUDA_MALLOC = 20,
	CUDA_GET_ATTRIBUTE = 200,
	CUDA_LAUNCH_KERNEL = 211,
	CUDA_STREAM_GET_ID = 441
};
#define CUDA_KIND 0x1000

static struct {
	unsigned hip, cuda, arguments, retired, records;
	uint64_t hip_id, cuda_id, hip_ancestor, cuda_ancestor, size, dispatch_id;
	int status, kind_of_arguments;
	char name[64], value[64];
} seen;
static rocprofiler_context_id_t context;
static rocprofiler_buffer_id_t buffer;

static int take_argument(rocprofiler_callback_tracing_kind_t kind,
			 rocprofiler_tracing_operation_t operation, uint32_t number,
			 const void *const address, int32_t indirections, const char *type,
			 const char *name, const char *value, int32_t dereferences, void *data)
{
	(void)kind;
	(void)operation;
	(void)address;
	(void)indirections;
	(void)type;
	(void)dereferences;
	(void)data;
	seen.arguments++;
	if (number == 1)
		snprintf(seen.value, sizeof(seen.value), "%s=%s", name, value);
	return 0;
}

static void tell(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *user_data,
		 void *data)
{
	const rocprofiler_callback_tracing_hip_api_data_t *hip = record.payload;
	const char *name = NULL;

	(void)user_data;
	(void)data;
	if ((int)record.kind == CUDA_KIND) {
		seen.cuda++;
		seen.cuda_id = record.correlation_id.internal;
		seen.cuda_ancestor = record.correlation_id.ancestor;
		return;
	}
	CHECK_EQUAL(record.kind, ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API);
	CHECK_EQUAL(hip->size, sizeof(*hip));
	seen.hip++;
	seen.hip_id = record.correlation_id.internal;
	seen.hip_ancestor = record.correlation_id.ancestor;
	OK(rocprofiler_query_callback_tracing_kind_operation_name(record.kind, record.operation,
								  &name, NULL));
	snprintf(seen.name, sizeof(seen.name), "%s", name);
	seen.size = hip->args.hipMalloc.size;
	if (record.phase == ROCPROFILER_CALLBACK_PHASE_EXIT)
		seen.status = (int)hip->retval.hipError_t_retval;
	seen.kind_of_arguments = rocprofiler_iterate_callback_tracing_kind_operation_args(
		record, take_argument, 0, NULL);
}

static void take(rocprofiler_context_id_t of, rocprofiler_buffer_id_t from,
		 rocprofiler_record_header_t **headers, size_t count, void *data, uint64_t dropped)
{
	(void)of;
	(void)from;
	(void)data;
	CHECK_EQUAL(dropped, 0);
	for (size_t i = 0; i < count; i++) {
		const rocprofiler_buffer_tracing_kernel_dispatch_record_t *kernel =
			headers[i]->payload;

		if (headers[i]->kind == ROCPROFILER_BUFFER_TRACING_CORRELATION_ID_RETIREMENT)
			seen.retired++;
		else if (headers[i]->kind == ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH)
			seen.dispatch_id = kernel->correlation_id.internal;
		else
			seen.records++;
	}
}

static void hear(int kind)
{
	OK(rocprofiler_configure_callback_tracing_service(
		context, (rocprofiler_callback_tracing_kind_t)kind, NULL, 0, tell, NULL));
}

static void put(int kind)
{
	OK(rocprofiler_configure_buffer_tracing_service(
		context, (rocprofiler_buffer_tracing_kind_t)kind, NULL, 0, buffer));
}

static int initialize_hip(void)
{
	OK(rocprofiler_create_context(&context));
	hear(ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API);
	OK(rocprofiler_start_context(context));
	return 0;
}

static int initialize_both(void)
{
	OK(rocprofiler_create_context(&context));
	OK(rocprofiler_create_buffer(context, 65536, 65536, ROCPROFILER_BUFFER_POLICY_LOSSLESS,
				     take, NULL, &buffer));
	hear(ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API);
	hear(CUDA_KIND);
	put(ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API);
	put(CUDA_KIND);
	put(ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH);
	put(ROCPROFILER_BUFFER_TRACING_CORRELATION_ID_RETIREMENT);
	OK(rocprofiler_start_context(context));
	return 0;
}

static int initialize_cuda(void)
{
	OK(rocprofiler_create_context(&context));
	hear(CUDA_KIND);
	OK(rocprofiler_start_context(context));
	return 0;
}

static void *memory;
static struct {
	void **pointer;
	size_t size;
} malloc_arguments = {&memory, 4096};

static device_handle enter(int32_t operation, const void *arguments)
{
	const struct device_api_call_info call = {DEVICE_SERVICE_CALLS_CUDA_RUNTIME, operation,
						  arguments};

	return sdk_device_call_enter(&call);
}

static void leave(device_handle handle, int32_t operation, const void *arguments, int status)
{
	const struct device_api_call_info call = {DEVICE_SERVICE_CALLS_CUDA_RUNTIME, operation,
						  arguments};

	sdk_device_call_exit(handle, &call, &status);
}

static void run_hip(void)
{
	device_handle handle;

	scenario_tool(initialize_hip);
	handle = enter(CUDA_MALLOC, &malloc_arguments);
	CHECK(handle != DEVICE_HANDLE_NONE);
	CHECK_EQUAL(seen.hip, 1);
	CHECK(strcmp(seen.name, "hipMalloc") == 0);
	CHECK_EQUAL(seen.size, 4096);
	CHECK_EQUAL(seen.arguments, 2);
	CHECK(strcmp(seen.value, "size=4096") == 0);
	leave(handle, CUDA_MALLOC, &malloc_arguments, 2);
	CHECK_EQUAL(seen.hip, 2);
	CHECK_EQUAL(seen.status, 2);
	CHECK_EQUAL(seen.cuda, 0);
}

static void as_hip_with_its_arguments(void **state)
{
	(void)state;
	scenario(run_hip);
}

static void run_other(void)
{
	int arguments[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	device_handle handle, inner;

	scenario_tool(initialize_hip);
	handle = enter(CUDA_GET_ATTRIBUTE, arguments);
	CHECK(strcmp(seen.name, "hipDeviceGetAttribute") == 0);
	CHECK_EQUAL(seen.kind_of_arguments, ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED);
	CHECK_EQUAL(seen.size, 0);
	/* What is called within it has arguments all the same. */
	inner = enter(CUDA_MALLOC, &malloc_arguments);
	CHECK_EQUAL(seen.arguments, 2);
	CHECK(seen.hip_ancestor != 0);
	leave(inner, CUDA_MALLOC, &malloc_arguments, 0);
	leave(handle, CUDA_GET_ATTRIBUTE, arguments, 0);
	CHECK_EQUAL(seen.kind_of_arguments, ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED);
	CHECK_EQUAL(seen.arguments, 4);
	CHECK_EQUAL(seen.hip, 4);
}

static void other_arguments_are_none(void **state)
{
	(void)state;
	scenario(run_other);
}

static void run_none(void)
{
	scenario_tool(initialize_hip);
	CHECK_EQUAL(sdk_cuda_call_to_hip_operation(CUDA_STREAM_GET_ID), -1);
	CHECK_EQUAL(sdk_cuda_call_to_hip_operation(-1), -1);
	CHECK_EQUAL(sdk_cuda_call_to_hip_operation(100000), -1);
	CHECK_EQUAL(enter(CUDA_STREAM_GET_ID, NULL), DEVICE_HANDLE_NONE);
	CHECK_EQUAL(seen.hip, 0);
}

static void what_hip_has_not_is_not_told(void **state)
{
	(void)state;
	scenario(run_none);
}

static void run_both(void)
{
	rocprofiler_kernel_dispatch_info_t info = {.kernel_id = 1};
	device_handle handle;
	struct sdk_device_work *work;

	scenario_tool(initialize_both);
	handle = enter(CUDA_LAUNCH_KERNEL, NULL);
	CHECK_EQUAL(seen.hip, 1);
	CHECK_EQUAL(seen.cuda, 1);
	CHECK(seen.hip_id != 0);
	CHECK_EQUAL(seen.hip_id, seen.cuda_id);
	CHECK_EQUAL(seen.hip_ancestor, seen.cuda_ancestor);
	work = sdk_dispatch_report_enqueue(&info);
	sdk_dispatch_report_submitted(work, false);
	leave(handle, CUDA_LAUNCH_KERNEL, NULL, 0);
	CHECK_EQUAL(seen.hip, 2);
	CHECK_EQUAL(seen.cuda, 2);
	sdk_dispatch_report_complete(work, NULL, 1, 2);
	OK(rocprofiler_flush_buffer(buffer));
	CHECK_EQUAL(seen.records, 2);
	CHECK_EQUAL(seen.dispatch_id, seen.hip_id);
	CHECK_EQUAL(seen.retired, 1);
}

static void one_id_for_both(void **state)
{
	(void)state;
	scenario(run_both);
}

static void run_cuda(void)
{
	device_handle handle;

	scenario_tool(initialize_cuda);
	handle = enter(CUDA_MALLOC, &malloc_arguments);
	leave(handle, CUDA_MALLOC, &malloc_arguments, 0);
	CHECK_EQUAL(seen.cuda, 2);
	CHECK_EQUAL(seen.hip, 0);
}

static void nobody_asks_for_hip(void **state)
{
	(void)state;
	scenario(run_cuda);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_hip_with_its_arguments),
		cmocka_unit_test(other_arguments_are_none),
		cmocka_unit_test(what_hip_has_not_is_not_told),
		cmocka_unit_test(one_id_for_both),
		cmocka_unit_test(nobody_asks_for_hip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
