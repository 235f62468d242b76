/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See sealing.h.
 */
#include "nccl/sealing.h"

#include "nccl/communicators.h"
#include "nccl/recorder.h"
#include "nccl/totals.h"

#define SILENCE_NS  50000000u  /* after this, nothing more is expected */
#define SETTLE_NS   2000000u   /* what shares its times with others is known by then */
#define FINALIZE_NS 200000000u /* children that come after finalize have come by then */

uint64_t sealing_ticks(uint64_t ns)
{
	return (uint64_t)((double)ns * (double)store.header->tick_hz * 1e-9);
}

uint64_t sealing_ns(uint64_t ticks)
{
	return (uint64_t)((double)ticks * 1e9 / (double)store.header->tick_hz);
}

/* ---- one operation ---- */

static bool was_silent(uint64_t then, uint64_t now, uint64_t ns)
{
	return now > then && now - then >= sealing_ticks(ns);
}

static bool is_finalized(const struct communicator *communicator, uint64_t now)
{
	uint64_t when = GET(communicator->record->finalize_ticks);

	return when && was_silent(when, now, FINALIZE_NS);
}

static bool has_all_channels(const struct nccl_operation *operation)
{
	return operation->kind == NCCL_KIND_COLLECTIVE && operation->channels_expected &&
	       __builtin_popcountll(nccl_operation_stopped(operation)) >=
		       operation->channels_expected;
}

/* Nothing of it was seen to run, and nothing will be. */
static bool shows_nothing(const struct communicator *communicator,
			  const struct nccl_operation *operation, bool finalized)
{
	if (!GET(operation->stop))
		return false;
	if (!(GET(communicator->record->mask) & NCCL_KIND_MASK(NCCL_KIND_KERNEL_CHANNEL)) ||
	    operation->kind == NCCL_KIND_CE_COLLECTIVE)
		return true;
	/* Symmetric kernels have no channels, and tell of none. */
	if (finalized && !operation->channels_expected)
		return true;
	/* A later one ran: operations of a communicator run in order. */
	return GET(communicator->ran) > operation->ordinal + 1;
}

/* What it is by now; 0: still in flight. Flags go to *flags. */
static uint8_t judge(const struct communicator *communicator,
		     const struct nccl_operation *operation, uint64_t now, uint32_t *flags)
{
	bool finalized = is_finalized(communicator, now);
	uint64_t last = GET(operation->last);

	if (nccl_operation_stopped(operation) && nccl_operation_is_quiet(operation) &&
	    has_all_channels(operation) && was_silent(last, now, SETTLE_NS))
		return NCCL_OPERATION_DONE;
	if (!was_silent(last, now, SILENCE_NS))
		return 0;
	if (nccl_operation_is_quiet(operation))
		return NCCL_OPERATION_DONE;
	if (!nccl_operation_started(operation) && !GET(operation->networks_started) &&
	    shows_nothing(communicator, operation, finalized)) {
		*flags = NCCL_OPERATION_ENQUEUE_ONLY;
		return NCCL_OPERATION_ENQUEUED;
	}
	return finalized ? NCCL_OPERATION_INCOMPLETE : 0;
}

/* What a launch before this one did is over, or its times are those of later ones. */
static void begin_launch(struct communicator *communicator, uint64_t launch)
{
	if (communicator->ran_stop > communicator->ran_before) {
		communicator->ran_before = communicator->ran_stop;
		communicator->ran_before_ordinal = communicator->ran_stop_ordinal;
	}
	communicator->ran_launch = launch;
	communicator->ran_stop = 0;
}

/* Kernels of a communicator run one after the other. NCCL's count of a channel's work can get out
 * of step with the device's (after replays of graphs, say): the times are of earlier work then, and
 * begin before the launch before has ended. But where that one's place in the device's ring may
 * have been taken before it was read, it is the one with wrong times, which are those of a later
 * one: it is sealed, and nothing follows from it for others. */
static void check_order(struct communicator *communicator, struct nccl_operation *operation)
{
	uint64_t launch = operation->launch, start = GET(operation->gpu_start);
	uint64_t stop = GET(operation->gpu_stop);

	if (!launch || !start || stop < start ||
	    GET(operation->flags) & (NCCL_OPERATION_GRAPH | NCCL_OPERATION_ALIASED) ||
	    launch < communicator->ran_launch)
		return;
	if (launch > communicator->ran_launch)
		begin_launch(communicator, launch);
	if (start < communicator->ran_before &&
	    communicators_is_fresh(communicator, communicator->ran_before_ordinal)) {
		recorder_flag(operation, NCCL_OPERATION_ALIASED);
		return;
	}
	if (start < communicator->ran_before)
		communicator->ran_before = 0;
	if (stop > communicator->ran_stop) {
		communicator->ran_stop = stop;
		communicator->ran_stop_ordinal = operation->ordinal;
	}
}

