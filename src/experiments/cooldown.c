/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Rests between experiments, with a tenth of the samples.
 *
 * What samples cost is nearly all of what a session costs without delays, and it differs: on a
 * virtual machine two percent for a program of one thread, a tenth where threads meet each 100 us,
 * because timers are set again, outside of it, each time a thread comes to a processor. So some
 * rests are made to compare them with windows without a speedup. Where samples turn out to cost a
 * session that should cost little more than it may, it rests for as much of the time as brings that
 * down.
 */
#include "experiments/control_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What samples may cost a careful session, and how much of it may be rests for that. */
#define COOLDOWN_SAMPLE_COST_SHARE_MAX 0.025
#define COOLDOWN_TIME_SHARE_MAX        0.5
/* Until the rate of samples has changed: the runtime looks every 20 ms. */
#define COOLDOWN_SAMPLE_RATE_SETTLE_NS   (40 * MILLISECOND_NS)
#define COOLDOWN_LENGTH_NS               (200 * MILLISECOND_NS)
#define COOLDOWN_LENGTH_MAX_NS           (2 * SECOND_NS)
#define COOLDOWN_LENGTH_LEAST_NS         (100 * MILLISECOND_NS) /* less is not worth changing the rate */
#define COOLDOWN_VISITS_LEAST            8
#define COOLDOWN_TO_BASELINE_WINDOWS_MAX 16 /* windows */
#define COOLDOWN_SURPLUS_BASELINES_MAX   6  /* so many more than other windows are enough */
/* Standard deviation of what one rest tells: where there are too few to see it, and at least. */
#define COOLDOWN_SAMPLE_COSTS_LEAST         5
#define COOLDOWN_COST_DEVIATION_DEFAULT     0.05
#define COOLDOWN_COST_DEVIATION_LEAST       0.005
#define COOLDOWN_CONFIDENCE_STANDARD_ERRORS 2 /* standard errors */
#define COOLDOWN_SAMPLE_COST_FACTOR_MAX     1e3
/* In a normal distribution: the deviation by the median one, and the error of the median. */
#define DEVIATION_PER_MEDIAN_DEVIATION 1.4826
#define MEDIAN_ERROR_PER_MEAN_ERROR    1.2533
/* After so many windows another one tells little: they become rarer. */
#define WINDOWS_BEFORE_LONGER_COOLDOWNS 2000

/* What is known of the cost holds in the next run as well. */
void control_cooldown_reset_for_run(struct causal_controller *controller)
{
	struct control_cooldown_state *cooldown = &controller->cooldown;

	cooldown->windows = cooldown->baseline_window_count =
		cooldown->window_time_since_cooldown_ns = 0;
	cooldown->next = 1;
	cooldown->baseline_ns_per_visit = cooldown->cooldown_ns_per_visit = 0;
	atomic_store(&controller->shared->resting, 0);
}

void control_cooldown_record_window(struct causal_controller *controller, uint32_t target,
				    uint64_t real_ns)
{
	controller->cooldown.windows++;
	controller->cooldown.baseline_window_count += !target;
	controller->cooldown.window_time_since_cooldown_ns += real_ns;
}

/* ---- what samples cost ---- */

/* What a visit would have taken at the time of the rest, by what it did before and after it: visits
 * may become longer or shorter as the program goes on. */
static double cooldown_interpolate_ns_per_visit(const struct control_cooldown_state *cooldown,
						double after_ns, uint64_t after_at_ns)
{
	double part =
		(double)(cooldown->cooldown_end_ns - cooldown->before_cooldown_baseline_end_ns) /
		(double)(after_at_ns - cooldown->before_cooldown_baseline_end_ns);

	return cooldown->before_cooldown_ns_per_visit *
	       pow(after_ns / cooldown->before_cooldown_ns_per_visit, part);
}

static void cooldown_record_sample_cost(struct control_cooldown_state *cooldown, double usual_ns)
{
	double most = log(COOLDOWN_SAMPLE_COST_FACTOR_MAX),
	       cost = log(usual_ns / cooldown->cooldown_ns_per_visit);

	cooldown->log_sample_costs[cooldown->count % COOLDOWN_SAMPLE_COSTS_MAX] =
		fmin(fmax(cost, -most), most);
	cooldown->count++;
	cooldown->cooldown_ns_per_visit = 0;
}

