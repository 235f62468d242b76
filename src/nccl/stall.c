/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See stall.h. Operations of a communicator run in order, so only the oldest one in flight can be
 * the one that holds the others up. Each is reported once, and again when it goes on.
 */
#include "nccl/stall.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "nccl/communicators.h"
#include "nccl/completion.h"
#include "nccl/log.h"
#include "nccl/names.h"
#include "nccl/options.h"
#include "nccl/recorder.h"

#define PROXY_REPORT_LINES_MAX 16 /* lines about one operation */

/* Control characters would run through a terminal. */
static const char *copy_printable_name(const char *name, char *buffer, size_t size)
{
	size_t length = 0;

	for (; *name && length + 1 < size; name++)
		buffer[length++] = (unsigned char)*name < ' ' || *name == 0x7f ? '?' : *name;
	buffer[length] = 0;
	return buffer;
}

static double tick_difference_to_seconds(uint64_t from, uint64_t to)
{
	return to > from ? (double)completion_ticks_to_ns(to - from) * 1e-9 : 0;
}

/* "0-3,7" */
static const char *format_channel_list(uint64_t channels, char *buffer, size_t size)
{
	size_t length = 0;

	buffer[0] = 0;
	for (unsigned i = 0; i < 64 && length + 16 < size; i++) {
		unsigned first = i;

		if (!(channels & 1ull << i))
			continue;
		while (i + 1 < 64 && channels & 1ull << (i + 1))
			i++;
		length += (size_t)snprintf(buffer + length, size - length,
					   first == i ? "%s%u" : "%s%u-%u", length ? "," : "",
					   first, i);
	}
	return length ? buffer : "none";
}

static void report_stalled_operation(const struct communicator_recording_state *communicator,
				     const struct nccl_operation *operation, double age)
{
	const struct nccl_communicator_record *record = communicator->record;
	char name[64];

	log_report_on_stderr(
		"communicator '%s' (%016" PRIx64 ") rank %d of %d: %s number %" PRIu64 " (%" PRIu64
		" bytes) makes no progress for %.1f s",
		copy_printable_name(communicators_get_name(communicator), name, sizeof(name)),
		RELAXED_LOAD(record->hash), RELAXED_LOAD(record->rank), RELAXED_LOAD(record->ranks),
		names_get_by_number(operation->function), operation->sequence, operation->bytes,
		age);
}

static void report_operation_progress(const struct nccl_operation *operation)
{
	uint64_t started = nccl_operation_started(operation);
	uint64_t stopped = nccl_operation_stopped(operation);
	char all[128], open[128];

	if (!RELAXED_LOAD(operation->stop))
		log_report_on_stderr("  NCCL has not put it into a stream yet");
	else if (started)
		log_report_on_stderr("  its kernel runs: channels %s started, %s have not ended",
				     format_channel_list(started, all, sizeof(all)),
				     format_channel_list(started & ~stopped, open, sizeof(open)));
	else if (!RELAXED_LOAD(operation->networks_started))
		log_report_on_stderr("  it is in the stream, and its kernel was not seen to start");
	if (operation->peer >= 0)
		log_report_on_stderr("  its peer is rank %d", operation->peer);
}

/* Where a step of a proxy operation stands. */
static const char *get_step_state_text(const struct nccl_event *step)
{
	uint8_t told = RELAXED_LOAD(step->a);

	if (told & 1u << 4)
		return told & 1u        ? "waits for its GPU"
		       : told & 1u << 3 ? "flushes to its GPU"
					: "waits for data of the peer";
	return told & 1u << 2   ? "waits for the network to send"
	       : told & 1u << 1 ? "waits for the peer to take it"
				: "waits for data of its GPU";
}

static const struct nccl_event *
find_oldest_open_step(const struct communicator_recording_state *communicator, uint64_t of)
{
	const struct nccl_event *oldest = NULL;

	for (unsigned i = 0; i < COMMUNICATOR_PROXY_STEP_SLOT_COUNT; i++) {
		const struct nccl_event *step =
			recorder_find_event(RELAXED_LOAD(communicator->proxy_step_ids[i]));

		if (step && step->parent == of &&
		    !(RELAXED_LOAD(step->flags) & NCCL_EVENT_STOPPED) &&
		    (!oldest || step->start < oldest->start))
			oldest = step;
	}
	return oldest;
}

