/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See step_find.h.
 */
#include "analysis/gpu/step_find.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Distances may differ by one launch in so many: a step that also saves something. */
#define DISTANCE_TOLERANCE_LAUNCHES 50u
/* Of the distances of a kernel that may be a step's. */
#define EVEN_SHARE_LEAST 0.7
/* Of all launches, those from the first to the last step. */
#define COVERAGE_LEAST  0.6
#define EXPLAINED_LEAST 0.7
#define EXPLAINED_EQUAL 0.005
/* Of the kernels that are launched all along: those that one step has. */
#define KINDS_LEAST    0.75
#define KINDS_BETTER   0.1
#define CANDIDATES_MAX 256u

struct candidate {
	uint32_t id;
	size_t distance, first;
	double explained, kinds;
};

/* Positions of each id: those of `id` are positions[begin[id]] to positions[begin[id + 1]]. */
struct positions_by_id {
	size_t *positions, *begin;
};

static int list_positions(const uint32_t *ids, size_t count, uint32_t id_count,
			  struct positions_by_id *ret)
{
	size_t *next = calloc((size_t)id_count + 2, sizeof(*next));

	ret->positions = calloc(count + 1, sizeof(*ret->positions));
	ret->begin = calloc((size_t)id_count + 2, sizeof(*ret->begin));
	if (!next || !ret->positions || !ret->begin) {
		free(next);
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++)
		ret->begin[ids[i] + 1]++;
	for (uint32_t id = 0; id < id_count; id++)
		ret->begin[id + 1] += ret->begin[id];
	memcpy(next, ret->begin, (size_t)id_count * sizeof(*next));
	for (size_t i = 0; i < count; i++)
		ret->positions[next[ids[i]]++] = i;
	free(next);
	return 0;
}

static int compare_sizes(const void *a, const void *b)
{
	size_t left = *(const size_t *)a, right = *(const size_t *)b;

	return left < right ? -1 : left > right;
}

static bool is_about(size_t distance, size_t wanted)
{
	size_t difference = distance > wanted ? distance - wanted : wanted - distance;

	return difference <= wanted / DISTANCE_TOLERANCE_LAUNCHES;
}

static bool is_far_off(size_t distance, size_t wanted)
{
	return distance < wanted / 2 || distance > wanted + wanted / 2;
}

/* False: this kernel is not launched at even distances. `scratch`: room for `count` distances. */
static bool measure_distances(const size_t *positions, size_t count, size_t launches,
			      size_t *scratch, struct candidate *ret)
{
	size_t even = 0, covered = 0, span = positions[count - 1] - positions[0];

	for (size_t i = 0; i + 1 < count; i++)
		scratch[i] = positions[i + 1] - positions[i];
	qsort(scratch, count - 1, sizeof(*scratch), compare_sizes);
	ret->distance = scratch[(count - 1) / 2];
	ret->first = positions[0];
	for (size_t i = 0; i + 1 < count; i++) {
		if (!is_about(scratch[i], ret->distance))
			continue;
		even++;
		covered += scratch[i];
	}
	ret->explained = (double)covered / (double)span;
	return ret->distance >= 2 && (double)even >= EVEN_SHARE_LEAST * (double)(count - 1) &&
	       (double)(span + ret->distance) >= COVERAGE_LEAST * (double)launches;
}

/* Of the kernels with the same distance the one that is launched first is kept: that of the step's
 * begin, as far as the launches tell. */
static void keep_candidate(struct candidate *list, size_t *count, const struct candidate *one)
{
	for (size_t i = 0; i < *count; i++) {
		if (!is_about(one->distance, list[i].distance))
			continue;
		if (one->explained > list[i].explained + EXPLAINED_EQUAL ||
		    (one->explained >= list[i].explained - EXPLAINED_EQUAL &&
		     one->first < list[i].first))
			list[i] = *one;
		return;
	}
	if (*count < CANDIDATES_MAX)
		list[(*count)++] = *one;
}

/* The share of kinds of kernels in the first step of the usual length. `is_frequent`: by id, as it
 * was */
static double measure_kinds(const uint32_t *ids, const size_t *positions, size_t count,
			    size_t distance, size_t kinds, uint8_t *is_frequent)
{
	size_t i = 0, found = 0;

	while (i + 2 < count && !is_about(positions[i + 1] - positions[i], distance))
		i++;
	for (size_t at = positions[i]; at < positions[i + 1]; at++) {
		found += is_frequent[ids[at]] == 1;
		is_frequent[ids[at]] |= 2;
	}
	for (size_t at = positions[i]; at < positions[i + 1]; at++)
		is_frequent[ids[at]] &= 1;
	return kinds ? (double)found / (double)kinds : 0;
}

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *left = a, *right = b;

	return left->distance < right->distance ? -1 : left->distance > right->distance;
}

