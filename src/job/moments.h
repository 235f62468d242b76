/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is kept of one quantity over many ranks: moments that can be added in any order and any
 * grouping, to the same bits. Values are integers of at most JOB_VALUE_MAX (104 days in ns), so
 * that the sum of the squares of JOB_RANKS_MAX of them fits 128 bits. A rank without the quantity
 * has the value 0, and is not counted.
 */
#ifndef KYMO_JOB_MOMENTS_H
#define KYMO_JOB_MOMENTS_H

#include <stdint.h>

#define JOB_VALUE_MAX ((UINT64_C(1) << 53) - 1)
#define JOB_RANKS_MAX (UINT32_C(1) << 20)
#define JOB_NO_RANK   UINT32_MAX

__extension__ typedef unsigned __int128 job_wide;

struct job_moments {
	job_wide sum, sum_of_squares;
	uint64_t minimum, maximum;           /* of the ranks that have it */
	uint32_t minimum_rank, maximum_rank; /* the lowest one of those that have this value */
	uint32_t count;                      /* ranks that have it */
	uint32_t lowest_rank_without;        /* JOB_NO_RANK: all ranks have it */
};

static inline struct job_moments job_moments_from_value(uint64_t value, uint32_t rank)
{
	if (value > JOB_VALUE_MAX)
		value = JOB_VALUE_MAX;
	return (struct job_moments){.sum = value,
				    .sum_of_squares = (job_wide)value * value,
				    .minimum = value,
				    .maximum = value,
				    .minimum_rank = rank,
				    .maximum_rank = rank,
				    .count = 1,
				    .lowest_rank_without = JOB_NO_RANK};
}

static inline void job_moments_note_rank_without(struct job_moments *moments, uint32_t rank)
{
	if (rank < moments->lowest_rank_without)
		moments->lowest_rank_without = rank;
}

/* Of disjoint sets of ranks. */
void job_moments_add(struct job_moments *to, const struct job_moments *from);

/* Over all `ranks`, of which those without the quantity have 0. */
struct job_statistics {
	uint64_t mean, deviation;  /* of a sample: the divisor is ranks - 1; rounded */
	uint64_t minimum, maximum; /* 0 where a rank has none of it */
	uint32_t minimum_rank, maximum_rank;
	uint64_t lost; /* maximum - mean: what could be saved with equal shares */
};

struct job_statistics job_moments_get_statistics(const struct job_moments *moments, uint32_t ranks);
/* In decimal digits. */
#define JOB_WIDE_TEXT_BYTES 40
const char *job_wide_to_text(job_wide value, char text[JOB_WIDE_TEXT_BYTES]);

#endif
