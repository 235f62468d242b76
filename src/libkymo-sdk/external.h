/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * External correlation ids: a stack per context and thread, which tools push to and pop from, for
 * their own thread or for another one. The top is read on the record path, without a lock.
 */
#ifndef KYMO_LIBKYMO_SDK_EXTERNAL_H
#define KYMO_LIBKYMO_SDK_EXTERNAL_H

#include "libkymo-sdk/context.h"
#include "libkymo-sdk/thread.h"

struct sdk_external;

/* The thread has ended: its stacks are its successor's, if it gets the same number. */
void sdk_external_release(struct sdk_external *external);
void sdk_external_forked(void);

rocprofiler_user_data_t sdk_external_find_top(struct sdk_thread *thread,
					      const struct sdk_context *context);

/* The top of the calling thread's stack; a thread without one has the main thread's. */
static inline rocprofiler_user_data_t sdk_external_top(struct sdk_thread *thread,
						       const struct sdk_context *context)
{
	if (__builtin_expect(!atomic_load_explicit(&context->has_external, memory_order_acquire),
			     1))
		return (rocprofiler_user_data_t){.value = 0};
	return sdk_external_find_top(thread, context);
}

/* Asks the context's request function, where it has one for the domain. false: it has none, or has
 * no answer. */
bool sdk_external_request(struct sdk_context *context, uint64_t tid, enum sdk_domain domain,
			  int32_t operation, uint64_t internal, rocprofiler_user_data_t *external);

/* By the context's request function, else from the stack. */
static inline void sdk_external_get(struct sdk_thread *thread, struct sdk_context *context,
				    enum sdk_domain domain, int32_t operation, uint64_t internal,
				    struct sdk_seen *seen)
{
	seen->by_request = atomic_load_explicit(&context->request, memory_order_relaxed) &&
			   sdk_external_request(context, thread->tid, domain, operation, internal,
						&seen->external);
	if (!seen->by_request)
		seen->external = sdk_external_top(thread, context);
}

#endif
