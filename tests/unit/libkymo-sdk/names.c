/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names of kinds and operations, arguments of calls, and status codes in words.
 */
#include "scenario.h"

#include <math.h>
#include <sys/mman.h>

#include "common/array.h"

#include <kymo/tools.h>

#include "libkymo-sdk/agents.h"
#include "libkymo-sdk/tables/domains.h"
#include "libkymo-sdk/tables/names.h"

static int count_callback_kind(rocprofiler_callback_tracing_kind_t kind, void *data)
{
	int *next = data;

	assert_int_equal((int)kind, *next);
	return ++*next == 5 ? 1 : 0;
}

static int count_all_callback_kinds(rocprofiler_callback_tracing_kind_t kind, void *data)
{
	const char *name = NULL;
	uint64_t length = 0;

	assert_int_equal((int)kind, (*(int *)data)++);
	assert_int_equal(rocprofiler_query_callback_tracing_kind_name(kind, &name, &length), 0);
	assert_int_equal(strlen(name), length);
	return 0;
}

static int count_all_buffer_kinds(rocprofiler_buffer_tracing_kind_t kind, void *data)
{
	const char *name = NULL;
	uint64_t length = 0;

	assert_int_equal((int)kind, (*(int *)data)++);
	assert_int_equal(rocprofiler_query_buffer_tracing_kind_name(kind, &name, &length), 0);
	assert_int_equal(strlen(name), length);
	return 0;
}

/* Tools take the number of kinds for the last one. */
static void kinds_are_all_iterated(void **state)
{
	int count = 0;

	(void)state;
	assert_int_equal(
		rocprofiler_iterate_callback_tracing_kinds(count_all_callback_kinds, &count), 0);
	assert_int_equal(count, ROCPROFILER_CALLBACK_TRACING_LAST);
	count = 0;
	assert_int_equal(rocprofiler_iterate_buffer_tracing_kinds(count_all_buffer_kinds, &count),
			 0);
	assert_int_equal(count, ROCPROFILER_BUFFER_TRACING_LAST);
	count = 0;
	assert_int_equal(rocprofiler_iterate_callback_tracing_kinds(count_callback_kind, &count),
			 0);
	assert_int_equal(count, 5);
}

static int count_operation(rocprofiler_callback_tracing_kind_t kind,
			   rocprofiler_tracing_operation_t operation, void *data)
{
	const char *name = NULL;
	uint64_t length = 0;

	assert_int_equal(operation, (*(int *)data)++);
	assert_int_equal(rocprofiler_query_callback_tracing_kind_operation_name(kind, operation,
										&name, &length),
			 0);
	assert_non_null(name);
	assert_int_equal(strlen(name), length);
	return 0;
}

static int count_buffer_operation(rocprofiler_buffer_tracing_kind_t kind,
				  rocprofiler_tracing_operation_t operation, void *data)
{
	const char *name = NULL;

	assert_int_equal(operation, (*(int *)data)++);
	assert_int_equal(
		rocprofiler_query_buffer_tracing_kind_operation_name(kind, operation, &name, NULL),
		0);
	assert_non_null(name);
	return 0;
}

static int stop_at_once(rocprofiler_callback_tracing_kind_t kind,
			rocprofiler_tracing_operation_t operation, void *data)
{
	(void)kind;
	(void)operation;
	return ++*(int *)data;
}

