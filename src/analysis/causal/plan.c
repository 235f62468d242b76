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
 *
 * Targets are tried by the time that they have by themselves, and, for less, by the time with all
 * that they call: what takes time may be spread over many small functions, of which none is worth a
 * try, and the function that calls them is.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/causal/causal.h"
#include "common/splitmix64.h"

enum {
	PLAN_TARGETS_DEFAULT = 8,
	PLAN_TARGETS_MAX = 64,
	PLAN_ROUND_STEPS_MAX = 2 * PLAN_TARGETS_MAX,
	PLAN_LEADER_COUNT = 3,
	PLAN_EXPERIMENTS_PER_BASELINE_DEFAULT = 2,
	PLAN_GIVE_UP_WINDOWS_LEAST = 4,  /* of a target, before it can be given up */
	PLAN_GIVEN_UP_ROUND_INTERVAL = 4 /* given up: one round in so many */
};

/* Before that, shares of targets are noise: 20 samples. */
#define PLAN_TOTAL_CPU_NS_LEAST 20000000u
/* A target with less of the time in scope, by itself, is not tried, unless this much is in it with
 * what it calls: but not nearly all, which says nothing, and not as much as in a single function
 * that it calls, of which the same is to be learnt. */
#define PLAN_TARGET_TIME_SHARE_LEAST 0.01
#define PLAN_CALLER_TIME_SHARE_LEAST 0.05
#define PLAN_CALLER_TIME_SHARE_MAX   0.95
#define PLAN_SAME_TIME_TOLERANCE     0.05
#define PLAN_CALLED_TIME_WEIGHT      (1.0 / 3) /* of a second that called functions have */

/* A gain of which nobody speaks, where another one is twice as much. */
#define PLAN_NEGLIGIBLE_GAIN_MAX 0.05

struct plan_round_step {
	uint32_t target, speedup_permille;
};

struct plan_target_candidate {
	uint32_t target;
	double rank_ns; /* how much of the time is a reason to try it */
	double full_speedup_gain, full_speedup_gain_error; /* at full speedup, in parts of the
							      period; standard error */
	size_t window_count;
	bool was_given_up;
};

struct causal_window_planner {
	struct causal_plan_options options;
	uint32_t *speedups;
	uint64_t random_state;
	struct plan_round_step round_steps[PLAN_ROUND_STEPS_MAX];
	size_t round_step_count, next_round_step_index;
	size_t made_round_count;
	unsigned experiments_since_baseline; /* experiments */
	size_t window_count_at_last_check;   /* when intervals were computed last */
	struct plan_target_candidate candidates[PLAN_TARGETS_MAX];
	size_t candidate_count;
};

int causal_plan_create(const struct causal_plan_options *options,
		       struct causal_window_planner **ret)
{
	struct causal_window_planner *plan = calloc(1, sizeof(*plan));
	size_t size = options->speedup_count * sizeof(*options->speedups);

	*ret = plan;
	if (!plan)
		return -ENOMEM;
	plan->options = *options;
	plan->random_state = options->seed;
	plan->speedups = malloc(size + 1);
	if (!plan->speedups) {
		free(plan);
		*ret = NULL;
		return -ENOMEM;
	}
	if (size)
		memcpy(plan->speedups, options->speedups, size);
	if (!plan->options.targets)
		plan->options.targets = PLAN_TARGETS_DEFAULT;
	if (plan->options.targets > PLAN_TARGETS_MAX)
		plan->options.targets = PLAN_TARGETS_MAX;
	if (!plan->options.experiments_per_baseline)
		plan->options.experiments_per_baseline = PLAN_EXPERIMENTS_PER_BASELINE_DEFAULT;
	return 0;
}

void causal_plan_destroy(struct causal_window_planner *plan)
{
	if (plan)
		free(plan->speedups);
	free(plan);
}

static uint64_t plan_draw_random_below(struct causal_window_planner *plan, uint64_t below)
{
	return splitmix64_next(&plan->random_state) % below;
}

/* ---- candidates ---- */

