/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Tracing services are put into contexts: what, and where it goes. A kind that no device here can
 * ever produce is accepted and stays silent: tools that ask for all kinds work everywhere.
 */
#include <stdlib.h>
#include <string.h>

#include "libkymo-sdk/base/keep_loaded.h"
#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/context.h"

typedef rocprofiler_status_t (*operation_check_function)(int kind, int32_t operation);

static rocprofiler_status_t check_callback_operation(int kind, int32_t operation)
{
	return rocprofiler_query_callback_tracing_kind_operation_name(
		(rocprofiler_callback_tracing_kind_t)kind, operation, NULL, NULL);
}

static rocprofiler_status_t check_buffer_operation(int kind, int32_t operation)
{
	return rocprofiler_query_buffer_tracing_kind_operation_name(
		(rocprofiler_buffer_tracing_kind_t)kind, operation, NULL, NULL);
}

/* false: an operation that the kind does not have. */
static bool set_service_operations(uint64_t *set, int kind, operation_check_function query,
				   const rocprofiler_tracing_operation_t *operations, size_t count)
{
	if (!operations || !count) {
		memset(set, 0xff, SDK_OPERATIONS_MAX / 8);
		return true;
	}
	for (size_t i = 0; i < count; i++) {
		if (operations[i] < 0 || operations[i] >= SDK_OPERATIONS_MAX ||
		    query(kind, operations[i]) != ROCPROFILER_STATUS_SUCCESS)
			return false;
		set[operations[i] / 64] |= (uint64_t)1 << (operations[i] % 64);
	}
	return true;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_configure_callback_tracing_service(
	rocprofiler_context_id_t context_id, rocprofiler_callback_tracing_kind_t kind,
	const rocprofiler_tracing_operation_t *operations, size_t operations_count,
	rocprofiler_callback_tracing_cb_t callback, void *callback_args)
{
	struct sdk_context *context = sdk_context_find_by_id(context_id.handle);
	enum sdk_domain domain = sdk_callback_kind_to_domain((int)kind);
	struct sdk_callback_tracing_service *service;

	if (!sdk_is_configuration_open())
		return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	if (!context)
		return ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND;
	if (!domain)
		return ROCPROFILER_STATUS_ERROR_KIND_NOT_FOUND;
	if (!callback || (!operations && operations_count))
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (context->callback_services[domain])
		return ROCPROFILER_STATUS_ERROR_SERVICE_ALREADY_CONFIGURED;
	service = calloc(1, sizeof(*service));
	if (!service)
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	service->callback = callback;
	service->data = callback_args;
	if (!set_service_operations(service->operations, (int)kind, check_callback_operation,
				    operations, operations_count)) {
		free(service);
		return ROCPROFILER_STATUS_ERROR_OPERATION_NOT_FOUND;
	}
	sdk_keep_library_of_function_loaded((void (*)(void))callback);
	context->callback_services[domain] = service;
	sdk_context_publish_services(context);
	return ROCPROFILER_STATUS_SUCCESS;
}

static rocprofiler_status_t check_buffer_service_is_new(const struct sdk_context *context,
							enum sdk_domain domain, bool is_ext,
							uint64_t kind_bit)
{
	if (!domain)
		return ROCPROFILER_STATUS_ERROR_KIND_NOT_FOUND;
	if (domain == SDK_DOMAIN_KFD ? (context->buffer_kind_bits & kind_bit) != 0
	    : is_ext                 ? context->ext_buffer_services[domain] != NULL
				     : context->buffer_services[domain] != NULL)
		return ROCPROFILER_STATUS_ERROR_SERVICE_ALREADY_CONFIGURED;
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_configure_buffer_tracing_service(
	rocprofiler_context_id_t context_id, rocprofiler_buffer_tracing_kind_t kind,
	const rocprofiler_tracing_operation_t *operations, size_t operations_count,
	rocprofiler_buffer_id_t buffer_id)
{
	struct sdk_context *context = sdk_context_find_by_id(context_id.handle);
	struct sdk_buffer *buffer = sdk_buffer_find_by_id(buffer_id.handle);
	uint64_t kind_bit = (uint64_t)1 << ((unsigned)kind & 63);
	struct sdk_buffer_tracing_service *service;
	rocprofiler_status_t status;
	enum sdk_domain domain;
	bool is_ext;

	if (!sdk_is_configuration_open())
		return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	if (!context)
		return ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND;
	if (!buffer)
		return ROCPROFILER_STATUS_ERROR_BUFFER_NOT_FOUND;
	if (!operations && operations_count)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	domain = sdk_buffer_kind_to_domain((int)kind, &is_ext);
	status = check_buffer_service_is_new(context, domain, is_ext, kind_bit);
	if (status)
		return status;
	service = calloc(1, sizeof(*service));
	if (!service)
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	service->buffer = buffer;
	if (!set_service_operations(service->operations, (int)kind, check_buffer_operation,
				    operations, operations_count)) {
		free(service);
		return ROCPROFILER_STATUS_ERROR_OPERATION_NOT_FOUND;
	}
	context->buffer_kind_bits |= kind_bit;
	if (domain == SDK_DOMAIN_KFD)
		free(service); /* nothing here ever tells it */
	else if (is_ext)
		context->ext_buffer_services[domain] = service;
	else
		context->buffer_services[domain] = service;
	sdk_context_publish_services(context);
	return ROCPROFILER_STATUS_SUCCESS;
}
