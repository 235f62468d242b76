/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Tasks of asyncio as objects, and what waits for one: a task whose awaited future is that task, or
 * a future that a callback of that task knows. Those are what gather() and wait() keep in closures
 * and wait_for() in the arguments of functools.partial().
 *
 * A thread that has the global lock reads directly here, once its task is known: the task lives as
 * long as its coroutine runs, objects that live keep what they point to, and no other thread
 * changes them. What an object has at an offset is only believed after its type has been looked at.
 */
#include "core/interpreters/python_walk.h"

#include <string.h>

#define OBJECT_TYPE_OFFSET 8
#define OBJECT_SIZE_OFFSET 16
#define TYPE_NAME_OFFSET   24
#define TYPE_FLAGS_OFFSET  168
#define TYPE_BASE_OFFSET   256
#define TYPE_FLAG_HEAP     (1ull << 9) /* it was made while the program ran */
#define TUPLE_ITEMS_OFFSET 24
#define CELL_VALUE_OFFSET  16
/* Future, and so Task: its first callback. A built-in method, from 3.10 on what wakes a task, and
 * earlier a wrapper: the task. */
#define FUTURE_CALLBACK_OFFSET 24
#define METHOD_SELF_OFFSET     24
#define WRAPPER_TASK_OFFSET    16
#define PARTIAL_ARGUMENTS      24

#define TASK_WORDS_MAX      24u
#define CLOSURE_ITEMS_MAX   8u
#define TYPE_NAME_BYTES_MAX 32u

/* ---- objects ---- */

bool python_read_object(struct python_walk *python, uint64_t address, void *to, size_t size)
{
	if (!memory_is_plausible_pointer(address))
		return false;
	if (!python->reads_objects_directly)
		return interpreted_walk_read_checked(python->walk, address, to, size);
	memory_read_directly(address, to, size);
	return true;
}

static bool read_word(struct python_walk *python, uint64_t address, uint64_t *ret)
{
	return python_read_object(python, address, ret, sizeof(*ret));
}

/* ---- types ---- */

static const struct {
	const char *name;
	enum python_type_kind kind;
	bool may_be_heap_type;
} type_names[] = {
	{"str", PYTHON_TYPE_STRING, false},
	{"int", PYTHON_TYPE_INTEGER, false},
	{"builtin_function_or_method", PYTHON_TYPE_METHOD, false},
	{"TaskWakeupMethWrapper", PYTHON_TYPE_WRAPPER, true},
	{"function", PYTHON_TYPE_FUNCTION, false},
	{"functools.partial", PYTHON_TYPE_PARTIAL, true}, /* no class in Python has such a name */
};

static enum python_type_kind read_kind_of_type(struct python_walk *python, uint64_t type)
{
	uint64_t flags, name;
	char text[TYPE_NAME_BYTES_MAX];

	if (!interpreted_walk_read_checked(python->walk, type + TYPE_FLAGS_OFFSET, &flags, 8) ||
	    !interpreted_walk_read_checked(python->walk, type + TYPE_NAME_OFFSET, &name, 8) ||
	    !interpreted_walk_read_checked(python->walk, name, text, sizeof(text)))
		return PYTHON_TYPE_UNKNOWN;
	for (unsigned i = 0; i < sizeof(type_names) / sizeof(type_names[0]); i++) {
		if (!memcmp(type_names[i].name, text, strlen(type_names[i].name) + 1))
			return flags & TYPE_FLAG_HEAP && !type_names[i].may_be_heap_type
				       ? PYTHON_TYPE_OTHER
				       : type_names[i].kind;
	}
	return PYTHON_TYPE_OTHER;
}

/* Types are remembered by their addresses, whose lowest bits have room for the kind. */
static enum python_type_kind find_kind_of_type(struct python_walk *python, uint64_t type)
{
	_Atomic uint64_t *known =
		&python->walk->interpreter->types[(type >> 5) % INTERPRETER_TYPES_KNOWN];
	uint64_t word = atomic_load_explicit(known, memory_order_relaxed);
	enum python_type_kind kind;

	if (!memory_is_plausible_pointer(type))
		return PYTHON_TYPE_UNKNOWN;
	if ((word & ~(uint64_t)PYTHON_TYPE_MASK) == type)
		return (enum python_type_kind)(word & PYTHON_TYPE_MASK);
	kind = read_kind_of_type(python, type);
	/* Others may be freed, and their addresses used again. */
	if (kind != PYTHON_TYPE_UNKNOWN && kind != PYTHON_TYPE_OTHER)
		atomic_store_explicit(known, type | kind, memory_order_relaxed);
	return kind;
}

