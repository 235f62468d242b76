/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See step_parts.h. Work is walked in the order of its starts. Between two starts nothing begins,
 * so that each class of work is active up to the latest end that was seen of it.
 */
#include "analysis/gpu/step_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/arena.h"
#include "analysis/id_map.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "kymo/gpu_records.h"

/* The smallest difference that is listed, as a share of the time that slow steps take longer. */
#define DIFFERENCE_SHARE_LEAST 0.02

/* Whose sums: of the steps that are not slow, of slow ones, of one of these. */
enum difference_column { OF_OTHERS, OF_SLOW, OF_ONE, DIFFERENCE_COLUMN_COUNT };

struct difference_sums {
	enum gpu_step_difference_kind kind;
	uint32_t id;
	double ns[DIFFERENCE_COLUMN_COUNT];
};

struct difference_table {
	struct difference_sums *rows;
	size_t count, capacity;
	struct id_map row_by_kind_and_id;
};

struct parts_walk {
	const struct step_parts_input *input;
	struct gpu_step_series *series;
	uint64_t active_until[STEP_WORK_CLASS_COUNT];
	size_t step; /* that the walk is in */
	struct difference_table *table;
	bool compares;    /* the table is filled; else parts are summed up */
	size_t only_step; /* SIZE_MAX: all */
};

static const enum gpu_step_part part_of_class[STEP_WORK_CLASS_COUNT] = {
	[STEP_WORK_COMPUTES] = GPU_STEP_COMPUTING,
	[STEP_WORK_COMMUNICATES] = GPU_STEP_COMMUNICATION,
	[STEP_WORK_COPIES] = GPU_STEP_COPIES,
};

static int add_difference(struct parts_walk *walk, enum gpu_step_difference_kind kind, uint32_t id,
			  uint64_t ns)
{
	struct difference_table *table = walk->table;
	enum difference_column column =
		walk->series->steps[walk->step].is_slow ? OF_SLOW : OF_OTHERS;
	uint64_t key = (uint64_t)kind << 32 | id;
	uint32_t row = id_map_get(&table->row_by_kind_and_id, key);

	if (walk->only_step != SIZE_MAX) {
		if (walk->only_step != walk->step)
			return 0;
		column = OF_ONE;
	} else if (walk->series->starts_slowly && walk->step == 0) {
		return 0;
	}
	if (row == ID_MAP_NONE) {
		row = (uint32_t)table->count;
		if (array_reserve_one_more((void **)&table->rows, &table->capacity, table->count,
					   sizeof(*table->rows)) < 0 ||
		    id_map_set(&table->row_by_kind_and_id, key, row) < 0)
			return -ENOMEM;
		table->rows[table->count++] = (struct difference_sums){.kind = kind, .id = id};
	}
	table->rows[row].ns[column] += (double)ns;
	return 0;
}

static void add_part(struct parts_walk *walk, enum gpu_step_part part, uint64_t ns)
{
	if (!walk->compares)
		walk->series->steps[walk->step].part_ns[part] += ns;
}

/* Nothing ran from `from` to `to`, when this work began. */
static int add_idle_time(struct parts_walk *walk, uint64_t from, uint64_t to,
			 const struct step_work *next)
{
	uint64_t late = 0;

	if (next && next->is_launch_known && next->launch > from)
		late = (next->launch < to ? next->launch : to) - from;
	add_part(walk, GPU_STEP_LATE_LAUNCH, late);
	add_part(walk, GPU_STEP_QUEUED, to - from - late);
	return walk->compares && late
		       ? add_difference(walk, GPU_STEP_DIFFERENCE_IDLE, next->launch_path, late)
		       : 0;
}

/* Time passes up to `to`, where `next` begins; NULL: the last step ends. */
static int pass_time(struct parts_walk *walk, uint64_t from, uint64_t to,
		     const struct step_work *next)
{
	for (size_t class = 0; class < STEP_WORK_CLASS_COUNT && from < to; class ++) {
		uint64_t until = walk->active_until[class] < to ? walk->active_until[class] : to;

		if (until <= from)
			continue;
		add_part(walk, part_of_class[class], until - from);
		from = until;
	}
	return from < to ? add_idle_time(walk, from, to, next) : 0;
}

