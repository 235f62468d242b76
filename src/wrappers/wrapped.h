/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What replacements are made of: the original, the region, and the recording around the call.
 *
 * A replacement asks wrapped_get_region_if_recording() first and, when nothing is recorded, calls
 * the original with no other work. errno is as the original left it. A thread that is cancelled
 * inside a call leaves its region open; the end of the thread ends it.
 */
#ifndef KYMO_WRAPPERS_WRAPPED_H
#define KYMO_WRAPPERS_WRAPPED_H

#include <errno.h>
#include <stdint.h>

#include "core/base/thread_pointer.h"
#include "core/base/ticks.h"
#include "core/runtime.h"
#include "regions/regions.h"
#include "wrappers/got/got.h"

struct wrapped_function {
	const char *name;
	enum region_category category;
	_Atomic(void *) original;
	_Atomic region_id region; /* 0: not looked up yet, or the category is off */
};

/* Defines call_NAME, the state of one wrapped function. */
#define DEFINE_WRAPPED_FUNCTION_STATE_AS(symbol, shown, in)                                        \
	static struct wrapped_function call_##symbol = {.name = (shown), .category = (in)}
#define DEFINE_WRAPPED_FUNCTION_STATE(symbol, in)                                                  \
	DEFINE_WRAPPED_FUNCTION_STATE_AS(symbol, #symbol, in)

/* The row of wrapped_NAME in a table for got_add_wrappers(). */
#define WRAPPER_TABLE_ROW(symbol_)                                                                 \
	{                                                                                          \
		.symbol = #symbol_, .replacement = (void *)wrapped_##symbol_,                      \
		.original = &call_##symbol_.original                                               \
	}

/* The original, with the type of the declared function. */
#define ORIGINAL(symbol)                                                                           \
	((__typeof__(&(symbol)))atomic_load_explicit(&call_##symbol.original, memory_order_relaxed))

/* Whether anything is recorded now. */
extern const struct collection_control *kymo_wrapped_control;

region_id wrapped_find_or_add_region(struct wrapped_function *call);

/* The region to record a call in, or 0: call the original and do nothing else. */
static inline region_id wrapped_get_region_if_recording(struct wrapped_function *call)
{
	region_id region;

	/* The common reason first, without a call. */
	if (atomic_load_explicit(&kymo_wrapped_control->closed_reasons, memory_order_relaxed) ||
	    !region_category_is_recorded(call->category) || !thread_pointer_is_usable())
		return 0;
	region = atomic_load_explicit(&call->region, memory_order_relaxed);
	return region ? region : wrapped_find_or_add_region(call);
}

static inline struct region_value wrapped_number_to_value(const char *name, int64_t number)
{
	return (struct region_value){
		.name = name, .type = SPOOL_VALUE_SIGNED, .number = (uint64_t)number};
}

static inline struct region_value wrapped_address_to_value(const char *name,
							   const volatile void *address)
{
	return (struct region_value){
		.name = name, .type = SPOOL_VALUE_ADDRESS, .number = (uint64_t)address};
}

static inline struct region_value wrapped_text_to_value(const char *name, const char *text)
{
	return (struct region_value){
		.name = name, .type = SPOOL_VALUE_TEXT, .text = text ? text : ""};
}

/* Copies what can be read of a text that the original may find unreadable (EFAULT), cut to `size`.
 * Returns `buffer`. */
const char *wrapped_copy_readable_text(char *buffer, size_t size, const char *text);

/* region_begin_around_call with a value: in the wrapper's own frame, which is the call's scope. */
static inline void wrapped_begin_region(region_id region, struct region_value value)
{
	region_begin_around_call(region);
	region_values(&value, 1);
}
/* region_end with what the call returned: an error number (0: none) ... */
void wrapped_end_region_with_error(region_id region, int error);
/* ... or a result, called `name`, with -1 for an error in errno. */
void wrapped_end_region_with_result(region_id region, const char *name, int64_t result);
/* A call that did not wait, with its value and error number. */
void wrapped_record_whole_call(region_id region, uint64_t begin_ticks, struct region_value value,
			       int error);
/* region_write_mark with a value. */
void wrapped_record_mark(region_id region, struct region_value value);

/* Lists with commas in them, as one argument of a macro. */
#define PARENTHESIZED_PARAMETERS(...) (__VA_ARGS__)
#define PARENTHESIZED_ARGUMENTS(...)  (__VA_ARGS__)

/* Defines wrapped_NAME of a call that says in errno what went wrong: a region with `value`, which
 * ends with the result, called `name`. */
#define DEFINE_RESULT_WRAPPER(type, symbol, shown, category, value, name, parameters, arguments)   \
	DEFINE_WRAPPED_FUNCTION_STATE_AS(symbol, shown, category);                                 \
	static type wrapped_##symbol parameters                                                    \
	{                                                                                          \
		region_id region = wrapped_get_region_if_recording(&call_##symbol);                \
		type result;                                                                       \
		if (!region)                                                                       \
			return ORIGINAL(symbol) arguments;                                         \
		wrapped_begin_region(region, value);                                               \
		result = ORIGINAL(symbol) arguments;                                               \
		wrapped_end_region_with_result(region, name, (int64_t)result);                     \
		return result;                                                                     \
	}

#endif
