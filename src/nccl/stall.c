/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See stall.h. Operations of a communicator run in order, so only the oldest one in flight can be
 * the one that holds the others up. Each is told of once, and again when it goes on.
 */
#include "nccl/stall.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "nccl/communicators.h"
#include "nccl/log.h"
#include "nccl/names.h"
#include "nccl/options.h"
#include "nccl/recorder.h"
#include "nccl/sealing.h"

#define DETAILS_MAX 16 /* lines about one operation */

/* Control characters would run through a terminal. */
static const char *printable(const char *name, char *buffer, size_t size)
{
	size_t length = 0;

	for (; *name && length + 1 < size; name++)
		buffer[length++] = (unsigned char)*name < ' ' || *name == 0x7f ? '?' : *name;
	buffer[length] = 0;
	return buffer;
}

static double seconds(uint64_t from, uint64_t to)
{
	return to > from ? (double)sealing_ns(to - from) * 1e-9 : 0;
}

/* "0-3,7" */
static const char *channel_list(uint64_t channels, char *buffer, size_t size)
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

static void tell_communicator(const struct communicator *communicator,
			      const struct nccl_operation *operation, double age)
{
	const struct nccl_communicator *record = communicator->record;
	char name[64];

	log_report("communicator '%s' (%016" PRIx64 ") rank %d of %d: %s number %" PRIu64
		   " (%" PRIu64 " bytes) makes no progress for %.1f s",
		   printable(communicators_name(communicator), name, sizeof(name)),
		   GET(record->hash), GET(record->rank), GET(record->ranks),
		   names_get(operation->function), operation->sequence, operation->bytes, age);
}

static void tell_progress(const struct nccl_operation *operation)
{
	uint64_t started = nccl_operation_started(operation);
	uint64_t stopped = nccl_operation_stopped(operation);
	char all[128], open[128];

	if (!GET(operation->stop))
		log_report("  NCCL has not put it into a stream yet");
	else if (started)
		log_report("  its kernel runs: channels %s started, %s have not ended",
			   channel_list(started, all, sizeof(all)),
			   channel_list(started & ~stopped, open, sizeof(open)));
	else if (!GET(operation->networks_started))
		log_report("  it is in the stream, and its kernel was not seen to start");
	if (operation->peer >= 0)
		log_report("  its peer is rank %d", operation->peer);
}

/* Where a step of a proxy operation stands. */
static const char *step_place(const struct nccl_event *step)
{
	uint8_t told = GET(step->a);

	if (told & 1u << 4)
		return told & 1u        ? "waits for its GPU"
		       : told & 1u << 3 ? "flushes to its GPU"
					: "waits for data of the peer";
	return told & 1u << 2   ? "waits for the network to send"
	       : told & 1u << 1 ? "waits for the peer to take it"
				: "waits for data of its GPU";
}

static const struct nccl_event *open_step(const struct communicator *communicator, uint64_t of)
{
	const struct nccl_event *oldest = NULL;

	for (unsigned i = 0; i < COMMUNICATOR_STEPS; i++) {
		const struct nccl_event *step = recorder_parent_event(GET(communicator->steps[i]));

		if (step && step->parent == of && !(GET(step->flags) & NCCL_EVENT_STOPPED) &&
		    (!oldest || step->start < oldest->start))
			oldest = step;
	}
	return oldest;
}

static void tell_proxy(const struct communicator *communicator, const struct nccl_event *proxy,
		       uint64_t now)
{
	const struct nccl_event *step = open_step(communicator, proxy->id);
	const char *verb = GET(proxy->flags) & NCCL_EVENT_SEND ? "sends to" : "receives from";

	if (step)
		log_report("  channel %u %s rank %d: step %d of %d %s since %.1f s", proxy->a, verb,
			   proxy->c, step->c, proxy->proxy_op.steps, step_place(step),
			   seconds(step->start, now));
	else
		log_report("  channel %u %s rank %d since %.1f s", proxy->a, verb, proxy->c,
			   seconds(proxy->start, now));
}

static void tell_proxies(const struct communicator *communicator,
			 const struct nccl_operation *operation, uint64_t now)
{
	uint32_t chunks = atomic_load_explicit(&store.chunk_count, memory_order_acquire);
	unsigned told = 0, left_out = 0;

	for (uint32_t chunk = 0; chunk < chunks; chunk++) {
		uint8_t state =
			atomic_load_explicit(&store.chunks[chunk].state, memory_order_acquire);
		uint32_t count;

		if ((state != STORE_CURRENT && state != STORE_RETIRED) ||
		    store.chunks[chunk].kind != NCCL_CHUNK_EVENTS)
			continue;
		count = store_taken(chunk, NCCL_CHUNK_EVENTS);
		for (uint32_t i = 0; i < count; i++) {
			struct nccl_event *event = store_record(chunk, NCCL_CHUNK_EVENTS, i);

			if (!__atomic_load_n(&event->id, __ATOMIC_ACQUIRE) ||
			    event->kind != NCCL_KIND_PROXY_OP || event->parent != operation->id ||
			    GET(event->flags) & NCCL_EVENT_STOPPED)
				continue;
			if (told < DETAILS_MAX)
				tell_proxy(communicator, event, now);
			else
				left_out++;
			told++;
		}
	}
	if (left_out)
		log_report("  and %u other proxy operations", left_out);
}

static void tell_stall(struct communicator *communicator, const struct nccl_operation *operation,
		       uint64_t now)
{
	struct nccl_communicator *record = communicator->record;

	communicator->told_stall = operation->id;
	communicator->stall_since = GET(operation->last);
	SET(record->stall_ticks, GET(operation->last));
	SET(record->stalls, record->stalls + 1);
	SET(record->stall_operation, operation->id);
	tell_communicator(communicator, operation, seconds(GET(operation->last), now));
	tell_progress(operation);
	tell_proxies(communicator, operation, now);
	log_report("  this process started %" PRIu64 " operations of the communicator after it",
		   GET(record->operations) - operation->ordinal - 1);
}

static void tell_end(struct communicator *communicator, uint64_t now)
{
	char name[64];

	log_report("communicator '%s' rank %d goes on after %.1f s",
		   printable(communicators_name(communicator), name, sizeof(name)),
		   GET(communicator->record->rank), seconds(communicator->stall_since, now));
	communicator->told_stall = 0;
	SET(communicator->record->stall_operation, 0);
}

void stall_round(uint64_t now)
{
	uint32_t count = communicators_count();
	uint64_t limit = sealing_ticks(options.stall_ns), stalled = 0;

	if (!options.stall_ns)
		return;
	for (uint32_t i = 1; i <= count; i++) {
		struct communicator *communicator = communicators_get(i);
		struct nccl_operation *operation = recorder_operation(communicator->oldest);
		uint64_t last = operation ? GET(operation->last) : now;
		/* A captured operation may never be launched. */
		bool is_captured = operation && operation->flags & NCCL_OPERATION_GRAPH &&
				   !nccl_operation_started(operation);
		bool is_stalled = operation && !is_captured && now > last && now - last >= limit;

		if (communicator->told_stall &&
		    (!is_stalled || communicator->told_stall != operation->id))
			tell_end(communicator, now);
		if (is_stalled && !communicator->told_stall)
			tell_stall(communicator, operation, now);
		stalled += is_stalled;
	}
	SET(store.header->stalled, stalled);
}
