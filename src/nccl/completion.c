/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See completion.h.
 */
#include "nccl/completion.h"

#include "nccl/communicators.h"
#include "nccl/recorder.h"
#include "nccl/totals.h"

#define OPERATION_OVER_AFTER_SILENCE_NS 50000000u /* after this, nothing more is expected */
#define SHARED_TIMES_KNOWN_AFTER_NS                                                                \
	2000000u /* what shares its times with others is known by then */
#define LATE_EVENTS_AFTER_FINALIZE_WAIT_NS                                                         \
	200000000u /* children that come after finalize have come by then */

uint64_t completion_ns_to_ticks(uint64_t ns)
{
	return (uint64_t)((double)ns * (double)store.header->tick_hz * 1e-9);
}

uint64_t completion_ticks_to_ns(uint64_t ticks)
{
	return (uint64_t)((double)ticks * 1e9 / (double)store.header->tick_hz);
}

/* ---- one operation ---- */

static bool is_longer_ago_than(uint64_t then, uint64_t now, uint64_t ns)
{
	return now > then && now - then >= completion_ns_to_ticks(ns);
}

/* Nothing of its operations comes any more: it was finalized long enough ago, or the process ends.
 */
static bool communicator_is_over(const struct communicator_recording_state *communicator,
				 const struct completion_round *round)
{
	uint64_t when = RELAXED_LOAD(communicator->record->finalize_ticks);

	return when && (round->is_last || round->needs_room ||
			is_longer_ago_than(when, round->ticks, LATE_EVENTS_AFTER_FINALIZE_WAIT_NS));
}

static bool has_stopped_all_channels(const struct nccl_operation *operation)
{
	return operation->kind == NCCL_KIND_COLLECTIVE && operation->channels_expected &&
	       __builtin_popcountll(nccl_operation_stopped(operation)) >=
		       operation->channels_expected;
}

/* Nothing of it was seen to run, and nothing will be. */
static bool operation_was_never_seen_to_run(const struct communicator_recording_state *communicator,
					    const struct nccl_operation *operation, bool finalized)
{
	if (!RELAXED_LOAD(operation->stop))
		return false;
	if (!(RELAXED_LOAD(communicator->record->mask) &
	      NCCL_KIND_MASK(NCCL_KIND_KERNEL_CHANNEL)) ||
	    operation->kind == NCCL_KIND_CE_COLLECTIVE)
		return true;
	/* Symmetric kernels have no channels, and tell of none. */
	if (finalized && !operation->channels_expected)
		return true;
	/* A later one ran: operations of a communicator run in order. */
	return RELAXED_LOAD(communicator->last_ran_ordinal_plus_one) > operation->ordinal + 1;
}

/* What it is by now; 0: still in flight. Flags go to *flags. */
static uint8_t decide_final_operation_state(const struct communicator_recording_state *communicator,
					    const struct nccl_operation *operation,
					    const struct completion_round *round, uint32_t *flags)
{
	bool finalized = communicator_is_over(communicator, round);
	uint64_t last = RELAXED_LOAD(operation->last);

	if (nccl_operation_stopped(operation) && nccl_operation_is_quiet(operation) &&
	    has_stopped_all_channels(operation) &&
	    is_longer_ago_than(last, round->ticks, SHARED_TIMES_KNOWN_AFTER_NS))
		return NCCL_OPERATION_DONE;
	/* After the last round there is nobody to wait for silence. */
	if (!round->is_last && !(round->needs_room && finalized) &&
	    !is_longer_ago_than(last, round->ticks, OPERATION_OVER_AFTER_SILENCE_NS))
		return 0;
	if (nccl_operation_is_quiet(operation))
		return NCCL_OPERATION_DONE;
	if (!nccl_operation_started(operation) && !RELAXED_LOAD(operation->networks_started) &&
	    operation_was_never_seen_to_run(communicator, operation, finalized)) {
		*flags = NCCL_OPERATION_ENQUEUE_ONLY;
		return NCCL_OPERATION_ENQUEUED;
	}
	return finalized ? NCCL_OPERATION_INCOMPLETE : 0;
}

