/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * From the user API's parameters to those of libkymo.
 */
#include "libkymo-dl/user_calls.h"

#include <string.h>

#include "libkymo-dl/runtime.h"
#include "libkymo-dl/user_binding.h"

struct kymo_callbacks user_calls_direct = {.size = sizeof(struct kymo_callbacks)};

enum { CALLS_VALUES_MAX = 16 };

/* ---- values ---- */

static uint64_t calls_bits(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* Reads a number through a pointer that need not be aligned. */
#define CALLS_READ(c_type, pointer)                                                                \
	({                                                                                         \
		c_type number_;                                                                    \
		memcpy(&number_, pointer, sizeof(number_));                                        \
		number_;                                                                           \
	})

static void calls_number(struct region_value *ret, enum spool_value_type type, uint64_t number)
{
	ret->type = type;
	ret->number = number;
}

static bool calls_convert(const struct kymo_annotation *from, struct region_value *ret)
{
	const void *value = from->value;

	ret->name = from->name;
	if (!from->name || (!value && from->type != KYMO_POINTER))
		return false;
	switch (from->type) {
	case KYMO_TEXT:
		ret->type = SPOOL_VALUE_TEXT;
		ret->text = value;
		return true;
	case KYMO_POINTER:
		calls_number(ret, SPOOL_VALUE_ADDRESS, (uint64_t)(uintptr_t)value);
		return true;
	case KYMO_SIZE:
	case KYMO_UINT64:
		calls_number(ret, SPOOL_VALUE_UNSIGNED, CALLS_READ(uint64_t, value));
		return true;
	case KYMO_UINT32:
		calls_number(ret, SPOOL_VALUE_UNSIGNED, CALLS_READ(uint32_t, value));
		return true;
	case KYMO_UINT16:
		calls_number(ret, SPOOL_VALUE_UNSIGNED, CALLS_READ(uint16_t, value));
		return true;
	case KYMO_INT64:
		calls_number(ret, SPOOL_VALUE_SIGNED, CALLS_READ(uint64_t, value));
		return true;
	case KYMO_INT32:
		calls_number(ret, SPOOL_VALUE_SIGNED, (uint64_t)CALLS_READ(int32_t, value));
		return true;
	case KYMO_INT16:
		calls_number(ret, SPOOL_VALUE_SIGNED, (uint64_t)CALLS_READ(int16_t, value));
		return true;
	case KYMO_DOUBLE:
		calls_number(ret, SPOOL_VALUE_REAL, CALLS_READ(uint64_t, value));
		return true;
	case KYMO_FLOAT:
		calls_number(ret, SPOOL_VALUE_REAL, calls_bits((double)CALLS_READ(float, value)));
		return true;
	}
	return false;
}

static int calls_annotate(const struct kymo_annotation *annotations, size_t count)
{
	const struct kymo_runtime_api *api = dl_runtime();
	struct region_value values[CALLS_VALUES_MAX];
	int status = KYMO_SUCCESS;
	size_t ready = 0;

	for (size_t i = 0; i < count; i++) {
		if (!calls_convert(&annotations[i], &values[ready])) {
			status = KYMO_BAD_VALUE;
			continue;
		}
		if (++ready == CALLS_VALUES_MAX) {
			api->region_values(values, ready);
			ready = 0;
		}
	}
	if (ready)
		api->region_values(values, ready);
	return status;
}

/* ---- instants ---- */

static int calls_mark(const char *category, const char *name)
{
	const struct kymo_runtime_api *api = dl_runtime();

	api->region_mark(category ? api->region_named_in(category, name)
				  : api->region_named(REGION_USER, name));
	return KYMO_SUCCESS;
}

static int calls_counter(const char *name, double value)
{
	const struct kymo_runtime_api *api = dl_runtime();

	api->region_counter(api->region_named(REGION_USER, name), calls_bits(value));
	return KYMO_SUCCESS;
}

_Static_assert((int)KYMO_PROGRESS_POINT == (int)SPOOL_PROGRESS_POINT &&
		       (int)KYMO_PROGRESS_BEGIN == (int)SPOOL_PROGRESS_BEGIN &&
		       (int)KYMO_PROGRESS_END == (int)SPOOL_PROGRESS_END,
	       "one numbering");

static int calls_progress(const char *name, enum kymo_progress_kind kind)
{
	const struct kymo_runtime_api *api = dl_runtime();

	api->progress_name(name, (enum spool_progress)kind);
	return KYMO_SUCCESS;
}

void user_calls_connect(const struct kymo_runtime_api *api)
{
	user_calls_direct = (struct kymo_callbacks){
		.size = sizeof(struct kymo_callbacks),
		.push_region = api->region_begin_name,
		.pop_region = api->region_end_name,
		.annotate = calls_annotate,
		.mark = calls_mark,
		.counter = calls_counter,
		.progress = calls_progress,
		.start_trace = api->trace_start,
		.stop_trace = api->trace_stop,
		.start_thread_trace = api->thread_trace_start,
		.stop_thread_trace = api->thread_trace_stop,
		.flush = api->flush,
	};
}

/* ---- first calls ---- */

static const struct kymo_runtime_api *calls_load(void)
{
	const struct kymo_runtime_api *api = dl_runtime_load();

	/* Also the copies that were bound to these functions while libkymo was being opened. */
	if (api)
		user_binding_connect();
	return api;
}

#define FIRST(name, parameters, arguments)                                                         \
	static int first_##name parameters                                                         \
	{                                                                                          \
		return calls_load() ? user_calls_direct.name arguments : KYMO_NO_BINDING;          \
	}
FIRST(push_region, (const char *category, const char *name), (category, name))
FIRST(pop_region, (const char *category, const char *name), (category, name))
FIRST(annotate, (const struct kymo_annotation *list, size_t count), (list, count))
FIRST(mark, (const char *category, const char *name), (category, name))
FIRST(counter, (const char *name, double value), (name, value))
FIRST(progress, (const char *name, enum kymo_progress_kind kind), (name, kind))
FIRST(start_trace, (void), ())
FIRST(stop_trace, (void), ())
FIRST(start_thread_trace, (void), ())
FIRST(stop_thread_trace, (void), ())
FIRST(flush, (void), ())
#undef FIRST

const struct kymo_callbacks user_calls_first = {
	.size = sizeof(struct kymo_callbacks),
	.push_region = first_push_region,
	.pop_region = first_pop_region,
	.annotate = first_annotate,
	.mark = first_mark,
	.counter = first_counter,
	.progress = first_progress,
	.start_trace = first_start_trace,
	.stop_trace = first_stop_trace,
	.start_thread_trace = first_start_thread_trace,
	.stop_thread_trace = first_stop_thread_trace,
	.flush = first_flush,
};
