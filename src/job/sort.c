/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The order of a job that is written: by content alone. Paths are sorted by their depth, so that
 * parents stay before their children, then by the places of parent and name.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "job/job.h"

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* An empty array is NULL, which qsort() must not get. */
static void sort_array(void *array, size_t count, size_t size,
		       int (*compare)(const void *, const void *))
{
	if (count)
		qsort(array, count, size, compare);
}

static int compare_ranks(const void *left, const void *right)
{
	const struct job_rank *a = left, *b = right;

	return compare_numbers(a->rank, b->rank);
}

static int compare_refused(const void *left, const void *right)
{
	const struct job_refused *a = left, *b = right;
	int order = strcmp(a->directory, b->directory);

	return order ? order : strcmp(a->reason, b->reason);
}

/* An element that is being sorted, and where it was. */
struct sorted_name {
	struct job_name name;
	uint32_t index;
};

static int compare_names(const void *left, const void *right)
{
	const struct job_name *a = left, *b = right; /* the first member of a sorted_name */
	int order = compare_numbers(a->kind, b->kind);

	if (!order)
		order = strcmp(a->name, b->name);
	if (!order)
		order = strcmp(a->group, b->group);
	return order ? order : strcmp(a->file, b->file);
}

/* new_index[old]: its place afterwards. */
static int sort_names(struct job *job, uint32_t *new_index)
{
	_cleanup_(cleanup_free) struct sorted_name *sorted =
		calloc((size_t)job->name_count + 1, sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < job->name_count; i++)
		sorted[i] = (struct sorted_name){job->names[i], i};
	qsort(sorted, job->name_count, sizeof(*sorted), compare_names);
	for (uint32_t i = 0; i < job->name_count; i++) {
		job->names[i] = sorted[i].name;
		new_index[sorted[i].index] = i;
	}
	return 0;
}

struct sorted_path {
	struct job_path path; /* by places afterwards, once its level is sorted */
	uint32_t depth, index;
};

static int compare_path_depths(const void *left, const void *right)
{
	const struct sorted_path *a = left, *b = right;

	return compare_numbers(a->depth, b->depth);
}

static int compare_paths(const void *left, const void *right)
{
	const struct sorted_path *a = left, *b = right;
	int order = compare_numbers(a->path.parent, b->path.parent);

	return order ? order : compare_numbers(a->path.name, b->path.name);
}

static void sort_levels(struct sorted_path *sorted, uint32_t count, uint32_t *new_index)
{
	for (uint32_t begin = 0, end; begin < count; begin = end) {
		for (end = begin; end < count && sorted[end].depth == sorted[begin].depth; end++) {
			if (sorted[end].depth)
				sorted[end].path.parent = new_index[sorted[end].path.parent];
		}
		qsort(sorted + begin, end - begin, sizeof(*sorted), compare_paths);
		for (uint32_t i = begin; i < end; i++)
			new_index[sorted[i].index] = i;
	}
}

static int sort_paths(struct job *job, const uint32_t *new_name_index, uint32_t *new_index)
{
	_cleanup_(cleanup_free) struct sorted_path *sorted =
		calloc((size_t)job->path_count + 1, sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	for (uint32_t i = 0; i < job->path_count; i++) {
		const struct job_path *path = &job->paths[i];

		sorted[i] = (struct sorted_path){
			{path->parent, new_name_index[path->name]},
			path->parent == JOB_NO_PATH ? 0 : sorted[path->parent].depth + 1,
			i};
	}
	qsort(sorted, job->path_count, sizeof(*sorted), compare_path_depths);
	sort_levels(sorted, job->path_count, new_index);
	for (uint32_t i = 0; i < job->path_count; i++)
		job->paths[i] = sorted[i].path;
	return 0;
}

static int compare_rows(const void *left, const void *right)
{
	const struct job_row *a = left, *b = right;
	int order = compare_numbers(a->is_of_path, b->is_of_path);

	if (!order)
		order = compare_numbers(a->owner, b->owner);
	return order ? order : compare_numbers(a->quantity, b->quantity);
}

/* Maps by content lead to places that are no more: rows get theirs again, by job_find_row(). */
static int sort_rows(struct job *job, const uint32_t *name_index, const uint32_t *path_index)
{
	for (uint32_t i = 0; i < job->row_count; i++) {
		struct job_row *row = &job->rows[i];

		row->owner = row->is_of_path ? path_index[row->owner] : name_index[row->owner];
		row->round = 0;
	}
	sort_array(job->rows, job->row_count, sizeof(*job->rows), compare_rows);
	id_map_deinit(&job->name_map);
	id_map_deinit(&job->path_map);
	id_map_deinit(&job->rank_map);
	id_map_deinit(&job->refused_map);
	return job_index_rows(job);
}

/* No two events of a rank are of one stream and have one place in it. */
static int compare_events(const void *left, const void *right)
{
	const struct job_event *a = left, *b = right;
	int order = compare_numbers(a->rank, b->rank);

	if (!order)
		order = compare_numbers(a->begin_ns, b->begin_ns);
	if (!order)
		order = compare_numbers(a->kind, b->kind);
	if (!order)
		order = compare_numbers(a->context, b->context);
	if (!order)
		order = compare_numbers(a->peer, b->peer);
	if (!order)
		order = compare_numbers((uint32_t)a->tag, (uint32_t)b->tag);
	return order ? order : compare_numbers(a->order, b->order);
}

static void sort_events(struct job *job, const uint32_t *name_index)
{
	for (uint32_t i = 0; i < job->event_count; i++) {
		job->events[i].begin_name = name_index[job->events[i].begin_name];
		job->events[i].name = name_index[job->events[i].name];
	}
	sort_array(job->events, job->event_count, sizeof(*job->events), compare_events);
}

static int sort_all(struct job *job, uint32_t *name_index, uint32_t *path_index)
{
	int error = sort_names(job, name_index);

	if (!error)
		error = sort_paths(job, name_index, path_index);
	if (error)
		return error;
	sort_array(job->ranks, job->rank_count, sizeof(*job->ranks), compare_ranks);
	sort_array(job->refused, job->refused_count, sizeof(*job->refused), compare_refused);
	sort_events(job, name_index);
	return sort_rows(job, name_index, path_index);
}

int job_sort(struct job *job)
{
	uint32_t *name_index = calloc((size_t)job->name_count + 1, sizeof(*name_index));
	uint32_t *path_index = calloc((size_t)job->path_count + 1, sizeof(*path_index));
	int error = name_index && path_index ? sort_all(job, name_index, path_index) : -ENOMEM;

	free(name_index);
	free(path_index);
	return error;
}
