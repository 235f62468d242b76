/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See context.h.
 */
#include "libkymo-sdk/context.h"

#include <stdlib.h>
#include <string.h>

#include "common/hot.h"
#include "libkymo-sdk/base/barrier.h"
#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/base/thread.h"
#include "libkymo-sdk/fork_gate.h"

#define CREATED_CONTEXTS_MAX     4096
#define CONTEXT_CLOSE_TIMEOUT_NS ((uint64_t)2000000000u)

_Atomic uint64_t sdk_wanted_operation_bits_by_domain[SDK_DOMAIN_COUNT][SDK_OPERATIONS_MAX / 64];
_Atomic uint64_t sdk_active_context_bits;
_Atomic uint64_t sdk_counting_context_bits;
_Atomic uint64_t sdk_callback_context_bits_by_domain[SDK_DOMAIN_COUNT];
_Atomic uint64_t sdk_buffer_context_bits_by_domain[SDK_DOMAIN_COUNT];
struct sdk_context *_Atomic sdk_contexts_by_bit[SDK_STARTED_CONTEXTS_MAX];

static struct sdk_context *_Atomic known_contexts[CREATED_CONTEXTS_MAX];
static _Atomic uint32_t created_context_count;
static uint32_t used_context_bit_count; /* given away; with the lock held */
/* Those of tools that were dropped. A thread of such a tool may hold one still: never freed. */
static struct sdk_context *removed_context_list; /* with the lock held */

static const struct sdk_counting_callbacks *registered_counting_callbacks;

void sdk_set_counting_callbacks_of_contexts(const struct sdk_counting_callbacks *services)
{
	registered_counting_callbacks = services;
}

static struct sdk_context *get_context_by_number(uint32_t number)
{
	return atomic_load_explicit(&known_contexts[number], memory_order_acquire);
}

uint32_t sdk_contexts_get_known_count(void)
{
	return atomic_load_explicit(&created_context_count, memory_order_acquire);
}

struct sdk_context *sdk_context_find_by_id(uint64_t id)
{
	uint64_t number = id - sdk_get_handle_base() - 1;

	return number < sdk_contexts_get_known_count() ? get_context_by_number((uint32_t)number)
						       : NULL;
}

KYMO_HOT bool sdk_is_domain_wanted(enum sdk_domain domain)
{
	return (sdk_contexts_get_active_bits() & (sdk_domain_get_callback_context_bits(domain) |
						  sdk_domain_get_buffer_context_bits(domain))) !=
		       0 ||
	       (domain == SDK_DOMAIN_DISPATCH && sdk_contexts_get_counting_bits());
}

/* ---- what is active, with the lock held ---- */

static void add_wanted_operations(uint64_t *wanted, const uint64_t *operations)
{
	for (int word = 0; operations && word < SDK_OPERATIONS_MAX / 64; word++)
		wanted[word] |= operations[word];
}

static void publish_wanted_operations(int domain, uint64_t active)
{
	uint64_t wanted[SDK_OPERATIONS_MAX / 64] = {0};

	for (; active; active &= active - 1) {
		const struct sdk_context *context =
			sdk_context_get_by_bit((unsigned)__builtin_ctzll(active));
		const struct sdk_callback_tracing_service *callbacks =
			context->callback_services[domain];
		const struct sdk_buffer_tracing_service *buffers = context->buffer_services[domain];
		const struct sdk_buffer_tracing_service *ext = context->ext_buffer_services[domain];

		add_wanted_operations(wanted, callbacks ? callbacks->operations : NULL);
		add_wanted_operations(wanted, buffers ? buffers->operations : NULL);
		add_wanted_operations(wanted, ext ? ext->operations : NULL);
	}
	for (int word = 0; word < SDK_OPERATIONS_MAX / 64; word++)
		atomic_store_explicit(&sdk_wanted_operation_bits_by_domain[domain][word],
				      wanted[word], memory_order_release);
}

static bool context_has_service_of_domain(const struct sdk_context *context, int domain)
{
	return context->callback_services[domain] || context->buffer_services[domain] ||
	       context->ext_buffer_services[domain];
}

