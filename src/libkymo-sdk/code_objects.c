/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See code_objects.h. Each context is told of an object once: when it is loaded, or, where the
 * context was not active then, together with the next one that is. An object comes first, then its
 * kernels; when it is unloaded the object comes first as well, so that a tool can flush what refers
 * to its kernels while it still has them; what has not been handed over by then is. What a tool
 * leaves in user_data at LOAD it gets back at UNLOAD.
 *
 * The list only grows and its links never change, so tools are told with nothing held.
 */
#include "libkymo-sdk/code_objects.h"

#include <stdlib.h>
#include <string.h>

#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/calls.h"
#include "libkymo-sdk/state.h"

#define HAND_OVER_NS 500000000u

struct symbol {
	struct symbol *_Atomic next;
	bool is_host;
	_Atomic uint64_t told, untold; /* contexts that know it; that know that it is gone */
	rocprofiler_user_data_t *_Atomic user_data; /* by context */
	union {
		rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t kernel;
		rocprofiler_callback_tracing_code_object_host_kernel_symbol_register_data_t host;
	} data;
};

struct object {
	struct object *next; /* older ones; never changed */
	_Atomic bool is_complete, is_unloaded;
	_Atomic uint64_t told, untold;
	rocprofiler_user_data_t *_Atomic user_data;
	struct symbol *_Atomic first;
	struct symbol *last; /* with the lock held */
	rocprofiler_callback_tracing_code_object_load_data_t data;
};

static struct object *_Atomic objects;
static _Atomic uint64_t object_ids, kernel_ids, host_ids;

static struct object *object_find(uint64_t id)
{
	struct object *object = atomic_load_explicit(&objects, memory_order_acquire);

	while (object && object->data.code_object_id != id)
		object = object->next;
	return object;
}

/* ---- telling ---- */

/* One slot a context, made when the first one is told. */
static rocprofiler_user_data_t *user_data_of(rocprofiler_user_data_t *_Atomic *place,
					     unsigned context)
{
	rocprofiler_user_data_t *slots = atomic_load_explicit(place, memory_order_acquire), *made;

	if (slots)
		return &slots[context];
	made = calloc(SDK_CONTEXTS_MAX, sizeof(*made));
	if (made && atomic_compare_exchange_strong(place, &slots, made))
		return &made[context];
	free(made);
	return slots ? &slots[context] : NULL;
}

static void object_tell_one(struct sdk_thread *thread, unsigned context, int32_t operation,
			    rocprofiler_callback_phase_t phase, void *payload,
			    rocprofiler_user_data_t *_Atomic *user_data)
{
	rocprofiler_user_data_t *slot = user_data_of(user_data, context), none = {.value = 0};
	rocprofiler_callback_tracing_record_t record = {
		.thread_id = thread->tid,
		.kind = ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT,
		.operation = operation,
		.phase = phase,
		.payload = payload,
	};

	if (sdk_operation_is_in(
		    sdk_context_at(context)->callbacks[SDK_DOMAIN_CODE_OBJECT]->operations,
		    operation))
		sdk_tell(thread, context, SDK_DOMAIN_CODE_OBJECT, &record, slot ? slot : &none);
}

/* Sets the context's bit; false: it was set, somebody else tells it. */
static bool take_turn(_Atomic uint64_t *turns, unsigned context)
{
	uint64_t bit = (uint64_t)1 << context;

	return !(atomic_fetch_or_explicit(turns, bit, memory_order_acq_rel) & bit);
}

static bool is_turn(_Atomic uint64_t *turns, unsigned context)
{
	return atomic_load_explicit(turns, memory_order_acquire) >> context & 1;
}

static int32_t symbol_operation(const struct symbol *symbol)
{
	return symbol->is_host ? ROCPROFILER_CODE_OBJECT_HOST_KERNEL_SYMBOL_REGISTER
			       : ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER;
}

static void object_tell_load(struct sdk_thread *thread, struct object *object, unsigned context)
{
	struct symbol *symbol;

	if (take_turn(&object->told, context))
		object_tell_one(thread, context, ROCPROFILER_CODE_OBJECT_LOAD,
				ROCPROFILER_CALLBACK_PHASE_LOAD, &object->data, &object->user_data);
	symbol = atomic_load_explicit(&object->first, memory_order_acquire);
	for (; symbol; symbol = atomic_load_explicit(&symbol->next, memory_order_acquire)) {
		if (take_turn(&symbol->told, context))
			object_tell_one(thread, context, symbol_operation(symbol),
					ROCPROFILER_CALLBACK_PHASE_LOAD, &symbol->data,
					&symbol->user_data);
	}
}

/* Tools forget a kernel when its end is told: records that name it are handed over before. That is
 * not waited for for ever: a tool may itself be waiting for this thread. Backends are not asked for
 * more: this may be within a function of a runtime's that tells us. */
static void hand_over_records(unsigned context)
{
	sdk_buffer_flush_client(sdk_context_at(context)->client, HAND_OVER_NS);
}

static void object_tell_unload(struct sdk_thread *thread, struct object *object, unsigned context)
{
	struct symbol *symbol;

	if (!is_turn(&object->told, context) || !take_turn(&object->untold, context))
		return;
	object_tell_one(thread, context, ROCPROFILER_CODE_OBJECT_LOAD,
			ROCPROFILER_CALLBACK_PHASE_UNLOAD, &object->data, &object->user_data);
	hand_over_records(context);
	symbol = atomic_load_explicit(&object->first, memory_order_acquire);
	for (; symbol; symbol = atomic_load_explicit(&symbol->next, memory_order_acquire)) {
		if (is_turn(&symbol->told, context) && take_turn(&symbol->untold, context))
			object_tell_one(thread, context, symbol_operation(symbol),
					ROCPROFILER_CALLBACK_PHASE_UNLOAD, &symbol->data,
					&symbol->user_data);
	}
}

