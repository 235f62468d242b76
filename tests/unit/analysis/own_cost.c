/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What kymo cost: the sum of its parts, and the tree that it is a share of.
 */
#include "analysis/own_cost.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MS 1000000u

static struct model_process processes[] = {
	{.handler_ns = 2 * MS,
	 .helper_cpu_ns = 3 * MS,
	 .kymo_work_ns = 1 * MS,
	 .perf_event_switch_cost_ns = 4 * MS,
	 .signals = 1000,
	 .origin = SPOOL_IMAGE_EXECUTED},
	{.kymo_work_ns = 1 * MS, .origin = SPOOL_IMAGE_EXECUTED},
	{.kymo_work_ns = 1 * MS, .origin = SPOOL_IMAGE_FORKED},
	{.origin = SPOOL_IMAGE_FORKED_SHORT},
};
static struct model_thread threads[] = {{.cpu_ns = 100 * MS}, {.cpu_ns = 7 * MS, .how = 3}};

static struct session make_session(void)
{
	return (struct session){.processes = processes,
				.process_count = 4,
				.threads = threads,
				.thread_count = 2,
				.launch = {.user_ns = 150 * MS,
					   .system_ns = 50 * MS,
					   .load_ns = MS / 2,
					   .fork_ns = MS,
					   .signal_ns = 2000}};
}

static void test_parts(void **state)
{
	struct session session = make_session();
	struct own_cost cost = compute_profiler_own_cost(&session);

	(void)state;
	assert_int_equal(cost.handler_ns, 2 * MS);
	assert_int_equal(cost.helper_process_ns, 3 * MS);
	assert_int_equal(cost.start_fork_exec_end_ns, 3 * MS);
	assert_int_equal(cost.load_ns, 1 * MS); /* two images; the others were forked */
	assert_int_equal(cost.kernel_overhead_ns, 7 * MS);
	assert_int_equal(cost.total_ns, 16 * MS);
	assert_int_equal(cost.process_tree_cpu_ns, 203 * MS); /* the helper is nobody's child */
}

/* What the kernel counted is of all processes and all times. */
static void test_tree_of_a_part(void **state)
{
	struct session session = make_session();

	(void)state;
	session.has_only_part_of_threads = true;
	assert_int_equal(compute_profiler_own_cost(&session).process_tree_cpu_ns, 103 * MS);
	session = make_session();
	session.launch.attached = true;
	assert_int_equal(compute_profiler_own_cost(&session).process_tree_cpu_ns, 103 * MS);
}

/* Of a run that was not ended, or that an earlier version recorded. */
static void test_unknown_rates(void **state)
{
	struct session session = make_session();

	(void)state;
	session.launch = (struct model_program_launch){.known = false};
	assert_int_equal(compute_profiler_own_cost(&session).load_ns, 0);
	assert_int_equal(compute_profiler_own_cost(&session).kernel_overhead_ns, 4 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts),
					   cmocka_unit_test(test_tree_of_a_part),
					   cmocka_unit_test(test_unknown_rates)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
