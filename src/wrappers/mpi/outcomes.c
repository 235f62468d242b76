/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See outcomes.h.
 */
#include "wrappers/mpi/outcomes.h"

#include <string.h>
#include <sys/mman.h>

#include "common/syscalls.h"

/* Marks in calls that can end or start many operations. */
enum outcome_mark {
	OUTCOME_SENT,      /* a persistent send began */
	OUTCOME_POSTED,    /* a persistent receive did */
	OUTCOME_RECEIVED,  /* a receive ended with a message */
	OUTCOME_SEND_DONE, /* a send ended */
	OUTCOME_MARK_COUNT
};

static region_id get_mark_region(enum outcome_mark mark)
{
	static const char *const names[OUTCOME_MARK_COUNT] = {
		[OUTCOME_SENT] = "message sent",
		[OUTCOME_POSTED] = "receive posted",
		[OUTCOME_RECEIVED] = "message received",
		[OUTCOME_SEND_DONE] = "send completed",
	};
	static _Atomic uint32_t known[OUTCOME_MARK_COUNT];
	region_id region = atomic_load_explicit(&known[mark], memory_order_relaxed);

	if (!region) {
		region = region_find_or_add_name(REGION_MPI, names[mark]);
		atomic_store_explicit(&known[mark], region, memory_order_relaxed);
	}
	return region;
}

static bool has_argument(const struct mpi_call_frame *frame, char letter)
{
	return mpi_frame_get_argument_position(frame, letter) >= 0;
}

/* ---- before the call ---- */

static uint32_t count_requests(const struct mpi_call_frame *frame)
{
	int64_t count = has_argument(frame, 'q') ? mpi_get_integer_argument(frame, 'q') : 1;

	return count > 0 ? (uint32_t)count : 0;
}

/* Room for the requests and their statuses; *ret_statuses is where those are. */
static bool reserve_outcomes(struct mpi_outcomes *outcomes, uint32_t count, void **ret_statuses)
{
	size_t request_bytes = (size_t)count * sizeof(struct mpi_request);

	if (count <= MPI_OUTCOMES_ON_STACK) {
		outcomes->requests = outcomes->requests_on_stack;
		*ret_statuses = outcomes->statuses_on_stack;
		return true;
	}
	outcomes->memory_bytes = request_bytes + (size_t)count * MPI_STATUS_BYTES_MAX;
	outcomes->memory = sys_mmap(NULL, outcomes->memory_bytes, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sys_mmap_failed(outcomes->memory)) {
		outcomes->memory = NULL;
		return false;
	}
	outcomes->requests = outcomes->memory;
	*ret_statuses = (char *)outcomes->memory + request_bytes;
	return true;
}

void mpi_outcomes_begin(struct mpi_outcomes *outcomes, struct mpi_call_frame *frame)
{
	uint32_t count = count_requests(frame);
	void *statuses;
	bool any = false;

	outcomes->count = 0;
	outcomes->memory = NULL;
	if (!count || !reserve_outcomes(outcomes, count, &statuses))
		return;
	for (uint32_t i = 0; i < count; i++)
		any |= mpi_request_find(mpi_get_request_handle(frame, i), &outcomes->requests[i]);
	if (!any)
		return;
	outcomes->count = count;
	if (has_argument(frame, 'S') && mpi_statuses_are_ignored(frame))
		frame->arguments[mpi_frame_get_argument_position(frame, 'S')] = (long)statuses;
}

void mpi_outcomes_deinit(struct mpi_outcomes *outcomes)
{
	if (outcomes->memory)
		sys_munmap(outcomes->memory, outcomes->memory_bytes);
}

/* ---- after it ---- */

static bool status_is_of_cancelled(const void *status)
{
	int cancelled = 0;

	return status && mpi_library.pmpi_test_cancelled &&
	       !mpi_library.pmpi_test_cancelled(status, &cancelled) && cancelled;
}

void mpi_add_context_value(struct mpi_call_value_list *values,
			   const struct mpi_communicator *communicator)
{
	if (communicator->is_named_by_program ? strcmp(communicator->name, "MPI_COMM_WORLD") != 0
					      : !communicator->context)
		add_unsigned_value(values, "context", communicator->context);
}

