/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See buffer.h.
 */
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/keep_loaded.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/hot.h"
#include "core/futex.h"
#include "core/ticks.h"
#include "libkymo-sdk/callback_thread.h"
#include "libkymo-sdk/context.h"
#include "libkymo-sdk/state.h"
#include "libkymo-sdk/thread.h"

#define BUFFERS_MAX     4096
#define BUFFER_SIZE_MAX ((size_t)16 << 30)
#define BUFFER_PAUSE_NS 20000000u

/* What an arena is. */
enum { ARENA_FREE, ARENA_IN_USE, ARENA_WAITING /* to be emptied */ };
/* What the callback thread is to do. */
enum { WANT_WAITING = 1, WANT_CURRENT = 2 };

static _Atomic(struct sdk_buffer *) buffers[BUFFERS_MAX];
static _Atomic uint32_t buffer_count;

uint32_t sdk_buffer_count(void)
{
	return atomic_load_explicit(&buffer_count, memory_order_acquire);
}

struct sdk_buffer *sdk_buffer_at(uint32_t number)
{
	return atomic_load_explicit(&buffers[number], memory_order_acquire);
}

struct sdk_buffer *sdk_buffer_find(uint64_t id)
{
	uint64_t number = id - sdk_handle_base() - 1;
	struct sdk_buffer *buffer =
		number < sdk_buffer_count() ? sdk_buffer_at((uint32_t)number) : NULL;

	return buffer && !atomic_load_explicit(&buffer->is_destroyed, memory_order_acquire) ? buffer
											    : NULL;
}

/* ---- putting ---- */

static void buffer_want(struct sdk_buffer *buffer, uint32_t what)
{
	if ((atomic_load_explicit(&buffer->wanted, memory_order_relaxed) & what) == what)
		return;
	atomic_fetch_or_explicit(&buffer->wanted, what, memory_order_release);
	sdk_callback_thread_request(atomic_load_explicit(&buffer->thread, memory_order_acquire),
				    buffer);
}

/* Takes the other arena into use. false: it has not been emptied yet. If that is free, `used` still
 * is the one in use: one of both always is. */
static bool buffer_swap(struct sdk_buffer *buffer, uint32_t used)
{
	uint32_t other = !used, expected = ARENA_FREE;

	if (!atomic_compare_exchange_strong(&buffer->state[other], &expected, ARENA_IN_USE))
		return false;
	arena_open(&buffer->arenas[other]);
	atomic_store(&buffer->in_use, other);
	atomic_store(&buffer->state[used], ARENA_WAITING);
	return true;
}

/* The arena in use is full. false: the records are to be dropped. */
static bool buffer_make_room(struct sdk_buffer *buffer, uint32_t used)
{
	uint32_t generation;

	if (buffer->policy != ROCPROFILER_BUFFER_POLICY_LOSSLESS)
		return false;
	generation = atomic_load(&buffer->generation);
	if (atomic_load(&buffer->in_use) != used)
		return true;
	if (buffer_swap(buffer, used)) {
		buffer_want(buffer, WANT_WAITING);
		return true;
	}
	buffer_want(buffer, WANT_WAITING);
	futex_wait(&buffer->generation, generation, BUFFER_PAUSE_NS);
	return true;
}

static void buffer_drop(struct sdk_buffer *buffer, uint32_t count)
{
	atomic_fetch_add_explicit(&buffer->dropped, count, memory_order_relaxed);
	atomic_fetch_add_explicit(&buffer->dropped_in_all, count, memory_order_relaxed);
}

KYMO_HOT void sdk_buffer_put(struct sdk_buffer *buffer, const struct arena_record *records,
			     uint32_t count, uint64_t time)
{
	struct sdk_thread *thread = sdk_thread_self();
	uint64_t in_arena;

	while (!atomic_load_explicit(&buffer->is_destroyed, memory_order_relaxed)) {
		uint32_t used = atomic_load_explicit(&buffer->in_use, memory_order_acquire);
		enum arena_result result =
			arena_put(&buffer->arenas[used], thread ? thread->number : 0, records,
				  count, time, &in_arena);

		if (__builtin_expect(result == ARENA_DONE, 1)) {
			if (in_arena >= buffer->watermark)
				buffer_want(buffer, WANT_CURRENT);
			return;
		}
		if (result == ARENA_NO_MEMORY ||
		    (result == ARENA_FULL && !buffer_make_room(buffer, used))) {
			buffer_drop(buffer, count);
			return;
		}
	}
}

/* ---- taking out ---- */

