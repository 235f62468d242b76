/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Events without work of their own: runtimes that are there, allocations.
 */
#include <string.h>

#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/calls.h"
#include "libkymo-sdk/correlation.h"
#include "libkymo-sdk/external.h"

/* Correlation id 0: no call of the program's has brought it about. */
void sdk_report_runtime_ready(rocprofiler_runtime_initialization_operation_t operation,
			      uint64_t version, uint64_t instance)
{
	rocprofiler_callback_tracing_runtime_initialization_data_t data = {sizeof(data), version,
									   instance};
	struct sdk_thread_state *thread =
		sdk_is_operation_wanted(SDK_DOMAIN_RUNTIME, (int32_t)operation)
			? sdk_thread_try_enter_recording()
			: NULL;
	uint64_t active, callbacks, buffers;

	if (!thread)
		return;
	active = sdk_contexts_get_active_bits();
	callbacks = sdk_contexts_select_wanting_callbacks(active, SDK_DOMAIN_RUNTIME,
							  (int32_t)operation);
	buffers =
		sdk_contexts_select_wanting_records(active, SDK_DOMAIN_RUNTIME, (int32_t)operation);
	for (; callbacks; callbacks &= callbacks - 1) {
		rocprofiler_user_data_t user_data = {.value = 0};
		rocprofiler_callback_tracing_record_t record = {
			.thread_id = thread->tid,
			.kind = ROCPROFILER_CALLBACK_TRACING_RUNTIME_INITIALIZATION,
			.operation = (int32_t)operation,
			.phase = ROCPROFILER_CALLBACK_PHASE_NONE,
			.payload = &data,
		};

		sdk_context_call_tool_callback(thread, (unsigned)__builtin_ctzll(callbacks),
					       SDK_DOMAIN_RUNTIME, &record, &user_data);
	}
	for (; buffers; buffers &= buffers - 1) {
		rocprofiler_buffer_tracing_runtime_initialization_record_t record = {
			.size = sizeof(record),
			.kind = ROCPROFILER_BUFFER_TRACING_RUNTIME_INITIALIZATION,
			.operation = operation,
			.thread_id = thread->tid,
			.timestamp = sdk_clock_read_now_ns(),
			.version = version,
			.instance = instance,
		};
		const struct sdk_context *context =
			sdk_context_get_by_bit((unsigned)__builtin_ctzll(buffers));

		sdk_buffer_append_tracing_record(
			context->buffer_services[SDK_DOMAIN_RUNTIME]->buffer, record.kind, &record,
			sizeof(record), record.timestamp);
	}
	sdk_thread_leave_recording(thread);
}

static void
append_allocation_records(const struct sdk_call_state *call,
			  const rocprofiler_callback_tracing_memory_allocation_data_t *data)
{
	rocprofiler_buffer_tracing_memory_allocation_record_t record = {
		.size = sizeof(record),
		.kind = ROCPROFILER_BUFFER_TRACING_MEMORY_ALLOCATION,
		.operation = (rocprofiler_memory_allocation_operation_t)call->operation,
		.correlation_id = {.internal = call->id, .ancestor = call->ancestor_id},
		.thread_id = call->thread_id,
		.start_timestamp = data->start_timestamp,
		.end_timestamp = data->end_timestamp,
		.agent_id = data->agent_id,
		.address = data->address,
		.allocation_size = data->allocation_size,
	};

	for (unsigned i = 0; i < call->seen_count; i++) {
		const struct sdk_context_call_data_entry *seen = &call->seen[i];

		if (!(call->buffer_context_bits >> seen->context & 1))
			continue;
		record.correlation_id.external = seen->external_id;
		sdk_buffer_append_tracing_record(sdk_context_get_by_bit(seen->context)
							 ->buffer_services[SDK_DOMAIN_ALLOCATION]
							 ->buffer,
						 record.kind, &record, sizeof(record),
						 sdk_clock_read_now_ns());
	}
}

void sdk_report_allocation(rocprofiler_memory_allocation_operation_t operation,
			   rocprofiler_agent_id_t agent, uint64_t address, uint64_t size,
			   uint64_t start, uint64_t end)
{
	rocprofiler_callback_tracing_memory_allocation_data_t data = {
		.size = sizeof(data),
		.agent_id = agent,
		.address = {.value = address},
		.allocation_size = size,
	};
	struct sdk_call_state call;

	if (!sdk_call_enter(&call, SDK_DOMAIN_ALLOCATION, (int32_t)operation, &data))
		return;
	data.end_timestamp = end ? end : sdk_clock_read_now_ns();
	data.start_timestamp = start ? start : data.end_timestamp;
	append_allocation_records(&call, &data);
	call.buffer_context_bits = 0; /* the record that calls have is not this one */
	sdk_call_exit(&call, &data);
}
