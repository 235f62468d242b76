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

#define OPERATIONS_INLINE_SPECIFIERS static inline __attribute__((always_inline))

/* Out of line: what is seldom. */
void *operations_count_one_dropped(struct communicator_recording_state *communicator);
/* Parents in another communicator, in graphs and in other processes. */
void operations_set_parent(struct nccl_operation *operation, void *parent);
void operations_set_p2p_sequence(struct nccl_operation *operation,
				 struct communicator_recording_state *communicator,
				 const char *function, int peer);

/* The bytes from `kind` to `warps`, in one store. */
OPERATIONS_INLINE_SPECIFIERS void
operations_write_fields_kind_to_warps(struct nccl_operation *operation, uint8_t kind,
				      uint32_t names, uint8_t channels, uint8_t warps)
{
	uint64_t bytes = kind | NCCL_OPERATION_STARTED << 8 | (uint64_t)names << 16 |
			 (uint64_t)channels << 48 | (uint64_t)warps << 56;

	_Static_assert(
		offsetof(struct nccl_operation, warps) - offsetof(struct nccl_operation, kind) == 7,
		"eight bytes side by side");
	memcpy((uint8_t *)operation + offsetof(struct nccl_operation, kind), &bytes, sizeof(bytes));
}

OPERATIONS_INLINE_SPECIFIERS void
operations_fill_one_from_start_event(struct nccl_operation *operation,
				     const struct plugin_event_start_arguments *event,
				     struct last_operation_names *names, uint32_t *flags)
{
	names_update_last_operation_names_if_changed(names, event->function, event->data_type,
						     event->algorithm, event->protocol);
	operations_write_fields_kind_to_warps(operation, event->kind, names->packed_name_numbers,
					      event->channel_count, event->warp_count);
	if (names->is_data_type_unknown)
		*flags |= NCCL_OPERATION_TYPE_UNKNOWN;
	if (event->kind == NCCL_KIND_COLLECTIVE && names->is_counted_in_bytes)
		*flags |= NCCL_OPERATION_COUNT_IS_BYTES;
	operation->count = event->count;
	if (__builtin_mul_overflow(event->count, names->element_bytes, &operation->bytes))
		operation->bytes = 0;
	if (event->traffic_bytes)
		operation->traffic_bytes = event->traffic_bytes;
	if (event->user_tag)
		operation->user_tag = event->user_tag;
	operation->send_buffer = (uint64_t)(uintptr_t)event->send_buffer;
	operation->receive_buffer = (uint64_t)(uintptr_t)event->receive_buffer;
}

OPERATIONS_INLINE_SPECIFIERS void operations_set_ordinal_and_sequence(
	struct nccl_operation *operation, struct communicator_recording_state *communicator,
	const struct plugin_event_start_arguments *event, uint64_t ordinal)
{
	struct nccl_communicator_record *of = communicator->record;

	operation->ordinal = ordinal;
	RELAXED_STORE(of->operations, ordinal + 1 + RELAXED_LOAD(of->dropped_operations));
	if (event->kind == NCCL_KIND_P2P) {
		operations_set_p2p_sequence(operation, communicator, event->function, event->root);
		return;
	}
	operation->sequence = event->sequence;
	operation->root = event->root;
	operation->peer = -1;
}

OPERATIONS_INLINE_SPECIFIERS void *operations_add_record(
	struct recorder_thread_state *self, struct communicator_recording_state *communicator,
	const struct plugin_event_start_arguments *event, uint64_t ticks, bool may_learn)
{
	uint32_t creation = (uint32_t)communicator->record->creation, flags = 0;
	struct nccl_operation *operation;
	struct store_record_slot place =
		store_take_record_slot(&communicator->operations, NCCL_CHUNK_OPERATIONS, creation);

	if (may_learn)
		communicators_infer_identity(communicator, event);
	if (__builtin_expect(!place.id, 0))
		return operations_count_one_dropped(communicator);
	operation = place.record;
	operation->start = ticks;
	operation->last = ticks;
	operation->communicator = creation;
	operation->thread = self->thread;
	operation->api = event->api;
	if (event->parent)
		operations_set_parent(operation, event->parent);
	if (event->group)
		operation->group = recorder_get_valid_group_id(event->group);
	if (RELAXED_LOAD(communicator->last_launch_thread) == self->thread)
		operation->launch = RELAXED_LOAD(communicator->last_launch_ticks);
	operations_fill_one_from_start_event(operation, event, &self->names, &flags);
	operations_set_ordinal_and_sequence(operation, communicator, event, place.record_ordinal);
	if (flags)
		operation->flags |= flags;
	__atomic_store_n(&operation->id, place.id, __ATOMIC_RELEASE);
	return (void *)(uintptr_t)place.id;
}

/* From an adapter of version 4 or later, while recording is on. */
OPERATIONS_INLINE_SPECIFIERS void *
operations_record_start(void *context, const struct plugin_event_start_arguments *event)
{
	uint64_t ticks = nccl_clock_read_ticks();
	struct recorder_thread_state *self = recorder_get_thread_state();
	struct communicator_recording_state *communicator =
		recorder_find_communicator_of_context(self, context);

	if (__builtin_expect(!communicator, 0))
		return NULL;
	return operations_add_record(self, communicator, event, ticks, false);
}

#endif
