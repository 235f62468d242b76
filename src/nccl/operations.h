/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The start of an operation, which is what NCCL calls most where it is not asked for kernel
 * channels: inline in the adapters, where members of the event that the version does not have are
 * constants, and the event never is in memory. One locked instruction (the record's place), one
 * call (for the thread's variables), one time stamp, some 20 stores.
 */
#ifndef KYMO_NCCL_OPERATIONS_H
#define KYMO_NCCL_OPERATIONS_H

#include <stddef.h>
#include <string.h>

#include "nccl/clock.h"
#include "nccl/recorder.h"

#define OPERATIONS_INLINE static inline __attribute__((always_inline))

/* Out of line: what is seldom. */
void *operations_drop(struct communicator *communicator);
/* Of another communicator, graphs, parents of other processes. */
void operations_parent(struct nccl_operation *operation, void *parent);
void operations_number_p2p(struct nccl_operation *operation, struct communicator *communicator,
			   const char *function, int peer);

/* The bytes from `kind` to `warps`, in one store. */
OPERATIONS_INLINE void operations_put_bytes(struct nccl_operation *operation, uint8_t kind,
					    uint32_t names, uint8_t channels, uint8_t warps)
{
	uint64_t bytes = kind | NCCL_OPERATION_STARTED << 8 | (uint64_t)names << 16 |
			 (uint64_t)channels << 48 | (uint64_t)warps << 56;

	_Static_assert(
		offsetof(struct nccl_operation, warps) - offsetof(struct nccl_operation, kind) == 7,
		"eight bytes side by side");
	memcpy((uint8_t *)operation + offsetof(struct nccl_operation, kind), &bytes, sizeof(bytes));
}

OPERATIONS_INLINE void operations_describe(struct nccl_operation *operation,
					   const struct event *event, struct names *names,
					   uint32_t *flags)
{
	names_use(names, event->function, event->data_type, event->algorithm, event->protocol);
	operations_put_bytes(operation, event->kind, names->numbers, event->channels, event->warps);
	if (names->type_unknown)
		*flags |= NCCL_OPERATION_TYPE_UNKNOWN;
	if (event->kind == NCCL_KIND_COLLECTIVE && names->counts_bytes)
		*flags |= NCCL_OPERATION_COUNT_IS_BYTES;
	operation->count = event->count;
	if (__builtin_mul_overflow(event->count, names->element_size, &operation->bytes))
		operation->bytes = 0;
	if (event->traffic_bytes)
		operation->traffic_bytes = event->traffic_bytes;
	if (event->user_tag)
		operation->user_tag = event->user_tag;
	operation->send_buffer = (uint64_t)(uintptr_t)event->send_buffer;
	operation->receive_buffer = (uint64_t)(uintptr_t)event->receive_buffer;
}

OPERATIONS_INLINE void operations_number(struct nccl_operation *operation,
					 struct communicator *communicator,
					 const struct event *event, uint64_t ordinal)
{
	struct nccl_communicator *of = communicator->record;

	operation->ordinal = ordinal;
	SET(of->operations, ordinal + 1 + GET(of->dropped_operations));
	if (event->kind == NCCL_KIND_P2P) {
		operations_number_p2p(operation, communicator, event->function, event->root);
		return;
	}
	operation->sequence = event->sequence;
	operation->root = event->root;
	operation->peer = -1;
}

OPERATIONS_INLINE void *operations_record(struct recorder_self *self,
					  struct communicator *communicator,
					  const struct event *event, uint64_t ticks, bool may_learn)
{
	uint32_t creation = (uint32_t)communicator->record->creation, flags = 0;
	struct nccl_operation *operation;
	struct store_place place =
		store_take(&communicator->operations, NCCL_CHUNK_OPERATIONS, creation);

	if (may_learn)
		communicators_learn(communicator, event);
	if (__builtin_expect(!place.id, 0))
		return operations_drop(communicator);
	operation = place.record;
	operation->start = ticks;
	operation->last = ticks;
	operation->communicator = creation;
	operation->thread = self->thread;
	operation->api = event->api;
	if (event->parent)
		operations_parent(operation, event->parent);
	if (event->group)
		operation->group = recorder_resolve(event->group);
	if (GET(communicator->launch_thread) == self->thread)
		operation->launch = GET(communicator->launch);
	operations_describe(operation, event, &self->names, &flags);
	operations_number(operation, communicator, event, place.ordinal);
	if (flags)
		operation->flags |= flags;
	__atomic_store_n(&operation->id, place.id, __ATOMIC_RELEASE);
	return (void *)(uintptr_t)place.id;
}

/* From an adapter of version 4 or later, while recording is on. */
OPERATIONS_INLINE void *operations_start(void *context, const struct event *event)
{
	uint64_t ticks = clock_ticks();
	struct recorder_self *self = recorder_self();
	struct communicator *communicator = recorder_communicator(self, context);

	if (__builtin_expect(!communicator, 0))
		return NULL;
	return operations_record(self, communicator, event, ticks, false);
}

#endif
