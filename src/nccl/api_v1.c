/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * NCCL's profiler API version 1: NCCL 2.23. Functions, types and algorithms are numbers.
 */
#include "nccl/adapter.h"

/* Numbers of nccl_common.h and nccl.h. */
static const char *const functions[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
					"AllReduce", "SendRecv", "Send",      "Recv"};
static const char *const algorithms[] = {
	"TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
static const char *const protocols[] = {"LL", "LL128", "SIMPLE"};
static const char *const data_types[] = {"ncclInt8",     "ncclUint8",      "ncclInt32",
					 "ncclUint32",   "ncclInt64",      "ncclUint64",
					 "ncclFloat16",  "ncclFloat32",    "ncclFloat64",
					 "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};

#define NAME_OF(names, number)                                                                     \
	((number) < sizeof(names) / sizeof(names[0]) ? names[number] : "Unknown")

static int start(void *context, void **handle, struct nccl_event_v1 *from)
{
	ADAPTER_BEGIN(1);
	switch (from->type) {
	case NCCL_KIND_MASK(NCCL_KIND_GROUP):
		event.kind = NCCL_KIND_GROUP;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_COLLECTIVE):
		event.kind = NCCL_KIND_COLLECTIVE;
		event.sequence = from->collective.sequence;
		event.function = NAME_OF(functions, from->collective.function);
		event.send_buffer = from->collective.send_buffer;
		event.receive_buffer = from->collective.receive_buffer;
		event.count = from->collective.count;
		event.root = from->collective.root;
		event.data_type = NAME_OF(data_types, from->collective.data_type);
		event.channels = from->collective.channels;
		event.warps = from->collective.warps;
		event.algorithm = NAME_OF(algorithms, from->collective.algorithm);
		event.protocol = NAME_OF(protocols, from->collective.protocol);
		event.traffic_bytes = from->collective.traffic_bytes;
		ADAPTER_NAME(collective);
		break;
	case NCCL_KIND_MASK(NCCL_KIND_P2P):
		event.kind = NCCL_KIND_P2P;
		event.sequence = 0;
		event.function = NAME_OF(functions, from->p2p.function);
		event.send_buffer = from->p2p.buffer;
		event.receive_buffer = NULL;
		event.count = from->p2p.count;
		event.root = from->p2p.peer;
		event.data_type = NAME_OF(data_types, from->p2p.data_type);
		event.channels = 0;
		event.warps = 0;
		event.algorithm = NULL;
		event.protocol = NULL;
		ADAPTER_NAME(p2p);
		break;
	case NCCL_KIND_MASK(NCCL_KIND_PROXY_OP):
		ADAPTER_PROXY_OP;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_PROXY_STEP):
		ADAPTER_PROXY_STEP;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_PROXY_CONTROL):
		event.kind = NCCL_KIND_PROXY_CONTROL;
		break;
	default:
		ADAPTER_UNKNOWN;
	}
	return plugin_start(context, handle, &event);
}

static int state(void *handle, int number, union nccl_state_v1 *arguments)
{
	return adapter_state_v1(handle, number, arguments);
}

static int init(void **context, int *mask)
{
	return plugin_init(&(struct plugin_init){.context = context,
						 .mask = mask,
						 .rank = -1,
						 .api = 1,
						 .caller = __builtin_return_address(0)});
}

__attribute__((visibility("default"))) struct nccl_profiler_v1 ncclProfiler_v1 = {
	.name = PLUGIN_NAME,
	.init = init,
	.start = start,
	.stop = plugin_stop,
	.state = state,
	.finalize = plugin_finalize,
};
