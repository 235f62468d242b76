/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See buffer.h.
 */
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/base/keep_loaded.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/hot.h"
#include "core/base/futex.h"
#include "core/base/ticks.h"
#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/base/thread.h"
#include "libkymo-sdk/callback_thread.h"
#include "libkymo-sdk/context.h"

#define BUFFERS_MAX            4096
#define BUFFER_SIZE_MAX        ((size_t)16 << 30)
#define BUFFER_RECHECK_WAIT_NS 20000000u

/* What an arena is. */
enum {
	RECORD_BUFFER_STATE_FREE,
	RECORD_BUFFER_STATE_IN_USE,
	RECORD_BUFFER_STATE_TO_BE_EMPTIED /* to be emptied */
};
/* What the callback thread is to do. */
enum { DELIVER_WAITING_RECORD_BUFFER = 1, DELIVER_CURRENT_RECORD_BUFFER = 2 };

static _Atomic(struct sdk_buffer *) registered_buffers[BUFFERS_MAX];
static _Atomic uint32_t registered_buffer_count;

uint32_t sdk_buffers_get_count(void)
{
	return atomic_load_explicit(&registered_buffer_count, memory_order_acquire);
}

struct sdk_buffer *sdk_buffer_get_by_number(uint32_t number)
{
	return atomic_load_explicit(&registered_buffers[number], memory_order_acquire);
}

struct sdk_buffer *sdk_buffer_find_by_id(uint64_t id)
{
	uint64_t number = id - sdk_get_handle_base() - 1;
	struct sdk_buffer *buffer = number < sdk_buffers_get_count()
					    ? sdk_buffer_get_by_number((uint32_t)number)
					    : NULL;

	return buffer && !atomic_load_explicit(&buffer->is_destroyed, memory_order_acquire) ? buffer
											    : NULL;
}

/* ---- putting ---- */

static void request_buffer_delivery(struct sdk_buffer *buffer, uint32_t what)
{
	if ((atomic_load_explicit(&buffer->wanted, memory_order_relaxed) & what) == what)
		return;
	atomic_fetch_or_explicit(&buffer->wanted, what, memory_order_release);
	sdk_callback_thread_request_work(
		atomic_load_explicit(&buffer->thread, memory_order_acquire), buffer);
}

/* Takes the other arena into use. false: it has not been emptied yet. If that is free, `used` still
 * is the one in use: one of both always is. */
static bool buffer_swap_record_buffer(struct sdk_buffer *buffer, uint32_t used)
{
	uint32_t other = !used, expected = RECORD_BUFFER_STATE_FREE;

	if (!atomic_compare_exchange_strong(&buffer->state[other], &expected,
					    RECORD_BUFFER_STATE_IN_USE))
		return false;
	record_buffer_open(&buffer->arenas[other]);
	atomic_store(&buffer->arena_in_use_index, other);
	atomic_store(&buffer->state[used], RECORD_BUFFER_STATE_TO_BE_EMPTIED);
	return true;
}

/* The arena in use is full. false: the records are to be dropped. */
static bool swap_record_buffer_or_wait_for_room(struct sdk_buffer *buffer, uint32_t used)
{
	uint32_t generation;

	if (buffer->policy != ROCPROFILER_BUFFER_POLICY_LOSSLESS)
		return false;
	generation = atomic_load(&buffer->generation);
	if (atomic_load(&buffer->arena_in_use_index) != used)
		return true;
	if (buffer_swap_record_buffer(buffer, used)) {
		request_buffer_delivery(buffer, DELIVER_WAITING_RECORD_BUFFER);
		return true;
	}
	request_buffer_delivery(buffer, DELIVER_WAITING_RECORD_BUFFER);
	futex_wait(&buffer->generation, generation, BUFFER_RECHECK_WAIT_NS);
	return true;
}

static void add_to_dropped_record_counts(struct sdk_buffer *buffer, uint32_t count)
{
	atomic_fetch_add_explicit(&buffer->dropped_since_callback_count, count,
				  memory_order_relaxed);
	atomic_fetch_add_explicit(&buffer->dropped_total_count, count, memory_order_relaxed);
}

