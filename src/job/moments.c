/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See moments.h.
 */
#include "job/moments.h"

#include <math.h>
#include <stddef.h>

void job_moments_add(struct job_moments *to, const struct job_moments *from)
{
	if (from->minimum < to->minimum ||
	    (from->minimum == to->minimum && from->minimum_rank < to->minimum_rank)) {
		to->minimum = from->minimum;
		to->minimum_rank = from->minimum_rank;
	}
	if (from->maximum > to->maximum ||
	    (from->maximum == to->maximum && from->maximum_rank < to->maximum_rank)) {
		to->maximum = from->maximum;
		to->maximum_rank = from->maximum_rank;
	}
	to->sum += from->sum;
	to->sum_of_squares += from->sum_of_squares;
	to->count += from->count;
	job_moments_note_rank_without(to, from->lowest_rank_without);
}

struct job_statistics job_moments_get_statistics(const struct job_moments *moments, uint32_t ranks)
{
	struct job_statistics statistics = {.minimum = moments->minimum,
					    .minimum_rank = moments->minimum_rank,
					    .maximum = moments->maximum,
					    .maximum_rank = moments->maximum_rank};
	long double sum = (long double)moments->sum, squares;

	if (!ranks)
		return statistics;
	statistics.mean = (uint64_t)((moments->sum + ranks / 2) / ranks);
	if (statistics.mean < statistics.maximum)
		statistics.lost = statistics.maximum - statistics.mean;
	if (moments->count < ranks) {
		statistics.minimum = 0;
		statistics.minimum_rank = moments->lowest_rank_without;
	}
	squares = (long double)moments->sum_of_squares - sum * sum / ranks;
	if (ranks > 1 && squares > 0)
		statistics.deviation = (uint64_t)roundl(sqrtl(squares / (ranks - 1)));
	return statistics;
}

const char *job_wide_to_text(job_wide value, char text[JOB_WIDE_TEXT_BYTES])
{
	size_t at = JOB_WIDE_TEXT_BYTES;

	text[--at] = '\0';
	do {
		text[--at] = (char)('0' + (int)(value % 10));
		value /= 10;
	} while (value);
	return &text[at];
}
