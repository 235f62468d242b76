/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Bytes of a call, from its arguments: what the process contributes and what it gets.
 *
 * Which arguments are significant depends on the function, the root and MPI_IN_PLACE (MPI 3.1,
 * chapter 5); the others may be garbage and are not touched. Asked after the call succeeded, so
 * that the significant ones are valid.
 */
#include "wrappers/mpi/private.h"

struct message_side_letter_set {
	char count_letter, counts_letter, type_letter, types_letter;
};

static const struct message_side_letter_set send_side_argument_letters = {'n', 'v', 'd', 'w'},
					    receive_side_argument_letters = {'N', 'V', 'D', 'W'};

static bool call_has_argument(const struct mpi_call_frame *frame, char letter)
{
	return mpi_frame_get_argument_position(frame, letter) >= 0;
}

static uint64_t get_datatype_size(uintptr_t type)
{
	int64_t large = 0;
	int size = 0;

	if (!type || type == mpi_library.null_datatype)
		return 0;
	if (mpi_library.pmpi_type_size_x)
		return !mpi_library.pmpi_type_size_x(type, &large) && large > 0 ? (uint64_t)large
										: 0;
	return !mpi_library.pmpi_type_size(type, &size) && size > 0 ? (uint64_t)size : 0;
}

/* One count and type. A count of 0 may come with any type. */
static uint64_t count_block_bytes(const struct mpi_call_frame *frame,
				  struct message_side_letter_set side)
{
	uint64_t count = mpi_get_count_argument(frame, side.count_letter);

	if (call_has_argument(frame, 'm'))
		count *= mpi_get_count_argument(frame, 'm');
	return count ? count * get_datatype_size(mpi_get_datatype_argument(frame, side.type_letter))
		     : 0;
}

/* All of `blocks`: given each, or the same for all. */
static uint64_t count_all_blocks_bytes(const struct mpi_call_frame *frame,
				       struct message_side_letter_set side, uint32_t number)
{
	uint64_t sum = 0;

	if (!call_has_argument(frame, side.counts_letter))
		return call_has_argument(frame, side.count_letter)
			       ? count_block_bytes(frame, side) * number
			       : 0;
	if (call_has_argument(frame, side.types_letter)) {
		for (uint32_t i = 0; i < number; i++) {
			uint64_t count = mpi_get_count_array_element(frame, side.counts_letter, i);

			if (count)
				sum += count * get_datatype_size(mpi_get_datatype_array_element(
						       frame, side.types_letter, i));
		}
		return sum;
	}
	for (uint32_t i = 0; i < number; i++)
		sum += mpi_get_count_array_element(frame, side.counts_letter, i);
	return sum ? sum * get_datatype_size(mpi_get_datatype_argument(frame, side.type_letter))
		   : 0;
}

/* The block of one rank. */
static uint64_t count_block_bytes_of_rank(const struct mpi_call_frame *frame,
					  struct message_side_letter_set side, uint32_t rank)
{
	uint64_t count;

	if (!call_has_argument(frame, side.counts_letter))
		return count_block_bytes(frame, side);
	count = mpi_get_count_array_element(frame, side.counts_letter, rank);
	return count ? count * get_datatype_size(mpi_get_datatype_argument(frame, side.type_letter))
		     : 0;
}

bool mpi_status_get_bytes(const void *status, uint64_t *ret)
{
	int64_t bytes = 0;

	if (!status || !mpi_library.pmpi_get_elements_x || !mpi_library.byte_datatype ||
	    mpi_library.pmpi_get_elements_x(status, mpi_library.byte_datatype, &bytes) || bytes < 0)
		return false;
	*ret = (uint64_t)bytes;
	return true;
}

/* As the status says, else what there was room for. */
static uint64_t count_received_bytes(const struct mpi_call_frame *frame,
				     struct message_side_letter_set side)
{
	uint64_t bytes;

	if (call_has_argument(frame, 'P') &&
	    mpi_get_integer_argument(frame, 'P') == mpi_library.null_process_rank)
		return 0;
	return mpi_status_get_bytes(mpi_find_status(frame), &bytes)
		       ? bytes
		       : count_block_bytes(frame, side);
}

static uint64_t count_sent_bytes(const struct mpi_call_frame *frame)
{
	if (call_has_argument(frame, 'p') &&
	    mpi_get_integer_argument(frame, 'p') == mpi_library.null_process_rank)
		return 0;
	return count_block_bytes(frame, send_side_argument_letters);
}

/* Collectives with a root: in an intercommunicator the root's group passes MPI_ROOT or
 * MPI_PROC_NULL, the other group the root's rank. */