static void buffer_hand_over(struct sdk_buffer *buffer, uint32_t number)
{
	struct arena *arena = &buffer->arenas[number];
	rocprofiler_record_header_t **list;
	size_t count = arena_close(arena, &list);
	uint32_t before;

	if (arena->lost)
		buffer_drop(buffer, (uint32_t)arena->lost);
	if (count && sdk_tool_enter(sdk_context_find(buffer->context.handle), &before)) {
		buffer->callback(buffer->context, (rocprofiler_buffer_id_t){buffer->id}, list,
				 count, buffer->callback_data,
				 atomic_exchange(&buffer->dropped, 0));
		sdk_tool_leave(before);
	}
	arena_reset(arena);
	atomic_store(&buffer->state[number], ARENA_FREE);
	atomic_fetch_add(&buffer->generation, 1);
	futex_wake(&buffer->generation);
}

void sdk_buffer_empty(struct sdk_buffer *buffer)
{
	uint32_t wanted = atomic_exchange(&buffer->wanted, 0), used;
	uint64_t asked = atomic_load(&buffer->flush_asked);

	atomic_store(&buffer->is_emptying, true);
	used = atomic_load(&buffer->in_use);
	if (atomic_load(&buffer->state[!used]) == ARENA_WAITING)
		buffer_hand_over(buffer, !used);
	used = atomic_load(&buffer->in_use);
	if (((wanted & WANT_CURRENT) ||
	     asked != atomic_load_explicit(&buffer->flush_done, memory_order_relaxed)) &&
	    !arena_is_empty(&buffer->arenas[used]) && buffer_swap(buffer, used))
		buffer_hand_over(buffer, used);
	/* Producers may have filled the other one and gone on to this meanwhile. */
	used = atomic_load(&buffer->in_use);
	if (atomic_load(&buffer->state[!used]) == ARENA_WAITING)
		buffer_hand_over(buffer, !used);
	atomic_store(&buffer->is_emptying, false);
	atomic_store(&buffer->flush_done, asked);
	atomic_fetch_add(&buffer->generation, 1);
	futex_wake(&buffer->generation);
}

static bool buffer_is_flushed(struct sdk_buffer *buffer, uint64_t ticket)
{
	return atomic_load(&buffer->flush_done) >= ticket;
}

/* Its thread is asked again and again: it may have ended just now, for lack of tools, or another
 * one has been given the buffer. Two threads whose tools flush each other's buffers are both busy.
 */
static bool buffer_wait_flushed(struct sdk_buffer *buffer, uint64_t ticket, uint64_t deadline)
{
	for (;;) {
		uint32_t generation = atomic_load(&buffer->generation);
		struct sdk_callback_thread *thread = atomic_load(&buffer->thread);

		if (buffer_is_flushed(buffer, ticket))
			return true;
		if (ticks_clock_ns(CLOCK_MONOTONIC) > deadline ||
		    !sdk_callback_thread_waits(thread))
			return false;
		atomic_fetch_or(&buffer->wanted, WANT_CURRENT);
		sdk_callback_thread_request(thread, buffer);
		sdk_callback_thread_stand_in(thread);
		futex_wait(&buffer->generation, generation, BUFFER_PAUSE_NS);
	}
}

bool sdk_buffer_flush(struct sdk_buffer *buffer, uint64_t timeout_ns)
{
	struct sdk_callback_thread *thread = atomic_load(&buffer->thread);
	uint64_t deadline = ticks_clock_ns(CLOCK_MONOTONIC) + timeout_ns, ticket;
	bool is_done;

	if (sdk_callback_thread_is_current(thread)) {
		if (atomic_load(&buffer->is_emptying))
			return false;
		atomic_fetch_add(&buffer->flush_asked, 1);
		sdk_buffer_empty(buffer);
		return true;
	}
	ticket = atomic_fetch_add(&buffer->flush_asked, 1) + 1;
	is_done = buffer_wait_flushed(buffer, ticket, deadline);
	sdk_callback_thread_waits(NULL);
	return is_done;
}

bool sdk_buffer_flush_client(uint32_t client, uint64_t timeout_ns)
{
	bool done = true;

	for (uint32_t i = 0; i < sdk_buffer_count(); i++) {
		struct sdk_buffer *buffer = sdk_buffer_at(i);

		if ((!client || buffer->client == client) && !atomic_load(&buffer->is_destroyed))
			done &= sdk_buffer_flush(buffer, timeout_ns);
	}
	return done;
}

/* Its memory stays: threads may be putting something into it at this moment. */
void sdk_buffer_remove_client(uint32_t client)
{
	for (uint32_t i = 0; i < sdk_buffer_count(); i++) {
		struct sdk_buffer *buffer = sdk_buffer_at(i);

		if (buffer->client == client)
			atomic_store(&buffer->is_destroyed, true);
	}
}

/* What the parent's threads put there is the parent's to hand over. A thread that was putting
 * something does not exist here. */
