/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Rests between experiments, with a tenth of the samples.
 *
 * What samples cost is nearly all of what a session costs without delays, and it differs: on a
 * virtual machine two percent for a program of one thread, a tenth where threads meet each 100 us,
 * because timers are set anew, outside of it, each time a thread comes to a processor. So some
 * rests are made to compare them with windows without a speedup. Where samples turn out to cost a
 * session that should cost little more than it may, it rests for as much of the time as brings that
 * down.
 */
#include "cmd/causal_control_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What samples may cost a careful session, and how much of it may be rests for that. */
#define REST_COST 0.025
#define REST_MOST 0.5
/* Until the rate of samples has changed: the runtime looks every 20 ms. */
#define REST_SETTLE    (40 * MILLISECOND)
#define REST_LENGTH    (200 * MILLISECOND)
#define REST_LONGEST   (2 * SECOND)
#define REST_SHORTEST  (100 * MILLISECOND) /* less is not worth changing the rate */
#define REST_VISITS    8
#define REST_WAITS     16 /* windows */
#define REST_BASELINES 6  /* so many more than other windows are enough */
/* Standard deviation of what one rest tells: where there are too few to see it, and at least. */
#define REST_FEW             5
#define REST_DEVIATION       0.05
#define REST_DEVIATION_LEAST 0.005
#define REST_SURE            2 /* standard errors */
#define REST_COST_MOST       1e3
/* Of a normal distribution: the deviation by the median one, and the error of the median. */
#define MEDIAN_DEVIATION 1.4826
#define MEDIAN_ERROR     1.2533
/* After so many windows another one tells little: they become rarer. */
#define REST_WINDOWS_MANY 2000

/* What is known of the cost holds in the next run as well. */
void control_rests_restart(struct causal_controller *controller)
{
	struct control_rests *rests = &controller->rests;

	rests->windows = rests->baselines = rests->awake_ns = 0;
	rests->next = 1;
	rests->usual_ns = rests->rest_ns = 0;
	atomic_store(&controller->shared->resting, 0);
}

void control_rests_follow(struct causal_controller *controller, uint32_t target, uint64_t real_ns)
{
	controller->rests.windows++;
	controller->rests.baselines += !target;
	controller->rests.awake_ns += real_ns;
}

/* ---- what samples cost ---- */

/* What a visit would have taken at the time of the rest, by what it did before and after it: visits
 * may become longer or shorter as the program goes on. */
static double rest_usual_ns(const struct control_rests *rests, double after_ns,
			    uint64_t after_at_ns)
{
	double part = (double)(rests->rest_at_ns - rests->before_at_ns) /
		      (double)(after_at_ns - rests->before_at_ns);

	return rests->before_ns * pow(after_ns / rests->before_ns, part);
}

static void rest_learn(struct control_rests *rests, double usual_ns)
{
	double most = log(REST_COST_MOST), cost = log(usual_ns / rests->rest_ns);

	rests->costs[rests->count % REST_MEMORY] = fmin(fmax(cost, -most), most);
	rests->count++;
	rests->rest_ns = 0;
}

void control_rests_compare(struct causal_controller *controller, uint32_t point, uint64_t visit_ns)
{
	struct control_rests *rests = &controller->rests;
	uint64_t now = causal_clock_ns();

	if (!visit_ns)
		return;
	if (rests->rest_ns > 0 && rests->rest_point == point)
		rest_learn(rests, rest_usual_ns(rests, (double)visit_ns, now));
	rests->point = point;
	rests->usual_at_ns = now;
	rests->usual_ns = (double)visit_ns;
}

