/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Buffers of tools: two arenas, one in use, and what happens when it is full. Only the buffer's
 * callback thread takes records out (callback_thread.h), so nothing is held meanwhile.
 */
#ifndef KYMO_LIBKYMO_SDK_BUFFER_H
#define KYMO_LIBKYMO_SDK_BUFFER_H

#include "libkymo-sdk/base/arena.h"
#include "libkymo-sdk/emit.h"

struct sdk_callback_thread;

struct sdk_buffer {
	uint64_t id;
	rocprofiler_context_id_t context;
	uint32_t client_id;
	uint64_t watermark_bytes;
	rocprofiler_buffer_policy_t policy;
	rocprofiler_buffer_tracing_cb_t callback;
	void *callback_data;
	struct arena arenas[2];
	_Atomic uint32_t arena_in_use_index;           /* which arena */
	_Atomic uint32_t state[2];                     /* of the arenas; buffer.c */
	_Atomic uint64_t dropped_since_callback_count; /* since the last callback */
	_Atomic uint64_t dropped_total_count;
	_Atomic uint32_t wanted;     /* what the callback thread is to do; buffer.c */
	_Atomic uint32_t generation; /* bumped whenever an arena was emptied; a futex */
	_Atomic uint64_t flush_ticket_requested, flush_ticket_done;
	_Atomic bool is_destroyed, is_being_emptied;
	_Atomic(struct sdk_callback_thread *) thread;
};

/* time: by which records of several threads are put in order. It is read without a fence: what
 * two threads put within nanoseconds of each other may stand either way. */
void sdk_buffer_append_records(struct sdk_buffer *buffer, const struct arena_record *records,
			       uint32_t count, uint64_t time);

static inline void sdk_buffer_append_tracing_record(struct sdk_buffer *buffer, uint32_t kind,
						    const void *payload, uint32_t size,
						    uint64_t time)
{
	struct arena_record record = {ROCPROFILER_BUFFER_CATEGORY_TRACING, kind, size, payload};

	sdk_buffer_append_records(buffer, &record, 1, time);
}

/* NULL: no such buffer, or a destroyed one. */
struct sdk_buffer *sdk_buffer_find_by_id(uint64_t id);
/* Everything put before is handed over before it returns. false: it cannot be waited for here (the
 * buffer's own callback), or is not done within timeout_ns. */
bool sdk_buffer_flush(struct sdk_buffer *buffer, uint64_t timeout_ns);
/* Flushes the buffers of one client (0: of all). */
bool sdk_buffers_flush_of_client(uint32_t client, uint64_t timeout_ns);
void sdk_buffers_destroy_of_client(uint32_t client);
/* By the callback thread. */
void sdk_buffer_deliver_records(struct sdk_buffer *buffer);
/* Buffers that ever were, by number from 0. */
uint32_t sdk_buffers_get_count(void);
struct sdk_buffer *sdk_buffer_get_by_number(uint32_t number);
void sdk_buffers_reset_after_fork(void);

#endif
