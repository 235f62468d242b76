/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What tools ask about kinds and operations, answered from the tables of names.c.
 */
#include <string.h>

#include <rocprofiler-sdk/rocprofiler.h>

#include "libkymo-sdk/names.h"
#include "libkymo-sdk/state.h"

static rocprofiler_status_t query_answer(const char *found, const char **name, uint64_t *length,
					 rocprofiler_status_t otherwise)
{
	if (name)
		*name = found;
	if (length)
		*length = found ? strlen(found) : 0;
	return found ? ROCPROFILER_STATUS_SUCCESS : otherwise;
}

/* Kinds without operations to ask about: NONE, and retirement, which has but itself. */
static rocprofiler_status_t query_refused(const struct sdk_kind *kind, int number)
{
	if (!kind)
		return ROCPROFILER_STATUS_ERROR_KIND_NOT_FOUND;
	if (!number)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (!kind->functions && !kind->names && !kind->is_device)
		return ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED;
	return ROCPROFILER_STATUS_SUCCESS;
}

static rocprofiler_status_t query_operation(const struct sdk_kind *kind, int number,
					    int32_t operation, const char **name, uint64_t *length)
{
	rocprofiler_status_t refused = query_refused(kind, number);
	const char *found = refused ? NULL : sdk_kind_operation(kind, operation);

	return query_answer(found, name, length,
			    refused ? refused : ROCPROFILER_STATUS_ERROR_OPERATION_NOT_FOUND);
}

SDK_EXPORT rocprofiler_status_t rocprofiler_query_callback_tracing_kind_name(
	rocprofiler_callback_tracing_kind_t kind, const char **name, uint64_t *name_len)
{
	const struct sdk_kind *found = sdk_callback_kind((int)kind);

	return query_answer(found ? found->name : NULL, name, name_len,
			    ROCPROFILER_STATUS_ERROR_KIND_NOT_FOUND);
}

SDK_EXPORT rocprofiler_status_t rocprofiler_query_buffer_tracing_kind_name(
	rocprofiler_buffer_tracing_kind_t kind, const char **name, uint64_t *name_len)
{
	const struct sdk_kind *found = sdk_buffer_kind((int)kind);

	return query_answer(found ? found->name : NULL, name, name_len,
			    ROCPROFILER_STATUS_ERROR_KIND_NOT_FOUND);
}

SDK_EXPORT rocprofiler_status_t rocprofiler_query_callback_tracing_kind_operation_name(
	rocprofiler_callback_tracing_kind_t kind, rocprofiler_tracing_operation_t operation,
	const char **name, uint64_t *name_len)
{
	return query_operation(sdk_callback_kind((int)kind), (int)kind, operation, name, name_len);
}

SDK_EXPORT rocprofiler_status_t rocprofiler_query_buffer_tracing_kind_operation_name(
	rocprofiler_buffer_tracing_kind_t kind, rocprofiler_tracing_operation_t operation,
	const char **name, uint64_t *name_len)
{
	return query_operation(sdk_buffer_kind((int)kind), (int)kind, operation, name, name_len);
}

