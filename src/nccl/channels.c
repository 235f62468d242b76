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
 * who has seen all of them (analysis/nccl_order.h).
 */
#include "nccl/clock.h"
#include "nccl/recorder.h"

static uint64_t bit(uint8_t channel)
{
	return 1ull << (channel % COMMUNICATOR_CHANNELS);
}

static void lower(uint64_t *at, uint64_t value)
{
	uint64_t seen = GET(*at);

	while ((!seen || value < seen) &&
	       !__atomic_compare_exchange_n(at, &seen, value, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED))
		;
}

static void raise(uint64_t *at, uint64_t value)
{
	uint64_t seen = GET(*at);

	while (value > seen && !__atomic_compare_exchange_n(at, &seen, value, false,
							    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static void note_clock(uint64_t time)
{
	/* Nanoseconds since 1970 are above 1.7e18 today; an AMD device counts 100 MHz ticks. */
	if (GET(store.header->gpu_clock) == NCCL_GPU_CLOCK_UNKNOWN)
		SET(store.header->gpu_clock,
		    time > 10000000000000000ull ? NCCL_GPU_CLOCK_EPOCH_NS : NCCL_GPU_CLOCK_TICKS);
}

/* NCCL has one thread that tells of a communicator's channels. It alone writes to the members that
 * are for all, which saves it three locked instructions a channel; should another one come, it has
 * members of its own. `creation`: whose channel it is. A thread's pointer is nobody else's while it
 * lives, and whoever has it then comes after it. */
static inline bool is_usual_thread(const struct nccl_operation *operation,
				   struct communicator *communicator, uint32_t creation)
{
	void *self, *seen = GET(communicator->channel_thread);

	__asm__("movq %%fs:0, %0" : "=r"(self));
	if (__builtin_expect(operation->communicator != creation, 0))
		return false;
	if (__builtin_expect(!seen, 0) &&
	    __atomic_compare_exchange_n(&communicator->channel_thread, &seen, self, false,
					__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return true;
	return seen == self;
}

static void start_aside(struct nccl_operation *operation, uint64_t channel, uint64_t gpu_time)
{
	__atomic_fetch_and(&operation->channels_stopped_aside, ~channel, __ATOMIC_RELAXED);
	__atomic_fetch_or(&operation->channels_started_aside, channel, __ATOMIC_RELAXED);
	if (gpu_time)
		lower(&operation->gpu_start_aside, gpu_time);
}

static void stop_aside(struct nccl_operation *operation, uint64_t channel, uint64_t gpu_time)
{
	if (gpu_time)
		raise(&operation->gpu_stop_aside, gpu_time);
	__atomic_fetch_or(&operation->channels_stopped_aside, channel, __ATOMIC_RELEASE);
}

/* An operation has one more channel at work. */
static inline void note_start(struct nccl_operation *operation, struct communicator *communicator,
			      uint8_t channel, uint64_t gpu_time, uint64_t ticks)
{
	uint32_t creation = (uint32_t)communicator->record->creation;
	uint64_t started, seen;

	if (channel >= COMMUNICATOR_CHANNELS || !recorder_touch(operation, ticks))
		return;
	if (gpu_time)
		note_clock(gpu_time);
	recorder_running(operation, communicator);
	if (__builtin_expect(!is_usual_thread(operation, communicator, creation), 0)) {
		start_aside(operation, bit(channel), gpu_time);
		return;
	}
	started = GET(operation->channels_started);
	if (__builtin_expect(started & bit(channel), 0)) { /* once more */
		SET(operation->channels_stopped, GET(operation->channels_stopped) & ~bit(channel));
		__atomic_fetch_and(&operation->channels_stopped_aside, ~bit(channel),
				   __ATOMIC_RELAXED);
	}
	SET(operation->channels_started, started | bit(channel));
	seen = GET(operation->gpu_start);
	if (gpu_time && (!seen || gpu_time < seen))
		SET(operation->gpu_start, gpu_time);
}

/* The id of what a channel is part of; *ret the operation, if it is one. */
static inline uint64_t find_parent(void *parent, struct nccl_operation **ret, uint8_t *flags)
{
	unsigned kind;
	void *record;
	enum store_found found = store_find(parent, &kind, &record);

	*ret = NULL;
	if (__builtin_expect(found != STORE_FOUND, 0)) {
		recorder_orphan(found, flags);
		return 0;
	}
	if (kind == NCCL_CHUNK_OPERATIONS)
		*ret = record;
	return *ret || kind == NCCL_CHUNK_EVENTS ? (uint64_t)(uintptr_t)parent : 0;
}

static inline __attribute__((always_inline)) void *
start(struct recorder_self *self, struct communicator *communicator, void *parent, uint8_t kind,
      uint8_t channel, uint8_t phase, uint64_t gpu_time, uint64_t ticks)
{
	uint32_t creation = (uint32_t)communicator->record->creation;
	struct nccl_operation *operation;
	struct nccl_event *event;
	uint8_t flags = 0;
	uint64_t above = find_parent(parent, &operation, &flags);
	struct store_place place = store_take(&communicator->events, NCCL_CHUNK_EVENTS, creation);

	if (__builtin_expect(!place.id, 0)) {
		recorder_drop(communicator, operation);
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
		note_start(operation, communicator, channel, gpu_time, ticks);
	return recorder_publish(event, place.id);
}

void *channels_begin(void *context, void *parent, uint8_t channel, uint64_t gpu_time)
{
	uint64_t ticks = clock_ticks();
	struct recorder_self *self = recorder_self();
	struct communicator *communicator = recorder_communicator(self, context);

	if (__builtin_expect(!communicator, 0))
		return NULL;
	return start(self, communicator, parent, NCCL_KIND_KERNEL_CHANNEL, channel, 0, gpu_time,
		     ticks);
}

void *channels_start(struct recorder_self *self, struct communicator *communicator,
		     const struct event *event, uint64_t ticks)
{
	return start(self, communicator, event->parent, event->kind, event->channel,
		     event->kind == NCCL_KIND_KERNEL_PHASE ? event->phase : 0, event->gpu_time,
		     ticks);
}

bool channels_time(void *handle, uint64_t gpu_time)
{
	unsigned kind;
	void *record;
	struct nccl_event *event;

	if (store_find(handle, &kind, &record) != STORE_FOUND || kind != NCCL_CHUNK_EVENTS)
		return false;
	event = record;
	if (event->kind != NCCL_KIND_KERNEL_CHANNEL)
		return false;
	/* NCCL 2.28 stops the one before again where a kernel begins and ends between two looks. */
	if (!(GET(event->flags) & NCCL_EVENT_STOPPED))
		SET(event->gpu.stop, gpu_time);
	return true;
}

void channels_state(struct nccl_event *record, const struct event_state *arguments)
{
	if (GET(record->flags) & NCCL_EVENT_STOPPED)
		return; /* the stop to follow is counted */
	if (arguments->known)
		SET(record->gpu.stop, arguments->gpu_time);
	else
		store_count(NCCL_LOSS_NO_ARGUMENTS);
}

/* The device stamps all work of a batch at its start and once more at its end, one after the other:
 * within a kernel, what overlaps on a channel is one batch. Without a launch that is known, only
 * equal times tell. */
static bool is_same_batch(const struct nccl_operation *operation,
			  const struct nccl_operation *other, const struct channel_memory *before,
			  uint64_t start, uint64_t stop)
{
	if (GET(before->start) == start && GET(before->stop) == stop)
		return true;
	return other && operation->launch && operation->launch == other->launch;
}

/* Two operations of a channel contradict each other. The earlier one has times of a later one,
 * unless none is started yet that could have taken its place in the ring; then it is the later one
 * that has times of earlier work, because NCCL has lost count. */
static void blame(const struct communicator *communicator, struct nccl_operation *operation,
		  struct nccl_operation *other)
{
	if (other && !communicators_is_fresh(communicator, other->ordinal))
		recorder_flag(other, NCCL_OPERATION_ALIASED);
	else
		recorder_flag(operation, NCCL_OPERATION_ALIASED);
}

/* Whose times are these? Not both's, if they begin in the midst of what the channel did before. */
static void compare(struct communicator *communicator, const struct nccl_event *record,
		    struct nccl_operation *operation)
{
	struct channel_memory *before = &communicator->channels[record->a];
	uint64_t start = record->gpu.start, stop = GET(record->gpu.stop);
	struct nccl_operation *other;

	if (GET(before->operation) != record->parent && GET(before->operation) &&
	    __builtin_expect(start < GET(before->stop) || start == GET(before->start), 0)) {
		other = recorder_operation(GET(before->operation));
		if (is_same_batch(operation, other, before, start, stop)) {
			recorder_flag(operation, NCCL_OPERATION_BATCHED);
			if (other)
				recorder_flag(other, NCCL_OPERATION_BATCHED);
		} else {
			blame(communicator, operation, other);
		}
	}
	if (stop < start)
		recorder_flag(operation, NCCL_OPERATION_ALIASED);
	SET(before->start, start);
	SET(before->stop, stop);
	SET(before->operation, record->parent);
}

void channels_stop(struct nccl_event *record, uint64_t ticks)
{
	struct communicator *communicator = communicators_get(record->communicator);
	uint64_t stop = GET(record->gpu.stop);
	struct nccl_operation *operation;
	unsigned kind;
	void *parent;

	if (store_find((void *)(uintptr_t)record->parent, &kind, &parent) != STORE_FOUND ||
	    kind != NCCL_CHUNK_OPERATIONS || !communicator || record->a >= COMMUNICATOR_CHANNELS)
		return;
	operation = parent;
	if (!recorder_touch(operation, ticks))
		return;
	stop = record->gpu.start ? stop : 0;
	if (stop)
		compare(communicator, record, operation);
	if (__builtin_expect(!is_usual_thread(operation, communicator, record->communicator), 0)) {
		stop_aside(operation, bit(record->a), stop);
		return;
	}
	if (stop > GET(operation->gpu_stop))
		SET(operation->gpu_stop, stop);
	__atomic_store_n(&operation->channels_stopped,
			 GET(operation->channels_stopped) | bit(record->a), __ATOMIC_RELEASE);
}
