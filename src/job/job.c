/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See job.h. Everything is found by a hash of its content; where two contents have the same hash,
 * the second is put under the next key, so that equal means equal.
 */
#include "job/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/splitmix64.h"
#include "common/text_hash.h"

void job_init(struct job *job)
{
	*job = (struct job){.lowest_rank = JOB_NO_RANK};
}

void job_deinit(struct job *job)
{
	id_map_deinit(&job->rank_map);
	id_map_deinit(&job->refused_map);
	id_map_deinit(&job->name_map);
	id_map_deinit(&job->path_map);
	id_map_deinit(&job->row_map);
	free(job->ranks);
	free(job->refused);
	free(job->names);
	free(job->paths);
	free(job->rows);
	free(job->events);
	arena_deinit(&job->arena);
	job_init(job);
}

/* ---- ranks ---- */

static int check_rank_fits_job(const struct job *job, const struct job_rank *rank,
			       struct problem *problem)
{
	uint32_t known = id_map_get(&job->rank_map, rank->rank);

	if (rank->rank >= JOB_RANKS_MAX || rank->size > JOB_RANKS_MAX)
		return problem_set(problem, -EINVAL,
				   "'%s': rank %u of %u is more than the %u ranks that kymo merges",
				   rank->directory, rank->rank, rank->size, JOB_RANKS_MAX);
	if (known != ID_MAP_NONE)
		return problem_set(problem, -EEXIST,
				   "rank %u is in '%s' and in '%s': name the results of one run of "
				   "one job",
				   rank->rank, job->ranks[known].directory, rank->directory);
	if (rank->size && job->size && rank->size != job->size)
		return problem_set(problem, -EINVAL,
				   "rank %u in '%s' is of a job of %u ranks, others are of a job "
				   "of %u: name the results of one job",
				   rank->rank, rank->directory, rank->size, job->size);
	return 0;
}

int job_add_rank(struct job *job, const struct job_rank *rank, struct problem *problem)
{
	int error = check_rank_fits_job(job, rank, problem);
	struct job_rank copy = *rank;

	if (error)
		return error;
	copy.host = arena_intern_string(&job->arena, rank->host);
	copy.directory = arena_intern_string(&job->arena, rank->directory);
	copy.command = arena_intern_string(&job->arena, rank->command);
	if (!copy.host || !copy.directory || !copy.command ||
	    array_reserve_one_more((void **)&job->ranks, &job->rank_capacity, job->rank_count,
				   sizeof(*job->ranks)) < 0 ||
	    id_map_set(&job->rank_map, rank->rank, job->rank_count) < 0)
		return problem_set(problem, -ENOMEM, "out of memory");
	job->ranks[job->rank_count++] = copy;
	if (rank->size)
		job->size = rank->size;
	if (rank->rank < job->lowest_rank)
		job->lowest_rank = rank->rank;
	return 0;
}

uint32_t job_count_missing_ranks(const struct job *job)
{
	return job->size > job->rank_count ? job->size - job->rank_count : 0;
}

/* The same directory may be named again in another part. */
int job_add_refused(struct job *job, const char *directory, const char *reason)
{
	uint64_t key = text_hash_append(
		splitmix64_mix(text_hash_append(TEXT_HASH_OF_NOTHING, directory)), reason);
	struct job_refused refused = {arena_intern_string(&job->arena, directory),
				      arena_intern_string(&job->arena, reason)};
	uint32_t known;

	while ((known = id_map_get(&job->refused_map, key)) != ID_MAP_NONE) {
		if (job->refused[known].directory == refused.directory &&
		    job->refused[known].reason == refused.reason)
			return 0;
		key++;
	}
	if (!refused.directory || !refused.reason ||
	    array_reserve_one_more((void **)&job->refused, &job->refused_capacity,
				   job->refused_count, sizeof(*job->refused)) < 0 ||
	    id_map_set(&job->refused_map, key, job->refused_count) < 0)
		return -ENOMEM;
	job->refused[job->refused_count++] = refused;
	return 0;
}

/* ---- names and paths ---- */

uint64_t job_name_get_id(const struct job_name *name)
{
	uint64_t hash = text_hash_append(TEXT_HASH_OF_NOTHING, name->name);

	hash = text_hash_append(splitmix64_mix(hash + name->kind), name->group);
	return splitmix64_mix(text_hash_append(splitmix64_mix(hash), name->file));
}