static int note_work(struct parts_walk *walk, const struct step_work *work)
{
	enum gpu_step_difference_kind kind = work->class == STEP_WORK_COPIES
						     ? GPU_STEP_DIFFERENCE_COPY
						     : GPU_STEP_DIFFERENCE_KERNEL;

	if (!walk->compares) {
		walk->series->steps[walk->step].work_count++;
		return 0;
	}
	return add_difference(walk, kind, work->id, work->end - work->start);
}

static int walk_steps(struct parts_walk *walk)
{
	const struct step_parts_input *input = walk->input;
	const struct gpu_step_series *series = walk->series;
	uint64_t now = series->steps[0].begin_ns, end = series->steps[series->count - 1].end_ns;
	int result = 0;

	memset(walk->active_until, 0, sizeof(walk->active_until));
	walk->step = 0;
	for (size_t i = 0; result == 0 && i < input->work_count; i++) {
		const struct step_work *work = &input->work[i];

		if (work->start >= end)
			break;
		if (work->start > now) {
			result = pass_time(walk, now, work->start, work);
			now = work->start;
		}
		while (walk->step + 1 < series->count &&
		       now >= series->steps[walk->step + 1].begin_ns)
			walk->step++;
		if (result == 0 && work->start >= series->steps[0].begin_ns)
			result = note_work(walk, work);
		if (work->end > walk->active_until[work->class])
			walk->active_until[work->class] = work->end;
	}
	if (result == 0 && now < end)
		result = pass_time(walk, now, end, NULL);
	return result;
}

/* ---- slow steps ---- */

