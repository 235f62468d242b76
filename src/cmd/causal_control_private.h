/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the files of the controller share; see causal_control.h.
 */
#ifndef KYMO_CMD_CAUSAL_CONTROL_PRIVATE_H
#define KYMO_CMD_CAUSAL_CONTROL_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "cmd/causal_budget.h"
#include "cmd/causal_clock.h"
#include "cmd/causal_control.h"
#include "cmd/causal_journal.h"
#include "cmd/causal_load.h"

#define MILLISECOND 1000000ull
#define SECOND      1000000000ull

/* Counters of the shared file when the run began. */
struct control_counts {
	uint64_t samples, samples_in_scope, paid, overslept, credited, pauses;
};

/* How often a point is visited, as far as it is known. */
struct control_pace {
	uint64_t period_ns; /* real; 0: not known */
	uint64_t wanted;    /* visits of a window: as many in all of them */
};

#define REST_MEMORY 32u

/* Rests of a run, and what they tell of the others' cost (causal_rest.c). */
struct control_rests {
	uint64_t next;               /* after so many windows there is one in any case */
	uint64_t windows, baselines; /* of the run */
	uint64_t awake_ns;           /* since the last one */
	/* Of the last window without a speedup: its point, its end, and what a visit took; 0: there
	 * was none yet. */
	uint32_t point;
	uint64_t usual_at_ns;
	double usual_ns;
	/* A rest that waits for the next such window of the same point: what a visit took in it and
	 * in the window before, their ends, and how many windows there were. rest_ns 0: none does.
	 */
	uint32_t rest_point;
	uint64_t rest_at_ns, before_at_ns, rest_window;
	double rest_ns, before_ns;
	/* Logarithms of how many times as long visits took without a rest, of the last ones. */
	double costs[REST_MEMORY];
	uint32_t count;
};

struct causal_controller {
	struct causal_control_options options;
	struct causal_control *shared;
	struct causal_clock clock;
	struct causal_points points;
	struct control_pace paces[CAUSAL_POINTS];
	struct causal_journal journal;
	struct causal_plan *plan;
	/* Of targets, in the order of ids, at the end and at the begin of a window. */
	struct causal_data_time *times, *times_before;
	size_t time_count, before_count, time_capacity;

	pthread_t thread;
	bool running;
	int wake; /* eventfd: the run is over */
	bool over;
	bool stalled; /* slept much longer than asked: stopped, or a machine without time */

	uint32_t run, runs;
	bool end_to_end, done, taken_part;
	uint64_t epoch, windows;
	uint64_t run_start_ns, experiments_ns;
	/* When the run began, or when a point was given up: it counts when it is visited again. */
	uint64_t start_visits[CAUSAL_POINTS];
	uint64_t own_point_ns; /* when a point of the user's was there last */
	struct control_counts start_counts;
	/* End to end: the experiment of the run. */
	uint32_t target, speedup_permille;
	uint64_t run_start_delay, run_ns; /* of the run that has ended */
	struct causal_load run_load;
	/* Real time that experiments have cost the run so far, and what others would. */
	struct causal_budget budget;
	uint32_t point; /* of the next window */
	struct control_rests rests;
	/* An experiment that was chosen and waits until the run may lose as much by it. */
	bool postponed;
	uint32_t postponed_target, postponed_permille;
};

/* ---- causal_control.c ---- */

/* Sleeps; false when the run is over. Keeps the experiment from expiring. */
bool control_sleep(struct causal_controller *controller, uint64_t ns);
void control_activate(struct causal_controller *controller, uint32_t target, uint32_t permille);
void control_deactivate(struct causal_controller *controller);
/* The virtual time of a thread that owes nothing, ticks. */
uint64_t control_virtual_now(const struct causal_controller *controller);
int64_t control_duration(const struct causal_controller *controller, uint64_t ticks);
/* Reads CPU times of all targets into controller->times. */
void control_times(struct causal_controller *controller);

/* ---- causal_cost.c ---- */

/* Nobody said how long it may take, or what is to be tried: it should cost little. */
bool control_is_careful(const struct causal_controller *controller);
/* What the run may lose yet, in nanoseconds. */
double control_may_lose(const struct causal_controller *controller);
/* Whether a window of this costs no more than those of one target may. `context`: the controller.
 */
bool control_may_try(void *context, uint32_t target, uint32_t permille);
/* An experiment that costs more than the run may lose by now is postponed; a baseline takes its
 * place. */
void control_afford(struct causal_controller *controller, uint32_t *target, uint32_t *permille);
/* Whether the one that was postponed is to be tried still. */
bool control_choose_postponed(struct causal_controller *controller, uint32_t *target,
			      uint32_t *permille);
/* What a target costs is told by its share of the time, which baselines show. */
bool control_needs_baseline(const struct causal_controller *controller);

/* ---- causal_pace.c ---- */

/* Of windows. */
#define WINDOW_LENGTH (200 * MILLISECOND)
#define WINDOW_VISITS 8
#define WINDOW_LIMIT  (20 * WINDOW_LENGTH)
/* Before a window the program gets into the rhythm of the experiment, and its threads learn how
 * much of their time is the target's, for which they need some samples each; a visit counts as the
 * window's begin when half of that is over. */
#define WINDOW_SETTLE (40 * MILLISECOND)

static inline uint64_t control_clamp(uint64_t value, uint64_t low, uint64_t high)
{
	return value < low ? low : value > high ? high : value;
}

/* The point that windows are cut by; CAUSAL_NO_POINT: none is visited. */
uint32_t control_choose_point(struct causal_controller *controller, bool own_only);
/* Nobody counts its visits any more. */
bool control_point_is_lost(const struct causal_controller *controller, uint32_t point);
/* Finds out how often points are visited. False: the run is over. */
bool control_pace_points(struct causal_controller *controller);
void control_pace_set(struct control_pace *pace, uint64_t real_ns, uint64_t visits);
/* A baseline had this period. */
void control_pace_follow(struct control_pace *pace, uint64_t period_ns);

/* ---- causal_rest.c ---- */

void control_rests_restart(struct causal_controller *controller);
/* A window is over. */
void control_rests_follow(struct causal_controller *controller, uint32_t target, uint64_t real_ns);
/* What a visit took in one without a speedup. */
void control_rests_compare(struct causal_controller *controller, uint32_t point, uint64_t visit_ns);
/* Between two windows. False: the run is over. */
bool control_rest(struct causal_controller *controller);
/* Whether one is better than another window without a speedup; and that. False: the run is over. */
bool control_rests_instead(const struct causal_controller *controller);
bool control_rest_instead(struct causal_controller *controller);
/* By how much samples make a visit longer, with its standard error; false: it is not known. */
bool control_rests_cost(const struct causal_controller *controller, double *ret, double *error);

/* ---- causal_window_written.c ---- */

/* Adds times of targets, and writes it. */
void control_write_window(struct causal_controller *controller, struct causal_data_window *window);

/* ---- causal_window.c ---- */

/* One experiment, written down. False: the run is over. A window that takes away much more than the
 * run may lose is cut. */
bool control_window(struct causal_controller *controller, uint32_t point, uint32_t target,
		    uint32_t permille);

#endif
