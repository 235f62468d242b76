/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which process of a parallel job this is: from the launcher's environment at the start, from MPI
 * when it is initialised. Each is a RANK record of the process track; the last one counts.
 */
#ifndef KYMO_CORE_RANK_H
#define KYMO_CORE_RANK_H

#include <stdint.h>

struct runtime;

/* MPI said so. Any thread. */
void rank_set_from_mpi(uint32_t rank, uint32_t size);
/* Background thread: what the environment says, once the track is there. */
void rank_write_from_environment(struct runtime *runtime);
/* Background thread, every round and at the end: what MPI said since. */
void rank_write_if_changed(struct runtime *runtime);

#endif