static void operations_are_all_named(void **state)
{
	static const struct {
		rocprofiler_callback_tracing_kind_t kind;
		int count;
	} kinds[] = {
		{ROCPROFILER_CALLBACK_TRACING_HSA_CORE_API, ROCPROFILER_HSA_CORE_API_ID_LAST},
		{ROCPROFILER_CALLBACK_TRACING_HSA_AMD_EXT_API, ROCPROFILER_HSA_AMD_EXT_API_ID_LAST},
		{ROCPROFILER_CALLBACK_TRACING_HSA_IMAGE_EXT_API,
		 ROCPROFILER_HSA_IMAGE_EXT_API_ID_LAST},
		{ROCPROFILER_CALLBACK_TRACING_HSA_FINALIZE_EXT_API,
		 ROCPROFILER_HSA_FINALIZE_EXT_API_ID_LAST},
		{ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API, ROCPROFILER_HIP_RUNTIME_API_ID_LAST},
		{ROCPROFILER_CALLBACK_TRACING_HIP_COMPILER_API,
		 ROCPROFILER_HIP_COMPILER_API_ID_LAST},
		{ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API, ROCPROFILER_MARKER_CORE_API_ID_LAST},
		{ROCPROFILER_CALLBACK_TRACING_MARKER_CONTROL_API,
		 ROCPROFILER_MARKER_CONTROL_API_ID_LAST},
		{ROCPROFILER_CALLBACK_TRACING_MARKER_NAME_API, ROCPROFILER_MARKER_NAME_API_ID_LAST},
		{ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT, ROCPROFILER_CODE_OBJECT_LAST},
		{ROCPROFILER_CALLBACK_TRACING_SCRATCH_MEMORY, ROCPROFILER_SCRATCH_MEMORY_LAST},
		{ROCPROFILER_CALLBACK_TRACING_KERNEL_DISPATCH, ROCPROFILER_KERNEL_DISPATCH_LAST},
		{ROCPROFILER_CALLBACK_TRACING_MEMORY_COPY, ROCPROFILER_MEMORY_COPY_LAST},
		{ROCPROFILER_CALLBACK_TRACING_RCCL_API, ROCPROFILER_RCCL_API_ID_LAST},
		{ROCPROFILER_CALLBACK_TRACING_OMPT, ROCPROFILER_OMPT_ID_LAST},
		{ROCPROFILER_CALLBACK_TRACING_MEMORY_ALLOCATION,
		 ROCPROFILER_MEMORY_ALLOCATION_LAST},
		{ROCPROFILER_CALLBACK_TRACING_RUNTIME_INITIALIZATION,
		 ROCPROFILER_RUNTIME_INITIALIZATION_LAST},
		{ROCPROFILER_CALLBACK_TRACING_ROCDECODE_API, ROCPROFILER_ROCDECODE_API_ID_LAST},
		{ROCPROFILER_CALLBACK_TRACING_ROCJPEG_API, ROCPROFILER_ROCJPEG_API_ID_LAST},
		{ROCPROFILER_CALLBACK_TRACING_HIP_STREAM, ROCPROFILER_HIP_STREAM_LAST},
		{ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_RANGE_API,
		 ROCPROFILER_MARKER_CORE_RANGE_API_ID_LAST},
	};
	int count;

	(void)state;
	assert_int_equal(ARRAY_SIZE(kinds), ROCPROFILER_CALLBACK_TRACING_LAST - 1);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		count = 0;
		assert_int_equal(rocprofiler_iterate_callback_tracing_kind_operations(
					 kinds[i].kind, count_operation, &count),
				 0);
		assert_int_equal(count, kinds[i].count);
	}
	for (int kind = 1; kind < ROCPROFILER_BUFFER_TRACING_LAST; kind++) {
		count = 0;
		if (kind == ROCPROFILER_BUFFER_TRACING_CORRELATION_ID_RETIREMENT)
			continue;
		assert_int_equal(rocprofiler_iterate_buffer_tracing_kind_operations(
					 (rocprofiler_buffer_tracing_kind_t)kind,
					 count_buffer_operation, &count),
				 0);
		assert_true(count > 0);
	}
	count = 0;
	rocprofiler_iterate_callback_tracing_kind_operations(ROCPROFILER_CALLBACK_TRACING_OMPT,
							     stop_at_once, &count);
	assert_int_equal(count, 1);
}

static void expect_callback_name(rocprofiler_callback_tracing_kind_t kind, int32_t operation,
				 const char *name)
{
	const char *found = NULL;

	assert_int_equal(rocprofiler_query_callback_tracing_kind_operation_name(kind, operation,
										&found, NULL),
			 0);
	assert_string_equal(found, name);
}