/* What a launch before this one did is over, or its times are those of later ones. */
static void advance_to_next_launch(struct communicator_recording_state *communicator,
				   uint64_t launch)
{
	if (communicator->last_ran_launch_gpu_stop > communicator->earlier_launches_gpu_stop) {
		communicator->earlier_launches_gpu_stop = communicator->last_ran_launch_gpu_stop;
		communicator->earlier_launches_stop_ordinal =
			communicator->last_ran_launch_stop_ordinal;
	}
	communicator->last_ran_launch_ticks = launch;
	communicator->last_ran_launch_gpu_stop = 0;
}

/* Kernels of a communicator run one after the other. NCCL's count of a channel's work can get out
 * of step with the device's (after replays of graphs, say): the times are of earlier work then, and
 * begin before the launch before has ended. But where that one's place in the device's ring may
 * have been taken before it was read, it is the one with wrong times, which are those of a later
 * one: it is sealed, and nothing follows from it for others. */
static void flag_if_launch_order_violated(struct communicator_recording_state *communicator,
					  struct nccl_operation *operation)
{
	uint64_t launch = operation->launch, start = RELAXED_LOAD(operation->gpu_start);
	uint64_t stop = RELAXED_LOAD(operation->gpu_stop);

	if (!launch || !start || stop < start ||
	    RELAXED_LOAD(operation->flags) & (NCCL_OPERATION_GRAPH | NCCL_OPERATION_ALIASED) ||
	    launch < communicator->last_ran_launch_ticks)
		return;
	if (launch > communicator->last_ran_launch_ticks)
		advance_to_next_launch(communicator, launch);
	if (start < communicator->earlier_launches_gpu_stop &&
	    communicators_ordinal_is_in_times_ring(communicator,
						   communicator->earlier_launches_stop_ordinal)) {
		recorder_set_operation_flag(operation, NCCL_OPERATION_ALIASED);
		return;
	}
	if (start < communicator->earlier_launches_gpu_stop)
		communicator->earlier_launches_gpu_stop = 0;
	if (stop > communicator->last_ran_launch_gpu_stop) {
		communicator->last_ran_launch_gpu_stop = stop;
		communicator->last_ran_launch_stop_ordinal = operation->ordinal;
	}
}

static void seal_and_sum_up_operation(struct communicator_recording_state *communicator,
				      struct nccl_operation *operation, uint8_t state,
				      uint32_t flags)
{
	RELAXED_STORE(operation->state, state);
	__atomic_fetch_or(&operation->flags, flags | NCCL_OPERATION_SEALED, __ATOMIC_RELEASE);
	nccl_operation_join(operation);
	flag_if_launch_order_violated(communicator, operation);
	communicator->finished_count++;
	if (operation->kind == NCCL_KIND_P2P)
		communicator->finished_p2p_count++;
	else
		communicator->finished_collective_count++;
	totals_add_operation(operation);
}

/* ---- chunks ---- */

static void update_oldest_in_flight(struct communicator_recording_state *communicator,
				    const struct nccl_operation *operation)
{
	if (communicator->oldest_in_flight_id &&
	    communicator->oldest_in_flight_ordinal <= operation->ordinal)
		return;
	communicator->oldest_in_flight_id = operation->id;
	communicator->oldest_in_flight_ordinal = operation->ordinal;
}

/* Returns how many records of the chunk may still change. */
static uint32_t seal_chunk_operations_and_count_open(uint32_t chunk,
						     const struct completion_round *round)
{
	struct store_chunk_tracking *known = &store.chunk_tracking[chunk];
	uint32_t count = store_get_used_record_count_of_chunk(chunk, NCCL_CHUNK_OPERATIONS),
		 open = 0;

	for (uint32_t i = known->settled_record_count; i < count; i++) {
		struct nccl_operation *operation =
			store_get_record_address(chunk, NCCL_CHUNK_OPERATIONS, i);
		struct communicator_recording_state *communicator;
		uint32_t flags = 0;
		uint8_t state;

		if (!__atomic_load_n(&operation->id, __ATOMIC_ACQUIRE)) {
			open++;
			continue;
		}
		communicator = communicators_get_by_creation_number(operation->communicator);
		if (communicator && !(RELAXED_LOAD(operation->flags) & NCCL_OPERATION_SEALED)) {
			state = decide_final_operation_state(communicator, operation, round,
							     &flags);
			if (state) {
				seal_and_sum_up_operation(communicator, operation, state, flags);
			} else {
				update_oldest_in_flight(communicator, operation);
				open++;
			}
		}
		if (!open) {
			known->settled_record_count = (uint16_t)(i + 1);
			RELAXED_ADD(store.header->recorded[operation->kind], 1);
		}
	}
	return open;
}

