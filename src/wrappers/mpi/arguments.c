/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Arguments of an MPI call, in C and in Fortran, which passes everything by address and handles as
 * integers. Nothing is looked at that the table does not say, because arguments may be garbage
 * where MPI ignores them.
 */
#include "wrappers/mpi/private.h"

int mpi_frame_get_argument_position(const struct mpi_call_frame *frame, char letter)
{
	return frame->positions[letter & 63];
}

static long get_argument_by_letter(const struct mpi_call_frame *frame, char letter)
{
	return frame->arguments[mpi_frame_get_argument_position(frame, letter)];
}

int64_t mpi_get_integer_argument(const struct mpi_call_frame *frame, char letter)
{
	long value = get_argument_by_letter(frame, letter);

	return mpi_spelling_is_fortran(frame->spelling) ? *(const int *)value : (int)value;
}

static uint64_t clamp_negative_to_zero(int64_t value)
{
	return value > 0 ? (uint64_t)value : 0;
}

uint64_t mpi_get_count_argument(const struct mpi_call_frame *frame, char letter)
{
	long value = get_argument_by_letter(frame, letter);

	if (!mpi_spelling_is_large(frame->spelling))
		return clamp_negative_to_zero(mpi_get_integer_argument(frame, letter));
	return clamp_negative_to_zero(
		mpi_spelling_is_fortran(frame->spelling) ? *(const int64_t *)value : value);
}

uint64_t mpi_get_count_array_element(const struct mpi_call_frame *frame, char letter,
				     uint32_t index)
{
	long value = get_argument_by_letter(frame, letter);

	if (mpi_spelling_is_large(frame->spelling))
		return clamp_negative_to_zero(((const int64_t *)value)[index]);
	return clamp_negative_to_zero(((const int *)value)[index]);
}

static uintptr_t argument_to_handle(const struct mpi_call_frame *frame, long value,
				    uintptr_t (*convert)(int))
{
	if (mpi_spelling_is_fortran(frame->spelling)) {
		int integer = *(const int *)value;

		return convert ? convert(integer) : (uint32_t)integer;
	}
	return mpi_library.flavor == MPI_FLAVOR_MPICH ? (uint32_t)value : (uintptr_t)value;
}

uintptr_t mpi_get_datatype_argument(const struct mpi_call_frame *frame, char letter)
{
	return argument_to_handle(frame, get_argument_by_letter(frame, letter),
				  mpi_library.pmpi_type_f2c);
}

uintptr_t mpi_get_datatype_array_element(const struct mpi_call_frame *frame, char letter,
					 uint32_t index)
{
	long value = get_argument_by_letter(frame, letter);

	if (mpi_spelling_is_fortran(frame->spelling))
		return argument_to_handle(frame, (long)((const int *)value + index),
					  mpi_library.pmpi_type_f2c);
	if (mpi_library.flavor == MPI_FLAVOR_MPICH)
		return ((const uint32_t *)value)[index];
	return ((const uintptr_t *)value)[index];
}

uintptr_t mpi_get_communicator_argument(const struct mpi_call_frame *frame)
{
	long value;

	if (mpi_frame_get_argument_position(frame, 'c') >= 0)
		return argument_to_handle(frame, get_argument_by_letter(frame, 'c'),
					  mpi_library.pmpi_comm_f2c);
	if (mpi_frame_get_argument_position(frame, 'C') < 0)
		return 0;
	value = get_argument_by_letter(frame, 'C');
	if (!value)
		return 0;
	if (!mpi_spelling_is_fortran(frame->spelling))
		value = *(const long *)value;
	return argument_to_handle(frame, value, mpi_library.pmpi_comm_f2c);
}

uintptr_t mpi_get_made_communicator(const struct mpi_call_frame *frame)
{
	long value;
	uintptr_t handle;

	if (mpi_frame_get_argument_position(frame, 'o') < 0)
		return 0;
	value = get_argument_by_letter(frame, 'o');
	if (!value)
		return 0;
	if (!mpi_spelling_is_fortran(frame->spelling))
		value = mpi_library.flavor == MPI_FLAVOR_MPICH ? *(const int *)value
							       : *(const long *)value;
	handle = argument_to_handle(frame, value, mpi_library.pmpi_comm_f2c);
	return handle == mpi_library.null_communicator ? 0 : handle;
}

