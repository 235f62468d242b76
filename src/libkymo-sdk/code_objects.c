/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See code_objects.h. Each context is notified of an object once: when it is loaded, or, where
 * the context was not active then, together with the next one that is. An object comes first, then
 * its kernels; when it is unloaded the object comes first as well, so that a tool can flush what
 * refers to its kernels while it still has them; what has not been handed over by then is. What a
 * tool leaves in user_data at LOAD it gets back at UNLOAD.
 *
 * The list only grows and its links never change, so tools are reported with nothing held.
 */
#include "libkymo-sdk/code_objects.h"

#include <stdlib.h>
#include <string.h>

#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/calls.h"

#define UNLOAD_BUFFER_FLUSH_TIMEOUT_NS 500000000u

struct code_object_symbol {
	struct code_object_symbol *_Atomic next;
	bool is_host_kernel;
	_Atomic uint64_t contexts_told_load,
		contexts_told_unload; /* contexts that know it; that know that it is gone */
	rocprofiler_user_data_t *_Atomic user_data_by_context; /* by context */
	union {
		rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t kernel;
		rocprofiler_callback_tracing_code_object_host_kernel_symbol_register_data_t host;
	} data;
};

struct code_object {
	struct code_object *next; /* older ones; never changed */
	_Atomic bool is_complete, is_unloaded;
	_Atomic uint64_t contexts_told_load, contexts_told_unload;
	rocprofiler_user_data_t *_Atomic user_data_by_context;
	struct code_object_symbol *_Atomic first;
	struct code_object_symbol *last; /* with the lock held */
	rocprofiler_callback_tracing_code_object_load_data_t data;
};

static struct code_object *_Atomic newest_code_object;
static _Atomic uint64_t last_code_object_id, last_kernel_id, last_host_function_id;

static struct code_object *find_code_object(uint64_t id)
{
	struct code_object *object =
		atomic_load_explicit(&newest_code_object, memory_order_acquire);

	while (object && object->data.code_object_id != id)
		object = object->next;
	return object;
}

/* ---- telling ---- */

/* One slot a context, made when the first one is reported. */
static rocprofiler_user_data_t *
find_or_allocate_user_data_slots(rocprofiler_user_data_t *_Atomic *place, unsigned context)
{
	rocprofiler_user_data_t *slots = atomic_load_explicit(place, memory_order_acquire), *made;

	if (slots)
		return &slots[context];
	made = calloc(SDK_STARTED_CONTEXTS_MAX, sizeof(*made));
	if (made && atomic_compare_exchange_strong(place, &slots, made))
		return &made[context];
	free(made);
	return slots ? &slots[context] : NULL;
}

static void report_code_object_event_to_context(struct sdk_thread_state *thread, unsigned context,
						int32_t operation,
						rocprofiler_callback_phase_t phase, void *payload,
						rocprofiler_user_data_t *_Atomic *user_data)
{
	rocprofiler_user_data_t *slot = find_or_allocate_user_data_slots(user_data, context),
				none = {.value = 0};
	rocprofiler_callback_tracing_record_t record = {
		.thread_id = thread->tid,
		.kind = ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT,
		.operation = operation,
		.phase = phase,
		.payload = payload,
	};

	if (sdk_operation_is_in_set(sdk_context_get_by_bit(context)
					    ->callback_services[SDK_DOMAIN_CODE_OBJECT]
					    ->operations,
				    operation))
		sdk_context_call_tool_callback(thread, context, SDK_DOMAIN_CODE_OBJECT, &record,
					       slot ? slot : &none);
}

/* Sets the context's bit; false: it was set, somebody else tells it. */
static bool try_to_claim_report_to_context(_Atomic uint64_t *turns, unsigned context)
{
	uint64_t bit = (uint64_t)1 << context;

	return !(atomic_fetch_or_explicit(turns, bit, memory_order_acq_rel) & bit);
}

static bool is_reported_to_context(_Atomic uint64_t *turns, unsigned context)
{
	return atomic_load_explicit(turns, memory_order_acquire) >> context & 1;
}

static int32_t get_symbol_operation_code(const struct code_object_symbol *symbol)
{
	return symbol->is_host_kernel ? ROCPROFILER_CODE_OBJECT_HOST_KERNEL_SYMBOL_REGISTER
				      : ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER;
}

