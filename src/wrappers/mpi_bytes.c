/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Bytes of a call, from its arguments: what the process contributes and what it gets.
 *
 * Which arguments are significant depends on the function, the root and MPI_IN_PLACE (MPI 3.1,
 * chapter 5); the others may be garbage and are not touched. Asked after the call succeeded, so
 * that the significant ones are valid.
 */
#include "wrappers/mpi_private.h"

struct side {
	char count, counts, type, types;
};

static const struct side sending = {'n', 'v', 'd', 'w'}, receiving = {'N', 'V', 'D', 'W'};

static bool has(const struct mpi_frame *frame, char letter)
{
	return mpi_position(frame, letter) >= 0;
}

static uint64_t type_size(uintptr_t type)
{
	int64_t large = 0;
	int size = 0;

	if (!type || type == mpi_library.type_null)
		return 0;
	if (mpi_library.type_size_x)
		return !mpi_library.type_size_x(type, &large) && large > 0 ? (uint64_t)large : 0;
	return !mpi_library.type_size(type, &size) && size > 0 ? (uint64_t)size : 0;
}

/* One count and type. A count of 0 may come with any type. */
static uint64_t block(const struct mpi_frame *frame, struct side side)
{
	uint64_t count = mpi_count(frame, side.count);

	if (has(frame, 'm'))
		count *= mpi_count(frame, 'm');
	return count ? count * type_size(mpi_type(frame, side.type)) : 0;
}

/* All of `blocks`: given each, or the same for all. */
static uint64_t blocks(const struct mpi_frame *frame, struct side side, uint32_t number)
{
	uint64_t sum = 0;

	if (!has(frame, side.counts))
		return has(frame, side.count) ? block(frame, side) * number : 0;
	if (has(frame, side.types)) {
		for (uint32_t i = 0; i < number; i++) {
			uint64_t count = mpi_count_at(frame, side.counts, i);

			if (count)
				sum += count * type_size(mpi_type_at(frame, side.types, i));
		}
		return sum;
	}
	for (uint32_t i = 0; i < number; i++)
		sum += mpi_count_at(frame, side.counts, i);
	return sum ? sum * type_size(mpi_type(frame, side.type)) : 0;
}

/* The block of one rank. */
static uint64_t block_of(const struct mpi_frame *frame, struct side side, uint32_t rank)
{
	uint64_t count;

	if (!has(frame, side.counts))
		return block(frame, side);
	count = mpi_count_at(frame, side.counts, rank);
	return count ? count * type_size(mpi_type(frame, side.type)) : 0;
}

/* As the status says, else what there was room for. */
static uint64_t received(const struct mpi_frame *frame, struct side side)
{
	int64_t bytes = 0;

	if (has(frame, 'P') && mpi_integer(frame, 'P') == mpi_library.proc_null)
		return 0;
	if (has(frame, 's') && (frame->own_status || !mpi_is_status_ignored(frame)) &&
	    mpi_library.get_elements_x && mpi_library.type_byte) {
		const void *status =
			frame->own_status
				? (const void *)frame->status
				: (const void *)frame->arguments[mpi_position(frame, 's')];
		if (!mpi_library.get_elements_x(status, mpi_library.type_byte, &bytes) &&
		    bytes >= 0)
			return (uint64_t)bytes;
	}
	return block(frame, side);
}

static uint64_t sent(const struct mpi_frame *frame)
{
	if (has(frame, 'p') && mpi_integer(frame, 'p') == mpi_library.proc_null)
		return 0;
	return block(frame, sending);
}

/* Collectives with a root: in an intercommunicator the root's group passes MPI_ROOT or
 * MPI_PROC_NULL, the other group the root's rank. */
static void rooted(const struct mpi_frame *frame, const struct mpi_communicator *communicator,
		   struct mpi_bytes *ret)
{
	int64_t root = mpi_integer(frame, 'r');
	bool is_root = communicator->inter ? root == mpi_library.root : root == communicator->rank;
	bool is_other = communicator->inter ? root >= 0 : !is_root;
	bool in_place = is_root && (mpi_is_in_place(frame, 'b') || mpi_is_in_place(frame, 'B'));
	bool takes_part = is_other || (is_root && !communicator->inter);
	uint32_t peers = (uint32_t)communicator->peers, rank = (uint32_t)communicator->rank;

	switch (frame->call->kind) {
	case MPI_BCAST:
		ret->sent = is_root ? block(frame, sending) : 0;
		ret->received = is_other ? block(frame, sending) : 0;
		break;
	case MPI_REDUCE:
		ret->sent = takes_part ? block(frame, sending) : 0;
		ret->received = is_root ? block(frame, sending) : 0;
		break;
	case MPI_GATHER:
		if (takes_part)
			ret->sent =
				in_place ? block_of(frame, receiving, rank) : block(frame, sending);
		ret->received = is_root ? blocks(frame, receiving, peers) : 0;
		break;
	default: /* scatter */
		ret->sent = is_root ? blocks(frame, sending, peers) : 0;
		if (takes_part)
			ret->received =
				in_place ? block_of(frame, sending, rank) : block(frame, receiving);
	}
}

static void to_all(const struct mpi_frame *frame, const struct mpi_communicator *communicator,
		   struct mpi_bytes *ret)
{
	bool in_place = mpi_is_in_place(frame, 'b');
	uint32_t peers = (uint32_t)communicator->peers, rank = (uint32_t)communicator->rank;
	const struct side reduced = {'N', 'V', 'd', 'w'};

	switch (frame->call->kind) {
	case MPI_ALLREDUCE:
		ret->sent = ret->received = block(frame, sending);
		break;
	case MPI_ALLGATHER:
		ret->sent = in_place ? block_of(frame, receiving, rank) : block(frame, sending);
		ret->received = blocks(frame, receiving, peers);
		break;
	case MPI_ALLTOALL:
		ret->sent = blocks(frame, in_place ? receiving : sending, peers);
		ret->received = blocks(frame, receiving, peers);
		break;
	default: /* reduce_scatter: counts are of the local group (MPI 3.1, 5.10) */
		ret->sent = blocks(frame, reduced, (uint32_t)communicator->size);
		ret->received = block_of(frame, reduced, rank);
	}
}

void mpi_bytes(const struct mpi_frame *frame, const struct mpi_communicator *communicator,
	       struct mpi_bytes *ret)
{
	enum mpi_kind kind = frame->call->kind;

	*ret = (struct mpi_bytes){0};
	ret->sends = kind != MPI_RECEIVE;
	ret->receives = kind != MPI_SEND && kind != MPI_FILE && kind != MPI_NEIGHBOR;
	if (kind == MPI_SEND || kind == MPI_EXCHANGE || kind == MPI_FILE)
		ret->sent = sent(frame);
	if (kind == MPI_RECEIVE || kind == MPI_EXCHANGE)
		ret->received = received(frame, has(frame, 'N') ? receiving : sending);
	if (kind == MPI_NEIGHBOR && has(frame, 'n'))
		ret->sent = block(frame, sending);
	if (!communicator->handle)
		return;
	if (kind == MPI_BCAST || kind == MPI_REDUCE || kind == MPI_GATHER || kind == MPI_SCATTER)
		rooted(frame, communicator, ret);
	else if (kind == MPI_ALLREDUCE || kind == MPI_ALLGATHER || kind == MPI_ALLTOALL ||
		 kind == MPI_REDUCE_SCATTER)
		to_all(frame, communicator, ret);
}