static int compare_candidates_by_time(const void *left, const void *right)
{
	const struct plan_target_candidate *a = left, *b = right;

	if (a->rank_ns != b->rank_ns)
		return a->rank_ns < b->rank_ns ? 1 : -1;
	return a->target < b->target ? -1 : a->target > b->target;
}

/* Keeps the list sorted and as long as it may be. */
static void plan_insert_candidate_by_time(struct causal_window_planner *plan, uint32_t target,
					  double rank_ns)
{
	struct plan_target_candidate candidate = {.target = target, .rank_ns = rank_ns};
	size_t at = plan->candidate_count;

	while (at && compare_candidates_by_time(&candidate, &plan->candidates[at - 1]) < 0)
		at--;
	if (at == plan->options.targets)
		return;
	if (plan->candidate_count < plan->options.targets)
		plan->candidate_count++;
	memmove(plan->candidates + at + 1, plan->candidates + at,
		(plan->candidate_count - 1 - at) * sizeof(candidate));
	plan->candidates[at] = candidate;
}

/* Another one has the same time on the stack and more of it by itself: the two are on the same call
 * path, and it is the inner one. */
static bool plan_time_is_in_one_called_function(const struct causal_data_target_time_row *times,
						size_t count,
						const struct causal_data_target_time_row *time)
{
	double total = (double)time->total_ns;

	for (size_t i = 0; i < count; i++) {
		if (times[i].target != time->target &&
		    fabs((double)times[i].total_ns - total) <= PLAN_SAME_TIME_TOLERANCE * total &&
		    (times[i].self_ns > time->self_ns ||
		     (times[i].self_ns == time->self_ns && times[i].target > time->target)))
			return true;
	}
	return false;
}

/* 0: not worth a try. */
static double plan_compute_rank_of_target(const struct causal_data_target_time_row *times,
					  size_t count, double all,
					  const struct causal_data_target_time_row *time)
{
	double self = (double)time->self_ns, total = (double)time->total_ns,
	       rank = self >= PLAN_TARGET_TIME_SHARE_LEAST * all ? self : 0;

	if (total >= PLAN_CALLER_TIME_SHARE_LEAST * all && total > self &&
	    total < PLAN_CALLER_TIME_SHARE_MAX * all &&
	    !plan_time_is_in_one_called_function(times, count, time))
		rank = self + PLAN_CALLED_TIME_WEIGHT * (total - self);
	return rank;
}

static void plan_find_candidates(struct causal_window_planner *plan,
				 const struct causal_data_target_time_row *times, size_t count)
{
	uint64_t all = 0;

	plan->candidate_count = 0;
	if (plan->options.fixed_target_id) {
		plan->candidates[plan->candidate_count++] =
			(struct plan_target_candidate){.target = plan->options.fixed_target_id};
		return;
	}
	for (size_t i = 0; i < count; i++)
		all += times[i].self_ns;
	if (all < PLAN_TOTAL_CPU_NS_LEAST)
		return;
	for (size_t i = 0; i < count; i++) {
		double rank = plan_compute_rank_of_target(times, count, (double)all, &times[i]);

		if (rank > 0)
			plan_insert_candidate_by_time(plan, times[i].target, rank);
	}
}

/* ---- what is known of them ---- */

/* The point by which targets are compared: the one that most windows have enough of. */
struct plan_comparison_point {
	uint32_t point, end_point;
	size_t window_count;
};

static double plan_compute_visit_period_in_window(const struct causal_data_window *window,
						  const struct plan_comparison_point *point)
{
	for (size_t i = 0; i < window->visits_entry_count && window->end != CAUSAL_WINDOW_CUT_SHORT;
	     i++) {
		const struct causal_data_window_visits *visits = &window->visits[i];

		if (visits->point != point->point || visits->end_point != point->end_point ||
		    !visits->visits)
			continue;
		return (double)(visits->end_point == UINT32_MAX
					? visits->intervals_virtual_ns
					: visits->inside_count_integral_ns) /
		       (double)visits->visits;
	}
	return NAN;
}

