/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Two jobs become one; see job.h. A row that only one side has is 0 in the ranks of the other,
 * which it has to know: it keeps the lowest of them.
 */
#include <errno.h>
#include <stdlib.h>

#include "job/job.h"

static int merge_ranks(struct job *to, const struct job *from, struct problem *problem)
{
	int error = 0;

	for (uint32_t i = 0; !error && i < from->rank_count; i++)
		error = job_add_rank(to, &from->ranks[i], problem);
	for (uint32_t i = 0; !error && i < from->refused_count; i++) {
		if (job_add_refused(to, from->refused[i].directory, from->refused[i].reason) < 0)
			error = problem_set(problem, -ENOMEM, "out of memory");
	}
	return error;
}

/* name_index[] and path_index[]: where they are in `to`. */
static int merge_names_and_paths(struct job *to, const struct job *from, uint32_t *name_index,
				 uint32_t *path_index)
{
	int error = 0;

	for (uint32_t i = 0; !error && i < from->name_count; i++)
		error = job_find_or_add_name(to, &from->names[i], &name_index[i]);
	for (uint32_t i = 0; !error && i < from->path_count; i++) {
		const struct job_path *path = &from->paths[i];

		error = job_find_or_add_path(
			to, path->parent == JOB_NO_PATH ? JOB_NO_PATH : path_index[path->parent],
			name_index[path->name], &path_index[i]);
	}
	return error;
}

static int merge_rows(struct job *to, const struct job *from, uint32_t lowest_rank_before,
		      const uint32_t *name_index, const uint32_t *path_index)
{
	uint32_t rows_before = to->row_count;
	int error = 0;

	to->round++;
	for (uint32_t i = 0; !error && i < from->row_count; i++) {
		const struct job_row *row = &from->rows[i];

		error = job_add_moments(
			to, row->is_of_path ? path_index[row->owner] : name_index[row->owner],
			row->is_of_path, row->quantity, &row->moments);
	}
	for (uint32_t i = 0; i < rows_before; i++) {
		if (to->rows[i].round != to->round)
			job_moments_note_rank_without(&to->rows[i].moments, from->lowest_rank);
	}
	for (uint32_t i = rows_before; i < to->row_count; i++)
		job_moments_note_rank_without(&to->rows[i].moments, lowest_rank_before);
	return error;
}

static int merge_events(struct job *to, const struct job *from, const uint32_t *name_index)
{
	int error = 0;

	for (uint32_t i = 0; !error && i < from->event_count; i++) {
		struct job_event event = from->events[i];

		event.begin_name = name_index[event.begin_name];
		event.name = name_index[event.name];
		error = job_add_event(to, &event);
	}
	return error;
}

static int merge_content(struct job *to, const struct job *from, uint32_t *name_index,
			 uint32_t *path_index, struct problem *problem)
{
	uint32_t lowest_rank = to->lowest_rank;
	int error = merge_ranks(to, from, problem);

	if (error)
		return error;
	error = merge_names_and_paths(to, from, name_index, path_index);
	if (!error)
		error = merge_rows(to, from, lowest_rank, name_index, path_index);
	if (!error)
		error = merge_events(to, from, name_index);
	return error ? problem_set(problem, error, "out of memory") : 0;
}

int job_merge(struct job *to, const struct job *from, struct problem *problem)
{
	uint32_t *name_index = calloc((size_t)from->name_count + 1, sizeof(*name_index));
	uint32_t *path_index = calloc((size_t)from->path_count + 1, sizeof(*path_index));
	int error = name_index && path_index
			    ? merge_content(to, from, name_index, path_index, problem)
			    : problem_set(problem, -ENOMEM, "out of memory");

	free(name_index);
	free(path_index);
	return error;
}
