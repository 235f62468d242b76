/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The callbacks, once an adapter has made them the same for all versions of the API.
 *
 * Nothing that NCCL hands in is believed: contexts and handles are ids that are looked up
 * (store_resolve_id), never addresses; those of other processes (PXN), of events long gone,
 * stopped twice are counted and ignored. NULL is ignored: net plugins stop it after each transfer
 * whose events nobody asked for.
 */
#ifndef KYMO_NCCL_RECORDER_H
#define KYMO_NCCL_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "nccl/communicators.h"
#include "nccl/event.h"
#include "nccl/names.h"

/* recorder_mode; nothing is recorded before init, and in forked children. */
extern _Atomic uint32_t recorder_current_mode;

enum recorder_mode { RECORDER_OFF, RECORDER_ON_WITHOUT_CALL_TRACE, RECORDER_ON_WITH_CALL_TRACE };

static inline bool recorder_is_on(void)
{
	return atomic_load_explicit(&recorder_current_mode, memory_order_acquire);
}

/* On, and calls are not traced. */
static inline bool recorder_is_on_without_call_trace(void)
{
	return __builtin_expect(
		atomic_load_explicit(&recorder_current_mode, memory_order_acquire) ==
			RECORDER_ON_WITHOUT_CALL_TRACE,
		1);
}

/* The handle for NCCL; NULL when the event is not recorded. */
void *recorder_record_event_start(void *context, const struct plugin_event_start_arguments *event);
void recorder_record_event_stop(void *handle);
void recorder_record_event_state(void *handle, int state,
				 const struct event_state_arguments *arguments);
void recorder_record_communicator_finalize(void *context);
/* Events that are not asked for any more (stops_kernel_channels_at_capture). */
uint32_t recorder_get_disabled_event_mask(void);
/* The adapter does not know the type. */
void recorder_count_unknown_event_type(void);

/* ---- between the files of the recorder ---- */

/* What a thread remembers. */
struct recorder_thread_state {
	uint32_t thread; /* id */
	void *context;   /* of the last event, and what it is; contexts never go away */
	struct communicator_recording_state *communicator;
	struct last_operation_names names;
};

struct recorder_thread_state *recorder_initialize_thread_state(void);
struct communicator_recording_state *
recorder_find_and_cache_communicator(struct recorder_thread_state *self, void *context);

static inline struct recorder_thread_state *recorder_get_thread_state(void)
{
	extern __attribute__((visibility(
		"hidden"))) __thread struct recorder_thread_state recorder_thread_variables;
	struct recorder_thread_state *self = &recorder_thread_variables;

	return __builtin_expect(self->thread != 0, 1) ? self : recorder_initialize_thread_state();
}

static inline uint32_t recorder_get_thread_id(void)
{
	return recorder_get_thread_state()->thread;
}

/* The communicator of a context, or NULL, counted. */
static inline struct communicator_recording_state *
recorder_find_communicator_of_context(struct recorder_thread_state *self, void *context)
{
	struct communicator_recording_state *communicator = self->communicator;

	/* Its record may have been overwritten since: `id` is in the line that `flags` is in. */
	if (__builtin_expect(self->context != context || !communicator ||
				     RELAXED_LOAD(communicator->record->id) !=
					     (uint64_t)(uintptr_t)context,
			     0))
		communicator = recorder_find_and_cache_communicator(self, context);
	if (__builtin_expect(communicator && RELAXED_LOAD(communicator->record->flags) &
						     NCCL_COMMUNICATOR_FINALIZED,
			     0))
		store_count_loss(NCCL_LOSS_FINALIZED);
	return communicator;
}

/* The id of an operation or event that NCCL names as group; 0: it is none of ours. */
uint64_t recorder_get_valid_group_id(void *parent);
/* There is no room for an event. */
void recorder_count_dropped_event(struct communicator_recording_state *communicator,
				  struct nccl_operation *operation);
/* The parent that an event cannot be without was not found. */
void recorder_count_missing_parent(enum store_id_resolution_kind found, uint8_t *flags);

/* A new event with its head filled in; *ret_id is to be stored by recorder_publish_event(). NULL:
 * no room, counted. */
struct nccl_event *recorder_add_event(struct communicator_recording_state *communicator,
				      const struct plugin_event_start_arguments *event,
				      uint64_t ticks, uint64_t *ret_id);

static inline void *recorder_publish_event(struct nccl_event *record, uint64_t id)
{
	__atomic_store_n(&record->id, id, __ATOMIC_RELEASE);
	return (void *)(uintptr_t)id;
}

/* The operation or event of an id in a record, or NULL. */
struct nccl_operation *recorder_find_operation(uint64_t id);
struct nccl_event *recorder_find_event(uint64_t id);
bool recorder_count_late_event(struct nccl_operation *operation);

/* Something happened to an operation; false when it is sealed: counted as late. */
static inline bool recorder_update_operation_last_ticks(struct nccl_operation *operation,
							uint64_t ticks)
{
	if (__builtin_expect(RELAXED_LOAD(operation->flags) & NCCL_OPERATION_SEALED, 0))
		return recorder_count_late_event(operation);
	RELAXED_STORE(operation->last, ticks);
	return true;
}
void recorder_mark_operation_running(struct nccl_operation *operation,
				     struct communicator_recording_state *communicator);

/* It is seen to run, by its own communicator. */
static inline void
recorder_mark_operation_running_once(struct nccl_operation *operation,
				     struct communicator_recording_state *communicator)
{
	if (__builtin_expect(RELAXED_LOAD(operation->state) < NCCL_OPERATION_RUNNING ||
				     RELAXED_LOAD(communicator->last_ran_ordinal_plus_one) <=
					     operation->ordinal,
			     0))
		recorder_mark_operation_running(operation, communicator);
}

static inline void recorder_set_operation_flag(struct nccl_operation *operation, uint32_t flag)
{
	if (!(RELAXED_LOAD(operation->flags) & flag))
		__atomic_fetch_or(&operation->flags, flag, __ATOMIC_RELAXED);
}

/* channels.c: kernel channels and phases. The first one is for adapters: a channel's members come
 * in registers, and no event is made of them. */
void *channels_record_kernel_channel_start(void *context, void *parent, uint8_t channel,
					   uint64_t gpu_time);
void *channels_record_event_start(struct recorder_thread_state *self,
				  struct communicator_recording_state *communicator,
				  const struct plugin_event_start_arguments *event, uint64_t ticks);
/* The time that a channel stopped by the GPU; false: the handle is none of a channel. */
bool channels_set_gpu_stop_time_by_handle(void *handle, uint64_t gpu_time);
void channels_add_stop_to_operation(struct nccl_event *record, uint64_t ticks);
void channels_record_gpu_stop_time(struct nccl_event *record,
				   const struct event_state_arguments *arguments);

/* proxies.c: proxy operations, steps, control and network plugins */
void *proxies_record_event_start(struct communicator_recording_state *communicator,
				 const struct plugin_event_start_arguments *event, uint64_t ticks);
void proxies_add_stop_to_operation(struct nccl_event *record, uint64_t ticks);
void proxies_record_event_state(struct nccl_event *record, int state,
				const struct event_state_arguments *arguments, uint64_t ticks);

#endif