static bool plan_window_has_visit_period(const struct causal_data_window *window,
					 const struct plan_comparison_point *point)
{
	return !isnan(plan_compute_visit_period_in_window(window, point));
}

static struct plan_comparison_point plan_find_comparison_point(const struct causal_data *data)
{
	struct plan_comparison_point best = {0, 0, 0};

	for (size_t i = 0; i < data->point_count; i++) {
		const struct causal_data_progress_point *point = &data->points[i];
		struct plan_comparison_point candidate = {point->id, UINT32_MAX, 0};

		for (size_t j = 0; j < data->point_count && point->kind != CAUSAL_POINT_PROGRESS;
		     j++) {
			if (point->kind == CAUSAL_POINT_BEGIN &&
			    data->points[j].kind == CAUSAL_POINT_END &&
			    !strcmp(point->name, data->points[j].name))
				candidate.end_point = data->points[j].id;
		}
		for (size_t j = 0; j < data->window_count; j++)
			candidate.window_count +=
				plan_window_has_visit_period(&data->windows[j], &candidate);
		if (candidate.window_count > best.window_count)
			best = candidate;
	}
	return best;
}

/* Adds the nearest baselines on one side of a window. */
static size_t plan_sum_baseline_periods_one_side(const struct causal_data *data, size_t from,
						 size_t step,
						 const struct plan_comparison_point *point,
						 double *sum)
{
	size_t found = 0;

	/* downwards, the index wraps below 0 and is then too large */
	for (size_t i = from + step; i < data->window_count && found < 2; i += step) {
		if (data->windows[i].target ||
		    !plan_window_has_visit_period(&data->windows[i], point))
			continue;
		*sum += plan_compute_visit_period_in_window(&data->windows[i], point);
		found++;
	}
	return found;
}

/* The mean of the baselines next before and after a window, or NAN. */
static double plan_compute_near_baseline_mean(const struct causal_data *data, size_t at,
					      const struct plan_comparison_point *point)
{
	double sum = 0;
	size_t count = plan_sum_baseline_periods_one_side(data, at, SIZE_MAX, point, &sum) +
		       plan_sum_baseline_periods_one_side(data, at, 1, point, &sum);

	return count ? sum / (double)count : NAN;
}

/* A line through the origin: gain = slope * speedup. The slope is the gain at full speedup. */
static void plan_estimate_gain_slope(const struct causal_data *data,
				     const struct plan_comparison_point *point,
				     struct plan_target_candidate *candidate)
{
	double products = 0, squares = 0, gains = 0, variance;

	for (size_t i = 0; i < data->window_count; i++) {
		const struct causal_data_window *window = &data->windows[i];
		double value, baseline, gain, speedup = window->speedup_permille / 1000.;

		if (window->target != candidate->target || !window->speedup_permille)
			continue;
		value = plan_compute_visit_period_in_window(window, point);
		baseline = plan_compute_near_baseline_mean(data, i, point);
		if (isnan(value) || isnan(baseline) || baseline <= 0)
			continue;
		gain = 1 - value / baseline;
		products += speedup * gain;
		squares += speedup * speedup;
		gains += gain * gain;
		candidate->window_count++;
	}
	if (candidate->window_count < 2 || squares <= 0)
		return;
	candidate->full_speedup_gain = products / squares;
	variance = (gains - candidate->full_speedup_gain * products) /
		   (double)(candidate->window_count - 1);
	candidate->full_speedup_gain_error = sqrt((variance > 0 ? variance : 0) / squares);
}

/* The lower ends of the leaders' intervals: of the best one, and of the last one of them. */
static void plan_find_leader_lower_bounds(const struct causal_window_planner *plan, double *best,
					  double *last)
{
	double lows[PLAN_LEADER_COUNT] = {-1, -1, -1};

	for (size_t i = 0; i < plan->candidate_count; i++) {
		const struct plan_target_candidate *candidate = &plan->candidates[i];
		double low = candidate->full_speedup_gain - 2 * candidate->full_speedup_gain_error;

		for (size_t j = 0;
		     j < PLAN_LEADER_COUNT && candidate->window_count >= PLAN_GIVE_UP_WINDOWS_LEAST;
		     j++) {
			if (low > lows[j]) {
				double other = lows[j];

				lows[j] = low;
				low = other;
			}
		}
	}
	*best = lows[0];
	*last = lows[PLAN_LEADER_COUNT - 1];
}

