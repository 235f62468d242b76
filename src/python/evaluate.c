/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Up to 3.11: the interpreter lets its evaluation of frames be replaced (PEP 523), for all threads
 * at once. What stands there calls the interpreter's own, with the region around it. It sees
 * what a profile function sees, costs less, and leaves profile and trace functions to the program.
 *
 * 3.11 evaluates a function of Python that a function of Python calls without another call in C,
 * unless there is a replacement: deep recursion takes C stack then, which it does not otherwise.
 * Where a quarter of a thread's stack is used, the replacement is taken away until the thread is
 * back.
 */
#include "python/evaluate.h"

#include <sys/resource.h>

#include "common/syscalls.h"
#include "core/notices.h"
#include "core/threads.h"
#include "python/coverage.h"
#include "python/functions.h"
#include "python/sections.h"
#include "regions/state.h"

#define CODE_FLAG_GENERATORS  (0x20u | 0x80u | 0x200u) /* also coroutines, asynchronous ones */
#define CODE_FLAG_OPTIMIZED   1u
#define FRAME_OWNER_GENERATOR 1u
/* 3.11: _PyInterpreterFrame.f_locals, PyFunctionObject.func_version */
#define FRAME_NAMES_OFFSET      24u
#define FUNCTION_VERSION_OFFSET 128u
#define FUNCTION_VERSION_FIRST  0x80000000u
#define INTERPRETER_BYTES_MAX   65536u
#define THREAD_STATE_BYTES      512u
/* PyTrace_* */
#define PROFILE_EVENT_C_CALL      4
#define PROFILE_EVENT_C_EXCEPTION 5
#define PROFILE_EVENT_C_RETURN    6

typedef void *(*evaluate_3_8)(void *frame, int throws);

static struct {
	void *original; /* what was there before */
	bool records_builtins, covers_functions;
	uint32_t profile_offset; /* of the profile function in PyThreadState; 0: not known yet */
	_Atomic bool has_yielded, has_told_depth, is_off;
} evaluation;

/* The part of the thread's stack in which calls are not recorded. Stacks of coroutines lie outside.
 */
static __thread struct {
	uint64_t low, deep_bytes;
	bool is_known;
} own_stack;

/* ---- which calls are left alone ---- */

/* The main thread's stack grows until its limit. */
static uint64_t get_stack_size(const struct unwind_stack_bounds *bounds)
{
	uint64_t size = bounds->high - bounds->low;
	struct rlimit limit;

	if (sys_gettid() == sys_getpid() &&
	    !sys_call4(SYS_prlimit64, 0, RLIMIT_STACK, 0, (long)&limit) && limit.rlim_cur < size)
		size = limit.rlim_cur;
	return size;
}

/* Builds with other structures than usual (Py_TRACE_REFS) are left alone: what stands in the place
 * of a frame's code is none. */
static bool frame_has_code(const void *frame)
{
	uint64_t code = python_read_word((uint64_t)(uintptr_t)frame, kymo_python.layout.frame_code);
	uint64_t type;

	return memory_is_plausible_pointer(code) &&
	       memory_read_checked(code + PYTHON_OBJECT_TYPE_OFFSET, &type, sizeof(type)) &&
	       type == (uint64_t)(uintptr_t)kymo_python.functions[PYTHON_CODE_TYPE];
}

static void tell(const char *text)
{
	notices_post(kymo_regions.background, SPOOL_NOTICE_FALLBACK, 0, text, NULL);
}

/* The thread's first call. */
static __attribute__((noinline)) void look_at_own_stack(const void *frame)
{
	const struct thread *thread = kymo_thread;

	own_stack.is_known = thread != NULL;
	if (!frame_has_code(frame)) {
		own_stack.deep_bytes = UINT64_MAX;
		if (!atomic_exchange(&evaluation.is_off, true))
			tell("calls of Python functions are not recorded: this build of Python is "
			     "not supported");
	} else if (thread && thread->stack_bounds.high > thread->stack_bounds.low) {
		uint64_t size = get_stack_size(&thread->stack_bounds);

		own_stack.low = thread->stack_bounds.high - size;
		own_stack.deep_bytes = size / 4;
	}
}

static void count_deep_call(void)
{
	if (atomic_load_explicit(&evaluation.is_off, memory_order_relaxed))
		return;
	spool_count_loss(kymo_regions.spool, SPOOL_LOSS_REGION_DEPTH);
	if (!atomic_exchange(&evaluation.has_told_depth, true))
		tell("functions of Python recursed until a quarter of a thread's stack was used: "
		     "calls "
		     "below that are not recorded");
}

static inline bool call_is_left_alone(const void *frame)
{
	if (__builtin_expect(!own_stack.is_known, 0))
		look_at_own_stack(frame);
	return __builtin_expect((uint64_t)(uintptr_t)__builtin_frame_address(0) - own_stack.low <
					own_stack.deep_bytes,
				0);
}

/* ---- functions written in C ---- */