/* One of an array of handles. */
static uintptr_t get_handle_at(const struct mpi_call_frame *frame, char letter, uint32_t index,
			       uintptr_t (*convert)(int))
{
	long array = get_argument_by_letter(frame, letter);

	if (!array)
		return 0;
	if (mpi_spelling_is_fortran(frame->spelling))
		return argument_to_handle(frame, (long)((const int *)array + index), convert);
	return mpi_library.flavor == MPI_FLAVOR_MPICH ? ((const uint32_t *)array)[index]
						      : ((const uintptr_t *)array)[index];
}

uintptr_t mpi_get_request_handle(const struct mpi_call_frame *frame, uint32_t index)
{
	return get_handle_at(frame, 'Q', index, mpi_library.pmpi_request_f2c);
}

uintptr_t mpi_get_made_request_handle(const struct mpi_call_frame *frame)
{
	return get_handle_at(frame, 'R', 0, mpi_library.pmpi_request_f2c);
}

uintptr_t mpi_get_message_handle(const struct mpi_call_frame *frame)
{
	return get_handle_at(frame, 'M', 0, mpi_library.pmpi_message_f2c);
}

int mpi_get_pointed_integer(const struct mpi_call_frame *frame, char letter, uint32_t index)
{
	const int *array = (const int *)get_argument_by_letter(frame, letter);

	return array ? array[index] : 0;
}

bool mpi_call_found_nothing(const struct mpi_call_frame *frame)
{
	return mpi_frame_get_argument_position(frame, 'F') >= 0 &&
	       !mpi_get_pointed_integer(frame, 'F', 0);
}

static bool list_contains_value(const uintptr_t *list, uintptr_t value)
{
	for (int i = 0; i < 4; i++) {
		if (list[i] && list[i] == value)
			return true;
	}
	return false;
}

bool mpi_argument_is_in_place(const struct mpi_call_frame *frame, char letter)
{
	uintptr_t value;

	if (mpi_frame_get_argument_position(frame, letter) < 0)
		return false;
	value = (uintptr_t)get_argument_by_letter(frame, letter);
	/* A descriptor begins with the address of what it describes (CFI_cdesc_t, ISO/IEC
	 * TS 29113, 8.3.3). */
	if (value &&
	    (frame->spelling == MPI_SPELLING_F08TS || frame->spelling == MPI_SPELLING_F08TS_LARGE))
		value = *(const uintptr_t *)value;
	return list_contains_value(mpi_library.in_place_addresses, value);
}

bool mpi_status_is_ignored(const struct mpi_call_frame *frame)
{
	uintptr_t value = (uintptr_t)get_argument_by_letter(frame, 's');

	return value < 4096 || list_contains_value(mpi_library.status_ignore_addresses, value);
}

bool mpi_statuses_are_ignored(const struct mpi_call_frame *frame)
{
	uintptr_t value = (uintptr_t)get_argument_by_letter(frame, 'S');

	return value < 4096 || list_contains_value(mpi_library.statuses_ignore_addresses, value);
}

const void *mpi_find_status(const struct mpi_call_frame *frame)
{
	if (frame->has_own_status)
		return frame->status;
	if (mpi_frame_get_argument_position(frame, 's') < 0 || mpi_status_is_ignored(frame))
		return NULL;
	return (const void *)get_argument_by_letter(frame, 's');
}

bool mpi_call_succeeded(const struct mpi_call_frame *frame)
{
	const int *error;

	if (!mpi_spelling_is_fortran(frame->spelling))
		return (int)frame->result == 0; /* MPI_SUCCESS in all implementations */
	error = (const int *)frame->arguments[frame->call->arguments];
	/* Optional in mpi_f08; without it errors are fatal or ignored. */
	return !error || *error == 0;
}
