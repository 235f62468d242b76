/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What calls and work in flight have in common: contexts that hear of an event, and telling them.
 */
#ifndef KYMO_LIBKYMO_SDK_CALLS_H
#define KYMO_LIBKYMO_SDK_CALLS_H

#include <string.h>

#include "libkymo-sdk/base/barrier.h"
#include "libkymo-sdk/base/thread.h"
#include "libkymo-sdk/context.h"

/* The thread, where what it does is to be told: not our own, not within a tool's function, not
 * within the record path already. NULL: not. sdk_thread_leave_recording() must follow. */
static inline struct sdk_thread_state *sdk_thread_try_enter_recording(void)
{
	struct sdk_thread_state *thread = sdk_thread_get_or_create_own_state();

	if (__builtin_expect(!thread || thread->is_profiler_thread ||
				     atomic_load_explicit(&thread->callback_context_plus_one,
							  memory_order_relaxed),
			     0))
		return NULL;
	if (__builtin_expect(thread->busy, 0)) {
		atomic_fetch_add_explicit(&sdk_signal_handler_lost_event_count, 1,
					  memory_order_relaxed);
		return NULL;
	}
	thread->busy = true;
	atomic_signal_fence(memory_order_seq_cst);
	return thread;
}

static inline void sdk_thread_leave_recording(struct sdk_thread_state *thread)
{
	atomic_signal_fence(memory_order_seq_cst);
	thread->busy = false;
}

/* Those of `contexts` that want callbacks; that want records. */
static inline uint64_t
sdk_contexts_select_wanting_callbacks(uint64_t contexts, enum sdk_domain domain, int32_t operation)
{
	uint64_t wanted = 0;

	for (contexts &= sdk_domain_get_callback_context_bits(domain); contexts;
	     contexts &= contexts - 1) {
		unsigned bit = (unsigned)__builtin_ctzll(contexts);

		if (sdk_operation_is_in_set(
			    sdk_context_get_by_bit(bit)->callback_services[domain]->operations,
			    operation))
			wanted |= (uint64_t)1 << bit;
	}
	return wanted;
}

static inline uint64_t
sdk_contexts_select_wanting_records(uint64_t contexts, enum sdk_domain domain, int32_t operation)
{
	uint64_t wanted = 0;

	for (contexts &= sdk_domain_get_buffer_context_bits(domain); contexts;
	     contexts &= contexts - 1) {
		unsigned bit = (unsigned)__builtin_ctzll(contexts);
		const struct sdk_context *context = sdk_context_get_by_bit(bit);
		const struct sdk_buffer_tracing_service *plain = context->buffer_services[domain];
		const struct sdk_buffer_tracing_service *ext = context->ext_buffer_services[domain];

		if ((plain && sdk_operation_is_in_set(plain->operations, operation)) ||
		    (ext && sdk_operation_is_in_set(ext->operations, operation)))
			wanted |= (uint64_t)1 << bit;
	}
	return wanted;
}

/* Sets kind, operation and phase, each 8 bytes by one store: what is copied by loads of 8 bytes
 * right after it must not have been made of smaller stores. */
static inline void
sdk_callback_record_set_kind_and_phase(rocprofiler_callback_tracing_record_t *record, int kind,
				       int32_t operation, rocprofiler_callback_phase_t phase)
{
	uint64_t words[2] = {(uint32_t)kind | (uint64_t)(uint32_t)operation << 32, phase};

	memcpy((char *)record + offsetof(rocprofiler_callback_tracing_record_t, kind), words,
	       sizeof(words));
}

/* Calls the context's function. record->context_id is set here. What
 * sdk_tool_callback_guard_try_enter() does, for a thread and a context that are at hand. */
static inline void sdk_context_call_tool_callback(struct sdk_thread_state *thread, unsigned bit,
						  enum sdk_domain domain,
						  rocprofiler_callback_tracing_record_t *record,
						  rocprofiler_user_data_t *user_data)
{
	const struct sdk_context *context = sdk_context_get_by_bit(bit);
	const struct sdk_callback_tracing_service *service = context->callback_services[domain];
	uint32_t before =
		atomic_load_explicit(&thread->callback_context_plus_one, memory_order_relaxed);
	bool busy = thread->busy;

	atomic_store_explicit(&thread->callback_context_plus_one, bit + 1, memory_order_relaxed);
	sdk_fence_calling_thread();
	if (__builtin_expect(!atomic_load_explicit(&context->closed_by, memory_order_acquire), 1) ||
	    sdk_context_wait_until_open(context, thread, before)) {
		record->context_id.handle = context->id;
		thread->busy = false;
		service->callback(*record, user_data, service->data);
		thread->busy = busy;
	}
	atomic_store_explicit(&thread->callback_context_plus_one, before, memory_order_release);
}

#endif
