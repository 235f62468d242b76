/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What profile.json says of MPI, and words of it for other outputs. Nothing where it was not
 * called.
 */
#ifndef KYMO_OUTPUT_JSON_MPI_H
#define KYMO_OUTPUT_JSON_MPI_H

#include <stddef.h>

#include "analysis/mpi/mpi.h"
#include "output/json_writer.h"

/* "mpi_calls" and "mpi_communicators". */
void json_put_mpi(struct json_writer *json, const struct session *session);
/* "rank 3", "process 4711". */
void mpi_format_process(char *ret, size_t size, const struct session *session, uint32_t process);

#endif
