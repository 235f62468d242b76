/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The OpenCL layer: the loader (OPENCL_LAYERS) gives its table of functions and gets ours, whose
 * every entry tells the sink of the call and passes it on. Where a loader knows no layers,
 * libkymo-opencl.so is preloaded and leads the functions here (opencl_interpose_function_table()).
 *
 * The tools are looked for at the first call, not when the loader asks for the layer: then the
 * loader is in the midst of its own initialization, and a tool that asks for devices would hang.
 */
#include <stdatomic.h>
#include <string.h>

#include "device/opencl/opencl.h"
#include "device/opencl/user_events.h"

struct opencl_function_table opencl_next_functions;
struct device_record_loss_counts opencl_losses;
static _Atomic bool layer_installed_flag, runtime_reported_flag;

struct opencl_argument_addresses {
	const void *const *addresses;
};

static inline const struct device_sink *report_runtime_once_and_get_sink(void)
{
	if (!atomic_load_explicit(&runtime_reported_flag, memory_order_relaxed)) {
		/* A thread that calls at the same time waits in there until the tools are ready. */
		device_report_runtime_found(DEVICE_RUNTIME_OPENCL);
		atomic_store(&runtime_reported_flag, true);
	}
	return device_get_sink();
}

/* Where the parameters of a function are that enqueues, from 1; 0: it has none such. */
static struct event_parameter_positions {
	uint8_t queue, count, wait_list, event;
} event_parameter_positions_by_call[OPENCL_CALL_COUNT];

static void add_waits_to_queue_if_enqueue_call(uint32_t number, const void *const *where)
{
	const struct event_parameter_positions *at = &event_parameter_positions_by_call[number];

	if (at->queue != 0 && at->count != 0)
		user_events_add_queue_waits(*(const cl_command_queue *)where[at->queue - 1],
					    *(const cl_uint *)where[at->count - 1],
					    *(const cl_event *const *)where[at->wait_list - 1]);
}

static void copy_queue_waits_if_enqueue_call(uint32_t number, const void *const *where)
{
	const struct event_parameter_positions *at = &event_parameter_positions_by_call[number];
	const cl_event *made;

	if (at->queue == 0 || at->event == 0)
		return;
	made = *(const cl_event *const *)where[at->event - 1];
	if (made != NULL)
		user_events_copy_queue_waits_to_event(
			*(const cl_command_queue *)where[at->queue - 1], *made);
}

/* Statuses, and what is mapped. */
static bool result_is_failure(const void *result, size_t size)
{
	return size == sizeof(cl_int) ? *(const cl_int *)result != CL_SUCCESS
				      : *(const void *const *)result == NULL;
}

#define STRIP_PARENTHESES(...) __VA_ARGS__
#define REPORT_CALL_ENTRY_STATEMENTS(number, addresses)                                            \
	const struct device_sink *sink = report_runtime_once_and_get_sink();                       \
	const void *const where[] = {STRIP_PARENTHESES addresses};                                 \
	const struct opencl_argument_addresses told = {where};                                     \
	const struct device_api_call_info call = {DEVICE_SERVICE_CALLS_OPENCL, number, &told};     \
	device_handle handle = DEVICE_HANDLE_NONE;                                                 \
	if (user_events_are_pending())                                                             \
		add_waits_to_queue_if_enqueue_call(number, where);                                 \
	if (sink != NULL && sink->is_wanted(DEVICE_SERVICE_CALLS_OPENCL, number))                  \
	handle = sink->call_enter(&call)
#define REPORT_CALL_EXIT_STATEMENTS(result, number, failed)                                        \
	if (user_events_are_pending() && !(failed))                                                \
		copy_queue_waits_if_enqueue_call(number, where);                                   \
	if (handle != DEVICE_HANDLE_NONE)                                                          \
	sink->call_exit(handle, &call, result)
#define DEFINE_TRACED_CALL(number, type, name, parameters, arguments, addresses, inner)            \
	static type traced_##name parameters                                                       \
	{                                                                                          \
		REPORT_CALL_ENTRY_STATEMENTS(number, addresses);                                   \
		type result = inner arguments;                                                     \
		REPORT_CALL_EXIT_STATEMENTS(&result, number,                                       \
					    result_is_failure(&result, sizeof(result)));           \
		return result;                                                                     \
	}
#define DEFINE_TRACED_VOID_CALL(number, name, parameters, arguments, addresses, inner)             \
	static void traced_##name parameters                                                       \
	{                                                                                          \
		REPORT_CALL_ENTRY_STATEMENTS(number, addresses);                                   \
		inner arguments;                                                                   \
		REPORT_CALL_EXIT_STATEMENTS(NULL, number, false);                                  \
	}