static int compare_u64(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

static uint64_t get_length(const struct gpu_step *step)
{
	return step->end_ns - step->begin_ns;
}

static int find_median_and_slow_steps(struct gpu_step_series *series)
{
	_cleanup_(cleanup_free) uint64_t *lengths = calloc(series->count, sizeof(*lengths));

	if (!lengths)
		return -ENOMEM;
	for (size_t i = 0; i < series->count; i++)
		lengths[i] = get_length(&series->steps[i]);
	qsort(lengths, series->count, sizeof(*lengths), compare_u64);
	series->median_ns = lengths[(series->count - 1) / 2];
	for (size_t i = 0; i < series->count; i++) {
		struct gpu_step *step = &series->steps[i];
		bool is_slow =
			(double)get_length(step) > GPU_STEP_SLOW_FACTOR * (double)series->median_ns;

		if (i == 0 && is_slow) {
			series->starts_slowly = true;
			continue;
		}
		step->is_slow = is_slow;
		series->slow_count += is_slow;
		for (unsigned part = 0; part < GPU_STEP_PART_COUNT; part++)
			series->part_ns[part] += step->part_ns[part];
	}
	return 0;
}

static void keep_difference(struct gpu_step_series *series, const struct gpu_step_difference *one)
{
	double more = one->slow_ns - one->other_ns;
	size_t at = series->difference_count;

	while (at > 0 &&
	       series->differences[at - 1].slow_ns - series->differences[at - 1].other_ns < more)
		at--;
	if (at == GPU_STEP_DIFFERENCES_MAX)
		return;
	if (series->difference_count < GPU_STEP_DIFFERENCES_MAX)
		series->difference_count++;
	memmove(&series->differences[at + 1], &series->differences[at],
		(series->difference_count - at - 1) * sizeof(*series->differences));
	series->differences[at] = *one;
}

static size_t count_other_steps(const struct gpu_step_series *series)
{
	return series->count - series->slow_count - series->starts_slowly;
}

static double mean_length_of_others(const struct gpu_step_series *series)
{
	double ns = 0;

	for (size_t i = series->starts_slowly; i < series->count; i++) {
		if (!series->steps[i].is_slow)
			ns += (double)get_length(&series->steps[i]);
	}
	return ns / (double)count_other_steps(series);
}

/* `column` against the others. */
static struct gpu_step_difference compare_with_others(const struct gpu_step_series *series,
						      const struct difference_sums *row,
						      enum difference_column column)
{
	return (struct gpu_step_difference){
		.kind = row->kind,
		.id = row->id,
		.slow_ns = row->ns[column] / (column == OF_SLOW ? (double)series->slow_count : 1),
		.other_ns = row->ns[OF_OTHERS] / (double)count_other_steps(series)};
}

static void keep_largest_differences(struct gpu_step_series *series,
				     const struct difference_table *table)
{
	double slow = 0, least;

	for (size_t i = 0; i < series->count; i++) {
		if (series->steps[i].is_slow)
			slow += (double)get_length(&series->steps[i]);
	}
	least = DIFFERENCE_SHARE_LEAST *
		(slow / (double)series->slow_count - mean_length_of_others(series));
	for (size_t i = 0; i < table->count; i++) {
		struct gpu_step_difference one =
			compare_with_others(series, &table->rows[i], OF_SLOW);

		if (one.slow_ns - one.other_ns > least)
			keep_difference(series, &one);
	}
}

static void list_slowest_steps(struct gpu_step_series *series)
{
	for (size_t i = 0; i < series->count; i++) {
		size_t at = series->slowest_count;

		if (!series->steps[i].is_slow)
			continue;
		while (at > 0 && get_length(&series->steps[series->slowest[at - 1].step]) <
					 get_length(&series->steps[i]))
			at--;
		if (at == GPU_STEPS_EXPLAINED_MAX)
			continue;
		if (series->slowest_count < GPU_STEPS_EXPLAINED_MAX)
			series->slowest_count++;
		memmove(&series->slowest[at + 1], &series->slowest[at],
			(series->slowest_count - at - 1) * sizeof(*series->slowest));
		series->slowest[at] = (struct gpu_step_explanation){.step = i};
	}
}

/* What explains less than a tenth of what the step takes longer explains nothing. */
static int explain_step(struct parts_walk *walk, struct gpu_step_explanation *explanation)
{
	const struct gpu_step_series *series = walk->series;
	struct difference_table *table = walk->table;
	double most = 0.1 * ((double)get_length(&series->steps[explanation->step]) -
			     mean_length_of_others(series));
	int result;

	for (size_t i = 0; i < table->count; i++)
		table->rows[i].ns[OF_ONE] = 0;
	walk->only_step = explanation->step;
	result = walk_steps(walk);
	for (size_t i = 0; result == 0 && i < table->count; i++) {
		struct gpu_step_difference one =
			compare_with_others(series, &table->rows[i], OF_ONE);

		if (one.slow_ns - one.other_ns <= most)
			continue;
		most = one.slow_ns - one.other_ns;
		explanation->difference = one;
		explanation->is_explained = true;
	}
	return result;
}

static int explain_slow_steps(struct parts_walk *walk)
{
	struct gpu_step_series *series = walk->series;
	int result;

	if (series->slow_count == 0 || count_other_steps(series) == 0)
		return 0;
	list_slowest_steps(series);
	walk->compares = true;
	result = walk_steps(walk);
	if (result == 0)
		keep_largest_differences(series, walk->table);
	for (size_t i = 0; result == 0 && i < series->slowest_count; i++)
		result = explain_step(walk, &series->slowest[i]);
	return result;
}

int step_parts_compute(const struct step_parts_input *input, struct gpu_step_series *series)
{
	struct difference_table table = {0};
	struct parts_walk walk = {
		.input = input, .series = series, .only_step = SIZE_MAX, .table = &table};
	int result = walk_steps(&walk);

	if (result == 0)
		result = find_median_and_slow_steps(series);
	if (result == 0)
		result = explain_slow_steps(&walk);
	free(table.rows);
	id_map_deinit(&table.row_by_kind_and_id);
	return result;
}
