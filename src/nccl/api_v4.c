/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * NCCL's profiler API version 4: NCCL 2.27: init knows the communicator, kernel channels have
 * times.
 */
#include "nccl/adapter.h"

static int collective(void *context, void **handle, const struct nccl_event_v4 *from)
{
	ADAPTER_BEGIN(4);
	ADAPTER_COLLECTIVE(collective);
	return plugin_operation(context, handle, &event);
}

static int start(void *context, void **handle, struct nccl_event_v4 *from)
{
	ADAPTER_OFTEN;
	ADAPTER_BEGIN(4);
	switch (from->type) {
	case NCCL_KIND_MASK(NCCL_KIND_GROUP):
		event.kind = NCCL_KIND_GROUP;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_COLLECTIVE):
		ADAPTER_COLLECTIVE(collective);
		break;
	case NCCL_KIND_MASK(NCCL_KIND_P2P):
		ADAPTER_P2P;
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
	default:
		ADAPTER_UNKNOWN;
	}
	return plugin_start(context, handle, &event);
}

static int state(void *handle, int number, union nccl_state_v4 *arguments)
{
	return adapter_state_v4(handle, number, arguments);
}

static int init(void **context, int *mask, const char *name, uint64_t hash, int nodes, int ranks,
		int rank, nccl_logger logger)
{
	return plugin_init(&(struct plugin_init){.context = context,
						 .mask = mask,
						 .name = name,
						 .hash = hash,
						 .nodes = nodes,
						 .ranks = ranks,
						 .rank = rank,
						 .api = 4,
						 .logger = logger,
						 .caller = __builtin_return_address(0)});
}

__attribute__((visibility("default"))) struct nccl_profiler_v4 ncclProfiler_v4 = {
	.name = PLUGIN_NAME,
	.init = init,
	.start = start,
	.stop = plugin_stop,
	.state = state,
	.finalize = plugin_finalize,
};
