/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Work in flight: kernels and copies, begun on one thread and finished anywhere; see emit.h.
 *
 * The contexts that hear of the end, their external ids and user data are kept with the work from
 * its beginning: a context that is stopped meanwhile still gets what it has seen begin.
 */
#include "libkymo-sdk/work.h"

#include <string.h>
#include <time.h>

#include "common/hot.h"
#include "core/base/ticks.h"
#include "libkymo-sdk/base/id_source.h"
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/correlation.h"
#include "libkymo-sdk/external.h"
#include "libkymo-sdk/work_private.h"

static struct sdk_id_source dispatch_ids;

/* Without an instruction for it, counting bits is a function of the compiler's. */
static bool contexts_fit_small_work(uint64_t contexts)
{
	for (unsigned i = 0; contexts && i < SMALL_WORK_CONTEXTS_MAX; i++)
		contexts &= contexts - 1;
	return !contexts;
}

KYMO_HOT struct sdk_device_work *sdk_work_allocate(struct sdk_thread_state *thread,
						   uint64_t contexts)
{
	bool few = contexts_fit_small_work(contexts);
	struct sdk_device_work *work = sdk_object_pool_take(
		few ? &thread->work_pool : &thread->large_work_pool,
		sizeof(*work) + (few ? SMALL_WORK_CONTEXTS_MAX : SDK_STARTED_CONTEXTS_MAX) *
					sizeof(work->seen[0]));

	if (!work)
		return NULL;
	memset((char *)work + sizeof(work->head.pooled_object), 0,
	       sizeof(*work) - sizeof(work->head.pooled_object));
	work->thread_id = thread->tid;
	work->ancestor_id = thread->call ? thread->call->ancestor_id : 0;
	sdk_work_increment_thread_counter(&thread->work_begun_count);
	return work;
}

KYMO_HOT void sdk_work_free(struct sdk_device_work *work)
{
	struct sdk_thread_state *thread = sdk_thread_get_or_create_own_state();
	struct sdk_object_pool *own = NULL;

	if (work->correlation)
		sdk_correlation_release(thread, work->correlation);
	if (thread) {
		own = work->head.pooled_object.pool == &thread->work_pool
			      ? &thread->work_pool
			      : &thread->large_work_pool;
		sdk_work_increment_thread_counter(&thread->work_ended_count);
	}
	sdk_object_pool_return(work, own);
}

uint64_t sdk_work_get_in_flight_count(void)
{
	struct sdk_thread_state *thread = atomic_load_explicit(&sdk_threads, memory_order_acquire);
	uint64_t ended = 0, begun = 0;

	/* Ends first, and the list again: what is seen to have ended is seen to have begun. */
	for (; thread; thread = thread->next)
		ended += atomic_load_explicit(&thread->work_ended_count, memory_order_acquire);
	thread = atomic_load_explicit(&sdk_threads, memory_order_acquire);
	for (; thread; thread = thread->next)
		begun += atomic_load_explicit(&thread->work_begun_count, memory_order_acquire);
	return begun > ended ? begun - ended : 0;
}

/* Nothing that the parent began ends here. */
void sdk_work_reset_after_fork(void)
{
	struct sdk_thread_state *thread = atomic_load_explicit(&sdk_threads, memory_order_acquire);

	sdk_id_source_reset_after_fork(&dispatch_ids);
	sdk_correlation_ids_reset_after_fork();
	for (; thread; thread = thread->next) {
		atomic_store(&thread->work_begun_count, 0);
		atomic_store(&thread->work_ended_count, 0);
	}
}

