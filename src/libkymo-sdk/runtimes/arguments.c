/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Telling tools the arguments of a call: type, name, address and text of each, from the tables of
 * functions.c and of the backends.
 *
 * What arguments point to is the program's, and before a call what a function writes through is not
 * there yet. So it is read by process_vm_readv(2), which fails where a load would end the process.
 */
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rocprofiler-sdk/rocprofiler.h>

#include "common/array.h"
#include "device/registry/devices.h"
#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/base/thread.h"
#include "libkymo-sdk/runtimes/device_calls.h"
#include "libkymo-sdk/tables/names.h"

#define ARGUMENT_TEXT_SIZE 512

/* One argument being told. */
struct argument_being_formatted {
	const struct sdk_argument_description *argument;
	const void *address;
	int32_t pointer_depth, dereferences_done;
	int32_t dereferences_max; /* -1: strings are not read either */
	char text[ARGUMENT_TEXT_SIZE];
};

static bool read_argument_memory(const void *address, void *into, size_t size)
{
	struct iovec from = {(void *)address, size}, to = {into, size};

	return address && process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)size;
}

/* Page by page: a string may end just before memory that is not there. */
static bool read_argument_string(const char *address, char *into, size_t size)
{
	size_t have = 0;

	while (have < size - 1) {
		size_t some = 4096 - ((uintptr_t)(address + have) & 4095);

		if (some > size - 1 - have)
			some = size - 1 - have;
		if (!read_argument_memory(address + have, into + have, some))
			return false;
		if (memchr(into + have, 0, some))
			return true;
		have += some;
	}
	into[have] = 0;
	return true;
}

static bool type_name_ends_with(const char *type, size_t length, const char *end)
{
	size_t size = strlen(end);

	return length >= size && !strncmp(type + length - size, end, size);
}

/* OpenCL's types that are numbers, by the rules of their names; all others are objects. */
static bool describe_pointee_by_opencl_type_name(const char *type, size_t length,
						 struct sdk_argument_description *pointee)
{
	if (length < 4 || strncmp(type, "cl_", 3) != 0)
		return false;
	pointee->value = SDK_VALUE_UNSIGNED;
	pointee->size = 4;
	if (!strncmp(type, "cl_int", length))
		pointee->value = SDK_VALUE_SIGNED;
	else if (type_name_ends_with(type, length, "_flags") ||
		 type_name_ends_with(type, length, "_properties") ||
		 !strncmp(type, "cl_ulong", length) || !strncmp(type, "cl_device_type", length))
		pointee->size = 8;
	else if (strncmp(type, "cl_uint", length) != 0 && strncmp(type, "cl_bool", length) != 0 &&
		 !type_name_ends_with(type, length, "_info") &&
		 !type_name_ends_with(type, length, "_mode") &&
		 !type_name_ends_with(type, length, "_type"))
		*pointee = (struct sdk_argument_description){.size = 8, .value = SDK_VALUE_POINTER};
	return true;
}

/* What pointers can lead to, where a type's name says it. */
static bool describe_pointee_by_type_name(const char *type,
					  struct sdk_argument_description *pointee)
{
	static const struct {
		const char *name;
		uint16_t size;
		enum sdk_value_kind value;
	} known[] = {
		{"char", 1, SDK_VALUE_SIGNED},
		{"int", 4, SDK_VALUE_SIGNED},
		{"int32_t", 4, SDK_VALUE_SIGNED},
		{"int64_t", 8, SDK_VALUE_SIGNED},
		{"unsigned int", 4, SDK_VALUE_UNSIGNED},
		{"unsigned", 4, SDK_VALUE_UNSIGNED},
		{"uint8_t", 1, SDK_VALUE_UNSIGNED},
		{"uint16_t", 2, SDK_VALUE_UNSIGNED},
		{"uint32_t", 4, SDK_VALUE_UNSIGNED},
		{"uint64_t", 8, SDK_VALUE_UNSIGNED},
		{"size_t", 8, SDK_VALUE_UNSIGNED},
		{"unsigned long long", 8, SDK_VALUE_UNSIGNED},
		{"float", 4, SDK_VALUE_FLOAT},
		{"double", 8, SDK_VALUE_FLOAT},
		{"hipStream_t", 8, SDK_VALUE_POINTER},
		{"hipEvent_t", 8, SDK_VALUE_POINTER},
		{"hipModule_t", 8, SDK_VALUE_POINTER},
		{"hipFunction_t", 8, SDK_VALUE_POINTER},
		{"hipDeviceptr_t", 8, SDK_VALUE_POINTER},
		{"hipDevice_t", 4, SDK_VALUE_SIGNED},
		{"hsa_agent_t", 8, SDK_VALUE_HANDLE},
		{"hsa_signal_t", 8, SDK_VALUE_HANDLE},
		{"hsa_executable_t", 8, SDK_VALUE_HANDLE},
		{"hsa_isa_t", 8, SDK_VALUE_HANDLE},
		{"ncclComm_t", 8, SDK_VALUE_POINTER},
		{"roctx_thread_id_t", 8, SDK_VALUE_UNSIGNED},
	};
	size_t length;

