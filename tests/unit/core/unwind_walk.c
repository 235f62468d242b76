/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Walks against libunwind, frame by frame, at every single instruction: the processor's trap flag
 * raises SIGTRAP after each one, and the handler walks the interrupted stack both ways. So every
 * prologue, epilogue, PLT entry and trampoline on the way of a case is met at its worst places.
 * Frames that libunwind has no answer for are compared with what the case is written to have.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/unwind/unwind.h"
#include "own_view.h"
#include "peer_libunwind.h"
#include "unwind_cases.h"

#define FRAMES_MAX 256
#define TRAP_FLAG  0x100u

static struct unwind_all_modules_view *view;
static struct unwind_cache *cache;
static struct unwind_stack_bounds bounds;
static struct unwind_scratch scratch;
static uint64_t outermost; /* last frame of every whole stack of this thread */

/* What the handler of one traced case found. */
static struct {
	unsigned steps, limit, skip;
	unsigned wrong, undecided, skipped, inside, ends[SPOOL_STACK_END_COUNT];
	const char *begin, *end; /* count what happens with the pc in here */
	enum spool_stack_end inside_end;
	const void *inside_caller; /* expected second frame there, NULL: compare with libunwind */
	uint32_t inside_frames;
} traced;

/* `remember`: with the pc cache and the memo of the walk before. */
static uint32_t walk_by(const ucontext_t *context, uint64_t *frames, enum spool_stack_end *end,
			bool remember)
{
	static struct unwind_scratch plain;
	const greg_t *gregs = context->uc_mcontext.gregs;
	struct unwind_start_registers registers = {
		.ip = (uint64_t)gregs[REG_RIP],
		.sp = (uint64_t)gregs[REG_RSP],
		.bp = (uint64_t)gregs[REG_RBP],
		.gregs = (const uint64_t *)gregs,
	};

	return unwind_walk_stack(view, remember ? cache : NULL, &registers, &bounds,
				 remember ? &scratch : &plain, frames, FRAMES_MAX, end);
}

static uint32_t walk(const ucontext_t *context, uint64_t *frames, enum spool_stack_end *end)
{
	return walk_by(context, frames, end, true);
}

static void report(const uint64_t *ours, uint32_t count, const uint64_t *theirs, uint32_t expected,
		   enum spool_stack_end end)
{
	if (traced.wrong++ > 2)
		return;
	fprintf(stderr, "step %u: %u frames (end %u), libunwind %u\n", traced.steps, count, end,
		expected);
	for (uint32_t i = 0; i < count || i < expected; i++)
		fprintf(stderr, "  %2u %16lx %16lx%s\n", i, i < count ? ours[i] : 0,
			i < expected ? theirs[i] : 0,
			i < count && i < expected && ours[i] == theirs[i] ? "" : "  <--");
}

/* The last frame of a stack made by makecontext is stored plus one. */
static bool same_frames(const uint64_t *ours, const uint64_t *theirs, uint32_t count)
{
	return memcmp(ours, theirs, (count - 1) * sizeof(*ours)) == 0 &&
	       ours[count - 1] - theirs[count - 1] <= 1;
}

/* Where libunwind does not reach _start, our walk must do so or say the very same; where ours says
 * that it does not, the case decides whether that may be. At a landing pad that is the first
 * instruction of a function's cold part, libunwind 1.6 takes the rule of the code before it and
 * loses the second frame. */
static void compare(ucontext_t *context, const uint64_t *ours, uint32_t count,
		    enum spool_stack_end end)
{
	uint64_t theirs[FRAMES_MAX];
	uint32_t expected = peer_libunwind_step(context, theirs, FRAMES_MAX);

	if (!expected || theirs[expected - 1] != outermost) {
		traced.undecided++;
		if (end == SPOOL_STACK_COMPLETE && ours[count - 1] - outermost > 1 &&
		    (count != expected || !same_frames(ours, theirs, count)))
			report(ours, count, theirs, expected, end);
	} else if (count == expected + 1 && count > 2 &&
		   same_frames(ours + 2, theirs + 1, count - 2)) {
		traced.skipped++;
	} else if (end == SPOOL_STACK_COMPLETE &&
		   (count != expected || !same_frames(ours, theirs, count))) {
		report(ours, count, theirs, expected, end);
	}
}

