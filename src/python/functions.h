/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The regions of Python functions: a code object is given its name, and the user's expressions say
 * whether it is recorded, when it is called first. After that it is found in the table of code
 * objects.
 */
#ifndef KYMO_PYTHON_FUNCTIONS_H
#define KYMO_PYTHON_FUNCTIONS_H

#include "python/capi.h"
#include "regions/state.h"

/* For a thread that holds the interpreter's lock. */
region_id python_name_code(uint64_t code);
/* Of a function written in C, a PyCFunction object; 0 for anything else. */
region_id python_find_region_of_c_function(const python_object *function);
/* The same as it is called: a method of a built-in type may be called through its descriptor. */
region_id python_find_region_of_c_callable(const python_object *callable);

#define PYTHON_OBJECT_TYPE_OFFSET 8

static inline uint64_t python_read_word(uint64_t address, uint32_t offset)
{
	return *(const uint64_t *)(uintptr_t)(address + offset);
}

/* Is it of this very type (a place in the table of functions)? */
static inline bool python_object_has_type(uint64_t object, enum python_function type)
{
	return python_read_word(object, PYTHON_OBJECT_TYPE_OFFSET) ==
	       (uint64_t)(uintptr_t)kymo_python.functions[type];
}

static inline bool python_slot_is_of_code(const struct code_slot *slot, uint64_t code)
{
	const struct python_layout *layout = &kymo_python.layout;

	return slot->name == python_read_word(code, layout->code_name) &&
	       slot->file == python_read_word(code, layout->code_file) &&
	       slot->line_table == python_read_word(code, layout->code_line_table) &&
	       slot->first_line == *(const uint32_t *)(uintptr_t)(code + layout->code_first_line);
}

/* The region of a code object; 0: its calls are not recorded. */
INTERPRETED_UNSANITIZED
static inline region_id python_find_region_of_code(uint64_t code)
{
	struct code_slot *slots = atomic_load_explicit(&code_table_slots, memory_order_relaxed);
	struct code_slot *slot = &slots[code_table_hash(code)];

	if (__builtin_expect(
		    atomic_load_explicit(&slot->address, memory_order_acquire) == code &&
			    atomic_load_explicit(&slot->has_call_region, memory_order_acquire) &&
			    python_slot_is_of_code(slot, code),
		    1))
		return slot->call_region;
	return python_name_code(code);
}

/* It has no region and will have none. */
bool python_code_is_left_out(uint64_t code);

bool python_function_is_open(region_id region);

/* Ends a call that may have begun before kymo saw any: then no call of it is open. */
static inline void python_end_function(region_id region)
{
	const struct region_thread_state *thread = kymo_region_thread;

	if (thread && ((thread->depth && thread->frames[thread->depth - 1].region == region) ||
		       python_function_is_open(region)))
		region_end(region);
}

#endif
