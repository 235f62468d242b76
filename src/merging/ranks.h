/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * From result directories to a job: one session after the other, so that memory is that of one rank
 * and of the job, by one process or by several.
 */
#ifndef KYMO_MERGING_RANKS_H
#define KYMO_MERGING_RANKS_H

#include "analysis/session.h"
#include "job/job.h"
#include "merging/inputs.h"

#define MERGE_WORKERS_MAX 256

/* Whether spool/ of the directory has a file with this end of its name. */
bool merge_directory_has_records(const char *directory, const char *name_end);

/* Adds the inputs first, first + step, … to `job`. What cannot be read is noted there. 0 or a
 * negative errno. */
int merge_collect_ranks(struct job *job, const struct merge_inputs *inputs, size_t first,
			size_t step, const struct session_options *options,
			struct problem *problem);
/* The same of all inputs, by so many processes. */
int merge_collect_ranks_by_workers(struct job *job, const struct merge_inputs *inputs,
				   unsigned workers, const struct session_options *options,
				   struct problem *problem);
/* Adds part files. */
int merge_join_parts(struct job *job, char *const *paths, size_t count, struct problem *problem);

#endif