static void on_trap(int signal, siginfo_t *information, void *argument)
{
	ucontext_t *context = argument;
	const char *pc = (const char *)context->uc_mcontext.gregs[REG_RIP];
	uint64_t ours[FRAMES_MAX], plain[FRAMES_MAX];
	enum spool_stack_end end, plain_end;
	uint32_t count, expected;

	(void)signal;
	(void)information;
	if (traced.steps == traced.limit) {
		context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
		return;
	}
	if (++traced.steps % (traced.skip + 1))
		return;
	count = walk(context, ours, &end);
	traced.ends[end]++;
	expected = walk_by(context, plain, &plain_end, false);
	if (expected != count || plain_end != end || memcmp(ours, plain, count * 8) != 0)
		report(ours, count, plain, expected, end);
	if (pc >= traced.begin && pc < traced.end) {
		traced.inside++;
		traced.inside_end = end;
		traced.inside_frames = count;
		if (traced.inside_caller &&
		    (count < 2 || ours[1] < (uint64_t)traced.inside_caller ||
		     ours[1] > (uint64_t)traced.inside_caller + 256))
			report(ours, count, NULL, 0, end);
		return;
	}
	compare(context, ours, count, end);
}

static void trace_start(unsigned limit)
{
	memset(&traced, 0, sizeof(traced));
	traced.limit = limit;
}

/* ---- cases ---- */

static uint64_t outermost_frame(void)
{
	uint64_t frames[FRAMES_MAX];
	enum spool_stack_end end;
	ucontext_t context;
	uint32_t count;

	getcontext(&context);
	count = walk(&context, frames, &end);
	return end == SPOOL_STACK_COMPLETE ? frames[count - 1] : 0;
}

static int prepare(void **state)
{
	struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};

	(void)state;
	view = own_view_create();
	cache = unwind_cache_create();
	bounds = own_bounds(__builtin_frame_address(0));
	outermost = outermost_frame();
	return cache && outermost && peer_libunwind_open() && sigaction(SIGTRAP, &action, NULL) == 0
		       ? 0
		       : -1;
}