static void seal(struct communicator *communicator, struct nccl_operation *operation, uint8_t state,
		 uint32_t flags)
{
	SET(operation->state, state);
	__atomic_fetch_or(&operation->flags, flags | NCCL_OPERATION_SEALED, __ATOMIC_RELEASE);
	nccl_operation_join(operation);
	check_order(communicator, operation);
	communicator->finished++;
	if (operation->kind == NCCL_KIND_P2P)
		communicator->p2ps++;
	else
		communicator->collectives++;
	totals_add(operation);
}

/* ---- chunks ---- */

static void note_in_flight(struct communicator *communicator,
			   const struct nccl_operation *operation)
{
	if (communicator->oldest && communicator->oldest_ordinal <= operation->ordinal)
		return;
	communicator->oldest = operation->id;
	communicator->oldest_ordinal = operation->ordinal;
}

/* Returns how many records of the chunk may still change. */
static uint32_t look_at_operations(uint32_t chunk, uint64_t now)
{
	struct store_chunk *known = &store.chunks[chunk];
	uint32_t count = store_taken(chunk, NCCL_CHUNK_OPERATIONS), open = 0;

	for (uint32_t i = known->looked_at; i < count; i++) {
		struct nccl_operation *operation = store_record(chunk, NCCL_CHUNK_OPERATIONS, i);
		struct communicator *communicator;
		uint32_t flags = 0;
		uint8_t state;

		if (!__atomic_load_n(&operation->id, __ATOMIC_ACQUIRE)) {
			open++;
			continue;
		}
		communicator = communicators_get(operation->communicator);
		if (!(GET(operation->flags) & NCCL_OPERATION_SEALED)) {
			state = judge(communicator, operation, now, &flags);
			if (state) {
				seal(communicator, operation, state, flags);
			} else {
				note_in_flight(communicator, operation);
				open++;
			}
		}
		if (!open) {
			known->looked_at = (uint16_t)(i + 1);
			ADD(store.header->recorded[operation->kind], 1);
		}
	}
	return open;
}

/* An event that was not stopped keeps its chunk while its operation is in flight. */
static bool is_open(struct nccl_event *event)
{
	struct nccl_communicator *of = communicators_get(event->communicator)->record;
	uint64_t parent = event->parent;

	if (__atomic_load_n(&event->flags, __ATOMIC_ACQUIRE) & NCCL_EVENT_STOPPED)
		return false;
	if (GET(of->flags) & NCCL_COMMUNICATOR_FINALIZED)
		SET(event->flags, (uint8_t)(GET(event->flags) | NCCL_EVENT_OPEN_AT_FINALIZE));
	for (int level = 0; level < 3 && parent; level++) {
		struct nccl_operation *operation = recorder_operation(parent);
		struct nccl_event *above;

		if (operation)
			return !(GET(operation->flags) & NCCL_OPERATION_SEALED);
		above = recorder_parent_event(parent);
		parent = above ? above->parent : 0;
	}
	return false;
}

static uint32_t look_at_events(uint32_t chunk)
{
	struct store_chunk *known = &store.chunks[chunk];
	uint32_t count = store_taken(chunk, NCCL_CHUNK_EVENTS), open = 0;

	for (uint32_t i = known->looked_at; i < count; i++) {
		struct nccl_event *event = store_record(chunk, NCCL_CHUNK_EVENTS, i);

		if (!__atomic_load_n(&event->id, __ATOMIC_ACQUIRE) || is_open(event)) {
			open++;
		} else if (!open) {
			known->looked_at = (uint16_t)(i + 1);
			ADD(store.header->recorded[event->kind % NCCL_KIND_COUNT], 1);
		}
	}
	return open;
}

static void look_at(uint32_t chunk, uint64_t now)
{
	struct store_chunk *known = &store.chunks[chunk];
	uint8_t state = atomic_load_explicit(&known->state, memory_order_acquire);
	uint32_t open = 1;

	if (state != STORE_CURRENT && state != STORE_RETIRED)
		return;
	if (known->kind == NCCL_CHUNK_OPERATIONS)
		open = look_at_operations(chunk, now);
	else if (known->kind == NCCL_CHUNK_EVENTS)
		open = look_at_events(chunk);
	known->open = open;
	if (state == STORE_RETIRED && !open)
		atomic_store_explicit(&known->state, STORE_FINISHED, memory_order_release);
}

/* ---- a round ---- */

static void tell(struct communicator *communicator)
{
	struct nccl_communicator *record = communicator->record;

	SET(record->finished, communicator->finished);
	SET(record->collectives, communicator->collectives);
	SET(record->p2ps, communicator->p2ps);
	if (GET(record->mask) & recorder_given_up())
		SET(record->mask, GET(record->mask) & ~recorder_given_up());
}

void sealing_round(uint64_t now)
{
	uint32_t communicators = communicators_count();
	uint32_t chunks = atomic_load_explicit(&store.chunk_count, memory_order_acquire);

	for (uint32_t i = 1; i <= communicators; i++)
		communicators_get(i)->oldest = 0;
	for (uint32_t i = 0; i < chunks; i++)
		look_at(i, now);
	for (uint32_t i = 1; i <= communicators; i++)
		tell(communicators_get(i));
}
