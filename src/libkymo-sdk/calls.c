/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Calls of runtimes: ENTER and EXIT; see emit.h.
 *
 * Contexts are looked up once, at the entry; the exit goes to the same ones. External ids are asked
 * for before ENTER is reported, and read again behind it, because a tool may push one there.
 */
#include "libkymo-sdk/calls.h"

#include <string.h>

#include "common/hot.h"
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/correlation.h"
#include "libkymo-sdk/external.h"

/* ENTER or EXIT to everybody who wants callbacks. */
KYMO_HOT static void report_call_phase(struct sdk_thread_state *thread, struct sdk_call_state *call,
				       rocprofiler_callback_phase_t phase, void *payload)
{
	rocprofiler_callback_tracing_record_t record = {
		.thread_id = call->thread_id,
		.correlation_id = {.internal = call->id, .ancestor = call->ancestor_id},
		.payload = payload,
	};

	sdk_callback_record_set_kind_and_phase(
		&record, sdk_kinds_by_domain[call->domain].callback_kind, call->operation, phase);
	for (unsigned i = 0; i < call->seen_count; i++) {
		struct sdk_context_call_data_entry *seen = &call->seen[i];

		if (!(call->callback_context_bits >> seen->context & 1))
			continue;
		record.correlation_id.external = seen->external_id;
		sdk_context_call_tool_callback(thread, seen->context, call->domain, &record,
					       &seen->user_data);
	}
}

static void fill_call_context_data_entries(struct sdk_thread_state *thread,
					   struct sdk_call_state *call)
{
	uint64_t contexts = call->callback_context_bits | call->buffer_context_bits;

	call->seen_count = 0;
	for (; contexts; contexts &= contexts - 1) {
		struct sdk_context_call_data_entry *seen = &call->seen[call->seen_count++];

		seen->context = (uint8_t)__builtin_ctzll(contexts);
		seen->user_data.value = 0;
		sdk_external_id_fill_entry(thread, sdk_context_get_by_bit(seen->context),
					   call->domain, call->operation, call->id, seen);
	}
}

static void update_pushed_external_ids_of_call(struct sdk_thread_state *thread,
					       struct sdk_call_state *call)
{
	for (unsigned i = 0; i < call->seen_count; i++) {
		struct sdk_context_call_data_entry *seen = &call->seen[i];

		if (!seen->is_external_id_requested)
			seen->external_id = sdk_external_id_get_stack_top(
				thread, sdk_context_get_by_bit(seen->context));
	}
}

/* first: the same call as one of another domain, which has its id and its end; or NULL. */
static void set_call_correlation_ids(struct sdk_thread_state *thread, struct sdk_call_state *call,
				     const struct sdk_call_state *first, uint64_t active)
{
	if (first) {
		call->id = first->id;
		call->ancestor_id = first->ancestor_id;
		call->retirement_context_bits = 0;
		return;
	}
	call->id = sdk_correlation_allocate_id(thread);
	call->ancestor_id = thread->call ? thread->call->id : 0;
	call->retirement_context_bits =
		active & sdk_domain_get_buffer_context_bits(SDK_DOMAIN_RETIREMENT);
}

KYMO_HOT static bool enter_call(struct sdk_call_state *call, enum sdk_domain domain,
				int32_t operation, void *payload, bool detached,
				const struct sdk_call_state *first,
				rocprofiler_callback_phase_t phase)
{
	struct sdk_thread_state *thread = sdk_is_operation_wanted(domain, operation)
						  ? sdk_thread_try_enter_recording()
						  : NULL;
	uint64_t active;

	if (!thread)
		return false;
	active = sdk_contexts_get_active_bits();
	call->callback_context_bits =
		sdk_contexts_select_wanting_callbacks(active, domain, operation);
	call->buffer_context_bits = sdk_contexts_select_wanting_records(active, domain, operation);
	if (!(call->callback_context_bits | call->buffer_context_bits)) {
		sdk_thread_leave_recording(thread);
		return false;
	}
	call->domain = domain;
	call->operation = operation;
	call->thread_id = thread->tid;
	set_call_correlation_ids(thread, call, first, active);
	call->shared_correlation = NULL;
	call->is_detached = detached;
	call->outer = thread->call;
	if (!detached)
		thread->call = call;
	fill_call_context_data_entries(thread, call);
	if (call->callback_context_bits) {
		report_call_phase(thread, call, phase, payload);
		update_pushed_external_ids_of_call(thread, call);
	}
	call->start = call->buffer_context_bits ? sdk_clock_read_now_ns() : 0;
	sdk_thread_leave_recording(thread);
	return true;
}

KYMO_HOT bool sdk_call_enter(struct sdk_call_state *call, enum sdk_domain domain, int32_t operation,
			     void *payload)
{
	return enter_call(call, domain, operation, payload, false, NULL,
			  ROCPROFILER_CALLBACK_PHASE_ENTER);
}

