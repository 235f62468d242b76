/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is reported to tools: calls of runtimes, work in flight, code objects. device_sink.c passes
 * on what the backends of src/device see, markers.c what the program marks, the bench and the unit
 * tests call it directly. Whoever tells names a *domain*; the kinds that tools know are in the
 * table of domains.c.
 *
 * The rules of the record path: one load says that nobody wants it (sdk_is_operation_wanted()); no
 * lock, and no allocation once a thread has been here before; no tool's function is called with
 * anything held. Which contexts hear of the end of something is settled when it begins.
 */
#ifndef KYMO_LIBKYMO_SDK_EMIT_H
#define KYMO_LIBKYMO_SDK_EMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rocprofiler-sdk/rocprofiler.h>

#include "libkymo-sdk/base/clock.h"
#include "libkymo-sdk/tables/domains.h"

/* Contexts that were ever started have a bit each. */
#define SDK_STARTED_CONTEXTS_MAX 64

/* Contexts that want an operation of a domain now, by operation. */
extern _Atomic uint64_t
	sdk_wanted_operation_bits_by_domain[SDK_DOMAIN_COUNT][SDK_OPERATIONS_MAX / 64];

/* Does any active context want it? One load. */
static inline bool sdk_is_operation_wanted(enum sdk_domain domain, int32_t operation)
{
	uint64_t word;

	if ((uint32_t)operation >= SDK_OPERATIONS_MAX)
		return false;
	word = atomic_load_explicit(&sdk_wanted_operation_bits_by_domain[domain][operation / 64],
				    memory_order_relaxed);
	return word >> (operation % 64) & 1;
}

bool sdk_is_domain_wanted(enum sdk_domain domain);

/* ---- calls of a runtime: ENTER and EXIT on one thread, well nested ---- */

struct sdk_correlation; /* shared by a call and the work in flight that it started */

/* What one context keeps of a call between ENTER and EXIT. */
struct sdk_context_call_data_entry {
	rocprofiler_user_data_t user_data, external_id;
	uint8_t context;
	bool is_external_id_requested; /* external comes from the tool's request function, not from
					  a stack */
};

/* On the stack of the caller, from enter to exit; nothing in it needs to be set before. Only the
 * entries of `seen` that are used are ever touched. */
struct sdk_call_state {
	uint64_t callback_context_bits, buffer_context_bits, retirement_context_bits;
	uint64_t id, ancestor_id, start;
	struct sdk_call_state *outer;
	struct sdk_correlation *shared_correlation;
	uint64_t thread_id;
	enum sdk_domain domain;
	int32_t operation;
	uint8_t seen_count;
	bool is_detached;
	struct sdk_context_call_data_entry seen[SDK_STARTED_CONTEXTS_MAX];
};

/* false: nobody wants it, and there is no exit. payload: the kind's ..._data_t, valid until exit.
 */
bool sdk_call_enter(struct sdk_call_state *call, enum sdk_domain domain, int32_t operation,
		    void *payload);
/* The same, for what does not end in nested order (ranges): nothing becomes its descendant, and
 * `call` outlives the function. Its exit may come from another thread. */
bool sdk_call_enter_detached(struct sdk_call_state *call, enum sdk_domain domain, int32_t operation,
			     void *payload);
/* The same call once more, as one of another domain, within it: it has the id of `first`. */
bool sdk_call_enter_in_second_domain(struct sdk_call_state *call,
				     const struct sdk_call_state *first, enum sdk_domain domain,
				     int32_t operation, void *payload);
/* record: nothing, or what the kind's buffered record has behind the common part (..._EXT). */
void sdk_call_exit(struct sdk_call_state *call, void *payload);
/* What has no phases: told at once. true: the caller puts its records into the buffers of
 * call->buffer_context_bits (events.c shows how), and then ends it. */
bool sdk_call_begin_instant_event(struct sdk_call_state *call, enum sdk_domain domain,
				  int32_t operation, void *payload);
void sdk_call_end_instant_event(struct sdk_call_state *call);

/* ENTER and EXIT at once: allocations, scratch memory. Times 0: now. */
void sdk_report_allocation(rocprofiler_memory_allocation_operation_t operation,
			   rocprofiler_agent_id_t agent, uint64_t address, uint64_t size,
			   uint64_t start, uint64_t end);

/* ---- work in flight: begun on one thread, finished anywhere ---- */

struct sdk_device_work;

/* KERNEL_DISPATCH ENQUEUE, ENTER; then the contexts that hear of the completion are settled.
 * dispatch_id is filled in. NULL: nobody wants it. */
