/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which experiment is next: successive elimination.
 *
 * Experiments come in rounds. A round has one window for each target that may still be the best, at
 * a speedup that the target has had least of, in random order, and a baseline after every second of
 * them: the program drifts, and windows are compared with the baselines next to them. Targets whose
 * interval lies below those of the three best ones take part in every fourth round only; so windows
 * go where they can still change the answer.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/causal.h"

enum {
	PLAN_TARGETS = 8,
	PLAN_TARGETS_MAX = 64,
	PLAN_ROUND_MAX = 2 * PLAN_TARGETS_MAX,
	PLAN_LEADERS = 3,
	PLAN_PER_BASELINE = 2,
	PLAN_LEAST_WINDOWS = 4, /* of a target, before it can be given up */
	PLAN_SELDOM = 4         /* given up: one round in so many */
};

/* Before that, shares of targets are noise: 20 samples. */
#define PLAN_LEAST_TIME_NS 20000000u
/* A target with less of the time in scope is not tried. */
#define PLAN_LEAST_SHARE 0.01

/* A gain of which nobody speaks, where another one is twice as much. */
#define PLAN_NOTHING 0.05

struct plan_step {
	uint32_t target, permille;
};

struct plan_candidate {
	uint32_t target;
	uint64_t self_ns;
	double gain, error; /* at full speedup, in parts of the period; standard error */
	size_t windows;
	bool given_up;
};

struct causal_plan {
	struct causal_plan_options options;
	uint32_t *speedups;
	uint64_t random;
	struct plan_step round[PLAN_ROUND_MAX];
	size_t round_count, round_next;
	size_t rounds;
	unsigned since_baseline; /* experiments */
	size_t checked_windows;  /* when intervals were computed last */
	struct plan_candidate candidates[PLAN_TARGETS_MAX];
	size_t candidate_count;
};

int causal_plan_create(const struct causal_plan_options *options, struct causal_plan **ret)
{
	struct causal_plan *plan = calloc(1, sizeof(*plan));
	size_t size = options->speedup_count * sizeof(*options->speedups);

	*ret = plan;
	if (!plan)
		return -ENOMEM;
	plan->options = *options;
	plan->random = options->seed;
	plan->speedups = malloc(size + 1);
	if (!plan->speedups) {
		free(plan);
		*ret = NULL;
		return -ENOMEM;
	}
	if (size)
		memcpy(plan->speedups, options->speedups, size);
	if (!plan->options.targets)
		plan->options.targets = PLAN_TARGETS;
	if (plan->options.targets > PLAN_TARGETS_MAX)
		plan->options.targets = PLAN_TARGETS_MAX;
	if (!plan->options.per_baseline)
		plan->options.per_baseline = PLAN_PER_BASELINE;
	return 0;
}

void causal_plan_destroy(struct causal_plan *plan)
{
	if (plan)
		free(plan->speedups);
	free(plan);
}

/* splitmix64 (Steele, Lea, Flood, OOPSLA 2014) */
static uint64_t plan_random(struct causal_plan *plan, uint64_t below)
{
	uint64_t z = plan->random += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (z ^ z >> 31) % below;
}

/* ---- candidates ---- */

static int plan_compare_time(const void *left, const void *right)
{
	const struct plan_candidate *a = left, *b = right;

	if (a->self_ns != b->self_ns)
		return a->self_ns < b->self_ns ? 1 : -1;
	return a->target < b->target ? -1 : a->target > b->target;
}

/* Keeps the list sorted and as long as it may be. */
static void plan_offer(struct causal_plan *plan, const struct causal_data_time *time)
{
	struct plan_candidate candidate = {.target = time->target, .self_ns = time->self_ns};
	size_t at = plan->candidate_count;

	while (at && plan_compare_time(&candidate, &plan->candidates[at - 1]) < 0)
		at--;
	if (at == plan->options.targets)
		return;
	if (plan->candidate_count < plan->options.targets)
		plan->candidate_count++;
	memmove(plan->candidates + at + 1, plan->candidates + at,
		(plan->candidate_count - 1 - at) * sizeof(candidate));
	plan->candidates[at] = candidate;
}

