/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * From the user API's parameters to those of libkymo.
 */
#include "libkymo-dl/user_calls.h"

#include <string.h>

#include "libkymo-dl/runtime.h"
#include "libkymo-dl/user_binding.h"

struct kymo_callbacks user_calls_direct_table = {.size = sizeof(struct kymo_callbacks)};

enum { ANNOTATION_VALUES_MAX = 16 };

/* ---- values ---- */

static uint64_t double_to_bits(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* Reads a number through a pointer that need not be aligned. */
#define READ_UNALIGNED(c_type, pointer)                                                            \
	({                                                                                         \
		c_type number_;                                                                    \
		memcpy(&number_, pointer, sizeof(number_));                                        \
		number_;                                                                           \
	})

static void set_value_type_and_number(struct region_value *ret, enum spool_value_type type,
				      uint64_t number)
{
	ret->type = type;
	ret->number = number;
}

static bool annotation_to_region_value(const struct kymo_annotation *from, struct region_value *ret)
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
		set_value_type_and_number(ret, SPOOL_VALUE_ADDRESS, (uint64_t)(uintptr_t)value);
		return true;
	case KYMO_SIZE:
	case KYMO_UINT64:
		set_value_type_and_number(ret, SPOOL_VALUE_UNSIGNED,
					  READ_UNALIGNED(uint64_t, value));
		return true;
	case KYMO_UINT32:
		set_value_type_and_number(ret, SPOOL_VALUE_UNSIGNED,
					  READ_UNALIGNED(uint32_t, value));
		return true;
	case KYMO_UINT16:
		set_value_type_and_number(ret, SPOOL_VALUE_UNSIGNED,
					  READ_UNALIGNED(uint16_t, value));
		return true;
	case KYMO_INT64:
		set_value_type_and_number(ret, SPOOL_VALUE_SIGNED, READ_UNALIGNED(uint64_t, value));
		return true;
	case KYMO_INT32:
		set_value_type_and_number(ret, SPOOL_VALUE_SIGNED,
					  (uint64_t)READ_UNALIGNED(int32_t, value));
		return true;
	case KYMO_INT16:
		set_value_type_and_number(ret, SPOOL_VALUE_SIGNED,
					  (uint64_t)READ_UNALIGNED(int16_t, value));
		return true;
	case KYMO_DOUBLE:
		set_value_type_and_number(ret, SPOOL_VALUE_REAL, READ_UNALIGNED(uint64_t, value));
		return true;
	case KYMO_FLOAT:
		set_value_type_and_number(ret, SPOOL_VALUE_REAL,
					  double_to_bits((double)READ_UNALIGNED(float, value)));
		return true;
	}
	return false;
}

static int record_annotations(const struct kymo_annotation *annotations, size_t count)
{
	const struct runtime_api *api = dl_runtime_get_api();
	struct region_value values[ANNOTATION_VALUES_MAX];
	int status = KYMO_SUCCESS;
	size_t ready = 0;

	for (size_t i = 0; i < count; i++) {
		if (!annotation_to_region_value(&annotations[i], &values[ready])) {
			status = KYMO_BAD_VALUE;
			continue;
		}
		if (++ready == ANNOTATION_VALUES_MAX) {
			api->region_values(values, ready);
			ready = 0;
		}
	}
	if (ready)
		api->region_values(values, ready);
	return status;
}

/* ---- instants ---- */

static int record_user_mark(const char *category, const char *name)
{
	const struct runtime_api *api = dl_runtime_get_api();

	api->region_write_mark(category ? api->region_find_or_add_name_in(category, name)
					: api->region_find_or_add_name(REGION_USER, name));
	return KYMO_SUCCESS;
}

static int record_user_counter(const char *name, double value)
{
	const struct runtime_api *api = dl_runtime_get_api();

	api->region_write_counter(api->region_find_or_add_name(REGION_USER, name),
				  double_to_bits(value));
	return KYMO_SUCCESS;
}

_Static_assert((int)KYMO_PROGRESS_POINT == (int)SPOOL_PROGRESS_POINT &&
		       (int)KYMO_PROGRESS_BEGIN == (int)SPOOL_PROGRESS_BEGIN &&
		       (int)KYMO_PROGRESS_END == (int)SPOOL_PROGRESS_END,
	       "one numbering");

static int record_user_progress(const char *name, enum kymo_progress_kind kind)
{
	const struct runtime_api *api = dl_runtime_get_api();

	api->region_write_progress_by_name(name, (enum spool_progress)kind);
	return KYMO_SUCCESS;
}

void user_calls_fill_direct_table(const struct runtime_api *api)
{
	user_calls_direct_table = (struct kymo_callbacks){
		.size = sizeof(struct kymo_callbacks),
		.push_region = api->region_begin_by_name,
		.pop_region = api->region_end_by_name,
		.annotate = record_annotations,
		.mark = record_user_mark,
		.counter = record_user_counter,
		.progress = record_user_progress,
		.start_trace = api->trace_start,
		.stop_trace = api->trace_stop,
		.start_thread_trace = api->thread_trace_start,
		.stop_thread_trace = api->thread_trace_stop,
		.flush = api->flush,
	};
}

/* ---- first calls ---- */

static const struct runtime_api *load_libkymo_and_bind_user_copies(void)
{
	const struct runtime_api *api = dl_runtime_find_or_load();

	/* Also the copies that were bound to these functions while libkymo was being opened. */
	if (api)
		user_binding_bind_all_to_libkymo();
	return api;
}

#define DEFINE_FIRST_CALL(name, parameters, arguments)                                             \
	static int first_##name parameters                                                         \
	{                                                                                          \
		return load_libkymo_and_bind_user_copies()                                         \
			       ? user_calls_direct_table.name arguments                            \
			       : KYMO_NO_BINDING;                                                  \
	}
DEFINE_FIRST_CALL(push_region, (const char *category, const char *name), (category, name))
DEFINE_FIRST_CALL(pop_region, (const char *category, const char *name), (category, name))
DEFINE_FIRST_CALL(annotate, (const struct kymo_annotation *list, size_t count), (list, count))
DEFINE_FIRST_CALL(mark, (const char *category, const char *name), (category, name))
DEFINE_FIRST_CALL(counter, (const char *name, double value), (name, value))
DEFINE_FIRST_CALL(progress, (const char *name, enum kymo_progress_kind kind), (name, kind))
DEFINE_FIRST_CALL(start_trace, (void), ())
DEFINE_FIRST_CALL(stop_trace, (void), ())
DEFINE_FIRST_CALL(start_thread_trace, (void), ())
DEFINE_FIRST_CALL(stop_thread_trace, (void), ())
DEFINE_FIRST_CALL(flush, (void), ())
#undef DEFINE_FIRST_CALL

const struct kymo_callbacks user_calls_first_call_table = {
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