KYMO_HOT void sdk_buffer_append_records(struct sdk_buffer *buffer,
					const struct arena_record *records, uint32_t count,
					uint64_t time)
{
	struct sdk_thread_state *thread = sdk_thread_get_or_create_own_state();
	uint64_t in_arena;

	while (!atomic_load_explicit(&buffer->is_destroyed, memory_order_relaxed)) {
		uint32_t used =
			atomic_load_explicit(&buffer->arena_in_use_index, memory_order_acquire);
		enum record_buffer_append_result result = record_buffer_append_records(
			&buffer->arenas[used], thread ? thread->number : 0, records, count, time,
			&in_arena);

		if (__builtin_expect(result == RECORD_BUFFER_APPENDED, 1)) {
			if (in_arena >= buffer->watermark_bytes)
				request_buffer_delivery(buffer, DELIVER_CURRENT_RECORD_BUFFER);
			return;
		}
		if (result == RECORD_BUFFER_NO_MEMORY ||
		    (result == RECORD_BUFFER_FULL &&
		     !swap_record_buffer_or_wait_for_room(buffer, used))) {
			add_to_dropped_record_counts(buffer, count);
			return;
		}
	}
}

/* ---- taking out ---- */

static void deliver_records_of_record_buffer(struct sdk_buffer *buffer, uint32_t number)
{
	struct arena *arena = &buffer->arenas[number];
	rocprofiler_record_header_t **list;
	size_t count = record_buffer_close_and_list_headers(arena, &list);
	uint32_t before;

	if (arena->lost)
		add_to_dropped_record_counts(buffer, (uint32_t)arena->lost);
	if (count && sdk_tool_callback_guard_try_enter(
			     sdk_context_find_by_id(buffer->context.handle), &before)) {
		buffer->callback(buffer->context, (rocprofiler_buffer_id_t){buffer->id}, list,
				 count, buffer->callback_data,
				 atomic_exchange(&buffer->dropped_since_callback_count, 0));
		sdk_tool_callback_guard_leave(before);
	}
	record_buffer_reset(arena);
	atomic_store(&buffer->state[number], RECORD_BUFFER_STATE_FREE);
	atomic_fetch_add(&buffer->generation, 1);
	futex_wake_all_waiters(&buffer->generation);
}

void sdk_buffer_deliver_records(struct sdk_buffer *buffer)
{
	uint32_t wanted = atomic_exchange(&buffer->wanted, 0), used;
	uint64_t asked = atomic_load(&buffer->flush_ticket_requested);

	atomic_store(&buffer->is_being_emptied, true);
	used = atomic_load(&buffer->arena_in_use_index);
	if (atomic_load(&buffer->state[!used]) == RECORD_BUFFER_STATE_TO_BE_EMPTIED)
		deliver_records_of_record_buffer(buffer, !used);
	used = atomic_load(&buffer->arena_in_use_index);
	if (((wanted & DELIVER_CURRENT_RECORD_BUFFER) ||
	     asked != atomic_load_explicit(&buffer->flush_ticket_done, memory_order_relaxed)) &&
	    !record_buffer_is_empty(&buffer->arenas[used]) &&
	    buffer_swap_record_buffer(buffer, used))
		deliver_records_of_record_buffer(buffer, used);
	/* Producers may have filled the other one and gone on to this meanwhile. */
	used = atomic_load(&buffer->arena_in_use_index);
	if (atomic_load(&buffer->state[!used]) == RECORD_BUFFER_STATE_TO_BE_EMPTIED)
		deliver_records_of_record_buffer(buffer, !used);
	atomic_store(&buffer->is_being_emptied, false);
	atomic_store(&buffer->flush_ticket_done, asked);
	atomic_fetch_add(&buffer->generation, 1);
	futex_wake_all_waiters(&buffer->generation);
}

static bool is_flush_of_ticket_done(struct sdk_buffer *buffer, uint64_t ticket)
{
	return atomic_load(&buffer->flush_ticket_done) >= ticket;
}

/* Its thread is asked again and again: it may have ended just now, for lack of tools, or another
 * one has been given the buffer. Two threads whose tools flush each other's buffers are both busy.
 */
static bool wait_until_buffer_is_flushed(struct sdk_buffer *buffer, uint64_t ticket,
					 uint64_t deadline)
{
	for (;;) {
		uint32_t generation = atomic_load(&buffer->generation);
		struct sdk_callback_thread *thread = atomic_load(&buffer->thread);

		if (is_flush_of_ticket_done(buffer, ticket))
			return true;
		if (read_posix_clock_ns(CLOCK_MONOTONIC) > deadline ||
		    !sdk_callback_thread_record_wait_if_no_cycle(thread))
			return false;
		atomic_fetch_or(&buffer->wanted, DELIVER_CURRENT_RECORD_BUFFER);
		sdk_callback_thread_request_work(thread, buffer);
		sdk_callback_thread_deliver_here_if_absent(thread);
		futex_wait(&buffer->generation, generation, BUFFER_RECHECK_WAIT_NS);
	}
}

