/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See causal_fixture.h.
 */
#include "unit/analysis/causal_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

uint32_t current_run;
static uint64_t now;

struct causal_data_window window_of(uint32_t target, uint32_t speedup,
				    struct causal_data_window_visits *visits)
{
	return (struct causal_data_window){.run = current_run,
					   .target = target,
					   .speedup_permille = speedup,
					   .start_ns = now += 1000 * MS,
					   .real_ns = 100 * MS,
					   .cpu_ns = 100 * MS,
					   .visits = visits,
					   .visits_entry_count = 1};
}

void add(struct causal_data *data, uint32_t target, uint32_t speedup, uint64_t visits,
	 double period_ns)
{
	struct causal_data_window_visits seen = {
		0, UINT32_MAX, visits, 0, (int64_t)fmin((double)visits * period_ns, 9e18), 0};
	/* a visit takes as much CPU time everywhere */
	struct causal_data_target_time_row time = {1, visits * 3 * MS / 2, visits * 2 * MS};
	struct causal_data_window window = window_of(target, speedup, &seen);

	window.times = &time;
	window.time_count = 1;
	assert_int_equal(causal_data_add_window(data, &window), 0);
}

void fit(const struct causal_data *data, struct causal_fit_result *result)
{
	static const struct causal_fit_options options = {.bootstrap = 200, .seed = 3};

	assert_int_equal(causal_compute_predictions(data, &options, result), 0);
}

void near(double found, double expected, double error)
{
	if (!(fabs(found - expected) <= error))
		fail_msg("%g instead of %g", found, expected);
}
