/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Kernels and copies in flight. Each has an event, the program's or one of ours, whose callback
 * reads the four times that the queue's profiling keeps. What must be remembered meanwhile is a
 * slot of a pool that only grows; free slots are a stack of numbers with a count in its head, so
 * that a slot that was taken and given back meanwhile is noticed.
 *
 * PoCL calls no callback of commands that fail, of those behind an event that the program sets to
 * an error for example: whoever waits looks for them (opencl_complete_failed_commands_in_flight()).
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "device/opencl/opencl.h"
#include "device/opencl/user_events.h"

#define SLOTS_PER_BLOCK_COUNT 1024u
#define SLOT_BLOCKS_MAX       1024u
#define DEVICES_MAX           64

/* Who is about to tell the end of a command, its callback or who looks for failed ones: beside the
 * slot's generation, so that nobody tells another's. */
enum {
	SLOT_FREE,
	SLOT_IN_FLIGHT,
	SLOT_BEING_CHECKED,
	SLOT_COMPLETED_DURING_CHECK,
	SLOT_STATE_MASK = 3
};

struct completion_slot {
	_Atomic uint32_t state; /* generation << 2 | one of these */
	uint32_t next;          /* number of the next free one, +1 */
	bool is_copy;
	unsigned device_number;
	device_handle handle;
	uint64_t before, after;
	cl_event event;
	struct opencl_counted_kernel *counted;
};

static struct completion_slot *_Atomic slot_blocks[SLOT_BLOCKS_MAX];
static _Atomic uint64_t free_slots_head; /* count << 32 | number + 1 */
static _Atomic uint32_t slot_block_count;
static _Atomic uint64_t in_flight_command_count, in_flight_kernel_counts_by_device[DEVICES_MAX + 1];

static struct completion_slot *get_completion_slot_by_number(uint32_t number)
{
	return &atomic_load(
		&slot_blocks[number / SLOTS_PER_BLOCK_COUNT])[number % SLOTS_PER_BLOCK_COUNT];
}

static void push_free_slot(uint32_t number)
{
	struct completion_slot *slot = get_completion_slot_by_number(number);
	uint64_t head = atomic_load(&free_slots_head);

	do {
		slot->next = (uint32_t)head;
	} while (!atomic_compare_exchange_weak(&free_slots_head, &head,
					       ((head >> 32) + 1) << 32 | (uint64_t)(number + 1)));
}

static bool add_slot_block(void)
{
	uint32_t block = atomic_fetch_add(&slot_block_count, 1);
	struct completion_slot *slots;

	if (block >= SLOT_BLOCKS_MAX) {
		atomic_fetch_sub(&slot_block_count, 1);
		return false;
	}
	slots = calloc(SLOTS_PER_BLOCK_COUNT, sizeof(*slots));
	if (slots == NULL) {
		atomic_fetch_sub(&slot_block_count, 1);
		return false;
	}
	atomic_store(&slot_blocks[block], slots);
	for (uint32_t i = 0; i < SLOTS_PER_BLOCK_COUNT; i++)
		push_free_slot(block * SLOTS_PER_BLOCK_COUNT + i);
	return true;
}

/* The number of a slot, or UINT32_MAX: there is no memory. */
static uint32_t pop_free_slot_or_grow(void)
{
	uint64_t head = atomic_load(&free_slots_head);

	for (;;) {
		uint32_t number = (uint32_t)head;

		if (number == 0) {
			if (!add_slot_block())
				return UINT32_MAX;
			head = atomic_load(&free_slots_head);
			continue;
		}
		if (atomic_compare_exchange_weak(
			    &free_slots_head, &head,
			    ((head >> 32) + 1) << 32 |
				    get_completion_slot_by_number(number - 1)->next))
			return number - 1;
	}
}

static void emit_command_end(bool is_copy, device_handle handle, uint64_t start, uint64_t end)
{
	const struct device_sink *sink = device_get_sink();

	if (is_copy)
		sink->copy_complete(handle, NULL, start, end);
	else
		sink->kernel_complete(handle, NULL, start, end);
}

static uint64_t read_event_time(cl_event event, cl_profiling_info what)
{
	cl_ulong value = 0;

	if (opencl_next_functions.clGetEventProfilingInfo(event, what, sizeof(value), &value,
							  NULL) != CL_SUCCESS)
		return 0;
	return value;
}

