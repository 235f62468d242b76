/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * NCCL's profiler API version 5: NCCL 2.28: events of the API's calls and of kernel launches.
 */
#include "nccl/adapter.h"

static inline void fill_collective(struct event *to, const struct nccl_event_v5 *from)
{
	to->group = from->collective.group;
}

static int collective(void *context, void **handle, const struct nccl_event_v5 *from)
{
	ADAPTER_BEGIN(5);
	ADAPTER_COLLECTIVE(collective);
	fill_collective(&event, from);
	return plugin_operation(context, handle, &event);
}

static int start(void *context, void **handle, struct nccl_event_v5 *from)
{
	ADAPTER_OFTEN;
	ADAPTER_BEGIN(5);
	switch (from->type) {
	case NCCL_KIND_MASK(NCCL_KIND_GROUP):
		event.kind = NCCL_KIND_GROUP;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_COLLECTIVE):
		ADAPTER_COLLECTIVE(collective);
		fill_collective(&event, from);
		break;
	case NCCL_KIND_MASK(NCCL_KIND_P2P):
		ADAPTER_P2P;
		event.group = from->p2p.group;
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
		ADAPTER_KERNEL_CHANNEL;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_NET_PLUGIN):
		ADAPTER_NET_PLUGIN;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_GROUP_API):
		ADAPTER_GROUP_API;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_COLLECTIVE_API):
		ADAPTER_CALL(NCCL_KIND_COLLECTIVE_API, collective_api, from->collective_api.root);
		break;
	case NCCL_KIND_MASK(NCCL_KIND_P2P_API):
		ADAPTER_CALL(NCCL_KIND_P2P_API, p2p_api, -1);
		break;
	case NCCL_KIND_MASK(NCCL_KIND_KERNEL_LAUNCH):
		ADAPTER_KERNEL_LAUNCH;
		break;
	default:
		ADAPTER_UNKNOWN;
	}
	return plugin_start(context, handle, &event);
}

static int state(void *handle, int number, union nccl_state_v4 *arguments)
{
	return adapter_state_v4(handle, number, arguments);
}

static int init(void **context, uint64_t hash, int *mask, const char *name, int nodes, int ranks,
		int rank, nccl_logger logger)
{
	return plugin_init(&(struct plugin_init){.context = context,
						 .mask = mask,
						 .name = name,
						 .hash = hash,
						 .nodes = nodes,
						 .ranks = ranks,
						 .rank = rank,
						 .api = 5,
						 .logger = logger,
						 .caller = __builtin_return_address(0)});
}

__attribute__((visibility("default"))) struct nccl_profiler_v5 ncclProfiler_v5 = {
	.name = PLUGIN_NAME,
	.init = init,
	.start = start,
	.stop = plugin_stop,
	.state = state,
	.finalize = plugin_finalize,
};
