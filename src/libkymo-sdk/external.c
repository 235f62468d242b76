/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See external.h. One entry a thread, found by its number, in a table that only grows; in it a
 * stack for each context that was ever started or pushed to, by the context's place in the table of
 * contexts. Changes are made with the entry's lock held, which no tool's function runs under.
 */
#include "libkymo-sdk/external.h"
#include "libkymo-sdk/base/keep_loaded.h"

#include <pthread.h>
#include <stdlib.h>

#include "kymo/tools.h"
#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/base/thread.h"

#define EXTERNAL_ID_STACKS_BUCKET_COUNT 1024

struct external_id_stack {
	uint64_t context;
	_Atomic uint64_t top;
	_Atomic uint32_t depth;
	uint32_t capacity;
	uint64_t *values; /* below the top */
	struct external_id_stack *_Atomic next;
};

struct sdk_thread_external_id_stacks {
	_Atomic uint64_t tid; /* 0: its thread has ended; the entry is free */
	pthread_mutex_t lock;
	struct external_id_stack *_Atomic first_stack;
	struct sdk_thread_external_id_stacks *next; /* of the bucket; never changed */
};

static struct sdk_thread_external_id_stacks
	*_Atomic external_id_stacks_by_thread_id[EXTERNAL_ID_STACKS_BUCKET_COUNT];

static struct sdk_thread_external_id_stacks *find_thread_external_id_stacks(uint64_t tid)
{
	struct sdk_thread_external_id_stacks *external = atomic_load_explicit(
		&external_id_stacks_by_thread_id[tid % EXTERNAL_ID_STACKS_BUCKET_COUNT],
		memory_order_acquire);

	while (external && atomic_load_explicit(&external->tid, memory_order_acquire) != tid)
		external = external->next;
	return external;
}

/* With the lock held. */
static struct sdk_thread_external_id_stacks *add_thread_external_id_stacks(uint64_t tid)
{
	struct sdk_thread_external_id_stacks *_Atomic *bucket =
		&external_id_stacks_by_thread_id[tid % EXTERNAL_ID_STACKS_BUCKET_COUNT];
	struct sdk_thread_external_id_stacks *external, *first;

	/* An entry of this bucket that is free serves as well. */
	first = atomic_load_explicit(bucket, memory_order_relaxed);
	for (external = first; external; external = external->next) {
		if (!atomic_load_explicit(&external->tid, memory_order_relaxed)) {
			atomic_store_explicit(&external->tid, tid, memory_order_release);
			return external;
		}
	}
	external = calloc(1, sizeof(*external));
	if (!external)
		return NULL;
	pthread_mutex_init(&external->lock, NULL);
	atomic_init(&external->tid, tid);
	external->next = first;
	atomic_store_explicit(bucket, external, memory_order_release);
	return external;
}

static struct sdk_thread_external_id_stacks *find_or_add_thread_external_id_stacks(uint64_t tid)
{
	struct sdk_thread_external_id_stacks *external = find_thread_external_id_stacks(tid);

	if (external)
		return external;
	sdk_acquire_global_lock();
	external = find_thread_external_id_stacks(tid);
	if (!external)
		external = add_thread_external_id_stacks(tid);
	sdk_release_global_lock();
	return external;
}

static void release_thread_external_id_stacks(struct sdk_thread_external_id_stacks *external)
{
	struct external_id_stack *stack;

	pthread_mutex_lock(&external->lock);
	stack = atomic_load_explicit(&external->first_stack, memory_order_relaxed);
	for (; stack; stack = atomic_load_explicit(&stack->next, memory_order_relaxed))
		atomic_store_explicit(&stack->depth, 0, memory_order_release);
	pthread_mutex_unlock(&external->lock);
	atomic_store_explicit(&external->tid, 0, memory_order_release);
}

/* Threads other than the one that forked do not exist, and that one has a new number. */
void sdk_external_ids_reset_after_fork(void)
{
	struct sdk_thread_state *self = sdk_current_thread_state;

	for (int i = 0; i < EXTERNAL_ID_STACKS_BUCKET_COUNT; i++) {
		struct sdk_thread_external_id_stacks *external =
			atomic_load(&external_id_stacks_by_thread_id[i]);

		for (; external; external = external->next)
			pthread_mutex_init(&external->lock, NULL);
	}
	if (self)
		self->external_id_stacks = NULL;
}

