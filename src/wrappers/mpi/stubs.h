/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What stub_code.S and C know alike.
 */
#ifndef KYMO_WRAPPERS_MPI_STUBS_H
#define KYMO_WRAPPERS_MPI_STUBS_H

#define MPI_STUB_SIZE  16
#define MPI_STUB_COUNT 4032 /* MPI_SPELLING_COUNT * MPI_CALLS_MAX */

#endif
