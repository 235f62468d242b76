/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions that the user names (WRAP). user_entry.S is what callers are led to; here is what is
 * recorded: the arguments at the begin and the result at the end, by the declared types
 * (common/wrap_text.h). Arguments are found where the psABI puts them (3.2.3): integers and
 * pointers in six registers, reals in eight, all others in memory in their order.
 */
#include <cpuid.h>
#include <string.h>
#include <sys/uio.h>
#include <unwind.h>

#include "common/syscalls.h"
#include "common/wrap_text.h"
#include "wrappers/got/names.h"
#include "wrappers/user_call.h"
#include "wrappers/wrapped.h"
#include "wrappers/wrappers.h"

#define USER_ENTRY_SIZE           16
#define USER_VARIADIC_STACK_WORDS 16 /* copied where the types do not tell */
#define USER_TEXT_VALUE_BYTES     128
#define MEMORY_PAGE_SIZE          4096u
#define DWARF_RBP                 6 /* psABI, figure 3.36 */

struct user_function {
	struct wrapped_function call;
	struct wrap_spec_function spec;
	uint32_t stack_word_count; /* of arguments in memory */
	bool has_guessed_words;    /* the last of them, which may not be there */
	char name[128], library[128];
};

extern const uint8_t user_entries[];
extern uint8_t user_vectors;
void *user_enter(struct user_call *call);
void user_leave(struct user_call *call);
_Unwind_Reason_Code user_personality(int version, _Unwind_Action actions,
				     _Unwind_Exception_Class exception_class,
				     struct _Unwind_Exception *exception,
				     struct _Unwind_Context *context);

uint8_t user_vectors;
static struct user_function *user_functions;
static uint32_t user_function_count;

/* ---- arguments ---- */

/* Where the next argument of each kind is. */
struct argument_cursor {
	const struct user_call *call;
	uint32_t integers_taken, reals_taken, stack_words_taken;
};

static uint64_t read_next_stack_word(struct argument_cursor *cursor)
{
	return cursor->call->stack_arguments[cursor->stack_words_taken++];
}

static uint64_t read_next_argument_bits(struct argument_cursor *cursor,
					struct wrapped_value_type type)
{
	if (type.kind == WRAP_TYPE_REAL)
		return cursor->reals_taken < 8
			       ? cursor->call->vector_registers[cursor->reals_taken++][0]
			       : read_next_stack_word(cursor);
	return cursor->integers_taken < 6
		       ? cursor->call->integer_registers[cursor->integers_taken++]
		       : read_next_stack_word(cursor);
}

static uint64_t widen_real_bits(uint64_t bits, struct wrapped_value_type type)
{
	float single;
	double real;

	if (type.bytes == 8)
		return bits;
	memcpy(&single, &bits, sizeof(single));
	real = (double)single;
	memcpy(&bits, &real, sizeof(bits));
	return bits;
}

/* Only the bytes of the type count; what is above them in a register is anything. */
static uint64_t extend_integer_bits(uint64_t bits, struct wrapped_value_type type)
{
	unsigned unused = 64 - 8 * type.bytes;

	if (type.kind == WRAP_TYPE_SIGNED)
		return (uint64_t)((int64_t)(bits << unused) >> unused);
	return bits << unused >> unused;
}

static struct region_value argument_to_region_value(const char *name,
						    struct wrapped_value_type type, uint64_t bits,
						    char *text)
{
	struct region_value value = {.name = name, .type = SPOOL_VALUE_ADDRESS, .number = bits};

	switch (type.kind) {
	case WRAP_TYPE_TEXT:
		if (bits)
			return wrapped_text_to_value(
				name, wrapped_copy_readable_text(text, USER_TEXT_VALUE_BYTES,
								 (const char *)bits));
		break;
	case WRAP_TYPE_REAL:
		value.type = SPOOL_VALUE_REAL;
		value.number = widen_real_bits(bits, type);
		break;
	case WRAP_TYPE_SIGNED:
	case WRAP_TYPE_UNSIGNED:
		value.type =
			type.kind == WRAP_TYPE_SIGNED ? SPOOL_VALUE_SIGNED : SPOOL_VALUE_UNSIGNED;
		value.number = extend_integer_bits(bits, type);
		break;
	default:
		break;
	}
	return value;
}

static const char *get_argument_name(uint32_t index)
{
	static const char *const names[WRAP_ARGUMENTS_MAX] = {
		"1",  "2",  "3",  "4",  "5",  "6",  "7",  "8",  "9",  "10", "11",
		"12", "13", "14", "15", "16", "17", "18", "19", "20", "21", "22",
		"23", "24", "25", "26", "27", "28", "29", "30", "31", "32"};

	return names[index];
}

