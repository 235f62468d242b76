/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * One MPI call: a region around the original, with values. What MPI calls inside a call (a Fortran
 * interface made of C calls, reductions and callbacks of the program, its own files) is part of it
 * and not recorded again.
 *
 * Peer and tag go with the beginning, so that they are known of a call that never returns; bytes
 * and communicator with the end, because only a call that succeeded tells that its arguments can be
 * asked about.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "core/control.h"
#include "regions/regions.h"
#include "wrappers/mpi/outcomes.h"
#include "wrappers/mpi/record.h"
#include "wrappers/mpi/values.h"

/* Bytes of the process, over all its calls. */
struct mpi_byte_total_entry {
	const char *name;
	_Atomic uint64_t bytes;
	_Atomic uint32_t counter; /* region_id, once known */
};

static struct mpi_byte_total_entry mpi_sent_bytes_total = {.name = "MPI bytes sent"};
static struct mpi_byte_total_entry mpi_received_bytes_total = {.name = "MPI bytes received"};
static __thread uint32_t mpi_call_depth; /* MPI calls of the thread, one inside the other */

static void add_integer_value(struct mpi_call_value_list *values,
			      const struct mpi_call_frame *frame, char letter, const char *name)
{
	if (mpi_frame_get_argument_position(frame, letter) >= 0)
		add_signed_value(values, name, mpi_get_integer_argument(frame, letter));
}

static bool is_any_source(const struct mpi_call_frame *frame)
{
	return mpi_frame_get_argument_position(frame, 'P') >= 0 &&
	       mpi_get_integer_argument(frame, 'P') == mpi_library.any_source_rank;
}

static bool is_any_tag(const struct mpi_call_frame *frame)
{
	return mpi_frame_get_argument_position(frame, 'T') >= 0 &&
	       mpi_get_integer_argument(frame, 'T') == mpi_library.any_tag;
}

/* What is received from anyone is known at the end: until then, that it may be anyone. */
static void add_source_and_tag_values(struct mpi_call_value_list *values,
				      const struct mpi_call_frame *frame)
{
	bool sends = mpi_frame_get_argument_position(frame, 'p') >= 0;
	bool any_source = is_any_source(frame), any_tag = is_any_tag(frame);

	if (!any_source)
		add_integer_value(values, frame, 'P', sends ? "source" : "peer");
	if (!any_tag)
		add_integer_value(values, frame, 'T', sends ? "source tag" : "tag");
	if (any_source || any_tag)
		add_text_value(values, "matches",
			       any_source && any_tag ? "any source, any tag"
			       : any_source          ? "any source"
						     : "any tag");
}

/* As the status tells. */
static void add_matched_source_and_tag_values(struct mpi_call_value_list *values,
					      const struct mpi_call_frame *frame)
{
	bool sends = mpi_frame_get_argument_position(frame, 'p') >= 0;
	const int *status = mpi_find_status(frame);

	if (!status || mpi_call_found_nothing(frame))
		return;
	if (is_any_source(frame) || mpi_frame_get_argument_position(frame, 'P') < 0)
		add_signed_value(values, sends ? "source" : "peer",
				 status[mpi_library.status_source_index]);
	if (is_any_tag(frame) || mpi_frame_get_argument_position(frame, 'P') < 0)
		add_signed_value(values, sends ? "source tag" : "tag",
				 status[mpi_library.status_tag_index]);
}

/* The rank in the communicator that something comes from; negative: none. */
static int64_t get_source_of_call(const struct mpi_call_frame *frame)
{
	const int *status = mpi_call_found_nothing(frame) ? NULL : mpi_find_status(frame);

	if (mpi_frame_get_argument_position(frame, 'P') >= 0 && !is_any_source(frame))
		return mpi_get_integer_argument(frame, 'P');
	return status ? status[mpi_library.status_source_index] : -1;
}

/* Calls of the program that exchange something with other ranks: it is said where they are. */
static bool may_wait(const struct mpi_call_frame *frame)
{
	return frame->call->kind != MPI_WITHOUT_BYTES ||
	       mpi_frame_get_argument_position(frame, 'c') >= 0;
}

static void record_begin_values(const struct mpi_call_frame *frame)
{
	struct mpi_call_value_list values = {.count = 0};

	add_integer_value(&values, frame, 'p', "peer");
	add_integer_value(&values, frame, 't', "tag");
	add_source_and_tag_values(&values, frame);
	add_integer_value(&values, frame, 'r', "root");
	add_integer_value(&values, frame, 'g', "target");
	if (!values.count)
		add_integer_value(&values, frame, 'q', "requests");
	if (may_wait(frame))
		append_value(&values, "site", SPOOL_VALUE_ADDRESS)->number = frame->return_address;
	write_values(&values);
}

