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

_Atomic uint32_t recorder_on;

uint32_t recorder_thread(void)
{
	static __thread uint32_t thread;

	if (__builtin_expect(!thread, 0))
		thread = (uint32_t)syscall(SYS_gettid);
	return thread;
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
		*flags |= NCCL_EVENT_FOREIGN_PARENT;
		store_count(NCCL_LOSS_FOREIGN_PARENT);
		return 0;
	default:
		if (wants_parent(kind))
			store_count(NCCL_LOSS_NO_PARENT);
		return 0;
	}
}

/* ---- events ---- */

struct nccl_event *recorder_event(struct communicator *communicator, const struct event *event,
				  uint64_t ticks, uint64_t *ret_id)
{
	struct nccl_communicator *of = communicator->record;
	struct nccl_event *record;
	struct nccl_operation *operation;
	void *memory;
	uint8_t flags = 0;
	uint64_t parent = resolve(event->parent, event->kind, &flags);

	*ret_id = store_take(&communicator->events, NCCL_CHUNK_EVENTS, (uint32_t)of->creation,
			     &memory);
	if (!*ret_id) {
		store_count(NCCL_LOSS_EVENTS);
		ADD(of->dropped_events, 1);
		operation = recorder_operation(parent);
		if (operation)
			recorder_flag(operation, NCCL_OPERATION_LOST_CHILD);
		return NULL;
	}
	record = memory;
	record->parent = parent;
	record->start = ticks;
	record->thread = recorder_thread();
	record->communicator = (uint32_t)of->creation;
	record->kind = event->kind;
	record->flags = flags;
	return record;
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
	    event->captured)
		record->flags |= NCCL_EVENT_CAPTURED;
	return recorder_publish(record, id);
}

/* ---- operations ---- */

