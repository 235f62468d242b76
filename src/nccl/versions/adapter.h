/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Members that have the same names in the descriptors of several versions, copied. Macros, because
 * the structures are different ones; each is used in the adapters (api_v*.c) alone.
 */
#ifndef KYMO_NCCL_VERSIONS_ADAPTER_H
#define KYMO_NCCL_VERSIONS_ADAPTER_H

#include "nccl/options.h"
#include "nccl/plugin.h"
#include "nccl/versions/objects.h"

/* NCCL does not clear the handle, and stops what is in it: it is written before anything else. */
#define ADAPTER_DECLARE_EVENT_OR_RETURN(version)                                                   \
	_Static_assert((version) <= NCCL_API_LATEST_VERSION,                                       \
		       "options.h and options.c do not know it");                                  \
	struct plugin_event_start_arguments event;                                                 \
	*handle = NULL;                                                                            \
	if (!recorder_is_on())                                                                     \
		return NCCL_SUCCESS;                                                               \
	event.api = (version);                                                                     \
	event.parent = from->parent;                                                               \
	event.rank = from->rank;                                                                   \
	event.communicator_name = NULL;                                                            \
	event.communicator_hash = 0;                                                               \
	event.traffic_bytes = 0;                                                                   \
	event.user_tag = 0;                                                                        \
	event.group = NULL

/* The two that come most have ways of their own, unless calls are traced. */
#define ADAPTER_RETURN_VIA_FAST_PATH_IF_POSSIBLE                                                   \
	do {                                                                                       \
		if (!recorder_is_on_without_call_trace())                                          \
			break;                                                                     \
		if (from->type == NCCL_KIND_MASK(NCCL_KIND_COLLECTIVE))                            \
			return start_collective(context, handle, from);                            \
		if (from->type == NCCL_KIND_MASK(NCCL_KIND_KERNEL_CHANNEL))                        \
			return plugin_start_kernel_channel(context, handle, from->parent,          \
							   from->kernel_channel.channel,           \
							   from->kernel_channel.gpu_time);         \
	} while (0)

#define ADAPTER_FILL_COLLECTIVE_EVENT(member)                                                      \
	do {                                                                                       \
		event.kind = NCCL_KIND_COLLECTIVE;                                                 \
		event.sequence = from->member.sequence;                                            \
		event.function = from->member.function;                                            \
		event.send_buffer = from->member.send_buffer;                                      \
		event.receive_buffer = from->member.receive_buffer;                                \
		event.count = from->member.count;                                                  \
		event.root = from->member.root;                                                    \
		event.data_type = from->member.data_type;                                          \
		event.channel_count = from->member.channels;                                       \
		event.warp_count = from->member.warps;                                             \
		event.algorithm = from->member.algorithm;                                          \
		event.protocol = from->member.protocol;                                            \
	} while (0)

#define ADAPTER_FILL_P2P_EVENT                                                                     \
	do {                                                                                       \
		event.kind = NCCL_KIND_P2P;                                                        \
		event.sequence = 0;                                                                \
		event.function = from->p2p.function;                                               \
		event.send_buffer = from->p2p.buffer;                                              \
		event.receive_buffer = NULL;                                                       \
		event.count = from->p2p.count;                                                     \
		event.root = from->p2p.peer;                                                       \
		event.data_type = from->p2p.data_type;                                             \
		event.channel_count = 0;                                                           \
		event.warp_count = 0;                                                              \
		event.algorithm = NULL;                                                            \
		event.protocol = NULL;                                                             \
	} while (0)

#define ADAPTER_FILL_COMMUNICATOR_NAME(member)                                                     \
	do {                                                                                       \
		event.communicator_name = from->member.name;                                       \
		event.communicator_hash = from->member.hash;                                       \
	} while (0)

#define ADAPTER_FILL_PROXY_OP_EVENT                                                                \
	do {                                                                                       \
		event.kind = NCCL_KIND_PROXY_OP;                                                   \
		event.pid = from->proxy_op.pid;                                                    \
		event.channel = from->proxy_op.channel;                                            \
		event.root = from->proxy_op.peer;                                                  \
		event.steps = from->proxy_op.steps;                                                \
		event.chunk_bytes = from->proxy_op.chunk_size;                                     \
		event.is_send = from->proxy_op.is_send;                                            \
	} while (0)

#define ADAPTER_FILL_PROXY_STEP_EVENT                                                              \
	do {                                                                                       \
		event.kind = NCCL_KIND_PROXY_STEP;                                                 \
		event.step = from->proxy_step.step;                                                \
	} while (0)

#define ADAPTER_FILL_KERNEL_CHANNEL_EVENT                                                          \
	do {                                                                                       \
		event.kind = NCCL_KIND_KERNEL_CHANNEL;                                             \
		event.channel = from->kernel_channel.channel;                                      \
		event.gpu_timestamp = from->kernel_channel.gpu_time;                               \
	} while (0)

