/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Arguments of an MPI call, in C and in Fortran, which passes everything by address and handles as
 * integers. Nothing is looked at that the table does not say, because arguments may be garbage
 * where MPI ignores them.
 */
#include "wrappers/mpi_private.h"

int mpi_position(const struct mpi_frame *frame, char letter)
{
	return frame->positions[letter & 63];
}

static long argument(const struct mpi_frame *frame, char letter)
{
	return frame->arguments[mpi_position(frame, letter)];
}

int64_t mpi_integer(const struct mpi_frame *frame, char letter)
{
	long value = argument(frame, letter);

	return mpi_spelling_is_fortran(frame->spelling) ? *(const int *)value : (int)value;
}

static uint64_t positive(int64_t value)
{
	return value > 0 ? (uint64_t)value : 0;
}

uint64_t mpi_count(const struct mpi_frame *frame, char letter)
{
	long value = argument(frame, letter);

	if (!mpi_spelling_is_large(frame->spelling))
		return positive(mpi_integer(frame, letter));
	return positive(mpi_spelling_is_fortran(frame->spelling) ? *(const int64_t *)value : value);
}

uint64_t mpi_count_at(const struct mpi_frame *frame, char letter, uint32_t index)
{
	long value = argument(frame, letter);

	if (mpi_spelling_is_large(frame->spelling))
		return positive(((const int64_t *)value)[index]);
	return positive(((const int *)value)[index]);
}

static uintptr_t handle(const struct mpi_frame *frame, long value, uintptr_t (*convert)(int))
{
	if (mpi_spelling_is_fortran(frame->spelling)) {
		int integer = *(const int *)value;

		return convert ? convert(integer) : (uint32_t)integer;
	}
	return mpi_library.flavor == MPI_FLAVOR_MPICH ? (uint32_t)value : (uintptr_t)value;
}

uintptr_t mpi_type(const struct mpi_frame *frame, char letter)
{
	return handle(frame, argument(frame, letter), mpi_library.type_f2c);
}

uintptr_t mpi_type_at(const struct mpi_frame *frame, char letter, uint32_t index)
{
	long value = argument(frame, letter);

	if (mpi_spelling_is_fortran(frame->spelling))
		return handle(frame, (long)((const int *)value + index), mpi_library.type_f2c);
	if (mpi_library.flavor == MPI_FLAVOR_MPICH)
		return ((const uint32_t *)value)[index];
	return ((const uintptr_t *)value)[index];
}

uintptr_t mpi_communicator_handle(const struct mpi_frame *frame)
{
	long value;

	if (mpi_position(frame, 'c') >= 0)
		return handle(frame, argument(frame, 'c'), mpi_library.comm_f2c);
	if (mpi_position(frame, 'C') < 0)
		return 0;
	value = argument(frame, 'C');
	if (!value)
		return 0;
	if (!mpi_spelling_is_fortran(frame->spelling))
		value = *(const long *)value;
	return handle(frame, value, mpi_library.comm_f2c);
}

static bool is_one_of(const uintptr_t *list, uintptr_t value)
{
	for (int i = 0; i < 4; i++) {
		if (list[i] && list[i] == value)
			return true;
	}
	return false;
}

bool mpi_is_in_place(const struct mpi_frame *frame, char letter)
{
	uintptr_t value;

	if (mpi_position(frame, letter) < 0)
		return false;
	value = (uintptr_t)argument(frame, letter);
	/* A descriptor begins with the address of what it describes (CFI_cdesc_t, ISO/IEC
	 * TS 29113, 8.3.3). */
	if (value &&
	    (frame->spelling == MPI_SPELLING_F08TS || frame->spelling == MPI_SPELLING_F08TS_LARGE))
		value = *(const uintptr_t *)value;
	return is_one_of(mpi_library.in_place, value);
}

bool mpi_is_status_ignored(const struct mpi_frame *frame)
{
	uintptr_t value = (uintptr_t)argument(frame, 's');

	return value < 4096 || is_one_of(mpi_library.status_ignore, value);
}

bool mpi_succeeded(const struct mpi_frame *frame)
{
	const int *error;

	if (!mpi_spelling_is_fortran(frame->spelling))
		return (int)frame->result == 0; /* MPI_SUCCESS in all implementations */
	error = (const int *)frame->arguments[frame->call->arguments];
	/* Optional in mpi_f08; without it errors are fatal or ignored. */
	return !error || *error == 0;
}