static void plan_find_candidates(struct causal_plan *plan, const struct causal_data_time *times,
				 size_t count)
{
	uint64_t all = 0;

	plan->candidate_count = 0;
	if (plan->options.fixed_target) {
		plan->candidates[plan->candidate_count++] =
			(struct plan_candidate){.target = plan->options.fixed_target};
		return;
	}
	for (size_t i = 0; i < count; i++)
		all += times[i].self_ns;
	if (all < PLAN_LEAST_TIME_NS)
		return;
	for (size_t i = 0; i < count; i++) {
		if ((double)times[i].self_ns >= PLAN_LEAST_SHARE * (double)all)
			plan_offer(plan, &times[i]);
	}
}

/* ---- what is known of them ---- */

/* The point by which targets are compared: the one that most windows have enough of. */
struct plan_point {
	uint32_t point, end_point;
	size_t windows;
};

static double plan_value(const struct causal_data_window *window, const struct plan_point *point)
{
	for (size_t i = 0; i < window->visit_count && window->end != CAUSAL_ENDED_CUT; i++) {
		const struct causal_data_visits *visits = &window->visits[i];

		if (visits->point != point->point || visits->end_point != point->end_point ||
		    !visits->visits)
			continue;
		return (double)(visits->end_point == UINT32_MAX ? visits->virtual_ns
								: visits->area_ns) /
		       (double)visits->visits;
	}
	return NAN;
}

static bool plan_has_value(const struct causal_data_window *window, const struct plan_point *point)
{
	return !isnan(plan_value(window, point));
}

static struct plan_point plan_find_point(const struct causal_data *data)
{
	struct plan_point best = {0, 0, 0};

	for (size_t i = 0; i < data->point_count; i++) {
		const struct causal_data_point *point = &data->points[i];
		struct plan_point candidate = {point->id, UINT32_MAX, 0};

		for (size_t j = 0; j < data->point_count && point->kind != CAUSAL_POINT_PROGRESS;
		     j++) {
			if (point->kind == CAUSAL_POINT_BEGIN &&
			    data->points[j].kind == CAUSAL_POINT_END &&
			    !strcmp(point->name, data->points[j].name))
				candidate.end_point = data->points[j].id;
		}
		for (size_t j = 0; j < data->window_count; j++)
			candidate.windows += plan_has_value(&data->windows[j], &candidate);
		if (candidate.windows > best.windows)
			best = candidate;
	}
	return best;
}

/* Adds the nearest baselines on one side of a window. */
static size_t plan_add_baselines(const struct causal_data *data, size_t from, size_t step,
				 const struct plan_point *point, double *sum)
{
	size_t found = 0;

	/* downwards, the index wraps below 0 and is then too large */
	for (size_t i = from + step; i < data->window_count && found < 2; i += step) {
		if (data->windows[i].target || !plan_has_value(&data->windows[i], point))
			continue;
		*sum += plan_value(&data->windows[i], point);
		found++;
	}
	return found;
}

/* The mean of the baselines next before and after a window, or NAN. */
static double plan_baseline(const struct causal_data *data, size_t at,
			    const struct plan_point *point)
{
	double sum = 0;
	size_t count = plan_add_baselines(data, at, SIZE_MAX, point, &sum) +
		       plan_add_baselines(data, at, 1, point, &sum);

	return count ? sum / (double)count : NAN;
}

/* A line through the origin: gain = slope * speedup. The slope is the gain at full speedup. */
static void plan_estimate(const struct causal_data *data, const struct plan_point *point,
			  struct plan_candidate *candidate)
{
	double products = 0, squares = 0, gains = 0, variance;

