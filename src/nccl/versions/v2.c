/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * NCCL's profiler API version 2: NCCL 2.24 and 2.25.
 */
#include "nccl/versions/adapter.h"

static int plugin_v2_start_event(void *context, void **handle, struct nccl_event_v2 *from)
{
	ADAPTER_DECLARE_EVENT_OR_RETURN(2);
	switch (from->type) {
	case NCCL_KIND_MASK(NCCL_KIND_GROUP):
		event.kind = NCCL_KIND_GROUP;
		break;
	case NCCL_KIND_MASK(NCCL_KIND_COLLECTIVE):
		ADAPTER_FILL_COLLECTIVE_EVENT(collective);
		event.traffic_bytes = from->collective.traffic_bytes;
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
	default:
		ADAPTER_RETURN_UNKNOWN_TYPE;
	}
	return plugin_start_event(context, handle, &event);
}

static int plugin_v2_record_state(void *handle, int number, union nccl_state_v1 *arguments)
{
	return adapter_record_event_state_v1(handle, number, arguments);
}

static int plugin_v2_init(void **context, int *mask)
{
	return plugin_init_communicator(
		&(struct plugin_init_arguments){.context = context,
						.event_mask = mask,
						.rank = -1,
						.api = 2,
						.caller = __builtin_return_address(0)});
}

__attribute__((visibility("default"))) struct nccl_profiler_v2 ncclProfiler_v2 = {
	.name = PLUGIN_NAME,
	.init = plugin_v2_init,
	.start = plugin_v2_start_event,
	.stop = plugin_stop_event,
	.state = plugin_v2_record_state,
	.finalize = plugin_finalize_communicator,
};
