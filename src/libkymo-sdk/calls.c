/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Calls of runtimes: ENTER and EXIT; see emit.h.
 *
 * Contexts are looked up once, at the entry; the exit goes to the same ones. External ids are asked
 * for before ENTER is told, and read again behind it, because a tool may push one there.
 */
#include "libkymo-sdk/calls.h"

#include <string.h>

#include "common/hot.h"
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/correlation.h"
#include "libkymo-sdk/external.h"

/* ENTER or EXIT to everybody who wants callbacks. */
KYMO_HOT static void call_tell(struct sdk_thread *thread, struct sdk_call *call,
			       rocprofiler_callback_phase_t phase, void *payload)
{
	rocprofiler_callback_tracing_record_t record = {
		.thread_id = call->thread_id,
		.correlation_id = {.internal = call->id, .ancestor = call->ancestor},
		.payload = payload,
	};

	sdk_record_set(&record, sdk_domains[call->domain].callback, call->operation, phase);
	for (unsigned i = 0; i < call->seen_count; i++) {
		struct sdk_seen *seen = &call->seen[i];

		if (!(call->callback_contexts >> seen->context & 1))
			continue;
		record.correlation_id.external = seen->external;
		sdk_tell(thread, seen->context, call->domain, &record, &seen->user_data);
	}
}

static void call_see_contexts(struct sdk_thread *thread, struct sdk_call *call)
{
	uint64_t contexts = call->callback_contexts | call->buffer_contexts;

	call->seen_count = 0;
	for (; contexts; contexts &= contexts - 1) {
		struct sdk_seen *seen = &call->seen[call->seen_count++];

		seen->context = (uint8_t)__builtin_ctzll(contexts);
		seen->user_data.value = 0;
		sdk_external_get(thread, sdk_context_at(seen->context), call->domain,
				 call->operation, call->id, seen);
	}
}

static void call_see_pushed(struct sdk_thread *thread, struct sdk_call *call)
{
	for (unsigned i = 0; i < call->seen_count; i++) {
		struct sdk_seen *seen = &call->seen[i];

		if (!seen->by_request)
			seen->external = sdk_external_top(thread, sdk_context_at(seen->context));
	}
}

/* first: the same call as one of another domain, which has its id and its end; or NULL. */
static void call_identify(struct sdk_thread *thread, struct sdk_call *call,
			  const struct sdk_call *first, uint64_t active)
{
	if (first) {
		call->id = first->id;
		call->ancestor = first->ancestor;
		call->retire_contexts = 0;
		return;
	}
	call->id = sdk_correlation_next(thread);
	call->ancestor = thread->call ? thread->call->id : 0;
	call->retire_contexts = active & sdk_with_buffers(SDK_DOMAIN_RETIREMENT);
}

KYMO_HOT static bool call_enter(struct sdk_call *call, enum sdk_domain domain, int32_t operation,
				void *payload, bool detached, const struct sdk_call *first,
				rocprofiler_callback_phase_t phase)
{
	struct sdk_thread *thread = sdk_wants(domain, operation) ? sdk_record_begin() : NULL;
	uint64_t active;

	if (!thread)
		return false;
	active = sdk_active_contexts();
	call->callback_contexts = sdk_callbacks_for(active, domain, operation);
	call->buffer_contexts = sdk_buffers_for(active, domain, operation);
	if (!(call->callback_contexts | call->buffer_contexts)) {
		sdk_record_end(thread);
		return false;
	}
	call->domain = domain;
	call->operation = operation;
	call->thread_id = thread->tid;
	call_identify(thread, call, first, active);
	call->shared = NULL;
	call->detached = detached;
	call->outer = thread->call;
	if (!detached)
		thread->call = call;
	call_see_contexts(thread, call);
	if (call->callback_contexts) {
		call_tell(thread, call, phase, payload);
		call_see_pushed(thread, call);
	}
	call->start = call->buffer_contexts ? sdk_now() : 0;
	sdk_record_end(thread);
	return true;
}

KYMO_HOT bool sdk_call_enter(struct sdk_call *call, enum sdk_domain domain, int32_t operation,
			     void *payload)
{
	return call_enter(call, domain, operation, payload, false, NULL,
			  ROCPROFILER_CALLBACK_PHASE_ENTER);
}

