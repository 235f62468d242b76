/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What recording a call (mpi_record.c) needs of what is installed (mpi.c).
 */
#ifndef KYMO_WRAPPERS_MPI_RECORD_H
#define KYMO_WRAPPERS_MPI_RECORD_H

#include "causal/causal.h"
#include "regions/regions.h"
#include "wrappers/mpi_private.h"

/* By stub number. */
const void *mpi_original(uint32_t index);
/* By call. */
const int8_t *mpi_positions(uint32_t call);
/* 0: the user does not want it. */
region_id mpi_region(uint32_t call);
/* MPI is initialised, and its library understood: arguments may be asked about. */
bool mpi_values_known(void);
void mpi_after_init(const void *init);
void mpi_before_finalize(void);
/* The call has waited (causal_mpi.c). */
void causal_mpi_ends(const struct causal_wait *wait, const struct mpi_frame *frame);

#endif