/* `communicator` must be there until the values are written. */
static void add_communicator_of_request(struct mpi_call_value_list *values,
					const struct mpi_request *request, int peer,
					struct mpi_communicator *communicator)
{
	int world_peer = request->peer == peer ? request->world_peer : -1;

	if (mpi_communicator_find(request->communicator, request->communicator_serial,
				  communicator)) {
		add_text_value(values, "communicator", communicator->name);
		mpi_add_context_value(values, communicator);
		if (world_peer < 0 && communicator->world_ranks && peer >= 0 &&
		    peer < communicator->peer_count)
			world_peer = communicator->world_ranks[peer];
	}
	if (world_peer >= 0)
		add_signed_value(values, "world peer", world_peer);
}

static void add_received_values(struct mpi_call_value_list *values,
				const struct mpi_request *request, const int *status,
				uint64_t bytes, struct mpi_communicator *communicator)
{
	int peer = status[mpi_library.status_source_index];

	add_unsigned_value(values, "request", request->number);
	add_signed_value(values, "peer", peer);
	add_signed_value(values, "tag", status[mpi_library.status_tag_index]);
	add_unsigned_value(values, "bytes", bytes);
	add_communicator_of_request(values, request, peer, communicator);
}

/* `values`: for the end of the call; NULL: a mark is written. */
static void report_completion(const struct mpi_request *request, const int *status,
			      struct mpi_call_value_list *values,
			      struct mpi_communicator *communicator,
			      struct mpi_call_byte_counts *totals)
{
	struct mpi_call_value_list own = {.count = 0}, *list = values ? values : &own;
	enum outcome_mark mark = request->is_send ? OUTCOME_SEND_DONE : OUTCOME_RECEIVED;
	uint64_t bytes = 0;

	mpi_request_end(request);
	if (status_is_of_cancelled(status)) {
		add_unsigned_value(list, "request", request->number);
		add_unsigned_value(list, "cancelled", 1);
	} else if (request->is_send) {
		add_unsigned_value(list, "request", request->number);
	} else if (mpi_status_get_bytes(status, &bytes)) {
		add_received_values(list, request, status, bytes, communicator);
		totals->received_bytes += bytes;
	}
	if (values || !own.count)
		return;
	region_write_mark(get_mark_region(mark));
	write_values(&own);
}

static const int *get_status(const struct mpi_call_frame *frame, uint32_t index)
{
	const char *statuses;

	if (!has_argument(frame, 'S'))
		return mpi_find_status(frame);
	statuses = (const char *)frame->arguments[mpi_frame_get_argument_position(frame, 'S')];
	return statuses ? (const int *)(statuses + (size_t)index * mpi_library.status_bytes) : NULL;
}

static void complete_one(struct mpi_outcomes *outcomes, const struct mpi_call_frame *frame,
			 uint32_t request, uint32_t status, struct mpi_call_value_list *values,
			 struct mpi_call_byte_counts *totals)
{
	const struct mpi_request *it;

	if (request >= outcomes->count)
		return;
	it = &outcomes->requests[request];
	if (it->handle && it->is_active)
		report_completion(it, get_status(frame, status), values, &outcomes->communicator,
				  totals);
}

/* Fortran counts from 1. MPI_UNDEFINED is negative. */
static uint32_t get_index(const struct mpi_call_frame *frame, uint32_t position)
{
	return (uint32_t)(mpi_get_pointed_integer(frame, 'I', position) -
			  (int)mpi_spelling_is_fortran(frame->spelling));
}

static void end_completed(struct mpi_outcomes *outcomes, const struct mpi_call_frame *frame,
			  struct mpi_call_value_list *values, struct mpi_call_byte_counts *totals)
{
	if (mpi_call_found_nothing(frame))
		return;
	if (!has_argument(frame, 'S')) {
		complete_one(outcomes, frame, has_argument(frame, 'I') ? get_index(frame, 0) : 0, 0,
			     values, totals);
	} else if (has_argument(frame, 'O')) {
		int count = mpi_get_pointed_integer(frame, 'O', 0);

		for (int i = 0; i < count && (uint32_t)i < outcomes->count; i++)
			complete_one(outcomes, frame, get_index(frame, (uint32_t)i), (uint32_t)i,
				     NULL, totals);
	} else {
		for (uint32_t i = 0; i < outcomes->count; i++)
			complete_one(outcomes, frame, i, i, NULL, totals);
	}
}

