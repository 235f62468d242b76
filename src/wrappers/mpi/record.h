/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What recording a call (record.c) needs of what is installed (mpi.c).
 */
#ifndef KYMO_WRAPPERS_MPI_RECORD_H
#define KYMO_WRAPPERS_MPI_RECORD_H

#include "causal/causal.h"
#include "regions/regions.h"
#include "wrappers/mpi/private.h"

/* By stub number. */
const void *mpi_get_original_function(uint32_t index);
/* By call. */
const int8_t *mpi_call_get_argument_positions(uint32_t call);
/* 0: the user does not want it. */
region_id mpi_get_call_region(uint32_t call);
/* MPI is initialised, and its library understood: arguments may be asked about. */
bool mpi_can_read_call_arguments(void);
void mpi_complete_wrapping_after_init(const void *init);
void mpi_stop_reading_values(void);
/* MPI_Pcontrol: collection rests, or goes on. */
void mpi_switch_collection(bool collect);
/* The call has waited, in causal profiling (causal.c). */
void mpi_causal_end_wait_and_count_visit(const struct causal_wait_state *wait,
					 const struct mpi_call_frame *frame);

#endif
