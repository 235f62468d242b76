/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See recorder.h. Here: dispatch, operations, and events of NCCL's API. A pair of start and stop of
 * an operation has two time stamps, two locked additions and some 200 bytes to store.
 */
#include "nccl/recorder.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "nccl/api.h"
#include "nccl/clock.h"
#include "nccl/helper.h"
#include "nccl/names.h"
#include "nccl/operations.h"
#include "nccl/options.h"

_Atomic uint32_t recorder_current_mode;

__thread struct recorder_thread_state recorder_thread_variables;

struct recorder_thread_state *recorder_initialize_thread_state(void)
{
	struct recorder_thread_state *self = &recorder_thread_variables;

	self->thread = (uint32_t)syscall(SYS_gettid);
	return self;
}

struct communicator_recording_state *
recorder_find_and_cache_communicator(struct recorder_thread_state *self, void *context)
{
	struct communicator_recording_state *communicator = communicators_find_by_context(context);

	if (communicator) {
		self->context = context;
		self->communicator = communicator;
	}
	return communicator;
}

/* ---- ids in records ---- */

struct nccl_operation *recorder_find_operation(uint64_t id)
{
	unsigned kind;
	void *record;

	return id && store_resolve_id((void *)(uintptr_t)id, &kind, &record) == STORE_ID_FOUND &&
			       kind == NCCL_CHUNK_OPERATIONS
		       ? record
		       : NULL;
}

struct nccl_event *recorder_find_event(uint64_t id)
{
	unsigned kind;
	void *record;

	return id && store_resolve_id((void *)(uintptr_t)id, &kind, &record) == STORE_ID_FOUND &&
			       kind == NCCL_CHUNK_EVENTS
		       ? record
		       : NULL;
}

/* Events of the API stand at the top; what has no parent there is nothing special. */
static bool kind_needs_parent(unsigned kind)
{
	return kind == NCCL_KIND_PROXY_OP || kind == NCCL_KIND_PROXY_STEP ||
	       kind == NCCL_KIND_KERNEL_CHANNEL || kind == NCCL_KIND_NET_PLUGIN ||
	       kind == NCCL_KIND_KERNEL_PHASE || kind == NCCL_KIND_CE_SYNC ||
	       kind == NCCL_KIND_CE_BATCH;
}

void recorder_count_missing_parent(enum store_id_resolution_kind found, uint8_t *flags)
{
	if (found == STORE_ID_FOREIGN)
		*flags |= NCCL_EVENT_FOREIGN_PARENT;
	store_count_loss(found == STORE_ID_FOREIGN ? NCCL_LOSS_FOREIGN_PARENT
						   : NCCL_LOSS_NO_PARENT);
}

static uint64_t get_valid_parent_id_or_count(void *parent, unsigned kind, uint8_t *flags)
{
	unsigned parent_kind;
	void *record;

	switch (store_resolve_id(parent, &parent_kind, &record)) {
	case STORE_ID_FOUND:
		return parent_kind == NCCL_CHUNK_OPERATIONS || parent_kind == NCCL_CHUNK_EVENTS
			       ? (uint64_t)(uintptr_t)parent
			       : 0;
	case STORE_ID_FOREIGN:
		recorder_count_missing_parent(STORE_ID_FOREIGN, flags);
		return 0;
	default:
		if (kind_needs_parent(kind))
			recorder_count_missing_parent(STORE_ID_NULL, flags);
		return 0;
	}
}

uint64_t recorder_get_valid_group_id(void *parent)
{
	uint8_t flags = 0;

	return get_valid_parent_id_or_count(parent, NCCL_KIND_GROUP, &flags);
}

/* ---- events ---- */

void recorder_count_dropped_event(struct communicator_recording_state *communicator,
				  struct nccl_operation *operation)
{
	store_count_loss(NCCL_LOSS_EVENTS);
	RELAXED_ADD(communicator->record->dropped_events, 1);
	if (operation)
		recorder_set_operation_flag(operation, NCCL_OPERATION_LOST_CHILD);
}

struct nccl_event *recorder_add_event(struct communicator_recording_state *communicator,
				      const struct plugin_event_start_arguments *event,
				      uint64_t ticks, uint64_t *ret_id)
{
	struct nccl_communicator_record *of = communicator->record;
	struct nccl_event *record;
	struct store_record_slot place;
	uint8_t flags = 0;
	uint64_t parent = get_valid_parent_id_or_count(event->parent, event->kind, &flags);

	place = store_take_record_slot(&communicator->events, NCCL_CHUNK_EVENTS,
				       (uint32_t)of->creation);
	*ret_id = place.id;
	if (!place.id) {
		recorder_count_dropped_event(communicator, recorder_find_operation(parent));
		return NULL;
	}
	record = place.record;
	record->parent = parent;
	record->start = ticks;
	record->thread = recorder_get_thread_id();
	record->communicator = (uint32_t)of->creation;
	record->kind = event->kind;
	record->flags = flags;
	return record;
}

