/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See context.h.
 */
#include "libkymo-sdk/context.h"

#include <stdlib.h>
#include <string.h>

#include "common/hot.h"
#include "libkymo-sdk/barrier.h"
#include "libkymo-sdk/counters/counters.h"
#include "libkymo-sdk/state.h"
#include "libkymo-sdk/thread.h"

#define CONTEXTS_MAX     4096
#define CONTEXT_CLOSE_NS ((uint64_t)2000000000u)

_Atomic uint64_t sdk_wanted[SDK_DOMAIN_COUNT][SDK_OPERATIONS_MAX / 64];
_Atomic uint64_t sdk_active;
_Atomic uint64_t sdk_callback_contexts[SDK_DOMAIN_COUNT];
_Atomic uint64_t sdk_buffer_contexts[SDK_DOMAIN_COUNT];
struct sdk_context *_Atomic sdk_started[SDK_CONTEXTS_MAX];

static struct sdk_context *_Atomic contexts[CONTEXTS_MAX];
static _Atomic uint32_t context_count;
static uint32_t context_bits; /* given away; with the lock held */
/* Those of tools that were dropped. A thread of such a tool may hold one still: never freed. */
static struct sdk_context *removed_contexts; /* with the lock held */

static struct sdk_context *context_number(uint32_t number)
{
	return atomic_load_explicit(&contexts[number], memory_order_acquire);
}

static uint32_t context_number_end(void)
{
	return atomic_load_explicit(&context_count, memory_order_acquire);
}

struct sdk_context *sdk_context_find(uint64_t id)
{
	uint64_t number = id - sdk_handle_base() - 1;

	return number < context_number_end() ? context_number((uint32_t)number) : NULL;
}

KYMO_HOT bool sdk_wants_any(enum sdk_domain domain)
{
	return (sdk_active_contexts() & (sdk_with_callbacks(domain) | sdk_with_buffers(domain))) !=
		       0 ||
	       (domain == SDK_DOMAIN_DISPATCH && sdk_counting_contexts());
}

/* ---- what is active, with the lock held ---- */

static void context_add_operations(uint64_t *wanted, const uint64_t *operations)
{
	for (int word = 0; operations && word < SDK_OPERATIONS_MAX / 64; word++)
		wanted[word] |= operations[word];
}

static void context_publish_domain(int domain, uint64_t active)
{
	uint64_t wanted[SDK_OPERATIONS_MAX / 64] = {0};

	for (; active; active &= active - 1) {
		const struct sdk_context *context =
			sdk_context_at((unsigned)__builtin_ctzll(active));
		const struct sdk_callback_service *callbacks = context->callbacks[domain];
		const struct sdk_buffer_service *buffers = context->buffers[domain];
		const struct sdk_buffer_service *ext = context->ext_buffers[domain];

		context_add_operations(wanted, callbacks ? callbacks->operations : NULL);
		context_add_operations(wanted, buffers ? buffers->operations : NULL);
		context_add_operations(wanted, ext ? ext->operations : NULL);
	}
	for (int word = 0; word < SDK_OPERATIONS_MAX / 64; word++)
		atomic_store_explicit(&sdk_wanted[domain][word], wanted[word],
				      memory_order_release);
}

static void context_publish(void)
{
	uint64_t active = 0;

	for (uint32_t bit = 0; bit < context_bits; bit++) {
		if (atomic_load(&sdk_context_at(bit)->is_active))
			active |= (uint64_t)1 << bit;
	}
	atomic_store_explicit(&sdk_active, active, memory_order_release);
	for (int domain = 1; domain < SDK_DOMAIN_COUNT; domain++)
		context_publish_domain(domain, active);
}

static void context_note_services(const struct sdk_context *context, uint64_t bit)
{
	for (int domain = 1; domain < SDK_DOMAIN_COUNT; domain++) {
		if (context->callbacks[domain])
			atomic_fetch_or(&sdk_callback_contexts[domain], bit);
		if (context->buffers[domain] || context->ext_buffers[domain])
			atomic_fetch_or(&sdk_buffer_contexts[domain], bit);
	}
}

static bool context_take_bit(struct sdk_context *context)
{
	if (atomic_load(&context->bit) >= 0)
		return true;
	if (context_bits == SDK_CONTEXTS_MAX)
		return false;
	atomic_store_explicit(&sdk_started[context_bits], context, memory_order_release);
	context_note_services(context, (uint64_t)1 << context_bits);
	atomic_store(&context->bit, (int32_t)context_bits);
	context_bits++;
	return true;
}

void sdk_context_configured(struct sdk_context *context)
{
	sdk_lock();
	if (atomic_load(&context->bit) >= 0) {
		context_note_services(context, (uint64_t)1 << atomic_load(&context->bit));
		context_publish();
	}
	sdk_unlock();
}

static rocprofiler_status_t context_start(struct sdk_context *context)
{
	rocprofiler_status_t status = ROCPROFILER_STATUS_SUCCESS;

	sdk_lock();
	if (sdk_fini_status() || atomic_load(&context->is_ending)) {
		status = ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	} else if (!context_take_bit(context)) {
		status = ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_STARTED;
	} else if (!atomic_load(&context->is_active)) {
		atomic_store(&context->is_active, true);
		context_publish();
	}
	sdk_unlock();
	return status;
}

/* false: it was not active. */
static bool context_stop(struct sdk_context *context)
{
	bool active;

	sdk_lock();
	active = atomic_exchange(&context->is_active, false);
	if (active)
		context_publish();
	sdk_unlock();
	return active;
}

/* ---- clients ---- */

