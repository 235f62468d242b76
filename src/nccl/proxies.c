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
	TOLD_GPU = 1 << 0,
	TOLD_PEER = 1 << 1,
	TOLD_WAIT = 1 << 2,
	TOLD_FLUSH = 1 << 3,
	RECEIVES = 1 << 4
};

#define NET_TYPE(id)    ((id) >> 16 & 0xffff)
#define NET_VERSION(id) ((id)&0xffff)
enum { NET_INFINIBAND = 1, NET_SOCKET = 2 };

static uint32_t since(uint64_t start, uint64_t ticks)
{
	uint64_t units = ticks > start ? (ticks - start) >> 6 : 0;

	return units > UINT32_MAX ? UINT32_MAX : units ? (uint32_t)units : 1;
}

static void count_up(uint16_t *counter)
{
	uint16_t seen = GET(*counter);

	while (seen < UINT16_MAX &&
	       !__atomic_compare_exchange_n(counter, &seen, (uint16_t)(seen + 1), false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
}

/* ---- starts ---- */

static uint64_t *step_slot(struct communicator *communicator, uint64_t parent, int step)
{
	uint64_t hash = (parent * 31 + (uint64_t)(uint32_t)step) * 0x9e3779b97f4a7c15ull;

	return &communicator->steps[hash >> 56];
}

/* The step, if it was started and not stopped. */
static void *same_step(const uint64_t *slot, uint64_t parent, int step)
{
	uint64_t id = GET(*slot);
	struct nccl_event *record = recorder_parent_event(id);

	if (!record || record->kind != NCCL_KIND_PROXY_STEP || record->parent != parent ||
	    record->c != step || GET(record->flags) & NCCL_EVENT_STOPPED)
		return NULL;
	return (void *)(uintptr_t)id;
}

/* The operation that a step or a request belongs to. */
static struct nccl_operation *operation_above(uint64_t parent)
{
	for (int level = 0; level < 3 && parent; level++) {
		struct nccl_operation *operation = recorder_operation(parent);
		struct nccl_event *event;

		if (operation)
			return operation;
		event = recorder_parent_event(parent);
		parent = event ? event->parent : 0;
	}
	return NULL;
}

static void touch_above(uint64_t parent, uint64_t ticks)
{
	struct nccl_operation *operation = operation_above(parent);

	if (operation && !(GET(operation->flags) & NCCL_OPERATION_SEALED))
		SET(operation->last, ticks);
}

static void *start_step(struct communicator *communicator, const struct event *event,
			uint64_t ticks)
{
	uint64_t parent = (uint64_t)(uintptr_t)event->parent, id;
	uint64_t *slot = step_slot(communicator, parent, event->step);
	void *same = parent ? same_step(slot, parent, event->step) : NULL;
	struct nccl_event *record;

	if (same) {
		store_count(NCCL_LOSS_RESTARTED);
		return same;
	}
	record = recorder_event(communicator, event, ticks, &id);
	if (!record)
		return NULL;
	record->c = event->step;
	touch_above(record->parent, ticks);
	SET(*slot, id);
	return recorder_publish(record, id);
}

static void describe_request(struct nccl_event *record, const struct event *event)
{
	const struct nccl_net_infiniband *infiniband = event->net_data;
	const struct nccl_net_socket *socket = event->net_data;

	if (!event->net_data || NET_VERSION(event->net_id) != 1)
		return;
	if (NET_TYPE(event->net_id) == NET_INFINIBAND && infiniband->type == 1) {
		record->a = NET_INFINIBAND;
		record->b = (uint8_t)infiniband->device;
		record->c = infiniband->opcode;
		record->net.work_id = infiniband->work_id;
		record->net.queue_pair = (uint32_t)infiniband->queue_pair;
		record->net.bytes =
			infiniband->length < UINT32_MAX ? (uint32_t)infiniband->length : UINT32_MAX;
	} else if (NET_TYPE(event->net_id) == NET_SOCKET && socket->type == 1) {
		record->a = NET_SOCKET;
		record->c = socket->operation;
		record->net.work_id = (uint64_t)socket->descriptor;
		record->net.bytes =
			socket->length < UINT32_MAX ? (uint32_t)socket->length : UINT32_MAX;
	}
}

static void start_op(struct nccl_event *record, const struct event *event, uint64_t ticks)
{
	struct nccl_operation *operation = recorder_operation(record->parent);

	record->a = event->channel;
	record->c = event->root;
	record->proxy_op.steps = event->steps;
	record->proxy_op.chunk_size = event->chunk_size;
	record->proxy_op.pid = event->pid;
	if (event->is_send)
		record->flags |= NCCL_EVENT_SEND;
	if (operation && recorder_touch(operation, ticks))
		count_up(&operation->proxies_started);
}

void *proxies_start(struct communicator *communicator, const struct event *event, uint64_t ticks)
{
	struct nccl_event *record;
	uint64_t id;

	if (event->kind == NCCL_KIND_PROXY_STEP)
		return start_step(communicator, event, ticks);
	record = recorder_event(communicator, event, ticks, &id);
	if (!record)
		return NULL;
	if (event->kind == NCCL_KIND_PROXY_OP)
		start_op(record, event, ticks);
	else if (event->kind == NCCL_KIND_NET_PLUGIN)
		describe_request(record, event);
	return recorder_publish(record, id);
}

/* ---- stops ---- */

void proxies_stop(struct nccl_event *record, uint64_t ticks)
{
	struct nccl_operation *operation;

	if (record->kind == NCCL_KIND_PROXY_STEP) {
		touch_above(record->parent, ticks);
		return;
	}
	operation = recorder_operation(record->parent);
	if (!operation || !recorder_touch(operation, ticks))
		return;
	count_up(&operation->proxies_stopped);
	if (GET(record->flags) & NCCL_EVENT_NETWORK) {
		if (GET(operation->network_stop) < ticks)
			SET(operation->network_stop, ticks);
		count_up(&operation->networks_stopped);
	}
}

/* ---- states ---- */

static void note_network(struct nccl_event *record, uint64_t ticks)
{
	struct nccl_operation *operation;
	uint64_t first;

	if (GET(record->flags) & NCCL_EVENT_NETWORK)
		return;
	SET(record->flags, (uint8_t)(GET(record->flags) | NCCL_EVENT_NETWORK));
	operation = recorder_operation(record->parent);
	if (!operation || !recorder_touch(operation, ticks))
		return;
	first = GET(operation->network_start);
	if (!first || record->start < first)
		SET(operation->network_start, record->start);
	count_up(&operation->networks_started);
	recorder_flag(operation, NCCL_OPERATION_NETWORK);
	recorder_run(operation, communicators_get(operation->communicator));
}

static void op_state(struct nccl_event *record, int state, const struct event_state *arguments,
		     uint64_t ticks)
{
	/* bits 0-7 as they are, 19 is bit 8 */
	unsigned bit = state == NCCL_STATE_OP_IN_PROGRESS ? 8 : (unsigned)state;
	uint64_t kib = arguments->bytes >> 10;

	SET(record->proxy_op.states, (uint16_t)(GET(record->proxy_op.states) | 1u << bit));
	if (arguments->known && state <= NCCL_STATE_OP_LAST)
		SET(record->proxy_op.kib, kib > UINT16_MAX ? UINT16_MAX : (uint16_t)kib);
	note_network(record, ticks);
}

static void add_bytes(struct nccl_event *record, uint64_t bytes)
{
	struct nccl_operation *operation = operation_above(record->parent);
	uint64_t sum = GET(record->proxy_step.bytes) + bytes, kib;

	SET(record->proxy_step.bytes, sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum);
	if (!operation || GET(operation->flags) & NCCL_OPERATION_SEALED)
		return;
	kib = GET(operation->network_bytes) + (bytes + 1023) / 1024;
	SET(operation->network_bytes, kib > UINT32_MAX ? UINT32_MAX : (uint32_t)kib);
}

static void step_state(struct nccl_event *record, int state, const struct event_state *arguments,
		       uint64_t ticks)
{
	uint8_t told = 0, before = GET(record->a);
	uint32_t *time = &record->proxy_step.wait;

	switch (state) {
	case NCCL_STATE_SEND_GPU_WAIT:
	case NCCL_STATE_RECEIVE_GPU_WAIT:
		told = TOLD_GPU;
		time = &record->proxy_step.gpu;
		break;
	case NCCL_STATE_SEND_PEER_WAIT:
	case NCCL_STATE_RECEIVE_FLUSH_WAIT:
		told = state == NCCL_STATE_SEND_PEER_WAIT ? TOLD_PEER : TOLD_FLUSH;
		time = &record->proxy_step.peer_or_flush;
		break;
	default:
		told = TOLD_WAIT;
		break;
	}
	if (!(before & told)) /* polls tell it again: the first time counts */
		SET(*time, since(record->start, ticks));
	if (state >= NCCL_STATE_RECEIVE_WAIT && state <= NCCL_STATE_RECEIVE_GPU_WAIT)
		told |= RECEIVES;
	SET(record->a, (uint8_t)(before | told));
	/* No arguments in versions 1 to 3. */
	if (arguments->known && arguments->bytes && !(before & told) &&
	    (state == NCCL_STATE_SEND_WAIT || state == NCCL_STATE_RECEIVE_FLUSH_WAIT))
		add_bytes(record, arguments->bytes);
	touch_above(record->parent, ticks);
}

void proxies_state(struct nccl_event *record, int state, const struct event_state *arguments,
		   uint64_t ticks)
{
	bool is_step =
		(state >= NCCL_STATE_SEND_GPU_WAIT && state <= NCCL_STATE_RECEIVE_GPU_WAIT) ||
		state == NCCL_STATE_SEND_PEER_WAIT;
	bool is_control =
		state >= NCCL_STATE_CONTROL_IDLE && state <= NCCL_STATE_CONTROL_APPEND_END;

	if (record->kind == NCCL_KIND_PROXY_OP &&
	    (state <= NCCL_STATE_OP_LAST || state == NCCL_STATE_OP_IN_PROGRESS)) {
		op_state(record, state, arguments, ticks);
	} else if (record->kind == NCCL_KIND_PROXY_STEP && is_step) {
		step_state(record, state, arguments, ticks);
	} else if (record->kind == NCCL_KIND_PROXY_CONTROL && is_control) {
		SET(record->a, (uint8_t)state);
		if (arguments->known && state == NCCL_STATE_CONTROL_APPEND_END)
			SET(record->c, arguments->appended);
	} else if (record->kind != NCCL_KIND_NET_PLUGIN || state != NCCL_STATE_NET_PLUGIN_UPDATE) {
		store_count(NCCL_LOSS_UNKNOWN_STATE);
	}
}