static bool names_are_equal(const struct job_name *a, const struct job_name *b)
{
	return a->kind == b->kind && !strcmp(a->name, b->name) && !strcmp(a->group, b->group) &&
	       !strcmp(a->file, b->file);
}

static int append_name(struct job *job, const struct job_name *name, uint64_t key)
{
	struct job_name copy = {name->kind, arena_intern_string(&job->arena, name->name),
				arena_intern_string(&job->arena, name->group),
				arena_intern_string(&job->arena, name->file)};

	if (!copy.name || !copy.group || !copy.file ||
	    array_reserve_one_more((void **)&job->names, &job->name_capacity, job->name_count,
				   sizeof(*job->names)) < 0 ||
	    id_map_set(&job->name_map, key, job->name_count) < 0)
		return -ENOMEM;
	job->names[job->name_count++] = copy;
	return 0;
}

int job_find_or_add_name(struct job *job, const struct job_name *name, uint32_t *ret)
{
	uint64_t key = job_name_get_id(name);
	uint32_t index;

	while ((index = id_map_get(&job->name_map, key)) != ID_MAP_NONE) {
		if (names_are_equal(&job->names[index], name)) {
			*ret = index;
			return 0;
		}
		key++;
	}
	*ret = job->name_count;
	return append_name(job, name, key);
}

int job_find_or_add_path(struct job *job, uint32_t parent, uint32_t name, uint32_t *ret)
{
	uint64_t key = (uint64_t)parent << 32 | name;
	uint32_t index = id_map_get(&job->path_map, key);

	if (index == ID_MAP_NONE) {
		if (array_reserve_one_more((void **)&job->paths, &job->path_capacity,
					   job->path_count, sizeof(*job->paths)) < 0 ||
		    id_map_set(&job->path_map, key, job->path_count) < 0)
			return -ENOMEM;
		index = job->path_count++;
		job->paths[index] = (struct job_path){parent, name};
	}
	*ret = index;
	return 0;
}

/* ---- rows ---- */

static uint64_t get_row_key(uint32_t owner, bool is_of_path, enum job_quantity quantity)
{
	return (uint64_t)owner << 8 | (uint64_t)quantity << 1 | is_of_path;
}

int job_add_moments(struct job *job, uint32_t owner, bool is_of_path, enum job_quantity quantity,
		    const struct job_moments *moments)
{
	uint64_t key = get_row_key(owner, is_of_path, quantity);
	uint32_t index = id_map_get(&job->row_map, key);

	if (!moments->sum)
		return 0;
	if (index != ID_MAP_NONE) {
		job_moments_add(&job->rows[index].moments, moments);
		job->rows[index].round = job->round;
		return 0;
	}
	if (array_reserve_one_more((void **)&job->rows, &job->row_capacity, job->row_count,
				   sizeof(*job->rows)) < 0 ||
	    id_map_set(&job->row_map, key, job->row_count) < 0)
		return -ENOMEM;
	job->rows[job->row_count++] =
		(struct job_row){owner, is_of_path, quantity, *moments, job->round};
	return 0;
}

int job_add_event(struct job *job, const struct job_event *event)
{
	if (job->event_count == UINT32_MAX ||
	    array_reserve_one_more((void **)&job->events, &job->event_capacity, job->event_count,
				   sizeof(*job->events)) < 0)
		return -ENOMEM;
	job->events[job->event_count++] = *event;
	return 0;
}

int job_index_rows(struct job *job)
{
	int error = 0;

	id_map_deinit(&job->row_map);
	for (uint32_t i = 0; !error && i < job->row_count; i++) {
		const struct job_row *row = &job->rows[i];

		error = id_map_set(&job->row_map,
				   get_row_key(row->owner, row->is_of_path, row->quantity), i);
	}
	return error;
}

const struct job_row *job_find_row(const struct job *job, uint32_t owner, bool is_of_path,
				   enum job_quantity quantity)
{
	uint32_t index = id_map_get(&job->row_map, get_row_key(owner, is_of_path, quantity));

	return index == ID_MAP_NONE ? NULL : &job->rows[index];
}