/* An event that was not stopped keeps its chunk while its operation is in flight. */
static bool event_is_open(struct nccl_event *event)
{
	const struct communicator_recording_state *communicator =
		communicators_get_by_creation_number(event->communicator);
	uint64_t parent = event->parent;

	if (__atomic_load_n(&event->flags, __ATOMIC_ACQUIRE) & NCCL_EVENT_STOPPED)
		return false;
	if (!communicator)
		return false;
	if (RELAXED_LOAD(communicator->record->flags) & NCCL_COMMUNICATOR_FINALIZED)
		RELAXED_STORE(event->flags,
			      (uint8_t)(RELAXED_LOAD(event->flags) | NCCL_EVENT_OPEN_AT_FINALIZE));
	for (int level = 0; level < 3 && parent; level++) {
		struct nccl_operation *operation = recorder_find_operation(parent);
		struct nccl_event *above;

		if (operation)
			return !(RELAXED_LOAD(operation->flags) & NCCL_OPERATION_SEALED);
		above = recorder_find_event(parent);
		parent = above ? above->parent : 0;
	}
	return false;
}

static uint32_t count_open_and_recorded_events(uint32_t chunk)
{
	struct store_chunk_tracking *known = &store.chunk_tracking[chunk];
	uint32_t count = store_get_used_record_count_of_chunk(chunk, NCCL_CHUNK_EVENTS), open = 0;

	for (uint32_t i = known->settled_record_count; i < count; i++) {
		struct nccl_event *event = store_get_record_address(chunk, NCCL_CHUNK_EVENTS, i);

		if (!__atomic_load_n(&event->id, __ATOMIC_ACQUIRE) || event_is_open(event)) {
			open++;
		} else if (!open) {
			known->settled_record_count = (uint16_t)(i + 1);
			RELAXED_ADD(store.header->recorded[event->kind % NCCL_KIND_COUNT], 1);
		}
	}
	return open;
}

/* Its communicators are over, and nothing else in the file is of one of them. */
static bool communicator_chunk_is_over(uint32_t chunk)
{
	for (uint32_t i = 0;
	     i < store_get_used_record_count_of_chunk(chunk, NCCL_CHUNK_COMMUNICATORS); i++) {
		const struct nccl_communicator_record *record =
			store_get_record_address(chunk, NCCL_CHUNK_COMMUNICATORS, i);
		const struct communicator_recording_state *communicator =
			communicators_get_by_creation_number((uint32_t)record->creation);

		if (communicator &&
		    (!RELAXED_LOAD(record->finalize_ticks) || communicator->has_chunks))
			return false;
	}
	return true;
}

/* From here on nobody looks at the records any more (communicators_get_by_creation_number), so that
 * the ring may overwrite them. */
static void give_communicators_of_chunk_back(uint32_t chunk)
{
	for (uint32_t i = 0;
	     i < store_get_used_record_count_of_chunk(chunk, NCCL_CHUNK_COMMUNICATORS); i++) {
		const struct nccl_communicator_record *record =
			store_get_record_address(chunk, NCCL_CHUNK_COMMUNICATORS, i);
		struct communicator_recording_state *communicator =
			communicators_get_by_creation_number((uint32_t)record->creation);

		if (communicator)
			atomic_store_explicit(&communicator->is_given_back, true,
					      memory_order_release);
		totals_forget_communicator((uint32_t)record->creation);
	}
}

static void finish_communicator_chunk_if_over(uint32_t chunk, const struct completion_round *round)
{
	struct store_chunk_tracking *known = &store.chunk_tracking[chunk];

	if (!round->needs_room || known->kind != NCCL_CHUNK_COMMUNICATORS ||
	    atomic_load_explicit(&known->state, memory_order_acquire) != STORE_CHUNK_RETIRED ||
	    !communicator_chunk_is_over(chunk))
		return;
	give_communicators_of_chunk_back(chunk);
	atomic_store_explicit(&known->state, STORE_CHUNK_FINISHED, memory_order_release);
}