/* Given up are those that can hardly be leaders, two standard errors of each apart; and those of
 * which it is clear that they gain next to nothing while others gain much. */
static void plan_give_up_hopeless_candidates(struct causal_window_planner *plan,
					     const struct causal_data *data)
{
	struct plan_comparison_point point = plan_find_comparison_point(data);
	double best_low, last_low;

	for (size_t i = 0; i < plan->candidate_count; i++)
		plan_estimate_gain_slope(data, &point, &plan->candidates[i]);
	plan_find_leader_lower_bounds(plan, &best_low, &last_low);
	for (size_t i = 0; i < plan->candidate_count; i++) {
		struct plan_target_candidate *candidate = &plan->candidates[i];
		double high = candidate->full_speedup_gain + 2 * candidate->full_speedup_gain_error;

		candidate->was_given_up =
			candidate->window_count >= PLAN_GIVE_UP_WINDOWS_LEAST &&
			(high < last_low || (high < PLAN_NEGLIGIBLE_GAIN_MAX &&
					     best_low > 2 * PLAN_NEGLIGIBLE_GAIN_MAX));
	}
}

/* ---- rounds ---- */

/* Windows that are cut say that this cannot be tried: more often than once, and mostly. */
static bool plan_most_windows_were_cut(size_t windows, size_t cut)
{
	return cut >= 2 && cut > windows / 2;
}

static bool plan_caller_allows_window(const struct causal_window_planner *plan, uint32_t target,
				      uint32_t permille)
{
	return !plan->options.may_try_window ||
	       plan->options.may_try_window(plan->options.context, target, permille);
}

/* How urgent a speedup is that has had so many windows; less is more. One window is no measurement:
 * the second one comes before another speedup's first. */
static size_t plan_get_turn_of_speedup(size_t windows)
{
	return windows == 1 ? 0 : windows + 1;
}

/* The speedup that the target has had least of; any of several. 0: there is none. */
static uint32_t plan_choose_speedup(struct causal_window_planner *plan,
				    const struct causal_data *data, uint32_t target)
{
	size_t least = SIZE_MAX, ties = 0, turn;
	uint32_t chosen = 0;

	if (plan->options.fixed_speedup_permille != UINT32_MAX)
		return plan->options.fixed_speedup_permille;
	for (size_t i = 0; i < plan->options.speedup_count; i++) {
		size_t windows = 0, cut = 0;

		for (size_t j = 0; j < data->window_count; j++) {
			bool same = data->windows[j].target == target &&
				    data->windows[j].speedup_permille == plan->speedups[i];

			windows += same;
			cut += same && data->windows[j].end == CAUSAL_WINDOW_CUT_SHORT;
		}
		turn = plan_get_turn_of_speedup(windows);
		if (turn > least || plan_most_windows_were_cut(windows, cut) ||
		    !plan_caller_allows_window(plan, target, plan->speedups[i]))
			continue;
		ties = turn < least ? 1 : ties + 1;
		if (turn < least || !plan_draw_random_below(plan, ties))
			chosen = plan->speedups[i];
		least = turn;
	}
	return chosen;
}

static void plan_shuffle_steps(struct causal_window_planner *plan, struct plan_round_step *steps,
			       size_t count)
{
	for (size_t i = count; i > 1; i--) {
		size_t other = plan_draw_random_below(plan, i);
		struct plan_round_step step = steps[i - 1];

		steps[i - 1] = steps[other];
		steps[other] = step;
	}
}

