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

_Atomic uint32_t recorder_on;

__thread struct recorder_self recorder_thread_variables;

struct recorder_self *recorder_self_begin(void)
{
	struct recorder_self *self = &recorder_thread_variables;

	self->thread = (uint32_t)syscall(SYS_gettid);
	return self;
}

struct communicator *recorder_look_up(struct recorder_self *self, void *context)
{
	struct communicator *communicator = communicators_find(context);

	if (communicator) {
		self->context = context;
		self->communicator = communicator;
	}
	return communicator;
}

/* ---- ids in records ---- */

struct nccl_operation *recorder_operation(uint64_t id)
{
	unsigned kind;
	void *record;

	return id && store_find((void *)(uintptr_t)id, &kind, &record) == STORE_FOUND &&
			       kind == NCCL_CHUNK_OPERATIONS
		       ? record
		       : NULL;
}

struct nccl_event *recorder_parent_event(uint64_t id)
{
	unsigned kind;
	void *record;

	return id && store_find((void *)(uintptr_t)id, &kind, &record) == STORE_FOUND &&
			       kind == NCCL_CHUNK_EVENTS
		       ? record
		       : NULL;
}

/* Events of the API stand at the top; what has no parent there is nothing special. */
static bool wants_parent(unsigned kind)
{
	return kind == NCCL_KIND_PROXY_OP || kind == NCCL_KIND_PROXY_STEP ||
	       kind == NCCL_KIND_KERNEL_CHANNEL || kind == NCCL_KIND_NET_PLUGIN ||
	       kind == NCCL_KIND_KERNEL_PHASE || kind == NCCL_KIND_CE_SYNC ||
	       kind == NCCL_KIND_CE_BATCH;
}

void recorder_orphan(enum store_found found, uint8_t *flags)
{
	if (found == STORE_FOREIGN)
		*flags |= NCCL_EVENT_FOREIGN_PARENT;
	store_count(found == STORE_FOREIGN ? NCCL_LOSS_FOREIGN_PARENT : NCCL_LOSS_NO_PARENT);
}

static uint64_t resolve(void *parent, unsigned kind, uint8_t *flags)
{
	unsigned parent_kind;
	void *record;

	switch (store_find(parent, &parent_kind, &record)) {
	case STORE_FOUND:
		return parent_kind == NCCL_CHUNK_OPERATIONS || parent_kind == NCCL_CHUNK_EVENTS
			       ? (uint64_t)(uintptr_t)parent
			       : 0;
	case STORE_FOREIGN:
		recorder_orphan(STORE_FOREIGN, flags);
		return 0;
	default:
		if (wants_parent(kind))
			recorder_orphan(STORE_NULL, flags);
		return 0;
	}
}

uint64_t recorder_resolve(void *parent)
{
	uint8_t flags = 0;

	return resolve(parent, NCCL_KIND_GROUP, &flags);
}

/* ---- events ---- */

void recorder_drop(struct communicator *communicator, struct nccl_operation *operation)
{
	store_count(NCCL_LOSS_EVENTS);
	ADD(communicator->record->dropped_events, 1);
	if (operation)
		recorder_flag(operation, NCCL_OPERATION_LOST_CHILD);
}

struct nccl_event *recorder_event(struct communicator *communicator, const struct event *event,
				  uint64_t ticks, uint64_t *ret_id)
{
	struct nccl_communicator *of = communicator->record;
	struct nccl_event *record;
	struct store_place place;
	uint8_t flags = 0;
	uint64_t parent = resolve(event->parent, event->kind, &flags);

	place = store_take(&communicator->events, NCCL_CHUNK_EVENTS, (uint32_t)of->creation);
	*ret_id = place.id;
	if (!place.id) {
		recorder_drop(communicator, recorder_operation(parent));
		return NULL;
	}
	record = place.record;
	record->parent = parent;
	record->start = ticks;
	record->thread = recorder_thread();
	record->communicator = (uint32_t)of->creation;
	record->kind = event->kind;
	record->flags = flags;
	return record;
}

/* ---- CUDA graphs ---- */

#define TIMED (NCCL_KIND_MASK(NCCL_KIND_KERNEL_CHANNEL) | NCCL_KIND_MASK(NCCL_KIND_KERNEL_PHASE))

static _Atomic uint32_t given_up;

uint32_t recorder_given_up(void)
{
	return atomic_load_explicit(&given_up, memory_order_relaxed);
}

/* For good, and for all communicators: a captured launch without kernel channels moves the device's
 * count of work, and not the host's, at each replay, so that NCCL would read times of other work
 * from then on (NCCL 2.28 to 2.31: incWorkCounter in proxy.cc, profiler() in device/common.h).
 * NCCL has read the mask for this call already: it is timed, the next ones are not. */