/* The program's own profile function takes the place of kymo's; then it is the program's. */
static __attribute__((noinline)) void note_program_profiles(void)
{
	if (!atomic_exchange(&evaluation.has_yielded, true))
		notices_post(
			kymo_regions.background, SPOOL_NOTICE_CONFLICT, 0,
			"the program has a profile function of its own (sys.setprofile): calls "
			"of functions written in C are not recorded while it is there",
			NULL);
}

static int record_c_call(python_object *context, void *frame, int event, python_object *argument)
{
	(void)context;
	(void)frame;
	if (event == PROFILE_EVENT_C_CALL && !python_is_recording())
		return 0;
	if (event == PROFILE_EVENT_C_CALL)
		region_begin(python_find_region_of_c_function(argument));
	else if (event == PROFILE_EVENT_C_RETURN || event == PROFILE_EVENT_C_EXCEPTION)
		python_end_function(python_find_region_of_c_function(argument));
	return 0;
}

static void set_profile_function(void)
{
	PYTHON_FUNCTION(PYTHON_SET_PROFILE, void (*)(python_profile_function, python_object *))
	(record_c_call, NULL);
}

/* Where in the state of a thread its profile function stands: where kymo's is, once it was set. */
static void find_profile_offset(const uint8_t *thread)
{
	for (uint32_t at = 0; at + 8 <= THREAD_STATE_BYTES; at += 8) {
		if (python_read_word((uint64_t)(uintptr_t)thread, at) ==
		    (uint64_t)(uintptr_t)record_c_call) {
			evaluation.profile_offset = at;
			return;
		}
	}
}

/* The thread's profile function is kymo's, unless the program has one. */
static void keep_profile_function(uint8_t *thread)
{
	uint64_t function;

	if (!evaluation.profile_offset) {
		set_profile_function();
		find_profile_offset(thread);
		return;
	}
	function = python_read_word((uint64_t)(uintptr_t)thread, evaluation.profile_offset);
	if (!function)
		set_profile_function();
	else if (function != (uint64_t)(uintptr_t)record_c_call)
		note_program_profiles();
}

static inline void prepare_thread(void)
{
	if (__builtin_expect(evaluation.records_builtins, 0))
		keep_profile_function(PYTHON_FUNCTION(PYTHON_GET_THREAD, uint8_t * (*)(void))());
}

/* ---- 3.8 to 3.10 ---- */

static void note_frame_runs(const void *frame)
{
	if (python_is_recording())
		python_coverage_note_call(python_read_word((uint64_t)(uintptr_t)frame,
							   kymo_python.layout.frame_code));
}

static inline region_id find_region_of_frame(const void *frame)
{
	return python_find_region_of_code(
		python_read_word((uint64_t)(uintptr_t)frame, kymo_python.layout.frame_code));
}

static void *evaluate_before_3_9(void *frame, int throws)
{
	evaluate_3_8 original = (evaluate_3_8)evaluation.original;
	region_id region;
	void *result;

	if (call_is_left_alone(frame)) {
		count_deep_call();
		return original(frame, throws);
	}
	prepare_thread();
	if (__builtin_expect(evaluation.covers_functions, 0)) {
		note_frame_runs(frame);
		return original(frame, throws);
	}
	region = find_region_of_frame(frame);
	if (!region || !python_is_recording())
		return original(frame, throws);
	region_begin(region);
	result = original(frame, throws);
	region_end(region);
	return result;
}

static void *evaluate_from_3_9(void *thread, void *frame, int throws)
{
	python_evaluate original = (python_evaluate)evaluation.original;
	region_id region;
	void *result;

	if (call_is_left_alone(frame)) {
		count_deep_call();
		return original(thread, frame, throws);
	}
	prepare_thread();
	if (__builtin_expect(evaluation.covers_functions, 0)) {
		note_frame_runs(frame);
		return original(thread, frame, throws);
	}
	region = find_region_of_frame(frame);
	if (!region || !python_is_recording())
		return original(thread, frame, throws);
	region_begin(region);
	result = original(thread, frame, throws);
	region_end(region);
	return result;
}

/* ---- 3.11 ---- */

static python_object *get_interpreter(void)
{
	return PYTHON_FUNCTION(PYTHON_GET_INTERPRETER, python_object * (*)(void))();
}

static void set_evaluate(python_object *interpreter, void *function)
{
	PYTHON_FUNCTION(PYTHON_SET_EVALUATE, void (*)(python_object *, void *))
	(interpreter, function);
}

static void *get_evaluate(python_object *interpreter)
{
	return PYTHON_FUNCTION(PYTHON_GET_EVALUATE, void *(*)(python_object *))(interpreter);
}

static void *evaluate_3_11(void *thread, void *frame, int throws);

