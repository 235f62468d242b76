/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * NCCL's profiler API version 1: NCCL 2.23. Functions, types and algorithms are numbers.
 */
#include "common/array.h"
#include "nccl/versions/adapter.h"

/* Numbers of nccl_common.h and nccl.h. */
static const char *const function_names_by_number[] = {"Broadcast",     "Reduce",    "AllGather",
						       "ReduceScatter", "AllReduce", "SendRecv",
						       "Send",          "Recv"};
static const char *const algorithm_names_by_number[] = {
	"TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
static const char *const protocol_names_by_number[] = {"LL", "LL128", "SIMPLE"};
static const char *const data_type_names_by_number[] = {
	"ncclInt8",    "ncclUint8",    "ncclInt32",      "ncclUint32",
	"ncclInt64",   "ncclUint64",   "ncclFloat16",    "ncclFloat32",
	"ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};

#define GET_NAME_OR_UNKNOWN(names, number)                                                         \
	((number) < ARRAY_SIZE(names) ? names[number] : "Unknown")

static int plugin_v1_start_event(void *context, void **handle, struct nccl_event_v1 *from)
{
	ADAPTER_DECLARE_EVENT_OR_RETURN(1);
	switch (from->type) {
	case NCCL_KIND_MASK(NCCL_KIND_GROUP):
		event.kind = NCCL_KIND_GROUP;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_COLLECTIVE):
		event.kind = NCCL_KIND_COLLECTIVE;
		event.sequence = from->collective.sequence;
		event.function =
			GET_NAME_OR_UNKNOWN(function_names_by_number, from->collective.function);
		event.send_buffer = from->collective.send_buffer;
		event.receive_buffer = from->collective.receive_buffer;
		event.count = from->collective.count;
		event.root = from->collective.root;
		event.data_type =
			GET_NAME_OR_UNKNOWN(data_type_names_by_number, from->collective.data_type);
		event.channel_count = from->collective.channels;
		event.warp_count = from->collective.warps;
		event.algorithm =
			GET_NAME_OR_UNKNOWN(algorithm_names_by_number, from->collective.algorithm);
		event.protocol =
			GET_NAME_OR_UNKNOWN(protocol_names_by_number, from->collective.protocol);
		event.traffic_bytes = from->collective.traffic_bytes;
		ADAPTER_FILL_COMMUNICATOR_NAME(collective);
		break;
	case NCCL_KIND_MASK(NCCL_KIND_P2P):
		event.kind = NCCL_KIND_P2P;
		event.sequence = 0;
		event.function = GET_NAME_OR_UNKNOWN(function_names_by_number, from->p2p.function);
		event.send_buffer = from->p2p.buffer;
		event.receive_buffer = NULL;
		event.count = from->p2p.count;
		event.root = from->p2p.peer;
		event.data_type =
			GET_NAME_OR_UNKNOWN(data_type_names_by_number, from->p2p.data_type);
		event.channel_count = 0;
		event.warp_count = 0;
		event.algorithm = NULL;
		event.protocol = NULL;
		ADAPTER_FILL_COMMUNICATOR_NAME(p2p);
		break;
	case NCCL_KIND_MASK(NCCL_KIND_PROXY_OP):
		ADAPTER_FILL_PROXY_OP_EVENT;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_PROXY_STEP):
		ADAPTER_FILL_PROXY_STEP_EVENT;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_PROXY_CONTROL):
		event.kind = NCCL_KIND_PROXY_CONTROL;
		break;
	default:
		ADAPTER_RETURN_UNKNOWN_TYPE;
	}
	return plugin_start_event(context, handle, &event);
}

static int plugin_v1_record_state(void *handle, int number, union nccl_state_v1 *arguments)
{
	return adapter_record_event_state_v1(handle, number, arguments);
}

static int plugin_v1_init(void **context, int *mask)
{
	return plugin_init_communicator(
		&(struct plugin_init_arguments){.context = context,
						.event_mask = mask,
						.rank = -1,
						.api = 1,
						.caller = __builtin_return_address(0)});
}

__attribute__((visibility("default"))) struct nccl_profiler_v1 ncclProfiler_v1 = {
	.name = PLUGIN_NAME,
	.init = plugin_v1_init,
	.start = plugin_v1_start_event,
	.stop = plugin_stop_event,
	.state = plugin_v1_record_state,
	.finalize = plugin_finalize_communicator,
};