static const struct candidate *choose_candidate(struct candidate *list, size_t count)
{
	const struct candidate *best = NULL;

	qsort(list, count, sizeof(*list), compare_candidates);
	for (size_t i = 0; i < count; i++) {
		if (list[i].explained < EXPLAINED_LEAST || list[i].kinds < KINDS_LEAST)
			continue;
		if (!best || list[i].kinds > best->kinds + KINDS_BETTER)
			best = &list[i];
	}
	return best;
}

/* What is launched before the loop alone is in no step. */
static bool spans_launches(const size_t *positions, size_t count, size_t launches)
{
	return (double)(positions[count - 1] - positions[0]) >= COVERAGE_LEAST * (double)launches;
}

/* `scratch`: room for all launches; `is_frequent`: for all ids. NULL: none of them is a step's. */
static const struct candidate *list_and_choose(const uint32_t *ids,
					       const struct positions_by_id *by_id,
					       uint32_t id_count, size_t launches, size_t *scratch,
					       uint8_t *is_frequent, struct candidate *list)
{
	size_t count = 0, kinds = 0;

	for (uint32_t id = 0; id < id_count; id++) {
		struct candidate one = {.id = id};
		const size_t *positions = &by_id->positions[by_id->begin[id]];
		size_t occurrences = by_id->begin[id + 1] - by_id->begin[id];

		if (occurrences < STEP_FIND_LEAST_STEPS)
			continue;
		is_frequent[id] = spans_launches(positions, occurrences, launches);
		kinds += is_frequent[id];
		if (measure_distances(positions, occurrences, launches, scratch, &one))
			keep_candidate(list, &count, &one);
	}
	for (size_t i = 0; i < count; i++)
		list[i].kinds =
			measure_kinds(ids, &by_id->positions[by_id->begin[list[i].id]],
				      by_id->begin[list[i].id + 1] - by_id->begin[list[i].id],
				      list[i].distance, kinds, is_frequent);
	return choose_candidate(list, count);
}

static int copy_starts(const struct positions_by_id *by_id, const struct candidate *best,
		       struct step_find_result *ret)
{
	const size_t *positions = &by_id->positions[by_id->begin[best->id]];

	ret->id = best->id;
	ret->explained = best->explained;
	ret->distance = best->distance;
	ret->count = by_id->begin[best->id + 1] - by_id->begin[best->id];
	/* The kernel may be launched before the loop and behind it as well. */
	while (ret->count > 2 && is_far_off(positions[1] - positions[0], best->distance)) {
		positions++;
		ret->count--;
	}
	while (ret->count > 2 &&
	       is_far_off(positions[ret->count - 1] - positions[ret->count - 2], best->distance))
		ret->count--;
	ret->starts = malloc(ret->count * sizeof(*ret->starts));
	if (!ret->starts)
		return -ENOMEM;
	memcpy(ret->starts, positions, ret->count * sizeof(*ret->starts));
	return 1;
}

static int choose_step(const uint32_t *ids, const struct positions_by_id *by_id, uint32_t id_count,
		       size_t launches, struct step_find_result *ret)
{
	size_t *scratch = calloc(launches + 1, sizeof(*scratch));
	uint8_t *is_frequent = calloc((size_t)id_count + 1, 1);
	struct candidate list[CANDIDATES_MAX];
	const struct candidate *best = NULL;
	int result = -ENOMEM;

	if (scratch && is_frequent) {
		best = list_and_choose(ids, by_id, id_count, launches, scratch, is_frequent, list);
		result = best ? copy_starts(by_id, best, ret) : 0;
	}
	free(scratch);
	free(is_frequent);
	return result;
}

int step_find(const uint32_t *ids, size_t count, uint32_t id_count, struct step_find_result *ret)
{
	struct positions_by_id by_id = {0};
	int result;

	*ret = (struct step_find_result){0};
	if (count < (size_t)2 * STEP_FIND_LEAST_STEPS)
		return 0;
	result = list_positions(ids, count, id_count, &by_id);
	if (result == 0)
		result = choose_step(ids, &by_id, id_count, count, ret);
	free(by_id.positions);
	free(by_id.begin);
	return result;
}
