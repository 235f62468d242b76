/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a person asks of `kymo causal`, checked: from settings to numbers.
 */
#ifndef KYMO_EXPERIMENTS_OPTIONS_H
#define KYMO_EXPERIMENTS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "settings/effective.h"
#include "settings/speedups.h"

struct causal_options {
	struct causal_speedups speedups; /* as given; without any: the usual ones */
	bool speedups_given;
	bool lines; /* targets are lines, not functions */
	bool end_to_end;
	uint32_t iterations;
	bool iterations_given;
	uint64_t delay_before_experiments_ns, experiments_duration_max_ns, random_seed;
	double until_ci_width;
};

/* Reads the CAUSAL_ settings, and sets those of sampling and of outputs as experiments need them.
 * 0 or -EINVAL. */
int causal_options_read_settings(struct causal_options *ret, struct effective_settings *settings,
				 struct problem *problem);

#endif