void sdk_buffer_forked(void)
{
	for (uint32_t i = 0; i < sdk_buffer_count(); i++) {
		struct sdk_buffer *buffer = sdk_buffer_at(i);

		for (int j = 0; j < 2; j++)
			arena_reset(&buffer->arenas[j]);
		arena_open(&buffer->arenas[0]);
		atomic_store(&buffer->in_use, 0);
		atomic_store(&buffer->state[0], ARENA_IN_USE);
		atomic_store(&buffer->state[1], ARENA_FREE);
		atomic_store(&buffer->dropped, 0);
		atomic_store(&buffer->wanted, 0);
		atomic_store(&buffer->is_emptying, false);
		atomic_store(&buffer->flush_done, atomic_load(&buffer->flush_asked));
	}
}

/* ---- the functions of rocprofiler-sdk/buffer.h and of internal_threading.h ---- */

static struct sdk_buffer *buffer_allocate(size_t size)
{
	struct sdk_buffer *buffer = calloc(1, sizeof(*buffer));

	if (!buffer)
		return NULL;
	if (!arena_make(&buffer->arenas[0], size)) {
		free(buffer);
		return NULL;
	}
	if (!arena_make(&buffer->arenas[1], size)) {
		arena_free(&buffer->arenas[0]);
		free(buffer);
		return NULL;
	}
	arena_open(&buffer->arenas[0]);
	atomic_init(&buffer->state[0], ARENA_IN_USE);
	atomic_init(&buffer->thread, sdk_callback_thread_find(0));
	return buffer;
}

static bool buffer_publish(struct sdk_buffer *buffer)
{
	uint32_t number;
	bool fits;

	sdk_lock();
	number = sdk_buffer_count();
	fits = number < BUFFERS_MAX;
	if (fits) {
		buffer->id = sdk_handle_base() + number + 1;
		atomic_store_explicit(&buffers[number], buffer, memory_order_release);
		atomic_store_explicit(&buffer_count, number + 1, memory_order_release);
	}
	sdk_unlock();
	return fits;
}

static bool buffer_is_sane(size_t size, size_t watermark, rocprofiler_buffer_policy_t policy,
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

	if (!sdk_is_configuring())
		return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	if (!buffer_is_sane(size, watermark, policy, callback, buffer_id))
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	context = sdk_context_find(context_id.handle);
	if (!context)
		return ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND;
	if (sdk_buffer_find(buffer_id->handle))
		return ROCPROFILER_STATUS_ERROR_SERVICE_ALREADY_CONFIGURED;
	buffer = buffer_allocate((size + page - 1) / page * page);
	if (!buffer)
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	buffer->context = context_id;
	buffer->client = context->client;
	buffer->watermark = watermark;
	buffer->policy = policy;
	buffer->callback = callback;
	buffer->callback_data = callback_data;
	sdk_keep_loaded((void (*)(void))callback);
	if (!buffer_publish(buffer)) {
		arena_free(&buffer->arenas[0]);
		arena_free(&buffer->arenas[1]);
		free(buffer);
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	}
	buffer_id->handle = buffer->id;
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_flush_buffer(rocprofiler_buffer_id_t buffer_id)
{
	struct sdk_buffer *buffer = sdk_buffer_find(buffer_id.handle);

	if (sdk_fini_status() > 0)
		return ROCPROFILER_STATUS_ERROR_FINALIZED;
	if (!buffer)
		return ROCPROFILER_STATUS_ERROR_BUFFER_NOT_FOUND;
	sdk_device_flush();
	return sdk_buffer_flush(buffer, UINT64_MAX / 4) ? ROCPROFILER_STATUS_SUCCESS
							: ROCPROFILER_STATUS_ERROR_BUFFER_BUSY;
}

/* What is in it is handed over first. */
SDK_EXPORT rocprofiler_status_t rocprofiler_destroy_buffer(rocprofiler_buffer_id_t buffer_id)
{
	struct sdk_buffer *buffer = sdk_buffer_find(buffer_id.handle);
	bool destroyed = false;

	if (!buffer)
		return ROCPROFILER_STATUS_ERROR_BUFFER_NOT_FOUND;
	if (!arena_is_empty(&buffer->arenas[0]) || !arena_is_empty(&buffer->arenas[1])) {
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
	if (sdk_init_status() > 0)
		return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	thread = sdk_callback_thread_make();
	if (!thread)
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	thread_id->handle = thread->number;
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_assign_callback_thread(
	rocprofiler_buffer_id_t buffer_id, rocprofiler_callback_thread_t thread_id)
{
	struct sdk_callback_thread *thread = sdk_callback_thread_find(thread_id.handle);
	struct sdk_buffer *buffer = sdk_buffer_find(buffer_id.handle);

	if (sdk_init_status() > 0)
		return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	if (!thread)
		return ROCPROFILER_STATUS_ERROR_THREAD_NOT_FOUND;
	if (!buffer)
		return ROCPROFILER_STATUS_ERROR_BUFFER_NOT_FOUND;
	atomic_store(&buffer->thread, thread);
	return ROCPROFILER_STATUS_SUCCESS;
}