	for (size_t i = 0; i < data->window_count; i++) {
		const struct causal_data_window *window = &data->windows[i];
		double value, baseline, gain, speedup = window->speedup_permille / 1000.;

		if (window->target != candidate->target || !window->speedup_permille)
			continue;
		value = plan_value(window, point);
		baseline = plan_baseline(data, i, point);
		if (isnan(value) || isnan(baseline) || baseline <= 0)
			continue;
		gain = 1 - value / baseline;
		products += speedup * gain;
		squares += speedup * speedup;
		gains += gain * gain;
		candidate->windows++;
	}
	if (candidate->windows < 2 || squares <= 0)
		return;
	candidate->gain = products / squares;
	variance = (gains - candidate->gain * products) / (double)(candidate->windows - 1);
	candidate->error = sqrt((variance > 0 ? variance : 0) / squares);
}

/* The lower ends of the leaders' intervals: of the best one, and of the last one of them. */
static void plan_find_lows(const struct causal_plan *plan, double *best, double *last)
{
	double lows[PLAN_LEADERS] = {-1, -1, -1};

	for (size_t i = 0; i < plan->candidate_count; i++) {
		const struct plan_candidate *candidate = &plan->candidates[i];
		double low = candidate->gain - 2 * candidate->error;

		for (size_t j = 0; j < PLAN_LEADERS && candidate->windows >= PLAN_LEAST_WINDOWS;
		     j++) {
			if (low > lows[j]) {
				double other = lows[j];

				lows[j] = low;
				low = other;
			}
		}
	}
	*best = lows[0];
	*last = lows[PLAN_LEADERS - 1];
}

/* Given up are those that can hardly be leaders, two standard errors of each apart; and those of
 * which it is clear that they gain next to nothing while others gain much. */
static void plan_eliminate(struct causal_plan *plan, const struct causal_data *data)
{
	struct plan_point point = plan_find_point(data);
	double best_low, last_low;

	for (size_t i = 0; i < plan->candidate_count; i++)
		plan_estimate(data, &point, &plan->candidates[i]);
	plan_find_lows(plan, &best_low, &last_low);
	for (size_t i = 0; i < plan->candidate_count; i++) {
		struct plan_candidate *candidate = &plan->candidates[i];
		double high = candidate->gain + 2 * candidate->error;

		candidate->given_up =
			candidate->windows >= PLAN_LEAST_WINDOWS &&
			(high < last_low || (high < PLAN_NOTHING && best_low > 2 * PLAN_NOTHING));
	}
}

/* ---- rounds ---- */

/* Windows that are cut say that this cannot be tried: more often than once, and mostly. */
static bool plan_cannot_be_tried(size_t windows, size_t cut)
{
	return cut >= 2 && cut > windows / 2;
}

static bool plan_may_try(const struct causal_plan *plan, uint32_t target, uint32_t permille)
{
	return !plan->options.may_try ||
	       plan->options.may_try(plan->options.context, target, permille);
}

/* The speedup that the target has had least of; any of several. 0: there is none. */
static uint32_t plan_choose_speedup(struct causal_plan *plan, const struct causal_data *data,
				    uint32_t target)
{
	size_t least = SIZE_MAX, ties = 0;
	uint32_t chosen = 0;

	if (plan->options.fixed_speedup != UINT32_MAX)
		return plan->options.fixed_speedup;
	for (size_t i = 0; i < plan->options.speedup_count; i++) {
		size_t windows = 0, cut = 0;

		for (size_t j = 0; j < data->window_count; j++) {
			bool same = data->windows[j].target == target &&
				    data->windows[j].speedup_permille == plan->speedups[i];

			windows += same;
			cut += same && data->windows[j].end == CAUSAL_ENDED_CUT;
		}
		if (windows > least || plan_cannot_be_tried(windows, cut) ||
		    !plan_may_try(plan, target, plan->speedups[i]))
			continue;
		ties = windows < least ? 1 : ties + 1;
		if (windows < least || !plan_random(plan, ties))
			chosen = plan->speedups[i];
		least = windows;
	}
	return chosen;
}