/* Only domains of the context that has changed can have changed. */
static void publish_active_contexts(const struct sdk_context *changed)
{
	uint64_t active = 0;

	for (uint32_t bit = 0; bit < used_context_bit_count; bit++) {
		if (atomic_load_explicit(&sdk_context_get_by_bit(bit)->is_active,
					 memory_order_relaxed))
			active |= (uint64_t)1 << bit;
	}
	atomic_store_explicit(&sdk_active_context_bits, active, memory_order_release);
	for (int domain = 1; domain < SDK_DOMAIN_COUNT; domain++) {
		if (context_has_service_of_domain(changed, domain))
			publish_wanted_operations(domain, active);
	}
}

static void add_context_to_service_bits(const struct sdk_context *context, uint64_t bit)
{
	for (int domain = 1; domain < SDK_DOMAIN_COUNT; domain++) {
		if (context->callback_services[domain])
			atomic_fetch_or(&sdk_callback_context_bits_by_domain[domain], bit);
		if (context->buffer_services[domain] || context->ext_buffer_services[domain])
			atomic_fetch_or(&sdk_buffer_context_bits_by_domain[domain], bit);
	}
}

static bool assign_context_bit(struct sdk_context *context)
{
	if (atomic_load(&context->bit_index) >= 0)
		return true;
	if (used_context_bit_count == SDK_STARTED_CONTEXTS_MAX)
		return false;
	atomic_store_explicit(&sdk_contexts_by_bit[used_context_bit_count], context,
			      memory_order_release);
	add_context_to_service_bits(context, (uint64_t)1 << used_context_bit_count);
	atomic_store(&context->bit_index, (int32_t)used_context_bit_count);
	used_context_bit_count++;
	return true;
}

void sdk_context_publish_services(struct sdk_context *context)
{
	sdk_acquire_global_lock();
	if (atomic_load(&context->bit_index) >= 0) {
		add_context_to_service_bits(context,
					    (uint64_t)1 << atomic_load(&context->bit_index));
		publish_active_contexts(context);
	}
	sdk_release_global_lock();
}

static rocprofiler_status_t activate_context(struct sdk_context *context)
{
	rocprofiler_status_t status = ROCPROFILER_STATUS_SUCCESS;

	sdk_acquire_global_lock();
	if (sdk_get_fini_status() || atomic_load(&context->is_client_ending)) {
		status = ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	} else if (!assign_context_bit(context)) {
		status = ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_STARTED;
	} else if (!atomic_load(&context->is_active)) {
		atomic_store(&context->is_active, true);
		publish_active_contexts(context);
	}
	sdk_release_global_lock();
	return status;
}

/* false: it was not active. */
static bool deactivate_context(struct sdk_context *context)
{
	bool active;

	sdk_acquire_global_lock();
	active = atomic_exchange(&context->is_active, false);
	if (active)
		publish_active_contexts(context);
	sdk_release_global_lock();
	return active;
}

/* Markers and OpenMP happen on the host: no backend has to start for them. */
static bool context_concerns_backends(const struct sdk_context *context)
{
	static const uint64_t host_domain_bits =
		(uint64_t)1 << SDK_DOMAIN_MARKER_CORE | (uint64_t)1 << SDK_DOMAIN_MARKER_CONTROL |
		(uint64_t)1 << SDK_DOMAIN_MARKER_NAME |
		(uint64_t)1 << SDK_DOMAIN_MARKER_CORE_RANGE | (uint64_t)1 << SDK_DOMAIN_OMPT;

	if (context->dispatch_counting_service)
		return true;
	for (int domain = 1; domain < SDK_DOMAIN_COUNT; domain++) {
		if (!(host_domain_bits >> domain & 1) &&
		    context_has_service_of_domain(context, domain))
			return true;
	}
	return false;
}

/* The first context that is started always makes backends look for their runtimes. */
static void notify_backends_of_change(const struct sdk_context *context)
{
	static _Atomic bool backends_were_notified;

	if (!context_concerns_backends(context) &&
	    atomic_load_explicit(&backends_were_notified, memory_order_relaxed))
		return;
	atomic_store_explicit(&backends_were_notified, true, memory_order_relaxed);
	sdk_backends_notify_wanted_services_changed();
}