static void record_arguments(const struct user_function *function, const struct user_call *call)
{
	struct argument_cursor cursor = {.call = call};
	char text[USER_TEXT_VALUE_BYTES];

	for (uint32_t i = 0; i < function->spec.argument_count; i++) {
		struct wrapped_value_type type = function->spec.argument[i];
		struct region_value value;
		if (type.kind == WRAP_TYPE_LONG_DOUBLE) { /* aligned to 16 bytes */
			cursor.stack_words_taken = ((cursor.stack_words_taken + 1) & ~1u) + 2;
			continue;
		}
		value = argument_to_region_value(get_argument_name(i), type,
						 read_next_argument_bits(&cursor, type), text);
		region_values(&value, 1);
	}
}

/* How many words of memory the declared arguments take. */
static uint32_t count_stack_argument_words(const struct wrap_spec_function *item)
{
	uint32_t integers = 0, reals = 0, words = 0;

	for (uint32_t i = 0; i < item->argument_count; i++) {
		if (item->argument[i].kind == WRAP_TYPE_LONG_DOUBLE)
			words = ((words + 1) & ~1u) + 2;
		else if (item->argument[i].kind == WRAP_TYPE_REAL)
			words += ++reals > 8;
		else
			words += ++integers > 6;
	}
	return words;
}

/* ---- calls ---- */

/* The innermost calls that are open on this thread. longjmp leaves frames without a word: a call
 * whose frame lies where a later one is, or below it, is over. Frames far apart are of different
 * stacks (coroutines) and say nothing about each other. */
#define OPEN_CALLS_MAX          8
#define SAME_STACK_DISTANCE_MAX (8u << 20)

static __thread struct {
	uint32_t count;
	region_id region[OPEN_CALLS_MAX];
	const struct user_call *frame[OPEN_CALLS_MAX];
} thread_open_wrapped_calls;

/* Ends what is open in frames below `frame` and in it. */
static void end_abandoned_regions(const struct user_call *frame)
{
	while (thread_open_wrapped_calls.count) {
		uint32_t last = thread_open_wrapped_calls.count - 1;
		if (thread_open_wrapped_calls.frame[last] > frame ||
		    (uint64_t)frame - (uint64_t)thread_open_wrapped_calls.frame[last] >
			    SAME_STACK_DISTANCE_MAX)
			break;
		thread_open_wrapped_calls.count = last;
		region_end(thread_open_wrapped_calls.region[last]);
	}
}

static void push_and_begin_call_region(const struct user_call *frame)
{
	if (thread_open_wrapped_calls.count == OPEN_CALLS_MAX) {
		thread_open_wrapped_calls.count--;
		memmove(thread_open_wrapped_calls.region, thread_open_wrapped_calls.region + 1,
			thread_open_wrapped_calls.count *
				sizeof(thread_open_wrapped_calls.region[0]));
		memmove(thread_open_wrapped_calls.frame, thread_open_wrapped_calls.frame + 1,
			thread_open_wrapped_calls.count * sizeof(void *));
	}
	thread_open_wrapped_calls.region[thread_open_wrapped_calls.count] = frame->region;
	thread_open_wrapped_calls.frame[thread_open_wrapped_calls.count++] = frame;
	region_begin(frame->region);
}

/* As end_abandoned_regions, for the frame that returns; it may have been pushed out by those inside
 * it. */
static bool pop_and_end_call_region(const struct user_call *frame)
{
	end_abandoned_regions((const struct user_call *)((uint64_t)frame - 1));
	if (thread_open_wrapped_calls.count &&
	    thread_open_wrapped_calls.frame[thread_open_wrapped_calls.count - 1] == frame)
		thread_open_wrapped_calls.count--;
	return region_end(frame->region);
}

/* Where the types do not tell how many words there are, the copy must not run past the end of a
 * stack: not into a page that cannot be read (process_vm_readv(2)). */
static uint32_t count_readable_stack_words(const struct user_function *function,
					   const struct user_call *call)
{
	const uint64_t *end = call->stack_arguments + function->stack_word_count;
	uint64_t last_page = ((uint64_t)end - 1) & ~(uint64_t)(MEMORY_PAGE_SIZE - 1);
	struct iovec here = {&(char){0}, 1}, there = {(void *)last_page, 1};

	if (!function->has_guessed_words || (uint64_t)call->stack_arguments > last_page ||
	    process_has_seccomp_thread() ||
	    sys_call6(SYS_process_vm_readv, sys_getpid(), (long)&here, 1, (long)&there, 1, 0) !=
		    -EFAULT)
		return function->stack_word_count;
	return (uint32_t)(last_page - (uint64_t)call->stack_arguments) / sizeof(*end);
}

/* Returns what is to be called; without a region it is jumped to. */
void *user_enter(struct user_call *call)
{
	struct user_function *function = &user_functions[call->index];
	int error = errno;

	call->region = wrapped_get_region_if_recording(&function->call);
	if (call->region) {
		call->stack_word_count = count_readable_stack_words(function, call);
		end_abandoned_regions(call);
		push_and_begin_call_region(call);
		region_attach_interpreted_caller();
		record_arguments(function, call);
	}
	errno = error;
	return atomic_load_explicit(&function->call.original, memory_order_relaxed);
}

