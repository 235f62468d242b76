/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The group of MPI's functions.
 */
#ifndef KYMO_WRAPPERS_MPI_MPI_H
#define KYMO_WRAPPERS_MPI_MPI_H

#include "core/background.h"
#include "core/base/options.h"
#include "core/control.h"

/* Before the group is added: who writes its notices, and what MPI_Pcontrol switches. */
void mpi_remember_collector(struct background_state *background,
			    struct collection_control *control);
/* As those of wrappers.h. */
int wrappers_mpi_add(const struct wrapper_options *options);

#endif