bool recorder_touch(struct nccl_operation *operation, uint64_t ticks)
{
	uint8_t late;

	if (!(GET(operation->flags) & NCCL_OPERATION_SEALED)) {
		SET(operation->last, ticks);
		return true;
	}
	late = GET(operation->late);
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

void recorder_running(struct nccl_operation *operation)
{
	struct communicator *communicator = communicators_get(operation->communicator);

	raise_state(operation, NCCL_OPERATION_RUNNING);
	if (communicator && GET(communicator->ran) <= operation->ordinal)
		SET(communicator->ran, operation->ordinal + 1);
}

/* The API call that it came of. A captured one comes again with each replay of its graph. */
static void note_call(struct nccl_operation *operation)
{
	struct nccl_event *call = recorder_parent_event(operation->parent);
	uint8_t flags = call ? GET(call->flags) : 0;

	if (flags & NCCL_EVENT_CAPTURED) {
		operation->flags |= NCCL_OPERATION_GRAPH;
		if (flags & NCCL_EVENT_USED)
			operation->flags |= NCCL_OPERATION_REPLAYED;
	}
	if (call && !(flags & NCCL_EVENT_USED))
		SET(call->flags, (uint8_t)(flags | NCCL_EVENT_USED));
}

/* "AllGather" and "Broadcast" come with the data type ncclInt8 and count in bytes. */
static bool counts_bytes(const char *function)
{
	return function && (function[0] == 'B' || (function[0] == 'A' && function[1] == 'l' &&
						   function[2] == 'l' && function[3] == 'G'));
}

static void describe(struct nccl_operation *operation, const struct event *event)
{
	const char *const names[NAMES_OF_OPERATION] = {event->function, event->data_type,
						       event->algorithm, event->protocol};
	uint8_t numbers[NAMES_OF_OPERATION];
	unsigned size;

	names_intern_all(names, numbers);
	operation->function = numbers[0];
	operation->data_type = numbers[1];
	operation->algorithm = numbers[2];
	operation->protocol = numbers[3];
	size = names_element_size(operation->data_type);
	if (operation->data_type == 1) /* "Unknown" */
		operation->flags |= NCCL_OPERATION_TYPE_UNKNOWN;
	if (event->kind == NCCL_KIND_COLLECTIVE && counts_bytes(event->function))
		operation->flags |= NCCL_OPERATION_COUNT_IS_BYTES;
	operation->count = event->count;
	if (__builtin_mul_overflow(event->count, size, &operation->bytes))
		operation->bytes = 0;
	operation->traffic_bytes = event->traffic_bytes;
	operation->send_buffer = (uint64_t)(uintptr_t)event->send_buffer;
	operation->receive_buffer = (uint64_t)(uintptr_t)event->receive_buffer;
	operation->user_tag = event->user_tag;
	operation->channels_expected = event->channels;
	operation->warps = event->warps;
}

static void number(struct nccl_operation *operation, struct communicator *communicator,
		   const struct event *event)
{
	operation->ordinal = ADD(communicator->record->operations, 1);
	operation->sequence = event->sequence;
	operation->root = event->root;
	operation->peer = -1;
	if (event->kind != NCCL_KIND_P2P)
		return;
	operation->root = -1;
	operation->peer = event->root;
	if (!communicators_p2p_sequence(communicator, event->root,
					event->function && event->function[0] == 'S',
					&operation->sequence))
		operation->flags |= NCCL_OPERATION_NO_SEQUENCE;
}

static void *start_operation(struct communicator *communicator, const struct event *event,
			     uint64_t ticks)
{
	struct nccl_communicator *of = communicator->record;
	struct nccl_operation *operation;
	uint8_t flags = 0;
	void *memory;
	uint64_t id = store_take(&communicator->operations, NCCL_CHUNK_OPERATIONS,
				 (uint32_t)of->creation, &memory);

	communicators_learn(communicator, event);
	if (!id) {
		store_count(NCCL_LOSS_OPERATIONS);
		ADD(of->dropped_operations, 1);
		ADD(of->operations, 1);
		return NULL;
	}
	operation = memory;
	operation->start = ticks;
	operation->last = ticks;
	operation->communicator = (uint32_t)of->creation;
	operation->thread = recorder_thread();
	operation->kind = event->kind;
	operation->api = event->api;
	operation->state = NCCL_OPERATION_STARTED;
	operation->parent = resolve(event->parent, event->kind, &flags);
	operation->group = event->group ? resolve(event->group, event->kind, &flags) : 0;
	if (GET(communicator->launch_thread) == operation->thread)
		operation->launch = GET(communicator->launch);
	describe(operation, event);
	number(operation, communicator, event);
	if (operation->parent)
		note_call(operation);
	__atomic_store_n(&operation->id, id, __ATOMIC_RELEASE);
	return (void *)(uintptr_t)id;
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
	raise_state(operation, NCCL_OPERATION_ENQUEUED);
}

/* ---- dispatch ---- */

void recorder_unknown_type(void)
{
	store_count(NCCL_LOSS_UNKNOWN_TYPE);
}

static void *start_channel(struct communicator *communicator, const struct event *event,
			   uint64_t ticks)
{
	uint64_t id;
	struct nccl_event *record = recorder_event(communicator, event, ticks, &id);

	if (!record)
		return NULL;
	channels_start(communicator, record, id, event, ticks);
	return recorder_publish(record, id);
}

void *recorder_start(void *context, const struct event *event)
{
	uint64_t ticks = clock_ticks();
	struct communicator *communicator = communicators_find(context);

	if (!communicator)
		return NULL;
	if (__builtin_expect(GET(communicator->record->flags) & NCCL_COMMUNICATOR_FINALIZED, 0))
		store_count(NCCL_LOSS_FINALIZED);
	switch (event->kind) {
	case NCCL_KIND_COLLECTIVE:
	case NCCL_KIND_P2P:
	case NCCL_KIND_CE_COLLECTIVE:
		return start_operation(communicator, event, ticks);
	case NCCL_KIND_KERNEL_CHANNEL:
	case NCCL_KIND_KERNEL_PHASE:
		return start_channel(communicator, event, ticks);
	case NCCL_KIND_PROXY_OP:
	case NCCL_KIND_PROXY_STEP:
	case NCCL_KIND_PROXY_CONTROL:
	case NCCL_KIND_NET_PLUGIN:
		return proxies_start(communicator, event, ticks);
	default:
		return start_api_event(communicator, event, ticks);
	}
}

/* What a handle is, or NULL, counted. */
static void *find_handle(void *handle, unsigned *ret_kind)
{
	void *record;

	switch (store_find(handle, ret_kind, &record)) {
	case STORE_FOUND:
		if (*ret_kind == NCCL_CHUNK_OPERATIONS || *ret_kind == NCCL_CHUNK_EVENTS)
			return record;
		store_count(NCCL_LOSS_FOREIGN_HANDLE); /* a context */
		return NULL;
	case STORE_NULL:
		store_count(NCCL_LOSS_NULL_HANDLE);
		return NULL;
	case STORE_FOREIGN:
		store_count(NCCL_LOSS_FOREIGN_HANDLE);
		return NULL;
	default:
		store_count(NCCL_LOSS_STALE_HANDLE);
		return NULL;
	}
}

void recorder_stop(void *handle)
{
	uint64_t ticks = clock_ticks();
	struct nccl_event *event;
	unsigned kind;
	void *record = find_handle(handle, &kind);

	if (!record)
		return;
	if (kind == NCCL_CHUNK_OPERATIONS) {
		stop_operation(record, ticks);
		return;
	}
	event = record;
	if (GET(event->flags) & NCCL_EVENT_STOPPED) {
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
	unsigned kind;
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
