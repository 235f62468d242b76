/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The regions of one rank by category and name, and its time in calls of MPI.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/regions/regions.h"
#include "common/cleanup.h"
#include "common/region_categories.h"
#include "job/ranks/private.h"
#include "output/region_rows.h"

/* Of all processes of the rank. */
struct region_sums {
	uint64_t calls, time_ns, self_ns;
};

struct rank_regions {
	struct rank_collector *collector;
	struct region_rows rows;
	uint32_t wall_component;
	uint32_t *name_of_row;    /* in the job; JOB_NO_PATH: the row is none of the rank */
	struct region_sums *sums; /* by name */
};

static uint64_t round_to_value(double value)
{
	return value >= (double)JOB_VALUE_MAX ? JOB_VALUE_MAX
	       : value > 0                    ? (uint64_t)(value + 0.5)
					      : 0;
}

static void add_time_in_mpi(struct job_rank *rank, const struct model_region *region,
			    double self_ns)
{
	uint64_t *time;

	if (strcmp(region->category, region_categories[REGION_MPI].name) != 0)
		return;
	rank->flags |= JOB_RANK_HAS_MPI;
	time = &rank->mpi_ns[mpi_name_get_class(region->name)];
	*time += round_to_value(self_ns);
	if (*time > JOB_VALUE_MAX)
		*time = JOB_VALUE_MAX;
}

static int add_names(struct rank_regions *regions)
{
	const struct rank_collector *collector = regions->collector;
	int error = 0;

	for (uint32_t i = 0; !error && i < regions->rows.count; i++) {
		const struct region_row *row = &regions->rows.rows[i];
		const struct model_region *region;
		struct job_name name = {.kind = JOB_NAME_REGION, .file = ""};

		regions->name_of_row[i] = JOB_NO_PATH;
		if (row->region == MODEL_ENTRY_INDEX_NONE || !(row->count || row->open) ||
		    !collector_wants_process(collector, row->process))
			continue;
		region = &session_get_regions(collector->session)->regions[row->region];
		name.name = region->name;
		name.group = region->category;
		error = job_find_or_add_name(collector->job, &name, &regions->name_of_row[i]);
	}
	return error;
}

static void add_up_rows(struct rank_regions *regions)
{
	const struct model_regions *model = session_get_regions(regions->collector->session);

	for (uint32_t i = 0; i < regions->rows.count; i++) {
		const struct region_row *row = &regions->rows.rows[i];
		struct region_value value = {0};
		struct region_sums *sums;

		if (regions->name_of_row[i] == JOB_NO_PATH)
			continue;
		if (regions->wall_component != MODEL_ENTRY_INDEX_NONE)
			value = *region_rows_get_value(&regions->rows, i, regions->wall_component);
		sums = &regions->sums[regions->name_of_row[i]];
		sums->calls += row->count;
		sums->time_ns += round_to_value(value.inclusive);
		sums->self_ns += round_to_value(value.self);
		add_time_in_mpi(&regions->collector->rank, &model->regions[row->region],
				value.self);
	}
}

static int add_sums_to_job(const struct rank_regions *regions)
{
	struct job *job = regions->collector->job;
	uint32_t rank = regions->collector->rank.rank;
	int error = 0;

	for (uint32_t i = 0; !error && i < job->name_count; i++) {
		const struct region_sums *sums = &regions->sums[i];
		struct job_moments calls = job_moments_from_value(sums->calls, rank),
				   time = job_moments_from_value(sums->time_ns, rank),
				   self = job_moments_from_value(sums->self_ns, rank);

		error = job_add_moments(job, i, false, JOB_CALLS, &calls);
		if (!error)
			error = job_add_moments(job, i, false, JOB_TIME, &time);
		if (!error)
			error = job_add_moments(job, i, false, JOB_SELF_TIME, &self);
	}
	return error;
}

static int add_all_rows(struct rank_regions *regions)
{
	_cleanup_(cleanup_free) uint32_t *name_of_row =
		calloc((size_t)regions->rows.count + 1, sizeof(*name_of_row));
	_cleanup_(cleanup_free) struct region_sums *sums = NULL;
	int error;

	regions->name_of_row = name_of_row;
	error = name_of_row ? add_names(regions) : -ENOMEM;
	if (error)
		return error;
	sums = calloc((size_t)regions->collector->job->name_count + 1, sizeof(*sums));
	if (!sums)
		return -ENOMEM;
	regions->sums = sums;
	add_up_rows(regions);
	return add_sums_to_job(regions);
}

int collector_add_regions(struct rank_collector *collector)
{
	struct region_table_layout_options layout = {.flat = true};
	struct rank_regions regions = {
		.collector = collector,
		.wall_component = regions_find_wall_clock_component(collector->session)};
	int error;

	if (!session_get_regions(collector->session)->node_count)
		return 0;
	error = region_rows_build(&regions.rows, collector->session, &layout);
	if (!error)
		error = add_all_rows(&regions);
	region_rows_deinit(&regions.rows);
	return error;
}