static void give_up_times(struct communicator *communicator)
{
	uint32_t mask = GET(store.header->mask) & ~TIMED;

	if (!communicator->mask || !(GET(communicator->record->mask) & TIMED))
		return;
	__atomic_fetch_and(communicator->mask, ~(int)TIMED, __ATOMIC_RELAXED);
	SET(communicator->record->mask, GET(communicator->record->mask) & ~TIMED);
	SET(store.header->mask, mask);
	if (!atomic_exchange_explicit(&given_up, TIMED, memory_order_relaxed))
		helper_tell("no kernel is timed from the first call on that was captured into a "
			    "CUDA graph (NCCL_GRAPHS=fast)");
}

static void *start_api_event(struct communicator *communicator, const struct event *event,
			     uint64_t ticks)
{
	uint64_t id;
	struct nccl_event *record = recorder_event(communicator, event, ticks, &id);

	if (!record)
		return NULL;
	switch (event->kind) {
	case NCCL_KIND_GROUP_API:
		record->c = event->depth;
		break;
	case NCCL_KIND_COLLECTIVE_API:
	case NCCL_KIND_P2P_API:
		record->a = names_intern(event->function);
		record->b = names_intern(event->data_type);
		record->c = event->root;
		record->api.count = event->count;
		record->api.stream = (uint64_t)(uintptr_t)event->stream;
		break;
	case NCCL_KIND_KERNEL_LAUNCH:
		record->launch.stream = (uint64_t)(uintptr_t)event->stream;
		SET(communicator->launch, ticks);
		SET(communicator->launch_thread, record->thread);
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
	    event->captured) {
		record->flags |= NCCL_EVENT_CAPTURED;
		if (options.graphs_fast)
			give_up_times(communicator);
	}
	return recorder_publish(record, id);
}

/* ---- operations ---- */

bool recorder_late(struct nccl_operation *operation)
{
	uint8_t late = GET(operation->late);

	if (late < UINT8_MAX)
		SET(operation->late, (uint8_t)(late + 1));
	recorder_flag(operation, NCCL_OPERATION_LATE);
	store_count(NCCL_LOSS_LATE);
	return false;
}

