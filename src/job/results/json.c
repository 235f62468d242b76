/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * job.json: everything that is known of a job (docs/reference/job.md).
 */
#include <inttypes.h>

#include "common/cleanup.h"
#include "job/results/json_waits.h"
#include "job/results/late.h"
#include "job/results/results.h"
#include "job/results/words.h"
#include "output/json_writer.h"

bool job_next_missing_range(const struct job *job, uint32_t *next, struct job_rank_range *ret)
{
	/* *next: the lowest number not looked at; ranks are sorted. */
	uint32_t low = 0, high = job->rank_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (job->ranks[middle].rank < *next)
			low = middle + 1;
		else
			high = middle;
	}
	while (low < job->rank_count && job->ranks[low].rank == *next) {
		low++;
		++*next;
	}
	if (*next >= job->size)
		return false;
	ret->first = *next;
	ret->last = low < job->rank_count && job->ranks[low].rank < job->size
			    ? job->ranks[low].rank - 1
			    : job->size - 1;
	*next = ret->last + 1;
	return true;
}

static void put_coverage(struct json_writer *json, const struct job *job)
{
	struct job_rank_range range;
	uint32_t next = 0;

	if (job->size)
		json_put_count(json, "ranks_expected", job->size);
	else
		json_put_null(json, "ranks_expected");
	json_put_count(json, "ranks_merged", job->rank_count);
	json_put_count(json, "ranks_incomplete", job_count_incomplete_ranks(job));
	json_array_begin(json, "ranks_missing");
	while (job_next_missing_range(job, &next, &range)) {
		json_object_begin(json, NULL);
		json_put_count(json, "first", range.first);
		json_put_count(json, "last", range.last);
		json_object_end(json);
	}
	json_array_end(json);
	json_array_begin(json, "directories_without_rank");
	for (uint32_t i = 0; i < job->refused_count; i++) {
		json_object_begin(json, NULL);
		json_put_text(json, "directory", job->refused[i].directory);
		json_put_text(json, "reason",
			      *job->refused[i].reason ? job->refused[i].reason : NULL);
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_rank(struct json_writer *json, const struct job_rank *rank)
{
	json_object_begin(json, NULL);
	json_put_count(json, "rank", rank->rank);
	json_put_text(json, "host", rank->host);
	json_put_count(json, "pid", rank->pid);
	json_put_text(json, "directory", rank->directory);
	json_put_text(json, "command", rank->command);
	json_put_count(json, "processes", rank->processes);
	json_put_text(json, "end", job_rank_get_end_key(rank));
	json_put_signed_integer(json, "wait_status", rank->wait_status);
	json_put_count(json, "records_lost", rank->lost);
	json_put_boolean(json, "unreadable_data", rank->flags & JOB_RANK_UNREADABLE);
	json_put_boolean(json, "collected_in_part", rank->flags & JOB_RANK_COLLECTED_PART);
	json_put_boolean(json, "oldest_records_overwritten", rank->flags & JOB_RANK_OVERWRITTEN);
	json_put_boolean(json, "calls_left_out", rank->flags & JOB_RANK_CALLS_LEFT_OUT);
	json_put_boolean(json, "has_mpi_calls", rank->flags & JOB_RANK_HAS_MPI);
	json_put_boolean(json, "has_nccl_records", rank->flags & JOB_RANK_HAS_NCCL);
	json_put_count(json, "samples", rank->samples);
	json_put_count(json, "wall_ns", rank->wall_ns);
	json_put_count(json, "cpu_ns", rank->cpu_ns);
	json_put_count(json, "cpu_inside_mpi_ns", rank->cpu_in_mpi_ns);
	json_put_count(json, "mpi_waiting_ns", job_rank_get_waiting_ns(rank));
	json_object_begin(json, "mpi_ns");
	for (unsigned i = 0; i < JOB_MPI_CLASS_COUNT; i++)
		json_put_count(json, job_mpi_class_get_key((enum job_mpi_class)i), rank->mpi_ns[i]);
	json_object_end(json);
	json_object_end(json);
}

static void put_late_ranks(struct json_writer *json, const struct job *job,
			   const struct job_late *late)
{
	json_array_begin(json, "ranks");
	for (uint32_t i = 0; i < late->late_count && i < JOB_LATE_RANKS_MAX; i++)
		json_put_count(json, NULL, job->ranks[late->late[i]].rank);
	json_array_end(json);
	json_put_count(json, "rank_count", late->late_count);
	json_put_count(json, "rank", job->ranks[late->rank].rank);
	json_put_boolean(json, "explained_by_cpu_time", job_late_is_explained_by_work(late));
	json_array_begin(json, "paths");
	for (uint32_t i = 0; i < late->path_count; i++)
		json_put_count(json, NULL, late->paths[i]->owner);
	json_array_end(json);
}

static int put_late(struct json_writer *json, const struct job *job)
{
	static const char *const verdicts[] = {[JOB_LATE_NO_CALLS] = "no_mpi_calls",
					       [JOB_LATE_ONE_RANK] = "one_rank",
					       [JOB_LATE_INCOMPLETE] = "incomplete",
					       [JOB_LATE_NOBODY] = "nobody",
					       [JOB_LATE_FOUND] = "found"};
	struct job_late late;
	int error = job_find_late_rank(job, &late);

	if (error)
		return error;
	json_object_begin(json, "late");
	json_put_text(json, "verdict", verdicts[late.verdict]);
	if (late.verdict >= JOB_LATE_NOBODY) {
		json_put_count(json, "least_waiting_ns", late.wait_ns);
		json_put_count(json, "others_waiting_ns", late.others_wait_ns);
		json_put_count(json, "work_ns", late.work_ns);
		json_put_count(json, "others_work_ns", late.others_work_ns);
	}
	if (late.verdict == JOB_LATE_FOUND)
		put_late_ranks(json, job, &late);
	json_object_end(json);
	return 0;
}

static void put_row(struct json_writer *json, const struct job *job, const struct job_row *row)
{
	struct job_statistics statistics =
		job_moments_get_statistics(&row->moments, job->rank_count);
	char digits[JOB_WIDE_TEXT_BYTES];

	json_object_begin(json, job_quantity_get_key(row->quantity));
	json_put_digits(json, "sum", job_wide_to_text(row->moments.sum, digits));
	json_put_count(json, "mean", statistics.mean);
	json_put_count(json, "deviation", statistics.deviation);
	json_put_count(json, "minimum", statistics.minimum);
	json_put_count(json, "minimum_rank", statistics.minimum_rank);
	json_put_count(json, "maximum", statistics.maximum);
	json_put_count(json, "maximum_rank", statistics.maximum_rank);
	json_put_count(json, "lost", statistics.lost);
	json_put_count(json, "ranks", row->moments.count);
	json_object_end(json);
}

static void put_rows_of(struct json_writer *json, const struct job *job, uint32_t owner,
			bool is_of_path)
{
	for (unsigned i = 0; i < JOB_QUANTITY_COUNT; i++) {
		const struct job_row *row =
			job_find_row(job, owner, is_of_path, (enum job_quantity)i);

		if (row)
			put_row(json, job, row);
	}
}

static void put_name(struct json_writer *json, const struct job *job, uint32_t index)
{
	const struct job_name *name = &job->names[index];
	char id[24];

	json_object_begin(json, NULL);
	json_put_count(json, "index", index);
	snprintf(id, sizeof(id), "%016" PRIx64, job_name_get_id(name));
	json_put_text(json, "id", id);
	json_put_text(json, "name", name->name);
	if (name->kind != JOB_NAME_PROGRAM)
		json_put_text(json,
			      name->kind == JOB_NAME_REGION ? "category"
			      : name->kind == JOB_NAME_SITE ? "function"
							    : "module",
			      name->group);
	if (name->kind == JOB_NAME_FUNCTION || name->kind == JOB_NAME_SITE)
		json_put_text(json, "file", *name->file ? name->file : NULL);
	put_rows_of(json, job, index, false);
	json_object_end(json);
}

static void put_names(struct json_writer *json, const struct job *job, const char *key,
		      enum job_name_kind kind)
{
	json_array_begin(json, key);
	for (uint32_t i = 0; i < job->name_count; i++) {
		if (job->names[i].kind == kind)
			put_name(json, job, i);
	}
	json_array_end(json);
}

static void put_paths(struct json_writer *json, const struct job *job)
{
	json_array_begin(json, "paths");
	for (uint32_t i = 0; i < job->path_count; i++) {
		json_object_begin(json, NULL);
		if (job->paths[i].parent == JOB_NO_PATH)
			json_put_null(json, "parent");
		else
			json_put_count(json, "parent", job->paths[i].parent);
		json_put_count(json, "name", job->paths[i].name);
		put_rows_of(json, job, i, true);
		json_object_end(json);
	}
	json_array_end(json);
}

int job_write_json(const struct job *job, unsigned top, FILE *stream, struct problem *problem)
{
	struct json_writer json;
	int error;

	(void)top;
	json_writer_init(&json, stream);
	json_object_begin(&json, NULL);
	json_put_text(&json, "schema", "kymo.job/1");
	put_coverage(&json, job);
	error = put_late(&json, job);
	if (!error)
		error = json_put_job_waits(&json, job);
	if (error)
		return problem_set(problem, error, "out of memory");
	json_array_begin(&json, "ranks");
	for (uint32_t i = 0; i < job->rank_count; i++)
		put_rank(&json, &job->ranks[i]);
	json_array_end(&json);
	put_names(&json, job, "programs", JOB_NAME_PROGRAM);
	put_names(&json, job, "functions", JOB_NAME_FUNCTION);
	put_names(&json, job, "regions", JOB_NAME_REGION);
	put_names(&json, job, "mpi_sites", JOB_NAME_SITE);
	put_paths(&json, job);
	json_object_end(&json);
	return json_writer_finish(&json, problem);
}