bool sdk_call_enter_detached(struct sdk_call_state *call, enum sdk_domain domain, int32_t operation,
			     void *payload)
{
	return enter_call(call, domain, operation, payload, true, NULL,
			  ROCPROFILER_CALLBACK_PHASE_ENTER);
}

bool sdk_call_enter_in_second_domain(struct sdk_call_state *call,
				     const struct sdk_call_state *first, enum sdk_domain domain,
				     int32_t operation, void *payload)
{
	return enter_call(call, domain, operation, payload, true, first,
			  ROCPROFILER_CALLBACK_PHASE_ENTER);
}

bool sdk_call_begin_instant_event(struct sdk_call_state *call, enum sdk_domain domain,
				  int32_t operation, void *payload)
{
	return enter_call(call, domain, operation, payload, true, NULL,
			  ROCPROFILER_CALLBACK_PHASE_NONE);
}

void sdk_call_end_instant_event(struct sdk_call_state *call)
{
	call->callback_context_bits = 0;
	call->buffer_context_bits = 0;
	sdk_call_exit(call, NULL);
}

/* All calls have the same record; ..._EXT has the callback's payload behind it, less its size. */
union any_call_buffer_record {
	rocprofiler_buffer_tracing_hip_api_record_t common;
	rocprofiler_buffer_tracing_hip_api_ext_record_t hip_ext;
	rocprofiler_buffer_tracing_rocdecode_api_ext_record_t rocdecode_ext;
	char room[512];
};

static void append_extended_call_record(struct sdk_buffer *buffer,
					union any_call_buffer_record *record,
					enum sdk_domain domain, const void *payload)
{
	size_t common = sizeof(record->common), more;
	uint64_t payload_size;

	memcpy(&payload_size, payload, sizeof(payload_size));
	more = payload_size - sizeof(payload_size);
	if (payload_size < sizeof(payload_size) || more > sizeof(*record) - common)
		return;
	memcpy(record->room + common, (const char *)payload + sizeof(payload_size), more);
	record->common.size = common + more;
	record->common.kind =
		(rocprofiler_buffer_tracing_kind_t)sdk_kinds_by_domain[domain].buffer_ext_kind;
	sdk_buffer_append_tracing_record(buffer, record->common.kind, record,
					 (uint32_t)(common + more), record->common.end_timestamp);
	record->common.size = common;
	record->common.kind =
		(rocprofiler_buffer_tracing_kind_t)sdk_kinds_by_domain[domain].buffer_kind;
}

KYMO_HOT static void append_call_records(struct sdk_call_state *call, uint64_t end,
					 const void *payload)
{
	union any_call_buffer_record record;

	record.common = (rocprofiler_buffer_tracing_hip_api_record_t){
		.size = sizeof(record.common),
		.kind = (rocprofiler_buffer_tracing_kind_t)sdk_kinds_by_domain[call->domain]
				.buffer_kind,
		.operation = call->operation,
		.correlation_id = {.internal = call->id, .ancestor = call->ancestor_id},
		.start_timestamp = call->start,
		.end_timestamp = end < call->start ? call->start : end,
		.thread_id = call->thread_id,
	};
	for (unsigned i = 0; i < call->seen_count; i++) {
		struct sdk_context_call_data_entry *seen = &call->seen[i];
		const struct sdk_context *context = sdk_context_get_by_bit(seen->context);
		const struct sdk_buffer_tracing_service *service =
			context->buffer_services[call->domain];
		const struct sdk_buffer_tracing_service *ext =
			context->ext_buffer_services[call->domain];

		if (!(call->buffer_context_bits >> seen->context & 1))
			continue;
		record.common.correlation_id.external = seen->external_id;
		if (service && sdk_operation_is_in_set(service->operations, call->operation))
			sdk_buffer_append_tracing_record(service->buffer, record.common.kind,
							 &record.common, sizeof(record.common),
							 record.common.end_timestamp);
		if (ext && sdk_operation_is_in_set(ext->operations, call->operation))
			append_extended_call_record(ext->buffer, &record, call->domain, payload);
	}
}

KYMO_HOT void sdk_call_exit(struct sdk_call_state *call, void *payload)
{
	uint64_t end = call->buffer_context_bits ? sdk_clock_read_now_ns() : 0;
	struct sdk_thread_state *thread = sdk_thread_get_or_create_own_state();
	bool busy;

	if (!thread)
		return;
	busy = thread->busy;
	thread->busy = true;
	if (call->callback_context_bits)
		report_call_phase(thread, call, ROCPROFILER_CALLBACK_PHASE_EXIT, payload);
	if (call->buffer_context_bits)
		append_call_records(call, end, payload);
	if (!call->is_detached)
		thread->call = call->outer;
	if (call->shared_correlation)
		sdk_correlation_release(thread, call->shared_correlation);
	else if (call->retirement_context_bits)
		sdk_correlation_report_retirement(call->id, call->retirement_context_bits);
	thread->busy = busy;
}
