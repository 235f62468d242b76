/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What tools ask about kinds and operations, answered from the tables of names.c.
 */
#include <string.h>

#include <rocprofiler-sdk/rocprofiler.h>

#include "common/array.h"
#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/tables/names.h"

static rocprofiler_status_t return_name_and_length(const char *found, const char **name,
						   uint64_t *length, rocprofiler_status_t otherwise)
{
	if (name)
		*name = found;
	if (length)
		*length = found ? strlen(found) : 0;
	return found ? ROCPROFILER_STATUS_SUCCESS : otherwise;
}

/* Kinds without operations to ask about: NONE, and retirement, which has but itself. */
static rocprofiler_status_t check_kind_has_operations(const struct sdk_tracing_kind_info *kind,
						      int number)
{
	if (!kind)
		return ROCPROFILER_STATUS_ERROR_KIND_NOT_FOUND;
	if (!number)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (!kind->functions && !kind->operation_names && !kind->has_device_service)
		return ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED;
	return ROCPROFILER_STATUS_SUCCESS;
}

static rocprofiler_status_t query_operation_name(const struct sdk_tracing_kind_info *kind,
						 int number, int32_t operation, const char **name,
						 uint64_t *length)
{
	rocprofiler_status_t refused = check_kind_has_operations(kind, number);
	const char *found = refused ? NULL : sdk_kind_get_operation_name(kind, operation);

	return return_name_and_length(found, name, length,
				      refused ? refused
					      : ROCPROFILER_STATUS_ERROR_OPERATION_NOT_FOUND);
}

SDK_EXPORT rocprofiler_status_t rocprofiler_query_callback_tracing_kind_name(
	rocprofiler_callback_tracing_kind_t kind, const char **name, uint64_t *name_len)
{
	const struct sdk_tracing_kind_info *found = sdk_find_callback_kind_by_number((int)kind);

	return return_name_and_length(found ? found->name : NULL, name, name_len,
				      ROCPROFILER_STATUS_ERROR_KIND_NOT_FOUND);
}

SDK_EXPORT rocprofiler_status_t rocprofiler_query_buffer_tracing_kind_name(
	rocprofiler_buffer_tracing_kind_t kind, const char **name, uint64_t *name_len)
{
	const struct sdk_tracing_kind_info *found = sdk_find_buffer_kind_by_number((int)kind);

	return return_name_and_length(found ? found->name : NULL, name, name_len,
				      ROCPROFILER_STATUS_ERROR_KIND_NOT_FOUND);
}

SDK_EXPORT rocprofiler_status_t rocprofiler_query_callback_tracing_kind_operation_name(
	rocprofiler_callback_tracing_kind_t kind, rocprofiler_tracing_operation_t operation,
	const char **name, uint64_t *name_len)
{
	return query_operation_name(sdk_find_callback_kind_by_number((int)kind), (int)kind,
				    operation, name, name_len);
}

SDK_EXPORT rocprofiler_status_t rocprofiler_query_buffer_tracing_kind_operation_name(
	rocprofiler_buffer_tracing_kind_t kind, rocprofiler_tracing_operation_t operation,
	const char **name, uint64_t *name_len)
{
	return query_operation_name(sdk_find_buffer_kind_by_number((int)kind), (int)kind, operation,
				    name, name_len);
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
	const struct sdk_tracing_kind_info *found = sdk_find_callback_kind_by_number((int)kind);
	rocprofiler_status_t refused = check_kind_has_operations(found, (int)kind);

	if (refused || !callback)
		return refused ? refused : ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	for (int32_t operation = 0; operation < sdk_kind_get_operation_count(found); operation++) {
		if (sdk_kind_get_operation_name(found, operation) &&
		    callback(kind, operation, data))
			break;
	}
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_iterate_buffer_tracing_kind_operations(
	rocprofiler_buffer_tracing_kind_t kind,
	rocprofiler_buffer_tracing_kind_operation_cb_t callback, void *data)
{
	const struct sdk_tracing_kind_info *found = sdk_find_buffer_kind_by_number((int)kind);
	rocprofiler_status_t refused = check_kind_has_operations(found, (int)kind);

	if (refused || !callback)
		return refused ? refused : ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	for (int32_t operation = 0; operation < sdk_kind_get_operation_count(found); operation++) {
		if (sdk_kind_get_operation_name(found, operation) &&
		    callback(kind, operation, data))
			break;
	}
	return ROCPROFILER_STATUS_SUCCESS;
}

static const char
	*const correlation_request_kind_names[ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_LAST] = {
#define CORRELATION_REQUEST_KIND_NAME_ROW(kind)                                                    \
	[ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_##kind] = #kind
		CORRELATION_REQUEST_KIND_NAME_ROW(NONE),
		CORRELATION_REQUEST_KIND_NAME_ROW(HSA_CORE_API),
		CORRELATION_REQUEST_KIND_NAME_ROW(HSA_AMD_EXT_API),
		CORRELATION_REQUEST_KIND_NAME_ROW(HSA_IMAGE_EXT_API),
		CORRELATION_REQUEST_KIND_NAME_ROW(HSA_FINALIZE_EXT_API),
		CORRELATION_REQUEST_KIND_NAME_ROW(HIP_RUNTIME_API),
		CORRELATION_REQUEST_KIND_NAME_ROW(HIP_COMPILER_API),
		CORRELATION_REQUEST_KIND_NAME_ROW(MARKER_CORE_API),
		CORRELATION_REQUEST_KIND_NAME_ROW(MARKER_CONTROL_API),
		CORRELATION_REQUEST_KIND_NAME_ROW(MARKER_NAME_API),
		CORRELATION_REQUEST_KIND_NAME_ROW(MEMORY_COPY),
		CORRELATION_REQUEST_KIND_NAME_ROW(KERNEL_DISPATCH),
		CORRELATION_REQUEST_KIND_NAME_ROW(SCRATCH_MEMORY),
		CORRELATION_REQUEST_KIND_NAME_ROW(RCCL_API),
		CORRELATION_REQUEST_KIND_NAME_ROW(OMPT),
		CORRELATION_REQUEST_KIND_NAME_ROW(MEMORY_ALLOCATION),
		CORRELATION_REQUEST_KIND_NAME_ROW(ROCDECODE_API),
		CORRELATION_REQUEST_KIND_NAME_ROW(ROCJPEG_API),
		CORRELATION_REQUEST_KIND_NAME_ROW(MARKER_CORE_RANGE_API),
};

SDK_EXPORT rocprofiler_status_t rocprofiler_query_external_correlation_id_request_kind_name(
	rocprofiler_external_correlation_id_request_kind_t kind, const char **name,
	uint64_t *name_len)
{
	bool is_one = (uint32_t)kind < ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_LAST;

	return return_name_and_length(is_one ? correlation_request_kind_names[kind] : NULL, name,
				      name_len, ROCPROFILER_STATUS_ERROR_KIND_NOT_FOUND);
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

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		found = tables[i].kind == kind ? tables[i].name : found;
	return return_name_and_length(found, name, name_len,
				      ROCPROFILER_STATUS_ERROR_KIND_NOT_FOUND);
}
