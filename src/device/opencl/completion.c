/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Kernels and copies in flight. Each has an event, the program's or one of ours, whose callback
 * reads the four times that the queue's profiling keeps. What must be remembered meanwhile is a
 * slot of a pool that only grows; free slots are a stack of numbers with a count in its head, so
 * that a slot that was taken and given back meanwhile is noticed.
 *
 * PoCL calls no callback of commands that fail, of those behind an event that the program sets to
 * an error for example: whoever waits looks for them (opencl_find_failed()).
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "device/opencl/opencl.h"
#include "device/opencl/user_events.h"

#define BLOCK_SLOTS 1024u
#define BLOCKS_MAX  1024u
#define DEVICES_MAX 64

/* Who is about to tell the end of a command, its callback or who looks for failed ones: beside the
 * slot's generation, so that nobody tells another's. */
enum { FREE, IN_FLIGHT, LOOKED_AT, TOLD_MEANWHILE, STATE_MASK = 3 };

struct slot {
	_Atomic uint32_t state; /* generation << 2 | one of these */
	uint32_t next;          /* number of the next free one, +1 */
	bool is_copy;
	unsigned device_number;
	device_handle handle;
	uint64_t before, after;
	cl_event event;
	struct opencl_counted *counted;
};

static struct slot *_Atomic blocks[BLOCKS_MAX];
static _Atomic uint64_t free_head; /* count << 32 | number + 1 */
static _Atomic uint32_t block_count;
static _Atomic uint64_t in_flight, kernels_in_flight[DEVICES_MAX + 1];

static struct slot *slot_at(uint32_t number)
{
	return &atomic_load(&blocks[number / BLOCK_SLOTS])[number % BLOCK_SLOTS];
}

static void put_back(uint32_t number)
{
	struct slot *slot = slot_at(number);
	uint64_t head = atomic_load(&free_head);

	do {
		slot->next = (uint32_t)head;
	} while (!atomic_compare_exchange_weak(&free_head, &head,
					       ((head >> 32) + 1) << 32 | (uint64_t)(number + 1)));
}

static bool grow(void)
{
	uint32_t block = atomic_fetch_add(&block_count, 1);
	struct slot *slots;

	if (block >= BLOCKS_MAX) {
		atomic_fetch_sub(&block_count, 1);
		return false;
	}
	slots = calloc(BLOCK_SLOTS, sizeof(*slots));
	if (slots == NULL) {
		atomic_fetch_sub(&block_count, 1);
		return false;
	}
	atomic_store(&blocks[block], slots);
	for (uint32_t i = 0; i < BLOCK_SLOTS; i++)
		put_back(block * BLOCK_SLOTS + i);
	return true;
}

/* The number of a slot, or UINT32_MAX: there is no memory. */
static uint32_t take(void)
{
	uint64_t head = atomic_load(&free_head);

	for (;;) {
		uint32_t number = (uint32_t)head;

		if (number == 0) {
			if (!grow())
				return UINT32_MAX;
			head = atomic_load(&free_head);
			continue;
		}
		if (atomic_compare_exchange_weak(&free_head, &head,
						 ((head >> 32) + 1) << 32 |
							 slot_at(number - 1)->next))
			return number - 1;
	}
}

static void tell_end(bool is_copy, device_handle handle, uint64_t start, uint64_t end)
{
	const struct device_sink *sink = device_sink();

	if (is_copy)
		sink->copy_complete(handle, NULL, start, end);
	else
		sink->kernel_complete(handle, NULL, start, end);
}

static uint64_t time_of(cl_event event, cl_profiling_info what)
{
	cl_ulong value = 0;

	if (opencl_next.clGetEventProfilingInfo(event, what, sizeof(value), &value, NULL) !=
	    CL_SUCCESS)
		return 0;
	return value;
}