bool sdk_work_wait_until_none_in_flight(uint64_t deadline_ns)
{
	struct timespec pause = {0, 200000};

	while (sdk_work_get_in_flight_count()) {
		if (read_posix_clock_ns(CLOCK_MONOTONIC) > deadline_ns)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/* ---- contexts ---- */

/* Adds contexts that are not seen yet; their external ids are asked for. */
KYMO_HOT void sdk_work_add_contexts(struct sdk_thread_state *thread, struct sdk_device_work *work,
				    enum sdk_domain domain, int32_t operation, uint64_t contexts)
{
	for (unsigned i = 0; i < work->seen_count; i++)
		contexts &= ~((uint64_t)1 << work->seen[i].context);
	for (; contexts; contexts &= contexts - 1) {
		struct sdk_context_call_data_entry *seen = &work->seen[work->seen_count++];

		seen->context = (uint8_t)__builtin_ctzll(contexts);
		seen->user_data.value = 0;
		seen->is_external_id_requested = sdk_launch_id_fill(
			sdk_context_get_by_bit(seen->context), &seen->external_id);
		if (seen->is_external_id_requested) {
			/* it is that of the launch, whatever the work turns out to be */
		} else if (domain) {
			sdk_external_id_fill_entry(thread, sdk_context_get_by_bit(seen->context),
						   domain, operation, work->correlation->id, seen);
		} else {
			seen->is_external_id_requested = false;
			seen->external_id = sdk_external_id_get_stack_top(
				thread, sdk_context_get_by_bit(seen->context));
		}
	}
}

void sdk_work_update_pushed_external_ids(struct sdk_thread_state *thread,
					 struct sdk_device_work *work)
{
	for (unsigned i = 0; i < work->seen_count; i++) {
		struct sdk_context_call_data_entry *seen = &work->seen[i];

		if (!seen->is_external_id_requested)
			seen->external_id = sdk_external_id_get_stack_top(
				thread, sdk_context_get_by_bit(seen->context));
	}
}

void sdk_work_report_phase_to_contexts(struct sdk_thread_state *thread,
				       struct sdk_device_work *work, enum work_kind kind,
				       uint64_t contexts, int32_t operation,
				       rocprofiler_callback_phase_t phase, void *payload)
{
	enum sdk_domain domain = domain_by_work_kind[kind];
	rocprofiler_callback_tracing_record_t record = {
		.thread_id = work->thread_id,
		.correlation_id = {.internal = work->correlation->id,
				   .ancestor = work->ancestor_id},
		.payload = payload,
	};

	sdk_callback_record_set_kind_and_phase(&record, sdk_kinds_by_domain[domain].callback_kind,
					       operation, phase);
	for (unsigned i = 0; i < work->seen_count; i++) {
		struct sdk_context_call_data_entry *seen = &work->seen[i];

		if (!(contexts >> seen->context & 1) ||
		    !sdk_operation_is_in_set(sdk_context_get_by_bit(seen->context)
						     ->callback_services[domain]
						     ->operations,
					     operation))
			continue;
		record.correlation_id.external = seen->external_id;
		sdk_context_call_tool_callback(thread, seen->context, domain, &record,
					       &seen->user_data);
	}
}

/* The end of it is reported where a context that is active now wants it. */
static void choose_completion_contexts(struct sdk_device_work *work, enum work_kind kind,
				       int32_t operation)
{
	uint64_t active = sdk_contexts_get_active_bits();

	work->callback_context_bits[kind] =
		sdk_contexts_select_wanting_callbacks(active, domain_by_work_kind[kind], operation);
	work->buffer_context_bits[kind] =
		sdk_contexts_select_wanting_records(active, domain_by_work_kind[kind], operation);
}

/* ---- kernels ---- */

static uint64_t get_contexts_wanting_dispatches(void)
{
	return (sdk_contexts_get_active_bits() &
		(sdk_domain_get_callback_context_bits(SDK_DOMAIN_DISPATCH) |
		 sdk_domain_get_buffer_context_bits(SDK_DOMAIN_DISPATCH))) |
	       sdk_contexts_get_counting_bits();
}

static void append_dispatch_records(struct sdk_device_work *work,
				    const rocprofiler_callback_tracing_kernel_dispatch_data_t *data)
{
	uint64_t now = sdk_clock_read_now_ns();
	rocprofiler_buffer_tracing_kernel_dispatch_record_t record = {
		.size = sizeof(record),
		.kind = ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH,
		.operation = ROCPROFILER_KERNEL_DISPATCH_COMPLETE,
		.correlation_id = {.internal = work->correlation->id},
		.thread_id = work->thread_id,
		.start_timestamp = data->start_timestamp,
		.end_timestamp = data->end_timestamp,
		.dispatch_info = data->dispatch_info,
	};

	for (unsigned i = 0; i < work->seen_count; i++) {
		const struct sdk_context_call_data_entry *seen = &work->seen[i];
		const struct sdk_context *context = sdk_context_get_by_bit(seen->context);

		if (!(work->buffer_context_bits[WORK_KIND_DISPATCH] >> seen->context & 1) ||
		    !sdk_operation_is_in_set(
			    context->buffer_services[SDK_DOMAIN_DISPATCH]->operations,
			    ROCPROFILER_KERNEL_DISPATCH_COMPLETE))
			continue;
		record.correlation_id.external = seen->external_id;
		sdk_buffer_append_tracing_record(
			context->buffer_services[SDK_DOMAIN_DISPATCH]->buffer, record.kind, &record,
			sizeof(record), now);
	}
}

static void report_dispatch_completion(struct sdk_thread_state *thread,
				       struct sdk_device_work *work,
				       rocprofiler_callback_tracing_kernel_dispatch_data_t *data)
{
	sdk_work_report_phase_if_wanted(
		thread, work, WORK_KIND_DISPATCH, work->callback_context_bits[WORK_KIND_DISPATCH],
		ROCPROFILER_KERNEL_DISPATCH_COMPLETE, ROCPROFILER_CALLBACK_PHASE_NONE, data);
	append_dispatch_records(work, data);
}

static void fill_dispatch_data_with_id(rocprofiler_callback_tracing_kernel_dispatch_data_t *data,
				       const rocprofiler_kernel_dispatch_info_t *info, uint64_t id)
{
	data->size = sizeof(*data);
	sdk_dispatch_copy_info_with_id(&data->dispatch_info, info, id);
}

KYMO_HOT uint64_t sdk_dispatch_allocate_id(struct sdk_thread_state *thread)
{
	return sdk_id_source_take(&dispatch_ids, thread);
}

static struct sdk_device_work *create_dispatch_work(struct sdk_thread_state *thread,
						    uint64_t contexts,
						    rocprofiler_kernel_dispatch_info_t *info)
{
	/* A tool may start contexts in ENTER: there is room for all where more than a few are. */
	struct sdk_device_work *work = sdk_work_allocate(thread, contexts);

	if (!work)
		return NULL;
	work->correlation = sdk_correlation_acquire_or_create(thread);
	if (!work->correlation) {
		sdk_work_free(work);
		return NULL;
	}
	info->dispatch_id = sdk_dispatch_allocate_id(thread);
	fill_dispatch_data_with_id(&work->payload.dispatch, info, info->dispatch_id);
	work->enqueue_context_bits = sdk_contexts_select_wanting_callbacks(
		sdk_contexts_get_active_bits(), SDK_DOMAIN_DISPATCH,
		ROCPROFILER_KERNEL_DISPATCH_ENQUEUE);
	return work;
}

KYMO_HOT struct sdk_device_work *
sdk_dispatch_report_enqueue(rocprofiler_kernel_dispatch_info_t *info)
{
	uint64_t contexts = get_contexts_wanting_dispatches();
	struct sdk_thread_state *thread = contexts ? sdk_thread_try_enter_recording() : NULL;
	struct sdk_device_work *work;

	if (!thread)
		return NULL;
	work = sdk_fast_dispatch_begin_if_possible(thread, info);
	if (work) {
		sdk_thread_leave_recording(thread);
		return work;
	}
	/* Callbacks may start any other context. */
	if (sdk_domain_get_callback_context_bits(SDK_DOMAIN_DISPATCH) & contexts)
		contexts = ~(uint64_t)0;
	work = create_dispatch_work(thread, contexts, info);
	if (work) {
		sdk_work_add_contexts(thread, work, SDK_DOMAIN_DISPATCH,
				      ROCPROFILER_KERNEL_DISPATCH_ENQUEUE,
				      work->enqueue_context_bits);
		sdk_work_report_phase_if_wanted(
			thread, work, WORK_KIND_DISPATCH, work->enqueue_context_bits,
			ROCPROFILER_KERNEL_DISPATCH_ENQUEUE, ROCPROFILER_CALLBACK_PHASE_ENTER,
			&work->payload.dispatch);
		if (work->enqueue_context_bits)
			sdk_work_update_pushed_external_ids(thread, work);
		choose_completion_contexts(work, WORK_KIND_DISPATCH,
					   ROCPROFILER_KERNEL_DISPATCH_COMPLETE);
		sdk_work_add_contexts(thread, work, SDK_DOMAIN_DISPATCH,
				      ROCPROFILER_KERNEL_DISPATCH_COMPLETE,
				      work->callback_context_bits[WORK_KIND_DISPATCH] |
					      work->buffer_context_bits[WORK_KIND_DISPATCH] |
					      (contexts & sdk_contexts_get_counting_bits()));
		work->begun_ns =
			sdk_thread_get_new_work_begin_ns(thread, work->enqueue_context_bits != 0);
	}
	sdk_thread_leave_recording(thread);
	return work;
}

/* A fast dispatch reports no submission, and it may have ended by now. */
KYMO_HOT void sdk_dispatch_report_submitted(struct sdk_device_work *work, bool failed)
{
	struct sdk_fast_dispatch *plain = sdk_work_to_fast_dispatch(work);
	struct sdk_thread_state *thread;
	uint32_t before;
	bool busy;

	if (plain) {
		if (failed)
			sdk_fast_dispatch_cancel(plain);
		return;
	}
	thread = sdk_thread_get_own_and_set_busy(&busy);
	if (!thread)
		return;
	sdk_work_report_phase_if_wanted(thread, work, WORK_KIND_DISPATCH,
					work->enqueue_context_bits,
					ROCPROFILER_KERNEL_DISPATCH_ENQUEUE,
					ROCPROFILER_CALLBACK_PHASE_EXIT, &work->payload.dispatch);
	before = atomic_fetch_or_explicit(&work->state, WORK_STATE_SUBMITTED_BIT,
					  memory_order_acq_rel);
	if (before & WORK_STATE_COMPLETED_BIT)
		report_dispatch_completion(thread, work, &work->payload.dispatch);
	if (failed || (before & WORK_STATE_COMPLETED_BIT))
		sdk_work_free(work);
	thread->busy = busy;
}

void sdk_dispatch_report_complete(struct sdk_device_work *work,
				  const rocprofiler_kernel_dispatch_info_t *info, uint64_t start,
				  uint64_t end)
{
	rocprofiler_callback_tracing_kernel_dispatch_data_t *data = &work->payload.dispatch;
	struct sdk_fast_dispatch *plain = sdk_work_to_fast_dispatch(work);
	struct sdk_thread_state *thread;
	bool busy;

	if (plain) {
		sdk_fast_dispatch_report_complete(plain, info, start, end);
		return;
	}
	thread = sdk_thread_get_own_and_set_busy(&busy);
	if (!thread)
		return;
	sdk_clamp_device_times_to_begin(work->begun_ns, &start, &end);
	/* Until it is submitted the enqueueing thread may be showing the data to a tool. */
	if (atomic_load_explicit(&work->state, memory_order_acquire) & WORK_STATE_SUBMITTED_BIT) {
		if (info)
			fill_dispatch_data_with_id(data, info, data->dispatch_info.dispatch_id);
	}
	data->start_timestamp = start;
	data->end_timestamp = end;
	if (atomic_fetch_or_explicit(&work->state, WORK_STATE_COMPLETED_BIT, memory_order_acq_rel) &
	    WORK_STATE_SUBMITTED_BIT) {
		report_dispatch_completion(thread, work, data);
		sdk_work_free(work);
	}
	thread->busy = busy;
}

/* ---- what is counted ---- */

bool sdk_work_copy_counted_dispatch_info(struct sdk_device_work *work, unsigned context,
					 struct sdk_counted_dispatch_info *facts)
{
	unsigned i = 0;

	if (sdk_work_to_fast_dispatch(work))
		return false;
	while (i < work->seen_count && work->seen[i].context != context)
		i++;
	if (i == work->seen_count)
		return false;
	facts->correlation_id = (rocprofiler_async_correlation_id_t){
		.internal = work->correlation->id, .external = work->seen[i].external_id};
	facts->dispatch_info = work->payload.dispatch.dispatch_info;
	return true;
}

void *sdk_work_exchange_counting_state(struct sdk_device_work *work, void *counting)
{
	return sdk_work_to_fast_dispatch(work) ? NULL : atomic_exchange(&work->counting, counting);
}

void *sdk_work_get_counting_state(const struct sdk_device_work *work)
{
	return ((const struct sdk_work_header *)work)->is_fast_dispatch
		       ? NULL
		       : atomic_load(&work->counting);
}

void sdk_work_clamp_times(const struct sdk_device_work *work, uint64_t *start, uint64_t *end)
{
	sdk_clamp_device_times_to_begin(work->begun_ns, start, end);
}

/* ---- what is reported only afterwards ---- */

void sdk_work_cancel(struct sdk_device_work *work)
{
	sdk_work_free(work);
}

void sdk_work_release(struct sdk_device_work *work)
{
	sdk_work_free(work);
}

/* Any operation of the domain: which it is shows only later. */
static void choose_contexts_of_any_operation(struct sdk_device_work *work, enum work_kind kind,
					     uint64_t active)
{
	work->callback_context_bits[kind] =
		active & sdk_domain_get_callback_context_bits(domain_by_work_kind[kind]);
	work->buffer_context_bits[kind] =
		active & sdk_domain_get_buffer_context_bits(domain_by_work_kind[kind]);
}

static struct sdk_device_work *create_correlated_work(struct sdk_thread_state *thread)
{
	struct sdk_device_work settled = {.seen_count = 0}, *work = NULL;
	uint64_t contexts = 0, active = sdk_contexts_get_active_bits();

	for (int kind = 0; kind < WORK_KIND_COUNT; kind++) {
		choose_contexts_of_any_operation(&settled, (enum work_kind)kind, active);
		contexts |= settled.callback_context_bits[kind] | settled.buffer_context_bits[kind];
	}
	contexts |= sdk_contexts_get_counting_bits();
	if (contexts)
		work = sdk_work_allocate(thread, contexts);
	if (!work)
		return NULL;
	work->correlation = sdk_correlation_acquire_or_create(thread);
	if (!work->correlation) {
		sdk_work_free(work);
		return NULL;
	}
	memcpy(work->callback_context_bits, settled.callback_context_bits,
	       sizeof(work->callback_context_bits));
	memcpy(work->buffer_context_bits, settled.buffer_context_bits,
	       sizeof(work->buffer_context_bits));
	sdk_work_add_contexts(thread, work, SDK_DOMAIN_NONE, 0, contexts);
	return work;
}

KYMO_HOT struct sdk_device_work *sdk_work_create_for_call(void)
{
	bool wanted =
		sdk_is_domain_wanted(SDK_DOMAIN_DISPATCH) || sdk_is_domain_wanted(SDK_DOMAIN_COPY);
	struct sdk_thread_state *thread = wanted ? sdk_thread_try_enter_recording() : NULL;
	struct sdk_device_work *work;

	if (!thread)
		return NULL;
	work = create_correlated_work(thread);
	if (work)
		work->begun_ns = sdk_thread_get_new_work_begin_ns(thread, false);
	sdk_thread_leave_recording(thread);
	return work;
}

struct sdk_device_work *sdk_work_create_without_call(void)
{
	bool busy;
	struct sdk_thread_state *thread = sdk_thread_get_own_and_set_busy(&busy);
	struct sdk_device_work *work = NULL;

	if (thread) {
		struct sdk_call_state *call = thread->call;

		thread->call = NULL; /* whatever this thread is in has nothing to do with it */
		work = create_correlated_work(thread);
		thread->call = call;
		thread->busy = busy;
	}
	return work;
}

static struct sdk_device_work *duplicate_device_work(struct sdk_device_work *work)
{
	bool busy;
	struct sdk_thread_state *thread = sdk_thread_get_own_and_set_busy(&busy);
	uint64_t contexts = work->seen_count > SMALL_WORK_CONTEXTS_MAX ? ~(uint64_t)0 : 0;
	struct sdk_device_work *again = thread ? sdk_work_allocate(thread, contexts) : NULL;

	if (again) {
		struct sdk_work_header head = again->head;

		memcpy(again, work, sizeof(*again) + work->seen_count * sizeof(again->seen[0]));
		again->head = head;
		again->enqueue_context_bits = 0;
		atomic_store_explicit(&again->counting, NULL, memory_order_relaxed);
		atomic_fetch_add_explicit(&again->correlation->references, 1, memory_order_relaxed);
		again->payload.dispatch.dispatch_info.dispatch_id =
			sdk_dispatch_allocate_id(thread);
		atomic_store_explicit(&again->state, WORK_STATE_SUBMITTED_BIT,
				      memory_order_relaxed);
		for (unsigned i = 0; i < again->seen_count; i++)
			again->seen[i].user_data.value = 0;
	}
	if (thread)
		thread->busy = busy;
	return again;
}

struct sdk_device_work *sdk_work_duplicate(struct sdk_device_work *work)
{
	struct sdk_fast_dispatch *plain = sdk_work_to_fast_dispatch(work);

	return plain ? sdk_fast_dispatch_copy_with_new_id(plain) : duplicate_device_work(work);
}

/* Requests are asked now, for the thread that began the work. */
void sdk_work_request_external_ids(struct sdk_device_work *work, enum work_kind kind,
				   int32_t operation)
{
	for (unsigned i = 0; i < work->seen_count; i++) {
		struct sdk_context_call_data_entry *seen = &work->seen[i];

		sdk_external_id_request_from_tool(sdk_context_get_by_bit(seen->context),
						  work->thread_id, domain_by_work_kind[kind],
						  operation, work->correlation->id,
						  &seen->external_id);
		seen->user_data.value = 0;
	}
}

void sdk_work_report_dispatch_completion(struct sdk_device_work *work,
					 rocprofiler_kernel_dispatch_info_t *info, uint64_t start,
					 uint64_t end)
{
	rocprofiler_callback_tracing_kernel_dispatch_data_t data = {.start_timestamp = 0};
	bool busy;
	struct sdk_thread_state *thread = sdk_thread_get_own_and_set_busy(&busy);

	if (!thread)
		return;
	sdk_clamp_device_times_to_begin(work->begun_ns, &start, &end);
	info->dispatch_id = sdk_dispatch_allocate_id(thread);
	fill_dispatch_data_with_id(&data, info, info->dispatch_id);
	data.start_timestamp = start;
	data.end_timestamp = end;
	sdk_work_request_external_ids(work, WORK_KIND_DISPATCH,
				      ROCPROFILER_KERNEL_DISPATCH_COMPLETE);
	report_dispatch_completion(thread, work, &data);
	thread->busy = busy;
}
