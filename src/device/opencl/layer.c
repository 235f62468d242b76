/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The OpenCL layer: the loader (OPENCL_LAYERS) gives its table of functions and gets ours, whose
 * every entry tells the sink of the call and passes it on. Where a loader knows no layers,
 * libkymo-opencl.so is preloaded and leads the functions here (opencl_interpose()).
 *
 * The tools are looked for at the first call, not when the loader asks for the layer: then the
 * loader is in the midst of its own initialization, and a tool that asks for devices would hang.
 */
#include <stdatomic.h>
#include <string.h>

#include "device/opencl/opencl.h"
#include "device/opencl/user_events.h"

struct opencl_table opencl_next;
struct device_losses opencl_losses;
static _Atomic bool is_there, was_found;

struct opencl_arguments {
	const void *const *addresses;
};

static inline const struct device_sink *sink_of_call(void)
{
	if (!atomic_load_explicit(&was_found, memory_order_relaxed)) {
		/* Whoever is told at the same time waits in there until the tools are ready. */
		device_runtime_found(DEVICE_RUNTIME_OPENCL);
		atomic_store(&was_found, true);
	}
	return device_sink();
}

/* Where the parameters of a function are that enqueues, from 1; 0: it has none such. */
static struct places {
	uint8_t queue, count, waits_for, event;
} places[OPENCL_CALLS];

static void tell_enqueueing(uint32_t number, const void *const *where)
{
	const struct places *at = &places[number];

	if (at->queue != 0 && at->count != 0)
		user_events_enqueueing(*(const cl_command_queue *)where[at->queue - 1],
				       *(const cl_uint *)where[at->count - 1],
				       *(const cl_event *const *)where[at->waits_for - 1]);
}

static void tell_enqueued(uint32_t number, const void *const *where)
{
	const struct places *at = &places[number];
	const cl_event *made;

	if (at->queue == 0 || at->event == 0)
		return;
	made = *(const cl_event *const *)where[at->event - 1];
	if (made != NULL)
		user_events_enqueued(*(const cl_command_queue *)where[at->queue - 1], *made);
}

/* Statuses, and what is mapped. */
static bool has_failed(const void *result, size_t size)
{
	return size == sizeof(cl_int) ? *(const cl_int *)result != CL_SUCCESS
				      : *(const void *const *)result == NULL;
}

#define PLAIN(...) __VA_ARGS__
#define ENTER(number, addresses)                                                                   \
	const struct device_sink *sink = sink_of_call();                                           \
	const void *const where[] = {PLAIN addresses};                                             \
	const struct opencl_arguments told = {where};                                              \
	const struct device_call call = {DEVICE_SERVICE_CALLS_OPENCL, number, &told};              \
	device_handle handle = DEVICE_NONE;                                                        \
	if (user_events_pending())                                                                 \
		tell_enqueueing(number, where);                                                    \
	if (sink != NULL && sink->wants(DEVICE_SERVICE_CALLS_OPENCL, number))                      \
	handle = sink->call_enter(&call)
#define LEAVE(result, number, failed)                                                              \
	if (user_events_pending() && !(failed))                                                    \
		tell_enqueued(number, where);                                                      \
	if (handle != DEVICE_NONE)                                                                 \
	sink->call_exit(handle, &call, result)
#define TRACED(number, type, name, parameters, arguments, addresses, inner)                        \
	static type traced_##name parameters                                                       \
	{                                                                                          \
		ENTER(number, addresses);                                                          \
		type result = inner arguments;                                                     \
		LEAVE(&result, number, has_failed(&result, sizeof(result)));                       \
		return result;                                                                     \
	}
#define TRACED_VOID(number, name, parameters, arguments, addresses, inner)                         \
	static void traced_##name parameters                                                       \
	{                                                                                          \
		ENTER(number, addresses);                                                          \
		inner arguments;                                                                   \
		LEAVE(NULL, number, false);                                                        \
	}

#define CALL(number, type, name, parameters, arguments, addresses)                                 \
	TRACED(number, type, name, parameters, arguments, addresses, opencl_next.name)