static void plan_shuffle(struct causal_plan *plan, struct plan_step *steps, size_t count)
{
	for (size_t i = count; i > 1; i--) {
		size_t other = plan_random(plan, i);
		struct plan_step step = steps[i - 1];

		steps[i - 1] = steps[other];
		steps[other] = step;
	}
}

static void plan_make_round(struct causal_plan *plan, const struct causal_data *data)
{
	struct plan_step steps[PLAN_TARGETS_MAX];
	size_t count = 0;

	for (size_t i = 0; i < plan->candidate_count; i++) {
		const struct plan_candidate *candidate = &plan->candidates[i];

		if (candidate->given_up && plan->rounds % PLAN_SELDOM)
			continue;
		steps[count].target = candidate->target;
		steps[count].permille = plan_choose_speedup(plan, data, candidate->target);
		count += steps[count].permille > 0;
	}
	plan_shuffle(plan, steps, count);
	plan->rounds++;
	plan->round_next = plan->round_count = 0;
	for (size_t i = 0; i < count; i++) {
		plan->round[plan->round_count++] = steps[i];
		if (++plan->since_baseline < plan->options.per_baseline)
			continue;
		plan->round[plan->round_count++] = (struct plan_step){0, 0};
		plan->since_baseline = 0;
	}
}

/* ---- enough? ---- */

static double plan_half_width(const struct causal_prediction *prediction)
{
	return (prediction->best_high_percent - prediction->best_low_percent) / 2;
}

static bool plan_gave_up(const struct causal_plan *plan, uint32_t target)
{
	for (size_t i = 0; i < plan->candidate_count; i++) {
		if (plan->candidates[i].target == target)
			return plan->candidates[i].given_up;
	}
	return false;
}

/* The intervals that would be reported: those of the leaders at full speedup, by the point that
 * targets are compared by. What is given up is no leader, however wide its interval is. Computed
 * when the data have grown by a fifth. */
static bool plan_is_known(struct causal_plan *plan, const struct causal_data *data)
{
	struct causal_fit_options options = {.bootstrap = 400, .seed = plan->options.seed};
	struct causal_result result = {0};
	struct plan_point point;
	size_t leaders = 0, given_up = 0;
	bool known = true;

	if (!(plan->options.until_ci > 0) ||
	    data->window_count < plan->checked_windows + plan->checked_windows / 5 + 6)
		return false;
	plan->checked_windows = data->window_count;
	if (causal_fit(data, &options, &result))
		return false;
	point = plan_find_point(data);
	for (size_t i = 0; i < result.prediction_count && leaders < PLAN_LEADERS; i++) {
		const struct causal_prediction *prediction = &result.predictions[i];

		if (!prediction->estimate_count || prediction->point != point.point ||
		    prediction->end_point != point.end_point)
			continue;
		if (plan_gave_up(plan, prediction->target)) {
			given_up++;
			continue;
		}
		leaders++;
		known &= plan_half_width(prediction) <= plan->options.until_ci;
	}
	known &=
		leaders == PLAN_LEADERS || (leaders && leaders + given_up >= plan->candidate_count);
	causal_result_deinit(&result);
	return known;
}

enum causal_plan_state causal_plan_next(struct causal_plan *plan, const struct causal_data *data,
					const struct causal_data_time *times, size_t time_count,
					uint32_t *ret_target, uint32_t *ret_speedup_permille)
{
	*ret_target = *ret_speedup_permille = 0;
	if (plan->round_next == plan->round_count) {
		plan_find_candidates(plan, times, time_count);
		if (!plan->candidate_count)
			return CAUSAL_PLAN_WAIT;
		plan_eliminate(plan, data);
		if (plan_is_known(plan, data))
			return CAUSAL_PLAN_DONE;
		plan_make_round(plan, data);
		if (!plan->round_count)
			return CAUSAL_PLAN_TRY; /* baselines only */
	}
	*ret_target = plan->round[plan->round_next].target;
	*ret_speedup_permille = plan->round[plan->round_next++].permille;
	return CAUSAL_PLAN_TRY;
}
