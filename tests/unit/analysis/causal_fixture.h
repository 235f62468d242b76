/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Windows of an experiment whose answer is plain, and what is made of them.
 */
#ifndef KYMO_TESTS_CAUSAL_FIXTURE_H
#define KYMO_TESTS_CAUSAL_FIXTURE_H

#include "analysis/causal/fit.h"

#define MS 1000000

/* To both sides of what takes no time, also where nothing scatters: 1.96 standard errors. */
#define OWN 1.96

/* Of windows that are made. */
extern uint32_t current_run;

struct causal_data_window window_of(uint32_t target, uint32_t speedup,
				    struct causal_data_window_visits *visits);
/* Of point 0: `visits` that take `period_ns` each. */
void add(struct causal_data *data, uint32_t target, uint32_t speedup, uint64_t visits,
	 double period_ns);
void fit(const struct causal_data *data, struct causal_fit_result *result);
void near(double found, double expected, double error);

#endif
