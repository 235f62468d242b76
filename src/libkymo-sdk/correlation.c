/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See correlation.h.
 */
#include "libkymo-sdk/correlation.h"

#include "common/hot.h"
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/context.h"
#include "libkymo-sdk/thread.h"

#define CORRELATION_STOCK 64

static _Atomic uint64_t correlation_last;

KYMO_HOT uint64_t sdk_correlation_next(struct sdk_thread *thread)
{
	if (thread->id_next == thread->id_end) {
		thread->id_next =
			1 + atomic_fetch_add_explicit(&correlation_last, CORRELATION_STOCK,
						      memory_order_relaxed);
		thread->id_end = thread->id_next + CORRELATION_STOCK;
	}
	return thread->id_next++;
}

KYMO_HOT struct sdk_correlation *sdk_correlation_share(struct sdk_thread *thread)
{
	struct sdk_call *call = thread->call;
	struct sdk_correlation *correlation;

	if (call && call->shared) {
		atomic_fetch_add_explicit(&call->shared->references, 1, memory_order_relaxed);
		return call->shared;
	}
	correlation = sdk_pool_take(&thread->correlations, sizeof(*correlation));
	if (!correlation)
		return NULL;
	if (call) {
		correlation->id = call->id;
		correlation->retire_contexts = call->retire_contexts;
		atomic_store_explicit(&correlation->references, 2, memory_order_relaxed);
		call->shared = correlation;
	} else {
		correlation->id = sdk_correlation_next(thread);
		correlation->retire_contexts =
			sdk_active_contexts() & sdk_with_buffers(SDK_DOMAIN_RETIREMENT);
		atomic_store_explicit(&correlation->references, 1, memory_order_relaxed);
	}
	return correlation;
}

KYMO_HOT void sdk_correlation_drop(struct sdk_thread *thread, struct sdk_correlation *correlation)
{
	/* Whoever holds the only reference is the only one who could make another. */
	if (atomic_load_explicit(&correlation->references, memory_order_acquire) != 1 &&
	    atomic_fetch_sub_explicit(&correlation->references, 1, memory_order_acq_rel) != 1)
		return;
	sdk_correlation_retire(correlation->id, correlation->retire_contexts);
	sdk_pool_give(correlation, thread ? &thread->correlations : NULL);
}

void sdk_correlation_retire(uint64_t id, uint64_t contexts)
{
	rocprofiler_buffer_tracing_correlation_id_retirement_record_t record = {
		.size = sizeof(record),
		.kind = ROCPROFILER_BUFFER_TRACING_CORRELATION_ID_RETIREMENT,
		.internal_correlation_id = id,
	};

	if (!contexts)
		return;
	record.timestamp = sdk_now();
	for (; contexts; contexts &= contexts - 1) {
		const struct sdk_context *context =
			sdk_context_at((unsigned)__builtin_ctzll(contexts));

		sdk_buffer_put_tracing(context->buffers[SDK_DOMAIN_RETIREMENT]->buffer, record.kind,
				       &record, sizeof(record), record.timestamp);
	}
}
