/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * External correlation ids: a stack per context and thread, which tools push to and pop from, for
 * their own thread or for another one. The top is read on the record path, without a lock.
 */
#ifndef KYMO_LIBKYMO_SDK_EXTERNAL_H
#define KYMO_LIBKYMO_SDK_EXTERNAL_H

#include "libkymo-sdk/context.h"

struct sdk_thread;
struct sdk_external;

/* The thread has ended: its stacks are its successor's, if it gets the same number. */
void sdk_external_release(struct sdk_external *external);
void sdk_external_forked(void);

/* The top of the calling thread's stack; a thread without one has the main thread's. */
rocprofiler_user_data_t sdk_external_top(struct sdk_thread *thread,
					 const struct sdk_context *context);

/* Asks the context's request function, where it has one for the domain. false: it has none, or has
 * no answer. */
bool sdk_external_request(struct sdk_context *context, uint64_t tid, enum sdk_domain domain,
			  int32_t operation, uint64_t internal, rocprofiler_user_data_t *external);
/* By the context's request function, else from the stack. */
void sdk_external_get(struct sdk_thread *thread, struct sdk_context *context,
		      enum sdk_domain domain, int32_t operation, uint64_t internal,
		      struct sdk_seen *seen);

#endif