static void plan_make_round_of_experiments(struct causal_window_planner *plan,
					   const struct causal_data *data)
{
	struct plan_round_step steps[PLAN_TARGETS_MAX];
	size_t count = 0;

	for (size_t i = 0; i < plan->candidate_count; i++) {
		const struct plan_target_candidate *candidate = &plan->candidates[i];

		if (candidate->was_given_up &&
		    plan->made_round_count % PLAN_GIVEN_UP_ROUND_INTERVAL)
			continue;
		steps[count].target = candidate->target;
		steps[count].speedup_permille = plan_choose_speedup(plan, data, candidate->target);
		count += steps[count].speedup_permille > 0;
	}
	plan_shuffle_steps(plan, steps, count);
	plan->made_round_count++;
	plan->next_round_step_index = plan->round_step_count = 0;
	for (size_t i = 0; i < count; i++) {
		plan->round_steps[plan->round_step_count++] = steps[i];
		if (++plan->experiments_since_baseline < plan->options.experiments_per_baseline)
			continue;
		plan->round_steps[plan->round_step_count++] = (struct plan_round_step){0, 0};
		plan->experiments_since_baseline = 0;
	}
}

/* ---- enough? ---- */

static double plan_compute_interval_half_width(const struct causal_prediction *prediction)
{
	return (prediction->headline_gain_high_percent - prediction->headline_gain_low_percent) / 2;
}

static bool plan_target_is_given_up(const struct causal_window_planner *plan, uint32_t target)
{
	for (size_t i = 0; i < plan->candidate_count; i++) {
		if (plan->candidates[i].target == target)
			return plan->candidates[i].was_given_up;
	}
	return false;
}

/* The intervals that would be reported: those of the leaders at full speedup, by the point that
 * targets are compared by. What is given up is no leader, however wide its interval is. Computed
 * when the data have grown by a fifth. */
static bool plan_leaders_are_precise_enough(struct causal_window_planner *plan,
					    const struct causal_data *data)
{
	struct causal_fit_options options = {.bootstrap = 400, .seed = plan->options.seed};
	struct causal_fit_result result = {0};
	struct plan_comparison_point point;
	size_t leaders = 0, given_up = 0;
	bool known = true;

	if (!(plan->options.until_ci > 0) ||
	    data->window_count <
		    plan->window_count_at_last_check + plan->window_count_at_last_check / 5 + 6)
		return false;
	plan->window_count_at_last_check = data->window_count;
	if (causal_compute_predictions(data, &options, &result))
		return false;
	point = plan_find_comparison_point(data);
	for (size_t i = 0; i < result.prediction_count && leaders < PLAN_LEADER_COUNT; i++) {
		const struct causal_prediction *prediction = &result.predictions[i];

		if (!prediction->speedup_estimate_count || prediction->point != point.point ||
		    prediction->end_point != point.end_point)
			continue;
		if (plan_target_is_given_up(plan, prediction->target)) {
			given_up++;
			continue;
		}
		leaders++;
		known &= plan_compute_interval_half_width(prediction) <= plan->options.until_ci;
	}
	known &= leaders == PLAN_LEADER_COUNT ||
		 (leaders && leaders + given_up >= plan->candidate_count);
	causal_fit_result_deinit(&result);
	return known;
}

enum causal_plan_decision
causal_plan_choose_next_window(struct causal_window_planner *plan, const struct causal_data *data,
			       const struct causal_data_target_time_row *times, size_t time_count,
			       uint32_t *ret_target, uint32_t *ret_speedup_permille)
{
	*ret_target = *ret_speedup_permille = 0;
	if (plan->next_round_step_index == plan->round_step_count) {
		plan_find_candidates(plan, times, time_count);
		if (!plan->candidate_count)
			return CAUSAL_PLAN_WAIT;
		plan_give_up_hopeless_candidates(plan, data);
		if (plan_leaders_are_precise_enough(plan, data))
			return CAUSAL_PLAN_DONE;
		plan_make_round_of_experiments(plan, data);
		if (!plan->round_step_count)
			return CAUSAL_PLAN_TRY_WINDOW; /* baselines only */
	}
	*ret_target = plan->round_steps[plan->next_round_step_index].target;
	*ret_speedup_permille = plan->round_steps[plan->next_round_step_index++].speedup_permille;
	return CAUSAL_PLAN_TRY_WINDOW;
}