/* ---- clients ---- */

uint64_t sdk_client_get_context_bits(uint32_t client)
{
	uint64_t bits = 0;

	for (uint32_t i = 0; i < sdk_contexts_get_known_count(); i++) {
		struct sdk_context *context = get_context_by_number(i);
		int32_t bit = context ? atomic_load(&context->bit_index) : -1;

		if (bit >= 0 && (!client || context->client_id == client))
			bits |= (uint64_t)1 << bit;
	}
	return bits;
}

void sdk_contexts_stop_of_client(uint32_t client)
{
	bool any = false;

	for (uint32_t i = 0; i < sdk_contexts_get_known_count(); i++) {
		struct sdk_context *context = get_context_by_number(i);

		if (!context || (client && context->client_id != client))
			continue;
		atomic_store(&context->is_client_ending, true);
		if (deactivate_context(context)) {
			registered_counting_callbacks->stopped(context);
			any = true;
		}
	}
	if (any)
		sdk_backends_notify_wanted_services_changed();
}

void sdk_contexts_close_of_client(uint32_t client)
{
	for (uint32_t i = 0; i < sdk_contexts_get_known_count(); i++) {
		struct sdk_context *context = get_context_by_number(i);

		if (context && (!client || context->client_id == client))
			atomic_fetch_or(&context->closed_by, SDK_CONTEXT_CLOSED_BY_END);
	}
}

void sdk_contexts_close_and_wait_of_client(uint32_t client)
{
	sdk_contexts_close_of_client(client);
	sdk_fence_all_threads();
	if (!sdk_threads_wait_for_tool_callbacks(sdk_client_get_context_bits(client),
						 CONTEXT_CLOSE_TIMEOUT_NS))
		sdk_print_log_line(SDK_LOG_WARNING,
				   "a function of a tool is still running while the tool ends");
}

void sdk_contexts_remove_of_client(uint32_t client)
{
	sdk_contexts_stop_of_client(client);
	sdk_contexts_close_and_wait_of_client(client);
	for (uint32_t i = 0; i < sdk_contexts_get_known_count(); i++) {
		struct sdk_context *context = get_context_by_number(i);

		if (!context || context->client_id != client)
			continue;
		atomic_store(&known_contexts[i], NULL);
		sdk_acquire_global_lock();
		context->next_removed = removed_context_list;
		removed_context_list = context;
		sdk_release_global_lock();
	}
}

void sdk_contexts_set_closed_by_fork(bool is_closed)
{
	for (uint32_t i = 0; i < sdk_contexts_get_known_count(); i++) {
		struct sdk_context *context = get_context_by_number(i);

		if (context && is_closed)
			atomic_fetch_or(&context->closed_by, SDK_CONTEXT_CLOSED_BY_FORK);
		else if (context)
			atomic_fetch_and(&context->closed_by,
					 ~(uint32_t)SDK_CONTEXT_CLOSED_BY_FORK);
	}
}

uint32_t sdk_context_get_client_by_bit(unsigned bit)
{
	const struct sdk_context *context = sdk_context_get_by_bit(bit);

	return context ? context->client_id : 0;
}

/* ---- calling a tool ---- */

/* A fork does wait for who is in a tool's function already. */
bool sdk_context_wait_until_open(const struct sdk_context *context, struct sdk_thread_state *thread,
				 uint32_t before)
{
	uint32_t mark =
		atomic_load_explicit(&thread->callback_context_plus_one, memory_order_relaxed);

	if (!before && atomic_load_explicit(&context->closed_by, memory_order_acquire) ==
			       SDK_CONTEXT_CLOSED_BY_FORK) {
		atomic_store_explicit(&thread->callback_context_plus_one, before,
				      memory_order_release);
		sdk_fork_gate_wait();
		atomic_store_explicit(&thread->callback_context_plus_one, mark,
				      memory_order_relaxed);
		sdk_fence_calling_thread();
	}
	return !(atomic_load_explicit(&context->closed_by, memory_order_acquire) &
		 SDK_CONTEXT_CLOSED_BY_END);
}

