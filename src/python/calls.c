/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See calls.h. Something has to be called by a thread that holds the interpreter's lock, in each
 * interpreter, before the program's first line: the table of modules that are part of the
 * interpreter (PyImport_Inittab, which programs that embed Python may change as well) has a
 * function that makes the module _thread, which the import system asks for first of all. Ours takes
 * its place and calls it.
 */
#include "python/calls.h"

#include <link.h>
#include <string.h>

#include "common/array.h"
#include "common/symbol_hash.h"
#include "core/notices.h"
#include "python/capi.h"
#include "python/evaluate.h"
#include "python/expressions.h"
#include "python/monitoring.h"
#include "python/sections.h"
#include "regions/state.h"

#define FIRST_MODULE_NAME   "_thread"
#define BUILTIN_MODULES_MAX 4096u
#define OLDEST_MINOR        8u
#define MONITORING_MINOR    12u

struct python_interpreter kymo_python;

static struct {
	struct runtime *runtime;
	python_object *(*initialize_module)(void);
	bool is_found;
	_Atomic bool is_told;
	uint64_t python_runtime; /* address of _PyRuntime */
	uint64_t unrecorded_interpreters;
} calls;

/* Names of the table of functions; the last version that needs one, and the first. */
static const struct wanted_function {
	const char *name;
	uint8_t first_minor, last_minor;
} wanted_functions[PYTHON_FUNCTION_COUNT] = {
	[PYTHON_GET_VERSION] = {"Py_GetVersion", 0, 255},
	[PYTHON_EVALUATE_FRAME] = {"_PyEval_EvalFrameDefault", 0, 11},
	[PYTHON_GET_INTERPRETER] = {"PyInterpreterState_Get", 9, 11},
	[PYTHON_GET_EVALUATE] = {"_PyInterpreterState_GetEvalFrameFunc", 9, 11},
	[PYTHON_SET_EVALUATE] = {"_PyInterpreterState_SetEvalFrameFunc", 9, 11},
	[PYTHON_SET_PROFILE] = {"PyEval_SetProfile", 0, 11},
	[PYTHON_GET_THREAD] = {"PyThreadState_Get", 0, 11},
	[PYTHON_GET_DICTIONARY_ITEM] = {"PyDict_GetItemString", 11, 11},
	[PYTHON_DICTIONARY_TYPE] = {"PyDict_Type", 11, 11},
	[PYTHON_FUNCTION_TYPE] = {"PyFunction_Type", 11, 11},
	[PYTHON_GET_SYS_OBJECT] = {"PySys_GetObject", 12, 255},
	[PYTHON_GET_ATTRIBUTE] = {"PyObject_GetAttrString", 12, 255},
	[PYTHON_CALL_METHOD] = {"PyObject_CallMethod", 12, 255},
	[PYTHON_COMPARE_TEXT] = {"PyUnicode_CompareWithASCIIString", 12, 255},
	[PYTHON_NEW_TYPE] = {"PyType_FromSpec", 12, 255},
	[PYTHON_ALLOCATE] = {"PyType_GenericAlloc", 12, 255},
	[PYTHON_VECTORCALL_CALL] = {"PyVectorcall_Call", 12, 255},
	[PYTHON_LONG_AS_LONG] = {"PyLong_AsLong", 12, 255},
	[PYTHON_CLEAR_ERROR] = {"PyErr_Clear", 12, 255},
	[PYTHON_RELEASE] = {"Py_DecRef", 12, 255},
	[PYTHON_RETAIN] = {"Py_IncRef", 12, 255},
	[PYTHON_NONE] = {"_Py_NoneStruct", 12, 255},
	[PYTHON_CODE_TYPE] = {"PyCode_Type", 0, 255},
	[PYTHON_C_FUNCTION_TYPE] = {"PyCFunction_Type", 0, 255},
	[PYTHON_METHOD_DESCRIPTOR_TYPE] = {"PyMethodDescr_Type", 0, 255},
	[PYTHON_MODULE_TYPE] = {"PyModule_Type", 0, 255},
};

#define INTERPRETERS_CREATED_MAX (1u << 20)
#define NEXT_ID_OFFSET           16u /* in _PyRuntime, from the list of interpreters on; all versions */

static void tell_once(const char *text, const char *more)
{
	if (!atomic_exchange(&calls.is_told, true))
		notices_post(&calls.runtime->background, SPOOL_NOTICE_FALLBACK, 0, text, more);
}

/* ---- the interpreter starts ---- */

/* Called by the interpreter, which holds its lock. */
static python_object *initialize_first_module(void)
{
	python_object *module = calls.initialize_module();
	bool records_builtins = calls.runtime->options.python_calls.records_builtins, done;

	if (!module || !runtime_is_active())
		return module;
	python_expressions_compile(&calls.runtime->options.python_calls);
	done = kymo_python.layout.minor >= MONITORING_MINOR
		       ? python_monitoring_install(records_builtins)
		       : python_evaluate_install(records_builtins);
	if (!done)
		tell_once("calls of Python functions are not recorded: the interpreter does not "
			  "let kymo see them",
			  NULL);
	return module;
}

/* ---- finding it ---- */