bool sdk_call_enter_detached(struct sdk_call *call, enum sdk_domain domain, int32_t operation,
			     void *payload)
{
	return call_enter(call, domain, operation, payload, true, NULL,
			  ROCPROFILER_CALLBACK_PHASE_ENTER);
}

bool sdk_call_enter_as(struct sdk_call *call, const struct sdk_call *first, enum sdk_domain domain,
		       int32_t operation, void *payload)
{
	return call_enter(call, domain, operation, payload, true, first,
			  ROCPROFILER_CALLBACK_PHASE_ENTER);
}

bool sdk_call_instant(struct sdk_call *call, enum sdk_domain domain, int32_t operation,
		      void *payload)
{
	return call_enter(call, domain, operation, payload, true, NULL,
			  ROCPROFILER_CALLBACK_PHASE_NONE);
}

void sdk_call_instant_end(struct sdk_call *call)
{
	call->callback_contexts = 0;
	call->buffer_contexts = 0;
	sdk_call_exit(call, NULL);
}

/* All calls have the same record; ..._EXT has the callback's payload behind it, less its size. */
union call_record {
	rocprofiler_buffer_tracing_hip_api_record_t common;
	rocprofiler_buffer_tracing_hip_api_ext_record_t hip_ext;
	rocprofiler_buffer_tracing_rocdecode_api_ext_record_t rocdecode_ext;
	char room[512];
};

static void call_put_ext(struct sdk_buffer *buffer, union call_record *record,
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
	record->common.kind = (rocprofiler_buffer_tracing_kind_t)sdk_domains[domain].buffer_ext;
	sdk_buffer_put_tracing(buffer, record->common.kind, record, (uint32_t)(common + more),
			       record->common.end_timestamp);
	record->common.size = common;
	record->common.kind = (rocprofiler_buffer_tracing_kind_t)sdk_domains[domain].buffer;
}

KYMO_HOT static void call_put(struct sdk_call *call, uint64_t end, const void *payload)
{
	union call_record record;

	record.common = (rocprofiler_buffer_tracing_hip_api_record_t){
		.size = sizeof(record.common),
		.kind = (rocprofiler_buffer_tracing_kind_t)sdk_domains[call->domain].buffer,
		.operation = call->operation,
		.correlation_id = {.internal = call->id, .ancestor = call->ancestor},
		.start_timestamp = call->start,
		.end_timestamp = end < call->start ? call->start : end,
		.thread_id = call->thread_id,
	};
	for (unsigned i = 0; i < call->seen_count; i++) {
		struct sdk_seen *seen = &call->seen[i];
		const struct sdk_context *context = sdk_context_at(seen->context);
		const struct sdk_buffer_service *service = context->buffers[call->domain];
		const struct sdk_buffer_service *ext = context->ext_buffers[call->domain];

		if (!(call->buffer_contexts >> seen->context & 1))
			continue;
		record.common.correlation_id.external = seen->external;
		if (service && sdk_operation_is_in(service->operations, call->operation))
			sdk_buffer_put_tracing(service->buffer, record.common.kind, &record.common,
					       sizeof(record.common), record.common.end_timestamp);
		if (ext && sdk_operation_is_in(ext->operations, call->operation))
			call_put_ext(ext->buffer, &record, call->domain, payload);
	}
}

KYMO_HOT void sdk_call_exit(struct sdk_call *call, void *payload)
{
	uint64_t end = call->buffer_contexts ? sdk_now() : 0;
	struct sdk_thread *thread = sdk_thread_self();
	bool busy;

	if (!thread)
		return;
	busy = thread->busy;
	thread->busy = true;
	if (call->callback_contexts)
		call_tell(thread, call, ROCPROFILER_CALLBACK_PHASE_EXIT, payload);
	if (call->buffer_contexts)
		call_put(call, end, payload);
	if (!call->detached)
		thread->call = call->outer;
	if (call->shared)
		sdk_correlation_drop(thread, call->shared);
	else if (call->retire_contexts)
		sdk_correlation_retire(call->id, call->retire_contexts);
	thread->busy = busy;
}