struct sdk_device_work *sdk_dispatch_report_enqueue(rocprofiler_kernel_dispatch_info_t *info);
/* ENQUEUE, EXIT. failed: it is not going to run; the work is gone. */
void sdk_dispatch_report_submitted(struct sdk_device_work *work, bool failed);
/* COMPLETE; the work is gone. May come before the EXIT above has been told, from another thread: it
 * is reported behind it. info: replaces what was told at the enqueueing, or NULL. */
void sdk_dispatch_report_complete(struct sdk_device_work *work,
				  const rocprofiler_kernel_dispatch_info_t *info, uint64_t start,
				  uint64_t end);

struct sdk_memory_copy_info {
	rocprofiler_memory_copy_operation_t operation;
	rocprofiler_agent_id_t from, to;
	uint64_t bytes, from_address, to_address;
};

struct sdk_device_work *sdk_copy_report_begin(const struct sdk_memory_copy_info *copy);
void sdk_copy_report_complete(struct sdk_device_work *work, const struct sdk_memory_copy_info *ran,
			      uint64_t start, uint64_t end);
void sdk_work_cancel(struct sdk_device_work *work); /* it failed: nothing more is reported of it */

/* What a runtime tells only afterwards: the correlation of the innermost call of this thread and
 * the contexts that want kernels or copies, kept until sdk_work_release(). NULL: nobody does. */
struct sdk_device_work *sdk_work_create_for_call(void);
/* The same for work whose launch nobody saw: an id of its own, any thread. */
struct sdk_device_work *sdk_work_create_without_call(void);
/* The same correlation and contexts again; `dispatch`: with an id of its own. */
struct sdk_device_work *sdk_work_duplicate(struct sdk_device_work *work);
void sdk_work_report_dispatch_completion(struct sdk_device_work *work,
					 rocprofiler_kernel_dispatch_info_t *info, uint64_t start,
					 uint64_t end);
void sdk_work_report_copy(struct sdk_device_work *work, const struct sdk_memory_copy_info *copy,
			  uint64_t start, uint64_t end);
void sdk_work_release(struct sdk_device_work *work);

/* ---- work that is counted (counters/) ---- */

struct sdk_counted_dispatch_info {
	rocprofiler_async_correlation_id_t correlation_id;
	rocprofiler_kernel_dispatch_info_t dispatch_info;
};

/* As a context (by its bit) sees it, which was counting when the work began. false: it was not. */
bool sdk_work_copy_counted_dispatch_info(struct sdk_device_work *work, unsigned context,
					 struct sdk_counted_dispatch_info *facts);
/* What belongs to the counting of it; the one who puts NULL there has what was there. */
void *sdk_work_exchange_counting_state(struct sdk_device_work *work, void *counting);
void *sdk_work_get_counting_state(const struct sdk_device_work *work);
/* Times of a device, kept in order. */
void sdk_work_clamp_times(const struct sdk_device_work *work, uint64_t *start, uint64_t *end);

/* Work begun and not finished; waits for it, until deadline_ns of CLOCK_MONOTONIC at most. */
uint64_t sdk_work_get_in_flight_count(void);
bool sdk_work_wait_until_none_in_flight(uint64_t deadline_ns);
void sdk_work_reset_after_fork(void);

/* ---- code objects ---- */

/* Strings and data are copied. Returns the id, which is put into the copy. */
uint64_t sdk_code_object_add(const rocprofiler_callback_tracing_code_object_load_data_t *data);
uint64_t sdk_kernel_symbol_add(
	const rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t *data);
uint64_t sdk_host_kernel_symbol_add(
	const rocprofiler_callback_tracing_code_object_host_kernel_symbol_register_data_t *data);
void sdk_code_object_report_unload(uint64_t id);
/* Symbols are reported when all of an object are known: behind the last one. */
void sdk_code_object_complete_and_report(uint64_t id);

/* ---- runtimes, agents, threads ---- */

void sdk_report_runtime_ready(rocprofiler_runtime_initialization_operation_t operation,
			      uint64_t version, uint64_t instance);
/* The agent is copied; ids and counts are filled in. The same device (uuid, or name and PCI place)
 * gives the same id. 0: no memory. */
rocprofiler_agent_id_t sdk_agent_register(const rocprofiler_agent_v0_t *agent, bool is_visible);
rocprofiler_agent_id_t sdk_get_host_agent_id(void);

/* The calling thread is not the program's: nothing that it does is reported. */
void sdk_thread_exclude_own_from_reports(void);
/* Around the creation of every thread of ours or of a backend; reported to tools. */
void sdk_thread_notify_creating(rocprofiler_runtime_library_t library);
void sdk_thread_notify_created(rocprofiler_runtime_library_t library);

#endif