#define ADAPTER_FILL_NET_PLUGIN_EVENT                                                              \
	do {                                                                                       \
		event.kind = NCCL_KIND_NET_PLUGIN;                                                 \
		event.net_plugin_type_and_version = from->net_plugin.id;                           \
		event.net_plugin_data = from->net_plugin.data;                                     \
	} while (0)

#define ADAPTER_FILL_GROUP_API_EVENT                                                               \
	do {                                                                                       \
		event.kind = NCCL_KIND_GROUP_API;                                                  \
		event.is_captured = from->group_api.captured;                                      \
		event.depth = from->group_api.depth;                                               \
	} while (0)

#define ADAPTER_FILL_API_CALL_EVENT(kind_, member, root_)                                          \
	do {                                                                                       \
		event.kind = (kind_);                                                              \
		event.function = from->member.function;                                            \
		event.count = from->member.count;                                                  \
		event.data_type = from->member.data_type;                                          \
		event.stream = from->member.stream;                                                \
		event.is_captured = from->member.captured;                                         \
		event.root = (root_);                                                              \
	} while (0)

#define ADAPTER_FILL_KERNEL_LAUNCH_EVENT                                                           \
	do {                                                                                       \
		event.kind = NCCL_KIND_KERNEL_LAUNCH;                                              \
		event.stream = from->kernel_launch.stream;                                         \
	} while (0)

#define ADAPTER_FILL_CE_COLLECTIVE_EVENT                                                           \
	do {                                                                                       \
		event.kind = NCCL_KIND_CE_COLLECTIVE;                                              \
		event.sequence = from->ce_collective.sequence;                                     \
		event.function = from->ce_collective.function;                                     \
		event.send_buffer = from->ce_collective.send_buffer;                               \
		event.receive_buffer = from->ce_collective.receive_buffer;                         \
		event.count = from->ce_collective.count;                                           \
		event.root = from->ce_collective.root;                                             \
		event.data_type = from->ce_collective.data_type;                                   \
		event.algorithm = "CE";                                                            \
		event.protocol = from->ce_collective.synchronisation;                              \
		event.channel_count = 0;                                                           \
		event.warp_count = 0;                                                              \
	} while (0)

#define ADAPTER_FILL_CE_SYNC_EVENT                                                                 \
	do {                                                                                       \
		event.kind = NCCL_KIND_CE_SYNC;                                                    \
		event.complete = from->ce_sync.complete;                                           \
		event.ranks = from->ce_sync.ranks;                                                 \
	} while (0)

#define ADAPTER_FILL_CE_BATCH_EVENT                                                                \
	do {                                                                                       \
		event.kind = NCCL_KIND_CE_BATCH;                                                   \
		event.operations = from->ce_batch.operations;                                      \
		event.bytes = from->ce_batch.bytes;                                                \
		event.intra_batch = from->ce_batch.intra_batch;                                    \
	} while (0)

/* Anything else: other bits, which RCCL and later versions have. */
#define ADAPTER_RETURN_UNKNOWN_TYPE                                                                \
	do {                                                                                       \
		recorder_count_unknown_event_type();                                               \
		return NCCL_SUCCESS;                                                               \
	} while (0)

/* Arguments of versions 4 to 7: what the one word is, depends on the state. */
static inline int adapter_record_event_state_v4(void *handle, int state,
						const union nccl_state_v4 *arguments)
{
	struct event_state_arguments copy = {.known = arguments != NULL};

	if (state == NCCL_STATE_KERNEL_CHANNEL_STOP && arguments &&
	    recorder_is_on_without_call_trace() &&
	    channels_set_gpu_stop_time_by_handle(handle, arguments->gpu_time))
		return NCCL_SUCCESS;
	if (arguments &&
	    (state == NCCL_STATE_KERNEL_CHANNEL_STOP || state == NCCL_STATE_KERNEL_PHASE_STOP))
		copy.gpu_time = arguments->gpu_time;
	else if (arguments && state >= NCCL_STATE_CONTROL_IDLE &&
		 state <= NCCL_STATE_CONTROL_APPEND_END)
		copy.appended = arguments->appended;
	else if (arguments && state == NCCL_STATE_NET_PLUGIN_UPDATE)
		copy.data = arguments->data;
	else if (arguments)
		copy.bytes = arguments->bytes;
	return plugin_record_event_state(handle, state, &copy);
}

static inline int adapter_record_event_state_v1(void *handle, int state,
						const union nccl_state_v1 *arguments)
{
	struct event_state_arguments copy = {.known = arguments != NULL};

	if (arguments && state >= NCCL_STATE_CONTROL_IDLE &&
	    state <= NCCL_STATE_CONTROL_APPEND_END) {
		copy.appended = arguments->proxy_control.appended;
	} else if (arguments && state <= NCCL_STATE_OP_LAST) {
		copy.bytes = arguments->proxy_op.bytes;
		copy.steps = arguments->proxy_op.steps;
	}
	return plugin_record_event_state(handle, state, &copy);
}

#endif
