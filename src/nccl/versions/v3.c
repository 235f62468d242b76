/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * NCCL's profiler API version 3: NCCL 2.26: kernel channels, without times, and network plugins.
 */
#include "nccl/versions/adapter.h"

static int plugin_v3_start_event(void *context, void **handle, struct nccl_event_v3 *from)
{
	ADAPTER_DECLARE_EVENT_OR_RETURN(3);
	switch (from->type) {
	case NCCL_KIND_MASK(NCCL_KIND_GROUP):
		event.kind = NCCL_KIND_GROUP;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_COLLECTIVE):
		ADAPTER_FILL_COLLECTIVE_EVENT(collective);
		ADAPTER_FILL_COMMUNICATOR_NAME(collective);
		break;
	case NCCL_KIND_MASK(NCCL_KIND_P2P):
		ADAPTER_FILL_P2P_EVENT;
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
	case NCCL_KIND_MASK(NCCL_KIND_KERNEL_CHANNEL):
		event.kind = NCCL_KIND_KERNEL_CHANNEL;
		event.channel = from->kernel_channel.channel;
		event.gpu_timestamp = 0;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_NET_PLUGIN):
		ADAPTER_FILL_NET_PLUGIN_EVENT;
		break;
	default:
		ADAPTER_RETURN_UNKNOWN_TYPE;
	}
	return plugin_start_event(context, handle, &event);
}

static int plugin_v3_record_state(void *handle, int number, union nccl_state_v1 *arguments)
{
	return adapter_record_event_state_v1(handle, number, arguments);
}

static int plugin_v3_init(void **context, int *mask)
{
	return plugin_init_communicator(
		&(struct plugin_init_arguments){.context = context,
						.event_mask = mask,
						.rank = -1,
						.api = 3,
						.caller = __builtin_return_address(0)});
}

__attribute__((visibility("default"))) struct nccl_profiler_v3 ncclProfiler_v3 = {
	.name = PLUGIN_NAME,
	.init = plugin_v3_init,
	.start = plugin_v3_start_event,
	.stop = plugin_stop_event,
	.state = plugin_v3_record_state,
	.finalize = plugin_finalize_communicator,
};