static void report_proxy_operation(const struct communicator_recording_state *communicator,
				   const struct nccl_event *proxy, uint64_t now)
{
	const struct nccl_event *step = find_oldest_open_step(communicator, proxy->id);
	const char *verb =
		RELAXED_LOAD(proxy->flags) & NCCL_EVENT_SEND ? "sends to" : "receives from";

	if (step)
		log_report_on_stderr("  channel %u %s rank %d: step %d of %d %s since %.1f s",
				     proxy->a, verb, proxy->c, step->c, proxy->proxy_op.steps,
				     get_step_state_text(step),
				     tick_difference_to_seconds(step->start, now));
	else
		log_report_on_stderr("  channel %u %s rank %d since %.1f s", proxy->a, verb,
				     proxy->c, tick_difference_to_seconds(proxy->start, now));
}

static void report_proxy_operations(const struct communicator_recording_state *communicator,
				    const struct nccl_operation *operation, uint64_t now)
{
	uint32_t chunks = atomic_load_explicit(&store.chunk_count, memory_order_acquire);
	unsigned told = 0, left_out = 0;

	for (uint32_t chunk = 0; chunk < chunks; chunk++) {
		uint8_t state = atomic_load_explicit(&store.chunk_tracking[chunk].state,
						     memory_order_acquire);
		uint32_t count;

		if ((state != STORE_CHUNK_CURRENT && state != STORE_CHUNK_RETIRED) ||
		    store.chunk_tracking[chunk].kind != NCCL_CHUNK_EVENTS)
			continue;
		count = store_get_used_record_count_of_chunk(chunk, NCCL_CHUNK_EVENTS);
		for (uint32_t i = 0; i < count; i++) {
			struct nccl_event *event =
				store_get_record_address(chunk, NCCL_CHUNK_EVENTS, i);

			if (!__atomic_load_n(&event->id, __ATOMIC_ACQUIRE) ||
			    event->kind != NCCL_KIND_PROXY_OP || event->parent != operation->id ||
			    RELAXED_LOAD(event->flags) & NCCL_EVENT_STOPPED)
				continue;
			if (told < PROXY_REPORT_LINES_MAX)
				report_proxy_operation(communicator, event, now);
			else
				left_out++;
			told++;
		}
	}
	if (left_out)
		log_report_on_stderr("  and %u other proxy operations", left_out);
}

static void record_and_report_stall(struct communicator_recording_state *communicator,
				    const struct nccl_operation *operation, uint64_t now)
{
	struct nccl_communicator_record *record = communicator->record;

	communicator->stall_reported_operation_id = operation->id;
	communicator->stall_since_ticks = RELAXED_LOAD(operation->last);
	RELAXED_STORE(record->stall_ticks, RELAXED_LOAD(operation->last));
	RELAXED_STORE(record->stalls, record->stalls + 1);
	RELAXED_STORE(record->stall_operation, operation->id);
	report_stalled_operation(communicator, operation,
				 tick_difference_to_seconds(RELAXED_LOAD(operation->last), now));
	report_operation_progress(operation);
	report_proxy_operations(communicator, operation, now);
	log_report_on_stderr("  this process started %" PRIu64
			     " operations of the communicator after it",
			     RELAXED_LOAD(record->operations) - operation->ordinal - 1);
}

static void report_stall_end(struct communicator_recording_state *communicator, uint64_t now)
{
	char name[64];

	log_report_on_stderr(
		"communicator '%s' rank %d continues after %.1f s",
		copy_printable_name(communicators_get_name(communicator), name, sizeof(name)),
		RELAXED_LOAD(communicator->record->rank),
		tick_difference_to_seconds(communicator->stall_since_ticks, now));
	communicator->stall_reported_operation_id = 0;
	RELAXED_STORE(communicator->record->stall_operation, 0);
}

void stall_check_communicators(uint64_t now)
{
	uint32_t count = communicators_get_count();
	uint64_t limit = completion_ns_to_ticks(options.stall_limit_ns), stalled = 0;

	if (!options.stall_limit_ns)
		return;
	for (uint32_t i = 1; i <= count; i++) {
		struct communicator_recording_state *communicator =
			communicators_get_by_creation_number(i);
		struct nccl_operation *operation =
			communicator ? recorder_find_operation(communicator->oldest_in_flight_id)
				     : NULL; /* it was given back */
		uint64_t last = operation ? RELAXED_LOAD(operation->last) : now;
		/* A captured operation may never be launched. */
		bool is_captured = operation && operation->flags & NCCL_OPERATION_GRAPH &&
				   !nccl_operation_started(operation);
		bool is_stalled = operation && !is_captured && now > last && now - last >= limit;

		if (communicator && communicator->stall_reported_operation_id &&
		    (!is_stalled || communicator->stall_reported_operation_id != operation->id))
			report_stall_end(communicator, now);
		if (is_stalled && !communicator->stall_reported_operation_id)
			record_and_report_stall(communicator, operation, now);
		stalled += is_stalled;
	}
	RELAXED_STORE(store.header->stalled, stalled);
}