static int compare_ints(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void test_libc(void **state)
{
	char text[200];
	int numbers[40];

	(void)state;
	for (int i = 0; i < 40; i++)
		numbers[i] = i * 7919 % 101;
	trace_start(40000);
	trace_on();
	qsort(numbers, 40, sizeof(numbers[0]), compare_ints);
	snprintf(text, sizeof(text), "%d %s %f", numbers[3], "text", 2.5);
	free(strdup(text));
	trace_off();
	assert_true(traced.steps > 2000);
	assert_int_equal(traced.wrong, 0);
	assert_int_equal(traced.ends[SPOOL_STACK_COMPLETE], traced.steps);
}

__attribute__((noinline)) static int recurse(int depth)
{
	char text[32];
	int below = depth ? recurse(depth - 1) : 0;

	snprintf(text, sizeof(text), "%d", depth);
	return below + text[0];
}

static void test_recursion(void **state)
{
	(void)state;
	trace_start(20000);
	trace_on();
	recurse(30);
	trace_off();
	assert_true(traced.steps > 1000);
	assert_int_equal(traced.wrong, 0);
	assert_int_equal(traced.ends[SPOOL_STACK_COMPLETE], traced.steps);
}

static void test_assembly(void **state)
{
	(void)state;
	trace_start(10000);
	trace_on();
	case_saved_below();
	case_return_in_rdi();
	case_saved_slot();
	case_cfa_in_rax();
	case_cfa_in_rax_across();
	trace_off();
	assert_int_equal(traced.wrong, 0);
	assert_int_equal(traced.ends[SPOOL_STACK_COMPLETE], traced.steps);
}

static void call_something(void)
{
	char text[32];

	snprintf(text, sizeof(text), "%d", 5);
}

static void test_cfa_in_rbx(void **state)
{
	(void)state;
	trace_start(10000);
	trace_on();
	case_cfa_in_rbx(call_something);
	trace_off();
	assert_true(traced.steps > 100);
	assert_int_equal(traced.wrong, 0);
	assert_int_equal(traced.ends[SPOOL_STACK_COMPLETE], traced.steps);
}

/* This program is linked with lazy binding: the first call goes through _dl_runtime_resolve, which
 * keeps its CFA in rbx. */
static char *volatile first_call_sink;

static void test_first_call(void **state)
{
	char text[64] = "a,b", separators[2] = ",";

	(void)state;
	trace_start(40000);
	trace_on();
	first_call_sink = strpbrk(text, separators);
	getppid();
	trace_off();
	assert_true(traced.steps > 500);
	assert_int_equal(traced.wrong, 0);
	assert_int_equal(traced.ends[SPOOL_STACK_COMPLETE], traced.steps);
}

static void test_vdso(void **state)
{
	struct timespec now;

	(void)state;
	trace_start(4000);
	trace_on();
	for (int i = 0; i < 5; i++)
		clock_gettime(CLOCK_MONOTONIC, &now);
	trace_off();
	assert_true(traced.steps > 100);
	assert_int_equal(traced.wrong, 0);
	assert_int_equal(traced.ends[SPOOL_STACK_COMPLETE], traced.steps);
}

static void test_exception(void **state)
{
	(void)state;
	trace_start(400000);
	traced.skip = 6;
	trace_on();
	case_throw(4, call_something);
	trace_off();
	assert_true(traced.steps > 10000);
	assert_int_equal(traced.wrong, 0);
	assert_true(traced.skipped < 10);
	/* The last instructions of _Unwind_RaiseException, which nobody's CFI describes. */
	assert_true(traced.ends[SPOOL_STACK_COMPLETE] + 20 > traced.steps / 7);
}

static void on_user_signal(int signal)
{
	(void)signal;
	trace_on();
	call_something();
	trace_off();
}

static void signal_case(struct sigaction *action)
{
	static uint8_t stack[65536];
	stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};

	assert_int_equal(sigaltstack(&alternate, NULL), 0);
	assert_int_equal(sigaction(SIGUSR1, action, NULL), 0);
	trace_start(10000);
	raise(SIGUSR1);
	assert_true(traced.steps > 100);
	assert_int_equal(traced.wrong, 0);
	assert_int_equal(traced.ends[SPOOL_STACK_COMPLETE], traced.steps);
}

static void test_in_handler(void **state)
{
	struct sigaction action = {.sa_handler = on_user_signal};

	(void)state;
	signal_case(&action);
}

static void test_on_alternate_stack(void **state)
{
	struct sigaction action = {.sa_handler = on_user_signal, .sa_flags = SA_ONSTACK};

	(void)state;
	signal_case(&action);
}

/* The trampoline of a C library that gives it no CFI: installed by the raw system call. */
static void test_bare_trampoline(void **state)
{
	struct {
		void (*handler)(int);
		unsigned long flags;
		void (*restorer)(void);
		uint64_t mask;
	} action = {on_user_signal, 0x04000000 /* SA_RESTORER */, case_restorer, 0};

	(void)state;
	assert_int_equal(syscall(SYS_rt_sigaction, SIGUSR2, &action, NULL, 8), 0);
	trace_start(10000);
	traced.begin = (const char *)case_restorer;
	traced.end = traced.begin + 9;
	raise(SIGUSR2);
	assert_true(traced.steps > 100);
	assert_int_equal(traced.ends[SPOOL_STACK_COMPLETE], traced.steps);
}

static ucontext_t coroutine, back;

/* The bottom of this stack is __start_context's address, which we store plus one. */
static void coroutine_body(void)
{
	outermost = (uint64_t)__builtin_return_address(0);
	trace_on();
	recurse(10);
	trace_off();
	swapcontext(&coroutine, &back);
}

static void test_coroutine(void **state)
{
	size_t size = 262144;
	uint8_t *stack = malloc(size);

	(void)state;
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = stack;
	coroutine.uc_stack.ss_size = size;
	coroutine.uc_link = &back;
	makecontext(&coroutine, coroutine_body, 0);
	trace_start(20000);
	swapcontext(&back, &coroutine);
	outermost = outermost_frame();
	free(stack);
	assert_true(traced.steps > 1000);
	assert_int_equal(traced.wrong, 0);
	assert_int_equal(traced.ends[SPOOL_STACK_COMPLETE], traced.steps);
}