static struct external_id_stack *
find_context_external_id_stack(struct sdk_thread_external_id_stacks *external, uint64_t context)
{
	struct external_id_stack *stack =
		atomic_load_explicit(&external->first_stack, memory_order_acquire);

	while (stack && stack->context != context)
		stack = atomic_load_explicit(&stack->next, memory_order_relaxed);
	return stack;
}

static bool read_external_id_stack_top(struct sdk_thread_external_id_stacks *external,
				       uint64_t context, rocprofiler_user_data_t *top)
{
	struct external_id_stack *stack =
		external ? find_context_external_id_stack(external, context) : NULL;

	if (!stack || !atomic_load_explicit(&stack->depth, memory_order_acquire))
		return false;
	top->value = atomic_load_explicit(&stack->top, memory_order_relaxed);
	return true;
}

rocprofiler_user_data_t sdk_external_id_find_stack_top(struct sdk_thread_state *thread,
						       const struct sdk_context *context)
{
	rocprofiler_user_data_t top = {.value = 0};

	if (!thread->external_id_stacks) {
		thread->external_id_stacks_release = release_thread_external_id_stacks;
		thread->external_id_stacks = find_thread_external_id_stacks(thread->tid);
	}
	if (!read_external_id_stack_top(thread->external_id_stacks, context->id, &top))
		read_external_id_stack_top(find_thread_external_id_stacks(sdk_get_process_id()),
					   context->id, &top);
	return top;
}

bool sdk_external_id_request_from_tool(struct sdk_context *context, uint64_t tid,
				       enum sdk_domain domain, int32_t operation, uint64_t internal,
				       rocprofiler_user_data_t *external)
{
	const struct sdk_external_id_request_service *request =
		atomic_load_explicit(&context->external_id_request_service, memory_order_acquire);
	rocprofiler_user_data_t value = {.value = 0};
	uint32_t before;
	int error;

	if (__builtin_expect(!request, 1) || !(request->domain_bits >> domain & 1) ||
	    !sdk_kinds_by_domain[domain].external_id_request_kind ||
	    !sdk_tool_callback_guard_try_enter(context, &before))
		return false;
	error = request->callback(
		tid, (rocprofiler_context_id_t){context->id},
		(rocprofiler_external_correlation_id_request_kind_t)sdk_kinds_by_domain[domain]
			.external_id_request_kind,
		operation, internal, &value, request->data);
	sdk_tool_callback_guard_leave(before);
	if (!error)
		*external = value;
	return !error;
}

/* ---- the functions of rocprofiler-sdk/external_correlation.h ---- */

/* With the entry's lock held. */
static struct external_id_stack *
find_or_add_context_external_id_stack(struct sdk_thread_external_id_stacks *external,
				      uint64_t context)
{
	struct external_id_stack *stack = find_context_external_id_stack(external, context);

	if (stack)
		return stack;
	stack = calloc(1, sizeof(*stack));
	if (!stack)
		return NULL;
	stack->context = context;
	atomic_init(&stack->next,
		    atomic_load_explicit(&external->first_stack, memory_order_relaxed));
	atomic_store_explicit(&external->first_stack, stack, memory_order_release);
	return stack;
}

