/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a person asks of `kymo causal`, checked: from settings to numbers.
 */
#ifndef KYMO_CMD_CAUSAL_OPTIONS_H
#define KYMO_CMD_CAUSAL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/causal_speedups.h"
#include "cmd/resolved.h"

struct causal_options {
	struct causal_speedups speedups; /* as given; without any: the usual ones */
	bool speedups_given;
	bool lines; /* targets are lines, not functions */
	bool end_to_end;
	uint32_t iterations;
	bool iterations_given;
	uint64_t delay_ns, duration_ns, seed;
	double until_ci;
};

/* Reads the CAUSAL_ settings, and sets those of sampling and of outputs as experiments need them.
 * 0 or -EINVAL. */
int causal_options_init(struct causal_options *ret, struct resolved *settings,
			struct problem *problem);

#endif