static void emit_completed_command(uint32_t number, cl_event event, cl_int status)
{
	struct completion_slot slot = *get_completion_slot_by_number(number);
	uint64_t start = 0, end = 0;

	if (status == CL_COMPLETE) {
		uint64_t queued = read_event_time(event, CL_PROFILING_QUEUED);
		uint64_t ended = read_event_time(event, CL_PROFILING_END);
		uint64_t now = device_get_sink()->now();

		/* It was queued between two times of ours, and it has ended. */
		if (ended >= queued && now - (ended - queued) < slot.after &&
		    now - (ended - queued) >= slot.before)
			slot.after = now - (ended - queued);
		opencl_clock_add_reading(slot.device_number, queued, slot.before, slot.after);
		start = opencl_device_to_host_time(slot.device_number,
						   read_event_time(event, CL_PROFILING_START));
		end = opencl_device_to_host_time(slot.device_number, ended);
	}
	push_free_slot(number);
	if (slot.counted != NULL)
		opencl_complete_counted_kernel(slot.counted, status == CL_COMPLETE, start, end);
	emit_command_end(slot.is_copy, slot.handle, start, end);
	opencl_next_functions.clReleaseEvent(event);
	if (!slot.is_copy) {
		opencl_add_busy_time(slot.device_number, start, end);
		atomic_fetch_sub(&in_flight_kernel_counts_by_device[slot.device_number], 1);
	}
	atomic_fetch_sub(&in_flight_command_count, 1);
}

/* true: the caller, and nobody else, tells the end of what has this state in the slot. */
static bool claim_slot_or_mark_completed(struct completion_slot *slot, uint32_t state)
{
	uint32_t seen = state, generation = state & ~(uint32_t)SLOT_STATE_MASK;

	while (seen == state || seen == (generation | SLOT_BEING_CHECKED)) {
		bool mine = seen == state;

		if (atomic_compare_exchange_strong(
			    &slot->state, &seen,
			    generation | (mine ? SLOT_FREE : SLOT_COMPLETED_DURING_CHECK)))
			return mine;
	}
	return false;
}

static void handle_event_completed(cl_event event, cl_int status, void *data)
{
	uint32_t number = (uint32_t)(uintptr_t)data;

	if (claim_slot_or_mark_completed(get_completion_slot_by_number(number),
					 (uint32_t)((uintptr_t)data >> 32)))
		emit_completed_command(number, event, status);
}

static void complete_command_in_slot_if_failed(uint32_t number)
{
	struct completion_slot *slot = get_completion_slot_by_number(number);
	uint32_t state = atomic_load(&slot->state), generation = state & ~(uint32_t)SLOT_STATE_MASK;
	uint32_t looked_at = generation | SLOT_BEING_CHECKED;
	cl_int status = CL_COMPLETE;
	cl_event event;

	if ((state & SLOT_STATE_MASK) != SLOT_IN_FLIGHT ||
	    !atomic_compare_exchange_strong(&slot->state, &state, looked_at))
		return;
	event = slot->event; /* it is there as long as the slot is not given back */
	opencl_next_functions.clGetEventInfo(event, CL_EVENT_EXECUTION_STATUS, sizeof(status),
					     &status, NULL);
	if (status >= CL_COMPLETE &&
	    atomic_compare_exchange_strong(&slot->state, &looked_at, generation | SLOT_IN_FLIGHT))
		return;
	/* It has failed, or its callback came meanwhile. */
	atomic_store(&slot->state, generation | SLOT_FREE);
	opencl_next_functions.clGetEventInfo(event, CL_EVENT_EXECUTION_STATUS, sizeof(status),
					     &status, NULL);
	emit_completed_command(number, event, status);
}

void opencl_complete_failed_commands_in_flight(void)
{
	uint32_t count = atomic_load(&slot_block_count) * SLOTS_PER_BLOCK_COUNT;

	for (uint32_t number = 0; number < count && opencl_get_in_flight_command_count() != 0;
	     number++) {
		if (atomic_load(&slot_blocks[number / SLOTS_PER_BLOCK_COUNT]) != NULL)
			complete_command_in_slot_if_failed(number);
	}
}

/* Threads of a group that the runtime chooses itself are not known: 0. */
bool opencl_announce_kernel_if_wanted(struct opencl_tracked_command *command,
				      cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
				      const size_t *global, const size_t *local)
{
	const struct device_sink *sink = device_get_sink();
	struct device_kernel_launch told = {0};
	bool counts_time;

	command->counted = NULL;
	if (sink == NULL)
		return false;
	command->queue = opencl_find_queue(queue);
	counts_time = opencl_is_counting_busy_time(command->queue.device_number);
	if (!counts_time && !sink->is_wanted(DEVICE_SERVICE_KERNELS, -1))
		return false;
	told.agent = opencl_device_get_agent(command->queue.device_number);
	told.symbol = opencl_find_or_add_kernel_symbol(kernel, command->queue.device_number);
	told.queue = command->queue.number;
	for (unsigned i = 0; i < 3; i++) {
		told.grid_threads[i] = global != NULL && i < dimensions ? (uint32_t)global[i] : 1;
		told.group_threads[i] = i >= dimensions ? 1
					: local != NULL ? (uint32_t)local[i]
							: 0;
	}
	command->before = sink->now();
	command->is_copy = false;
	command->handle = sink->kernel_enqueue(&told);
	command->kernel = told;
	return counts_time || command->handle != DEVICE_HANDLE_NONE;
}