void control_cooldown_add_baseline(struct causal_controller *controller, uint32_t point,
				   uint64_t visit_ns)
{
	struct control_cooldown_state *cooldown = &controller->cooldown;
	uint64_t now = monotonic_ns();

	if (!visit_ns)
		return;
	if (cooldown->cooldown_ns_per_visit > 0 && cooldown->cooldown_progress_point == point)
		cooldown_record_sample_cost(cooldown, cooldown_interpolate_ns_per_visit(
							      cooldown, (double)visit_ns, now));
	cooldown->point = point;
	cooldown->baseline_end_ns = now;
	cooldown->baseline_ns_per_visit = (double)visit_ns;
}

static int compare_doubles_by_value(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

static double compute_median(double *values, uint32_t count)
{
	qsort(values, count, sizeof(*values), compare_doubles_by_value);
	return count ? (values[(count - 1) / 2] + values[count / 2]) / 2 : 0;
}

/* Programs have phases, and other programs run: some rests tell nonsense, whatever most do. */
static double cooldown_estimate_log_sample_cost(const struct control_cooldown_state *cooldown,
						double *error)
{
	uint32_t count = cooldown->count < COOLDOWN_SAMPLE_COSTS_MAX ? cooldown->count
								     : COOLDOWN_SAMPLE_COSTS_MAX;
	double values[COOLDOWN_SAMPLE_COSTS_MAX], median, deviation;

	memcpy(values, cooldown->log_sample_costs, sizeof(values));
	median = compute_median(values, count);
	for (uint32_t i = 0; i < count; i++)
		values[i] = fabs(values[i] - median);
	deviation = DEVIATION_PER_MEDIAN_DEVIATION * compute_median(values, count);
	deviation = fmax(deviation, count < COOLDOWN_SAMPLE_COSTS_LEAST
					    ? COOLDOWN_COST_DEVIATION_DEFAULT
					    : COOLDOWN_COST_DEVIATION_LEAST);
	*error = MEDIAN_ERROR_PER_MEAN_ERROR * deviation / sqrt(count ? count : 1);
	return median;
}

bool control_cooldown_estimate_sample_cost(const struct causal_controller *controller, double *ret,
					   double *error)
{
	double cost = cooldown_estimate_log_sample_cost(&controller->cooldown, error);

	*ret = exp(cost) - 1;
	*error *= exp(cost);
	return controller->cooldown.count > 1;
}

/* Rests for each second of windows. */
static double
cooldown_compute_seconds_per_window_second(const struct control_cooldown_state *cooldown)
{
	double error, cost = cooldown_estimate_log_sample_cost(cooldown, &error);

	cost -= COOLDOWN_CONFIDENCE_STANDARD_ERRORS * error;
	if (!cooldown->count || cost <= COOLDOWN_SAMPLE_COST_SHARE_MAX)
		return 0;
	return fmin(cost / COOLDOWN_SAMPLE_COST_SHARE_MAX - 1,
		    COOLDOWN_TIME_SHARE_MAX / (1 - COOLDOWN_TIME_SHARE_MAX));
}

/* ---- resting ---- */

/* What a visit took in between; 0: there were too few. */
static double cooldown_compute_ns_per_visit(const struct causal_controller *controller,
					    const struct causal_point_reading *first,
					    uint64_t first_ns,
					    const struct causal_point_reading *last,
					    uint64_t last_ns)
{
	uint64_t visits = last->count - first->count;
	int64_t time = control_ticks_to_ns(controller, last->time - first->time);

	if (first->timed && last->timed)
		return visits >= COOLDOWN_VISITS_LEAST && visits < UINT64_MAX / 2 && time > 0
			       ? (double)time / (double)visits
			       : 0;
	visits = last->visits - first->visits; /* one more or less makes little difference */
	return visits >= COOLDOWN_VISITS_LEAST * COOLDOWN_VISITS_LEAST && visits < UINT64_MAX / 2
		       ? (double)(last_ns - first_ns) / (double)visits
		       : 0;
}

static void cooldown_keep_visit_ns_for_comparison(struct control_cooldown_state *cooldown,
						  double visit_ns)
{
	bool waits = cooldown->cooldown_ns_per_visit > 0 &&
		     cooldown->windows - cooldown->window_count_at_cooldown <
			     COOLDOWN_TO_BASELINE_WINDOWS_MAX;

	if (waits || !(visit_ns > 0) || !(cooldown->baseline_ns_per_visit > 0))
		return;
	cooldown->cooldown_progress_point = cooldown->point;
	cooldown->cooldown_ns_per_visit = visit_ns;
	cooldown->before_cooldown_ns_per_visit = cooldown->baseline_ns_per_visit;
	cooldown->before_cooldown_baseline_end_ns = cooldown->baseline_end_ns;
	cooldown->cooldown_end_ns = monotonic_ns();
	cooldown->window_count_at_cooldown = cooldown->windows;
}

static bool cooldown_pause_and_measure(struct causal_controller *controller, uint64_t ns)
{
	struct control_cooldown_state *cooldown = &controller->cooldown;
	struct causal_point_reading first, last;
	uint64_t begin;
	bool going;

	atomic_store(&controller->shared->resting, 1);
	going = control_sleep_and_renew_lease(controller, COOLDOWN_SAMPLE_RATE_SETTLE_NS);
	causal_point_read(&controller->points, cooldown->point,
			  control_get_virtual_now_ticks(controller), &first);
	begin = monotonic_ns();
	going = going &&
		control_sleep_and_renew_lease(controller, ns - COOLDOWN_SAMPLE_RATE_SETTLE_NS);
	causal_point_read(&controller->points, cooldown->point,
			  control_get_virtual_now_ticks(controller), &last);
	if (going)
		cooldown_keep_visit_ns_for_comparison(
			cooldown, cooldown_compute_ns_per_visit(controller, &first, begin, &last,
								monotonic_ns()));
	atomic_store(&controller->shared->resting, 0);
	cooldown->window_time_since_cooldown_ns = 0;
	cooldown->next = cooldown->windows + 2 + cooldown->windows / 3;
	/* The next window's threads should find samples as often as they were. */
	return going && control_sleep_and_renew_lease(controller, COOLDOWN_SAMPLE_RATE_SETTLE_NS);
}

static uint64_t cooldown_choose_length_ns(const struct causal_controller *controller)
{
	const struct control_cooldown_state *cooldown = &controller->cooldown;
	uint64_t rest = 5 * MILLISECOND_NS, due;

	if (controller->windows > WINDOWS_BEFORE_LONGER_COOLDOWNS)
		rest += 200 * MILLISECOND_NS * controller->windows /
			WINDOWS_BEFORE_LONGER_COOLDOWNS;
	if (!control_is_cost_limited(controller))
		return rest;
	due = (uint64_t)(cooldown_compute_seconds_per_window_second(cooldown) *
			 (double)cooldown->window_time_since_cooldown_ns);
	if (due < COOLDOWN_LENGTH_NS)
		due = cooldown->windows >= cooldown->next ? COOLDOWN_LENGTH_NS : 0;
	due = due < COOLDOWN_LENGTH_MAX_NS ? due : COOLDOWN_LENGTH_MAX_NS;
	return rest > due ? rest : due;
}

bool control_run_cooldown_if_due(struct causal_controller *controller)
{
	uint64_t rest = cooldown_choose_length_ns(controller);

	if (rest < COOLDOWN_LENGTH_LEAST_NS)
		return control_sleep_and_renew_lease(controller, rest);
	return cooldown_pause_and_measure(controller, rest);
}

bool control_prefers_cooldown_to_baseline(const struct causal_controller *controller)
{
	const struct control_cooldown_state *cooldown = &controller->cooldown;

	return control_is_cost_limited(controller) &&
	       2 * cooldown->baseline_window_count >
		       cooldown->windows + COOLDOWN_SURPLUS_BASELINES_MAX;
}

bool control_run_cooldown_instead_of_baseline(struct causal_controller *controller)
{
	return cooldown_pause_and_measure(controller, COOLDOWN_LENGTH_NS);
}