void user_leave(struct user_call *call)
{
	struct wrapped_value_type type = user_functions[call->index].spec.result;
	uint64_t bits = type.kind == WRAP_TYPE_REAL ? call->vector_registers[0][0] : call->rax;
	char text[USER_TEXT_VALUE_BYTES];
	int error = errno;

	if (pop_and_end_call_region(call) && type.kind != WRAP_TYPE_NONE &&
	    type.kind != WRAP_TYPE_LONG_DOUBLE) {
		struct region_value value = argument_to_region_value("result", type, bits, text);
		region_values(&value, 1);
	}
	errno = error;
}

/* A function of the library that throws, if one is loaded: libkymo itself needs none. */
static _Atomic(void *) unwind_get_gr_function;

/* An exception, or the cancellation of the thread, passes through the frame of a wrapped call
 * (Itanium C++ ABI: Exception Handling, 1.6): its region ends here. */
_Unwind_Reason_Code user_personality(int version, _Unwind_Action actions,
				     _Unwind_Exception_Class exception_class,
				     struct _Unwind_Exception *exception,
				     struct _Unwind_Context *context)
{
	__typeof__(&_Unwind_GetGR) get_register =
		(__typeof__(&_Unwind_GetGR))atomic_load(&unwind_get_gr_function);

	(void)version;
	(void)exception_class;
	(void)exception;
	if ((actions & _UA_CLEANUP_PHASE) && get_register) {
		uint64_t frame = get_register(context, DWARF_RBP);
		struct user_call *call = (struct user_call *)(frame - sizeof(*call));
		if (call->region)
			pop_and_end_call_region(call);
		call->region = 0;
	}
	return _URC_CONTINUE_UNWIND;
}

/* ---- installation ---- */

static bool copy_slice_to_text(char *buffer, size_t size, struct text_slice slice)
{
	if (slice.length >= size)
		return false;
	memcpy(buffer, slice.text, slice.length);
	buffer[slice.length] = 0;
	return true;
}

static bool prepare_user_wrapper(struct user_function *function, struct got_wrapper *wrapper,
				 uint32_t index)
{
	if (!copy_slice_to_text(function->name, sizeof(function->name), function->spec.function) ||
	    !copy_slice_to_text(function->library, sizeof(function->library),
				function->spec.library))
		return false;
	function->call.name = function->name;
	function->call.category = REGION_WRAP;
	function->stack_word_count = count_stack_argument_words(&function->spec);
	function->has_guessed_words = !function->spec.has_parameter_list || function->spec.variadic;
	if (function->has_guessed_words)
		function->stack_word_count += USER_VARIADIC_STACK_WORDS;
	wrapper->symbol = function->name;
	wrapper->replacement = (void *)(user_entries + (size_t)index * USER_ENTRY_SIZE);
	wrapper->original = &function->call.original;
	wrapper->library = function->library[0] ? function->library : NULL;
	return true;
}

/* How wide the vector registers are: 0 xmm, 1 ymm, 2 zmm. The kernel has to keep what is to be
 * touched as well (XCR0: bits 1 and 2 for ymm, 5 to 7 for zmm). */
static uint8_t detect_vector_width(void)
{
	unsigned a, b, c, d, low, high;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_AVX))
		return 0;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	if ((low & 0x06) != 0x06)
		return 0;
	if ((low & 0xe0) != 0xe0 || !__get_cpuid_count(7, 0, &a, &b, &c, &d))
		return 1;
	return b & bit_AVX512F ? 2 : 1;
}

int wrappers_user_add(const struct wrapper_options *options)
{
	static struct got_wrapper unwinder = {.symbol = "_Unwind_GetGR",
					      .original = &unwind_get_gr_function};
	struct text_slice rest = setting_slice_from_text(options->wrapped_functions_spec);
	struct got_wrapper *wrappers;
	struct wrap_spec_problem problem;
	struct wrap_spec_function item;

	if (!rest.length)
		return 0;
	user_vectors = detect_vector_width();
	user_functions = got_allocate_permanent(USER_FUNCTIONS_MAX * sizeof(*user_functions));
	wrappers = got_allocate_permanent(USER_FUNCTIONS_MAX * sizeof(*wrappers));
	if (!user_functions || !wrappers)
		return -ENOMEM;
	while (user_function_count < USER_FUNCTIONS_MAX &&
	       wrap_spec_parse_next(&rest, &item, &problem) > 0) {
		user_functions[user_function_count].spec = item;
		if (prepare_user_wrapper(&user_functions[user_function_count],
					 &wrappers[user_function_count], user_function_count))
			user_function_count++;
	}
	return got_add_wrappers(wrappers, user_function_count) || got_add_wrappers(&unwinder, 1)
		       ? -ENOMEM
		       : 0;
}
