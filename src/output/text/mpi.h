/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The tables of MPI in profile.txt. Nothing where it was not called.
 */
#ifndef KYMO_OUTPUT_TEXT_MPI_H
#define KYMO_OUTPUT_TEXT_MPI_H

#include <stdio.h>

#include "output/output.h"

void text_write_mpi(const struct session *session, const struct output_options *options,
		    FILE *stream);

#endif
