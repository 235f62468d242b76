/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * NCCL's profiler API version 4: NCCL 2.27: init knows the communicator, kernel channels have
 * times.
 */
#include "nccl/versions/adapter.h"

static int start_collective(void *context, void **handle, const struct nccl_event_v4 *from)
{
	ADAPTER_DECLARE_EVENT_OR_RETURN(4);
	ADAPTER_FILL_COLLECTIVE_EVENT(collective);
	return plugin_start_operation(context, handle, &event);
}

static int plugin_v4_start_event(void *context, void **handle, struct nccl_event_v4 *from)
{
	ADAPTER_RETURN_VIA_FAST_PATH_IF_POSSIBLE;
	ADAPTER_DECLARE_EVENT_OR_RETURN(4);
	switch (from->type) {
	case NCCL_KIND_MASK(NCCL_KIND_GROUP):
		event.kind = NCCL_KIND_GROUP;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_COLLECTIVE):
		ADAPTER_FILL_COLLECTIVE_EVENT(collective);
		break;
	case NCCL_KIND_MASK(NCCL_KIND_P2P):
		ADAPTER_FILL_P2P_EVENT;
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
	case NCCL_KIND_MASK(NCCL_KIND_KERNEL_CHANNEL):
		ADAPTER_FILL_KERNEL_CHANNEL_EVENT;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_NET_PLUGIN):
		ADAPTER_FILL_NET_PLUGIN_EVENT;
		break;
	default:
		ADAPTER_RETURN_UNKNOWN_TYPE;
	}
	return plugin_start_event(context, handle, &event);
}

static int plugin_v4_record_state(void *handle, int number, union nccl_state_v4 *arguments)
{
	return adapter_record_event_state_v4(handle, number, arguments);
}

static int plugin_v4_init(void **context, int *mask, const char *name, uint64_t hash, int nodes,
			  int ranks, int rank, nccl_logger logger)
{
	return plugin_init_communicator(
		&(struct plugin_init_arguments){.context = context,
						.event_mask = mask,
						.name = name,
						.hash = hash,
						.node_count = nodes,
						.rank_count = ranks,
						.rank = rank,
						.api = 4,
						.logger = logger,
						.caller = __builtin_return_address(0)});
}

__attribute__((visibility("default"))) struct nccl_profiler_v4 ncclProfiler_v4 = {
	.name = PLUGIN_NAME,
	.init = plugin_v4_init,
	.start = plugin_v4_start_event,
	.stop = plugin_stop_event,
	.state = plugin_v4_record_state,
	.finalize = plugin_finalize_communicator,
};