static void report_code_object_load_to_context(struct sdk_thread_state *thread,
					       struct code_object *object, unsigned context)
{
	struct code_object_symbol *symbol;

	if (try_to_claim_report_to_context(&object->contexts_told_load, context))
		report_code_object_event_to_context(thread, context, ROCPROFILER_CODE_OBJECT_LOAD,
						    ROCPROFILER_CALLBACK_PHASE_LOAD, &object->data,
						    &object->user_data_by_context);
	symbol = atomic_load_explicit(&object->first, memory_order_acquire);
	for (; symbol; symbol = atomic_load_explicit(&symbol->next, memory_order_acquire)) {
		if (try_to_claim_report_to_context(&symbol->contexts_told_load, context))
			report_code_object_event_to_context(
				thread, context, get_symbol_operation_code(symbol),
				ROCPROFILER_CALLBACK_PHASE_LOAD, &symbol->data,
				&symbol->user_data_by_context);
	}
}

/* Tools forget a kernel when its end is reported: records that name it are handed over before. That
 * is not waited for for ever: a tool may itself be waiting for this thread. Backends are not asked
 * for more: this may be within a function of a runtime's that tells us. */
static void flush_buffers_of_context_client(unsigned context)
{
	sdk_buffers_flush_of_client(sdk_context_get_by_bit(context)->client_id,
				    UNLOAD_BUFFER_FLUSH_TIMEOUT_NS);
}

static void report_code_object_unload_to_context(struct sdk_thread_state *thread,
						 struct code_object *object, unsigned context)
{
	struct code_object_symbol *symbol;

	if (!is_reported_to_context(&object->contexts_told_load, context) ||
	    !try_to_claim_report_to_context(&object->contexts_told_unload, context))
		return;
	report_code_object_event_to_context(thread, context, ROCPROFILER_CODE_OBJECT_LOAD,
					    ROCPROFILER_CALLBACK_PHASE_UNLOAD, &object->data,
					    &object->user_data_by_context);
	flush_buffers_of_context_client(context);
	symbol = atomic_load_explicit(&object->first, memory_order_acquire);
	for (; symbol; symbol = atomic_load_explicit(&symbol->next, memory_order_acquire)) {
		if (is_reported_to_context(&symbol->contexts_told_load, context) &&
		    try_to_claim_report_to_context(&symbol->contexts_told_unload, context))
			report_code_object_event_to_context(
				thread, context, get_symbol_operation_code(symbol),
				ROCPROFILER_CALLBACK_PHASE_UNLOAD, &symbol->data,
				&symbol->user_data_by_context);
	}
}

/* Oldest first. */
static void report_code_object_loads_to_contexts(struct sdk_thread_state *thread,
						 struct code_object *object, uint64_t contexts)
{
	struct code_object *batch[64];
	unsigned count = 0;
	struct code_object *rest = object;

	for (; rest && count < 64; rest = rest->next)
		batch[count++] = rest;
	if (rest)
		report_code_object_loads_to_contexts(thread, rest, contexts);
	while (count--) {
		object = batch[count];
		if (!atomic_load(&object->is_complete) || atomic_load(&object->is_unloaded))
			continue;
		for (uint64_t left = contexts; left; left &= left - 1)
			report_code_object_load_to_context(thread, object,
							   (unsigned)__builtin_ctzll(left));
	}
}

static uint64_t get_active_code_object_context_bits(void)
{
	return sdk_contexts_get_active_bits() &
	       sdk_domain_get_callback_context_bits(SDK_DOMAIN_CODE_OBJECT);
}

static void report_unreported_code_object_loads(void)
{
	uint64_t contexts = get_active_code_object_context_bits();
	struct sdk_thread_state *thread = contexts ? sdk_thread_try_enter_recording() : NULL;

	if (!thread)
		return;
	report_code_object_loads_to_contexts(
		thread, atomic_load_explicit(&newest_code_object, memory_order_acquire), contexts);
	sdk_thread_leave_recording(thread);
}

/* ---- what emit.h has ---- */

/* NULL: no memory. */
static char *copy_text_or_empty(const char *text)
{
	return strdup(text ? text : "");
}

