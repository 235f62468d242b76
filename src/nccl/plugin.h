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

struct plugin_init {
	void **context;
	int *mask;
	const char *name;
	uint64_t hash;
	int nodes, ranks, rank;
	unsigned api;
	nccl_logger logger;
	const void *caller; /* an address in NCCL */
};

/* Always succeeds: where nothing can be recorded, it says so, sets a context and leaves the mask.
 */
int plugin_init(const struct plugin_init *init);
int plugin_finalize(void *context);
int plugin_stop(void *handle);

static inline int plugin_start(void *context, void **handle, const struct event *event)
{
	*handle = recorder_start(context, event);
	if (__builtin_expect(call_trace_is_on(), 0))
		call_trace_start(context, *handle, event);
	return NCCL_SUCCESS;
}

/* These two while recording is plain: the event is not needed in memory, nor at all. */
static inline __attribute__((always_inline)) int plugin_operation(void *context, void **handle,
								  const struct event *event)
{
	*handle = operations_start(context, event);
	return NCCL_SUCCESS;
}

static inline int plugin_channel(void *context, void **handle, void *parent, uint8_t channel,
				 uint64_t gpu_time)
{
	*handle = NULL;
	*handle = channels_begin(context, parent, channel, gpu_time);
	return NCCL_SUCCESS;
}

static inline int plugin_state(void *handle, int state, const struct event_state *arguments)
{
	if (!recorder_is_on())
		return NCCL_SUCCESS;
	if (__builtin_expect(call_trace_is_on(), 0))
		call_trace_state(handle, state, arguments);
	recorder_state(handle, state, arguments);
	return NCCL_SUCCESS;
}

#endif