static void add_to_process_byte_total(struct mpi_byte_total_entry *total, uint64_t bytes)
{
	region_id counter = atomic_load_explicit(&total->counter, memory_order_relaxed);
	double value;
	uint64_t bits;

	if (!bytes)
		return;
	if (!counter) {
		counter = region_find_or_add_name(REGION_MPI, total->name);
		atomic_store_explicit(&total->counter, counter, memory_order_relaxed);
	}
	value = (double)(atomic_fetch_add_explicit(&total->bytes, bytes, memory_order_relaxed) +
			 bytes);
	memcpy(&bits, &value, sizeof(bits));
	region_write_counter(counter, bits);
}

static void add_world_rank_value(struct mpi_call_value_list *values, const char *name,
				 const struct mpi_communicator *communicator, int64_t peer)
{
	if (communicator->world_ranks && peer >= 0 && peer < communicator->peer_count)
		add_signed_value(values, name, communicator->world_ranks[peer]);
}

static void add_communicator_values(struct mpi_call_value_list *values,
				    const struct mpi_call_frame *frame,
				    const struct mpi_communicator *communicator)
{
	bool sends = mpi_frame_get_argument_position(frame, 'p') >= 0;

	if (!communicator->handle)
		return;
	add_text_value(values, "communicator", communicator->name);
	add_signed_value(values, "size", communicator->size);
	mpi_add_context_value(values, communicator);
	if (sends)
		add_world_rank_value(values, "world peer", communicator,
				     mpi_get_integer_argument(frame, 'p'));
	add_world_rank_value(values, sends ? "world source" : "world peer", communicator,
			     get_source_of_call(frame));
}

/* Once for each, behind the first call that uses it. */
static void record_definition(const struct mpi_communicator *communicator)
{
	static _Atomic uint32_t known;
	struct mpi_call_value_list values = {.count = 0};
	region_id region = atomic_load_explicit(&known, memory_order_relaxed);
	char members[160]; /* all values must fit where a record fits (STREAM_RECORD_ROOM_BYTES) */

	if (!communicator->handle || !communicator->is_new)
		return;
	if (!region) {
		region = region_find_or_add_name(REGION_MPI, "communicator");
		atomic_store_explicit(&known, region, memory_order_relaxed);
	}
	mpi_communicator_set_defined(communicator);
	mpi_communicator_format_members(communicator, members, sizeof(members));
	region_write_mark(region);
	add_text_value(&values, "communicator", communicator->name);
	add_signed_value(&values, "size", communicator->size);
	add_unsigned_value(&values, "context", communicator->context);
	add_text_value(&values, "world ranks", members);
	write_values(&values);
}

/* What comes is known when the request ends. */
static bool receives_later(const struct mpi_call_frame *frame)
{
	return mpi_frame_get_argument_position(frame, 'R') >= 0 &&
	       (frame->call->kind == MPI_RECEIVE || frame->call->kind == MPI_EXCHANGE);
}

static void add_byte_values(struct mpi_call_value_list *values, const struct mpi_call_frame *frame,
			    const struct mpi_call_byte_counts *bytes)
{
	if (bytes->has_send_side)
		add_unsigned_value(values, "bytes", bytes->sent_bytes);
	if (bytes->has_receive_side)
		add_unsigned_value(values,
				   receives_later(frame)  ? "room"
				   : bytes->has_send_side ? "received"
							  : "bytes",
				   bytes->received_bytes);
}

static void add_to_process_totals(const struct mpi_call_frame *frame,
				  const struct mpi_call_byte_counts *bytes)
{
	if (frame->call->makes_persistent_request || frame->call->kind == MPI_FILE ||
	    frame->call->kind == MPI_NEIGHBOR)
		return;
	add_to_process_byte_total(&mpi_sent_bytes_total, bytes->sent_bytes);
	if (!receives_later(frame))
		add_to_process_byte_total(&mpi_received_bytes_total, bytes->received_bytes);
}

static void look_up_communicator(const struct mpi_call_frame *frame, struct mpi_communicator *ret)
{
	ret->handle = 0;
	if (mpi_frame_get_argument_position(frame, 'c') >= 0)
		mpi_communicator_look_up(mpi_get_communicator_argument(frame), ret);
	else if (!mpi_communicator_find(frame->message_communicator,
					frame->message_communicator_serial, ret))
		ret->handle = 0;
}

static bool call_makes_request(const struct mpi_call_frame *frame)
{
	return mpi_frame_get_argument_position(frame, 'R') >= 0 ||
	       (frame->call->kind == MPI_PROBE &&
		mpi_frame_get_argument_position(frame, 'M') >= 0 && !mpi_call_found_nothing(frame));
}

