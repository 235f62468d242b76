/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Work in flight inside: what work.c (its life, kernels) and copies.c share.
 */
#ifndef KYMO_LIBKYMO_SDK_WORK_PRIVATE_H
#define KYMO_LIBKYMO_SDK_WORK_PRIVATE_H

#include "libkymo-sdk/correlation.h"
#include "libkymo-sdk/external.h"
#include "libkymo-sdk/work.h"

#define SMALL_WORK_CONTEXTS_MAX  4
#define WORK_STATE_SUBMITTED_BIT 1u
#define WORK_STATE_COMPLETED_BIT 2u

enum work_kind { WORK_KIND_DISPATCH, WORK_KIND_COPY, WORK_KIND_COUNT };

static const enum sdk_domain domain_by_work_kind[WORK_KIND_COUNT] = {SDK_DOMAIN_DISPATCH,
								     SDK_DOMAIN_COPY};

struct sdk_device_work {
	struct sdk_work_header head;
	struct sdk_correlation *correlation;
	uint64_t thread_id, ancestor_id, begun_ns;
	/* Who hears of the end, by kind of work. */
	uint64_t callback_context_bits[WORK_KIND_COUNT], buffer_context_bits[WORK_KIND_COUNT];
	uint64_t enqueue_context_bits; /* who heard of the beginning, and hears that it is submitted
					*/
	_Atomic uint32_t state;
	void *_Atomic counting; /* counters/dispatches.c */
	union {
		rocprofiler_callback_tracing_kernel_dispatch_data_t dispatch;
		struct {
			rocprofiler_callback_tracing_memory_copy_data_t data;
			int32_t operation;
		} copy;
	} payload;
	uint8_t seen_count;
	struct sdk_context_call_data_entry
		seen[]; /* SMALL_WORK_CONTEXTS_MAX, or SDK_STARTED_CONTEXTS_MAX */
};

/* Work from the thread's pool, with room for `contexts` (bits); NULL: no memory. */
struct sdk_device_work *sdk_work_allocate(struct sdk_thread_state *thread, uint64_t contexts);
/* Back to its pool, from any thread; its correlation has one reference less. */
void sdk_work_free(struct sdk_device_work *work);
/* Adds contexts that are not seen yet; their external ids are asked for. */
void sdk_work_add_contexts(struct sdk_thread_state *thread, struct sdk_device_work *work,
			   enum sdk_domain domain, int32_t operation, uint64_t contexts);
/* External ids as they stand now, of the contexts whose ids come from a stack. */
void sdk_work_update_pushed_external_ids(struct sdk_thread_state *thread,
					 struct sdk_device_work *work);
/* External ids by the tools' request functions, for the thread that began the work. */
void sdk_work_request_external_ids(struct sdk_device_work *work, enum work_kind kind,
				   int32_t operation);
/* A phase of the work, to the callbacks of those `contexts` (bits) that saw it begin. */
void sdk_work_report_phase_to_contexts(struct sdk_thread_state *thread,
				       struct sdk_device_work *work, enum work_kind kind,
				       uint64_t contexts, int32_t operation,
				       rocprofiler_callback_phase_t phase, void *payload);

static inline void
sdk_work_report_phase_if_wanted(struct sdk_thread_state *thread, struct sdk_device_work *work,
				enum work_kind kind, uint64_t contexts, int32_t operation,
				rocprofiler_callback_phase_t phase, void *payload)
{
	if (contexts)
		sdk_work_report_phase_to_contexts(thread, work, kind, contexts, operation, phase,
						  payload);
}

#endif