bool sdk_buffer_flush(struct sdk_buffer *buffer, uint64_t timeout_ns)
{
	struct sdk_callback_thread *thread = atomic_load(&buffer->thread);
	uint64_t deadline = read_posix_clock_ns(CLOCK_MONOTONIC) + timeout_ns, ticket;
	bool is_done;

	if (sdk_callback_thread_is_current(thread)) {
		if (atomic_load(&buffer->is_being_emptied))
			return false;
		atomic_fetch_add(&buffer->flush_ticket_requested, 1);
		sdk_buffer_deliver_records(buffer);
		return true;
	}
	ticket = atomic_fetch_add(&buffer->flush_ticket_requested, 1) + 1;
	is_done = wait_until_buffer_is_flushed(buffer, ticket, deadline);
	sdk_callback_thread_record_wait_if_no_cycle(NULL);
	return is_done;
}

bool sdk_buffers_flush_of_client(uint32_t client, uint64_t timeout_ns)
{
	bool done = true;

	for (uint32_t i = 0; i < sdk_buffers_get_count(); i++) {
		struct sdk_buffer *buffer = sdk_buffer_get_by_number(i);

		if ((!client || buffer->client_id == client) && !atomic_load(&buffer->is_destroyed))
			done &= sdk_buffer_flush(buffer, timeout_ns);
	}
	return done;
}

/* Its memory stays: threads may be putting something into it at this moment. */
void sdk_buffers_destroy_of_client(uint32_t client)
{
	for (uint32_t i = 0; i < sdk_buffers_get_count(); i++) {
		struct sdk_buffer *buffer = sdk_buffer_get_by_number(i);

		if (buffer->client_id == client)
			atomic_store(&buffer->is_destroyed, true);
	}
}

/* What the parent's threads put there is the parent's to hand over. A thread that was putting
 * something does not exist here. */
void sdk_buffers_reset_after_fork(void)
{
	for (uint32_t i = 0; i < sdk_buffers_get_count(); i++) {
		struct sdk_buffer *buffer = sdk_buffer_get_by_number(i);

		for (int j = 0; j < 2; j++)
			record_buffer_reset(&buffer->arenas[j]);
		record_buffer_open(&buffer->arenas[0]);
		atomic_store(&buffer->arena_in_use_index, 0);
		atomic_store(&buffer->state[0], RECORD_BUFFER_STATE_IN_USE);
		atomic_store(&buffer->state[1], RECORD_BUFFER_STATE_FREE);
		atomic_store(&buffer->dropped_since_callback_count, 0);
		atomic_store(&buffer->wanted, 0);
		atomic_store(&buffer->is_being_emptied, false);
		atomic_store(&buffer->flush_ticket_done,
			     atomic_load(&buffer->flush_ticket_requested));
	}
}

/* ---- the functions of rocprofiler-sdk/buffer.h and of internal_threading.h ---- */

static struct sdk_buffer *buffer_allocate(size_t size)
{
	struct sdk_buffer *buffer = calloc(1, sizeof(*buffer));

	if (!buffer)
		return NULL;
	if (!record_buffer_create(&buffer->arenas[0], size)) {
		free(buffer);
		return NULL;
	}
	if (!record_buffer_create(&buffer->arenas[1], size)) {
		record_buffer_free(&buffer->arenas[0]);
		free(buffer);
		return NULL;
	}
	record_buffer_open(&buffer->arenas[0]);
	atomic_init(&buffer->state[0], RECORD_BUFFER_STATE_IN_USE);
	atomic_init(&buffer->thread, sdk_callback_thread_find_by_number(0));
	return buffer;
}

static bool register_buffer(struct sdk_buffer *buffer)
{
	uint32_t number;
	bool fits;

	sdk_acquire_global_lock();
	number = sdk_buffers_get_count();
	fits = number < BUFFERS_MAX;
	if (fits) {
		buffer->id = sdk_get_handle_base() + number + 1;
		atomic_store_explicit(&registered_buffers[number], buffer, memory_order_release);
		atomic_store_explicit(&registered_buffer_count, number + 1, memory_order_release);
	}
	sdk_release_global_lock();
	return fits;
}

