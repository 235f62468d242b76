/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See correlation.h.
 */
#include "libkymo-sdk/correlation.h"

#include "common/hot.h"
#include "libkymo-sdk/base/id_source.h"
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/context.h"

static struct sdk_id_source correlation_ids;

KYMO_HOT uint64_t sdk_correlation_allocate_id(struct sdk_thread_state *thread)
{
	return sdk_id_source_take(&correlation_ids, thread);
}

void sdk_correlation_ids_reset_after_fork(void)
{
	sdk_id_source_reset_after_fork(&correlation_ids);
}

KYMO_HOT struct sdk_correlation *sdk_correlation_acquire_or_create(struct sdk_thread_state *thread)
{
	struct sdk_call_state *call = thread->call;
	struct sdk_correlation *correlation;

	if (call && call->shared_correlation) {
		atomic_fetch_add_explicit(&call->shared_correlation->references, 1,
					  memory_order_relaxed);
		return call->shared_correlation;
	}
	correlation = sdk_object_pool_take(&thread->correlation_pool, sizeof(*correlation));
	if (!correlation)
		return NULL;
	if (call) {
		correlation->id = call->id;
		correlation->retirement_context_bits = call->retirement_context_bits;
		atomic_store_explicit(&correlation->references, 2, memory_order_relaxed);
		call->shared_correlation = correlation;
	} else {
		correlation->id = sdk_correlation_allocate_id(thread);
		correlation->retirement_context_bits =
			sdk_contexts_get_active_bits() &
			sdk_domain_get_buffer_context_bits(SDK_DOMAIN_RETIREMENT);
		atomic_store_explicit(&correlation->references, 1, memory_order_relaxed);
	}
	return correlation;
}

KYMO_HOT void sdk_correlation_release(struct sdk_thread_state *thread,
				      struct sdk_correlation *correlation)
{
	/* Whoever holds the only reference is the only one who could make another. */
	if (atomic_load_explicit(&correlation->references, memory_order_acquire) != 1 &&
	    atomic_fetch_sub_explicit(&correlation->references, 1, memory_order_acq_rel) != 1)
		return;
	sdk_correlation_report_retirement(correlation->id, correlation->retirement_context_bits);
	sdk_object_pool_return(correlation, thread ? &thread->correlation_pool : NULL);
}

void sdk_correlation_report_retirement(uint64_t id, uint64_t contexts)
{
	rocprofiler_buffer_tracing_correlation_id_retirement_record_t record = {
		.size = sizeof(record),
		.kind = ROCPROFILER_BUFFER_TRACING_CORRELATION_ID_RETIREMENT,
		.internal_correlation_id = id,
	};

	if (!contexts)
		return;
	record.timestamp = sdk_clock_read_now_ns();
	for (; contexts; contexts &= contexts - 1) {
		const struct sdk_context *context =
			sdk_context_get_by_bit((unsigned)__builtin_ctzll(contexts));

		sdk_buffer_append_tracing_record(
			context->buffer_services[SDK_DOMAIN_RETIREMENT]->buffer, record.kind,
			&record, sizeof(record), record.timestamp);
	}
}