	if (!strncmp(type, "const ", 6))
		type += 6;
	length = strcspn(type, "*");
	while (length && type[length - 1] == ' ')
		length--;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (strlen(known[i].name) == length && !strncmp(known[i].name, type, length)) {
			pointee->size = known[i].size;
			pointee->value = known[i].value;
			return true;
		}
	}
	return describe_pointee_by_opencl_type_name(type, length, pointee);
}

static uint64_t argument_bytes_to_word(const unsigned char *bytes, size_t size, bool is_signed)
{
	uint64_t word = 0;

	memcpy(&word, bytes, size < sizeof(word) ? size : sizeof(word)); /* little endian */
	if (is_signed && size < sizeof(word) && word >> (size * 8 - 1))
		word |= ~(uint64_t)0 << (size * 8);
	return word;
}

static void format_argument_value(struct argument_being_formatted *telling,
				  const struct sdk_argument_description *what,
				  const unsigned char *bytes)
{
	uint64_t word = argument_bytes_to_word(bytes, what->size, what->value == SDK_VALUE_SIGNED);
	size_t at = 0;
	double number;
	float small;

	switch (what->value) {
	case SDK_VALUE_SIGNED:
		snprintf(telling->text, ARGUMENT_TEXT_SIZE, "%lld", (long long)word);
		break;
	case SDK_VALUE_UNSIGNED:
		snprintf(telling->text, ARGUMENT_TEXT_SIZE, "%llu", (unsigned long long)word);
		break;
	case SDK_VALUE_FLOAT:
		memcpy(&small, bytes, sizeof(small));
		memcpy(&number, bytes, what->size == sizeof(number) ? sizeof(number) : 0);
		snprintf(telling->text, ARGUMENT_TEXT_SIZE, "%g",
			 what->size == sizeof(number) ? number : (double)small);
		break;
	case SDK_VALUE_HANDLE:
		snprintf(telling->text, ARGUMENT_TEXT_SIZE, "handle=%llu",
			 (unsigned long long)word);
		break;
	case SDK_VALUE_BYTES:
		for (size_t i = 0; i < what->size && i < 16; i++)
			at += (size_t)snprintf(telling->text + at, ARGUMENT_TEXT_SIZE - at, "%02x",
					       bytes[i]);
		snprintf(telling->text + at, ARGUMENT_TEXT_SIZE - at, "%s",
			 what->size > 16 ? "..." : "");
		break;
	default:
		if (word)
			snprintf(telling->text, ARGUMENT_TEXT_SIZE, "0x%llx",
				 (unsigned long long)word);
		else
			snprintf(telling->text, ARGUMENT_TEXT_SIZE, "(null)");
	}
}

/* Follows the pointer as often as allowed and known, and puts what is there into the text. */
static void format_pointee_value(struct argument_being_formatted *telling)
{
	struct sdk_argument_description what = *telling->argument;
	unsigned char bytes[16] = {0};
	uint64_t word;

	memcpy(&word, telling->address, sizeof(word));
	/* What a handle leads to is its library's business. */
	while (strchr(what.type, '*') && telling->dereferences_done < telling->dereferences_max &&
	       telling->dereferences_done < telling->pointer_depth && word) {
		bool is_last = telling->dereferences_done + 1 == telling->pointer_depth;
		struct sdk_argument_description pointee = {.size = sizeof(void *),
							   .value = SDK_VALUE_POINTER};

		if (is_last && !describe_pointee_by_type_name(what.type, &pointee))
			break;
		if (!read_argument_memory((const void *)(uintptr_t)word, bytes, pointee.size))
			break;
		telling->dereferences_done++;
		what.size = pointee.size;
		what.value = pointee.value;
		word = argument_bytes_to_word(bytes, sizeof(word), false);
		if (is_last) {
			format_argument_value(telling, &what, bytes);
			return;
		}
	}
	memcpy(bytes, &word, sizeof(word));
	format_argument_value(telling, &what, bytes);
}