static void record_end_values(const struct mpi_call_frame *frame)
{
	const struct mpi_call_description *call = frame->call;
	struct mpi_communicator communicator;
	struct mpi_call_byte_counts bytes = {.has_send_side = false};
	struct mpi_call_value_list values = {.count = 0};
	uint64_t request = frame->message_number;

	if (call->kind > MPI_PROBE)
		return;
	look_up_communicator(frame, &communicator);
	if (call->kind != MPI_WITHOUT_BYTES && call->kind != MPI_PROBE)
		mpi_count_call_bytes(frame, &communicator, &bytes);
	if (call_makes_request(frame))
		request = mpi_remember_request(frame, &communicator, bytes.sent_bytes);
	add_byte_values(&values, frame, &bytes);
	add_matched_source_and_tag_values(&values, frame);
	add_communicator_values(&values, frame, &communicator);
	if (request)
		add_unsigned_value(&values, "request", request);
	write_values(&values);
	record_definition(&communicator);
	add_to_process_totals(frame, &bytes);
}

static bool arguments_fit_in_registers(const struct mpi_call_frame *frame)
{
	return frame->call->arguments <= 6 && !mpi_spelling_is_fortran(frame->spelling);
}

/* Argument lists end where the caller says; the words behind are the caller's own, and harmless.
 * Word by word: what was just stored as words cannot be loaded at once as vectors. */
static void copy_arguments(struct mpi_call_frame *frame, const volatile long *registers,
			   const volatile long *stack)
{
	for (int i = 0; i < 6; i++)
		frame->arguments[i] = registers[i];
	for (int i = 6; i < MPI_ARGUMENTS_MAX && !arguments_fit_in_registers(frame); i++)
		frame->arguments[i] = stack[i - 6];
}

static long call_original(const struct mpi_call_frame *frame, const void *original)
{
	const long *a = frame->arguments;

	if (arguments_fit_in_registers(frame)) {
		long (*function)(long, long, long, long, long, long);

		memcpy(&function, &original, sizeof(function));
		return function(a[0], a[1], a[2], a[3], a[4], a[5]);
	}
	long (*function)(long, long, long, long, long, long, long, long, long, long, long, long,
			 long, long, long, long, long, long);

	memcpy(&function, &original, sizeof(function));
	return function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11],
			a[12], a[13], a[14], a[15], a[16], a[17]);
}

/* The status tells how much came; one that is ignored is taken all the same. */
static void replace_ignored_status_argument(struct mpi_call_frame *frame)
{
	frame->has_own_status = mpi_frame_get_argument_position(frame, 's') >= 0 &&
				mpi_library.pmpi_get_elements_x && mpi_status_is_ignored(frame);
	if (frame->has_own_status)
		frame->arguments[mpi_frame_get_argument_position(frame, 's')] = (long)frame->status;
}

static void note_made_communicator(const struct mpi_call_frame *frame)
{
	if (mpi_frame_get_argument_position(frame, 'o') < 0 || !mpi_can_read_call_arguments() ||
	    !mpi_call_succeeded(frame))
		return;
	if (mpi_frame_get_argument_position(frame, 'R') >= 0) /* it is not ready to be asked */
		mpi_communicator_note_copy(mpi_get_communicator_argument(frame),
					   mpi_get_made_communicator(frame));
	else
		mpi_communicator_note_creation(mpi_get_made_communicator(frame));
}

static bool call_has_outcomes(enum mpi_call_kind kind)
{
	return kind == MPI_COMPLETE || kind == MPI_START || kind == MPI_REQUEST_END;
}

/* Another name; or it is gone by then, if the call frees it. */
static void follow_communicator_change(const struct mpi_call_frame *frame, uintptr_t changed)
{
	if (mpi_frame_get_argument_position(frame, 'C') >= 0)
		mpi_communicator_forget(changed);
	else if (changed && mpi_call_succeeded(frame))
		mpi_communicator_rename(changed);
}

/* Marks before the end of the region, values behind it. */
static void end_region_with_outcomes(struct mpi_outcomes *outcomes,
				     const struct mpi_call_frame *frame, region_id region)
{
	struct mpi_call_value_list values = {.count = 0};
	struct mpi_call_byte_counts totals = {.sent_bytes = 0};

	if (outcomes->count && mpi_call_succeeded(frame))
		mpi_outcomes_end(outcomes, frame, &values, &totals);
	region_end(region);
	write_values(&values);
	mpi_outcomes_deinit(outcomes);
	add_to_process_byte_total(&mpi_sent_bytes_total, totals.sent_bytes);
	add_to_process_byte_total(&mpi_received_bytes_total, totals.received_bytes);
}