static void tell_completed(uint32_t number, cl_event event, cl_int status)
{
	struct slot slot = *slot_at(number);
	uint64_t start = 0, end = 0;

	if (status == CL_COMPLETE) {
		uint64_t queued = time_of(event, CL_PROFILING_QUEUED);
		uint64_t ended = time_of(event, CL_PROFILING_END);
		uint64_t now = device_sink()->now();

		/* It was queued between two times of ours, and it has ended. */
		if (ended >= queued && now - (ended - queued) < slot.after &&
		    now - (ended - queued) >= slot.before)
			slot.after = now - (ended - queued);
		opencl_clock_seen(slot.device_number, queued, slot.before, slot.after);
		start = opencl_host_time(slot.device_number, time_of(event, CL_PROFILING_START));
		end = opencl_host_time(slot.device_number, ended);
	}
	put_back(number);
	if (slot.counted != NULL)
		opencl_count_completed(slot.counted, status == CL_COMPLETE, start, end);
	tell_end(slot.is_copy, slot.handle, start, end);
	opencl_next.clReleaseEvent(event);
	if (!slot.is_copy) {
		opencl_count_busy(slot.device_number, start, end);
		atomic_fetch_sub(&kernels_in_flight[slot.device_number], 1);
	}
	atomic_fetch_sub(&in_flight, 1);
}

/* true: the caller, and nobody else, tells the end of what has this state in the slot. */
static bool claim(struct slot *slot, uint32_t state)
{
	uint32_t seen = state, generation = state & ~(uint32_t)STATE_MASK;

	while (seen == state || seen == (generation | LOOKED_AT)) {
		bool mine = seen == state;

		if (atomic_compare_exchange_strong(&slot->state, &seen,
						   generation | (mine ? FREE : TOLD_MEANWHILE)))
			return mine;
	}
	return false;
}

static void completed(cl_event event, cl_int status, void *data)
{
	uint32_t number = (uint32_t)(uintptr_t)data;

	if (claim(slot_at(number), (uint32_t)((uintptr_t)data >> 32)))
		tell_completed(number, event, status);
}

static void look_at(uint32_t number)
{
	struct slot *slot = slot_at(number);
	uint32_t state = atomic_load(&slot->state), generation = state & ~(uint32_t)STATE_MASK;
	uint32_t looked_at = generation | LOOKED_AT;
	cl_int status = CL_COMPLETE;
	cl_event event;

	if ((state & STATE_MASK) != IN_FLIGHT ||
	    !atomic_compare_exchange_strong(&slot->state, &state, looked_at))
		return;
	event = slot->event; /* it is there as long as the slot is not given back */
	opencl_next.clGetEventInfo(event, CL_EVENT_EXECUTION_STATUS, sizeof(status), &status, NULL);
	if (status >= CL_COMPLETE &&
	    atomic_compare_exchange_strong(&slot->state, &looked_at, generation | IN_FLIGHT))
		return;
	/* It has failed, or its callback came meanwhile. */
	atomic_store(&slot->state, generation | FREE);
	opencl_next.clGetEventInfo(event, CL_EVENT_EXECUTION_STATUS, sizeof(status), &status, NULL);
	tell_completed(number, event, status);
}

void opencl_find_failed(void)
{
	uint32_t count = atomic_load(&block_count) * BLOCK_SLOTS;

	for (uint32_t number = 0; number < count && opencl_in_flight() != 0; number++) {
		if (atomic_load(&blocks[number / BLOCK_SLOTS]) != NULL)
			look_at(number);
	}
}

/* Threads of a group that the runtime chooses itself are not known: 0. */
bool opencl_begin_kernel(struct opencl_command *command, cl_command_queue queue, cl_kernel kernel,
			 cl_uint dimensions, const size_t *global, const size_t *local)
{
	const struct device_sink *sink = device_sink();
	struct device_kernel told = {0};
	bool counts_time;

	command->counted = NULL;
	if (sink == NULL)
		return false;
	command->queue = opencl_queue_of(queue);
	counts_time = opencl_counts_time(command->queue.device_number);
	if (!counts_time && !sink->wants(DEVICE_SERVICE_KERNELS, -1))
		return false;
	told.agent = opencl_device_agent(command->queue.device_number);
	told.symbol = opencl_symbol_of(kernel, command->queue.device_number);
	told.queue = command->queue.number;
	for (unsigned i = 0; i < 3; i++) {
		told.grid[i] = global != NULL && i < dimensions ? (uint32_t)global[i] : 1;
		told.group[i] = i >= dimensions ? 1 : local != NULL ? (uint32_t)local[i] : 0;
	}
	command->before = sink->now();
	command->is_copy = false;
	command->handle = sink->kernel_enqueue(&told);
	command->kernel = told;
	return counts_time || command->handle != DEVICE_NONE;
}

