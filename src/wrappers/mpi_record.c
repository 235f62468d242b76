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
#include "wrappers/causal_paced.h"
#include "wrappers/mpi_record.h"

#define VALUES_MAX 6

struct values {
	struct region_value list[VALUES_MAX];
	size_t count;
};

/* Of the process, over all its calls. */
struct total {
	const char *name;
	_Atomic uint64_t bytes;
	_Atomic uint32_t counter; /* region_id, once known */
};

static struct total sent_total = {.name = "MPI bytes sent"};
static struct total received_total = {.name = "MPI bytes received"};
static __thread uint32_t depth; /* MPI calls of the thread, one inside the other */

static void add(struct values *values, const char *name, enum spool_value_type type,
		uint64_t number)
{
	struct region_value *value = &values->list[values->count++];

	value->name = name;
	value->type = type;
	value->number = number;
}

static void add_text(struct values *values, const char *name, const char *text)
{
	struct region_value *value = &values->list[values->count++];

	value->name = name;
	value->type = SPOOL_VALUE_TEXT;
	value->text = text;
}

static void add_integer(struct values *values, const struct mpi_frame *frame, char letter,
			const char *name)
{
	if (mpi_position(frame, letter) >= 0)
		add(values, name, SPOOL_VALUE_SIGNED, (uint64_t)mpi_integer(frame, letter));
}

static void record_beginning(const struct mpi_frame *frame)
{
	bool sends = mpi_position(frame, 'p') >= 0;
	struct values values = {.count = 0};

	add_integer(&values, frame, 'p', "peer");
	add_integer(&values, frame, 'P', sends ? "source" : "peer");
	add_integer(&values, frame, 't', "tag");
	add_integer(&values, frame, 'T', sends ? "source tag" : "tag");
	add_integer(&values, frame, 'r', "root");
	add_integer(&values, frame, 'g', "target");
	if (!values.count)
		add_integer(&values, frame, 'q', "requests");
	if (values.count)
		region_values(values.list, values.count);
}

static void count_total(struct total *total, uint64_t bytes)
{
	region_id counter = atomic_load_explicit(&total->counter, memory_order_relaxed);
	double value;
	uint64_t bits;

	if (!bytes)
		return;
	if (!counter) {
		counter = region_named(REGION_MPI, total->name);
		atomic_store_explicit(&total->counter, counter, memory_order_relaxed);
	}
	value = (double)(atomic_fetch_add_explicit(&total->bytes, bytes, memory_order_relaxed) +
			 bytes);
	memcpy(&bits, &value, sizeof(bits));
	region_counter(counter, bits);
}

static void add_communicator(struct values *values, const struct mpi_frame *frame,
			     const struct mpi_communicator *communicator)
{
	char letter = mpi_position(frame, 'p') >= 0 ? 'p' : 'P';

	if (!communicator->handle)
		return;
	add_text(values, "communicator", communicator->name);
	add(values, "size", SPOOL_VALUE_SIGNED, (uint64_t)communicator->size);
	if (communicator->world_ranks && mpi_position(frame, letter) >= 0) {
		int64_t peer = mpi_integer(frame, letter);

		if (peer >= 0 && peer < communicator->peers)
			add(values, "world peer", SPOOL_VALUE_SIGNED,
			    (uint64_t)communicator->world_ranks[peer]);
	}
}

static void record_end(const struct mpi_frame *frame)
{
	const struct mpi_call *call = frame->call;
	struct mpi_communicator communicator = {.handle = 0};
	struct mpi_bytes bytes = {.sends = false};
	struct values values = {.count = 0};

	if (call->kind >= MPI_INIT)
		return;
	if (mpi_position(frame, 'c') >= 0)
		mpi_communicator_get(mpi_communicator_handle(frame), &communicator);
	if (call->kind != MPI_PLAIN)
		mpi_bytes(frame, &communicator, &bytes);
	if (bytes.sends)
		add(&values, "bytes", SPOOL_VALUE_UNSIGNED, bytes.sent);
	if (bytes.receives)
		add(&values, bytes.sends ? "received" : "bytes", SPOOL_VALUE_UNSIGNED,
		    bytes.received);
	add_communicator(&values, frame, &communicator);
	if (values.count)
		region_values(values.list, values.count);
	if (call->persistent || call->kind == MPI_FILE || call->kind == MPI_NEIGHBOR)
		return;
	count_total(&sent_total, bytes.sent);
	count_total(&received_total, bytes.received);
}