static void names_are_upstreams(void **state)
{
	const char *name = NULL;

	(void)state;
	rocprofiler_query_callback_tracing_kind_name(ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API,
						     &name, NULL);
	assert_string_equal(name, "HIP_RUNTIME_API");
	expect_callback_name(ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API,
			     ROCPROFILER_HIP_RUNTIME_API_ID_hipLaunchKernel, "hipLaunchKernel");
	expect_callback_name(ROCPROFILER_CALLBACK_TRACING_HSA_CORE_API,
			     ROCPROFILER_HSA_CORE_API_ID_hsa_queue_create, "hsa_queue_create");
	expect_callback_name(ROCPROFILER_CALLBACK_TRACING_RCCL_API,
			     ROCPROFILER_RCCL_API_ID_ncclAllReduce, "ncclAllReduce");
	expect_callback_name(ROCPROFILER_CALLBACK_TRACING_OMPT, ROCPROFILER_OMPT_ID_parallel_begin,
			     "omp_parallel_begin");
	expect_callback_name(ROCPROFILER_CALLBACK_TRACING_MEMORY_COPY,
			     ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE, "MEMORY_COPY_HOST_TO_DEVICE");
	expect_callback_name(ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT, ROCPROFILER_CODE_OBJECT_LOAD,
			     "CODE_OBJECT_LOAD");
	rocprofiler_query_external_correlation_id_request_kind_name(
		ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_KERNEL_DISPATCH, &name, NULL);
	assert_string_equal(name, "KERNEL_DISPATCH");
	rocprofiler_query_intercept_table_name(ROCPROFILER_RCCL_TABLE, &name, NULL);
	assert_string_equal(name, "RCCL");
}

#define IS(call, status)      assert_int_equal(call, ROCPROFILER_STATUS_ERROR_##status)
#define CALLBACK_KIND(number) ((rocprofiler_callback_tracing_kind_t)(number))
#define BUFFER_KIND(number)   ((rocprofiler_buffer_tracing_kind_t)(number))

static void wrong_kinds_and_operations_are_told(void **state)
{
	static const int none[] = {-1, ROCPROFILER_CALLBACK_TRACING_LAST, 0xfff, 0x1003, INT32_MAX};
	const char *name = "left";
	uint64_t length = 7;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		IS(rocprofiler_query_callback_tracing_kind_name(CALLBACK_KIND(none[i]), &name,
								&length),
		   KIND_NOT_FOUND);
		assert_null(name);
		assert_int_equal(length, 0);
		IS(rocprofiler_query_callback_tracing_kind_operation_name(CALLBACK_KIND(none[i]), 0,
									  NULL, NULL),
		   KIND_NOT_FOUND);
		IS(rocprofiler_iterate_callback_tracing_kind_operations(CALLBACK_KIND(none[i]),
									count_operation, NULL),
		   KIND_NOT_FOUND);
	}
	IS(rocprofiler_query_buffer_tracing_kind_name(BUFFER_KIND(ROCPROFILER_BUFFER_TRACING_LAST),
						      NULL, NULL),
	   KIND_NOT_FOUND);
	IS(rocprofiler_query_callback_tracing_kind_operation_name(ROCPROFILER_CALLBACK_TRACING_NONE,
								  0, &name, NULL),
	   INVALID_ARGUMENT);
	name = "left";
	IS(rocprofiler_query_callback_tracing_kind_operation_name(
		   ROCPROFILER_CALLBACK_TRACING_KERNEL_DISPATCH, ROCPROFILER_KERNEL_DISPATCH_LAST,
		   &name, &length),
	   OPERATION_NOT_FOUND);
	assert_null(name);
	assert_int_equal(length, 0);
	IS(rocprofiler_query_callback_tracing_kind_operation_name(
		   ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API, -1, NULL, NULL),
	   OPERATION_NOT_FOUND);
	IS(rocprofiler_query_buffer_tracing_kind_operation_name(
		   ROCPROFILER_BUFFER_TRACING_CORRELATION_ID_RETIREMENT, 0, NULL, NULL),
	   NOT_IMPLEMENTED);
	IS(rocprofiler_iterate_callback_tracing_kinds(NULL, NULL), INVALID_ARGUMENT);
	IS(rocprofiler_iterate_buffer_tracing_kinds(NULL, NULL), INVALID_ARGUMENT);
	IS(rocprofiler_iterate_callback_tracing_kind_operations(ROCPROFILER_CALLBACK_TRACING_OMPT,
								NULL, NULL),
	   INVALID_ARGUMENT);
	IS(rocprofiler_query_external_correlation_id_request_kind_name(
		   (rocprofiler_external_correlation_id_request_kind_t)
			   ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_LAST,
		   &name, NULL),
	   KIND_NOT_FOUND);
	IS(rocprofiler_query_intercept_table_name((rocprofiler_intercept_table_t)3, &name, NULL),
	   KIND_NOT_FOUND);
}

