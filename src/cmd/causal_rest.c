/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Rests between experiments, with a tenth of the samples.
 *
 * What samples cost is nearly all of what a session costs without delays, and it differs: half a
 * percent for a program of one thread on a machine with hardware of its own, a tenth where threads
 * meet each 100 us on a virtual one, whose timers are set anew, outside of it, each time a thread
 * comes to a processor. So some rests are made to compare them with windows without a speedup.
 * Where samples turn out to cost a session that should cost little more than it may, it rests for
 * as much of the time as brings that down.
 */
#include "cmd/causal_control_private.h"

#include <math.h>

/* What samples may cost a careful session, and how much of it may be rests for that. */
#define REST_COST 0.025
#define REST_MOST 0.9
/* Until the rate of samples has changed: the runtime looks every 20 ms. */
#define REST_SETTLE    (40 * MILLISECOND)
#define REST_LENGTH    (200 * MILLISECOND)
#define REST_LONGEST   (2 * SECOND)
#define REST_SHORTEST  (100 * MILLISECOND) /* less is not worth changing the rate */
#define REST_VISITS    8
#define REST_BASELINES 6 /* so many more than other windows are enough */
/* Standard deviation of a rest's result where there are too few to tell. */
#define REST_DEVIATION 0.05
#define REST_FEW       5
#define REST_MEMORY    32 /* of so many rests */
/* After so many windows another one tells little: they become rarer. */
#define REST_WINDOWS_MANY 2000

void control_rests_restart(struct causal_controller *controller)
{
	struct control_rests *rests = &controller->rests;

	rests->windows = rests->baselines = rests->awake_ns = 0;
	rests->next = 1;
	rests->usual_ns = 0;
	controller->shared->resting = 0;
}

void control_rests_follow(struct causal_controller *controller, uint32_t target, uint64_t real_ns)
{
	controller->rests.windows++;
	controller->rests.baselines += !target;
	controller->rests.awake_ns += real_ns;
}

void control_rests_compare(struct causal_controller *controller, uint32_t point, uint64_t visit_ns)
{
	struct control_rests *rests = &controller->rests;

	if (rests->point != point || rests->usual_ns <= 0)
		rests->usual_ns = (double)visit_ns;
	rests->point = point;
	rests->usual_ns = (rests->usual_ns + (double)visit_ns) / 2;
}

/* ---- what samples cost ---- */

static void rest_learn(struct control_rests *rests, double cost)
{
	double weight, more = cost - rests->cost;

	rests->count++;
	weight = 1.0 / (rests->count < REST_MEMORY ? rests->count : REST_MEMORY);
	rests->cost += weight * more;
	rests->variance = (1 - weight) * (rests->variance + weight * more * more);
}

static double rest_error(const struct control_rests *rests)
{
	double count = rests->count < REST_MEMORY ? rests->count : REST_MEMORY;
	double variance = rests->count > 1 ? rests->variance * count / (count - 1) : 0;

	if (rests->count < REST_FEW)
		variance = fmax(variance, REST_DEVIATION * REST_DEVIATION);
	return sqrt(variance / fmax(count, 1));
}

bool control_rests_cost(const struct causal_controller *controller, double *ret, double *error)
{
	const struct control_rests *rests = &controller->rests;

	*ret = rests->cost;
	*error = rest_error(rests);
	return rests->count > 1;
}

/* Rests for each second of windows. */
static double rest_share(const struct control_rests *rests)
{
	double cost = rests->cost - rest_error(rests) / 2;

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

static bool rest_measured(struct causal_controller *controller, uint64_t ns)
{
	struct control_rests *rests = &controller->rests;
	struct causal_reading first, last;
	uint64_t begin;
	double visit_ns;
	bool going;

	atomic_store(&controller->shared->resting, 1);
	going = control_sleep(controller, REST_SETTLE);
	causal_points_read(&controller->points, controller->point, control_virtual_now(controller),
			   &first);
	begin = causal_clock_ns();
	going = going && control_sleep(controller, ns - REST_SETTLE);
	causal_points_read(&controller->points, controller->point, control_virtual_now(controller),
			   &last);
	visit_ns = rest_visit_ns(controller, &first, begin, &last, causal_clock_ns());
	atomic_store(&controller->shared->resting, 0);
	if (going && visit_ns > 0 && rests->usual_ns > 0 && rests->point == controller->point)
		rest_learn(rests, rests->usual_ns / visit_ns - 1);
	rests->awake_ns = 0;
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
	struct control_rests *rests = &controller->rests;
	uint64_t rest = rest_length(controller);

	if (rest < REST_SHORTEST)
		return control_sleep(controller, rest);
	rests->next = rests->windows + 2 + rests->windows / 3;
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
	controller->rests.next = controller->rests.windows + 2 + controller->rests.windows / 3;
	return rest_measured(controller, REST_LENGTH);
}
