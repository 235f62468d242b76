/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The controller of causal experiments: chooses what is sped up virtually and by how much, waits
 * for visits of progress points, and writes down what it measured (causal_journal.h).
 *
 * It is a thread of kymo's. The profiled processes sample, delay and count (src/causal); all that
 * the two sides share is one file (kymo/causal.h). Should kymo die, `expires` in the file is no
 * longer renewed and delays end within a second.
 */
#ifndef KYMO_CMD_CAUSAL_CONTROL_H
#define KYMO_CMD_CAUSAL_CONTROL_H

#include "analysis/causal.h"
#include "binary/causal_targets.h"
#include "cmd/causal_load.h"
#include "cmd/causal_options.h"

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
int causal_control_begin(struct causal_controller *controller);
/* It has ended, with this wait status, and has used this much (NULL: not known); ends the thread.
 * Nothing happens outside of a run. */
void causal_control_end(struct causal_controller *controller, int status,
			const struct causal_load *used);

/* Runs are measured as wholes from now on, one experiment each; there will be few. */
void causal_control_end_to_end(struct causal_controller *controller);
/* Between runs. */
uint32_t causal_control_runs(const struct causal_controller *controller);
/* Progress points that were visited. */
uint32_t causal_control_points(const struct causal_controller *controller);
/* Whether experiments may go on: duration and interval widths are not reached. */
bool causal_control_unfinished(const struct causal_controller *controller);
const struct causal_data *causal_control_data(const struct causal_controller *controller);
/* Whether any process took part; samples that were taken, and those in scope. */
struct causal_control_seen {
	bool taken_part;
	uint32_t points; /* that were visited */
	uint64_t samples, samples_in_scope;
	bool journal_failed;
};
void causal_control_seen(const struct causal_controller *controller,
			 struct causal_control_seen *ret);

#endif