/* The tables have no offsets: members follow each other as in the public structs. */
static size_t size_of_arguments(const struct sdk_function_description *function)
{
	size_t end = 0, alignment = 1;

	for (uint32_t i = 0; i < function->count; i++) {
		const struct sdk_argument_layout *argument = &function->arguments[i];

		if (argument->value == SDK_VALUE_NONE)
			return 1;
		end = (end + argument->alignment - 1) / argument->alignment * argument->alignment +
		      argument->size;
		alignment = argument->alignment > alignment ? argument->alignment : alignment;
	}
	return (end + alignment - 1) / alignment * alignment;
}

static void arguments_lie_as_in_the_structs(void **state)
{
	int at;

	(void)state;
#define SAME(table, unions, function)                                                              \
	assert_string_equal(table.list[at].name, #function);                                       \
	assert_int_equal(size_of_arguments(&table.list[at++]), sizeof(((unions *)NULL)->function));
	at = 0;
#define ROCP_F(name, args) SAME(sdk_function_list_of_hip_runtime, rocprofiler_hip_api_args_t, name)
#include <rocprofiler-sdk/hip/runtime_api_list.h>
#undef ROCP_F
	assert_int_equal(at, ROCPROFILER_HIP_RUNTIME_API_ID_LAST);
	at = 0;
#define ROCP_F(name, args) SAME(sdk_function_list_of_hsa_core, rocprofiler_hsa_api_args_t, name)
#include <rocprofiler-sdk/hsa/core_api_list.h>
#undef ROCP_F
	at = 0;
#define ROCP_F(name, args) SAME(sdk_function_list_of_hsa_amd_ext, rocprofiler_hsa_api_args_t, name)
#include <rocprofiler-sdk/hsa/amd_ext_api_list.h>
#undef ROCP_F
	at = 0;
#define ROCP_F(name, args) SAME(sdk_function_list_of_rccl, rocprofiler_rccl_api_args_t, name)
#include <rocprofiler-sdk/rccl/api_list.h>
#undef ROCP_F
}

struct told {
	uint32_t count;
	struct {
		char type[64], name[64], value[600];
		int32_t indirections, dereferences;
		const void *address;
	} arguments[16];
	uint32_t stop_at;
};

static int tell(rocprofiler_callback_tracing_kind_t kind, rocprofiler_tracing_operation_t operation,
		uint32_t number, const void *const address, int32_t indirections, const char *type,
		const char *name, const char *value, int32_t dereferences, void *data)
{
	struct told *told = data;

	(void)kind;
	(void)operation;
	assert_int_equal(number, told->count);
	assert_true(number < 16);
	assert_true(dereferences >= 0 && dereferences <= indirections);
	snprintf(told->arguments[number].type, sizeof(told->arguments[number].type), "%s", type);
	snprintf(told->arguments[number].name, sizeof(told->arguments[number].name), "%s", name);
	snprintf(told->arguments[number].value, sizeof(told->arguments[number].value), "%s", value);
	told->arguments[number].indirections = indirections;
	told->arguments[number].dereferences = dereferences;
	told->arguments[number].address = address;
	return ++told->count == told->stop_at;
}

static struct told arguments_of(rocprofiler_callback_tracing_kind_t kind, int32_t operation,
				void *payload, int32_t dereferences)
{
	rocprofiler_callback_tracing_record_t record = {
		.kind = kind, .operation = operation, .payload = payload};
	struct told told = {0};

	assert_int_equal(rocprofiler_iterate_callback_tracing_kind_operation_args(
				 record, tell, dereferences, &told),
			 0);
	return told;
}

#define VALUE(number, text) assert_string_equal(told.arguments[number].value, text)

static void arguments_are_told(void **state)
{
	rocprofiler_callback_tracing_hip_api_data_t hip = {.size = sizeof(hip)};
	rocprofiler_callback_tracing_hsa_api_data_t hsa = {.size = sizeof(hsa)};
	void *pointer = (void *)0x1234;
	struct told told;

	(void)state;
	hip.args.hipMalloc.ptr = &pointer;
	hip.args.hipMalloc.size = 4096;
	told = arguments_of(ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API,
			    ROCPROFILER_HIP_RUNTIME_API_ID_hipMalloc, &hip, 1);
	assert_int_equal(told.count, 2);
	assert_string_equal(told.arguments[0].type, "void **");
	assert_string_equal(told.arguments[0].name, "ptr");
	assert_int_equal(told.arguments[0].indirections, 2);
	assert_int_equal(told.arguments[0].dereferences, 1);
	assert_ptr_equal(told.arguments[0].address, &hip.args.hipMalloc.ptr);
	VALUE(0, "0x1234");
	assert_string_equal(told.arguments[1].type, "size_t");
	assert_ptr_equal(told.arguments[1].address, &hip.args.hipMalloc.size);
	VALUE(1, "4096");

	hip.args.hipSetDevice.deviceId = -3;
	told = arguments_of(ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API,
			    ROCPROFILER_HIP_RUNTIME_API_ID_hipSetDevice, &hip, 0);
	VALUE(0, "-3");

	hip.args.hipModuleLoad.module = NULL;
	hip.args.hipModuleLoad.fname = "kernels.hsaco";
	told = arguments_of(ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API,
			    ROCPROFILER_HIP_RUNTIME_API_ID_hipModuleLoad, &hip, 2);
	VALUE(0, "(null)");
	VALUE(1, "kernels.hsaco");

	hsa.args.hsa_queue_destroy.queue = NULL;
	hsa.args.hsa_agent_get_info.agent.handle = 77;
	told = arguments_of(ROCPROFILER_CALLBACK_TRACING_HSA_CORE_API,
			    ROCPROFILER_HSA_CORE_API_ID_hsa_agent_get_info, &hsa, 0);
	VALUE(0, "handle=77");
	assert_int_equal(told.arguments[0].indirections, 0);

	/* Handles are not followed, what leads to handles is. */
	hip.args.hipStreamCreate.stream = (hipStream_t *)&pointer;
	told = arguments_of(ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API,
			    ROCPROFILER_HIP_RUNTIME_API_ID_hipStreamCreate, &hip, 9);
	VALUE(0, "0x1234");
	hip.args.hipStreamDestroy.stream = (hipStream_t)(void *)&pointer;
	told = arguments_of(ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API,
			    ROCPROFILER_HIP_RUNTIME_API_ID_hipStreamDestroy, &hip, 9);
	assert_int_equal(told.arguments[0].indirections, 1);
	assert_int_equal(told.arguments[0].dereferences, 0);

	told = arguments_of(ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API,
			    ROCPROFILER_HIP_RUNTIME_API_ID_hipDeviceSynchronize, &hip, 0);
	assert_int_equal(told.count, 0);
}

/* Before a call, what it writes through leads anywhere. */
static void pointers_to_nowhere_are_survived(void **state)
{
	rocprofiler_callback_tracing_marker_api_data_t marker = {.size = sizeof(marker)};
	rocprofiler_callback_tracing_hip_api_data_t hip = {.size = sizeof(hip)};
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct told told;

	(void)state;
	assert_ptr_not_equal(page, MAP_FAILED);
	assert_int_equal(munmap(page + 4096, 4096), 0);
	memset(page, 'x', 4096);
	marker.args.roctxMarkA.message = (const char *)8;
	told = arguments_of(ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API,
			    ROCPROFILER_MARKER_CORE_API_ID_roctxMarkA, &marker, 1);
	VALUE(0, "0x8");
	marker.args.roctxMarkA.message = NULL;
	told = arguments_of(ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API,
			    ROCPROFILER_MARKER_CORE_API_ID_roctxMarkA, &marker, 1);
	VALUE(0, "(null)");
	/* Ends where memory does, and where it does not end before. */
	memcpy(page + 4096 - 4, "end", 4);
	marker.args.roctxMarkA.message = page + 4096 - 4;
	told = arguments_of(ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API,
			    ROCPROFILER_MARKER_CORE_API_ID_roctxMarkA, &marker, 1);
	VALUE(0, "end");
	page[4095] = 'x';
	told = arguments_of(ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API,
			    ROCPROFILER_MARKER_CORE_API_ID_roctxMarkA, &marker, 1);
	assert_int_equal(strncmp(told.arguments[0].value, "0x", 2), 0);
	marker.args.roctxMarkA.message = page;
	told = arguments_of(ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API,
			    ROCPROFILER_MARKER_CORE_API_ID_roctxMarkA, &marker, 1);
	assert_int_equal(strlen(told.arguments[0].value), 511);
	hip.args.hipMalloc.ptr = (void **)(page + 4092);
	told = arguments_of(ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API,
			    ROCPROFILER_HIP_RUNTIME_API_ID_hipMalloc, &hip, 100);
	assert_int_equal(told.arguments[0].dereferences, 0);
	munmap(page, 4096);
}

static int emit_record(rocprofiler_buffer_tracing_kind_t kind,
		       rocprofiler_tracing_operation_t operation, uint32_t number,
		       const void *const address, int32_t indirections, const char *type,
		       const char *name, const char *value, void *data)
{
	struct told *told = data;

	(void)kind;
	(void)operation;
	(void)address;
	(void)indirections;
	(void)type;
	assert_int_equal(number, told->count);
	snprintf(told->arguments[number].name, sizeof(told->arguments[number].name), "%s", name);
	snprintf(told->arguments[number].value, sizeof(told->arguments[number].value), "%s", value);
	return ++told->count == told->stop_at;
}

static void arguments_in_records_are_told(void **state)
{
	rocprofiler_buffer_tracing_hip_api_ext_record_t record = {
		.size = sizeof(record),
		.kind = ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT,
		.operation = ROCPROFILER_HIP_RUNTIME_API_ID_hipModuleLoad};
	rocprofiler_record_header_t header = {.payload = &record};
	struct told told = {0};

	(void)state;
	record.args.hipModuleLoad.fname = (const char *)0x10;
	header.category = ROCPROFILER_BUFFER_CATEGORY_TRACING;
	header.kind = ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT;
	assert_int_equal(rocprofiler_iterate_buffer_tracing_record_args(header, emit_record, &told),
			 0);
	assert_int_equal(told.count, 2);
	/* What it pointed to may be gone. */
	VALUE(1, "0x10");
	told = (struct told){.stop_at = 1};
	assert_int_equal(rocprofiler_iterate_buffer_tracing_record_args(header, emit_record, &told),
			 0);
	assert_int_equal(told.count, 1);
	header.kind = ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API;
	IS(rocprofiler_iterate_buffer_tracing_record_args(header, emit_record, &told),
	   NOT_IMPLEMENTED);
	header.kind = ROCPROFILER_BUFFER_TRACING_LAST;
	IS(rocprofiler_iterate_buffer_tracing_record_args(header, emit_record, &told),
	   KIND_NOT_FOUND);
	header.category = ROCPROFILER_BUFFER_CATEGORY_COUNTERS;
	IS(rocprofiler_iterate_buffer_tracing_record_args(header, emit_record, &told),
	   INVALID_ARGUMENT);
	header.payload = NULL;
	IS(rocprofiler_iterate_buffer_tracing_record_args(header, emit_record, &told),
	   INVALID_ARGUMENT);
}

static void what_has_no_arguments_says_so(void **state)
{
	rocprofiler_callback_tracing_hip_api_data_t hip = {.size = sizeof(hip)};
	rocprofiler_callback_tracing_record_t record = {.payload = &hip};
	struct told told = {0};

	(void)state;
	record.kind = ROCPROFILER_CALLBACK_TRACING_KERNEL_DISPATCH;
	record.operation = ROCPROFILER_KERNEL_DISPATCH_ENQUEUE;
	IS(rocprofiler_iterate_callback_tracing_kind_operation_args(record, tell, 1, &told),
	   NOT_IMPLEMENTED);
	record.kind = ROCPROFILER_CALLBACK_TRACING_NONE;
	IS(rocprofiler_iterate_callback_tracing_kind_operation_args(record, tell, 1, &told),
	   INVALID_ARGUMENT);
	record.kind = ROCPROFILER_CALLBACK_TRACING_LAST;
	IS(rocprofiler_iterate_callback_tracing_kind_operation_args(record, tell, 1, &told),
	   KIND_NOT_FOUND);
	record.kind = ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API;
	record.operation = ROCPROFILER_HIP_RUNTIME_API_ID_LAST;
	IS(rocprofiler_iterate_callback_tracing_kind_operation_args(record, tell, 1, &told),
	   OPERATION_NOT_FOUND);
	record.operation = 0;
	IS(rocprofiler_iterate_callback_tracing_kind_operation_args(record, NULL, 1, &told),
	   INVALID_ARGUMENT);
	record.payload = NULL;
	IS(rocprofiler_iterate_callback_tracing_kind_operation_args(record, tell, 1, &told),
	   INVALID_ARGUMENT);
	assert_int_equal(told.count, 0);
}

static void statuses_are_told_in_words(void **state)
{
	(void)state;
	for (int status = 0; status < ROCPROFILER_STATUS_LAST; status++) {
		const char *name = rocprofiler_get_status_name((rocprofiler_status_t)status);
		const char *text = rocprofiler_get_status_string((rocprofiler_status_t)status);

		assert_int_equal(strncmp(name, "ROCPROFILER_STATUS_", 19), 0);
		assert_true(strlen(text) >= (status ? 8 : 7));
		for (int other = 0; other < status; other++)
			assert_string_not_equal(
				text, rocprofiler_get_status_string((rocprofiler_status_t)other));
	}
	assert_string_equal(rocprofiler_get_status_string(ROCPROFILER_STATUS_SUCCESS), "Success");
	assert_null(rocprofiler_get_status_name(ROCPROFILER_STATUS_LAST));
	assert_null(rocprofiler_get_status_string((rocprofiler_status_t)-1));
	assert_null(rocprofiler_get_pc_sampling_instruction_type_name(
		ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_LAST));
	assert_non_null(rocprofiler_get_pc_sampling_instruction_not_issued_reason_name(
		ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_SLEEP_WAIT));
}

/* Ids that stand for nothing, and nobody samples PCs. */
static void mistakes_are_told(void **state)
{
	rocprofiler_counter_id_t counter = {1};
	rocprofiler_counter_config_id_t config = {0};
	rocprofiler_agent_id_t none = {0};
	rocprofiler_context_id_t context = {0};
	rocprofiler_counter_info_v1_t info;
	rocprofiler_user_data_t data = {0};
	size_t count = 9;

	(void)state;
	IS(rocprofiler_iterate_agent_supported_counters(none, NULL, NULL), INVALID_ARGUMENT);
	IS(rocprofiler_create_counter_config(none, &counter, 1, &config), AGENT_NOT_FOUND);
	IS(rocprofiler_create_counter_config(none, NULL, 1, &config), INVALID_ARGUMENT);
	IS(rocprofiler_query_counter_info(counter, ROCPROFILER_COUNTER_INFO_VERSION_1, &info),
	   COUNTER_NOT_FOUND);
	IS(rocprofiler_query_counter_info(counter, ROCPROFILER_COUNTER_INFO_VERSION_NONE, &info),
	   INCOMPATIBLE_ABI);
	IS(rocprofiler_query_counter_instance_count(none, counter, &count), COUNTER_NOT_FOUND);
	IS(rocprofiler_sample_device_counting_service(context, data, ROCPROFILER_COUNTER_FLAG_NONE,
						      NULL, NULL),
	   CONTEXT_NOT_FOUND);
	IS(rocprofiler_configure_pc_sampling_service(
		   context, none, ROCPROFILER_PC_SAMPLING_METHOD_HOST_TRAP,
		   ROCPROFILER_PC_SAMPLING_UNIT_TIME, 1, (rocprofiler_buffer_id_t){0}, 0),
	   CONTEXT_NOT_FOUND);
	assert_int_equal(rocprofiler_destroy_counter_config(config), ROCPROFILER_STATUS_SUCCESS);
}

/* Asked with a device that only seems to be there. */
static void support_of_kinds_is_told(void **state)
{
	const rocprofiler_agent_v0_t device = {
		.type = ROCPROFILER_AGENT_TYPE_GPU, .name = "sm_00", .product_name = "of test"};
	rocprofiler_agent_id_t all = {0}, nobody = {77}, gpu, host = sdk_get_host_agent_id();
	kymo_kind_support_t answer;

	(void)state;
#define SUPPORT(kind, agent, expected)                                                             \
	do {                                                                                       \
		assert_int_equal(kymo_callback_kind_support(ROCPROFILER_CALLBACK_TRACING_##kind,   \
							    agent, &answer),                       \
				 ROCPROFILER_STATUS_SUCCESS);                                      \
		assert_int_equal(answer, KYMO_KIND_##expected);                                    \
	} while (0)
	SUPPORT(MARKER_CORE_API, all, TOLD);
	SUPPORT(OMPT, host, TOLD);
	SUPPORT(SCRATCH_MEMORY, all, SILENT);
	SUPPORT(HIP_RUNTIME_API, host, SILENT);
	gpu = sdk_agent_register(&device, true);
	SUPPORT(KERNEL_DISPATCH, gpu, SILENT);
	sdk_agent_add_runtime(gpu, DEVICE_RUNTIME_CUDA);
	SUPPORT(KERNEL_DISPATCH, gpu, TOLD);
	SUPPORT(HIP_RUNTIME_API, gpu, TOLD);
	SUPPORT(HIP_RUNTIME_API, all, TOLD);
	SUPPORT(HIP_RUNTIME_API, host, SILENT);
	SUPPORT(HIP_COMPILER_API, gpu, SILENT);
	assert_int_equal(
		kymo_callback_kind_support(KYMO_CALLBACK_TRACING_CUDA_DRIVER_API, gpu, &answer),
		ROCPROFILER_STATUS_SUCCESS);
	assert_int_equal(answer, KYMO_KIND_TOLD);
	assert_int_equal(kymo_buffer_kind_support(ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT,
						  gpu, &answer),
			 ROCPROFILER_STATUS_SUCCESS);
	assert_int_equal(answer, KYMO_KIND_TOLD);
	assert_int_equal(
		kymo_buffer_kind_support(ROCPROFILER_BUFFER_TRACING_KFD_QUEUE, all, &answer),
		ROCPROFILER_STATUS_SUCCESS);
	assert_int_equal(answer, KYMO_KIND_SILENT);
	IS(kymo_buffer_kind_support(ROCPROFILER_BUFFER_TRACING_NONE, all, &answer), KIND_NOT_FOUND);
	IS(kymo_callback_kind_support(ROCPROFILER_CALLBACK_TRACING_LAST, all, &answer),
	   KIND_NOT_FOUND);
	IS(kymo_callback_kind_support(ROCPROFILER_CALLBACK_TRACING_OMPT, nobody, &answer),
	   AGENT_NOT_FOUND);
	IS(kymo_callback_kind_support(ROCPROFILER_CALLBACK_TRACING_OMPT, all, NULL),
	   INVALID_ARGUMENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_are_all_iterated),
		cmocka_unit_test(operations_are_all_named),
		cmocka_unit_test(names_are_upstreams),
		cmocka_unit_test(wrong_kinds_and_operations_are_told),
		cmocka_unit_test(arguments_lie_as_in_the_structs),
		cmocka_unit_test(arguments_are_told),
		cmocka_unit_test(pointers_to_nowhere_are_survived),
		cmocka_unit_test(arguments_in_records_are_told),
		cmocka_unit_test(what_has_no_arguments_says_so),
		cmocka_unit_test(statuses_are_told_in_words),
		cmocka_unit_test(mistakes_are_told),
		cmocka_unit_test(support_of_kinds_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
