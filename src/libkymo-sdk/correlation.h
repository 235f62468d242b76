/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Internal correlation ids. A call has one; work that it starts shares it, and it is retired when
 * the call has returned and the last of the work is reported. Only a call that starts work needs an
 * object that outlives it.
 */
#ifndef KYMO_LIBKYMO_SDK_CORRELATION_H
#define KYMO_LIBKYMO_SDK_CORRELATION_H

#include "libkymo-sdk/base/pool.h"
#include "libkymo-sdk/emit.h"

struct sdk_thread_state;

struct sdk_correlation {
	struct sdk_pooled_object_header pooled_object;
	_Atomic uint32_t references;
	uint64_t id, retirement_context_bits;
};

/* The next id of this process, from 1, without gaps. */
uint64_t sdk_correlation_allocate_id(struct sdk_thread_state *thread);
void sdk_correlation_ids_reset_after_fork(void);
/* With one more reference, of the innermost call; without one, of a new id. NULL: no memory. */
struct sdk_correlation *sdk_correlation_acquire_or_create(struct sdk_thread_state *thread);
/* The last reference retires the id. */
void sdk_correlation_release(struct sdk_thread_state *thread, struct sdk_correlation *correlation);
void sdk_correlation_report_retirement(uint64_t id, uint64_t contexts);

#endif