/* States only go up. */
static void raise_state(struct nccl_operation *operation, uint8_t to)
{
	uint8_t seen = GET(operation->state);

	while (seen < to && !__atomic_compare_exchange_n(&operation->state, &seen, to, false,
							 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* A channel may come by a context that is not the operation's. */
void recorder_run(struct nccl_operation *operation, struct communicator *communicator)
{
	if (communicator && (uint32_t)communicator->record->creation != operation->communicator)
		communicator = communicators_get(operation->communicator);
	raise_state(operation, NCCL_OPERATION_RUNNING);
	if (communicator && GET(communicator->ran) <= operation->ordinal)
		SET(communicator->ran, operation->ordinal + 1);
}

/* The API call that it came of. A captured one comes again with each replay of its graph. */
static void note_call(struct nccl_operation *operation, struct nccl_event *call)
{
	uint8_t flags = GET(call->flags);

	if (flags & NCCL_EVENT_CAPTURED) {
		operation->flags |= NCCL_OPERATION_GRAPH;
		if (flags & NCCL_EVENT_USED)
			operation->flags |= NCCL_OPERATION_REPLAYED;
	}
	if (!(flags & NCCL_EVENT_USED))
		SET(call->flags, (uint8_t)(flags | NCCL_EVENT_USED));
}

void operations_parent(struct nccl_operation *operation, void *parent)
{
	unsigned kind;
	void *record;
	enum store_found found = store_find(parent, &kind, &record);

	if (found == STORE_FOREIGN)
		store_count(NCCL_LOSS_FOREIGN_PARENT);
	if (found != STORE_FOUND || (kind != NCCL_CHUNK_EVENTS && kind != NCCL_CHUNK_OPERATIONS))
		return;
	operation->parent = (uint64_t)(uintptr_t)parent;
	if (kind == NCCL_CHUNK_EVENTS)
		note_call(operation, record);
}

void operations_number_p2p(struct nccl_operation *operation, struct communicator *communicator,
			   const char *function, int peer)
{
	operation->root = -1;
	operation->peer = peer;
	if (!communicators_p2p_sequence(communicator, peer, function && function[0] == 'S',
					&operation->sequence))
		operation->flags |= NCCL_OPERATION_NO_SEQUENCE;
}

void *operations_drop(struct communicator *communicator)
{
	store_count(NCCL_LOSS_OPERATIONS);
	ADD(communicator->record->dropped_operations, 1);
	ADD(communicator->record->operations, 1);
	return NULL;
}

static void stop_operation(struct nccl_operation *operation, uint64_t ticks)
{
	if (GET(operation->stop)) {
		store_count(NCCL_LOSS_DOUBLE_STOP);
		return;
	}
	SET(operation->stop, ticks);
	if (GET(operation->last) < ticks)
		SET(operation->last, ticks);
	/* That it is ENQUEUED by now follows from the stop: others may be raising its state. */
}

/* ---- dispatch ---- */

void recorder_unknown_type(void)
{
	store_count(NCCL_LOSS_UNKNOWN_TYPE);
}

void *recorder_start(void *context, const struct event *event)
{
	uint64_t ticks = clock_ticks();
	struct recorder_self *self = recorder_self();
	struct communicator *communicator = recorder_communicator(self, context);

	if (!communicator)
		return NULL;
	switch (event->kind) {
	case NCCL_KIND_COLLECTIVE:
	case NCCL_KIND_P2P:
	case NCCL_KIND_CE_COLLECTIVE:
		return operations_record(self, communicator, event, ticks, true);
	case NCCL_KIND_KERNEL_CHANNEL:
	case NCCL_KIND_KERNEL_PHASE:
		return channels_start(self, communicator, event, ticks);
	case NCCL_KIND_PROXY_OP:
	case NCCL_KIND_PROXY_STEP:
	case NCCL_KIND_PROXY_CONTROL:
	case NCCL_KIND_NET_PLUGIN:
		return proxies_start(communicator, event, ticks);
	default:
		return start_api_event(communicator, event, ticks);
	}
}

static void *count_handle(enum store_found found)
{
	switch (found) {
	case STORE_NULL:
		store_count(NCCL_LOSS_NULL_HANDLE);
		break;
	case STORE_STALE:
		store_count(NCCL_LOSS_STALE_HANDLE);
		break;
	default: /* of another process, or a context */
		store_count(NCCL_LOSS_FOREIGN_HANDLE);
		break;
	}
	return NULL;
}

/* What a handle is, or NULL, counted. */
static inline void *find_handle(void *handle, unsigned *ret_kind)
{
	void *record;
	enum store_found found = store_find(handle, ret_kind, &record);

	if (__builtin_expect(found != STORE_FOUND, 0))
		return count_handle(found);
	if (__builtin_expect(*ret_kind != NCCL_CHUNK_OPERATIONS && *ret_kind != NCCL_CHUNK_EVENTS,
			     0))
		return count_handle(STORE_FOREIGN);
	return record;
}

static void stop_event(struct nccl_event *event, uint64_t ticks)
{
	uint8_t flags = GET(event->flags);

	if (flags & NCCL_EVENT_STOPPED) {
		store_count(NCCL_LOSS_DOUBLE_STOP);
		return;
	}
	SET(event->stop, ticks);
	if (event->kind == NCCL_KIND_KERNEL_CHANNEL)
		channels_stop(event, ticks);
	else if (event->kind == NCCL_KIND_PROXY_OP || event->kind == NCCL_KIND_PROXY_STEP)
		proxies_stop(event, ticks);
	__atomic_store_n(&event->flags, (uint8_t)(GET(event->flags) | NCCL_EVENT_STOPPED),
			 __ATOMIC_RELEASE);
}

void recorder_stop(void *handle)
{
	uint64_t ticks = clock_ticks();
	unsigned kind = NCCL_CHUNK_FREE;
	void *record = find_handle(handle, &kind);

	if (!record)
		return;
	if (kind == NCCL_CHUNK_OPERATIONS)
		stop_operation(record, ticks);
	else
		stop_event(record, ticks);
}

/* Ticks since the start in units of 64, at least 1; readers take 0 for "never". */
static uint32_t since(uint64_t start, uint64_t ticks)
{
	uint64_t units = ticks > start ? (ticks - start) >> 6 : 0;

	return units > UINT32_MAX ? UINT32_MAX : units ? (uint32_t)units : 1;
}

static bool ends_on_gpu(const struct nccl_event *event, int state)
{
	return (event->kind == NCCL_KIND_KERNEL_CHANNEL &&
		state == NCCL_STATE_KERNEL_CHANNEL_STOP) ||
	       (event->kind == NCCL_KIND_KERNEL_PHASE && state == NCCL_STATE_KERNEL_PHASE_STOP);
}

void recorder_state(void *handle, int state, const struct event_state *arguments)
{
	unsigned kind = NCCL_CHUNK_FREE;
	struct nccl_event *event = find_handle(handle, &kind);

	if (!event)
		return;
	if (kind == NCCL_CHUNK_OPERATIONS || state < 0 || state > NCCL_STATE_KERNEL_PHASE_STOP)
		store_count(NCCL_LOSS_UNKNOWN_STATE);
	else if (ends_on_gpu(event, state))
		channels_state(event, arguments); /* the one that comes most wants no time */
	else if (event->kind == NCCL_KIND_GROUP_API && state == NCCL_STATE_GROUP_START_API_STOP)
		SET(event->group_api.start_done, since(event->start, clock_ticks()));
	else if (event->kind == NCCL_KIND_GROUP_API && state == NCCL_STATE_GROUP_END_API_START)
		SET(event->group_api.end_start, since(event->start, clock_ticks()));
	else
		proxies_state(event, state, arguments, clock_ticks());
}

void recorder_finalize(void *context)
{
	struct communicator *communicator = communicators_find(context);
	struct nccl_communicator *record;

	if (!communicator)
		return;
	record = communicator->record;
	SET(record->finalize_ticks, clock_ticks());
	SET(record->flags, GET(record->flags) | NCCL_COMMUNICATOR_FINALIZED);
	helper_wake();
}