bool opencl_begin_copy(struct opencl_command *command, cl_command_queue queue,
		       const struct device_copy *copy)
{
	const struct device_sink *sink = device_sink();
	struct device_copy told = *copy;
	device_handle agent;

	if (sink == NULL || !sink->wants(DEVICE_SERVICE_COPIES, (int32_t)copy->direction))
		return false;
	command->counted = NULL;
	command->queue = opencl_queue_of(queue);
	agent = opencl_device_agent(command->queue.device_number);
	told.from = copy->direction == DEVICE_COPY_HOST_TO_DEVICE ? sink->host_agent() : agent;
	told.to = copy->direction == DEVICE_COPY_DEVICE_TO_HOST ? sink->host_agent() : agent;
	told.queue = command->queue.number;
	command->before = sink->now();
	command->is_copy = true;
	command->handle = sink->copy_begin(&told);
	return command->handle != DEVICE_NONE;
}

static void tell_submitted(const struct opencl_command *command, bool failed)
{
	const struct device_sink *sink = device_sink();

	if (!command->is_copy)
		sink->kernel_submitted(command->handle, failed);
	else if (failed)
		sink->copy_failed(command->handle);
}

void opencl_enqueued(struct opencl_command *command, cl_command_queue queue, cl_int result,
		     const cl_event *slot_of_event)
{
	typedef void event_callback(cl_event, cl_int, void *);
	event_callback *const call = completed;
	bool is_ours = slot_of_event == &command->own;
	uint32_t number, state;
	struct slot *slot;

	if (result != CL_SUCCESS) {
		if (command->counted != NULL)
			opencl_count_failed(command->counted, "it could not be enqueued");
		tell_submitted(command, true);
		return;
	}
	tell_submitted(command, false);
	number = take();
	if (number == UINT32_MAX) {
		opencl_losses.dropped++;
		if (command->counted != NULL)
			opencl_count_failed(command->counted, "no memory");
		tell_end(command->is_copy, command->handle, 0, 0);
		if (is_ours)
			opencl_next.clReleaseEvent(command->own);
		return;
	}
	slot = slot_at(number);
	slot->is_copy = command->is_copy;
	slot->device_number = command->queue.device_number;
	slot->handle = command->handle;
	slot->before = command->before;
	slot->after = device_sink()->now();
	slot->event = *slot_of_event;
	slot->counted = command->counted;
	if (!is_ours)
		opencl_next.clRetainEvent(slot->event);
	atomic_fetch_add(&in_flight, 1);
	if (!command->is_copy) {
		atomic_fetch_add(&kernels_in_flight[command->queue.device_number], 1);
		if (user_events_pending())
			user_events_kernel(queue, command->queue.device_number);
	}
	state = (atomic_load(&slot->state) & ~(uint32_t)STATE_MASK) + STATE_MASK + 1;
	state |= IN_FLIGHT;
	atomic_store(&slot->state, state);
	if (opencl_next.clSetEventCallback(slot->event, CL_COMPLETE, (cl_callback)call,
					   (void *)((uintptr_t)state << 32 | number)) ==
	    CL_SUCCESS) // NOLINT: no pointer
		return;
	opencl_losses.dropped++;
	if (claim(slot, state))
		tell_completed(number, *slot_of_event, CL_INVALID_OPERATION);
}

uint64_t opencl_in_flight(void)
{
	return atomic_load(&in_flight);
}

uint64_t opencl_kernels_in_flight(unsigned device_number)
{
	return atomic_load(&kernels_in_flight[device_number]);
}

void opencl_forget_in_flight(void)
{
	for (unsigned i = 0; i <= DEVICES_MAX; i++)
		atomic_store(&kernels_in_flight[i], 0);
	atomic_store(&in_flight, 0);
}

void opencl_wait(uint64_t wait_ns)
{
	const struct device_sink *sink = device_sink();
	const struct timespec pause = {0, 200000};
	uint64_t until;

	if (sink == NULL)
		return;
	until = sink->now() + wait_ns;
	for (;;) {
		opencl_find_failed();
		if (atomic_load(&in_flight) == 0 || sink->now() >= until)
			return;
		nanosleep(&pause, NULL);
	}
}
