/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The result directory of a merge.
 */
#ifndef KYMO_MERGING_OUTPUT_H
#define KYMO_MERGING_OUTPUT_H

#include <stdbool.h>

#include "job/job.h"
#include "launch/result_path.h"
#include "merging/inputs.h"

/* Makes it, or takes an empty one, or with `force` one that has results, whose files of an earlier
 * merge are removed. It must be none of the inputs. 0 or a negative errno. */
int merge_output_open(const char *named, bool force, const struct merge_inputs *inputs,
		      struct result_place *ret, struct problem *problem);
/* spool/ is made where there are records to link. */
int merge_output_make_spool(const struct result_place *place, struct problem *problem);
void merge_output_remove_empty_spool(const struct result_place *place);
/* So that the next try need not be forced; what holds anything stays. */
void merge_output_remove_if_empty(const struct result_place *place);
/* launch.json: what ran, and the `sources` of the result, which are sorted. */
int merge_output_write_launch(const struct result_place *place, const struct merge_inputs *sources,
			      struct problem *problem);

/* For commands that read records: -EINVAL where the directory has a job, and no records of NCCL. */
int merge_output_check_has_records(const char *directory, struct problem *problem);
/* Whether a merge has put a job into the directory. */
bool merge_output_has_job(const char *directory);
/* Writes the job of such a directory in a format (job/results/results.h). */
int merge_output_report_job(const char *directory, const char *format, unsigned top, FILE *stream,
			    struct problem *problem);

#endif
