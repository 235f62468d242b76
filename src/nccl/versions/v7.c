/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * NCCL's profiler API version 7: NCCL 2.31: tags of the user's, phases of kernels.
 */
#include "nccl/versions/adapter.h"

static inline void fill_extra_collective_fields(struct plugin_event_start_arguments *to,
						const struct nccl_event_v7 *from)
{
	to->group = from->collective.group;
	to->user_tag = from->collective.user_tag;
	/* Algorithm and protocol say nothing about these. */
	if (from->collective.is_symmetric)
		to->algorithm = from->collective.kernel_variant;
}

static int start_collective(void *context, void **handle, const struct nccl_event_v7 *from)
{
	ADAPTER_DECLARE_EVENT_OR_RETURN(7);
	ADAPTER_FILL_COLLECTIVE_EVENT(collective);
	fill_extra_collective_fields(&event, from);
	return plugin_start_operation(context, handle, &event);
}

static int plugin_v7_start_event(void *context, void **handle, struct nccl_event_v7 *from)
{
	ADAPTER_RETURN_VIA_FAST_PATH_IF_POSSIBLE;
	ADAPTER_DECLARE_EVENT_OR_RETURN(7);
	switch (from->type) {
	case NCCL_KIND_MASK(NCCL_KIND_GROUP):
		event.kind = NCCL_KIND_GROUP;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_COLLECTIVE):
		ADAPTER_FILL_COLLECTIVE_EVENT(collective);
		fill_extra_collective_fields(&event, from);
		break;
	case NCCL_KIND_MASK(NCCL_KIND_P2P):
		ADAPTER_FILL_P2P_EVENT;
		event.group = from->p2p.group;
		event.user_tag = from->p2p.user_tag;
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
	case NCCL_KIND_MASK(NCCL_KIND_GROUP_API):
		ADAPTER_FILL_GROUP_API_EVENT;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_COLLECTIVE_API):
		ADAPTER_FILL_API_CALL_EVENT(NCCL_KIND_COLLECTIVE_API, collective_api,
					    from->collective_api.root);
		event.user_tag = from->collective_api.user_tag;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_P2P_API):
		ADAPTER_FILL_API_CALL_EVENT(NCCL_KIND_P2P_API, p2p_api, -1);
		event.user_tag = from->p2p_api.user_tag;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_KERNEL_LAUNCH):
		ADAPTER_FILL_KERNEL_LAUNCH_EVENT;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_CE_COLLECTIVE):
		ADAPTER_FILL_CE_COLLECTIVE_EVENT;
		event.user_tag = from->ce_collective.user_tag;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_CE_SYNC):
		ADAPTER_FILL_CE_SYNC_EVENT;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_CE_BATCH):
		ADAPTER_FILL_CE_BATCH_EVENT;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_KERNEL_PHASE):
		event.kind = NCCL_KIND_KERNEL_PHASE;
		event.channel = from->kernel_phase.channel;
		event.phase = from->kernel_phase.phase;
		event.gpu_timestamp = from->kernel_phase.gpu_time;
		break;
	default:
		ADAPTER_RETURN_UNKNOWN_TYPE;
	}
	return plugin_start_event(context, handle, &event);
}

static int plugin_v7_record_state(void *handle, int number, union nccl_state_v4 *arguments)
{
	return adapter_record_event_state_v4(handle, number, arguments);
}

static int plugin_v7_init(void **context, uint64_t hash, int *mask, const char *name, int nodes,
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
						.api = 7,
						.logger = logger,
						.caller = __builtin_return_address(0)});
}

__attribute__((visibility("default"))) struct nccl_profiler_v7 ncclProfiler_v7 = {
	.name = PLUGIN_NAME,
	.init = plugin_v7_init,
	.start = plugin_v7_start_event,
	.stop = plugin_stop_event,
	.state = plugin_v7_record_state,
	.finalize = plugin_finalize_communicator,
};
