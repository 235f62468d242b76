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
#include "nccl/names.h"

/* recorder_mode; nothing is recorded before init, and in forked children. */
extern _Atomic uint32_t recorder_on;

enum recorder_mode { RECORDER_OFF, RECORDER_PLAIN, RECORDER_TRACED };

static inline bool recorder_is_on(void)
{
	return atomic_load_explicit(&recorder_on, memory_order_acquire);
}

/* On, and calls are not traced. */
static inline bool recorder_is_plain(void)
{
	return __builtin_expect(
		atomic_load_explicit(&recorder_on, memory_order_acquire) == RECORDER_PLAIN, 1);
}

/* The handle for NCCL; NULL when the event is not recorded. */
void *recorder_start(void *context, const struct event *event);
void recorder_stop(void *handle);
void recorder_state(void *handle, int state, const struct event_state *arguments);
void recorder_finalize(void *context);
/* Events that are not asked for any more (graphs_fast). */
uint32_t recorder_given_up(void);
/* The adapter does not know the type. */
void recorder_unknown_type(void);

/* ---- between the files of the recorder ---- */

/* What a thread remembers. */
struct recorder_self {
	uint32_t thread; /* id */
	void *context;   /* of the last event, and what it is; contexts never go away */
	struct communicator *communicator;
	struct names names;
};

struct recorder_self *recorder_self_begin(void);
struct communicator *recorder_look_up(struct recorder_self *self, void *context);

static inline struct recorder_self *recorder_self(void)
{
	extern __attribute__((
		visibility("hidden"))) __thread struct recorder_self recorder_thread_variables;
	struct recorder_self *self = &recorder_thread_variables;

	return __builtin_expect(self->thread != 0, 1) ? self : recorder_self_begin();
}

static inline uint32_t recorder_thread(void)
{
	return recorder_self()->thread;
}

/* The communicator of a context, or NULL, counted. */
static inline struct communicator *recorder_communicator(struct recorder_self *self, void *context)
{
	struct communicator *communicator = self->communicator;

	if (__builtin_expect(self->context != context || !communicator, 0))
		communicator = recorder_look_up(self, context);
	if (__builtin_expect(communicator &&
				     GET(communicator->record->flags) & NCCL_COMMUNICATOR_FINALIZED,
			     0))
		store_count(NCCL_LOSS_FINALIZED);
	return communicator;
}

/* The id of an operation or event that NCCL names as group; 0: it is none of ours. */
uint64_t recorder_resolve(void *parent);
/* There is no room for an event. */
void recorder_drop(struct communicator *communicator, struct nccl_operation *operation);
/* The parent that an event cannot be without was not found. */
void recorder_orphan(enum store_found found, uint8_t *flags);

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
bool recorder_late(struct nccl_operation *operation);

/* Something happened to an operation; false when it is sealed: counted as late. */
static inline bool recorder_touch(struct nccl_operation *operation, uint64_t ticks)
{
	if (__builtin_expect(GET(operation->flags) & NCCL_OPERATION_SEALED, 0))
		return recorder_late(operation);
	SET(operation->last, ticks);
	return true;
}
void recorder_run(struct nccl_operation *operation, struct communicator *communicator);

/* It is seen to run, by its own communicator. */
static inline void recorder_running(struct nccl_operation *operation,
				    struct communicator *communicator)
{
	if (__builtin_expect(GET(operation->state) < NCCL_OPERATION_RUNNING ||
				     GET(communicator->ran) <= operation->ordinal,
			     0))
		recorder_run(operation, communicator);
}

static inline void recorder_flag(struct nccl_operation *operation, uint32_t flag)
{
	if (!(GET(operation->flags) & flag))
		__atomic_fetch_or(&operation->flags, flag, __ATOMIC_RELAXED);
}

/* channels.c: kernel channels and phases. The first one is for adapters: a channel's members come
 * in registers, and no event is made of them. */
void *channels_begin(void *context, void *parent, uint8_t channel, uint64_t gpu_time);
void *channels_start(struct recorder_self *self, struct communicator *communicator,
		     const struct event *event, uint64_t ticks);
/* The time that a channel stopped by the GPU; false: the handle is none of a channel. */
bool channels_time(void *handle, uint64_t gpu_time);
void channels_stop(struct nccl_event *record, uint64_t ticks);
void channels_state(struct nccl_event *record, const struct event_state *arguments);

/* proxies.c: proxy operations, steps, control and network plugins */
void *proxies_start(struct communicator *communicator, const struct event *event, uint64_t ticks);
void proxies_stop(struct nccl_event *record, uint64_t ticks);
void proxies_state(struct nccl_event *record, int state, const struct event_state *arguments,
		   uint64_t ticks);

#endif
