/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The callbacks, once an adapter has made them the same for all versions of the API.
 *
 * Nothing that NCCL hands in is believed: contexts and handles are ids that are looked up
 * (store_find), never addresses; those of other processes (PXN), of events long gone, stopped
 * twice, or NULL are counted and ignored.
 */
#ifndef KYMO_NCCL_RECORDER_H
#define KYMO_NCCL_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "nccl/communicators.h"
#include "nccl/event.h"

/* Nothing is recorded before, and after recorder_leave(). */
extern _Atomic uint32_t recorder_on;

static inline bool recorder_is_on(void)
{
	return atomic_load_explicit(&recorder_on, memory_order_acquire);
}

/* The handle for NCCL; NULL when the event is not recorded. */
void *recorder_start(void *context, const struct event *event);
void recorder_stop(void *handle);
void recorder_state(void *handle, int state, const struct event_state *arguments);
void recorder_finalize(void *context);
/* The adapter does not know the type. */
void recorder_unknown_type(void);

/* ---- between the files of the recorder ---- */

/* Thread id, cached. */
uint32_t recorder_thread(void);

/* A new event with its head filled in; *ret_id is to be stored by recorder_publish(). NULL: no
 * room, counted. */
struct nccl_event *recorder_event(struct communicator *communicator, const struct event *event,
				  uint64_t ticks, uint64_t *ret_id);

static inline void *recorder_publish(struct nccl_event *record, uint64_t id)
{
	__atomic_store_n(&record->id, id, __ATOMIC_RELEASE);
	return (void *)(uintptr_t)id;
}

/* The operation or event of an id in a record, or NULL. */
struct nccl_operation *recorder_operation(uint64_t id);
struct nccl_event *recorder_parent_event(uint64_t id);
/* Something happened to an operation; false when it is sealed: counted as late. */
bool recorder_touch(struct nccl_operation *operation, uint64_t ticks);
void recorder_running(struct nccl_operation *operation);

static inline void recorder_flag(struct nccl_operation *operation, uint32_t flag)
{
	if (!(GET(operation->flags) & flag))
		__atomic_fetch_or(&operation->flags, flag, __ATOMIC_RELAXED);
}

/* channels.c: kernel channels and phases */
void channels_start(struct communicator *communicator, struct nccl_event *record, uint64_t id,
		    const struct event *event, uint64_t ticks);
void channels_stop(struct nccl_event *record, uint64_t ticks);
void channels_state(struct nccl_event *record, const struct event_state *arguments);

/* proxies.c: proxy operations, steps, control and network plugins */
void *proxies_start(struct communicator *communicator, const struct event *event, uint64_t ticks);
void proxies_stop(struct nccl_event *record, uint64_t ticks);
void proxies_state(struct nccl_event *record, int state, const struct event_state *arguments,
		   uint64_t ticks);

#endif