/* Below this call functions of Python need no C stack. */
static __attribute__((noinline)) void *evaluate_without_stack(void *thread, void *frame, int throws)
{
	python_object *interpreter = get_interpreter();
	bool is_ours = get_evaluate(interpreter) == (void *)evaluate_3_11;
	void *result;

	count_deep_call();
	if (is_ours)
		set_evaluate(interpreter, evaluation.original);
	result = ((python_evaluate)evaluation.original)(thread, frame, throws);
	if (is_ours && get_evaluate(interpreter) == evaluation.original)
		set_evaluate(interpreter, (void *)evaluate_3_11);
	return result;
}

/* The call of a generator's function makes the generator, and is none of its body's. */
static inline bool frame_makes_generator(const uint8_t *frame, uint64_t code)
{
	uint32_t flags = *(const uint32_t *)(uintptr_t)(code + kymo_python.code_flags_offset);

	return flags & CODE_FLAG_GENERATORS &&
	       frame[kymo_python.layout.frame_owner] != FRAME_OWNER_GENERATOR;
}

/* Releases of 3.11 before the middle of 2023 evaluate a class's __getitem__ in the call of its
 * caller also where there is a replacement. They do so for functions whose version fits into 16
 * bits: that of a __getitem__ is made one that does not, unique as versions are, when the body of
 * its class has run. */
static void set_large_version(uint64_t function)
{
	static _Atomic uint32_t next = FUNCTION_VERSION_FIRST;
	uint32_t *version = (uint32_t *)(uintptr_t)(function + FUNCTION_VERSION_OFFSET);

	if (*version < FUNCTION_VERSION_FIRST)
		*version = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed);
}

static void set_version_of_subscription(uint64_t names)
{
	uint64_t function = (uint64_t)(uintptr_t)PYTHON_FUNCTION(
		PYTHON_GET_DICTIONARY_ITEM,
		python_object * (*)(uint64_t, const char *))(names, "__getitem__");

	if (function && python_object_has_type(function, PYTHON_FUNCTION_TYPE))
		set_large_version(function);
}

/* The names that the body of a class, or of a module, defines; 0: it is neither. */
static inline uint64_t get_names_of_body(const void *frame, uint64_t code)
{
	uint32_t flags = *(const uint32_t *)(uintptr_t)(code + kymo_python.code_flags_offset);
	uint64_t names;

	if (__builtin_expect(flags & CODE_FLAG_OPTIMIZED, 1))
		return 0;
	names = python_read_word((uint64_t)(uintptr_t)frame, FRAME_NAMES_OFFSET);
	return names && python_object_has_type(names, PYTHON_DICTIONARY_TYPE) ? names : 0;
}

static void *evaluate_3_11(void *thread, void *frame, int throws)
{
	uint64_t names;
	python_evaluate original = (python_evaluate)evaluation.original;
	uint64_t code = python_read_word((uint64_t)(uintptr_t)frame, kymo_python.layout.frame_code);
	region_id region;
	void *result;

	if (call_is_left_alone(frame))
		return evaluate_without_stack(thread, frame, throws);
	prepare_thread();
	if (__builtin_expect(evaluation.covers_functions, 0))
		note_frame_runs(frame);
	region = evaluation.covers_functions ? 0 : python_find_region_of_code(code);
	if (!python_is_recording())
		region = 0;
	names = get_names_of_body(frame, code);
	if ((!region && !names) || frame_makes_generator(frame, code))
		return original(thread, frame, throws);
	region_begin(region);
	result = original(thread, frame, throws);
	region_end(region);
	if (names && result)
		set_version_of_subscription(names);
	return result;
}

/* ---- installation ---- */

/* 3.8 has no function for it: the only word that is the evaluation function's address is set. */
static bool replace_in_interpreter(uint8_t *interpreter)
{
	for (uint32_t at = 0; at < INTERPRETER_BYTES_MAX; at += 8) {
		uint64_t word;

		if (!memory_read_checked((uint64_t)(uintptr_t)(interpreter + at), &word, 8))
			return false;
		if (word == (uint64_t)(uintptr_t)evaluate_before_3_9)
			return true;
		if (word != (uint64_t)(uintptr_t)kymo_python.functions[PYTHON_EVALUATE_FRAME])
			continue;
		evaluation.original = (void *)(uintptr_t)word;
		*(void **)(void *)(interpreter + at) = (void *)evaluate_before_3_9;
		return true;
	}
	return false;
}

bool python_evaluate_install(bool records_builtins)
{
	python_object *interpreter = get_interpreter();
	void *function =
		kymo_python.layout.minor == 11 ? (void *)evaluate_3_11 : (void *)evaluate_from_3_9;

	evaluation.covers_functions = kymo_python.options->covers_functions;
	evaluation.records_builtins = records_builtins && !evaluation.covers_functions;
	if (kymo_python.layout.minor == 8)
		return replace_in_interpreter((uint8_t *)interpreter);
	if (get_evaluate(interpreter) == function)
		return true; /* the program made the module once more */
	evaluation.original = get_evaluate(interpreter);
	set_evaluate(interpreter, function);
	return get_evaluate(interpreter) == function;
}