/* Oldest first. */
static void objects_tell_loads(struct sdk_thread *thread, struct object *object, uint64_t contexts)
{
	struct object *batch[64];
	unsigned count = 0;
	struct object *rest = object;

	for (; rest && count < 64; rest = rest->next)
		batch[count++] = rest;
	if (rest)
		objects_tell_loads(thread, rest, contexts);
	while (count--) {
		object = batch[count];
		if (!atomic_load(&object->is_complete) || atomic_load(&object->is_unloaded))
			continue;
		for (uint64_t left = contexts; left; left &= left - 1)
			object_tell_load(thread, object, (unsigned)__builtin_ctzll(left));
	}
}

static uint64_t active_contexts(void)
{
	return sdk_active_contexts() & sdk_with_callbacks(SDK_DOMAIN_CODE_OBJECT);
}

static void tell_loads(void)
{
	uint64_t contexts = active_contexts();
	struct sdk_thread *thread = contexts ? sdk_record_begin() : NULL;

	if (!thread)
		return;
	objects_tell_loads(thread, atomic_load_explicit(&objects, memory_order_acquire), contexts);
	sdk_record_end(thread);
}

/* ---- what emit.h has ---- */

/* NULL: no memory. */
static char *copy_text(const char *text)
{
	return strdup(text ? text : "");
}

uint64_t sdk_code_object_load(const rocprofiler_callback_tracing_code_object_load_data_t *data)
{
	struct object *object = calloc(1, sizeof(*object));
	char *uri;

	if (!object)
		return ROCPROFILER_CODE_OBJECT_ID_NONE;
	uri = copy_text(data->uri);
	object->data = *data;
	object->data.size = sizeof(object->data);
	object->data.uri = uri ? uri : "";
	object->data.code_object_id = 1 + atomic_fetch_add(&object_ids, 1);
	sdk_lock();
	object->next = atomic_load_explicit(&objects, memory_order_relaxed);
	atomic_store_explicit(&objects, object, memory_order_release);
	sdk_unlock();
	return object->data.code_object_id;
}

static bool symbol_add(uint64_t object_id, struct symbol *symbol)
{
	struct object *object = object_find(object_id);

	if (!object)
		return false;
	sdk_lock();
	if (object->last)
		atomic_store_explicit(&object->last->next, symbol, memory_order_release);
	else
		atomic_store_explicit(&object->first, symbol, memory_order_release);
	object->last = symbol;
	sdk_unlock();
	/* A kernel that is found only later is told at once. */
	if (atomic_load(&object->is_complete))
		tell_loads();
	return true;
}

uint64_t sdk_kernel_symbol(
	const rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t *data)
{
	struct symbol *symbol = calloc(1, sizeof(*symbol));
	char *name;

	if (!symbol)
		return 0;
	name = copy_text(data->kernel_name);
	symbol->data.kernel = *data;
	symbol->data.kernel.size = sizeof(*data);
	symbol->data.kernel.kernel_name = name ? name : "";
	symbol->data.kernel.kernel_id = 1 + atomic_fetch_add(&kernel_ids, 1);
	if (symbol_add(data->code_object_id, symbol))
		return symbol->data.kernel.kernel_id;
	free(name);
	free(symbol);
	return 0;
}

uint64_t sdk_host_kernel_symbol(
	const rocprofiler_callback_tracing_code_object_host_kernel_symbol_register_data_t *data)
{
	struct symbol *symbol = calloc(1, sizeof(*symbol));
	char *name;

	if (!symbol)
		return 0;
	name = copy_text(data->device_function);
	symbol->is_host = true;
	symbol->data.host = *data;
	symbol->data.host.size = sizeof(*data);
	symbol->data.host.device_function = name ? name : "";
	symbol->data.host.host_function_id = 1 + atomic_fetch_add(&host_ids, 1);
	if (symbol_add(data->code_object_id, symbol))
		return symbol->data.host.host_function_id;
	free(name);
	free(symbol);
	return 0;
}

void sdk_code_object_complete(uint64_t id)
{
	struct object *object = object_find(id);

	if (!object || atomic_exchange(&object->is_complete, true))
		return;
	tell_loads();
}

static void object_unload(struct object *object, uint64_t contexts)
{
	struct sdk_thread *thread = sdk_thread_self();
	bool busy = thread ? thread->busy : false;

	if (!thread)
		return;
	thread->busy = true;
	for (; contexts; contexts &= contexts - 1)
		object_tell_unload(thread, object, (unsigned)__builtin_ctzll(contexts));
	thread->busy = busy;
}

/* A context that was told of it is told of its end, unless it is stopped. */
void sdk_code_object_unload(uint64_t id)
{
	struct object *object = object_find(id);

	if (!object || atomic_exchange(&object->is_unloaded, true))
		return;
	object_unload(object, active_contexts());
}

void sdk_code_objects_unload_for(uint64_t contexts)
{
	struct object *object = atomic_load_explicit(&objects, memory_order_acquire);

	contexts &= active_contexts();
	for (; object && contexts; object = object->next) {
		if (!atomic_load(&object->is_unloaded))
			object_unload(object, contexts);
	}
}
