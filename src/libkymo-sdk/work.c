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
#include "core/ticks.h"
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/correlation.h"
#include "libkymo-sdk/counters/counters.h"
#include "libkymo-sdk/external.h"

#define WORK_SEEN_FEW  4
#define WORK_SUBMITTED 1u
#define WORK_COMPLETED 2u
#define DISPATCH_STOCK 64

enum work_kind { WORK_DISPATCH, WORK_COPY, WORK_KINDS };

static const enum sdk_domain work_domains[WORK_KINDS] = {SDK_DOMAIN_DISPATCH, SDK_DOMAIN_COPY};

struct sdk_work {
	struct sdk_work_head head;
	struct sdk_correlation *correlation;
	uint64_t thread_id, ancestor, begun;
	/* Who hears of the end, by kind of work. */
	uint64_t callback_contexts[WORK_KINDS], buffer_contexts[WORK_KINDS];
	uint64_t enqueue_contexts; /* who heard of the beginning, and hears that it is submitted */
	_Atomic uint32_t state;
	void *_Atomic counting; /* counters/dispatches.c */
	union {
		rocprofiler_callback_tracing_kernel_dispatch_data_t dispatch;
		struct {
			rocprofiler_callback_tracing_memory_copy_data_t data;
			int32_t operation;
		} copy;
	} is;
	uint8_t seen_count;
	struct sdk_seen seen[]; /* WORK_SEEN_FEW, or SDK_CONTEXTS_MAX */
};

static _Atomic uint64_t work_dispatches;

/* Without an instruction for it, counting bits is a function of the compiler's. */
static bool work_sees_few(uint64_t contexts)
{
	for (unsigned i = 0; contexts && i < WORK_SEEN_FEW; i++)
		contexts &= contexts - 1;
	return !contexts;
}

KYMO_HOT static struct sdk_work *work_take(struct sdk_thread *thread, uint64_t contexts)
{
	bool few = work_sees_few(contexts);
	struct sdk_work *work = sdk_pool_take(
		few ? &thread->works : &thread->large_works,
		sizeof(*work) + (few ? WORK_SEEN_FEW : SDK_CONTEXTS_MAX) * sizeof(work->seen[0]));

	if (!work)
		return NULL;
	memset((char *)work + sizeof(work->head.pooled), 0,
	       sizeof(*work) - sizeof(work->head.pooled));
	work->thread_id = thread->tid;
	work->ancestor = thread->call ? thread->call->ancestor : 0;
	sdk_work_count(&thread->work_begun);
	return work;
}

KYMO_HOT static void work_give(struct sdk_work *work)
{
	struct sdk_thread *thread = sdk_thread_self();
	struct sdk_pool *own = NULL;

	if (work->correlation)
		sdk_correlation_drop(thread, work->correlation);
	if (thread) {
		own = work->head.pooled.pool == &thread->works ? &thread->works
							       : &thread->large_works;
		sdk_work_count(&thread->work_ended);
	}
	sdk_pool_give(work, own);
}

uint64_t sdk_work_in_flight(void)
{
	struct sdk_thread *thread = atomic_load_explicit(&sdk_threads, memory_order_acquire);
	uint64_t ended = 0, begun = 0;

	/* Ends first, and the list anew: what is seen to have ended is seen to have begun. */
	for (; thread; thread = thread->next)
		ended += atomic_load_explicit(&thread->work_ended, memory_order_acquire);
	thread = atomic_load_explicit(&sdk_threads, memory_order_acquire);
	for (; thread; thread = thread->next)
		begun += atomic_load_explicit(&thread->work_begun, memory_order_acquire);
	return begun > ended ? begun - ended : 0;
}

/* Nothing that the parent began ends here. */
void sdk_work_forked(void)
{
	struct sdk_thread *thread = atomic_load_explicit(&sdk_threads, memory_order_acquire);

	for (; thread; thread = thread->next) {
		atomic_store(&thread->work_begun, 0);
		atomic_store(&thread->work_ended, 0);
	}
}

