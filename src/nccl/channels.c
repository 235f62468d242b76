/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Kernel channels: one work item of a channel on the device, with its times by the GPU's clock.
 * They are what tells when an operation ran.
 *
 * NCCL hands out the times from a ring of 64 per channel that the device writes: where the proxy
 * thread is behind by more than that, it reads times of later items; and all items of one device
 * batch have the times of all together. Both are seen by comparing with what the channel did
 * before. That finds the last one of a row of operations with later times; the others are found by
 * who has seen all of them (analysis/nccl/order.h).
 */
#include "nccl/clock.h"
#include "nccl/recorder.h"

static uint64_t channel_to_bit(uint8_t channel)
{
	return 1ull << (channel % COMMUNICATOR_CHANNELS_MAX);
}

static void atomic_lower_to_or_set(uint64_t *at, uint64_t value)
{
	uint64_t seen = RELAXED_LOAD(*at);

	while ((!seen || value < seen) &&
	       !__atomic_compare_exchange_n(at, &seen, value, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
}

static void atomic_raise_to(uint64_t *at, uint64_t value)
{
	uint64_t seen = RELAXED_LOAD(*at);

	while (value > seen && !__atomic_compare_exchange_n(at, &seen, value, false,
							    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void set_store_gpu_clock_kind_if_unknown(uint64_t time)
{
	/* Nanoseconds since 1970 are above 1.7e18 today; an AMD device counts 100 MHz ticks. */
	if (RELAXED_LOAD(store.header->gpu_clock) == NCCL_GPU_CLOCK_UNKNOWN)
		RELAXED_STORE(store.header->gpu_clock, time > 10000000000000000ull
							       ? NCCL_GPU_CLOCK_EPOCH_NS
							       : NCCL_GPU_CLOCK_TICKS);
}

/* NCCL has one thread that tells of a communicator's channels. It alone writes to the members that
 * are for all, which saves it three locked instructions a channel; should another one come, it has
 * members of its own. `creation`: whose channel it is. A thread's pointer is nobody else's while it
 * lives, and whoever has it then comes after it. */
static inline bool
is_channel_thread_or_becomes_it(const struct nccl_operation *operation,
				struct communicator_recording_state *communicator,
				uint32_t creation)
{
	void *self, *seen = RELAXED_LOAD(communicator->channel_thread_pointer);

	__asm__("movq %%fs:0, %0" : "=r"(self));
	if (__builtin_expect(operation->communicator != creation, 0))
		return false;
	if (__builtin_expect(!seen, 0) &&
	    __atomic_compare_exchange_n(&communicator->channel_thread_pointer, &seen, self, false,
					__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return true;
	return seen == self;
}

static void add_channel_start_atomically(struct nccl_operation *operation, uint64_t channel,
					 uint64_t gpu_time)
{
	__atomic_fetch_and(&operation->channels_stopped_aside, ~channel, __ATOMIC_RELAXED);
	__atomic_fetch_or(&operation->channels_started_aside, channel, __ATOMIC_RELAXED);
	if (gpu_time)
		atomic_lower_to_or_set(&operation->gpu_start_aside, gpu_time);
}

static void add_channel_stop_atomically(struct nccl_operation *operation, uint64_t channel,
					uint64_t gpu_time)
{
	if (gpu_time)
		atomic_raise_to(&operation->gpu_stop_aside, gpu_time);
	__atomic_fetch_or(&operation->channels_stopped_aside, channel, __ATOMIC_RELEASE);
}

/* An operation has one more channel at work. */
static inline void add_channel_start_to_operation(struct nccl_operation *operation,
						  struct communicator_recording_state *communicator,
						  uint8_t channel, uint64_t gpu_time,
						  uint64_t ticks)
{
	uint32_t creation = (uint32_t)communicator->record->creation;
	uint64_t started, seen;

	if (channel >= COMMUNICATOR_CHANNELS_MAX ||
	    !recorder_update_operation_last_ticks(operation, ticks))
		return;
	if (gpu_time)
		set_store_gpu_clock_kind_if_unknown(gpu_time);
	recorder_mark_operation_running_once(operation, communicator);
	if (__builtin_expect(!is_channel_thread_or_becomes_it(operation, communicator, creation),
			     0)) {
		add_channel_start_atomically(operation, channel_to_bit(channel), gpu_time);
		return;
	}
	started = RELAXED_LOAD(operation->channels_started);
	if (__builtin_expect(started & channel_to_bit(channel), 0)) { /* once more */
		RELAXED_STORE(operation->channels_stopped,
			      RELAXED_LOAD(operation->channels_stopped) & ~channel_to_bit(channel));
		__atomic_fetch_and(&operation->channels_stopped_aside, ~channel_to_bit(channel),
				   __ATOMIC_RELAXED);
	}
	RELAXED_STORE(operation->channels_started, started | channel_to_bit(channel));
	seen = RELAXED_LOAD(operation->gpu_start);
	if (gpu_time && (!seen || gpu_time < seen))
		RELAXED_STORE(operation->gpu_start, gpu_time);
}

/* The id of what a channel is part of; *ret the operation, if it is one. */
static inline uint64_t find_channel_parent_or_count_loss(void *parent, struct nccl_operation **ret,
							 uint8_t *flags)
{
	unsigned kind;
	void *record;
	enum store_id_resolution_kind found = store_resolve_id(parent, &kind, &record);

	*ret = NULL;
	if (__builtin_expect(found != STORE_ID_FOUND, 0)) {
		recorder_count_missing_parent(found, flags);
		return 0;
	}
	if (kind == NCCL_CHUNK_OPERATIONS)
		*ret = record;
	return *ret || kind == NCCL_CHUNK_EVENTS ? (uint64_t)(uintptr_t)parent : 0;
}

static inline __attribute__((always_inline)) void *
record_channel_event_start(struct recorder_thread_state *self,
			   struct communicator_recording_state *communicator, void *parent,
			   uint8_t kind, uint8_t channel, uint8_t phase, uint64_t gpu_time,
			   uint64_t ticks)
{
	uint32_t creation = (uint32_t)communicator->record->creation;
	struct nccl_operation *operation;
	struct nccl_event *event;
	uint8_t flags = 0;
	uint64_t above = find_channel_parent_or_count_loss(parent, &operation, &flags);
	struct store_record_slot place =
		store_take_record_slot(&communicator->events, NCCL_CHUNK_EVENTS, creation);

	if (__builtin_expect(!place.id, 0)) {
		recorder_count_dropped_event(communicator, operation);
		return NULL;
	}
	event = place.record;
	event->parent = above;
	event->start = ticks;
	event->thread = self->thread;
	event->communicator = creation;
	event->kind = kind;
	event->flags = flags;
	event->a = channel;
	event->b = phase;
	event->gpu.start = gpu_time;
	if (kind == NCCL_KIND_KERNEL_CHANNEL && operation)
		add_channel_start_to_operation(operation, communicator, channel, gpu_time, ticks);
	return recorder_publish_event(event, place.id);
}

void *channels_record_kernel_channel_start(void *context, void *parent, uint8_t channel,
					   uint64_t gpu_time)
{
	uint64_t ticks = nccl_clock_read_ticks();
	struct recorder_thread_state *self = recorder_get_thread_state();
	struct communicator_recording_state *communicator =
		recorder_find_communicator_of_context(self, context);

	if (__builtin_expect(!communicator, 0))
		return NULL;
	return record_channel_event_start(self, communicator, parent, NCCL_KIND_KERNEL_CHANNEL,
					  channel, 0, gpu_time, ticks);
}

void *channels_record_event_start(struct recorder_thread_state *self,
				  struct communicator_recording_state *communicator,
				  const struct plugin_event_start_arguments *event, uint64_t ticks)
{
	return record_channel_event_start(self, communicator, event->parent, event->kind,
					  event->channel,
					  event->kind == NCCL_KIND_KERNEL_PHASE ? event->phase : 0,
					  event->gpu_timestamp, ticks);
}

bool channels_set_gpu_stop_time_by_handle(void *handle, uint64_t gpu_time)
{
	unsigned kind;
	void *record;
	struct nccl_event *event;

	if (store_resolve_id(handle, &kind, &record) != STORE_ID_FOUND || kind != NCCL_CHUNK_EVENTS)
		return false;
	event = record;
	if (event->kind != NCCL_KIND_KERNEL_CHANNEL)
		return false;
	/* NCCL 2.28 stops the one before again where a kernel begins and ends between two looks. */
	if (!(RELAXED_LOAD(event->flags) & NCCL_EVENT_STOPPED))
		RELAXED_STORE(event->gpu.stop, gpu_time);
	return true;
}

void channels_record_gpu_stop_time(struct nccl_event *record,
				   const struct event_state_arguments *arguments)
{
	if (RELAXED_LOAD(record->flags) & NCCL_EVENT_STOPPED)
		return; /* the stop to follow is counted */
	if (arguments->known)
		RELAXED_STORE(record->gpu.stop, arguments->gpu_time);
	else
		store_count_loss(NCCL_LOSS_NO_ARGUMENTS);
}

/* The device stamps all work of a batch at its start and once more at its end, one after the other:
 * within a kernel, what overlaps on a channel is one batch. Without a launch that is known, only
 * equal times tell. */
static bool operations_are_of_same_batch(const struct nccl_operation *operation,
					 const struct nccl_operation *other,
					 const struct channel_last_operation *before,
					 uint64_t start, uint64_t stop)
{
	if (RELAXED_LOAD(before->start) == start && RELAXED_LOAD(before->stop) == stop)
		return true;
	return other && operation->launch && operation->launch == other->launch;
}

/* Two operations of a channel contradict each other. The earlier one has times of a later one,
 * unless none is started yet that could have taken its place in the ring; then it is the later one
 * that has times of earlier work, because NCCL has lost count. */
static void
flag_one_of_contradicting_operations(const struct communicator_recording_state *communicator,
				     struct nccl_operation *operation, struct nccl_operation *other)
{
	if (other && !communicators_ordinal_is_in_times_ring(communicator, other->ordinal))
		recorder_set_operation_flag(other, NCCL_OPERATION_ALIASED);
	else
		recorder_set_operation_flag(operation, NCCL_OPERATION_ALIASED);
}

/* Whose times are these? Not both's, if they begin in the midst of what the channel did before. */
static void flag_operations_if_times_overlap(struct communicator_recording_state *communicator,
					     const struct nccl_event *record,
					     struct nccl_operation *operation)
{
	struct channel_last_operation *before = &communicator->last_operation_by_channel[record->a];
	uint64_t start = record->gpu.start, stop = RELAXED_LOAD(record->gpu.stop);
	struct nccl_operation *other;

	if (RELAXED_LOAD(before->operation) != record->parent && RELAXED_LOAD(before->operation) &&
	    __builtin_expect(start < RELAXED_LOAD(before->stop) ||
				     start == RELAXED_LOAD(before->start),
			     0)) {
		other = recorder_find_operation(RELAXED_LOAD(before->operation));
		if (operations_are_of_same_batch(operation, other, before, start, stop)) {
			recorder_set_operation_flag(operation, NCCL_OPERATION_BATCHED);
			if (other)
				recorder_set_operation_flag(other, NCCL_OPERATION_BATCHED);
		} else {
			flag_one_of_contradicting_operations(communicator, operation, other);
		}
	}
	if (stop < start)
		recorder_set_operation_flag(operation, NCCL_OPERATION_ALIASED);
	RELAXED_STORE(before->start, start);
	RELAXED_STORE(before->stop, stop);
	RELAXED_STORE(before->operation, record->parent);
}

void channels_add_stop_to_operation(struct nccl_event *record, uint64_t ticks)
{
	struct communicator_recording_state *communicator =
		communicators_get_by_creation_number(record->communicator);
	uint64_t stop = RELAXED_LOAD(record->gpu.stop);
	struct nccl_operation *operation;
	unsigned kind;
	void *parent;

	if (store_resolve_id((void *)(uintptr_t)record->parent, &kind, &parent) != STORE_ID_FOUND ||
	    kind != NCCL_CHUNK_OPERATIONS || !communicator ||
	    record->a >= COMMUNICATOR_CHANNELS_MAX)
		return;
	operation = parent;
	if (!recorder_update_operation_last_ticks(operation, ticks))
		return;
	stop = record->gpu.start ? stop : 0;
	if (stop)
		flag_operations_if_times_overlap(communicator, record, operation);
	if (__builtin_expect(
		    !is_channel_thread_or_becomes_it(operation, communicator, record->communicator),
		    0)) {
		add_channel_stop_atomically(operation, channel_to_bit(record->a), stop);
		return;
	}
	if (stop > RELAXED_LOAD(operation->gpu_stop))
		RELAXED_STORE(operation->gpu_stop, stop);
	__atomic_store_n(&operation->channels_stopped,
			 RELAXED_LOAD(operation->channels_stopped) | channel_to_bit(record->a),
			 __ATOMIC_RELEASE);
}
