/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo report` of a result that kymo merge has made.
 */
#ifndef KYMO_MERGING_REPORT_H
#define KYMO_MERGING_REPORT_H

#include <stdbool.h>

#include "common/problem.h"

#define MERGE_REPORT_TABLE_ROWS 10 /* where nothing else is asked for */

struct merge_report_request {
	const char *formats; /* as in --format; NULL: none */
	const char *output;  /* NULL: standard output */
	unsigned top;        /* rows of tables; 0: all */
	bool force;
	bool wants_records; /* a table of the database, or a part of the records */
};

/* Writes the job in the directory. 0 or a negative errno, or 1: there is none, or the records of
 * NCCL beside it are asked for (as well). */
int merge_report_job(const char *directory, const struct merge_report_request *request,
		     struct problem *problem);

#endif