static int rest_ascending(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

static double rest_median(double *values, uint32_t count)
{
	qsort(values, count, sizeof(*values), rest_ascending);
	return count ? (values[(count - 1) / 2] + values[count / 2]) / 2 : 0;
}

/* Programs have phases, and other programs run: some rests tell nonsense, whatever most do. */
static double rest_cost(const struct control_rests *rests, double *error)
{
	uint32_t count = rests->count < REST_MEMORY ? rests->count : REST_MEMORY;
	double values[REST_MEMORY], median, deviation;

	memcpy(values, rests->costs, sizeof(values));
	median = rest_median(values, count);
	for (uint32_t i = 0; i < count; i++)
		values[i] = fabs(values[i] - median);
	deviation = MEDIAN_DEVIATION * rest_median(values, count);
	deviation = fmax(deviation, count < REST_FEW ? REST_DEVIATION : REST_DEVIATION_LEAST);
	*error = MEDIAN_ERROR * deviation / sqrt(count ? count : 1);
	return median;
}

bool control_rests_cost(const struct causal_controller *controller, double *ret, double *error)
{
	double cost = rest_cost(&controller->rests, error);

	*ret = exp(cost) - 1;
	*error *= exp(cost);
	return controller->rests.count > 1;
}

/* Rests for each second of windows. */
static double rest_share(const struct control_rests *rests)
{
	double error, cost = rest_cost(rests, &error);

	cost -= REST_SURE * error;
	if (!rests->count || cost <= REST_COST)
		return 0;
	return fmin(cost / REST_COST - 1, REST_MOST / (1 - REST_MOST));
}

/* ---- resting ---- */

/* What a visit took in between; 0: there were too few. */
static double rest_visit_ns(const struct causal_controller *controller,
			    const struct causal_reading *first, uint64_t first_ns,
			    const struct causal_reading *last, uint64_t last_ns)
{
	uint64_t visits = last->count - first->count;
	int64_t time = control_duration(controller, last->time - first->time);

	if (first->timed && last->timed)
		return visits >= REST_VISITS && visits < UINT64_MAX / 2 && time > 0
			       ? (double)time / (double)visits
			       : 0;
	visits = last->visits - first->visits; /* one more or less makes little difference */
	return visits >= REST_VISITS * REST_VISITS && visits < UINT64_MAX / 2
		       ? (double)(last_ns - first_ns) / (double)visits
		       : 0;
}

static void rest_keep(struct control_rests *rests, double visit_ns)
{
	bool waits = rests->rest_ns > 0 && rests->windows - rests->rest_window < REST_WAITS;

	if (waits || !(visit_ns > 0) || !(rests->usual_ns > 0))
		return;
	rests->rest_point = rests->point;
	rests->rest_ns = visit_ns;
	rests->before_ns = rests->usual_ns;
	rests->before_at_ns = rests->usual_at_ns;
	rests->rest_at_ns = causal_clock_ns();
	rests->rest_window = rests->windows;
}

static bool rest_measured(struct causal_controller *controller, uint64_t ns)
{
	struct control_rests *rests = &controller->rests;
	struct causal_reading first, last;
	uint64_t begin;
	bool going;

	atomic_store(&controller->shared->resting, 1);
	going = control_sleep(controller, REST_SETTLE);
	causal_points_read(&controller->points, rests->point, control_virtual_now(controller),
			   &first);
	begin = causal_clock_ns();
	going = going && control_sleep(controller, ns - REST_SETTLE);
	causal_points_read(&controller->points, rests->point, control_virtual_now(controller),
			   &last);
	if (going)
		rest_keep(rests,
			  rest_visit_ns(controller, &first, begin, &last, causal_clock_ns()));
	atomic_store(&controller->shared->resting, 0);
	rests->awake_ns = 0;
	rests->next = rests->windows + 2 + rests->windows / 3;
	/* The next window's threads should find samples as often as they were. */
	return going && control_sleep(controller, REST_SETTLE);
}

static uint64_t rest_length(const struct causal_controller *controller)
{
	const struct control_rests *rests = &controller->rests;
	uint64_t rest = 5 * MILLISECOND, due;

	if (controller->windows > REST_WINDOWS_MANY)
		rest += 200 * MILLISECOND * controller->windows / REST_WINDOWS_MANY;
	if (!control_is_careful(controller))
		return rest;
	due = (uint64_t)(rest_share(rests) * (double)rests->awake_ns);
	if (due < REST_LENGTH)
		due = rests->windows >= rests->next ? REST_LENGTH : 0;
	due = due < REST_LONGEST ? due : REST_LONGEST;
	return rest > due ? rest : due;
}

bool control_rest(struct causal_controller *controller)
{
	uint64_t rest = rest_length(controller);

	if (rest < REST_SHORTEST)
		return control_sleep(controller, rest);
	return rest_measured(controller, rest);
}

bool control_rests_instead(const struct causal_controller *controller)
{
	const struct control_rests *rests = &controller->rests;

	return control_is_careful(controller) &&
	       2 * rests->baselines > rests->windows + REST_BASELINES;
}

bool control_rest_instead(struct causal_controller *controller)
{
	return rest_measured(controller, REST_LENGTH);
}