/* In a function of its own, for the room that it takes on the stack. */
static __attribute__((noinline)) long
call_original_with_outcomes(struct mpi_call_frame *frame, const void *original, region_id region)
{
	struct mpi_outcomes outcomes;
	int error;

	region_begin(region);
	replace_ignored_status_argument(frame);
	record_begin_values(frame);
	mpi_outcomes_begin(&outcomes, frame);
	frame->result = call_original(frame, original);
	error = errno;
	end_region_with_outcomes(&outcomes, frame, region);
	errno = error;
	return frame->result;
}

static long call_original_within_region(struct mpi_call_frame *frame, const void *original,
					region_id region, bool values)
{
	uintptr_t changed = 0;
	int error;

	if (values && call_has_outcomes(frame->call->kind))
		return call_original_with_outcomes(frame, original, region);
	region_begin(region);
	if (values) {
		replace_ignored_status_argument(frame);
		record_begin_values(frame);
		if (frame->call->kind == MPI_COMM_CHANGE)
			changed = mpi_get_communicator_argument(frame);
		if (frame->call->kind == MPI_RECEIVE &&
		    mpi_frame_get_argument_position(frame, 'M') >= 0)
			mpi_take_probed_message(frame);
	}
	frame->result = call_original(frame, original);
	error = errno;
	follow_communicator_change(frame, changed);
	/* The end must be the last record, for values belong to it. */
	region_end(region);
	if (values && mpi_call_succeeded(frame))
		record_end_values(frame);
	note_made_communicator(frame);
	errno = error;
	return frame->result;
}

/* MPI 3.1, 14.2.4: 0 profiling off, 1 on; anything else is left to others. */
static void apply_mpi_pcontrol(const struct mpi_call_frame *frame)
{
	int64_t level = mpi_spelling_is_fortran(frame->spelling) ? *(const int *)frame->arguments[0]
								 : (int)frame->arguments[0];

	if (level == 0)
		mpi_switch_collection(false);
	else if (level == 1)
		mpi_switch_collection(true);
}

static long call_without_recording(struct mpi_call_frame *frame, const void *original)
{
	uintptr_t changed = 0;
	bool can_read = mpi_can_read_call_arguments();
	int error;

	if (frame->call->kind == MPI_COMM_CHANGE && can_read)
		changed = mpi_get_communicator_argument(frame);
	frame->result = call_original(frame, original);
	error = errno;
	follow_communicator_change(frame, changed);
	if (can_read && mpi_frame_get_argument_position(frame, 'R') >= 0 &&
	    mpi_call_succeeded(frame))
		mpi_request_forget(mpi_get_made_request_handle(frame));
	note_made_communicator(frame);
	errno = error;
	return frame->result;
}

long mpi_handle_call(uint32_t index, const long *registers, const long *stack)
{
	struct mpi_call_frame frame;
	const void *original = mpi_get_original_function(index);
	enum mpi_call_kind kind;
	region_id region = 0;
	struct causal_wait_state wait;
	bool paced;
	int error = errno;

	frame.call = &mpi_calls[index % MPI_CALLS_MAX];
	frame.spelling = (enum mpi_spelling)(index / MPI_CALLS_MAX);
	frame.positions = mpi_call_get_argument_positions(index % MPI_CALLS_MAX);
	frame.has_own_status = false;
	frame.return_address = (uint64_t)stack[-1]; /* stub_code.S */
	frame.message_number = 0;
	frame.message_communicator = 0;
	kind = frame.call->kind;
	copy_arguments(&frame, registers, stack);
	if (mpi_call_depth || region_thread_is_in_kymo_code()) {
		errno = error;
		return call_original(&frame, original);
	}
	mpi_call_depth++;
	if (kind == MPI_PCONTROL)
		apply_mpi_pcontrol(&frame);
	if (kind == MPI_FINALIZE)
		mpi_stop_reading_values();
	if (region_category_is_recorded(REGION_MPI))
		region = mpi_get_call_region(index % MPI_CALLS_MAX);
	paced = causal_is_active();
	if (paced)
		causal_apply_delay_and_begin_wait(&wait);
	errno = error;
	frame.result = region ? call_original_within_region(&frame, original, region,
							    mpi_can_read_call_arguments())
			      : call_without_recording(&frame, original);
	error = errno;
	if (paced)
		mpi_causal_end_wait_and_count_visit(&wait, &frame);
	if (kind == MPI_INIT)
		mpi_complete_wrapping_after_init(original);
	mpi_call_depth--;
	errno = error;
	return frame.result;
}