enum python_type_kind python_find_kind_of_object(struct python_walk *python, uint64_t object)
{
	uint64_t type;

	return read_word(python, object + OBJECT_TYPE_OFFSET, &type)
		       ? find_kind_of_type(python, type)
		       : PYTHON_TYPE_UNKNOWN;
}

/* ---- tasks ---- */

bool python_read_task(struct python_walk *python, uint64_t address, struct python_task *ret)
{
	const struct python_layout *layout = python->layout;
	uint64_t words[TASK_WORDS_MAX];

	if (!python_read_object(python, address, words, layout->task_name + 8u))
		return false;
	*ret = (struct python_task){.address = address,
				    .type = words[OBJECT_TYPE_OFFSET / 8],
				    .callback = words[FUTURE_CALLBACK_OFFSET / 8],
				    .awaited = words[layout->task_coroutine / 8 - 1],
				    .coroutine = words[layout->task_coroutine / 8],
				    .name = words[layout->task_name / 8]};
	return true;
}

/* ---- what waits ---- */

/* Does the future's first callback wake a task of this type, which waits for this future? */
static bool find_waiter_of_future(struct python_walk *python, uint64_t future, uint64_t callback,
				  uint64_t type, struct python_task *ret)
{
	enum python_type_kind kind = python_find_kind_of_object(python, callback);
	uint64_t task, task_type;

	return (kind == PYTHON_TYPE_METHOD || kind == PYTHON_TYPE_WRAPPER) &&
	       read_word(python,
			 callback + (kind == PYTHON_TYPE_METHOD ? METHOD_SELF_OFFSET
								: WRAPPER_TASK_OFFSET),
			 &task) &&
	       read_word(python, task + OBJECT_TYPE_OFFSET, &task_type) && task_type == type &&
	       python_read_task(python, task, ret) && ret->awaited == future;
}

/* `future_type`: what Task is derived from; gather() has a class that is derived from it as well.
 */
static bool is_future(struct python_walk *python, uint64_t object, uint64_t future_type)
{
	uint64_t type, base;

	return read_word(python, object + OBJECT_TYPE_OFFSET, &type) &&
	       (type == future_type ||
		(read_word(python, type + TYPE_BASE_OFFSET, &base) && base == future_type));
}

static bool find_waiter_of_object(struct python_walk *python, uint64_t object,
				  const struct python_task *task, uint64_t future_type,
				  struct python_task *ret)
{
	uint64_t callback;

	return is_future(python, object, future_type) &&
	       read_word(python, object + FUTURE_CALLBACK_OFFSET, &callback) &&
	       find_waiter_of_future(python, object, callback, task->type, ret);
}

static bool find_waiter_in_tuple(struct python_walk *python, uint64_t tuple, bool has_cells,
				 const struct python_task *task, struct python_task *ret)
{
	uint64_t size, item, future_type;

	if (!read_word(python, tuple + OBJECT_SIZE_OFFSET, &size) ||
	    !read_word(python, task->type + TYPE_BASE_OFFSET, &future_type))
		return false;
	for (uint64_t i = 0; i < size && i < CLOSURE_ITEMS_MAX; i++) {
		if (read_word(python, tuple + TUPLE_ITEMS_OFFSET + i * 8, &item) &&
		    (!has_cells || read_word(python, item + CELL_VALUE_OFFSET, &item)) &&
		    find_waiter_of_object(python, item, task, future_type, ret))
			return true;
	}
	return false;
}

bool python_find_waiter_of_task(struct python_walk *python, const struct python_task *task,
				struct python_task *ret)
{
	enum python_type_kind kind = python_find_kind_of_object(python, task->callback);
	uint64_t tuple;

	if (kind == PYTHON_TYPE_METHOD || kind == PYTHON_TYPE_WRAPPER)
		return find_waiter_of_future(python, task->address, task->callback, task->type,
					     ret);
	if (kind == PYTHON_TYPE_FUNCTION)
		return read_word(python, task->callback + python->layout->function_closure,
				 &tuple) &&
		       find_waiter_in_tuple(python, tuple, true, task, ret);
	return kind == PYTHON_TYPE_PARTIAL &&
	       read_word(python, task->callback + PARTIAL_ARGUMENTS, &tuple) &&
	       find_waiter_in_tuple(python, tuple, false, task, ret);
}
