/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The rate of the ticks, measured in 50 us, and all clocks at one moment, while other threads have
 * the same processor in turns with us: what is lost between two readings of clocks must not be
 * taken for time by one of them only.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include <cmocka.h>

#include "../assert_at.h"
#include "core/base/ticks.h"

#define OTHERS      3
#define TIMES       100
#define LONG_NS     200000000u
#define APART_NS    200000
#define PER_MILLION 10000 /* a hundredth: a preempted reading is off by tens of them */

static atomic_bool over;

static void *keep_busy(void *unused)
{
	while (!atomic_load_explicit(&over, memory_order_relaxed))
		sched_yield();
	return unused;
}

static void share_one_processor(void)
{
	cpu_set_t set;
	int cpu = sched_getcpu();

	CPU_ZERO(&set);
	CPU_SET(cpu < 0 ? 0 : (unsigned)cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

static double rate_of_long(void)
{
	uint64_t start_ns = read_posix_clock_ns(CLOCK_MONOTONIC), start = ticks_now(), ns;

	do
		ns = read_posix_clock_ns(CLOCK_MONOTONIC) - start_ns;
	while (ns < LONG_NS);
	return (double)(ticks_now() - start) * 1e9 / (double)ns;
}

static void make_busy(pthread_t *others)
{
	share_one_processor();
	atomic_store(&over, false);
	for (unsigned i = 0; i < OTHERS; i++)
		assert_int_equal_at(i, pthread_create(&others[i], NULL, keep_busy, NULL), 0);
}

static void make_quiet(const pthread_t *others)
{
	atomic_store(&over, true);
	for (unsigned i = 0; i < OTHERS; i++)
		pthread_join(others[i], NULL);
}

static void rate_is_right_on_a_busy_processor(void **state)
{
	pthread_t others[OTHERS];
	double rate;
	unsigned wrong = 0;

	(void)state;
	ticks_init_and_get_hz();
	rate = rate_of_long();
	make_busy(others);
	for (unsigned i = 0; i < TIMES; i++) {
		double off = (double)ticks_init_and_get_hz() / rate - 1;

		if (off < 0)
			off = -off;
		wrong += off * 1e6 > PER_MILLION;
	}
	make_quiet(others);
	if (wrong)
		fail_msg("%u of %u rates are off by more than 1 %%", wrong, TIMES);
}

/* Neither clock is set; they differ by what the machine slept. */
static void clocks_are_of_one_moment_on_a_busy_processor(void **state)
{
	pthread_t others[OTHERS];
	unsigned wrong = 0;
	int64_t apart;

	(void)state;
	ticks_init_and_get_hz();
	apart = (int64_t)(read_posix_clock_ns(CLOCK_BOOTTIME) -
			  read_posix_clock_ns(CLOCK_MONOTONIC));
	make_busy(others);
	for (unsigned i = 0; i < TIMES; i++) {
		struct clocks_snapshot clocks = read_clocks_snapshot();

		wrong += llabs((int64_t)(clocks.boottime_ns - clocks.monotonic_ns) - apart) >
			 APART_NS;
		sched_yield();
	}
	make_quiet(others);
	if (wrong)
		fail_msg("%u of %u times clocks were read apart", wrong, TIMES);
}

static void ticks_go_on_by_clock_without_the_tsc(void **state)
{
	double rate, off;
	uint64_t before, after;

	(void)state;
	if (ticks_init_and_get_hz() == 1000000000u)
		skip();
	rate = rate_of_long();
	ticks_leave_tsc();
	before = __rdtsc();
	assert_int_equal(prctl(PR_SET_TSC, PR_TSC_SIGSEGV), 0);
	after = ticks_now(); /* ends the program where it reads the TSC */
	off = rate_of_long() / rate - 1;
	prctl(PR_SET_TSC, PR_TSC_ENABLE);
	/* The same scale, from the same moment on, but for what the rate is off since the start. */
	assert_true(after > before - (uint64_t)(rate / 100) &&
		    after < __rdtsc() - (uint64_t)(rate / 100));
	if (off * 1e6 > PER_MILLION || off * 1e6 < -PER_MILLION)
		fail_msg("ticks by clock are %.2f %% off", off * 100);
}

static void ticks_are_ns_where_the_tsc_is_forbidden(void **state)
{
	uint64_t hz, before, ticks, after;

	(void)state;
	before = read_posix_clock_ns(CLOCK_MONOTONIC);
	/* cmocka reads clocks where an assertion fails */
	assert_int_equal(prctl(PR_SET_TSC, PR_TSC_SIGSEGV), 0);
	hz = ticks_init_and_get_hz();
	ticks = ticks_now();
	prctl(PR_SET_TSC, PR_TSC_ENABLE);
	after = read_posix_clock_ns(CLOCK_MONOTONIC);
	assert_int_equal(hz, 1000000000u);
	assert_true(ticks >= before && ticks <= after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rate_is_right_on_a_busy_processor),
		cmocka_unit_test(ticks_go_on_by_clock_without_the_tsc),
		cmocka_unit_test(ticks_are_ns_where_the_tsc_is_forbidden),
		cmocka_unit_test(clocks_are_of_one_moment_on_a_busy_processor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
