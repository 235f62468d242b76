/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What NCCL's proxy thread does for an operation: proxy operations (one a channel and peer), their
 * steps, requests of the network plugin, and the thread's own idling.
 *
 * Proxies of transports other than the network are started and never stopped, so only those that
 * have been seen to use the network count for an operation's end: the first state that such a proxy
 * operation records says so.
 *
 * A step that receives is started again by each poll until the network takes it, and only the last
 * start is stopped. It is one step: the same operation and number give the same handle.
 */
#include "nccl/api.h"
#include "nccl/recorder.h"

enum {
	STEP_GPU_WAIT_SEEN = 1 << 0,
	STEP_PEER_WAIT_SEEN = 1 << 1,
	STEP_NETWORK_WAIT_SEEN = 1 << 2,
	STEP_FLUSH_WAIT_SEEN = 1 << 3,
	STEP_RECEIVES = 1 << 4
};

#define NET_ID_TO_TYPE(id)    ((id) >> 16 & 0xffff)
#define NET_ID_TO_VERSION(id) ((id)&0xffff)
enum { NET_INFINIBAND = 1, NET_SOCKET = 2 };

static uint32_t compute_step_time_in_64_tick_units(uint64_t start, uint64_t ticks)
{
	uint64_t units = ticks > start ? (ticks - start) >> 6 : 0;

	return units > UINT32_MAX ? UINT32_MAX : units ? (uint32_t)units : 1;
}