/* No more operations come, and late events take another chunk. */
static void retire_chunk_if_over(_Atomic uint64_t *current)
{
	uint64_t word = atomic_exchange_explicit(current, 0, memory_order_acq_rel);

	if (word)
		store_retire_chunk((uint32_t)(word >> 32) - 1);
}

static void
retire_chunks_of_finalized_communicator(struct communicator_recording_state *communicator,
					const struct completion_round *round)
{
	if (!communicator_is_over(communicator, round) || round->is_last)
		return;
	retire_chunk_if_over(&communicator->operations);
	retire_chunk_if_over(&communicator->events);
}

static void note_chunk_of_communicator(uint32_t chunk)
{
	uint8_t state =
		atomic_load_explicit(&store.chunk_tracking[chunk].state, memory_order_acquire);
	struct communicator_recording_state *communicator;

	if (state == STORE_CHUNK_UNUSED || state == STORE_CHUNK_READY)
		return;
	communicator = communicators_get_by_creation_number(
		RELAXED_LOAD(store_get_chunk_header(chunk)->communicator));
	if (communicator)
		communicator->has_chunks = true;
}

static void complete_chunk_records(uint32_t chunk, const struct completion_round *round)
{
	struct store_chunk_tracking *known = &store.chunk_tracking[chunk];
	uint8_t state = atomic_load_explicit(&known->state, memory_order_acquire);
	uint64_t taken = RELAXED_LOAD(*store_get_chunk_taken_count_word(chunk));
	uint32_t open = 1;

	if (state != STORE_CHUNK_CURRENT && state != STORE_CHUNK_RETIRED)
		return;
	if (known->kind == NCCL_CHUNK_OPERATIONS)
		open = seal_chunk_operations_and_count_open(chunk, round);
	else if (known->kind == NCCL_CHUNK_EVENTS)
		open = count_open_and_recorded_events(chunk);
	known->open = open;
	atomic_store_explicit(&known->quiet_taken, open ? 0 : taken, memory_order_release);
	if (state == STORE_CHUNK_RETIRED && !open)
		atomic_store_explicit(&known->state, STORE_CHUNK_FINISHED, memory_order_release);
}

/* ---- a round ---- */

static void update_record_of_communicator(struct communicator_recording_state *communicator)
{
	struct nccl_communicator_record *record = communicator->record;

	RELAXED_STORE(record->finished, communicator->finished_count);
	RELAXED_STORE(record->collectives, communicator->finished_collective_count);
	RELAXED_STORE(record->p2ps, communicator->finished_p2p_count);
	if (RELAXED_LOAD(record->mask) & recorder_get_disabled_event_mask())
		RELAXED_STORE(record->mask,
			      RELAXED_LOAD(record->mask) & ~recorder_get_disabled_event_mask());
}

static void begin_round_of_communicator(struct communicator_recording_state *communicator,
					const struct completion_round *round)
{
	communicator->oldest_in_flight_id = 0;
	communicator->has_chunks = false;
	retire_chunks_of_finalized_communicator(communicator, round);
}

void completion_run_round(const struct completion_round *round)
{
	uint32_t communicators = communicators_get_count();
	uint32_t chunks = atomic_load_explicit(&store.chunk_count, memory_order_acquire);
	struct communicator_recording_state *communicator;

	for (uint32_t i = 1; i <= communicators; i++) {
		communicator = communicators_get_by_creation_number(i);
		if (communicator)
			begin_round_of_communicator(communicator, round);
	}
	for (uint32_t i = 0; i < chunks; i++) {
		complete_chunk_records(i, round);
		note_chunk_of_communicator(i);
	}
	for (uint32_t i = 0; i < chunks; i++)
		finish_communicator_chunk_if_over(i, round);
	for (uint32_t i = 1; i <= communicators; i++) {
		communicator = communicators_get_by_creation_number(i);
		if (communicator)
			update_record_of_communicator(communicator);
	}
}
