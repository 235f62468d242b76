/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See steps.h: which spans of launches are steps, and where they begin on each device.
 */
#include "analysis/gpu/steps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "analysis/arena.h"
#include "analysis/gpu/gpu.h"
#include "analysis/gpu/step_find.h"
#include "analysis/gpu/step_parts.h"
#include "analysis/gpu/step_work.h"
#include "common/array.h"
#include "common/cleanup.h"

/* Of all launches, those in ranges that stand out. */
#define RANGE_SHARE_LEAST 0.5

/* Work that is launched from `begin` up to `end` belongs to the step. */
struct launch_span {
	uint64_t begin, end;
};

struct step_spans {
	struct launch_span *list; /* by time, and apart */
	size_t count;
	enum gpu_step_source source;
	const char *name;
};

const char *gpu_step_part_get_name(enum gpu_step_part part)
{
	static const char *const names[GPU_STEP_PART_COUNT] = {
		[GPU_STEP_COMPUTING] = "computing",
		[GPU_STEP_COMMUNICATION] = "communication that no computing hides",
		[GPU_STEP_COPIES] = "copies that nothing hides",
		[GPU_STEP_LATE_LAUNCH] = "idle: the next work was not launched yet",
		[GPU_STEP_QUEUED] = "idle: launched work waited",
	};

	return names[part];
}

/* ---- ranges ---- */

struct range_candidate {
	uint32_t name;
	size_t count;
	uint64_t ns, last_end;
	size_t launches; /* in them */
	bool overlaps;
};

static bool name_is_of_a_step(const char *name)
{
	static const char *const words[] = {"step", "iter", "batch"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcasestr(name, words[i]))
			return true;
	}
	return false;
}

