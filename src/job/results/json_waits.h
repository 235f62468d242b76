/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What job.json says of waiting in MPI.
 */
#ifndef KYMO_JOB_RESULTS_JSON_WAITS_H
#define KYMO_JOB_RESULTS_JSON_WAITS_H

#include "job/job.h"
#include "output/json_writer.h"

/* "mpi_waits". 0 or -ENOMEM. */
int json_put_job_waits(struct json_writer *json, const struct job *job);

#endif
