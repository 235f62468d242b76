/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A sample stands for the CPU time since the last one, at the place where it was taken. Where the
 * program had our signal blocked in the meantime, that place is not where the time went: the signal
 * came when it was let in again.
 */
#ifndef KYMO_CORE_LATE_SAMPLE_H
#define KYMO_CORE_LATE_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

struct late_sample_conditions {
	uint64_t period; /* between two samples, at most */
	uint64_t tick;   /* least time that the source may take; 0: any */
	uint32_t pid;
	bool handlers_block; /* the program has handlers that block our signal while they run */
};

/* What of the CPU time PASSED since the last sample no sample stands for. A call that takes long in
 * the kernel makes a sample late as well, but is what that sample shows: its time stays. */
uint64_t late_sample_compute_uncovered_ns(const struct late_sample_conditions *source,
					  const ucontext_t *context, uint64_t passed);

#endif
