/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * SESSION/causal/windows.ndjson (analysis/causal/causal.h), written line by line while the program
 * runs, and the same data in memory.
 */
#ifndef KYMO_EXPERIMENTS_JOURNAL_H
#define KYMO_EXPERIMENTS_JOURNAL_H

#include <stdio.h>

#include "analysis/causal/causal.h"
#include "binary/causal/targets.h"
#include "experiments/points.h"

struct causal_journal {
	FILE *stream;
	struct causal_data data;
	bool failed;                /* a line could not be written or kept; the rest may be */
	bool points[CAUSAL_POINTS]; /* that are in it */
};

int causal_journal_open(struct causal_journal *journal, const char *path, struct problem *problem);
/* The data stays. */
void causal_journal_close(struct causal_journal *journal);
void causal_journal_deinit(struct causal_journal *journal);

struct causal_journal_run_description {
	uint32_t number;
	char *const *command;
	const char *mode; /* "function" or "line" */
	uint64_t seed, ticks_per_second;
	bool end_to_end;
};
void causal_journal_write_run_begin(struct causal_journal *journal,
				    const struct causal_journal_run_description *run);
/* Once for each. */
void causal_journal_write_target_once(struct causal_journal *journal,
				      struct causal_targets *targets, uint32_t id);
void causal_journal_write_point_once(struct causal_journal *journal, uint32_t id,
				     const struct causal_point_info *point);
/* The end of the process as a point of its own; behind those that are shared. */
#define CAUSAL_JOURNAL_EXIT_POINT_ID CAUSAL_POINTS
void causal_journal_write_exit_point(struct causal_journal *journal, const char *program);
void causal_journal_write_window(struct causal_journal *journal,
				 const struct causal_data_window *window);
void causal_journal_write_run_end(struct causal_journal *journal,
				  const struct causal_data_program_run *run);

#endif