KYMO_HOT bool sdk_tool_callback_guard_try_enter(struct sdk_context *context, uint32_t *before)
{
	struct sdk_thread_state *thread = sdk_thread_get_or_create_own_state();
	int32_t bit =
		context ? atomic_load_explicit(&context->bit_index, memory_order_relaxed) : -1;

	if (!thread || bit < 0)
		return false;
	*before = atomic_load_explicit(&thread->callback_context_plus_one, memory_order_relaxed);
	atomic_store_explicit(&thread->callback_context_plus_one, (uint32_t)bit + 1,
			      memory_order_relaxed);
	/* Pairs with sdk_fence_all_threads() in sdk_contexts_close_and_wait_of_client(): either
	 * this thread sees that the context is closed, or the closing one sees that a function runs
	 * here. */
	sdk_fence_calling_thread();
	if (__builtin_expect(!atomic_load_explicit(&context->closed_by, memory_order_acquire), 1) ||
	    sdk_context_wait_until_open(context, thread, *before))
		return true;
	sdk_tool_callback_guard_leave(*before);
	return false;
}

KYMO_HOT void sdk_tool_callback_guard_leave(uint32_t before)
{
	atomic_store_explicit(&sdk_current_thread_state->callback_context_plus_one, before,
			      memory_order_release);
}

/* ---- the functions of rocprofiler-sdk/context.h ---- */

SDK_EXPORT rocprofiler_status_t rocprofiler_create_context(rocprofiler_context_id_t *context_id)
{
	struct sdk_context *context;
	uint32_t number;

	if (!context_id)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (!sdk_is_configuration_open())
		return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	if (context_id->handle)
		return ROCPROFILER_STATUS_ERROR_CONTEXT_ID_NOT_ZERO;
	context = calloc(1, sizeof(*context));
	if (!context)
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	context->client_id = sdk_get_configuring_client_id();
	atomic_init(&context->bit_index, -1);
	sdk_acquire_global_lock();
	number = sdk_contexts_get_known_count();
	if (number < CREATED_CONTEXTS_MAX) {
		context->id = sdk_get_handle_base() + number + 1;
		atomic_store_explicit(&known_contexts[number], context, memory_order_release);
		atomic_store_explicit(&created_context_count, number + 1, memory_order_release);
	}
	sdk_release_global_lock();
	if (number == CREATED_CONTEXTS_MAX) {
		free(context);
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	}
	context_id->handle = context->id;
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_start_context(rocprofiler_context_id_t context_id)
{
	struct sdk_context *context = sdk_context_find_by_id(context_id.handle);
	rocprofiler_status_t status;

	if (sdk_get_fini_status())
		return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	if (!context)
		return ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND;
	if (atomic_load(&context->is_active))
		return ROCPROFILER_STATUS_SUCCESS;
	status = activate_context(context);
	if (status)
		return status;
	status = registered_counting_callbacks->started(context);
	/* What is counted begins when its runtime does; everything else has begun. */
	if (status && status != ROCPROFILER_STATUS_ERROR_HSA_NOT_LOADED) {
		registered_counting_callbacks->stopped(context);
		deactivate_context(context);
		return status;
	}
	notify_backends_of_change(context);
	return status;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_stop_context(rocprofiler_context_id_t context_id)
{
	struct sdk_context *context = sdk_context_find_by_id(context_id.handle);

	if (sdk_get_fini_status() > 0)
		return ROCPROFILER_STATUS_SUCCESS;
	if (!context || !deactivate_context(context))
		return ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND;
	registered_counting_callbacks->stopped(context);
	notify_backends_of_change(context);
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_context_is_active(rocprofiler_context_id_t context_id,
							      int *status)
{
	struct sdk_context *context = sdk_context_find_by_id(context_id.handle);

	if (!status)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	*status = context && atomic_load(&context->is_active);
	return context ? ROCPROFILER_STATUS_SUCCESS : ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_context_is_valid(rocprofiler_context_id_t context_id,
							     int *status)
{
	struct sdk_context *context = sdk_context_find_by_id(context_id.handle);

	if (!status)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	*status = context != NULL;
	return context ? ROCPROFILER_STATUS_SUCCESS : ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND;
}