static void format_argument_text(struct argument_being_formatted *telling)
{
	const struct sdk_argument_description *argument = telling->argument;
	const char *string;

	if (argument->value == SDK_VALUE_STRING && telling->dereferences_max >= 0) {
		memcpy(&string, telling->address, sizeof(string));
		if (!string)
			snprintf(telling->text, ARGUMENT_TEXT_SIZE, "(null)");
		else if (!read_argument_string(string, telling->text, ARGUMENT_TEXT_SIZE))
			snprintf(telling->text, ARGUMENT_TEXT_SIZE, "%p", (const void *)string);
		return;
	}
	if (argument->value == SDK_VALUE_POINTER || argument->value == SDK_VALUE_STRING)
		format_pointee_value(telling);
	else
		format_argument_value(telling, argument, telling->address);
}

/* For each argument of the function, until `each` answers anything but 0. */
static void format_and_visit_arguments(const struct sdk_function_description *function,
				       const char *payload, int32_t dereferences_max,
				       int (*each)(uint32_t number,
						   struct argument_being_formatted *telling,
						   void *context),
				       void *context)
{
	size_t offset = 0;

	for (uint32_t i = 0; i < function->count; i++) {
		struct sdk_argument_description argument;
		struct argument_being_formatted telling = {.argument = &argument,
							   .dereferences_max = dereferences_max};

		sdk_function_get_argument(function, i, &argument);
		if (argument.value == SDK_VALUE_NONE)
			return;
		offset = (offset + argument.alignment - 1) & ~(size_t)(argument.alignment - 1);
		telling.address = payload + offset;
		telling.pointer_depth = sdk_argument_get_pointer_depth(&argument);
		format_argument_text(&telling);
		offset += argument.size;
		if (each(i, &telling, context))
			return;
	}
}

/* NULL: this kind's arguments cannot be told, or there is no such operation; *status says which. */
static const struct sdk_function_description *
find_function_with_arguments(const struct sdk_tracing_kind_info *kind, int number,
			     int32_t operation, rocprofiler_status_t *status)
{
	*status = ROCPROFILER_STATUS_SUCCESS;
	if (!kind)
		*status = ROCPROFILER_STATUS_ERROR_KIND_NOT_FOUND;
	else if (!number)
		*status = ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	else if (!kind->has_arguments)
		*status = ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED;
	else if (!sdk_kind_get_operation_name(kind, operation))
		*status = ROCPROFILER_STATUS_ERROR_OPERATION_NOT_FOUND;
	return *status ? NULL : &kind->functions->list[operation];
}

struct callback_argument_iteration_state {
	rocprofiler_callback_tracing_kind_t kind;
	rocprofiler_tracing_operation_t operation;
	rocprofiler_callback_tracing_operation_args_cb_t callback;
	void *data;
	int32_t dereferences_max;
};

static int pass_argument_to_callback(uint32_t number, struct argument_being_formatted *telling,
				     void *data)
{
	const struct callback_argument_iteration_state *context = data;

	return context->callback(context->kind, context->operation, number, telling->address,
				 telling->pointer_depth, telling->argument->type,
				 telling->argument->name, telling->text, telling->dereferences_done,
				 context->data);
}