bool sdk_work_wait(uint64_t deadline_ns)
{
	struct timespec pause = {0, 200000};

	while (sdk_work_in_flight()) {
		if (ticks_clock_ns(CLOCK_MONOTONIC) > deadline_ns)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/* ---- contexts ---- */

/* Adds contexts that are not seen yet; their external ids are asked for. */
KYMO_HOT static void work_see(struct sdk_thread *thread, struct sdk_work *work,
			      enum sdk_domain domain, int32_t operation, uint64_t contexts)
{
	for (unsigned i = 0; i < work->seen_count; i++)
		contexts &= ~((uint64_t)1 << work->seen[i].context);
	for (; contexts; contexts &= contexts - 1) {
		struct sdk_seen *seen = &work->seen[work->seen_count++];

		seen->context = (uint8_t)__builtin_ctzll(contexts);
		seen->user_data.value = 0;
		if (domain) {
			sdk_external_get(thread, sdk_context_at(seen->context), domain, operation,
					 work->correlation->id, seen);
		} else {
			seen->by_request = false;
			seen->external = sdk_external_top(thread, sdk_context_at(seen->context));
		}
	}
}

static void work_see_pushed(struct sdk_thread *thread, struct sdk_work *work)
{
	for (unsigned i = 0; i < work->seen_count; i++) {
		struct sdk_seen *seen = &work->seen[i];

		if (!seen->by_request)
			seen->external = sdk_external_top(thread, sdk_context_at(seen->context));
	}
}

static void work_tell_contexts(struct sdk_thread *thread, struct sdk_work *work,
			       enum work_kind kind, uint64_t contexts, int32_t operation,
			       rocprofiler_callback_phase_t phase, void *payload)
{
	enum sdk_domain domain = work_domains[kind];
	rocprofiler_callback_tracing_record_t record = {
		.thread_id = work->thread_id,
		.correlation_id = {.internal = work->correlation->id, .ancestor = work->ancestor},
		.payload = payload,
	};

	sdk_record_set(&record, sdk_domains[domain].callback, operation, phase);
	for (unsigned i = 0; i < work->seen_count; i++) {
		struct sdk_seen *seen = &work->seen[i];

		if (!(contexts >> seen->context & 1) ||
		    !sdk_operation_is_in(
			    sdk_context_at(seen->context)->callbacks[domain]->operations,
			    operation))
			continue;
		record.correlation_id.external = seen->external;
		sdk_tell(thread, seen->context, domain, &record, &seen->user_data);
	}
}

static inline void work_tell(struct sdk_thread *thread, struct sdk_work *work, enum work_kind kind,
			     uint64_t contexts, int32_t operation,
			     rocprofiler_callback_phase_t phase, void *payload)
{
	if (contexts)
		work_tell_contexts(thread, work, kind, contexts, operation, phase, payload);
}

/* The end of it is told where a context that is active now wants it. */
static void work_settle(struct sdk_work *work, enum work_kind kind, int32_t operation)
{
	uint64_t active = sdk_active_contexts();

	work->callback_contexts[kind] = sdk_callbacks_for(active, work_domains[kind], operation);
	work->buffer_contexts[kind] = sdk_buffers_for(active, work_domains[kind], operation);
}

/* ---- kernels ---- */

static uint64_t dispatch_any(void)
{
	return (sdk_active_contexts() &
		(sdk_with_callbacks(SDK_DOMAIN_DISPATCH) | sdk_with_buffers(SDK_DOMAIN_DISPATCH))) |
	       sdk_counting_contexts();
}

static void dispatch_put(struct sdk_work *work,
			 const rocprofiler_callback_tracing_kernel_dispatch_data_t *data)
{
	uint64_t now = sdk_now();
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
		const struct sdk_seen *seen = &work->seen[i];
		const struct sdk_context *context = sdk_context_at(seen->context);

		if (!(work->buffer_contexts[WORK_DISPATCH] >> seen->context & 1) ||
		    !sdk_operation_is_in(context->buffers[SDK_DOMAIN_DISPATCH]->operations,
					 ROCPROFILER_KERNEL_DISPATCH_COMPLETE))
			continue;
		record.correlation_id.external = seen->external;
		sdk_buffer_put_tracing(context->buffers[SDK_DOMAIN_DISPATCH]->buffer, record.kind,
				       &record, sizeof(record), now);
	}
}

static void dispatch_finish(struct sdk_thread *thread, struct sdk_work *work,
			    rocprofiler_callback_tracing_kernel_dispatch_data_t *data)
{
	work_tell(thread, work, WORK_DISPATCH, work->callback_contexts[WORK_DISPATCH],
		  ROCPROFILER_KERNEL_DISPATCH_COMPLETE, ROCPROFILER_CALLBACK_PHASE_NONE, data);
	dispatch_put(work, data);
}

static void dispatch_set_info(rocprofiler_callback_tracing_kernel_dispatch_data_t *data,
			      const rocprofiler_kernel_dispatch_info_t *info, uint64_t id)
{
	data->size = sizeof(*data);
	sdk_dispatch_set(&data->dispatch_info, info, id);
}

KYMO_HOT uint64_t sdk_dispatch_next(struct sdk_thread *thread)
{
	if (thread->dispatch_next == thread->dispatch_end) {
		thread->dispatch_next =
			1 + atomic_fetch_add_explicit(&work_dispatches, DISPATCH_STOCK,
						      memory_order_relaxed);
		thread->dispatch_end = thread->dispatch_next + DISPATCH_STOCK;
	}
	return thread->dispatch_next++;
}

static struct sdk_work *dispatch_begin(struct sdk_thread *thread, uint64_t contexts,
				       rocprofiler_kernel_dispatch_info_t *info)
{
	/* A tool may start contexts in ENTER: there is room for all where more than a few are. */
	struct sdk_work *work = work_take(thread, contexts);

	if (!work)
		return NULL;
	work->correlation = sdk_correlation_share(thread);
	if (!work->correlation) {
		work_give(work);
		return NULL;
	}
	info->dispatch_id = sdk_dispatch_next(thread);
	dispatch_set_info(&work->is.dispatch, info, info->dispatch_id);
	work->enqueue_contexts = sdk_callbacks_for(sdk_active_contexts(), SDK_DOMAIN_DISPATCH,
						   ROCPROFILER_KERNEL_DISPATCH_ENQUEUE);
	return work;
}

KYMO_HOT struct sdk_work *sdk_dispatch_enqueue(rocprofiler_kernel_dispatch_info_t *info)
{
	uint64_t contexts = dispatch_any();
	struct sdk_thread *thread = contexts ? sdk_record_begin() : NULL;
	struct sdk_work *work;

	if (!thread)
		return NULL;
	work = sdk_plain_begin(thread, info);
	if (work) {
		sdk_record_end(thread);
		return work;
	}
	/* Callbacks may start any other context. */
	if (sdk_with_callbacks(SDK_DOMAIN_DISPATCH) & contexts)
		contexts = ~(uint64_t)0;
	work = dispatch_begin(thread, contexts, info);
	if (work) {
		work_see(thread, work, SDK_DOMAIN_DISPATCH, ROCPROFILER_KERNEL_DISPATCH_ENQUEUE,
			 work->enqueue_contexts);
		work_tell(thread, work, WORK_DISPATCH, work->enqueue_contexts,
			  ROCPROFILER_KERNEL_DISPATCH_ENQUEUE, ROCPROFILER_CALLBACK_PHASE_ENTER,
			  &work->is.dispatch);
		if (work->enqueue_contexts)
			work_see_pushed(thread, work);
		work_settle(work, WORK_DISPATCH, ROCPROFILER_KERNEL_DISPATCH_COMPLETE);
		work_see(thread, work, SDK_DOMAIN_DISPATCH, ROCPROFILER_KERNEL_DISPATCH_COMPLETE,
			 work->callback_contexts[WORK_DISPATCH] |
				 work->buffer_contexts[WORK_DISPATCH] |
				 (contexts & sdk_counting_contexts()));
		work->begun = sdk_work_begins(thread, work->enqueue_contexts != 0);
	}
	sdk_record_end(thread);
	return work;
}

/* Of a plain one nobody hears that it is submitted, and it may have ended by now. */
KYMO_HOT void sdk_dispatch_submitted(struct sdk_work *work, bool failed)
{
	struct sdk_plain *plain = sdk_plain_of(work);
	struct sdk_thread *thread;
	uint32_t before;
	bool busy;

	if (plain) {
		if (failed)
			sdk_plain_failed(plain);
		return;
	}
	thread = sdk_work_end_begin(&busy);
	if (!thread)
		return;
	work_tell(thread, work, WORK_DISPATCH, work->enqueue_contexts,
		  ROCPROFILER_KERNEL_DISPATCH_ENQUEUE, ROCPROFILER_CALLBACK_PHASE_EXIT,
		  &work->is.dispatch);
	before = atomic_fetch_or_explicit(&work->state, WORK_SUBMITTED, memory_order_acq_rel);
	if (before & WORK_COMPLETED)
		dispatch_finish(thread, work, &work->is.dispatch);
	if (failed || (before & WORK_COMPLETED))
		work_give(work);
	thread->busy = busy;
}

void sdk_dispatch_complete(struct sdk_work *work, const rocprofiler_kernel_dispatch_info_t *info,
			   uint64_t start, uint64_t end)
{
	rocprofiler_callback_tracing_kernel_dispatch_data_t *data = &work->is.dispatch;
	struct sdk_plain *plain = sdk_plain_of(work);
	struct sdk_thread *thread;
	bool busy;

	if (plain) {
		sdk_plain_complete(plain, info, start, end);
		return;
	}
	thread = sdk_work_end_begin(&busy);
	if (!thread)
		return;
	sdk_work_order(work->begun, &start, &end);
	/* Until it is submitted the enqueueing thread may be showing the data to a tool. */
	if (atomic_load_explicit(&work->state, memory_order_acquire) & WORK_SUBMITTED) {
		if (info)
			dispatch_set_info(data, info, data->dispatch_info.dispatch_id);
	}
	data->start_timestamp = start;
	data->end_timestamp = end;
	if (atomic_fetch_or_explicit(&work->state, WORK_COMPLETED, memory_order_acq_rel) &
	    WORK_SUBMITTED) {
		dispatch_finish(thread, work, data);
		work_give(work);
	}
	thread->busy = busy;
}

/* ---- what is counted ---- */

bool sdk_work_facts(struct sdk_work *work, unsigned context, struct sdk_work_facts *facts)
{
	unsigned i = 0;

	if (sdk_plain_of(work))
		return false;
	while (i < work->seen_count && work->seen[i].context != context)
		i++;
	if (i == work->seen_count)
		return false;
	facts->correlation_id = (rocprofiler_async_correlation_id_t){
		.internal = work->correlation->id, .external = work->seen[i].external};
	facts->dispatch_info = work->is.dispatch.dispatch_info;
	return true;
}

void *sdk_work_set_counting(struct sdk_work *work, void *counting)
{
	return sdk_plain_of(work) ? NULL : atomic_exchange(&work->counting, counting);
}

void *sdk_work_counting(const struct sdk_work *work)
{
	return ((const struct sdk_work_head *)work)->is_plain ? NULL : atomic_load(&work->counting);
}

void sdk_work_in_order(const struct sdk_work *work, uint64_t *start, uint64_t *end)
{
	sdk_work_order(work->begun, start, end);
}

/* ---- copies ---- */

static void copy_set(rocprofiler_callback_tracing_memory_copy_data_t *data,
		     const struct sdk_copy *copy)
{
	data->size = sizeof(*data);
	data->dst_agent_id = copy->to;
	data->src_agent_id = copy->from;
	data->bytes = copy->bytes;
	data->dst_address.value = copy->to_address;
	data->src_address.value = copy->from_address;
}

static void copy_put(struct sdk_work *work, int32_t operation,
		     const rocprofiler_callback_tracing_memory_copy_data_t *data)
{
	uint64_t now = sdk_now();
	rocprofiler_buffer_tracing_memory_copy_record_t record = {
		.size = sizeof(record),
		.kind = ROCPROFILER_BUFFER_TRACING_MEMORY_COPY,
		.operation = (rocprofiler_memory_copy_operation_t)operation,
		.correlation_id = {.internal = work->correlation->id},
		.thread_id = work->thread_id,
		.start_timestamp = data->start_timestamp,
		.end_timestamp = data->end_timestamp,
		.dst_agent_id = data->dst_agent_id,
		.src_agent_id = data->src_agent_id,
		.bytes = data->bytes,
		.dst_address = data->dst_address,
		.src_address = data->src_address,
	};

	for (unsigned i = 0; i < work->seen_count; i++) {
		const struct sdk_seen *seen = &work->seen[i];
		const struct sdk_context *context = sdk_context_at(seen->context);

		if (!(work->buffer_contexts[WORK_COPY] >> seen->context & 1) ||
		    !sdk_operation_is_in(context->buffers[SDK_DOMAIN_COPY]->operations, operation))
			continue;
		record.correlation_id.external = seen->external;
		sdk_buffer_put_tracing(context->buffers[SDK_DOMAIN_COPY]->buffer, record.kind,
				       &record, sizeof(record), now);
	}
}

struct sdk_work *sdk_copy_begin(const struct sdk_copy *copy)
{
	int32_t operation = (int32_t)copy->operation;
	struct sdk_thread *thread =
		sdk_wants(SDK_DOMAIN_COPY, operation) ? sdk_record_begin() : NULL;
	uint64_t callbacks, buffers, contexts;
	struct sdk_work *work;

	if (!thread)
		return NULL;
	contexts = sdk_active_contexts();
	callbacks = sdk_callbacks_for(contexts, SDK_DOMAIN_COPY, operation);
	buffers = sdk_buffers_for(contexts, SDK_DOMAIN_COPY, operation);
	contexts = callbacks | buffers;
	work = contexts ? work_take(thread, contexts) : NULL;
	if (work)
		work->correlation = sdk_correlation_share(thread);
	if (work && !work->correlation) {
		work_give(work);
		work = NULL;
	}
	if (work) {
		work->callback_contexts[WORK_COPY] = callbacks;
		work->buffer_contexts[WORK_COPY] = buffers;
		work->is.copy.operation = operation;
		copy_set(&work->is.copy.data, copy);
		work_see(thread, work, SDK_DOMAIN_COPY, operation, contexts);
		work_tell(thread, work, WORK_COPY, callbacks, operation,
			  ROCPROFILER_CALLBACK_PHASE_ENTER, &work->is.copy.data);
		work_see_pushed(thread, work);
		work->begun = sdk_work_begins(thread, callbacks != 0);
	}
	sdk_record_end(thread);
	return work;
}

void sdk_copy_complete(struct sdk_work *work, const struct sdk_copy *ran, uint64_t start,
		       uint64_t end)
{
	bool busy;
	struct sdk_thread *thread = sdk_work_end_begin(&busy);

	if (!thread)
		return;
	sdk_work_order(work->begun, &start, &end);
	if (ran)
		copy_set(&work->is.copy.data, ran);
	work->is.copy.data.start_timestamp = start;
	work->is.copy.data.end_timestamp = end;
	work_tell(thread, work, WORK_COPY, work->callback_contexts[WORK_COPY],
		  work->is.copy.operation, ROCPROFILER_CALLBACK_PHASE_EXIT, &work->is.copy.data);
	copy_put(work, work->is.copy.operation, &work->is.copy.data);
	work_give(work);
	thread->busy = busy;
}

/* ---- what is told only afterwards ---- */

void sdk_work_cancel(struct sdk_work *work)
{
	work_give(work);
}

void sdk_work_release(struct sdk_work *work)
{
	work_give(work);
}

/* Any operation of the domain: which it is shows only later. */
static void work_settle_any(struct sdk_work *work, enum work_kind kind, uint64_t active)
{
	work->callback_contexts[kind] = active & sdk_with_callbacks(work_domains[kind]);
	work->buffer_contexts[kind] = active & sdk_with_buffers(work_domains[kind]);
}

static struct sdk_work *work_open(struct sdk_thread *thread)
{
	struct sdk_work settled = {.seen_count = 0}, *work = NULL;
	uint64_t contexts = 0, active = sdk_active_contexts();

	for (int kind = 0; kind < WORK_KINDS; kind++) {
		work_settle_any(&settled, (enum work_kind)kind, active);
		contexts |= settled.callback_contexts[kind] | settled.buffer_contexts[kind];
	}
	contexts |= sdk_counting_contexts();
	if (contexts)
		work = work_take(thread, contexts);
	if (!work)
		return NULL;
	work->correlation = sdk_correlation_share(thread);
	if (!work->correlation) {
		work_give(work);
		return NULL;
	}
	memcpy(work->callback_contexts, settled.callback_contexts, sizeof(work->callback_contexts));
	memcpy(work->buffer_contexts, settled.buffer_contexts, sizeof(work->buffer_contexts));
	work_see(thread, work, SDK_DOMAIN_NONE, 0, contexts);
	return work;
}

KYMO_HOT struct sdk_work *sdk_work_open(void)
{
	bool wanted = sdk_wants_any(SDK_DOMAIN_DISPATCH) || sdk_wants_any(SDK_DOMAIN_COPY);
	struct sdk_thread *thread = wanted ? sdk_record_begin() : NULL;
	struct sdk_work *work;

	if (!thread)
		return NULL;
	work = work_open(thread);
	if (work)
		work->begun = sdk_work_begins(thread, false);
	sdk_record_end(thread);
	return work;
}

struct sdk_work *sdk_work_open_unknown(void)
{
	bool busy;
	struct sdk_thread *thread = sdk_work_end_begin(&busy);
	struct sdk_work *work = NULL;

	if (thread) {
		struct sdk_call *call = thread->call;

		thread->call = NULL; /* whatever this thread is in has nothing to do with it */
		work = work_open(thread);
		thread->call = call;
		thread->busy = busy;
	}
	return work;
}

static struct sdk_work *work_again(struct sdk_work *work)
{
	bool busy;
	struct sdk_thread *thread = sdk_work_end_begin(&busy);
	uint64_t contexts = work->seen_count > WORK_SEEN_FEW ? ~(uint64_t)0 : 0;
	struct sdk_work *again = thread ? work_take(thread, contexts) : NULL;

	if (again) {
		struct sdk_work_head head = again->head;

		memcpy(again, work, sizeof(*again) + work->seen_count * sizeof(again->seen[0]));
		again->head = head;
		again->enqueue_contexts = 0;
		atomic_store_explicit(&again->counting, NULL, memory_order_relaxed);
		atomic_fetch_add_explicit(&again->correlation->references, 1, memory_order_relaxed);
		again->is.dispatch.dispatch_info.dispatch_id = sdk_dispatch_next(thread);
		atomic_store_explicit(&again->state, WORK_SUBMITTED, memory_order_relaxed);
		for (unsigned i = 0; i < again->seen_count; i++)
			again->seen[i].user_data.value = 0;
	}
	if (thread)
		thread->busy = busy;
	return again;
}

struct sdk_work *sdk_work_again(struct sdk_work *work)
{
	struct sdk_plain *plain = sdk_plain_of(work);

	return plain ? sdk_plain_again(plain) : work_again(work);
}

/* Requests are asked now, for the thread that began the work. */
static void work_request(struct sdk_work *work, enum work_kind kind, int32_t operation)
{
	for (unsigned i = 0; i < work->seen_count; i++) {
		struct sdk_seen *seen = &work->seen[i];

		sdk_external_request(sdk_context_at(seen->context), work->thread_id,
				     work_domains[kind], operation, work->correlation->id,
				     &seen->external);
		seen->user_data.value = 0;
	}
}

void sdk_work_dispatch(struct sdk_work *work, rocprofiler_kernel_dispatch_info_t *info,
		       uint64_t start, uint64_t end)
{
	rocprofiler_callback_tracing_kernel_dispatch_data_t data = {.start_timestamp = 0};
	bool busy;
	struct sdk_thread *thread = sdk_work_end_begin(&busy);

	if (!thread)
		return;
	sdk_work_order(work->begun, &start, &end);
	info->dispatch_id = sdk_dispatch_next(thread);
	dispatch_set_info(&data, info, info->dispatch_id);
	data.start_timestamp = start;
	data.end_timestamp = end;
	work_request(work, WORK_DISPATCH, ROCPROFILER_KERNEL_DISPATCH_COMPLETE);
	dispatch_finish(thread, work, &data);
	thread->busy = busy;
}

void sdk_work_copy(struct sdk_work *work, const struct sdk_copy *copy, uint64_t start, uint64_t end)
{
	rocprofiler_callback_tracing_memory_copy_data_t data = {.size = 0};
	int32_t operation = (int32_t)copy->operation;
	bool busy;
	struct sdk_thread *thread = sdk_work_end_begin(&busy);

	if (!thread)
		return;
	sdk_work_order(work->begun, &start, &end);
	copy_set(&data, copy);
	data.start_timestamp = start;
	data.end_timestamp = end;
	work_request(work, WORK_COPY, operation);
	work_tell(thread, work, WORK_COPY, work->callback_contexts[WORK_COPY], operation,
		  ROCPROFILER_CALLBACK_PHASE_ENTER, &data);
	work_tell(thread, work, WORK_COPY, work->callback_contexts[WORK_COPY], operation,
		  ROCPROFILER_CALLBACK_PHASE_EXIT, &data);
	copy_put(work, operation, &data);
	thread->busy = busy;
}
