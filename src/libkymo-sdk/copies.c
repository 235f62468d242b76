/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Copies in flight; see emit.h.
 */
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/work_private.h"

static void fill_copy_data(rocprofiler_callback_tracing_memory_copy_data_t *data,
			   const struct sdk_memory_copy_info *copy)
{
	data->size = sizeof(*data);
	data->dst_agent_id = copy->to;
	data->src_agent_id = copy->from;
	data->bytes = copy->bytes;
	data->dst_address.value = copy->to_address;
	data->src_address.value = copy->from_address;
}

static void append_copy_records(struct sdk_device_work *work, int32_t operation,
				const rocprofiler_callback_tracing_memory_copy_data_t *data)
{
	uint64_t now = sdk_clock_read_now_ns();
	rocprofiler_buffer_tracing_memory_copy_record_t record = {
		.size = sizeof(record),
		.kind = ROCPROFILER_BUFFER_TRACING_MEMORY_COPY,
		.operation = (rocprofiler_memory_copy_operation_t)operation,
		.correlation_id = {.internal = work->correlation->id},
		.thread_id = work->thread_id,
		.start_timestamp = data->start_timestamp,
		.end_timestamp = data->end_timestamp,
		.dst_agent_id = data->dst_agent_id,
		.src_agent_id = data->src_agent_id,
		.bytes = data->bytes,
		.dst_address = data->dst_address,
		.src_address = data->src_address,
	};

	for (unsigned i = 0; i < work->seen_count; i++) {
		const struct sdk_context_call_data_entry *seen = &work->seen[i];
		const struct sdk_context *context = sdk_context_get_by_bit(seen->context);

		if (!(work->buffer_context_bits[WORK_KIND_COPY] >> seen->context & 1) ||
		    !sdk_operation_is_in_set(context->buffer_services[SDK_DOMAIN_COPY]->operations,
					     operation))
			continue;
		record.correlation_id.external = seen->external_id;
		sdk_buffer_append_tracing_record(context->buffer_services[SDK_DOMAIN_COPY]->buffer,
						 record.kind, &record, sizeof(record), now);
	}
}

struct sdk_device_work *sdk_copy_report_begin(const struct sdk_memory_copy_info *copy)
{
	int32_t operation = (int32_t)copy->operation;
	struct sdk_thread_state *thread = sdk_is_operation_wanted(SDK_DOMAIN_COPY, operation)
						  ? sdk_thread_try_enter_recording()
						  : NULL;
	uint64_t callbacks, buffers, contexts;
	struct sdk_device_work *work;

	if (!thread)
		return NULL;
	contexts = sdk_contexts_get_active_bits();
	callbacks = sdk_contexts_select_wanting_callbacks(contexts, SDK_DOMAIN_COPY, operation);
	buffers = sdk_contexts_select_wanting_records(contexts, SDK_DOMAIN_COPY, operation);
	contexts = callbacks | buffers;
	work = contexts ? sdk_work_allocate(thread, contexts) : NULL;
	if (work)
		work->correlation = sdk_correlation_acquire_or_create(thread);
	if (work && !work->correlation) {
		sdk_work_free(work);
		work = NULL;
	}
	if (work) {
		work->callback_context_bits[WORK_KIND_COPY] = callbacks;
		work->buffer_context_bits[WORK_KIND_COPY] = buffers;
		work->payload.copy.operation = operation;
		fill_copy_data(&work->payload.copy.data, copy);
		sdk_work_add_contexts(thread, work, SDK_DOMAIN_COPY, operation, contexts);
		sdk_work_report_phase_if_wanted(thread, work, WORK_KIND_COPY, callbacks, operation,
						ROCPROFILER_CALLBACK_PHASE_ENTER,
						&work->payload.copy.data);
		sdk_work_update_pushed_external_ids(thread, work);
		work->begun_ns = sdk_thread_get_new_work_begin_ns(thread, callbacks != 0);
	}
	sdk_thread_leave_recording(thread);
	return work;
}

void sdk_copy_report_complete(struct sdk_device_work *work, const struct sdk_memory_copy_info *ran,
			      uint64_t start, uint64_t end)
{
	bool busy;
	struct sdk_thread_state *thread = sdk_thread_get_own_and_set_busy(&busy);

	if (!thread)
		return;
	sdk_clamp_device_times_to_begin(work->begun_ns, &start, &end);
	if (ran)
		fill_copy_data(&work->payload.copy.data, ran);
	work->payload.copy.data.start_timestamp = start;
	work->payload.copy.data.end_timestamp = end;
	sdk_work_report_phase_if_wanted(thread, work, WORK_KIND_COPY,
					work->callback_context_bits[WORK_KIND_COPY],
					work->payload.copy.operation,
					ROCPROFILER_CALLBACK_PHASE_EXIT, &work->payload.copy.data);
	append_copy_records(work, work->payload.copy.operation, &work->payload.copy.data);
	sdk_work_free(work);
	thread->busy = busy;
}

void sdk_work_report_copy(struct sdk_device_work *work, const struct sdk_memory_copy_info *copy,
			  uint64_t start, uint64_t end)
{
	rocprofiler_callback_tracing_memory_copy_data_t data = {.size = 0};
	int32_t operation = (int32_t)copy->operation;
	bool busy;
	struct sdk_thread_state *thread = sdk_thread_get_own_and_set_busy(&busy);

	if (!thread)
		return;
	sdk_clamp_device_times_to_begin(work->begun_ns, &start, &end);
	fill_copy_data(&data, copy);
	data.start_timestamp = start;
	data.end_timestamp = end;
	sdk_work_request_external_ids(work, WORK_KIND_COPY, operation);
	sdk_work_report_phase_if_wanted(thread, work, WORK_KIND_COPY,
					work->callback_context_bits[WORK_KIND_COPY], operation,
					ROCPROFILER_CALLBACK_PHASE_ENTER, &data);
	sdk_work_report_phase_if_wanted(thread, work, WORK_KIND_COPY,
					work->callback_context_bits[WORK_KIND_COPY], operation,
					ROCPROFILER_CALLBACK_PHASE_EXIT, &data);
	append_copy_records(work, operation, &data);
	thread->busy = busy;
}
