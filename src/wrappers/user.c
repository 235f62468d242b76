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
#include "wrappers/got_names.h"
#include "wrappers/user_call.h"
#include "wrappers/wrapped.h"
#include "wrappers/wrappers.h"

#define USER_ENTRY_SIZE        16
#define USER_WORDS_OF_VARIADIC 16 /* copied where the types do not tell */
#define USER_TEXT_SIZE         128
#define USER_PAGE              4096u
#define DWARF_RBP              6 /* psABI, figure 3.36 */

struct user_function {
	struct wrapped_call call;
	struct wrap_item item;
	uint32_t words; /* of arguments in memory */
	bool guessed;   /* the last of them, which may not be there */
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
static struct user_function *functions;
static uint32_t function_count;

/* ---- arguments ---- */

/* Where the next argument of each kind is. */
struct argument_cursor {
	const struct user_call *call;
	uint32_t integers, reals, words;
};

static uint64_t next_word(struct argument_cursor *cursor)
{
	return cursor->call->stack[cursor->words++];
}

static uint64_t next_bits(struct argument_cursor *cursor, struct wrap_type type)
{
	if (type.kind == WRAP_REAL)
		return cursor->reals < 8 ? cursor->call->vector[cursor->reals++][0]
					 : next_word(cursor);
	return cursor->integers < 6 ? cursor->call->integer[cursor->integers++] : next_word(cursor);
}

static uint64_t real_bits(uint64_t bits, struct wrap_type type)
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
static uint64_t integer_bits(uint64_t bits, struct wrap_type type)
{
	unsigned unused = 64 - 8 * type.bytes;

	if (type.kind == WRAP_SIGNED)
		return (uint64_t)((int64_t)(bits << unused) >> unused);
	return bits << unused >> unused;
}

static struct region_value value_of(const char *name, struct wrap_type type, uint64_t bits,
				    char *text)
{
	struct region_value value = {.name = name, .type = SPOOL_VALUE_ADDRESS, .number = bits};

	switch (type.kind) {
	case WRAP_TEXT:
		if (bits)
			return wrapped_text(
				name, wrapped_copy_text(text, USER_TEXT_SIZE, (const char *)bits));
		break;
	case WRAP_REAL:
		value.type = SPOOL_VALUE_REAL;
		value.number = real_bits(bits, type);
		break;
	case WRAP_SIGNED:
	case WRAP_UNSIGNED:
		value.type = type.kind == WRAP_SIGNED ? SPOOL_VALUE_SIGNED : SPOOL_VALUE_UNSIGNED;
		value.number = integer_bits(bits, type);
		break;
	default:
		break;
	}
	return value;
}

static const char *argument_name(uint32_t index)
{
	static const char *const names[WRAP_ARGUMENTS] = {
		"1",  "2",  "3",  "4",  "5",  "6",  "7",  "8",  "9",  "10", "11",
		"12", "13", "14", "15", "16", "17", "18", "19", "20", "21", "22",
		"23", "24", "25", "26", "27", "28", "29", "30", "31", "32"};

	return names[index];
}

static void record_arguments(const struct user_function *function, const struct user_call *call)
{
	struct argument_cursor cursor = {.call = call};
	char text[USER_TEXT_SIZE];

	for (uint32_t i = 0; i < function->item.arguments; i++) {
		struct wrap_type type = function->item.argument[i];
		struct region_value value;
		if (type.kind == WRAP_LONG_DOUBLE) { /* aligned to 16 bytes */
			cursor.words = ((cursor.words + 1) & ~1u) + 2;
			continue;
		}
		value = value_of(argument_name(i), type, next_bits(&cursor, type), text);
		region_values(&value, 1);
	}
}

/* How many words of memory the declared arguments take. */
static uint32_t words_of(const struct wrap_item *item)
{
	uint32_t integers = 0, reals = 0, words = 0;

	for (uint32_t i = 0; i < item->arguments; i++) {
		if (item->argument[i].kind == WRAP_LONG_DOUBLE)
			words = ((words + 1) & ~1u) + 2;
		else if (item->argument[i].kind == WRAP_REAL)
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
#define OPEN_CALLS 8
#define ONE_STACK  (8u << 20)

static __thread struct {
	uint32_t count;
	region_id region[OPEN_CALLS];
	const struct user_call *frame[OPEN_CALLS];
} open_calls;

/* Ends what is open in frames below `frame` and in it. */
static void end_frames(const struct user_call *frame)
{
	while (open_calls.count) {
		uint32_t last = open_calls.count - 1;
		if (open_calls.frame[last] > frame ||
		    (uint64_t)frame - (uint64_t)open_calls.frame[last] > ONE_STACK)
			break;
		open_calls.count = last;
		region_end(open_calls.region[last]);
	}
}

static void begin_frame(const struct user_call *frame)
{
	if (open_calls.count == OPEN_CALLS) {
		open_calls.count--;
		memmove(open_calls.region, open_calls.region + 1,
			open_calls.count * sizeof(open_calls.region[0]));
		memmove(open_calls.frame, open_calls.frame + 1, open_calls.count * sizeof(void *));
	}
	open_calls.region[open_calls.count] = frame->region;
	open_calls.frame[open_calls.count++] = frame;
	region_begin(frame->region);
}

/* As end_frames, for the frame that returns; it may have been pushed out by those inside it. */
static bool end_frame(const struct user_call *frame)
{
	end_frames((const struct user_call *)((uint64_t)frame - 1));
	if (open_calls.count && open_calls.frame[open_calls.count - 1] == frame)
		open_calls.count--;
	return region_end(frame->region);
}

/* Where the types do not tell how many words there are, the copy must not run past the end of a
 * stack: not into a page that cannot be read (process_vm_readv(2)). */
static uint32_t words_there(const struct user_function *function, const struct user_call *call)
{
	const uint64_t *end = call->stack + function->words;
	uint64_t last_page = ((uint64_t)end - 1) & ~(uint64_t)(USER_PAGE - 1);
	struct iovec here = {&(char){0}, 1}, there = {(void *)last_page, 1};

	if (!function->guessed || (uint64_t)call->stack > last_page || kymo_runtime.sealed ||
	    sys_call6(SYS_process_vm_readv, sys_getpid(), (long)&here, 1, (long)&there, 1, 0) !=
		    -EFAULT)
		return function->words;
	return (uint32_t)(last_page - (uint64_t)call->stack) / sizeof(*end);
}

/* Returns what is to be called; without a region it is jumped to. */
void *user_enter(struct user_call *call)
{
	struct user_function *function = &functions[call->index];
	int error = errno;

	call->region = wrapped_recording(&function->call);
	if (call->region) {
		call->words = words_there(function, call);
		end_frames(call);
		begin_frame(call);
		record_arguments(function, call);
	}
	errno = error;
	return atomic_load_explicit(&function->call.original, memory_order_relaxed);
}

void user_leave(struct user_call *call)
{
	struct wrap_type type = functions[call->index].item.result;
	uint64_t bits = type.kind == WRAP_REAL ? call->vector[0][0] : call->rax;
	char text[USER_TEXT_SIZE];
	int error = errno;

	if (end_frame(call) && type.kind != WRAP_NONE && type.kind != WRAP_LONG_DOUBLE) {
		struct region_value value = value_of("result", type, bits, text);
		region_values(&value, 1);
	}
	errno = error;
}

/* Of the library that throws, if one is loaded: libkymo itself needs none. */
static _Atomic(void *) unwind_get_gr;

/* An exception, or the cancellation of the thread, passes through the frame of a wrapped call
 * (Itanium C++ ABI: Exception Handling, 1.6): its region ends here. */
_Unwind_Reason_Code user_personality(int version, _Unwind_Action actions,
				     _Unwind_Exception_Class exception_class,
				     struct _Unwind_Exception *exception,
				     struct _Unwind_Context *context)
{
	__typeof__(&_Unwind_GetGR) get_register =
		(__typeof__(&_Unwind_GetGR))atomic_load(&unwind_get_gr);

	(void)version;
	(void)exception_class;
	(void)exception;
	if ((actions & _UA_CLEANUP_PHASE) && get_register) {
		uint64_t frame = get_register(context, DWARF_RBP);
		struct user_call *call = (struct user_call *)(frame - sizeof(*call));
		if (call->region)
			end_frame(call);
		call->region = 0;
	}
	return _URC_CONTINUE_UNWIND;
}

/* ---- installation ---- */

static bool copy(char *buffer, size_t size, struct setting_slice slice)
{
	if (slice.length >= size)
		return false;
	memcpy(buffer, slice.text, slice.length);
	buffer[slice.length] = 0;
	return true;
}

static bool prepare(struct user_function *function, struct got_wrapper *wrapper, uint32_t index)
{
	if (!copy(function->name, sizeof(function->name), function->item.function) ||
	    !copy(function->library, sizeof(function->library), function->item.library))
		return false;
	function->call.name = function->name;
	function->call.category = REGION_WRAP;
	function->words = words_of(&function->item);
	function->guessed = !function->item.typed || function->item.variadic;
	if (function->guessed)
		function->words += USER_WORDS_OF_VARIADIC;
	wrapper->symbol = function->name;
	wrapper->replacement = (void *)(user_entries + (size_t)index * USER_ENTRY_SIZE);
	wrapper->original = &function->call.original;
	wrapper->library = function->library[0] ? function->library : NULL;
	return true;
}

/* How wide the vector registers are: 0 xmm, 1 ymm, 2 zmm. The kernel has to keep what is to be
 * touched as well (XCR0: bits 1 and 2 for ymm, 5 to 7 for zmm). */
static uint8_t vectors_here(void)
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

int wrappers_user_add(const struct options_wrappers *options)
{
	static struct got_wrapper unwinder = {.symbol = "_Unwind_GetGR",
					      .original = &unwind_get_gr};
	struct setting_slice rest = setting_slice(options->wrap);
	struct got_wrapper *wrappers;
	struct wrap_problem problem;
	struct wrap_item item;

	if (!rest.length)
		return 0;
	user_vectors = vectors_here();
	functions = got_allocate(USER_FUNCTIONS * sizeof(*functions));
	wrappers = got_allocate(USER_FUNCTIONS * sizeof(*wrappers));
	if (!functions || !wrappers)
		return -ENOMEM;
	while (function_count < USER_FUNCTIONS && wrap_next(&rest, &item, &problem) > 0) {
		functions[function_count].item = item;
		if (prepare(&functions[function_count], &wrappers[function_count], function_count))
			function_count++;
	}
	return got_add(wrappers, function_count) || got_add(&unwinder, 1) ? -ENOMEM : 0;
}
