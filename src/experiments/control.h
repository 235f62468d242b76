/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The controller of causal experiments: chooses what is sped up virtually and by how much, waits
 * for visits of progress points, and writes down what it measured (journal.h).
 *
 * It is a thread of kymo's. The profiled processes sample, delay and count (src/causal); all that
 * the two sides share is one file (kymo/causal.h). Should kymo die, `expires` in the file is no
 * longer renewed and delays end within a second.
 */
#ifndef KYMO_EXPERIMENTS_CONTROL_H
#define KYMO_EXPERIMENTS_CONTROL_H

#include "analysis/causal/causal.h"
#include "binary/causal/targets.h"
#include "experiments/load.h"
#include "experiments/options.h"

struct causal_controller;

struct causal_control_options {
	const struct causal_options *request;
	const char *session; /* directory; the files are in causal/ there, which exists */
	unsigned scopes;     /* of functions, that end-to-end runs are made for */
	char *const *command;
	struct causal_targets *targets; /* outlives the controller */
};

/* Makes the shared file and the journal. */
int causal_control_create(const struct causal_control_options *options,
			  struct causal_controller **ret, struct problem *problem);
void causal_control_destroy(struct causal_controller *controller);

/* A run of the program is about to begin: starts the thread. 0 or a negative errno. */
int causal_control_begin_run(struct causal_controller *controller);
/* It has ended, with this wait status, and has used this much (NULL: not known); ends the thread.
 * Nothing happens outside of a run. */
void causal_control_end_run(struct causal_controller *controller, int status,
			    const struct causal_session_usage *used);

/* Runs are measured as wholes from now on, one experiment each; there will be few. */
void causal_control_switch_to_end_to_end(struct causal_controller *controller);
/* The run that has ended visited progress points and was over before the first experiment: from now
 * on each run is one experiment, measured between its visits. False: it was not so. */
bool causal_control_try_switch_to_brief_runs(struct causal_controller *controller);
/* The targets with most CPU time on the stack, but for those that have nearly all; returns how many
 * there are. */
size_t causal_control_find_hottest_targets(struct causal_controller *controller, uint32_t *ret,
					   size_t maximum);
/* How long it took. */
uint64_t causal_control_get_last_run_ns(const struct causal_controller *controller);
/* Between runs. */
uint32_t causal_control_get_run_count(const struct causal_controller *controller);
/* Progress points that were visited. */
uint32_t causal_control_count_visited_points(const struct causal_controller *controller);
/* Whether experiments may go on: duration and interval widths are not reached. From any thread. */
bool causal_control_wants_more_experiments(const struct causal_controller *controller);
const struct causal_data *
causal_control_get_recorded_data(const struct causal_controller *controller);
/* Whether any process took part; samples that were taken, and those in scope. */
struct causal_program_activity {
	bool taken_part;
	uint32_t points; /* that were visited */
	uint64_t samples, samples_in_scope;
	bool journal_failed;
};
void causal_control_get_program_activity(const struct causal_controller *controller,
					 struct causal_program_activity *ret);

#endif