static void test_no_cfi_leaf(void **state)
{
	(void)state;
	trace_start(1000);
	traced.begin = (const char *)case_leaf;
	traced.end = case_leaf_end;
	traced.inside_caller = (const void *)test_no_cfi_leaf;
	trace_on();
	case_leaf();
	trace_off();
	assert_true(traced.inside > 5);
	assert_int_equal(traced.wrong, 0);
	assert_int_equal(traced.inside_end, SPOOL_STACK_COMPLETE);
}

/* Frame pointers are followed at every instruction of a function without CFI and in its callee. */
static void test_no_cfi_frame_pointer(void **state)
{
	(void)state;
	trace_start(1000);
	traced.begin = (const char *)case_pushed_bp;
	traced.end = case_pushed_bp_end;
	trace_on();
	case_pushed_bp();
	trace_off();
	assert_true(traced.inside > 8);
	assert_int_equal(traced.inside_end, SPOOL_STACK_COMPLETE);
	assert_int_equal(traced.ends[SPOOL_STACK_COMPLETE], traced.steps);
}

static void wrong_cfi_case(void (*function)(void), const char *end, enum spool_stack_end expected)
{
	trace_start(1000);
	traced.begin = (const char *)function;
	traced.end = end;
	trace_on();
	function();
	trace_off();
	assert_int_equal(traced.inside, 3);
	assert_int_equal(traced.inside_end, expected);
	assert_int_equal(traced.inside_frames, 1);
}

static void test_wrong_cfi(void **state)
{
	(void)state;
	wrong_cfi_case(case_wrong_cfi, case_wrong_cfi_end, SPOOL_STACK_BAD_READ);
	wrong_cfi_case(case_wrong_cfi_low, case_wrong_cfi_low_end, SPOOL_STACK_BAD_CFA);
}

static void test_outermost(void **state)
{
	(void)state;
	trace_start(10000);
	traced.begin = (const char *)case_leaf;
	traced.end = case_outermost_end;
	trace_on();
	case_outermost(case_leaf);
	trace_off();
	assert_true(traced.inside > 10);
	assert_int_equal(traced.inside_frames, 1);
	assert_int_equal(traced.ends[SPOOL_STACK_COMPLETE], traced.steps);
	assert_int_equal(traced.wrong, 0);
}

/* A cut at the asked depth says so, and never writes more. */
static void test_depth(void **state)
{
	uint64_t frames[FRAMES_MAX] = {0};
	enum spool_stack_end end;
	ucontext_t context;
	uint32_t full;

	(void)state;
	getcontext(&context);
	full = walk(&context, frames, &end);
	assert_int_equal(end, SPOOL_STACK_COMPLETE);
	for (uint32_t maximum = 1; maximum <= full; maximum++) {
		const greg_t *gregs = context.uc_mcontext.gregs;
		struct unwind_start_registers registers = {
			.ip = (uint64_t)gregs[REG_RIP],
			.sp = (uint64_t)gregs[REG_RSP],
			.bp = (uint64_t)gregs[REG_RBP],
		};

		memset(frames, 0xa5, sizeof(frames));
		assert_int_equal(unwind_walk_stack(view, cache, &registers, &bounds, NULL, frames,
						   maximum, &end),
				 maximum);
		assert_int_equal(end, maximum == full ? SPOOL_STACK_COMPLETE : SPOOL_STACK_DEPTH);
		assert_int_equal(frames[maximum], 0xa5a5a5a5a5a5a5a5);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_call),
		cmocka_unit_test(test_libc),
		cmocka_unit_test(test_recursion),
		cmocka_unit_test(test_assembly),
		cmocka_unit_test(test_cfa_in_rbx),
		cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_exception),
		cmocka_unit_test(test_in_handler),
		cmocka_unit_test(test_on_alternate_stack),
		cmocka_unit_test(test_bare_trampoline),
		cmocka_unit_test(test_coroutine),
		cmocka_unit_test(test_no_cfi_leaf),
		cmocka_unit_test(test_no_cfi_frame_pointer),
		cmocka_unit_test(test_wrong_cfi),
		cmocka_unit_test(test_outermost),
		cmocka_unit_test(test_depth),
	};

	return cmocka_run_group_tests(tests, prepare, NULL);
}
