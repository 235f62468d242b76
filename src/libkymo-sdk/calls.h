/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What calls and work in flight have in common: contexts that hear of an event, and telling them.
 */
#ifndef KYMO_LIBKYMO_SDK_CALLS_H
#define KYMO_LIBKYMO_SDK_CALLS_H

#include <string.h>

#include "libkymo-sdk/barrier.h"
#include "libkymo-sdk/context.h"
#include "libkymo-sdk/thread.h"

/* The thread, where what it does is to be told: not our own, not within a tool's function, not
 * within the record path already. NULL: not. sdk_record_end() must follow. */
static inline struct sdk_thread *sdk_record_begin(void)
{
	struct sdk_thread *thread = sdk_thread_self();

	if (__builtin_expect(
		    !thread || thread->is_own ||
			    atomic_load_explicit(&thread->in_callback, memory_order_relaxed),
		    0))
		return NULL;
	if (__builtin_expect(thread->busy, 0)) {
		atomic_fetch_add_explicit(&sdk_thread_lost, 1, memory_order_relaxed);
		return NULL;
	}
	thread->busy = true;
	atomic_signal_fence(memory_order_seq_cst);
	return thread;
}

static inline void sdk_record_end(struct sdk_thread *thread)
{
	atomic_signal_fence(memory_order_seq_cst);
	thread->busy = false;
}

/* Of these contexts, those that want callbacks; records. */
static inline uint64_t sdk_callbacks_for(uint64_t contexts, enum sdk_domain domain,
					 int32_t operation)
{
	uint64_t wanted = 0;

	for (contexts &= sdk_with_callbacks(domain); contexts; contexts &= contexts - 1) {
		unsigned bit = (unsigned)__builtin_ctzll(contexts);

		if (sdk_operation_is_in(sdk_context_at(bit)->callbacks[domain]->operations,
					operation))
			wanted |= (uint64_t)1 << bit;
	}
	return wanted;
}

static inline uint64_t sdk_buffers_for(uint64_t contexts, enum sdk_domain domain, int32_t operation)
{
	uint64_t wanted = 0;

	for (contexts &= sdk_with_buffers(domain); contexts; contexts &= contexts - 1) {
		unsigned bit = (unsigned)__builtin_ctzll(contexts);
		const struct sdk_context *context = sdk_context_at(bit);
		const struct sdk_buffer_service *plain = context->buffers[domain];
		const struct sdk_buffer_service *ext = context->ext_buffers[domain];

		if ((plain && sdk_operation_is_in(plain->operations, operation)) ||
		    (ext && sdk_operation_is_in(ext->operations, operation)))
			wanted |= (uint64_t)1 << bit;
	}
	return wanted;
}

/* Sets kind, operation and phase, each 8 bytes by one store: what is copied by loads of 8 bytes
 * right after it must not have been made of smaller stores. */
static inline void sdk_record_set(rocprofiler_callback_tracing_record_t *record, int kind,
				  int32_t operation, rocprofiler_callback_phase_t phase)
{
	uint64_t words[2] = {(uint32_t)kind | (uint64_t)(uint32_t)operation << 32, phase};

	memcpy((char *)record + offsetof(rocprofiler_callback_tracing_record_t, kind), words,
	       sizeof(words));
}

/* Calls the context's function. record->context_id is set here. What sdk_tool_enter() does, for a
 * thread and a context that are at hand. */
static inline void sdk_tell(struct sdk_thread *thread, unsigned bit, enum sdk_domain domain,
			    rocprofiler_callback_tracing_record_t *record,
			    rocprofiler_user_data_t *user_data)
{
	const struct sdk_context *context = sdk_context_at(bit);
	const struct sdk_callback_service *service = context->callbacks[domain];
	uint32_t before = atomic_load_explicit(&thread->in_callback, memory_order_relaxed);
	bool busy = thread->busy;

	atomic_store_explicit(&thread->in_callback, bit + 1, memory_order_relaxed);
	sdk_barrier_own();
	if (__builtin_expect(!atomic_load_explicit(&context->is_closed, memory_order_acquire), 1)) {
		record->context_id.handle = context->id;
		thread->busy = false;
		service->callback(*record, user_data, service->data);
		thread->busy = busy;
	}
	atomic_store_explicit(&thread->in_callback, before, memory_order_release);
}

#endif