static void count_rooted_collective_bytes(const struct mpi_call_frame *frame,
					  const struct mpi_communicator *communicator,
					  struct mpi_call_byte_counts *ret)
{
	int64_t root = mpi_get_integer_argument(frame, 'r');
	bool is_root = communicator->is_intercommunicator ? root == mpi_library.root_marker_rank
							  : root == communicator->rank;
	bool is_other = communicator->is_intercommunicator ? root >= 0 : !is_root;
	bool in_place = is_root && (mpi_argument_is_in_place(frame, 'b') ||
				    mpi_argument_is_in_place(frame, 'B'));
	bool takes_part = is_other || (is_root && !communicator->is_intercommunicator);
	uint32_t peers = (uint32_t)communicator->peer_count, rank = (uint32_t)communicator->rank;

	switch (frame->call->kind) {
	case MPI_BCAST:
		ret->sent_bytes =
			is_root ? count_block_bytes(frame, send_side_argument_letters) : 0;
		ret->received_bytes =
			is_other ? count_block_bytes(frame, send_side_argument_letters) : 0;
		break;
	case MPI_REDUCE:
		ret->sent_bytes =
			takes_part ? count_block_bytes(frame, send_side_argument_letters) : 0;
		ret->received_bytes =
			is_root ? count_block_bytes(frame, send_side_argument_letters) : 0;
		break;
	case MPI_GATHER:
		if (takes_part)
			ret->sent_bytes =
				in_place ? count_block_bytes_of_rank(
						   frame, receive_side_argument_letters, rank)
					 : count_block_bytes(frame, send_side_argument_letters);
		ret->received_bytes = is_root ? count_all_blocks_bytes(
							frame, receive_side_argument_letters, peers)
					      : 0;
		break;
	default: /* scatter */
		ret->sent_bytes =
			is_root ? count_all_blocks_bytes(frame, send_side_argument_letters, peers)
				: 0;
		if (takes_part)
			ret->received_bytes =
				in_place ? count_block_bytes_of_rank(
						   frame, send_side_argument_letters, rank)
					 : count_block_bytes(frame, receive_side_argument_letters);
	}
}

static void count_rootless_collective_bytes(const struct mpi_call_frame *frame,
					    const struct mpi_communicator *communicator,
					    struct mpi_call_byte_counts *ret)
{
	bool in_place = mpi_argument_is_in_place(frame, 'b');
	uint32_t peers = (uint32_t)communicator->peer_count, rank = (uint32_t)communicator->rank;
	const struct message_side_letter_set reduced = {'N', 'V', 'd', 'w'};

	switch (frame->call->kind) {
	case MPI_ALLREDUCE:
		ret->sent_bytes = ret->received_bytes =
			count_block_bytes(frame, send_side_argument_letters);
		break;
	case MPI_ALLGATHER:
		ret->sent_bytes = in_place ? count_block_bytes_of_rank(
						     frame, receive_side_argument_letters, rank)
					   : count_block_bytes(frame, send_side_argument_letters);
		ret->received_bytes =
			count_all_blocks_bytes(frame, receive_side_argument_letters, peers);
		break;
	case MPI_ALLTOALL:
		ret->sent_bytes = count_all_blocks_bytes(frame,
							 in_place ? receive_side_argument_letters
								  : send_side_argument_letters,
							 peers);
		ret->received_bytes =
			count_all_blocks_bytes(frame, receive_side_argument_letters, peers);
		break;
	default: /* reduce_scatter: counts are of the local group (MPI 3.1, 5.10) */
		ret->sent_bytes =
			count_all_blocks_bytes(frame, reduced, (uint32_t)communicator->size);
		ret->received_bytes = count_block_bytes_of_rank(frame, reduced, rank);
	}
}

void mpi_count_call_bytes(const struct mpi_call_frame *frame,
			  const struct mpi_communicator *communicator,
			  struct mpi_call_byte_counts *ret)
{
	enum mpi_call_kind kind = frame->call->kind;

	*ret = (struct mpi_call_byte_counts){0};
	ret->has_send_side = kind != MPI_RECEIVE;
	ret->has_receive_side = kind != MPI_SEND && kind != MPI_FILE && kind != MPI_NEIGHBOR;
	if (kind == MPI_SEND || kind == MPI_EXCHANGE || kind == MPI_FILE)
		ret->sent_bytes = count_sent_bytes(frame);
	if (kind == MPI_RECEIVE || kind == MPI_EXCHANGE)
		ret->received_bytes = count_received_bytes(
			frame, call_has_argument(frame, 'N') ? receive_side_argument_letters
							     : send_side_argument_letters);
	if (kind == MPI_NEIGHBOR && call_has_argument(frame, 'n'))
		ret->sent_bytes = count_block_bytes(frame, send_side_argument_letters);
	if (!communicator->handle)
		return;
	if (kind == MPI_BCAST || kind == MPI_REDUCE || kind == MPI_GATHER || kind == MPI_SCATTER)
		count_rooted_collective_bytes(frame, communicator, ret);
	else if (kind == MPI_ALLREDUCE || kind == MPI_ALLGATHER || kind == MPI_ALLTOALL ||
		 kind == MPI_REDUCE_SCATTER)
		count_rootless_collective_bytes(frame, communicator, ret);
}
