/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where the replacement of an MPI function is, of those that stub_code.S makes.
 */
#include "wrappers/mpi/stubs.h"
#include "wrappers/mpi/private.h"

_Static_assert(MPI_STUB_COUNT == MPI_SPELLING_COUNT * MPI_CALLS_MAX, "a stub for each spelling");

extern const char kymo_mpi_stubs[] __attribute__((visibility("hidden")));

void *mpi_get_stub_address(uint32_t index)
{
	return (void *)(uintptr_t)(kymo_mpi_stubs + (size_t)index * MPI_STUB_SIZE);
}