#define HOOKED(number, type, name, parameters, arguments, addresses)                               \
	TRACED(number, type, name, parameters, arguments, addresses, hooked_##name)
#define VOID_CALL(number, name, parameters, arguments, addresses)                                  \
	TRACED_VOID(number, name, parameters, arguments, addresses, opencl_next.name)
#define VOID_HOOKED(number, name, parameters, arguments, addresses)                                \
	TRACED_VOID(number, name, parameters, arguments, addresses, hooked_##name)
#define ABSENT(number, name)
#include "device/opencl/calls_table.h"
#undef CALL
#undef HOOKED
#undef VOID_CALL
#undef VOID_HOOKED
#undef ABSENT

static const struct opencl_table traced = {
#define CALL(number, type, name, parameters, arguments, addresses) .name = traced_##name,
#define HOOKED                                                     CALL
#define VOID_CALL(number, name, parameters, arguments, addresses)  .name = traced_##name,
#define VOID_HOOKED                                                VOID_CALL
#define ABSENT(number, name)
#include "device/opencl/calls_table.h"
#undef CALL
#undef HOOKED
#undef VOID_CALL
#undef VOID_HOOKED
#undef ABSENT
};

static void find_places(void);

const void *opencl_interpose(const void *const *below, unsigned entries)
{
	static const void *table[OPENCL_CALLS];
	const void *const *ours = (const void *const *)&traced;

	if (entries > OPENCL_CALLS)
		entries = OPENCL_CALLS;
	memcpy(&opencl_next, below, entries * sizeof(*below));
	find_places();
	for (unsigned i = 0; i < entries; i++)
		table[i] = ours[i] != NULL && below[i] != NULL ? ours[i] : below[i];
	atomic_store(&is_there, true);
	return table;
}

bool opencl_is_there(void)
{
	return atomic_load(&is_there);
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
	*table = opencl_interpose(below, entries);
	*entries_given = entries < OPENCL_CALLS ? entries : (cl_uint)OPENCL_CALLS;
	return CL_SUCCESS;
}

/* For libkymo-opencl; NULL: we are a layer already. */
__attribute__((visibility("default"))) const void *kymo_opencl_interpose(const void *const *below,
									 unsigned entries);

const void *kymo_opencl_interpose(const void *const *below, unsigned entries)
{
	return opencl_is_there() ? NULL : opencl_interpose(below, entries);
}

/* ---- names and arguments ---- */

struct row {
	const char *name, *parameters;
};

static const struct row rows[] = {
#define CALL(number, type, name, parameters, arguments, addresses) [number] = {#name, #parameters},
#define HOOKED                                                     CALL
#define VOID_CALL(number, name, parameters, arguments, addresses)  [number] = {#name, #parameters},
#define VOID_HOOKED                                                VOID_CALL
#define ABSENT(number, name)                                       [number] = {#name, "()"},
#include "device/opencl/calls_table.h"
#undef CALL
#undef HOOKED
#undef VOID_CALL
#undef VOID_HOOKED
#undef ABSENT
};

static const char *opencl_call_name(int32_t operation)
{
	return (uint32_t)operation < OPENCL_CALLS ? rows[operation].name : NULL;
}

/* Cuts "type name" of one parameter into its two parts. */
static void cut(const char *from, const char *end, char type[64], char name[64])
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

static int opencl_call_arguments(const struct device_call *call,
				 int (*each)(void *context, uint32_t number, const char *type,
					     const char *name, const void *value),
				 void *context)
{
	const struct opencl_arguments *told = call->arguments;
	const char *at;
	int result = 0;

	if ((uint32_t)call->operation >= OPENCL_CALLS)
		return 0;
	at = rows[call->operation].parameters + 1;
	for (uint32_t number = 0; result == 0 && *at != '\0' && *at != ')'; number++) {
		size_t length = strcspn(at, ",)");
		char type[64], name[64];

		cut(at, at + length, type, name);
		result = each(context, number, type, name, told->addresses[number]);
		at += length;
		at += strspn(at, ", ");
	}
	return result;
}

static int find_place(void *context, uint32_t number, const char *type, const char *name,
		      const void *value)
{
	struct places *at = context;
	uint8_t place = (uint8_t)(number + 1);

	(void)value;
	if (strcmp(name, "command_queue") == 0)
		at->queue = place;
	else if (strcmp(name, "num_events_in_wait_list") == 0 || strcmp(name, "num_events") == 0)
		at->count = place;
	else if (strcmp(name, "event_wait_list") == 0 || strcmp(name, "event_list") == 0)
		at->waits_for = place;
	else if (strcmp(name, "event") == 0 && strcmp(type, "cl_event *") == 0)
		at->event = place;
	return 0;
}

static void find_places(void)
{
	static const void *const none[OPENCL_CALLS];
	const struct opencl_arguments no_values = {none};

	for (uint32_t i = 0; i < OPENCL_CALLS; i++) {
		const struct device_call call = {DEVICE_SERVICE_CALLS_OPENCL, (int32_t)i,
						 &no_values};

		opencl_call_arguments(&call, find_place, &places[i]);
	}
}

const struct device_operations opencl_operations = {DEVICE_SERVICE_CALLS_OPENCL, OPENCL_CALLS,
						    opencl_call_name, opencl_call_arguments};
