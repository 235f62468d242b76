/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a backend tells of counting, for tests: part of sink.h's sink.
 */
#ifndef TESTS_UNIT_DEVICE_COUNTING_SINK_H
#define TESTS_UNIT_DEVICE_COUNTING_SINK_H

#include "device/counting.h"

#define COUNTED_VALUES_MAX 64

struct counted_told {
	_Atomic unsigned asked, counted, not_counted, filtered, released, samples, ready;
	_Atomic uint64_t samples_lost;
	double last[COUNTED_VALUES_MAX], sums[COUNTED_VALUES_MAX];
	uint64_t last_start, last_end;
	enum counting_status last_status;
	char last_text[COUNTING_PROBLEM_TEXT_BYTES];
};

extern struct counted_told counted_told;
/* What kernels are counted with; NULL: they are not. */
extern void *_Atomic counting_set;
/* Ask for no set after so many. */
extern _Atomic unsigned counting_most;
extern const struct device_counting_sink counting_test_sink;

#endif