uint64_t sdk_code_object_add(const rocprofiler_callback_tracing_code_object_load_data_t *data)
{
	struct code_object *object = calloc(1, sizeof(*object));
	char *uri;

	if (!object)
		return ROCPROFILER_CODE_OBJECT_ID_NONE;
	uri = copy_text_or_empty(data->uri);
	object->data = *data;
	object->data.size = sizeof(object->data);
	object->data.uri = uri ? uri : "";
	object->data.code_object_id = 1 + atomic_fetch_add(&last_code_object_id, 1);
	sdk_acquire_global_lock();
	object->next = atomic_load_explicit(&newest_code_object, memory_order_relaxed);
	atomic_store_explicit(&newest_code_object, object, memory_order_release);
	sdk_release_global_lock();
	return object->data.code_object_id;
}

static bool add_symbol_to_code_object(uint64_t object_id, struct code_object_symbol *symbol)
{
	struct code_object *object = find_code_object(object_id);

	if (!object)
		return false;
	sdk_acquire_global_lock();
	if (object->last)
		atomic_store_explicit(&object->last->next, symbol, memory_order_release);
	else
		atomic_store_explicit(&object->first, symbol, memory_order_release);
	object->last = symbol;
	sdk_release_global_lock();
	/* A kernel that is found only later is reported at once. */
	if (atomic_load(&object->is_complete))
		report_unreported_code_object_loads();
	return true;
}

uint64_t sdk_kernel_symbol_add(
	const rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t *data)
{
	struct code_object_symbol *symbol = calloc(1, sizeof(*symbol));
	char *name;

	if (!symbol)
		return 0;
	name = copy_text_or_empty(data->kernel_name);
	symbol->data.kernel = *data;
	symbol->data.kernel.size = sizeof(*data);
	symbol->data.kernel.kernel_name = name ? name : "";
	symbol->data.kernel.kernel_id = 1 + atomic_fetch_add(&last_kernel_id, 1);
	if (add_symbol_to_code_object(data->code_object_id, symbol))
		return symbol->data.kernel.kernel_id;
	free(name);
	free(symbol);
	return 0;
}

uint64_t sdk_host_kernel_symbol_add(
	const rocprofiler_callback_tracing_code_object_host_kernel_symbol_register_data_t *data)
{
	struct code_object_symbol *symbol = calloc(1, sizeof(*symbol));
	char *name;

	if (!symbol)
		return 0;
	name = copy_text_or_empty(data->device_function);
	symbol->is_host_kernel = true;
	symbol->data.host = *data;
	symbol->data.host.size = sizeof(*data);
	symbol->data.host.device_function = name ? name : "";
	symbol->data.host.host_function_id = 1 + atomic_fetch_add(&last_host_function_id, 1);
	if (add_symbol_to_code_object(data->code_object_id, symbol))
		return symbol->data.host.host_function_id;
	free(name);
	free(symbol);
	return 0;
}

void sdk_code_object_complete_and_report(uint64_t id)
{
	struct code_object *object = find_code_object(id);

	if (!object || atomic_exchange(&object->is_complete, true))
		return;
	report_unreported_code_object_loads();
}

static void report_code_object_unload(struct code_object *object, uint64_t contexts)
{
	struct sdk_thread_state *thread = sdk_thread_get_or_create_own_state();
	bool busy = thread ? thread->busy : false;

	if (!thread)
		return;
	thread->busy = true;
	for (; contexts; contexts &= contexts - 1)
		report_code_object_unload_to_context(thread, object,
						     (unsigned)__builtin_ctzll(contexts));
	thread->busy = busy;
}

/* A context that was told of it is notified of its end, unless it is stopped. */
void sdk_code_object_report_unload(uint64_t id)
{
	struct code_object *object = find_code_object(id);

	if (!object || atomic_exchange(&object->is_unloaded, true))
		return;
	report_code_object_unload(object, get_active_code_object_context_bits());
}

void sdk_code_objects_report_unloads(uint64_t contexts)
{
	struct code_object *object =
		atomic_load_explicit(&newest_code_object, memory_order_acquire);

	contexts &= get_active_code_object_context_bits();
	for (; object && contexts; object = object->next) {
		if (!atomic_load(&object->is_unloaded))
			report_code_object_unload(object, contexts);
	}
}