static bool are_buffer_arguments_valid(size_t size, size_t watermark,
				       rocprofiler_buffer_policy_t policy,
				       rocprofiler_buffer_tracing_cb_t callback,
				       const rocprofiler_buffer_id_t *id)
{
	return id && callback && size && size <= BUFFER_SIZE_MAX && watermark <= size &&
	       (policy == ROCPROFILER_BUFFER_POLICY_DISCARD ||
		policy == ROCPROFILER_BUFFER_POLICY_LOSSLESS);
}

SDK_EXPORT rocprofiler_status_t rocprofiler_create_buffer(rocprofiler_context_id_t context_id,
							  size_t size, size_t watermark,
							  rocprofiler_buffer_policy_t policy,
							  rocprofiler_buffer_tracing_cb_t callback,
							  void *callback_data,
							  rocprofiler_buffer_id_t *buffer_id)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct sdk_context *context;
	struct sdk_buffer *buffer;

	if (!sdk_is_configuration_open())
		return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	if (!are_buffer_arguments_valid(size, watermark, policy, callback, buffer_id))
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	context = sdk_context_find_by_id(context_id.handle);
	if (!context)
		return ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND;
	if (sdk_buffer_find_by_id(buffer_id->handle))
		return ROCPROFILER_STATUS_ERROR_SERVICE_ALREADY_CONFIGURED;
	buffer = buffer_allocate((size + page - 1) / page * page);
	if (!buffer)
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	buffer->context = context_id;
	buffer->client_id = context->client_id;
	buffer->watermark_bytes = watermark;
	buffer->policy = policy;
	buffer->callback = callback;
	buffer->callback_data = callback_data;
	sdk_keep_library_of_function_loaded((void (*)(void))callback);
	if (!register_buffer(buffer)) {
		record_buffer_free(&buffer->arenas[0]);
		record_buffer_free(&buffer->arenas[1]);
		free(buffer);
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	}
	buffer_id->handle = buffer->id;
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_flush_buffer(rocprofiler_buffer_id_t buffer_id)
{
	struct sdk_buffer *buffer = sdk_buffer_find_by_id(buffer_id.handle);

	if (sdk_get_fini_status() > 0)
		return ROCPROFILER_STATUS_ERROR_FINALIZED;
	if (!buffer)
		return ROCPROFILER_STATUS_ERROR_BUFFER_NOT_FOUND;
	sdk_backends_flush();
	return sdk_buffer_flush(buffer, UINT64_MAX / 4) ? ROCPROFILER_STATUS_SUCCESS
							: ROCPROFILER_STATUS_ERROR_BUFFER_BUSY;
}

/* What is in it is handed over first. */
SDK_EXPORT rocprofiler_status_t rocprofiler_destroy_buffer(rocprofiler_buffer_id_t buffer_id)
{
	struct sdk_buffer *buffer = sdk_buffer_find_by_id(buffer_id.handle);
	bool destroyed = false;

	if (!buffer)
		return ROCPROFILER_STATUS_ERROR_BUFFER_NOT_FOUND;
	if (!record_buffer_is_empty(&buffer->arenas[0]) ||
	    !record_buffer_is_empty(&buffer->arenas[1])) {
		if (!sdk_buffer_flush(buffer, UINT64_MAX / 4))
			return ROCPROFILER_STATUS_ERROR_BUFFER_BUSY;
	}
	if (!atomic_compare_exchange_strong(&buffer->is_destroyed, &destroyed, true))
		return ROCPROFILER_STATUS_ERROR_BUFFER_NOT_FOUND;
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t
rocprofiler_create_callback_thread(rocprofiler_callback_thread_t *thread_id)
{
	struct sdk_callback_thread *thread;

	if (!thread_id)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (sdk_get_init_status() > 0)
		return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	thread = sdk_callback_thread_create();
	if (!thread)
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	thread_id->handle = thread->number;
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_assign_callback_thread(
	rocprofiler_buffer_id_t buffer_id, rocprofiler_callback_thread_t thread_id)
{
	struct sdk_callback_thread *thread = sdk_callback_thread_find_by_number(thread_id.handle);
	struct sdk_buffer *buffer = sdk_buffer_find_by_id(buffer_id.handle);

	if (sdk_get_init_status() > 0)
		return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	if (!thread)
		return ROCPROFILER_STATUS_ERROR_THREAD_NOT_FOUND;
	if (!buffer)
		return ROCPROFILER_STATUS_ERROR_BUFFER_NOT_FOUND;
	atomic_store(&buffer->thread, thread);
	return ROCPROFILER_STATUS_SUCCESS;
}