static void *find_symbol(const struct symbol_hash_tables *tables, uint64_t base, const char *name)
{
	const Elf64_Sym *symbol = symbol_hash_find_symbol(tables, SYMBOL_HASH_FUNCTIONS_AND_DATA,
							  name, symbol_hash_compute_gnu_hash(name));

	return symbol ? (void *)(uintptr_t)(base + symbol->st_value) : NULL;
}

/* "3.11.2 (main, ...": 11; 0: it is another language. */
static uint32_t parse_minor_version(const char *text)
{
	uint32_t minor = 0;

	if (strncmp(text, "3.", 2) != 0)
		return 0;
	for (text += 2; *text >= '0' && *text <= '9'; text++)
		minor = minor * 10 + (uint32_t)(*text - '0');
	return minor;
}

/* The layout of its structures; false: not supported. */
static bool read_layout(uint32_t minor, uint64_t runtime)
{
	const struct python_layout *layout =
		minor >= OLDEST_MINOR ? python_layout_find(minor) : NULL;

	if (!layout)
		return false;
	if (layout->debug_offsets.size)
		return python_layout_copy_debug_offsets(&kymo_python.layout, layout, runtime);
	kymo_python.layout = *layout;
	kymo_python.code_flags_offset = minor == 11 ? 48 : 36;
	return true;
}

static bool find_functions(const struct symbol_hash_tables *tables, uint64_t base, uint32_t minor)
{
	for (unsigned i = 0; i < PYTHON_FUNCTION_COUNT; i++) {
		const struct wanted_function *wanted = &wanted_functions[i];
		const char *name = i == PYTHON_GET_INTERPRETER && minor == OLDEST_MINOR
					   ? "_PyInterpreterState_Get"
					   : wanted->name;

		kymo_python.functions[i] = find_symbol(tables, base, name);
		if (!kymo_python.functions[i] && minor >= wanted->first_minor &&
		    minor <= wanted->last_minor)
			return false;
	}
	return kymo_python.functions[PYTHON_GET_INTERPRETER] || minor >= MONITORING_MINOR;
}

static bool replace_first_module(struct python_builtin_module *modules)
{
	for (unsigned i = 0; i < BUILTIN_MODULES_MAX && modules[i].name; i++) {
		if (strcmp(modules[i].name, FIRST_MODULE_NAME) != 0)
			continue;
		if (modules[i].initialize == initialize_first_module)
			return true;
		calls.initialize_module = modules[i].initialize;
		modules[i].initialize = initialize_first_module;
		return true;
	}
	return false;
}

static bool prepare_interpreter(const struct symbol_hash_tables *tables, uint64_t base,
				uint64_t runtime)
{
	struct python_builtin_module **modules = find_symbol(tables, base, "PyImport_Inittab");
	const char *(*get_version)(void) = (const char *(*)(void))find_symbol(
		tables, base, wanted_functions[PYTHON_GET_VERSION].name);
	uint32_t minor = get_version ? parse_minor_version(get_version()) : 0;

	return modules && *modules && minor && read_layout(minor, runtime) &&
	       find_functions(tables, base, minor) && code_table_create() &&
	       replace_first_module(*modules);
}

static int look_at_object(struct dl_phdr_info *info, size_t size, void *context)
{
	struct symbol_hash_tables tables;
	void *runtime;

	(void)size;
	(void)context;
	if (!symbol_hash_read_object(&tables, info))
		return 0;
	runtime = find_symbol(&tables, info->dlpi_addr, "_PyRuntime");
	if (!runtime)
		return 0;
	calls.is_found = true;
	calls.python_runtime = (uint64_t)(uintptr_t)runtime;
	/* Of a build without the global lock the background thread says so, in every mode. */
	if (!prepare_interpreter(&tables, info->dlpi_addr, calls.python_runtime) &&
	    !python_is_free_threaded(calls.python_runtime))
		tell_once("calls of Python functions are not recorded: this version of Python is "
			  "not supported: ",
			  *info->dlpi_name ? info->dlpi_name : "the program itself");
	return 1;
}

void python_calls_look_at_objects(void)
{
	if (calls.runtime && !calls.is_found)
		dl_iterate_phdr(look_at_object, NULL);
}

/* 3.8, 3.9 and 3.13 copy the first module for further interpreters, so kymo is not asked. How many
 * interpreters there were is a number of _PyRuntime's. */
static bool version_leaves_out_interpreters(void)
{
	uint32_t minor = kymo_python.layout.minor;

	return minor == 8 || minor == 9 || minor == 13;
}

void python_calls_run_round(void)
{
	uint64_t created;

	if (!calls.python_runtime || !version_leaves_out_interpreters() ||
	    !memory_read_checked(calls.python_runtime + kymo_python.layout.runtime_interpreters +
					 NEXT_ID_OFFSET,
				 &created, sizeof(created)) ||
	    created > INTERPRETERS_CREATED_MAX)
		return;
	for (; calls.unrecorded_interpreters + 1 < created; calls.unrecorded_interpreters++)
		spool_count_loss(kymo_regions.spool, SPOOL_LOSS_INTERPRETERS);
}

void python_calls_start(struct runtime *runtime)
{
	if (!runtime->options.python_calls.on)
		return;
	calls.runtime = runtime;
	kymo_python.options = &runtime->options.python_calls;
	atomic_store(&python_has_sections, kymo_python.options->has_sections);
	python_calls_look_at_objects();
}