uint64_t sdk_contexts_of(uint32_t client)
{
	uint64_t bits = 0;

	for (uint32_t i = 0; i < context_number_end(); i++) {
		struct sdk_context *context = context_number(i);
		int32_t bit = context ? atomic_load(&context->bit) : -1;

		if (bit >= 0 && (!client || context->client == client))
			bits |= (uint64_t)1 << bit;
	}
	return bits;
}

void sdk_context_stop_client(uint32_t client)
{
	bool any = false;

	for (uint32_t i = 0; i < context_number_end(); i++) {
		struct sdk_context *context = context_number(i);

		if (!context || (client && context->client != client))
			continue;
		atomic_store(&context->is_ending, true);
		if (context_stop(context)) {
			sdk_counting_stopped(context);
			any = true;
		}
	}
	if (any)
		sdk_device_wanted();
}

void sdk_context_close_client(uint32_t client)
{
	for (uint32_t i = 0; i < context_number_end(); i++) {
		struct sdk_context *context = context_number(i);

		if (context && (!client || context->client == client))
			atomic_store(&context->is_closed, true);
	}
	sdk_barrier_all();
	if (!sdk_thread_wait_callbacks(sdk_contexts_of(client), CONTEXT_CLOSE_NS))
		sdk_say(SDK_LOG_WARNING, "a tool's function still runs while the tool ends");
}

void sdk_context_remove_client(uint32_t client)
{
	sdk_context_stop_client(client);
	sdk_context_close_client(client);
	for (uint32_t i = 0; i < context_number_end(); i++) {
		struct sdk_context *context = context_number(i);

		if (!context || context->client != client)
			continue;
		atomic_store(&contexts[i], NULL);
		sdk_lock();
		context->next_removed = removed_contexts;
		removed_contexts = context;
		sdk_unlock();
	}
}

/* ---- calling a tool ---- */

KYMO_HOT bool sdk_tool_enter(struct sdk_context *context, uint32_t *before)
{
	struct sdk_thread *thread = sdk_thread_self();
	int32_t bit = context ? atomic_load_explicit(&context->bit, memory_order_relaxed) : -1;

	if (!thread || bit < 0)
		return false;
	*before = atomic_load_explicit(&thread->in_callback, memory_order_relaxed);
	atomic_store_explicit(&thread->in_callback, (uint32_t)bit + 1, memory_order_relaxed);
	/* Pairs with sdk_barrier_all() in sdk_context_close_client(): either this thread sees that
	 * the context is closed, or the closing one sees that a function runs here. */
	sdk_barrier_own();
	if (__builtin_expect(!atomic_load_explicit(&context->is_closed, memory_order_acquire), 1))
		return true;
	sdk_tool_leave(*before);
	return false;
}

KYMO_HOT void sdk_tool_leave(uint32_t before)
{
	atomic_store_explicit(&sdk_thread_current->in_callback, before, memory_order_release);
}

/* ---- the functions of rocprofiler-sdk/context.h ---- */

SDK_EXPORT rocprofiler_status_t rocprofiler_create_context(rocprofiler_context_id_t *context_id)
{
	struct sdk_context *context;
	uint32_t number;

	if (!context_id)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (!sdk_is_configuring())
		return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	if (context_id->handle)
		return ROCPROFILER_STATUS_ERROR_CONTEXT_ID_NOT_ZERO;
	context = calloc(1, sizeof(*context));
	if (!context)
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	context->client = sdk_configuring_client();
	atomic_init(&context->bit, -1);
	sdk_lock();
	number = context_number_end();
	if (number < CONTEXTS_MAX) {
		context->id = sdk_handle_base() + number + 1;
		atomic_store_explicit(&contexts[number], context, memory_order_release);
		atomic_store_explicit(&context_count, number + 1, memory_order_release);
	}
	sdk_unlock();
	if (number == CONTEXTS_MAX) {
		free(context);
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	}
	context_id->handle = context->id;
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_start_context(rocprofiler_context_id_t context_id)
{
	struct sdk_context *context = sdk_context_find(context_id.handle);
	rocprofiler_status_t status;

	if (sdk_fini_status())
		return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	if (!context)
		return ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND;
	if (atomic_load(&context->is_active))
		return ROCPROFILER_STATUS_SUCCESS;
	status = context_start(context);
	if (status)
		return status;
	status = sdk_counting_started(context);
	/* What is counted begins when its runtime does; everything else has begun. */
	if (status && status != ROCPROFILER_STATUS_ERROR_HSA_NOT_LOADED) {
		sdk_counting_stopped(context);
		context_stop(context);
		return status;
	}
	sdk_device_wanted();
	return status;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_stop_context(rocprofiler_context_id_t context_id)
{
	struct sdk_context *context = sdk_context_find(context_id.handle);

	if (sdk_fini_status() > 0)
		return ROCPROFILER_STATUS_SUCCESS;
	if (!context || !context_stop(context))
		return ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND;
	sdk_counting_stopped(context);
	sdk_device_wanted();
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_context_is_active(rocprofiler_context_id_t context_id,
							      int *status)
{
	struct sdk_context *context = sdk_context_find(context_id.handle);

	if (!status)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	*status = context && atomic_load(&context->is_active);
	return context ? ROCPROFILER_STATUS_SUCCESS : ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_context_is_valid(rocprofiler_context_id_t context_id,
							     int *status)
{
	struct sdk_context *context = sdk_context_find(context_id.handle);

	if (!status)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	*status = context != NULL;
	return context ? ROCPROFILER_STATUS_SUCCESS : ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND;
}