bool opencl_announce_copy_if_wanted(struct opencl_tracked_command *command, cl_command_queue queue,
				    const struct device_copy *copy)
{
	const struct device_sink *sink = device_get_sink();
	struct device_copy told = *copy;
	enum device_copy_direction direction = copy->direction;
	device_handle agent;

	if (sink == NULL || !sink->is_wanted(DEVICE_SERVICE_COPIES, (int32_t)direction))
		return false;
	command->counted = NULL;
	command->queue = opencl_find_queue(queue);
	agent = opencl_device_get_agent(command->queue.device_number);
	told.from = direction == DEVICE_COPY_HOST_TO_DEVICE || direction == DEVICE_COPY_HOST_TO_HOST
			    ? sink->get_host_agent()
			    : agent;
	told.to = direction == DEVICE_COPY_DEVICE_TO_HOST || direction == DEVICE_COPY_HOST_TO_HOST
			  ? sink->get_host_agent()
			  : agent;
	told.queue = command->queue.number;
	command->before = sink->now();
	command->is_copy = true;
	command->handle = sink->copy_begin(&told);
	return command->handle != DEVICE_HANDLE_NONE;
}

static void emit_submission_or_failure(const struct opencl_tracked_command *command, bool failed)
{
	const struct device_sink *sink = device_get_sink();

	if (!command->is_copy)
		sink->kernel_submitted(command->handle, failed);
	else if (failed)
		sink->copy_failed(command->handle);
}

void opencl_track_enqueued_command(struct opencl_tracked_command *command, cl_command_queue queue,
				   cl_int result, const cl_event *slot_of_event)
{
	typedef void opencl_event_callback_function(cl_event, cl_int, void *);
	opencl_event_callback_function *const call = handle_event_completed;
	bool is_ours = slot_of_event == &command->own;
	uint32_t number, state;
	struct completion_slot *slot;

	if (result != CL_SUCCESS) {
		if (command->counted != NULL)
			opencl_fail_counted_kernel(command->counted, "it could not be enqueued");
		emit_submission_or_failure(command, true);
		return;
	}
	emit_submission_or_failure(command, false);
	number = pop_free_slot_or_grow();
	if (number == UINT32_MAX) {
		opencl_losses.dropped++;
		if (command->counted != NULL)
			opencl_fail_counted_kernel(command->counted, "no memory");
		emit_command_end(command->is_copy, command->handle, 0, 0);
		if (is_ours)
			opencl_next_functions.clReleaseEvent(command->own);
		return;
	}
	slot = get_completion_slot_by_number(number);
	slot->is_copy = command->is_copy;
	slot->device_number = command->queue.device_number;
	slot->handle = command->handle;
	slot->before = command->before;
	slot->after = device_get_sink()->now();
	slot->event = *slot_of_event;
	slot->counted = command->counted;
	if (!is_ours)
		opencl_next_functions.clRetainEvent(slot->event);
	atomic_fetch_add(&in_flight_command_count, 1);
	if (!command->is_copy) {
		atomic_fetch_add(&in_flight_kernel_counts_by_device[command->queue.device_number],
				 1);
		if (user_events_are_pending())
			user_events_add_queue_waits_to_device(queue, command->queue.device_number);
	}
	state = (atomic_load(&slot->state) & ~(uint32_t)SLOT_STATE_MASK) + SLOT_STATE_MASK + 1;
	state |= SLOT_IN_FLIGHT;
	atomic_store(&slot->state, state);
	if (opencl_next_functions.clSetEventCallback(slot->event, CL_COMPLETE, (cl_callback)call,
						     (void *)((uintptr_t)state << 32 | number)) ==
	    CL_SUCCESS) // NOLINT: no pointer
		return;
	opencl_losses.dropped++;
	if (claim_slot_or_mark_completed(slot, state))
		emit_completed_command(number, *slot_of_event, CL_INVALID_OPERATION);
}

uint64_t opencl_get_in_flight_command_count(void)
{
	return atomic_load(&in_flight_command_count);
}

uint64_t opencl_get_in_flight_kernel_count(unsigned device_number)
{
	return atomic_load(&in_flight_kernel_counts_by_device[device_number]);
}

void opencl_reset_in_flight_counts(void)
{
	for (unsigned i = 0; i <= DEVICES_MAX; i++)
		atomic_store(&in_flight_kernel_counts_by_device[i], 0);
	atomic_store(&in_flight_command_count, 0);
}

void opencl_wait_until_idle(uint64_t wait_ns)
{
	const struct device_sink *sink = device_get_sink();
	const struct timespec pause = {0, 200000};
	uint64_t until;

	if (sink == NULL)
		return;
	until = sink->now() + wait_ns;
	for (;;) {
		opencl_complete_failed_commands_in_flight();
		if (atomic_load(&in_flight_command_count) == 0 || sink->now() >= until)
			return;
		nanosleep(&pause, NULL);
	}
}
