/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Internal correlation ids. A call has one; work that it starts shares it, and it is retired when
 * the call has returned and the last of the work is told. Only a call that starts work needs an
 * object that outlives it.
 */
#ifndef KYMO_LIBKYMO_SDK_CORRELATION_H
#define KYMO_LIBKYMO_SDK_CORRELATION_H

#include "libkymo-sdk/emit.h"
#include "libkymo-sdk/pool.h"

struct sdk_thread;

struct sdk_correlation {
	struct sdk_pooled pooled;
	_Atomic uint32_t references;
	uint64_t id, retire_contexts;
};

/* The next id of this process, from 1. Threads take them by the dozen. */
uint64_t sdk_correlation_next(struct sdk_thread *thread);
/* With one more reference, of the innermost call; without one, of a new id. NULL: no memory. */
struct sdk_correlation *sdk_correlation_share(struct sdk_thread *thread);
/* The last reference retires the id. */
void sdk_correlation_drop(struct sdk_thread *thread, struct sdk_correlation *correlation);
void sdk_correlation_retire(uint64_t id, uint64_t contexts);

#endif