/* ---- CUDA graphs ---- */

#define KERNEL_TIME_EVENT_KINDS_MASK                                                               \
	(NCCL_KIND_MASK(NCCL_KIND_KERNEL_CHANNEL) | NCCL_KIND_MASK(NCCL_KIND_KERNEL_PHASE))

static _Atomic uint32_t disabled_event_mask;

uint32_t recorder_get_disabled_event_mask(void)
{
	return atomic_load_explicit(&disabled_event_mask, memory_order_relaxed);
}

/* For good, and for all communicators: a captured launch without kernel channels moves the device's
 * count of work, and not the host's, at each replay, so that NCCL would read times of other work
 * from then on (NCCL 2.28 to 2.31: incWorkCounter in proxy.cc, profiler() in device/common.h).
 * NCCL has read the mask for this call already: it is timed, the next ones are not. */
static void disable_kernel_time_events(struct communicator_recording_state *communicator)
{
	uint32_t mask = RELAXED_LOAD(store.header->mask) & ~KERNEL_TIME_EVENT_KINDS_MASK;

	if (!communicator->nccl_event_mask ||
	    !(RELAXED_LOAD(communicator->record->mask) & KERNEL_TIME_EVENT_KINDS_MASK))
		return;
	__atomic_fetch_and(communicator->nccl_event_mask, ~(int)KERNEL_TIME_EVENT_KINDS_MASK,
			   __ATOMIC_RELAXED);
	RELAXED_STORE(communicator->record->mask,
		      RELAXED_LOAD(communicator->record->mask) & ~KERNEL_TIME_EVENT_KINDS_MASK);
	RELAXED_STORE(store.header->mask, mask);
	if (!atomic_exchange_explicit(&disabled_event_mask, KERNEL_TIME_EVENT_KINDS_MASK,
				      memory_order_relaxed))
		helper_write_first_problem_to_header(
			"kernels are not timed after the first call that was captured into a "
			"CUDA graph (NCCL_GRAPHS=fast)");
}

static void *record_api_event(struct communicator_recording_state *communicator,
			      const struct plugin_event_start_arguments *event, uint64_t ticks)
{
	uint64_t id;
	struct nccl_event *record = recorder_add_event(communicator, event, ticks, &id);

	if (!record)
		return NULL;
	switch (event->kind) {
	case NCCL_KIND_GROUP_API:
		record->c = event->depth;
		break;
	case NCCL_KIND_COLLECTIVE_API:
	case NCCL_KIND_P2P_API:
		record->a = names_intern_to_number(event->function);
		record->b = names_intern_to_number(event->data_type);
		record->c = event->root;
		record->api.count = event->count;
		record->api.stream = (uint64_t)(uintptr_t)event->stream;
		break;
	case NCCL_KIND_KERNEL_LAUNCH:
		record->launch.stream = (uint64_t)(uintptr_t)event->stream;
		RELAXED_STORE(communicator->last_launch_ticks, ticks);
		RELAXED_STORE(communicator->last_launch_thread, record->thread);
		break;
	case NCCL_KIND_CE_SYNC:
		record->a = event->complete;
		record->c = event->ranks;
		break;
	case NCCL_KIND_CE_BATCH:
		record->a = event->intra_batch;
		record->c = event->operations;
		record->ce.bytes = event->bytes;
		break;
	default:
		break;
	}
	if (event->kind >= NCCL_KIND_GROUP_API && event->kind <= NCCL_KIND_P2P_API &&
	    event->is_captured) {
		record->flags |= NCCL_EVENT_CAPTURED;
		if (options.stops_kernel_channels_at_capture)
			disable_kernel_time_events(communicator);
	}
	return recorder_publish_event(record, id);
}

/* ---- operations ---- */

bool recorder_count_late_event(struct nccl_operation *operation)
{
	uint8_t late = RELAXED_LOAD(operation->late);

	if (late < UINT8_MAX)
		RELAXED_STORE(operation->late, (uint8_t)(late + 1));
	recorder_set_operation_flag(operation, NCCL_OPERATION_LATE);
	store_count_loss(NCCL_LOSS_LATE);
	return false;
}