static int compare_times(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

/* How many times are before this one. */
static size_t count_times_before(const uint64_t *times, size_t count, uint64_t time)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (times[middle] < time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* By name, of which there may be many: `by_name` has room for all strings. */
static int sum_ranges_by_name(const struct step_work_list *work, struct range_candidate *by_name)
{
	_cleanup_(cleanup_free) uint64_t *launches =
		calloc(work->work_count + 1, sizeof(*launches));

	if (!launches)
		return -ENOMEM;
	for (size_t i = 0; i < work->work_count; i++)
		launches[i] = work->work[i].launch;
	qsort(launches, work->work_count, sizeof(*launches), compare_times);
	for (size_t i = 0; i < work->range_count; i++) {
		const struct step_range *range = &work->ranges[i];
		struct range_candidate *candidate = &by_name[range->name];

		candidate->name = range->name;
		candidate->overlaps |= range->begin < candidate->last_end;
		candidate->last_end = range->end;
		candidate->ns += range->end - range->begin;
		candidate->launches += count_times_before(launches, work->work_count, range->end) -
				       count_times_before(launches, work->work_count, range->begin);
		candidate->count++;
	}
	return 0;
}

/* The one that is called like a step, else the one that lasts longest each time. */
static const struct range_candidate *
choose_range_that_stands_out(const struct gpu_records_of_process *process,
			     const struct step_work_list *work,
			     const struct range_candidate *by_name)
{
	double least = RANGE_SHARE_LEAST * (double)work->work_count, best_mean = 0;
	const struct range_candidate *best = NULL;
	bool best_is_step = false;

	for (uint32_t name = 0; name <= process->string_count; name++) {
		const struct range_candidate *one = &by_name[name];
		bool is_step;
		double mean;

		if (one->count < GPU_STEPS_LEAST || one->overlaps || (double)one->launches < least)
			continue;
		is_step = name_is_of_a_step(gpu_get_interned_string(process, name));
		mean = (double)one->ns / (double)one->count;
		if (best &&
		    (best_is_step > is_step || (best_is_step == is_step && best_mean >= mean)))
			continue;
		best = one;
		best_is_step = is_step;
		best_mean = mean;
	}
	return best;
}

/* Ranges of the name that was asked for; where those overlap, the outer ones. */
static int copy_spans_of_range(const struct step_work_list *work, uint32_t name,
			       struct step_spans *spans)
{
	uint64_t end = 0;

	spans->list = calloc(work->range_count + 1, sizeof(*spans->list));
	if (!spans->list)
		return -ENOMEM;
	for (size_t i = 0; i < work->range_count; i++) {
		if (work->ranges[i].name != name || work->ranges[i].begin < end)
			continue;
		end = work->ranges[i].end;
		spans->list[spans->count++] =
			(struct launch_span){work->ranges[i].begin, work->ranges[i].end};
	}
	return 0;
}

static uint32_t find_range_name(const struct gpu_records_of_process *process,
				const struct range_candidate *by_name, const char *wanted)
{
	for (uint32_t name = 0; name <= process->string_count; name++) {
		if (by_name[name].count && !strcmp(gpu_get_interned_string(process, name), wanted))
			return name;
	}
	return UINT32_MAX;
}

static int find_spans_by_range(const struct gpu_records_of_process *process,
			       const struct step_work_list *work, const char *wanted,
			       struct step_spans *spans)
{
	struct range_candidate *by_name =
		calloc((size_t)process->string_count + 1, sizeof(*by_name));
	const struct range_candidate *best;
	uint32_t name = UINT32_MAX;
	int result = by_name ? sum_ranges_by_name(work, by_name) : -ENOMEM;

	if (result == 0 && wanted) {
		name = find_range_name(process, by_name, wanted);
	} else if (result == 0) {
		best = choose_range_that_stands_out(process, work, by_name);
		name = best ? best->name : UINT32_MAX;
	}
	free(by_name);
	if (name == UINT32_MAX)
		return result;
	spans->source = GPU_STEPS_BY_RANGE;
	spans->name = gpu_get_interned_string(process, name);
	return copy_spans_of_range(work, name, spans);
}

/* ---- launches ---- */

static int compare_launches(const void *left, const void *right)
{
	const struct step_work *a = *(const struct step_work *const *)left,
			       *b = *(const struct step_work *const *)right;

	if (a->launch != b->launch)
		return a->launch < b->launch ? -1 : 1;
	return a->start < b->start ? -1 : a->start > b->start;
}

/* Where in the step the program takes its longest rest, in launches from the one that was found: it
 * waits for results or for the next data there. That is what people call the step's begin. */
static int find_longest_rest(const struct step_work *const *launches,
			     const struct step_find_result *found, size_t *ret)
{
	uint64_t *rests = calloc(found->distance, sizeof(*rests));

	*ret = 0;
	if (!rests)
		return -ENOMEM;
	for (size_t i = 0; i + 1 < found->count; i++) {
		size_t start = found->starts[i];

		if (found->starts[i + 1] - start != found->distance)
			continue;
		for (size_t offset = start == 0; offset < found->distance; offset++)
			rests[offset] += launches[start + offset]->launch -
					 launches[start + offset - 1]->launch;
	}
	for (size_t offset = 1; offset < found->distance; offset++) {
		if (rests[offset] > rests[*ret])
			*ret = offset;
	}
	free(rests);
	return 0;
}

/* Positions of launches to spans. */
static int make_spans_of_launches(const struct step_work *const *launches, size_t count,
				  const struct step_find_result *found, struct step_spans *spans)
{
	size_t offset, first, last = found->starts[0];

	spans->list = calloc(found->count + 1, sizeof(*spans->list));
	if (!spans->list || find_longest_rest(launches, found, &offset) < 0)
		return -ENOMEM;
	/* The kernel that was found may be launched late in the first step. */
	first = found->starts[0] + offset;
	if (offset && first >= found->distance && first < count &&
	    launches[first - found->distance]->id == launches[first]->id)
		spans->list[spans->count++] =
			(struct launch_span){launches[first - found->distance]->launch, UINT64_MAX};
	for (size_t i = 0; i < found->count; i++) {
		size_t start = found->starts[i] + offset,
		       next = i + 1 < found->count ? found->starts[i + 1] : count;

		/* The last step may be cut off, another one short. */
		if (start >= next ||
		    (next == count && start + found->distance > count + found->distance / 50))
			continue;
		if (spans->count)
			spans->list[spans->count - 1].end = launches[start]->launch;
		spans->list[spans->count++] =
			(struct launch_span){launches[start]->launch, UINT64_MAX};
		last = start;
	}
	/* What is launched behind the loop is not its last step's. */
	if (spans->count && last + found->distance < count)
		spans->list[spans->count - 1].end = launches[last + found->distance]->launch;
	return 0;
}

static uint32_t get_id_of_launch_at(const struct step_work *const *launches, size_t count,
				    uint64_t launch)
{
	size_t at = 0;

	while (at + 1 < count && launches[at]->launch < launch)
		at++;
	return launches[at]->id;
}

/* `launches` and `ids` have room for all work. */
static int find_spans_in_launches(const struct gpu_records_of_process *process,
				  const struct step_work_list *work,
				  const struct step_work **launches, uint32_t *ids,
				  struct step_spans *spans)
{
	struct step_find_result found;
	size_t count = 0;
	int result;

	for (size_t i = 0; i < work->work_count; i++) {
		if (work->work[i].class != STEP_WORK_COPIES)
			launches[count++] = &work->work[i];
	}
	qsort(launches, count, sizeof(*launches), compare_launches); // NOLINT: pointers
	for (size_t i = 0; i < count; i++)
		ids[i] = launches[i]->id;
	result = step_find(ids, count, process->string_count + 1, &found);
	if (result <= 0)
		return result;
	spans->source = GPU_STEPS_BY_LAUNCHES;
	result = make_spans_of_launches(launches, count, &found, spans);
	free(found.starts);
	if (result == 0 && spans->count)
		spans->name = gpu_get_interned_string(
			process, get_id_of_launch_at(launches, count, spans->list[0].begin));
	return result;
}

static int find_spans_by_launches(const struct gpu_records_of_process *process,
				  const struct step_work_list *work, struct step_spans *spans)
{
	const struct step_work **launches =
		calloc(work->work_count + 1, sizeof(*launches)); // NOLINT: pointers
	uint32_t *ids = calloc(work->work_count + 1, sizeof(*ids));
	int result = launches && ids ? find_spans_in_launches(process, work, launches, ids, spans)
				     : -ENOMEM;

	free(launches);
	free(ids);
	return result;
}

/* ---- devices ---- */

/* SIZE_MAX: it was launched in no step. */
static size_t find_span_of_launch(const struct step_spans *spans, uint64_t launch)
{
	size_t low = 0, high = spans->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (spans->list[middle].begin <= launch)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && launch < spans->list[low - 1].end ? low - 1 : SIZE_MAX;
}

/* The kernels of one device, by start: where each step begins, and where the last one ends. */
static int find_steps_on_device(const struct step_spans *spans, const struct step_work *work,
				size_t work_count, struct gpu_step_series *series)
{
	uint64_t *begins = calloc(spans->count, sizeof(*begins));
	uint64_t end = 0, before = 0;
	size_t last = 0;

	series->steps = calloc(spans->count, sizeof(*series->steps));
	if (!begins || !series->steps) {
		free(begins);
		return -ENOMEM;
	}
	for (size_t i = 0; i < work_count; i++) {
		size_t span = find_span_of_launch(spans, work[i].launch);

		if (span == SIZE_MAX)
			continue;
		if (span > last) {
			last = span;
			end = 0;
		}
		if (span == last && work[i].end > end)
			end = work[i].end;
		if (work[i].class != STEP_WORK_COPIES && !begins[span])
			begins[span] = work[i].start;
	}
	for (size_t i = 0; i < spans->count; i++) {
		/* What overtook an earlier step begins none. */
		if (!begins[i] || begins[i] <= before)
			continue;
		if (series->count)
			series->steps[series->count - 1].end_ns = begins[i];
		series->steps[series->count++].begin_ns = before = begins[i];
	}
	if (series->count)
		series->steps[series->count - 1].end_ns = end > before ? end : before;
	free(begins);
	return 0;
}

static int add_series_of_device(struct gpu_steps *steps, uint32_t number,
				const struct gpu_records_of_process *process,
				const struct step_spans *spans, const struct step_work *work,
				size_t work_count)
{
	struct gpu_step_series series = {.process = number,
					 .agent = work->agent,
					 .source = spans->source,
					 .name = spans->name};
	struct step_parts_input input = {work, work_count, process->string_count};
	int result = find_steps_on_device(spans, work, work_count, &series);

	if (result == 0 && series.count >= GPU_STEPS_LEAST) {
		result = step_parts_compute(&input, &series);
		if (result == 0)
			result = array_reserve_one_more((void **)&steps->series, &steps->capacity,
							steps->count, sizeof(*steps->series));
		if (result == 0) {
			steps->series[steps->count++] = series;
			return 0;
		}
	}
	free(series.steps);
	return result;
}

static int add_series_of_all_devices(struct gpu_steps *steps, uint32_t number,
				     const struct gpu_records_of_process *process,
				     const struct step_spans *spans,
				     const struct step_work_list *work)
{
	int result = 0;

	for (size_t i = 0, next; result == 0 && i < work->work_count; i = next) {
		for (next = i; next < work->work_count; next++) {
			if (work->work[next].agent != work->work[i].agent)
				break;
		}
		result = add_series_of_device(steps, number, process, spans, &work->work[i],
					      next - i);
	}
	return result;
}

int gpu_steps_add_process(struct gpu_steps *steps, uint32_t number,
			  const struct gpu_records_of_process *process, const char *wanted)
{
	struct step_work_list work;
	struct step_spans spans = {0};
	bool is_auto = !wanted || !*wanted || !strcmp(wanted, "auto");
	int result;

	if (!is_auto && !strcmp(wanted, "none"))
		return 0;
	result = step_work_read(process, &work);
	if (result == 0)
		result = find_spans_by_range(process, &work, is_auto ? NULL : wanted, &spans);
	if (result == 0 && is_auto && !spans.count) {
		free(spans.list);
		spans.list = NULL;
		result = find_spans_by_launches(process, &work, &spans);
	}
	if (result == 0 && spans.count)
		result = add_series_of_all_devices(steps, number, process, &spans, &work);
	free(spans.list);
	step_work_deinit(&work);
	return result;
}

int gpu_steps_find(struct gpu_data *data, const char *wanted)
{
	bool is_name =
		wanted && *wanted && strcmp(wanted, "auto") != 0 && strcmp(wanted, "none") != 0;
	int result = 0;

	for (size_t i = 0; result == 0 && i < data->process_count; i++)
		result = gpu_steps_add_process(&data->steps, (uint32_t)i, &data->processes[i],
					       wanted);
	if (is_name && !data->steps.count)
		data->steps.missing_range = wanted;
	return result;
}

void gpu_steps_deinit(struct gpu_steps *steps)
{
	for (size_t i = 0; i < steps->count; i++)
		free(steps->series[i].steps);
	free(steps->series);
	*steps = (struct gpu_steps){0};
}
