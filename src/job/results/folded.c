/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The folded stacks of all ranks as one: each weight is the sum over the ranks, so one flame graph
 * shows the job. As in the ranks' own files it is real time where that was sampled, else CPU time,
 * else events.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "files/stream.h"
#include "job/results/results.h"
#include "output/folded_name.h"

static job_wide get_weight(const struct job *job, uint32_t path, bool of_time)
{
	static const enum job_quantity times[] = {JOB_CPU_OUTSIDE_MPI, JOB_CPU_INSIDE_MPI,
						  JOB_BLOCKED_OUTSIDE_MPI, JOB_BLOCKED_INSIDE_MPI};
	const struct job_row *row;
	job_wide weight = 0;

	if (!of_time) {
		row = job_find_row(job, path, true, JOB_EVENTS);
		return row ? row->moments.sum : 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		row = job_find_row(job, path, true, times[i]);
		if (row)
			weight += row->moments.sum;
	}
	return weight;
}

static bool job_has_times(const struct job *job)
{
	for (uint32_t i = 0; i < job->row_count; i++) {
		const struct job_row *row = &job->rows[i];

		if (row->is_of_path && row->quantity <= JOB_BLOCKED_INSIDE_MPI)
			return true;
	}
	return false;
}

static void write_stack(const struct job *job, uint32_t path, job_wide weight, uint32_t *stack,
			FILE *stream)
{
	char digits[JOB_WIDE_TEXT_BYTES];
	uint32_t depth = 0;

	for (uint32_t at = path; at != JOB_NO_PATH; at = job->paths[at].parent)
		stack[depth++] = at;
	while (depth-- > 0) {
		folded_write_name(stream, job->names[job->paths[stack[depth]].name].name);
		putc(depth ? ';' : ' ', stream);
	}
	fprintf(stream, "%s\n", job_wide_to_text(weight, digits));
}

int job_write_folded(const struct job *job, unsigned top, FILE *stream, struct problem *problem)
{
	uint32_t *stack = calloc((size_t)job->path_count + 1, sizeof(*stack));
	bool of_time = job_has_times(job);

	(void)top;
	if (!stack)
		return problem_set(problem, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < job->path_count; i++) {
		job_wide weight = get_weight(job, i, of_time);

		if (weight)
			write_stack(job, i, weight, stack, stream);
	}
	free(stack);
	return stream_flush_or_set_problem(stream, "the folded stacks", problem);
}
