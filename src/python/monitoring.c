/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * From 3.12 on: sys.monitoring (PEP 669) tells tools what begins and ends, in all threads of the
 * interpreter, and calls functions written in C as directly as it can. Functions
 * that are not recorded call no tool: their places are disabled at their first event.
 *
 * What was open when the tool began ends outside of everything that began since, on each thread: so
 * a function of which no call is open has begun before.
 */
#include "python/monitoring.h"

#include "common/array.h"
#include "python/coverage.h"
#include "python/functions.h"
#include "python/sections.h"

/* vectorcallfunc: the highest bit of the count says something that is of no interest here. */
typedef python_object *(*vectorcall)(python_object *self, python_object *const *arguments,
				     size_t count, python_object *names);
#define ARGUMENTS_COUNT_MASK (SIZE_MAX >> 1)

/* An object that is called: PyObject, and behind it what is its own. */
struct callback {
	uint64_t reference_count, type;
	vectorcall function;
};

/* PyMemberDef, PyType_Slot, PyType_Spec, and values of their fields in all versions */
struct python_member {
	const char *name;
	int type;
	intptr_t offset;
	int flags;
	const char *text;
};

struct python_type_slot {
	int slot;
	void *value;
};

struct python_type_specification {
	const char *name;
	int size, item_size;
	unsigned flags;
	struct python_type_slot *slots;
};

#define TOOL_NAME                "kymo"
#define MEMBER_TYPE_SIZE         19 /* Py_T_PYSSIZET */
#define MEMBER_READ_ONLY         1
#define TYPE_SLOT_CALL           50 /* Py_tp_call */
#define TYPE_SLOT_MEMBERS        72 /* Py_tp_members */
#define TYPE_HAS_VECTORCALL      (1u << 11)
#define TYPE_IS_NOT_INSTANTIABLE (1u << 7)

static python_object *disable; /* sys.monitoring.DISABLE */

static inline python_object *answer_none(void)
{
	return kymo_python.functions[PYTHON_NONE]; /* immortal in these versions */
}

/* The function has no region: its events end here, unless it may get a region later. */
static __attribute__((noinline)) python_object *answer_disable(python_object *const *arguments)
{
	if (!python_code_is_left_out((uint64_t)(uintptr_t)arguments[0]))
		return answer_none();
	PYTHON_FUNCTION(PYTHON_RETAIN, void (*)(python_object *))(disable);
	return disable;
}

static inline region_id find_region(python_object *const *arguments)
{
	return python_find_region_of_code((uint64_t)(uintptr_t)arguments[0]);
}

static python_object *handle_begin(python_object *self, python_object *const *arguments,
				   size_t count, python_object *names)
{
	region_id region = find_region(arguments);

	(void)self;
	(void)names;
	(void)count;
	if (__builtin_expect(!region, 0))
		return answer_disable(arguments);
	if (python_is_recording())
		region_begin(region);
	return answer_none();
}

static python_object *handle_end(python_object *self, python_object *const *arguments, size_t count,
				 python_object *names)
{
	region_id region = find_region(arguments);

	(void)self;
	(void)names;
	(void)count;
	if (__builtin_expect(!region, 0))
		return answer_disable(arguments);
	python_end_function(region);
	return answer_none();
}

/* Events of exceptions belong to no place that could be disabled. */
static python_object *handle_throw(python_object *self, python_object *const *arguments,
				   size_t count, python_object *names)
{
	region_id region = find_region(arguments);

	(void)self;
	(void)names;
	(void)count;
	if (region && python_is_recording())
		region_begin(region);
	return answer_none();
}

static python_object *handle_unwind(python_object *self, python_object *const *arguments,
				    size_t count, python_object *names)
{
	region_id region = find_region(arguments);

	(void)self;
	(void)names;
	(void)count;
	if (region)
		python_end_function(region);
	return answer_none();
}

