/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What files of a job call its parts.
 */
#ifndef KYMO_JOB_RESULTS_WORDS_H
#define KYMO_JOB_RESULTS_WORDS_H

#include "job/job.h"

/* "barrier", "point_to_point", … */
const char *job_mpi_class_get_key(enum job_mpi_class class);
/* "cpu_outside_mpi", "time", … */
const char *job_quantity_get_key(enum job_quantity quantity);
/* "exited", "killed", "failed", "unfinished" */
const char *job_rank_get_end_key(const struct job_rank *rank);
/* What is the matter with a rank, for people: "killed by SIGKILL; 12 records are lost". Empty:
 * nothing is. */
void job_rank_format_troubles(const struct job_rank *rank, char *buffer, size_t size);

#endif