/* Functions of backends: their tables have types as text only. */
static int pass_device_argument_to_callback(void *data, uint32_t number, const char *type,
					    const char *name, const void *value)
{
	const struct callback_argument_iteration_state *told = data;
	struct argument_being_formatted telling = {.address = value,
						   .dereferences_max = told->dereferences_max};
	struct sdk_argument_description argument = {
		.type = type, .name = name, .size = sizeof(void *), .value = SDK_VALUE_POINTER};
	struct sdk_argument_description value_of;

	telling.argument = &argument;
	if (!strncmp(type, "const char *", 12) && !strchr(type + 12, '*')) {
		argument.value = SDK_VALUE_STRING;
	} else if (!strchr(type, '*') && describe_pointee_by_type_name(type, &value_of)) {
		argument.size = value_of.size;
		argument.value = value_of.value;
	}
	telling.pointer_depth = sdk_argument_get_pointer_depth(&argument);
	format_argument_text(&telling);
	return pass_argument_to_callback(number, &telling, data);
}

SDK_EXPORT rocprofiler_status_t rocprofiler_iterate_callback_tracing_kind_operation_args(
	rocprofiler_callback_tracing_record_t record,
	rocprofiler_callback_tracing_operation_args_cb_t callback, int32_t max_dereference_count,
	void *user_data)
{
	struct callback_argument_iteration_state context = {
		record.kind, record.operation, callback, user_data,
		max_dereference_count < 0 ? 0 : max_dereference_count};
	const struct sdk_tracing_kind_info *kind =
		sdk_find_callback_kind_by_number((int)record.kind);
	const struct sdk_function_description *function;
	rocprofiler_status_t status;

	if (!callback || !record.payload)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (kind && kind->has_device_service) {
		const struct device_call_catalog *operations =
			device_find_call_catalog_of_service(kind->device_service);
		const struct sdk_device_call_data *data = record.payload;
		struct device_api_call_info call = {kind->device_service, record.operation,
						    data->arguments};

		if (!sdk_kind_get_operation_name(kind, record.operation))
			return ROCPROFILER_STATUS_ERROR_OPERATION_NOT_FOUND;
		if (!operations || !operations->arguments || !data->arguments)
			return ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED;
		operations->arguments(&call, pass_device_argument_to_callback, &context);
		return ROCPROFILER_STATUS_SUCCESS;
	}
	/* A function of CUDA's, told as HIP's, that takes other arguments. */
	if (sdk_current_thread_state &&
	    sdk_current_thread_state->payload_without_arguments == record.payload)
		return ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED;
	function = find_function_with_arguments(kind, (int)record.kind, record.operation, &status);
	if (function)
		format_and_visit_arguments(
			function, (const char *)record.payload + kind->arguments_offset,
			context.dereferences_max, pass_argument_to_callback, &context);
	return status;
}

struct record_argument_iteration_state {
	rocprofiler_buffer_tracing_kind_t kind;
	rocprofiler_tracing_operation_t operation;
	rocprofiler_buffer_tracing_operation_args_cb_t callback;
	void *data;
};

static int pass_record_argument_to_callback(uint32_t number,
					    struct argument_being_formatted *telling, void *data)
{
	const struct record_argument_iteration_state *context = data;

	return context->callback(context->kind, context->operation, number, telling->address,
				 telling->pointer_depth, telling->argument->type,
				 telling->argument->name, telling->text, context->data);
}

/* What pointers in a record led to may be gone: they are not followed. */
SDK_EXPORT rocprofiler_status_t rocprofiler_iterate_buffer_tracing_record_args(
	rocprofiler_record_header_t record, rocprofiler_buffer_tracing_operation_args_cb_t callback,
	void *user_data)
{
	const rocprofiler_buffer_tracing_hip_api_record_t *head = record.payload;
	struct record_argument_iteration_state context = {.callback = callback, .data = user_data};
	const struct sdk_function_description *function;
	const struct sdk_tracing_kind_info *kind;
	rocprofiler_status_t status;

	if (!callback || !head || record.category != ROCPROFILER_BUFFER_CATEGORY_TRACING)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	kind = sdk_find_buffer_kind_by_number((int)record.kind);
	if (kind && !kind->has_arguments && record.kind)
		return ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED;
	context.kind = (rocprofiler_buffer_tracing_kind_t)record.kind;
	context.operation = head->operation;
	function = find_function_with_arguments(kind, (int)record.kind, head->operation, &status);
	if (function)
		format_and_visit_arguments(function,
					   (const char *)record.payload + kind->arguments_offset,
					   -1, pass_record_argument_to_callback, &context);
	return status;
}