/* Of code, place, what is called, and its first argument. */
static python_object *handle_c_call(python_object *self, python_object *const *arguments,
				    size_t count, python_object *names)
{
	(void)self;
	(void)names;
	if ((count & ARGUMENTS_COUNT_MASK) >= 3 && python_is_recording())
		region_begin(python_find_region_of_c_callable(arguments[2]));
	return answer_none();
}

static python_object *handle_c_end(python_object *self, python_object *const *arguments,
				   size_t count, python_object *names)
{
	region_id region = (count & ARGUMENTS_COUNT_MASK) >= 3
				   ? python_find_region_of_c_callable(arguments[2])
				   : 0;

	(void)self;
	(void)names;
	if (region)
		python_end_function(region);
	return answer_none();
}

/* ---- coverage ---- */

static python_object *answer_done(bool is_done)
{
	if (!is_done)
		return answer_none();
	PYTHON_FUNCTION(PYTHON_RETAIN, void (*)(python_object *))(disable);
	return disable;
}

static python_object *handle_covered_call(python_object *self, python_object *const *arguments,
					  size_t count, python_object *names)
{
	(void)self;
	(void)count;
	(void)names;
	return answer_done(python_is_recording() &&
			   python_coverage_note_call((uint64_t)(uintptr_t)arguments[0]));
}

/* Of code and the line's number. */
static python_object *handle_covered_line(python_object *self, python_object *const *arguments,
					  size_t count, python_object *names)
{
	long line;

	(void)self;
	(void)names;
	if ((count & ARGUMENTS_COUNT_MASK) < 2 || !python_is_recording())
		return answer_none();
	line = PYTHON_FUNCTION(PYTHON_LONG_AS_LONG, long (*)(python_object *))(arguments[1]);
	return answer_done(line <= 0 || python_coverage_note_line((uint64_t)(uintptr_t)arguments[0],
								  (uint32_t)line));
}

/* ---- installation ---- */

static const struct monitored_event {
	const char *name;
	vectorcall callback;
	bool is_of_c_functions;
} call_events[] = {
	{"PY_START", handle_begin, false}, {"PY_RESUME", handle_begin, false},
	{"PY_THROW", handle_throw, false}, {"PY_RETURN", handle_end, false},
	{"PY_YIELD", handle_end, false},   {"PY_UNWIND", handle_unwind, false},
	{"CALL", handle_c_call, true},     {"C_RETURN", handle_c_end, true},
	{"C_RAISE", handle_c_end, true},
};

static const struct monitored_event coverage_events[] = {
	{"PY_START", handle_covered_call, false},
	{"PY_RESUME", handle_covered_call, false},
	{"LINE", handle_covered_line, false},
};

typedef python_object *(*call_method)(python_object *, const char *, const char *, ...);

/* Methods return an object, which is not needed. */
static bool is_done(python_object *result)
{
	if (!result)
		python_clear_error();
	python_release(result);
	return result != NULL;
}

/* Numbers that the interpreter's documentation gives to no kind of tool in use. */
static const int tool_numbers[] = {5, 4, 3};

/* Is kymo a tool of the interpreter already? Programs may make the first module once more. */
static bool has_tool(python_object *monitoring)
{
	bool found = false;

	for (unsigned i = 0; !found && i < ARRAY_SIZE(tool_numbers); i++) {
		python_object *name = PYTHON_FUNCTION(PYTHON_CALL_METHOD, call_method)(
			monitoring, "get_tool", "i", tool_numbers[i]);

		if (!name)
			python_clear_error();
		found = name && name != kymo_python.functions[PYTHON_NONE] &&
			!PYTHON_FUNCTION(PYTHON_COMPARE_TEXT,
					 int (*)(python_object *, const char *))(name, TOOL_NAME);
		python_release(name);
	}
	return found;
}

static int take_tool(python_object *monitoring)
{
	for (unsigned i = 0; i < ARRAY_SIZE(tool_numbers); i++) {
		if (is_done(PYTHON_FUNCTION(PYTHON_CALL_METHOD, call_method)(
			    monitoring, "use_tool_id", "is", tool_numbers[i], TOOL_NAME)))
			return tool_numbers[i];
	}
	return -1;
}

