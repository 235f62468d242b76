/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The time of steps on one device, walked once: what of it was computing, exchange, copies or
 * nothing; and what slow steps have more of than the others.
 */
#ifndef KYMO_ANALYSIS_GPU_STEP_PARTS_H
#define KYMO_ANALYSIS_GPU_STEP_PARTS_H

#include <stddef.h>

#include "analysis/gpu/step_work.h"
#include "analysis/gpu/steps.h"

/* One device's work, by start; its series has the begins of its steps and the end of the last. */
struct step_parts_input {
	const struct step_work *work;
	size_t work_count;
	uint32_t string_count; /* ids of kernels are at most this */
};

/* Fills parts, counts, median and differences in. 0 or -ENOMEM. */
int step_parts_compute(const struct step_parts_input *input, struct gpu_step_series *series);

#endif
