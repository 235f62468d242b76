/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Tables of functions, regions and calls of MPI by what is lost to imbalance: the maximum less the
 * mean, which is what the slowest rank could save if all had equal shares.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/region_categories.h"
#include "job/results/text.h"
#include "output/format.h"

#define SHARE_OF_RUN_SHOWN 1000

struct table_row {
	const struct job_row *row;
	struct job_statistics statistics;
};

static int compare_by_lost(const void *left, const void *right)
{
	const struct table_row *a = left, *b = right;

	if (a->statistics.lost != b->statistics.lost)
		return a->statistics.lost > b->statistics.lost ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row; /* the order of the job */
}

static int compare_by_sum(const void *left, const void *right)
{
	const struct table_row *a = left, *b = right;

	if (a->row->moments.sum != b->row->moments.sum)
		return a->row->moments.sum > b->row->moments.sum ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

struct table {
	const char *heading;
	enum job_quantity quantity;
	enum job_name_kind kind;
	bool only_mpi, not_mpi; /* of regions */
	int (*compare)(const void *, const void *);
};

static const struct table tables[] = {
	{"Functions by imbalance (own CPU time outside MPI)", JOB_CPU_OUTSIDE_MPI,
	 JOB_NAME_FUNCTION, false, false, compare_by_lost},
	{"Heaviest functions (own CPU time outside MPI)", JOB_CPU_OUTSIDE_MPI, JOB_NAME_FUNCTION,
	 false, false, compare_by_sum},
	{"Functions by imbalance (own real time without a CPU, outside MPI)",
	 JOB_BLOCKED_OUTSIDE_MPI, JOB_NAME_FUNCTION, false, false, compare_by_lost},
	{"Functions by imbalance (time on devices)", JOB_DEVICE, JOB_NAME_FUNCTION, false, false,
	 compare_by_lost},
	{"MPI calls by imbalance (real time)", JOB_SELF_TIME, JOB_NAME_REGION, true, false,
	 compare_by_lost},
	{"Regions by imbalance (real time)", JOB_TIME, JOB_NAME_REGION, false, true,
	 compare_by_lost},
};

static bool row_is_of_table(const struct job *job, const struct job_row *row,
			    const struct table *table)
{
	const struct job_name *name;
	bool is_mpi;

	if (row->is_of_path || row->quantity != table->quantity)
		return false;
	name = &job->names[row->owner];
	is_mpi = !strcmp(name->group, region_categories[REGION_MPI].name);
	return name->kind == table->kind && !(table->only_mpi && !is_mpi) &&
	       !(table->not_mpi && is_mpi);
}

static void write_table_row(const struct job_text *text, const struct table_row *at)
{
	const struct job_name *name = &text->job->names[at->row->owner];
	const struct job_statistics *statistics = &at->statistics;
	const struct job_row *calls =
		name->kind == JOB_NAME_REGION
			? job_find_row(text->job, at->row->owner, false, JOB_CALLS)
			: NULL;
	char minimum_rank[16], maximum_rank[16];

	snprintf(minimum_rank, sizeof(minimum_rank), "(%u)", statistics->minimum_rank);
	snprintf(maximum_rank, sizeof(maximum_rank), "(%u)", statistics->maximum_rank);
	fprintf(text->stream, "  %10s %10s %10s %10s %-7s %10s %-7s",
		quantity_from_ns(statistics->lost).text, quantity_from_ns(statistics->mean).text,
		quantity_from_ns(statistics->deviation).text,
		quantity_from_ns(statistics->minimum).text, minimum_rank,
		quantity_from_ns(statistics->maximum).text, maximum_rank);
	if (name->kind == JOB_NAME_REGION)
		fprintf(text->stream, " %12s",
			calls ? quantity_from_count((uint64_t)calls->moments.sum).text : "0");
	fputs("  ", text->stream);
	format_write_cut_to_width(text->stream, name->name, 80);
	if (*name->group) {
		fputs(" (", text->stream);
		format_write_cut_to_width(text->stream, name->group, 40);
		fputc(')', text->stream);
	}
	fputc('\n', text->stream);
}

/* What is less than a thousandth of the run is not worth a line. */
static bool row_is_worth_showing(const struct job_text *text, const struct table *table,
				 const struct table_row *row)
{
	uint64_t value =
		table->compare == compare_by_sum ? row->statistics.mean : row->statistics.lost;

	return !text->top || value >= text->mean_wall_ns / SHARE_OF_RUN_SHOWN;
}

static uint32_t collect_rows(const struct job *job, const struct table *table,
			     struct table_row *rows)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < job->row_count; i++) {
		if (row_is_of_table(job, &job->rows[i], table))
			rows[count++] = (struct table_row){
				&job->rows[i],
				job_moments_get_statistics(&job->rows[i].moments, job->rank_count)};
	}
	return count;
}

static void write_rows(const struct job_text *text, const struct table *table,
		       const struct table_row *rows, uint32_t count)
{
	uint32_t shown = 0;

	job_text_write_heading(text, table->heading);
	fprintf(text->stream, "  %10s %10s %10s %10s %-7s %10s %-7s", "lost", "mean", "deviation",
		"minimum", "(rank)", "maximum", "(rank)");
	if (table->kind == JOB_NAME_REGION)
		fprintf(text->stream, " %12s  region (category)\n", "calls");
	else
		fputs("  function (module)\n", text->stream);
	for (; shown < count && (!text->top || shown < text->top) &&
	       (!shown || row_is_worth_showing(text, table, &rows[shown]));
	     shown++)
		write_table_row(text, &rows[shown]);
	if (shown < count)
		fprintf(text->stream, "  … and %u more\n", count - shown);
}

static int write_table(const struct job_text *text, const struct table *table)
{
	struct table_row *rows = calloc((size_t)text->job->row_count + 1, sizeof(*rows));
	uint32_t count;

	if (!rows)
		return -ENOMEM;
	count = collect_rows(text->job, table, rows);
	qsort(rows, count, sizeof(*rows), table->compare);
	if (count)
		write_rows(text, table, rows, count);
	free(rows);
	return 0;
}

int job_text_write_tables(const struct job_text *text)
{
	int error = 0;

	for (size_t i = 0; !error && i < sizeof(tables) / sizeof(*tables); i++)
		error = write_table(text, &tables[i]);
	return error;
}