static bool all_in_registers(const struct mpi_frame *frame)
{
	return frame->call->arguments <= 6 && !mpi_spelling_is_fortran(frame->spelling);
}

/* Argument lists end where the caller says; the words behind are the caller's own, and harmless.
 * Word by word: what was just stored as words cannot be loaded at once as vectors. */
static void take_arguments(struct mpi_frame *frame, const volatile long *registers,
			   const volatile long *stack)
{
	for (int i = 0; i < 6; i++)
		frame->arguments[i] = registers[i];
	for (int i = 6; i < MPI_ARGUMENTS_MAX && !all_in_registers(frame); i++)
		frame->arguments[i] = stack[i - 6];
}

static long call_original(const struct mpi_frame *frame, const void *original)
{
	const long *a = frame->arguments;

	if (all_in_registers(frame)) {
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
static void want_status(struct mpi_frame *frame)
{
	frame->own_status = mpi_position(frame, 's') >= 0 && frame->call->kind != MPI_PLAIN &&
			    mpi_library.get_elements_x && mpi_is_status_ignored(frame);
	if (frame->own_status)
		frame->arguments[mpi_position(frame, 's')] = (long)frame->status;
}

static long record(struct mpi_frame *frame, const void *original, region_id region, bool values)
{
	uintptr_t changed = 0;
	int error;

	region_begin(region);
	if (values) {
		want_status(frame);
		record_beginning(frame);
		if (frame->call->kind == MPI_COMM_CHANGE)
			changed = mpi_communicator_handle(frame);
	}
	frame->result = call_original(frame, original);
	error = errno;
	mpi_communicator_forget(changed);
	/* The end must be the last record, for values belong to it. */
	region_end(region);
	if (values && mpi_succeeded(frame))
		record_end(frame);
	errno = error;
	return frame->result;
}

/* MPI 3.1, 14.2.4: 0 profiling off, 1 on; anything else is left to others. */
static void control(const struct mpi_frame *frame)
{
	int64_t level = mpi_spelling_is_fortran(frame->spelling) ? *(const int *)frame->arguments[0]
								 : (int)frame->arguments[0];

	if (level == 0)
		control_stop();
	else if (level == 1)
		control_start();
}

static long pass(struct mpi_frame *frame, const void *original)
{
	if (frame->call->kind == MPI_COMM_CHANGE && mpi_values_known())
		mpi_communicator_forget(mpi_communicator_handle(frame));
	return call_original(frame, original);
}

long mpi_enter(uint32_t index, const long *registers, const long *stack)
{
	struct mpi_frame frame;
	const void *original = mpi_original(index);
	enum mpi_kind kind;
	region_id region = 0;
	struct causal_wait wait;
	bool paced;
	int error = errno;

	frame.call = &mpi_calls[index % MPI_CALLS_MAX];
	frame.spelling = (enum mpi_spelling)(index / MPI_CALLS_MAX);
	frame.positions = mpi_positions(index % MPI_CALLS_MAX);
	frame.own_status = false;
	kind = frame.call->kind;
	take_arguments(&frame, registers, stack);
	if (depth || region_is_own()) {
		errno = error;
		return call_original(&frame, original);
	}
	depth++;
	if (kind == MPI_PCONTROL)
		control(&frame);
	if (kind == MPI_FINALIZE)
		mpi_before_finalize();
	if (region_recording(REGION_MPI))
		region = mpi_region(index % MPI_CALLS_MAX);
	paced = causal_on();
	if (paced)
		causal_before_wait(&wait);
	errno = error;
	frame.result = region ? record(&frame, original, region, mpi_values_known())
			      : pass(&frame, original);
	error = errno;
	if (paced)
		causal_mpi_ends(&wait, &frame);
	if (kind == MPI_INIT)
		mpi_after_init(original);
	depth--;
	errno = error;
	return frame.result;
}