/* Kinds of ours are not among them: tools take the last one for the number of all. */
SDK_EXPORT rocprofiler_status_t rocprofiler_iterate_callback_tracing_kinds(
	rocprofiler_callback_tracing_kind_cb_t callback, void *data)
{
	if (!callback)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	for (int kind = 0; kind < ROCPROFILER_CALLBACK_TRACING_LAST; kind++) {
		if (callback((rocprofiler_callback_tracing_kind_t)kind, data))
			break;
	}
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t
rocprofiler_iterate_buffer_tracing_kinds(rocprofiler_buffer_tracing_kind_cb_t callback, void *data)
{
	if (!callback)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	for (int kind = 0; kind < ROCPROFILER_BUFFER_TRACING_LAST; kind++) {
		if (callback((rocprofiler_buffer_tracing_kind_t)kind, data))
			break;
	}
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_iterate_callback_tracing_kind_operations(
	rocprofiler_callback_tracing_kind_t kind,
	rocprofiler_callback_tracing_kind_operation_cb_t callback, void *data)
{
	const struct sdk_kind *found = sdk_callback_kind((int)kind);
	rocprofiler_status_t refused = query_refused(found, (int)kind);

	if (refused || !callback)
		return refused ? refused : ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	for (int32_t operation = 0; operation < sdk_kind_operations(found); operation++) {
		if (sdk_kind_operation(found, operation) && callback(kind, operation, data))
			break;
	}
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_iterate_buffer_tracing_kind_operations(
	rocprofiler_buffer_tracing_kind_t kind,
	rocprofiler_buffer_tracing_kind_operation_cb_t callback, void *data)
{
	const struct sdk_kind *found = sdk_buffer_kind((int)kind);
	rocprofiler_status_t refused = query_refused(found, (int)kind);

	if (refused || !callback)
		return refused ? refused : ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	for (int32_t operation = 0; operation < sdk_kind_operations(found); operation++) {
		if (sdk_kind_operation(found, operation) && callback(kind, operation, data))
			break;
	}
	return ROCPROFILER_STATUS_SUCCESS;
}

static const char *const request_kinds[ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_LAST] = {
#define REQUEST(kind) [ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_##kind] = #kind
	REQUEST(NONE),
	REQUEST(HSA_CORE_API),
	REQUEST(HSA_AMD_EXT_API),
	REQUEST(HSA_IMAGE_EXT_API),
	REQUEST(HSA_FINALIZE_EXT_API),
	REQUEST(HIP_RUNTIME_API),
	REQUEST(HIP_COMPILER_API),
	REQUEST(MARKER_CORE_API),
	REQUEST(MARKER_CONTROL_API),
	REQUEST(MARKER_NAME_API),
	REQUEST(MEMORY_COPY),
	REQUEST(KERNEL_DISPATCH),
	REQUEST(SCRATCH_MEMORY),
	REQUEST(RCCL_API),
	REQUEST(OMPT),
	REQUEST(MEMORY_ALLOCATION),
	REQUEST(ROCDECODE_API),
	REQUEST(ROCJPEG_API),
	REQUEST(MARKER_CORE_RANGE_API),
};

SDK_EXPORT rocprofiler_status_t rocprofiler_query_external_correlation_id_request_kind_name(
	rocprofiler_external_correlation_id_request_kind_t kind, const char **name,
	uint64_t *name_len)
{
	bool is_one = (uint32_t)kind < ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_LAST;

	return query_answer(is_one ? request_kinds[kind] : NULL, name, name_len,
			    ROCPROFILER_STATUS_ERROR_KIND_NOT_FOUND);
}

SDK_EXPORT rocprofiler_status_t rocprofiler_query_intercept_table_name(
	rocprofiler_intercept_table_t kind, const char **name, uint64_t *name_len)
{
	static const struct {
		rocprofiler_intercept_table_t kind;
		const char *name;
	} tables[] = {
		{ROCPROFILER_HSA_TABLE, "HSA"},
		{ROCPROFILER_HIP_RUNTIME_TABLE, "HIP (runtime)"},
		{ROCPROFILER_HIP_COMPILER_TABLE, "HIP (compiler)"},
		{ROCPROFILER_MARKER_CORE_TABLE, "MARKER (ROCTx)"},
		{ROCPROFILER_MARKER_CONTROL_TABLE, "MARKER (ROCTx Control)"},
		{ROCPROFILER_MARKER_NAME_TABLE, "MARKER (ROCTx Name)"},
		{ROCPROFILER_RCCL_TABLE, "RCCL"},
		{ROCPROFILER_ROCDECODE_TABLE, "rocDecode"},
		{ROCPROFILER_ROCJPEG_TABLE, "rocJPEG"},
	};
	const char *found = NULL;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		found = tables[i].kind == kind ? tables[i].name : found;
	return query_answer(found, name, name_len, ROCPROFILER_STATUS_ERROR_KIND_NOT_FOUND);
}