static void increment_atomically_saturating(uint16_t *counter)
{
	uint16_t seen = RELAXED_LOAD(*counter);

	while (seen < UINT16_MAX &&
	       !__atomic_compare_exchange_n(counter, &seen, (uint16_t)(seen + 1), false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

/* ---- starts ---- */

static uint64_t *get_proxy_step_slot_by_hash(struct communicator_recording_state *communicator,
					     uint64_t parent, int step)
{
	uint64_t hash = (parent * 31 + (uint64_t)(uint32_t)step) * 0x9e3779b97f4a7c15ull;

	return &communicator->proxy_step_ids[hash >> 56];
}

/* The step, if it was started and not stopped. */
static void *find_open_step(const uint64_t *slot, uint64_t parent, int step)
{
	uint64_t id = RELAXED_LOAD(*slot);
	struct nccl_event *record = recorder_find_event(id);

	if (!record || record->kind != NCCL_KIND_PROXY_STEP || record->parent != parent ||
	    record->c != step || RELAXED_LOAD(record->flags) & NCCL_EVENT_STOPPED)
		return NULL;
	return (void *)(uintptr_t)id;
}

/* The operation that a step or a request belongs to. */
static struct nccl_operation *find_ancestor_operation(uint64_t parent)
{
	for (int level = 0; level < 3 && parent; level++) {
		struct nccl_operation *operation = recorder_find_operation(parent);
		struct nccl_event *event;

		if (operation)
			return operation;
		event = recorder_find_event(parent);
		parent = event ? event->parent : 0;
	}
	return NULL;
}

static void set_ancestor_operation_last_ticks(uint64_t parent, uint64_t ticks)
{
	struct nccl_operation *operation = find_ancestor_operation(parent);

	if (operation && !(RELAXED_LOAD(operation->flags) & NCCL_OPERATION_SEALED))
		RELAXED_STORE(operation->last, ticks);
}

static void *record_proxy_step_start(struct communicator_recording_state *communicator,
				     const struct plugin_event_start_arguments *event,
				     uint64_t ticks)
{
	uint64_t parent = (uint64_t)(uintptr_t)event->parent, id;
	uint64_t *slot = get_proxy_step_slot_by_hash(communicator, parent, event->step);
	void *same = parent ? find_open_step(slot, parent, event->step) : NULL;
	struct nccl_event *record;

	if (same) {
		store_count_loss(NCCL_LOSS_RESTARTED);
		return same;
	}
	record = recorder_add_event(communicator, event, ticks, &id);
	if (!record)
		return NULL;
	record->c = event->step;
	set_ancestor_operation_last_ticks(record->parent, ticks);
	RELAXED_STORE(*slot, id);
	return recorder_publish_event(record, id);
}

static void fill_network_request_fields(struct nccl_event *record,
					const struct plugin_event_start_arguments *event)
{
	const struct nccl_infiniband_net_event_data *infiniband = event->net_plugin_data;
	const struct nccl_socket_net_event_data *socket = event->net_plugin_data;

	if (!event->net_plugin_data || NET_ID_TO_VERSION(event->net_plugin_type_and_version) != 1)
		return;
	if (NET_ID_TO_TYPE(event->net_plugin_type_and_version) == NET_INFINIBAND &&
	    infiniband->type == 1) {
		record->a = NET_INFINIBAND;
		record->b = (uint8_t)infiniband->device;
		record->c = infiniband->opcode;
		record->net.work_id = infiniband->work_id;
		record->net.queue_pair = (uint32_t)infiniband->queue_pair;
		record->net.bytes =
			infiniband->length < UINT32_MAX ? (uint32_t)infiniband->length : UINT32_MAX;
	} else if (NET_ID_TO_TYPE(event->net_plugin_type_and_version) == NET_SOCKET &&
		   socket->type == 1) {
		record->a = NET_SOCKET;
		record->c = socket->operation;
		record->net.work_id = (uint64_t)socket->descriptor;
		record->net.bytes =
			socket->length < UINT32_MAX ? (uint32_t)socket->length : UINT32_MAX;
	}
}

static void fill_proxy_operation_start(struct nccl_event *record,
				       const struct plugin_event_start_arguments *event,
				       uint64_t ticks)
{
	struct nccl_operation *operation = recorder_find_operation(record->parent);

	record->a = event->channel;
	record->c = event->root;
	record->proxy_op.steps = event->steps;
	record->proxy_op.chunk_size = event->chunk_bytes;
	record->proxy_op.pid = event->pid;
	if (event->is_send)
		record->flags |= NCCL_EVENT_SEND;
	if (operation && recorder_update_operation_last_ticks(operation, ticks))
		increment_atomically_saturating(&operation->proxies_started);
}

void *proxies_record_event_start(struct communicator_recording_state *communicator,
				 const struct plugin_event_start_arguments *event, uint64_t ticks)
{
	struct nccl_event *record;
	uint64_t id;

	if (event->kind == NCCL_KIND_PROXY_STEP)
		return record_proxy_step_start(communicator, event, ticks);
	record = recorder_add_event(communicator, event, ticks, &id);
	if (!record)
		return NULL;
	if (event->kind == NCCL_KIND_PROXY_OP)
		fill_proxy_operation_start(record, event, ticks);
	else if (event->kind == NCCL_KIND_NET_PLUGIN)
		fill_network_request_fields(record, event);
	return recorder_publish_event(record, id);
}

/* ---- stops ---- */

void proxies_add_stop_to_operation(struct nccl_event *record, uint64_t ticks)
{
	struct nccl_operation *operation;

	if (record->kind == NCCL_KIND_PROXY_STEP) {
		set_ancestor_operation_last_ticks(record->parent, ticks);
		return;
	}
	operation = recorder_find_operation(record->parent);
	if (!operation || !recorder_update_operation_last_ticks(operation, ticks))
		return;
	increment_atomically_saturating(&operation->proxies_stopped);
	if (RELAXED_LOAD(record->flags) & NCCL_EVENT_NETWORK) {
		if (RELAXED_LOAD(operation->network_stop) < ticks)
			RELAXED_STORE(operation->network_stop, ticks);
		increment_atomically_saturating(&operation->networks_stopped);
	}
}

/* ---- states ---- */

static void mark_network_use_if_first(struct nccl_event *record, uint64_t ticks)
{
	struct nccl_operation *operation;
	uint64_t first;

	if (RELAXED_LOAD(record->flags) & NCCL_EVENT_NETWORK)
		return;
	RELAXED_STORE(record->flags, (uint8_t)(RELAXED_LOAD(record->flags) | NCCL_EVENT_NETWORK));
	operation = recorder_find_operation(record->parent);
	if (!operation || !recorder_update_operation_last_ticks(operation, ticks))
		return;
	first = RELAXED_LOAD(operation->network_start);
	if (!first || record->start < first)
		RELAXED_STORE(operation->network_start, record->start);
	increment_atomically_saturating(&operation->networks_started);
	recorder_set_operation_flag(operation, NCCL_OPERATION_NETWORK);
	recorder_mark_operation_running(
		operation, communicators_get_by_creation_number(operation->communicator));
}

static void add_proxy_operation_state(struct nccl_event *record, int state,
				      const struct event_state_arguments *arguments, uint64_t ticks)
{
	/* bits 0-7 as they are, 19 is bit 8 */
	unsigned bit = state == NCCL_STATE_OP_IN_PROGRESS ? 8 : (unsigned)state;
	uint64_t kib = arguments->bytes >> 10;

	RELAXED_STORE(record->proxy_op.states,
		      (uint16_t)(RELAXED_LOAD(record->proxy_op.states) | 1u << bit));
	if (arguments->known && state <= NCCL_STATE_OP_LAST)
		RELAXED_STORE(record->proxy_op.kib, kib > UINT16_MAX ? UINT16_MAX : (uint16_t)kib);
	mark_network_use_if_first(record, ticks);
}

static void add_step_bytes(struct nccl_event *record, uint64_t bytes)
{
	struct nccl_operation *operation = find_ancestor_operation(record->parent);
	uint64_t sum = RELAXED_LOAD(record->proxy_step.bytes) + bytes, kib;

	RELAXED_STORE(record->proxy_step.bytes, sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum);
	if (!operation || RELAXED_LOAD(operation->flags) & NCCL_OPERATION_SEALED)
		return;
	kib = RELAXED_LOAD(operation->network_bytes) + (bytes + 1023) / 1024;
	RELAXED_STORE(operation->network_bytes, kib > UINT32_MAX ? UINT32_MAX : (uint32_t)kib);
}

static void record_time_of_proxy_step_state(struct nccl_event *record, int state,
					    const struct event_state_arguments *arguments,
					    uint64_t ticks)
{
	uint8_t told = 0, before = RELAXED_LOAD(record->a);
	uint32_t *time = &record->proxy_step.wait;

	switch (state) {
	case NCCL_STATE_SEND_GPU_WAIT:
	case NCCL_STATE_RECEIVE_GPU_WAIT:
		told = STEP_GPU_WAIT_SEEN;
		time = &record->proxy_step.gpu;
		break;
	case NCCL_STATE_SEND_PEER_WAIT:
	case NCCL_STATE_RECEIVE_FLUSH_WAIT:
		told = state == NCCL_STATE_SEND_PEER_WAIT ? STEP_PEER_WAIT_SEEN
							  : STEP_FLUSH_WAIT_SEEN;
		time = &record->proxy_step.peer_or_flush;
		break;
	default:
		told = STEP_NETWORK_WAIT_SEEN;
		break;
	}
	if (!(before & told)) /* polls tell it again: the first time counts */
		RELAXED_STORE(*time, compute_step_time_in_64_tick_units(record->start, ticks));
	if (state >= NCCL_STATE_RECEIVE_WAIT && state <= NCCL_STATE_RECEIVE_GPU_WAIT)
		told |= STEP_RECEIVES;
	RELAXED_STORE(record->a, (uint8_t)(before | told));
	/* No arguments in versions 1 to 3. */
	if (arguments->known && arguments->bytes && !(before & told) &&
	    (state == NCCL_STATE_SEND_WAIT || state == NCCL_STATE_RECEIVE_FLUSH_WAIT))
		add_step_bytes(record, arguments->bytes);
	set_ancestor_operation_last_ticks(record->parent, ticks);
}

void proxies_record_event_state(struct nccl_event *record, int state,
				const struct event_state_arguments *arguments, uint64_t ticks)
{
	bool is_step =
		(state >= NCCL_STATE_SEND_GPU_WAIT && state <= NCCL_STATE_RECEIVE_GPU_WAIT) ||
		state == NCCL_STATE_SEND_PEER_WAIT;
	bool is_control =
		state >= NCCL_STATE_CONTROL_IDLE && state <= NCCL_STATE_CONTROL_APPEND_END;

	if (record->kind == NCCL_KIND_PROXY_OP &&
	    (state <= NCCL_STATE_OP_LAST || state == NCCL_STATE_OP_IN_PROGRESS)) {
		add_proxy_operation_state(record, state, arguments, ticks);
	} else if (record->kind == NCCL_KIND_PROXY_STEP && is_step) {
		record_time_of_proxy_step_state(record, state, arguments, ticks);
	} else if (record->kind == NCCL_KIND_PROXY_CONTROL && is_control) {
		RELAXED_STORE(record->a, (uint8_t)state);
		if (arguments->known && state == NCCL_STATE_CONTROL_APPEND_END)
			RELAXED_STORE(record->c, arguments->appended);
	} else if (record->kind != NCCL_KIND_NET_PLUGIN || state != NCCL_STATE_NET_PLUGIN_UPDATE) {
		store_count_loss(NCCL_LOSS_UNKNOWN_STATE);
	}
}
