/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is used of Python's C API: found by name in the program's own symbol tables at run time, so
 * that nothing here depends on a version when it is compiled. Objects are addresses.
 */
#ifndef KYMO_PYTHON_CAPI_H
#define KYMO_PYTHON_CAPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/interpreters/python.h"

typedef struct python_object python_object; /* PyObject */

/* struct _inittab: a module that is part of the interpreter. */
struct python_builtin_module {
	const char *name;
	python_object *(*initialize)(void);
};

typedef void *(*python_evaluate)(void *thread, void *frame, int throws);
typedef int (*python_profile_function)(python_object *context, void *frame, int event,
				       python_object *argument);

/* Places in the table of functions below. */
enum python_function {
	PYTHON_GET_VERSION,
	PYTHON_EVALUATE_FRAME,
	PYTHON_GET_INTERPRETER,
	PYTHON_GET_EVALUATE,
	PYTHON_SET_EVALUATE,
	PYTHON_SET_PROFILE,
	PYTHON_GET_THREAD,
	PYTHON_GET_DICTIONARY_ITEM,
	PYTHON_DICTIONARY_TYPE,
	PYTHON_FUNCTION_TYPE,
	PYTHON_GET_SYS_OBJECT,
	PYTHON_GET_ATTRIBUTE,
	PYTHON_CALL_METHOD,
	PYTHON_COMPARE_TEXT,
	PYTHON_NEW_TYPE,
	PYTHON_ALLOCATE,
	PYTHON_VECTORCALL_CALL,
	PYTHON_LONG_AS_LONG,
	PYTHON_CLEAR_ERROR,
	PYTHON_RELEASE,
	PYTHON_RETAIN,
	PYTHON_NONE,
	PYTHON_CODE_TYPE,
	PYTHON_C_FUNCTION_TYPE,
	PYTHON_METHOD_DESCRIPTOR_TYPE,
	PYTHON_MODULE_TYPE,
	PYTHON_FUNCTION_COUNT
};

/* The one interpreter whose calls are recorded. */
struct python_interpreter {
	const struct python_call_options *options;
	struct python_layout layout;
	uint32_t code_flags_offset; /* PyCodeObject.co_flags, up to 3.11 */
	void *functions[PYTHON_FUNCTION_COUNT];
};

extern struct python_interpreter kymo_python;

/* Calls a function of the table. */
#define PYTHON_FUNCTION(id, type) ((type)kymo_python.functions[id])

static inline void python_clear_error(void)
{
	PYTHON_FUNCTION(PYTHON_CLEAR_ERROR, void (*)(void))();
}

static inline void python_release(python_object *object)
{
	if (object)
		PYTHON_FUNCTION(PYTHON_RELEASE, void (*)(python_object *))(object);
}

static inline python_object *python_get_attribute(python_object *object, const char *name)
{
	return PYTHON_FUNCTION(PYTHON_GET_ATTRIBUTE,
			       python_object * (*)(python_object *, const char *))(object, name);
}

#endif
