/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Kernel channels: one work item of a channel on the device, with its times by the GPU's clock.
 * They are what tells when an operation ran.
 *
 * NCCL hands out the times from a ring of 64 per channel that the device writes: where the proxy
 * thread is behind by more than that, it reads times of later items; and all items of one device
 * batch have the same two. Both are seen by comparing with what the channel did before.
 */
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

void channels_start(struct communicator *communicator, struct nccl_event *record, uint64_t id,
		    const struct event *event, uint64_t ticks)
{
	struct nccl_operation *operation;

	(void)communicator;
	(void)id;
	record->a = event->channel;
	record->gpu.start = event->gpu_time;
	if (event->kind == NCCL_KIND_KERNEL_PHASE) {
		record->b = event->phase;
		return;
	}
	if (event->gpu_time)
		note_clock(event->gpu_time);
	operation = recorder_operation(record->parent);
	if (!operation || event->channel >= COMMUNICATOR_CHANNELS ||
	    !recorder_touch(operation, ticks))
		return;
	if (GET(operation->channels_started) & bit(event->channel)) /* once more */
		__atomic_fetch_and(&operation->channels_stopped, ~bit(event->channel),
				   __ATOMIC_RELAXED);
	__atomic_fetch_or(&operation->channels_started, bit(event->channel), __ATOMIC_RELAXED);
	if (event->gpu_time)
		lower(&operation->gpu_start, event->gpu_time);
	recorder_running(operation);
}

void channels_state(struct nccl_event *record, const struct event_state *arguments)
{
	if (arguments->known)
		SET(record->gpu.stop, arguments->gpu_time);
	else
		store_count(NCCL_LOSS_NO_ARGUMENTS);
}

/* Whose times are these? */
static void compare(struct communicator *communicator, const struct nccl_event *record,
		    struct nccl_operation *operation)
{
	struct channel_memory *before = &communicator->channels[record->a];
	uint64_t start = record->gpu.start, stop = GET(record->gpu.stop);
	struct nccl_operation *other;

	if (GET(before->operation) != record->parent && GET(before->operation)) {
		if (GET(before->start) == start && GET(before->stop) == stop) {
			recorder_flag(operation, NCCL_OPERATION_BATCHED);
			other = recorder_operation(GET(before->operation));
			if (other)
				recorder_flag(other, NCCL_OPERATION_BATCHED);
		} else if (start < GET(before->stop)) {
			recorder_flag(operation, NCCL_OPERATION_ALIASED);
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
	struct nccl_operation *operation = recorder_operation(record->parent);
	struct communicator *communicator = communicators_get(record->communicator);
	uint64_t stop = GET(record->gpu.stop);

	if (!operation || !communicator || record->a >= COMMUNICATOR_CHANNELS ||
	    !recorder_touch(operation, ticks))
		return;
	if (stop && record->gpu.start) {
		raise(&operation->gpu_stop, stop);
		compare(communicator, record, operation);
	}
	__atomic_fetch_or(&operation->channels_stopped, bit(record->a), __ATOMIC_RELEASE);
}