#define OPENCL_CALL_ROW(number, type, name, parameters, arguments, addresses)                      \
	DEFINE_TRACED_CALL(number, type, name, parameters, arguments, addresses,                   \
			   opencl_next_functions.name)
#define OPENCL_HOOKED_CALL_ROW(number, type, name, parameters, arguments, addresses)               \
	DEFINE_TRACED_CALL(number, type, name, parameters, arguments, addresses, hooked_##name)
#define OPENCL_VOID_CALL_ROW(number, name, parameters, arguments, addresses)                       \
	DEFINE_TRACED_VOID_CALL(number, name, parameters, arguments, addresses,                    \
				opencl_next_functions.name)
#define OPENCL_HOOKED_VOID_CALL_ROW(number, name, parameters, arguments, addresses)                \
	DEFINE_TRACED_VOID_CALL(number, name, parameters, arguments, addresses, hooked_##name)
#define OPENCL_ABSENT_ROW(number, name)
#include "device/opencl/calls_table.h"
#undef OPENCL_CALL_ROW
#undef OPENCL_HOOKED_CALL_ROW
#undef OPENCL_VOID_CALL_ROW
#undef OPENCL_HOOKED_VOID_CALL_ROW
#undef OPENCL_ABSENT_ROW

static const struct opencl_function_table tracing_wrapper_functions = {
#define OPENCL_CALL_ROW(number, type, name, parameters, arguments, addresses) .name = traced_##name,
#define OPENCL_HOOKED_CALL_ROW                                                OPENCL_CALL_ROW
#define OPENCL_VOID_CALL_ROW(number, name, parameters, arguments, addresses)  .name = traced_##name,
#define OPENCL_HOOKED_VOID_CALL_ROW                                           OPENCL_VOID_CALL_ROW
#define OPENCL_ABSENT_ROW(number, name)
#include "device/opencl/calls_table.h"
#undef OPENCL_CALL_ROW
#undef OPENCL_HOOKED_CALL_ROW
#undef OPENCL_VOID_CALL_ROW
#undef OPENCL_HOOKED_VOID_CALL_ROW
#undef OPENCL_ABSENT_ROW
};

static void fill_event_parameter_positions(void);

const void *opencl_interpose_function_table(const void *const *below, unsigned entries)
{
	static const void *table[OPENCL_CALL_COUNT];
	const void *const *ours = (const void *const *)&tracing_wrapper_functions;

	if (entries > OPENCL_CALL_COUNT)
		entries = OPENCL_CALL_COUNT;
	memcpy(&opencl_next_functions, below, entries * sizeof(*below));
	fill_event_parameter_positions();
	for (unsigned i = 0; i < entries; i++)
		table[i] = ours[i] != NULL && below[i] != NULL ? ours[i] : below[i];
	atomic_store(&layer_installed_flag, true);
	return table;
}

bool opencl_layer_is_installed(void)
{
	return atomic_load(&layer_installed_flag);
}

/* ---- what loaders ask layers for (Khronos' cl_layer.h) ---- */

__attribute__((visibility("default"))) cl_int clGetLayerInfo(cl_uint name, size_t size, void *value,
							     size_t *size_wanted);
__attribute__((visibility("default"))) cl_int
clInitLayer(cl_uint entries, const void *below, cl_uint *entries_given, const void **table);

cl_int clGetLayerInfo(cl_uint name, size_t size, void *value, size_t *size_wanted)
{
	static const cl_uint version = CL_LAYER_API_VERSION_100;
	static const char label[] = "kymo";
	const void *from = name == CL_LAYER_API_VERSION ? (const void *)&version : label;
	size_t length = name == CL_LAYER_API_VERSION ? sizeof(version) : sizeof(label);

	if (name != CL_LAYER_API_VERSION && name != CL_LAYER_NAME)
		return CL_INVALID_VALUE;
	if (value != NULL && size < length)
		return CL_INVALID_VALUE;
	if (value != NULL)
		memcpy(value, from, length);
	if (size_wanted != NULL)
		*size_wanted = length;
	return CL_SUCCESS;
}

/* A loader of a later version has more functions than we know; they are not ours to give. The
 * shorter of the two tables is what layers and loaders agree on. */
cl_int clInitLayer(cl_uint entries, const void *below, cl_uint *entries_given, const void **table)
{
	if (below == NULL || entries_given == NULL || table == NULL || entries == 0)
		return CL_INVALID_VALUE;
	*table = opencl_interpose_function_table(below, entries);
	*entries_given = entries < OPENCL_CALL_COUNT ? entries : (cl_uint)OPENCL_CALL_COUNT;
	return CL_SUCCESS;
}

/* For libkymo-opencl; NULL: we are a layer already. */
__attribute__((visibility("default"))) const void *kymo_opencl_interpose(const void *const *below,
									 unsigned entries);

const void *kymo_opencl_interpose(const void *const *below, unsigned entries)
{
	return opencl_layer_is_installed() ? NULL : opencl_interpose_function_table(below, entries);
}

/* ---- names and arguments ---- */

struct call_name_and_parameters {
	const char *name, *parameters_text;
};

static const struct call_name_and_parameters call_names_and_parameters[] = {
#define OPENCL_CALL_ROW(number, type, name, parameters, arguments, addresses)                      \
	[number] = {#name, #parameters},
#define OPENCL_HOOKED_CALL_ROW OPENCL_CALL_ROW
#define OPENCL_VOID_CALL_ROW(number, name, parameters, arguments, addresses)                       \
	[number] = {#name, #parameters},
#define OPENCL_HOOKED_VOID_CALL_ROW     OPENCL_VOID_CALL_ROW
#define OPENCL_ABSENT_ROW(number, name) [number] = {#name, "()"},
#include "device/opencl/calls_table.h"
#undef OPENCL_CALL_ROW
#undef OPENCL_HOOKED_CALL_ROW
#undef OPENCL_VOID_CALL_ROW
#undef OPENCL_HOOKED_VOID_CALL_ROW
#undef OPENCL_ABSENT_ROW
};

static const char *opencl_get_call_name(int32_t operation)
{
	return (uint32_t)operation < OPENCL_CALL_COUNT ? call_names_and_parameters[operation].name
						       : NULL;
}

/* Cuts "type name" of one parameter into its two parts. */
static void split_parameter_into_type_and_name(const char *from, const char *end, char type[64],
					       char name[64])
{
	const char *start = end;
	size_t length;

	while (start > from && start[-1] != ' ' && start[-1] != '*')
		start--;
	length = (size_t)(end - start) < 63 ? (size_t)(end - start) : 63;
	memcpy(name, start, length);
	name[length] = '\0';
	while (start > from && start[-1] == ' ')
		start--;
	length = (size_t)(start - from) < 63 ? (size_t)(start - from) : 63;
	memcpy(type, from, length);
	type[length] = '\0';
}

static int opencl_for_each_call_argument(const struct device_api_call_info *call,
					 int (*each)(void *context, uint32_t number,
						     const char *type, const char *name,
						     const void *value),
					 void *context)
{
	const struct opencl_argument_addresses *told = call->arguments;
	const char *at;
	int result = 0;

	if ((uint32_t)call->operation >= OPENCL_CALL_COUNT)
		return 0;
	at = call_names_and_parameters[call->operation].parameters_text + 1;
	for (uint32_t number = 0; result == 0 && *at != '\0' && *at != ')'; number++) {
		size_t length = strcspn(at, ",)");
		char type[64], name[64];

		split_parameter_into_type_and_name(at, at + length, type, name);
		result = each(context, number, type, name, told->addresses[number]);
		at += length;
		at += strspn(at, ", ");
	}
	return result;
}

static int keep_position_if_event_parameter(void *context, uint32_t number, const char *type,
					    const char *name, const void *value)
{
	struct event_parameter_positions *at = context;
	uint8_t place = (uint8_t)(number + 1);

	(void)value;
	if (strcmp(name, "command_queue") == 0)
		at->queue = place;
	else if (strcmp(name, "num_events_in_wait_list") == 0 || strcmp(name, "num_events") == 0)
		at->count = place;
	else if (strcmp(name, "event_wait_list") == 0 || strcmp(name, "event_list") == 0)
		at->wait_list = place;
	else if (strcmp(name, "event") == 0 && strcmp(type, "cl_event *") == 0)
		at->event = place;
	return 0;
}

static void fill_event_parameter_positions(void)
{
	static const void *const none[OPENCL_CALL_COUNT];
	const struct opencl_argument_addresses no_values = {none};

	for (uint32_t i = 0; i < OPENCL_CALL_COUNT; i++) {
		const struct device_api_call_info call = {DEVICE_SERVICE_CALLS_OPENCL, (int32_t)i,
							  &no_values};

		opencl_for_each_call_argument(&call, keep_position_if_event_parameter,
					      &event_parameter_positions_by_call[i]);
	}
}

const struct device_call_catalog opencl_call_catalog = {DEVICE_SERVICE_CALLS_OPENCL,
							OPENCL_CALL_COUNT, opencl_get_call_name,
							opencl_for_each_call_argument};
