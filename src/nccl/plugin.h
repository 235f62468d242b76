/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the adapters of all versions share: the beginning, and the way of each call into the
 * recorder and, where it is asked for, into the trace of calls.
 */
#ifndef KYMO_NCCL_PLUGIN_H
#define KYMO_NCCL_PLUGIN_H

#include "nccl/api.h"
#include "nccl/call_trace.h"
#include "nccl/operations.h"
#include "nccl/recorder.h"

#define PLUGIN_NAME "kymo"

struct plugin_init_arguments {
	void **context;
	int *event_mask;
	const char *name;
	uint64_t hash;
	int node_count, rank_count, rank;
	unsigned api;
	nccl_logger logger;
	const void *caller; /* an address in NCCL */
};

/* Always succeeds: where nothing can be recorded, it says so, sets a context and leaves the mask.
 */
int plugin_init_communicator(const struct plugin_init_arguments *init);
int plugin_finalize_communicator(void *context);
int plugin_stop_event(void *handle);

static inline int plugin_start_event(void *context, void **handle,
				     const struct plugin_event_start_arguments *event)
{
	*handle = recorder_record_event_start(context, event);
	if (__builtin_expect(call_trace_is_on(), 0))
		call_trace_write_event_start(context, *handle, event);
	return NCCL_SUCCESS;
}

/* These two while recording is plain: the event is not needed in memory, nor at all. */
static inline __attribute__((always_inline)) int
plugin_start_operation(void *context, void **handle,
		       const struct plugin_event_start_arguments *event)
{
	*handle = operations_record_start(context, event);
	return NCCL_SUCCESS;
}

static inline int plugin_start_kernel_channel(void *context, void **handle, void *parent,
					      uint8_t channel, uint64_t gpu_time)
{
	*handle = NULL;
	*handle = channels_record_kernel_channel_start(context, parent, channel, gpu_time);
	return NCCL_SUCCESS;
}

static inline int plugin_record_event_state(void *handle, int state,
					    const struct event_state_arguments *arguments)
{
	if (!recorder_is_on())
		return NCCL_SUCCESS;
	if (__builtin_expect(call_trace_is_on(), 0))
		call_trace_write_event_state(handle, state, arguments);
	recorder_record_event_state(handle, state, arguments);
	return NCCL_SUCCESS;
}

#endif
