/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * NCCL's profiler API version 7: NCCL 2.31: tags of the user's, phases of kernels.
 */
#include "nccl/adapter.h"

static inline void fill_collective(struct event *to, const struct nccl_event_v7 *from)
{
	to->group = from->collective.group;
	to->user_tag = from->collective.user_tag;
	/* Algorithm and protocol say nothing about these. */
	if (from->collective.is_symmetric)
		to->algorithm = from->collective.kernel_variant;
}

static int collective(void *context, void **handle, const struct nccl_event_v7 *from)
{
	ADAPTER_BEGIN(7);
	ADAPTER_COLLECTIVE(collective);
	fill_collective(&event, from);
	return plugin_operation(context, handle, &event);
}

static int start(void *context, void **handle, struct nccl_event_v7 *from)
{
	ADAPTER_OFTEN;
	ADAPTER_BEGIN(7);
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
		event.user_tag = from->p2p.user_tag;
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
		event.user_tag = from->collective_api.user_tag;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_P2P_API):
		ADAPTER_CALL(NCCL_KIND_P2P_API, p2p_api, -1);
		event.user_tag = from->p2p_api.user_tag;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_KERNEL_LAUNCH):
		ADAPTER_KERNEL_LAUNCH;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_CE_COLLECTIVE):
		ADAPTER_CE_COLLECTIVE;
		event.user_tag = from->ce_collective.user_tag;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_CE_SYNC):
		ADAPTER_CE_SYNC;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_CE_BATCH):
		ADAPTER_CE_BATCH;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_KERNEL_PHASE):
		event.kind = NCCL_KIND_KERNEL_PHASE;
		event.channel = from->kernel_phase.channel;
		event.phase = from->kernel_phase.phase;
		event.gpu_time = from->kernel_phase.gpu_time;
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
						 .api = 7,
						 .logger = logger,
						 .caller = __builtin_return_address(0)});
}

__attribute__((visibility("default"))) struct nccl_profiler_v7 ncclProfiler_v7 = {
	.name = PLUGIN_NAME,
	.init = init,
	.start = start,
	.stop = plugin_stop,
	.state = state,
	.finalize = plugin_finalize,
};