/* States only go up. */
static void raise_operation_state(struct nccl_operation *operation, uint8_t to)
{
	uint8_t seen = RELAXED_LOAD(operation->state);

	while (seen < to && !__atomic_compare_exchange_n(&operation->state, &seen, to, false,
							 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* A channel may come by a context that is not the operation's. */
void recorder_mark_operation_running(struct nccl_operation *operation,
				     struct communicator_recording_state *communicator)
{
	if (communicator && (uint32_t)communicator->record->creation != operation->communicator)
		communicator = communicators_get_by_creation_number(operation->communicator);
	raise_operation_state(operation, NCCL_OPERATION_RUNNING);
	if (communicator &&
	    RELAXED_LOAD(communicator->last_ran_ordinal_plus_one) <= operation->ordinal)
		RELAXED_STORE(communicator->last_ran_ordinal_plus_one, operation->ordinal + 1);
}

/* The API call that it came of. A captured one comes again with each replay of its graph. */
static void set_graph_flags_from_api_call(struct nccl_operation *operation, struct nccl_event *call)
{
	uint8_t flags = RELAXED_LOAD(call->flags);

	if (flags & NCCL_EVENT_CAPTURED) {
		operation->flags |= NCCL_OPERATION_GRAPH;
		if (flags & NCCL_EVENT_USED)
			operation->flags |= NCCL_OPERATION_REPLAYED;
	}
	if (!(flags & NCCL_EVENT_USED))
		RELAXED_STORE(call->flags, (uint8_t)(flags | NCCL_EVENT_USED));
}

void operations_set_parent(struct nccl_operation *operation, void *parent)
{
	unsigned kind;
	void *record;
	enum store_id_resolution_kind found = store_resolve_id(parent, &kind, &record);

	if (found == STORE_ID_FOREIGN)
		store_count_loss(NCCL_LOSS_FOREIGN_PARENT);
	if (found != STORE_ID_FOUND || (kind != NCCL_CHUNK_EVENTS && kind != NCCL_CHUNK_OPERATIONS))
		return;
	operation->parent = (uint64_t)(uintptr_t)parent;
	if (kind == NCCL_CHUNK_EVENTS)
		set_graph_flags_from_api_call(operation, record);
}

void operations_set_p2p_sequence(struct nccl_operation *operation,
				 struct communicator_recording_state *communicator,
				 const char *function, int peer)
{
	operation->root = -1;
	operation->peer = peer;
	if (!communicators_take_p2p_sequence_number(
		    communicator, peer, function && function[0] == 'S', &operation->sequence))
		operation->flags |= NCCL_OPERATION_NO_SEQUENCE;
}

void *operations_count_one_dropped(struct communicator_recording_state *communicator)
{
	store_count_loss(NCCL_LOSS_OPERATIONS);
	RELAXED_ADD(communicator->record->dropped_operations, 1);
	RELAXED_ADD(communicator->record->operations, 1);
	return NULL;
}

static void record_operation_stop(struct nccl_operation *operation, uint64_t ticks)
{
	if (RELAXED_LOAD(operation->stop)) {
		store_count_loss(NCCL_LOSS_DOUBLE_STOP);
		return;
	}
	RELAXED_STORE(operation->stop, ticks);
	if (RELAXED_LOAD(operation->last) < ticks)
		RELAXED_STORE(operation->last, ticks);
	/* That it is ENQUEUED by now follows from the stop: others may be raising its state. */
}

/* ---- dispatch ---- */

void recorder_count_unknown_event_type(void)
{
	store_count_loss(NCCL_LOSS_UNKNOWN_TYPE);
}

void *recorder_record_event_start(void *context, const struct plugin_event_start_arguments *event)
{
	uint64_t ticks = nccl_clock_read_ticks();
	struct recorder_thread_state *self = recorder_get_thread_state();
	struct communicator_recording_state *communicator =
		recorder_find_communicator_of_context(self, context);

	if (!communicator)
		return NULL;
	switch (event->kind) {
	case NCCL_KIND_COLLECTIVE:
	case NCCL_KIND_P2P:
	case NCCL_KIND_CE_COLLECTIVE:
		return operations_add_record(self, communicator, event, ticks, true);
	case NCCL_KIND_KERNEL_CHANNEL:
	case NCCL_KIND_KERNEL_PHASE:
		return channels_record_event_start(self, communicator, event, ticks);
	case NCCL_KIND_PROXY_OP:
	case NCCL_KIND_PROXY_STEP:
	case NCCL_KIND_PROXY_CONTROL:
	case NCCL_KIND_NET_PLUGIN:
		return proxies_record_event_start(communicator, event, ticks);
	default:
		return record_api_event(communicator, event, ticks);
	}
}

static void *count_bad_handle_as_loss(enum store_id_resolution_kind found)
{
	switch (found) {
	case STORE_ID_NULL: /* how net plugins end each transfer, where it is no event */
		break;
	case STORE_ID_STALE:
		store_count_loss(NCCL_LOSS_STALE_HANDLE);
		break;
	default: /* of another process, or a context */
		store_count_loss(NCCL_LOSS_FOREIGN_HANDLE);
		break;
	}
	return NULL;
}

/* What a handle is, or NULL, counted. */
static inline void *find_record_or_count_bad(void *handle, unsigned *ret_kind)
{
	void *record;
	enum store_id_resolution_kind found = store_resolve_id(handle, ret_kind, &record);

	if (__builtin_expect(found != STORE_ID_FOUND, 0))
		return count_bad_handle_as_loss(found);
	if (__builtin_expect(*ret_kind != NCCL_CHUNK_OPERATIONS && *ret_kind != NCCL_CHUNK_EVENTS,
			     0))
		return count_bad_handle_as_loss(STORE_ID_FOREIGN);
	return record;
}

static void record_event_stop(struct nccl_event *event, uint64_t ticks)
{
	uint8_t flags = RELAXED_LOAD(event->flags);

	if (flags & NCCL_EVENT_STOPPED) {
		store_count_loss(NCCL_LOSS_DOUBLE_STOP);
		return;
	}
	RELAXED_STORE(event->stop, ticks);
	if (event->kind == NCCL_KIND_KERNEL_CHANNEL)
		channels_add_stop_to_operation(event, ticks);
	else if (event->kind == NCCL_KIND_PROXY_OP || event->kind == NCCL_KIND_PROXY_STEP)
		proxies_add_stop_to_operation(event, ticks);
	__atomic_store_n(&event->flags, (uint8_t)(RELAXED_LOAD(event->flags) | NCCL_EVENT_STOPPED),
			 __ATOMIC_RELEASE);
}

void recorder_record_event_stop(void *handle)
{
	uint64_t ticks = nccl_clock_read_ticks();
	unsigned kind = NCCL_CHUNK_FREE;
	void *record = find_record_or_count_bad(handle, &kind);

	if (!record)
		return;
	if (kind == NCCL_CHUNK_OPERATIONS)
		record_operation_stop(record, ticks);
	else
		record_event_stop(record, ticks);
}

/* Ticks since the start in units of 64, at least 1; readers take 0 for "never". */
static uint32_t compute_group_time_in_64_tick_units(uint64_t start, uint64_t ticks)
{
	uint64_t units = ticks > start ? (ticks - start) >> 6 : 0;

	return units > UINT32_MAX ? UINT32_MAX : units ? (uint32_t)units : 1;
}

static bool state_is_gpu_stop(const struct nccl_event *event, int state)
{
	return (event->kind == NCCL_KIND_KERNEL_CHANNEL &&
		state == NCCL_STATE_KERNEL_CHANNEL_STOP) ||
	       (event->kind == NCCL_KIND_KERNEL_PHASE && state == NCCL_STATE_KERNEL_PHASE_STOP);
}

void recorder_record_event_state(void *handle, int state,
				 const struct event_state_arguments *arguments)
{
	unsigned kind = NCCL_CHUNK_FREE;
	struct nccl_event *event = find_record_or_count_bad(handle, &kind);

	if (!event)
		return;
	if (kind == NCCL_CHUNK_OPERATIONS || state < 0 || state > NCCL_STATE_KERNEL_PHASE_STOP)
		store_count_loss(NCCL_LOSS_UNKNOWN_STATE);
	else if (state_is_gpu_stop(event, state))
		channels_record_gpu_stop_time(
			event, arguments); /* the one that comes most wants no time */
	else if (event->kind == NCCL_KIND_GROUP_API && state == NCCL_STATE_GROUP_START_API_STOP)
		RELAXED_STORE(
			event->group_api.start_done,
			compute_group_time_in_64_tick_units(event->start, nccl_clock_read_ticks()));
	else if (event->kind == NCCL_KIND_GROUP_API && state == NCCL_STATE_GROUP_END_API_START)
		RELAXED_STORE(
			event->group_api.end_start,
			compute_group_time_in_64_tick_units(event->start, nccl_clock_read_ticks()));
	else
		proxies_record_event_state(event, state, arguments, nccl_clock_read_ticks());
}

void recorder_record_communicator_finalize(void *context)
{
	struct communicator_recording_state *communicator = communicators_find_by_context(context);
	struct nccl_communicator_record *record;

	if (!communicator)
		return;
	record = communicator->record;
	RELAXED_STORE(record->finalize_ticks, nccl_clock_read_ticks());
	RELAXED_STORE(record->flags, RELAXED_LOAD(record->flags) | NCCL_COMMUNICATOR_FINALIZED);
	helper_wake();
}