static void start_one(struct mpi_request *request, struct mpi_call_byte_counts *totals)
{
	struct mpi_communicator communicator;
	struct mpi_call_value_list values = {.count = 0};

	if (!request->handle || !request->is_persistent)
		return;
	request->number = mpi_request_make_number();
	request->is_active = true;
	mpi_request_add(request);
	add_unsigned_value(&values, "request", request->number);
	if (request->peer != mpi_library.any_source_rank)
		add_signed_value(&values, "peer", request->peer);
	if (request->tag != mpi_library.any_tag)
		add_signed_value(&values, "tag", request->tag);
	if (request->is_send)
		add_unsigned_value(&values, "bytes", request->bytes);
	add_communicator_of_request(&values, request, request->peer, &communicator);
	if (request->is_send)
		totals->sent_bytes += request->bytes;
	region_write_mark(get_mark_region(request->is_send ? OUTCOME_SENT : OUTCOME_POSTED));
	write_values(&values);
}

/* A send that was freed goes on and ends unseen; a receive as well. */
void mpi_outcomes_end(struct mpi_outcomes *outcomes, const struct mpi_call_frame *frame,
		      struct mpi_call_value_list *values, struct mpi_call_byte_counts *totals)
{
	if (frame->call->kind == MPI_COMPLETE) {
		end_completed(outcomes, frame, values, totals);
		return;
	}
	for (uint32_t i = 0; i < outcomes->count; i++) {
		if (frame->call->kind == MPI_START)
			start_one(&outcomes->requests[i], totals);
		else
			mpi_request_forget(outcomes->requests[i].handle);
	}
}

/* ---- calls that make requests ---- */

static bool is_without_partner(const struct mpi_request *request)
{
	return request->peer == mpi_library.null_process_rank;
}

/* Handles of messages and of requests may have the same values. */
#define MESSAGE_HANDLE_MARK ((uintptr_t)1 << 63)

uint64_t mpi_remember_request(const struct mpi_call_frame *frame,
			      const struct mpi_communicator *communicator, uint64_t sent_bytes)
{
	enum mpi_call_kind kind = frame->call->kind;
	struct mpi_request request = {
		.peer = mpi_library.any_source_rank, .tag = mpi_library.any_tag, .world_peer = -1};
	bool receives = kind == MPI_RECEIVE || kind == MPI_EXCHANGE || kind == MPI_PROBE;

	if (kind == MPI_PROBE)
		request.handle = mpi_get_message_handle(frame) | MESSAGE_HANDLE_MARK;
	else
		request.handle = mpi_get_made_request_handle(frame);
	if (!receives && kind != MPI_SEND) {
		mpi_request_forget(request.handle);
		return 0;
	}
	request.is_send = kind == MPI_SEND;
	request.bytes = sent_bytes;
	request.communicator = communicator->handle;
	request.communicator_serial = communicator->serial;
	if (has_argument(frame, 'P') || has_argument(frame, 'p')) {
		request.peer = (int)mpi_get_integer_argument(frame, request.is_send ? 'p' : 'P');
		request.tag = (int)mpi_get_integer_argument(frame, request.is_send ? 't' : 'T');
	} else if (frame->message_number) { /* MPI_Imrecv */
		request.communicator = frame->message_communicator;
		request.communicator_serial = frame->message_communicator_serial;
	}
	if (is_without_partner(&request)) {
		mpi_request_forget(request.handle);
		return 0;
	}
	if (communicator->world_ranks && request.peer >= 0 &&
	    request.peer < communicator->peer_count)
		request.world_peer = communicator->world_ranks[request.peer];
	request.is_persistent = frame->call->makes_persistent_request;
	request.is_active = !request.is_persistent;
	request.number = frame->message_number ? frame->message_number : mpi_request_make_number();
	mpi_request_add(&request);
	return request.number;
}

void mpi_take_probed_message(struct mpi_call_frame *frame)
{
	uintptr_t handle = mpi_get_message_handle(frame);
	struct mpi_request message;

	if (!handle || !mpi_request_find(handle | MESSAGE_HANDLE_MARK, &message))
		return;
	mpi_request_forget(message.handle);
	frame->message_number = message.number;
	frame->message_communicator = message.communicator;
	frame->message_communicator_serial = message.communicator_serial;
}
