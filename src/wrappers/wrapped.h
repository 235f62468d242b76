/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What replacements are made of: the original, the region, and the recording around the call.
 *
 * A replacement asks wrapped_recording() first and, when nothing is recorded, calls the original
 * with no other work. errno is as the original left it. A thread that is cancelled inside a call
 * leaves its region open; the end of the thread ends it.
 */
#ifndef KYMO_WRAPPERS_WRAPPED_H
#define KYMO_WRAPPERS_WRAPPED_H

#include <errno.h>
#include <stdint.h>

#include "core/runtime.h"
#include "core/ticks.h"
#include "regions/regions.h"
#include "wrappers/got.h"

struct wrapped_call {
	const char *name;
	enum region_category category;
	_Atomic(void *) original;
	_Atomic region_id region; /* 0: not looked up yet, or the category is off */
};

/* Defines call_NAME, the state of one wrapped function. */
#define WRAPPED_CALL_AS(symbol, shown, in)                                                         \
	static struct wrapped_call call_##symbol = {.name = (shown), .category = (in)}
#define WRAPPED_CALL(symbol, in) WRAPPED_CALL_AS(symbol, #symbol, in)

/* The row of wrapped_NAME in a table for got_add(). */
#define WRAPPED_ROW(symbol_)                                                                       \
	{                                                                                          \
		.symbol = #symbol_, .replacement = (void *)wrapped_##symbol_,                      \
		.original = &call_##symbol_.original                                               \
	}

/* The original, with the type of the declared function. */
#define ORIGINAL(symbol)                                                                           \
	((__typeof__(&(symbol)))atomic_load_explicit(&call_##symbol.original, memory_order_relaxed))

region_id wrapped_look_up(struct wrapped_call *call);

/* The region to record a call in, or 0: call the original and do nothing else. */
static inline region_id wrapped_recording(struct wrapped_call *call)
{
	region_id region;

	/* The common reason first, without a call. */
	if (atomic_load_explicit(&kymo_runtime.control.closed, memory_order_relaxed) ||
	    !region_recording(call->category))
		return 0;
	region = atomic_load_explicit(&call->region, memory_order_relaxed);
	return region ? region : wrapped_look_up(call);
}

static inline struct region_value wrapped_number(const char *name, int64_t number)
{
	return (struct region_value){
		.name = name, .type = SPOOL_VALUE_SIGNED, .number = (uint64_t)number};
}

static inline struct region_value wrapped_address(const char *name, const volatile void *address)
{
	return (struct region_value){
		.name = name, .type = SPOOL_VALUE_ADDRESS, .number = (uint64_t)address};
}

static inline struct region_value wrapped_text(const char *name, const char *text)
{
	return (struct region_value){
		.name = name, .type = SPOOL_VALUE_TEXT, .text = text ? text : ""};
}

/* Copies what can be read of a text that the original may find unreadable (EFAULT), cut to `size`.
 * Returns `buffer`. */
const char *wrapped_copy_text(char *buffer, size_t size, const char *text);

/* region_begin_call with a value: in the wrapper's own frame, which is the call's scope. */
static inline void wrapped_begin(region_id region, struct region_value value)
{
	region_begin_call(region);
	region_values(&value, 1);
}
/* region_end with what the call returned: an error number (0: none) ... */
void wrapped_end_error(region_id region, int error);
/* ... or a result, called `name`, with -1 for an error in errno. */
void wrapped_end_result(region_id region, const char *name, int64_t result);
/* A call that did not wait, with its value and error number. */
void wrapped_whole(region_id region, uint64_t begin_ticks, struct region_value value, int error);
/* region_mark with a value. */
void wrapped_mark(struct wrapped_call *call, struct region_value value);

/* Lists with commas in them, as one argument of a macro. */
#define PARAMETERS(...) (__VA_ARGS__)
#define ARGUMENTS(...)  (__VA_ARGS__)

/* Defines wrapped_NAME of a call that says in errno what went wrong: a region with `value`, which
 * ends with the result, called `name`. */
#define WRAPPED_RESULT(type, symbol, shown, category, value, name, parameters, arguments)          \
	WRAPPED_CALL_AS(symbol, shown, category);                                                  \
	static type wrapped_##symbol parameters                                                    \
	{                                                                                          \
		region_id region = wrapped_recording(&call_##symbol);                              \
		type result;                                                                       \
		if (!region)                                                                       \
			return ORIGINAL(symbol) arguments;                                         \
		wrapped_begin(region, value);                                                      \
		result = ORIGINAL(symbol) arguments;                                               \
		wrapped_end_result(region, name, (int64_t)result);                                 \
		return result;                                                                     \
	}

#endif