/* The type of callbacks: objects that are called without anything in between (PEP 590). A C
 * function object would check the depth of recursion first, and cost more. One for each
 * interpreter. */
static python_object *make_callback_type(void)
{
	static struct python_member members[] = {{"__vectorcalloffset__", MEMBER_TYPE_SIZE,
						  offsetof(struct callback, function),
						  MEMBER_READ_ONLY, NULL},
						 {NULL, 0, 0, 0, NULL}};
	static struct python_type_slot slots[] = {
		{TYPE_SLOT_CALL, NULL}, {TYPE_SLOT_MEMBERS, members}, {0, NULL}};
	static struct python_type_specification specification = {
		"kymo.callback", sizeof(struct callback), 0,
		TYPE_HAS_VECTORCALL | TYPE_IS_NOT_INSTANTIABLE, slots};

	slots[0].value = kymo_python.functions[PYTHON_VECTORCALL_CALL];
	return PYTHON_FUNCTION(PYTHON_NEW_TYPE,
			       python_object *
				       (*)(struct python_type_specification *))(&specification);
}

static bool register_callback(python_object *monitoring, python_object *type, int tool, int event,
			      vectorcall function)
{
	struct callback *callback = PYTHON_FUNCTION(
		PYTHON_ALLOCATE, struct callback * (*)(python_object *, intptr_t))(type, 0);
	bool done;

	if (!callback)
		return is_done(NULL);
	callback->function = function;
	done = is_done(PYTHON_FUNCTION(PYTHON_CALL_METHOD, call_method)(
		monitoring, "register_callback", "iiO", tool, event, callback));
	python_release((python_object *)callback);
	return done;
}

/* The number of an event; 0: there is none of this name. */
static int get_event(python_object *events, const char *name)
{
	python_object *number = python_get_attribute(events, name);
	long value =
		number ? PYTHON_FUNCTION(PYTHON_LONG_AS_LONG, long (*)(python_object *))(number)
		       : 0;

	if (!number)
		python_clear_error();
	python_release(number);
	return (int)value;
}

/* The events that are wanted: of coverage without lines, all but the last one. */
static const struct monitored_event *choose_events(bool records_builtins, unsigned *ret_count)
{
	*ret_count = ARRAY_SIZE(coverage_events) - !kymo_python.options->covers_lines;
	if (kymo_python.options->covers_functions)
		return coverage_events;
	*ret_count = ARRAY_SIZE(call_events);
	while (!records_builtins && call_events[*ret_count - 1].is_of_c_functions)
		--*ret_count;
	return call_events;
}

static bool register_all(python_object *monitoring, python_object *events, python_object *type,
			 bool records_builtins)
{
	int tool = take_tool(monitoring), wanted = 0;
	unsigned count;
	const struct monitored_event *chosen = choose_events(records_builtins, &count);

	if (tool < 0)
		return false;
	for (unsigned i = 0; i < count; i++) {
		int event = get_event(events, chosen[i].name);

		if (!event || !register_callback(monitoring, type, tool, event, chosen[i].callback))
			return false;
		wanted |= event;
	}
	return is_done(PYTHON_FUNCTION(PYTHON_CALL_METHOD, call_method)(monitoring, "set_events",
									"ii", tool, wanted));
}

bool python_monitoring_install(bool records_builtins)
{
	python_object *monitoring =
		PYTHON_FUNCTION(PYTHON_GET_SYS_OBJECT,
				python_object * (*)(const char *))("monitoring"); /* borrowed */
	python_object *events = monitoring ? python_get_attribute(monitoring, "events") : NULL;
	python_object *type = NULL;
	bool done;

	if (!events) {
		if (monitoring)
			python_clear_error();
		return false;
	}
	if (!disable)
		disable = python_get_attribute(monitoring, "DISABLE");
	done = has_tool(monitoring);
	if (!done && disable)
		type = make_callback_type();
	done = done || (type && register_all(monitoring, events, type, records_builtins));
	if (!done)
		python_clear_error();
	python_release(type);
	python_release(events);
	return done;
}
