/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * NCCL's profiler API version 3: NCCL 2.26: kernel channels, without times, and network plugins.
 */
#include "nccl/adapter.h"

static int start(void *context, void **handle, struct nccl_event_v3 *from)
{
	ADAPTER_BEGIN(3);
	switch (from->type) {
	case NCCL_KIND_MASK(NCCL_KIND_GROUP):
		event.kind = NCCL_KIND_GROUP;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_COLLECTIVE):
		ADAPTER_COLLECTIVE(collective);
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
	case NCCL_KIND_MASK(NCCL_KIND_KERNEL_CHANNEL):
		event.kind = NCCL_KIND_KERNEL_CHANNEL;
		event.channel = from->kernel_channel.channel;
		event.gpu_time = 0;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_NET_PLUGIN):
		ADAPTER_NET_PLUGIN;
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
						 .api = 3,
						 .caller = __builtin_return_address(0)});
}

__attribute__((visibility("default"))) struct nccl_profiler_v3 ncclProfiler_v3 = {
	.name = PLUGIN_NAME,
	.init = init,
	.start = start,
	.stop = plugin_stop,
	.state = state,
	.finalize = plugin_finalize,
};
