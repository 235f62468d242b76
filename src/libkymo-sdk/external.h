/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * External correlation ids: a stack per context and thread, which tools push to and pop from, for
 * their own thread or for another one. The top is read on the record path, without a lock.
 */
#ifndef KYMO_LIBKYMO_SDK_EXTERNAL_H
#define KYMO_LIBKYMO_SDK_EXTERNAL_H

#include "libkymo-sdk/base/thread.h"
#include "libkymo-sdk/context.h"

struct sdk_thread_external_id_stacks;

void sdk_external_ids_reset_after_fork(void);

rocprofiler_user_data_t sdk_external_id_find_stack_top(struct sdk_thread_state *thread,
						       const struct sdk_context *context);

/* The top of the calling thread's stack; a thread without one has the main thread's. */
static inline rocprofiler_user_data_t
sdk_external_id_get_stack_top(struct sdk_thread_state *thread, const struct sdk_context *context)
{
	if (__builtin_expect(
		    !atomic_load_explicit(&context->has_pushed_external_ids, memory_order_acquire),
		    1))
		return (rocprofiler_user_data_t){.value = 0};
	return sdk_external_id_find_stack_top(thread, context);
}

/* Asks the context's request function, where it has one for the domain. false: it has none, or has
 * no answer. */
bool sdk_external_id_request_from_tool(struct sdk_context *context, uint64_t tid,
				       enum sdk_domain domain, int32_t operation, uint64_t internal,
				       rocprofiler_user_data_t *external);

/* By the context's request function, else from the stack. */
static inline void sdk_external_id_fill_entry(struct sdk_thread_state *thread,
					      struct sdk_context *context, enum sdk_domain domain,
					      int32_t operation, uint64_t internal,
					      struct sdk_context_call_data_entry *seen)
{
	seen->is_external_id_requested =
		atomic_load_explicit(&context->external_id_request_service, memory_order_relaxed) &&
		sdk_external_id_request_from_tool(context, thread->tid, domain, operation, internal,
						  &seen->external_id);
	if (!seen->is_external_id_requested)
		seen->external_id = sdk_external_id_get_stack_top(thread, context);
}

/* Of work that is launched by the calling thread: by the context's function for launches. False: it
 * has none. */
static inline bool sdk_launch_id_fill(const struct sdk_context *context,
				      rocprofiler_user_data_t *external)
{
	uint64_t (*callback)(void *data) =
		atomic_load_explicit(&context->launch_id_callback, memory_order_acquire);

	if (__builtin_expect(!callback, 1))
		return false;
	external->value = callback(context->launch_id_data);
	return true;
}

#endif
