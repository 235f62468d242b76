/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * NCCL's profiler API version 2: NCCL 2.24 and 2.25.
 */
#include "nccl/adapter.h"

static int start(void *context, void **handle, struct nccl_event_v2 *from)
{
	ADAPTER_BEGIN(2);
	switch (from->type) {
	case NCCL_KIND_MASK(NCCL_KIND_GROUP):
		event.kind = NCCL_KIND_GROUP;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_COLLECTIVE):
		ADAPTER_COLLECTIVE(collective);
		event.traffic_bytes = from->collective.traffic_bytes;
		ADAPTER_NAME(collective);
		break;
	case NCCL_KIND_MASK(NCCL_KIND_P2P):
		ADAPTER_P2P;
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
						 .api = 2,
						 .caller = __builtin_return_address(0)});
}

__attribute__((visibility("default"))) struct nccl_profiler_v2 ncclProfiler_v2 = {
	.name = PLUGIN_NAME,
	.init = init,
	.start = start,
	.stop = plugin_stop,
	.state = state,
	.finalize = plugin_finalize,
};
