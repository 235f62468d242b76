/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * core/late_sample.c: which late samples stand for all the time since the last one.
 */
#include "core/process/late_sample.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define PERIOD 1000
#define LATE   50000

static const struct late_sample_conditions source = {.period = PERIOD, .pid = 77};

/* A thread behind a system call that returned RESULT. */
static ucontext_t behind_call(long result, long first, long fourth)
{
	ucontext_t context = {.uc_flags = 0};
	greg_t *registers = context.uc_mcontext.gregs;

	registers[REG_RIP] = registers[REG_RCX] = 0x401000;
	registers[REG_RAX] = result;
	registers[REG_RDI] = first;
	registers[REG_R10] = fourth;
	return context;
}

static void what_is_in_time_stays(void **state)
{
	ucontext_t context = behind_call(0, SIG_SETMASK, 8);

	(void)state;
	assert_int_equal(late_sample_compute_uncovered_ns(&source, &context, 2 * PERIOD), 0);
}

static void a_mask_that_was_opened(void **state)
{
	ucontext_t set = behind_call(0, SIG_SETMASK, 8), unblock = behind_call(0, SIG_UNBLOCK, 8),
		   block = behind_call(0, SIG_BLOCK, 8),
		   failed = behind_call(-EFAULT, SIG_SETMASK, 8);

	(void)state;
	assert_int_equal(late_sample_compute_uncovered_ns(&source, &set, LATE), LATE - PERIOD);
	assert_int_equal(late_sample_compute_uncovered_ns(&source, &unblock, LATE), LATE - PERIOD);
	assert_int_equal(late_sample_compute_uncovered_ns(&source, &block, LATE), 0);
	assert_int_equal(late_sample_compute_uncovered_ns(&source, &failed, LATE), 0);
}

static void a_call_that_waits_with_another_mask(void **state)
{
	ucontext_t ended = behind_call(-EINTR, 0, 0), again = behind_call(0, 0, 0);

	(void)state;
	again.uc_mcontext.gregs[REG_RIP] -= 2;
	assert_int_equal(late_sample_compute_uncovered_ns(&source, &ended, LATE), LATE - PERIOD);
	assert_int_equal(late_sample_compute_uncovered_ns(&source, &again, LATE), LATE - PERIOD);
}

static void a_long_call_of_the_kernel_stays(void **state)
{
	ucontext_t context = behind_call(4096, 3, 0);

	(void)state;
	assert_int_equal(late_sample_compute_uncovered_ns(&source, &context, LATE), 0);
}

static void handlers(void **state)
{
	struct late_sample_conditions blocking = source;
	ucontext_t anywhere = behind_call(0, 0, 0), raised = behind_call(0, 77, 0);

	(void)state;
	blocking.handlers_block = true;
	anywhere.uc_mcontext.gregs[REG_RCX] = 5;
	assert_int_equal(late_sample_compute_uncovered_ns(&source, &anywhere, LATE), 0);
	assert_int_equal(late_sample_compute_uncovered_ns(&blocking, &anywhere, LATE),
			 LATE - PERIOD);
	assert_int_equal(late_sample_compute_uncovered_ns(&source, &raised, LATE), 0);
	assert_int_equal(late_sample_compute_uncovered_ns(&blocking, &raised, LATE), LATE - PERIOD);
}

static void timers_come_at_ticks(void **state)
{
	struct late_sample_conditions timer = source;
	ucontext_t context = behind_call(0, SIG_SETMASK, 8);

	(void)state;
	timer.tick = 30000;
	assert_int_equal(late_sample_compute_uncovered_ns(&timer, &context, LATE), 0);
	assert_int_equal(late_sample_compute_uncovered_ns(&timer, &context, 90000), 60000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_in_time_stays),
		cmocka_unit_test(a_mask_that_was_opened),
		cmocka_unit_test(a_call_that_waits_with_another_mask),
		cmocka_unit_test(a_long_call_of_the_kernel_stays),
		cmocka_unit_test(handlers),
		cmocka_unit_test(timers_come_at_ticks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