static bool push_external_id(struct external_id_stack *stack, uint64_t value)
{
	uint32_t depth = atomic_load_explicit(&stack->depth, memory_order_relaxed);

	if (depth && depth - 1 == stack->capacity) {
		uint32_t capacity = stack->capacity ? 2 * stack->capacity : 16;
		uint64_t *values = realloc(stack->values, capacity * sizeof(*values));

		if (!values)
			return false;
		stack->values = values;
		stack->capacity = capacity;
	}
	if (depth)
		stack->values[depth - 1] = atomic_load_explicit(&stack->top, memory_order_relaxed);
	atomic_store_explicit(&stack->top, value, memory_order_relaxed);
	atomic_store_explicit(&stack->depth, depth + 1, memory_order_release);
	return true;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_push_external_correlation_id(
	rocprofiler_context_id_t context_id, rocprofiler_thread_id_t tid,
	rocprofiler_user_data_t external_id)
{
	struct sdk_context *context = sdk_context_find_by_id(context_id.handle);
	struct sdk_thread_external_id_stacks *external;
	struct external_id_stack *stack;
	bool pushed;

	if (!context)
		return ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND;
	if (tid < sdk_get_process_id())
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	external = find_or_add_thread_external_id_stacks(tid);
	if (!external)
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	pthread_mutex_lock(&external->lock);
	stack = find_or_add_context_external_id_stack(external, context->id);
	pushed = stack && push_external_id(stack, external_id.value);
	pthread_mutex_unlock(&external->lock);
	atomic_store_explicit(&context->has_pushed_external_ids, true, memory_order_release);
	return pushed ? ROCPROFILER_STATUS_SUCCESS : ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
}

static uint64_t pop_external_id(struct external_id_stack *stack)
{
	uint32_t depth = atomic_load_explicit(&stack->depth, memory_order_relaxed);
	uint64_t value = atomic_load_explicit(&stack->top, memory_order_relaxed);

	if (!depth)
		return 0;
	if (depth > 1)
		atomic_store_explicit(&stack->top, stack->values[depth - 2], memory_order_relaxed);
	atomic_store_explicit(&stack->depth, depth - 1, memory_order_release);
	return value;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_pop_external_correlation_id(
	rocprofiler_context_id_t context_id, rocprofiler_thread_id_t tid,
	rocprofiler_user_data_t *external_id)
{
	struct sdk_context *context = sdk_context_find_by_id(context_id.handle);
	struct sdk_thread_external_id_stacks *external;
	struct external_id_stack *stack = NULL;
	uint64_t value = 0;

	if (!context)
		return ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND;
	if (tid < sdk_get_process_id())
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	external = find_thread_external_id_stacks(tid);
	if (external) {
		pthread_mutex_lock(&external->lock);
		stack = find_context_external_id_stack(external, context->id);
		value = stack ? pop_external_id(stack) : 0;
		pthread_mutex_unlock(&external->lock);
	}
	if (external_id)
		external_id->value = value;
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_configure_external_correlation_id_request_service(
	rocprofiler_context_id_t context_id,
	const rocprofiler_external_correlation_id_request_kind_t *kinds, size_t kinds_count,
	rocprofiler_external_correlation_id_request_cb_t callback, void *callback_args)
{
	struct sdk_context *context = sdk_context_find_by_id(context_id.handle);
	struct sdk_external_id_request_service *request, *none = NULL;
	uint64_t domains = kinds ? 0 : ~(uint64_t)0;

	if (!context)
		return ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND;
	if (!callback || (kinds && kinds_count < 1))
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	for (size_t i = 0; kinds && i < kinds_count; i++) {
		enum sdk_domain domain = sdk_request_kind_to_domain((int)kinds[i]);

		if (!domain)
			return ROCPROFILER_STATUS_ERROR_KIND_NOT_FOUND;
		domains |= (uint64_t)1 << domain;
	}
	if (atomic_load(&context->external_id_request_service))
		return ROCPROFILER_STATUS_ERROR_SERVICE_ALREADY_CONFIGURED;
	request = calloc(1, sizeof(*request));
	if (!request)
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	sdk_keep_library_of_function_loaded((void (*)(void))callback);
	request->callback = callback;
	request->data = callback_args;
	request->domain_bits = domains;
	if (atomic_compare_exchange_strong(&context->external_id_request_service, &none, request))
		return ROCPROFILER_STATUS_SUCCESS;
	free(request);
	return ROCPROFILER_STATUS_ERROR_SERVICE_ALREADY_CONFIGURED;
}

SDK_EXPORT rocprofiler_status_t kymo_configure_launch_id_service(
	rocprofiler_context_id_t context_id, kymo_launch_id_callback_t callback, void *data)
{
	struct sdk_context *context = sdk_context_find_by_id(context_id.handle);

	if (!context)
		return ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND;
	if (callback)
		sdk_keep_library_of_function_loaded((void (*)(void))callback);
	atomic_store_explicit(&context->launch_id_callback, NULL, memory_order_relaxed);
	context->launch_id_data = data;
	/* release: who sees the function sees its data */
	atomic_store_explicit(&context->launch_id_callback, callback, memory_order_release);
	return ROCPROFILER_STATUS_SUCCESS;
}
