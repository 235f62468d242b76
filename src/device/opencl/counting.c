/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counting what OpenCL's kernels do. A kernel that is counted is made to run alone: what is before
 * it in its queue is waited for, its turn is taken (device/kernel_serializer.h), and its enqueueing
 * returns when it has ended. On a device that is the CPU the process' counters are read before it
 * is given to the runtime and where its end is reported, on the runtime's own thread; whoever waits
 * sleeps meanwhile. Other threads of the program that compute at the same time are counted too.
 */
#include "device/opencl/counting.h"

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "device/kernel_serializer.h"
#include "device/opencl/opencl.h"
#include "device/opencl/user_events.h"
#include "device/periodic_counters.h"

#define FAILURE_CHECK_INTERVAL_NS 20000000

enum { KERNEL_BEING_COUNTED, KERNEL_COUNTED, KERNEL_GIVEN_UP };

struct opencl_counted_kernel {
	device_handle handle, agent, symbol;
	struct opencl_counter_set *set;
	sem_t ended_semaphore;
	_Atomic int state;
	_Atomic int references; /* whoever waits, and the event */
	double before[OPENCL_COUNTERS_PER_SET_MAX];
};

/* Kernel time of whole devices, while somebody counts them. */
static struct device_busy_time {
	_Atomic uint32_t user_count;
	_Atomic uint64_t ns, kernels, latest_end_ns;
} device_busy_times[OPENCL_DEVICES_MAX + 1];

static const struct device_counting_sink *get_counting_sink(void)
{
	const struct device_sink *sink = device_get_sink();

	return sink != NULL ? sink->counting : NULL;
}

static void release_counted_kernel(struct opencl_counted_kernel *counted)
{
	if (atomic_fetch_sub(&counted->references, 1) != 1)
		return;
	sem_destroy(&counted->ended_semaphore);
	free(counted);
}

/* Runtimes may never tell the end of what fails: now and then `has_failed` looks. false: it did not
 * come in time. */
static bool wait_for_semaphore_or_failure(sem_t *ended, bool (*has_failed)(cl_event event),
					  cl_event event)
{
	uint64_t patience = serializer_get_patience_ns(), waited = 0;

	while (waited < patience) {
		struct timespec until;
		int value;

		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += FAILURE_CHECK_INTERVAL_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		while ((value = sem_clockwait(ended, CLOCK_MONOTONIC, &until)) != 0 &&
		       errno == EINTR)
			;
		if (value == 0 || has_failed(event))
			return true;
		waited += FAILURE_CHECK_INTERVAL_NS;
	}
	return false;
}

/* ---- what a kernel waits for ---- */

/* What waits in other queues is sent on its way. false: some of it has failed; PoCL never ends what
 * is enqueued behind that. */
static bool flush_queues_of_awaited_events(cl_uint count, const cl_event *events)
{
	for (cl_uint i = 0; events != NULL && i < count; i++) {
		cl_int status = CL_COMPLETE;
		cl_command_queue queue = NULL;

		opencl_next_functions.clGetEventInfo(events[i], CL_EVENT_EXECUTION_STATUS,
						     sizeof(status), &status, NULL);
		opencl_next_functions.clGetEventInfo(events[i], CL_EVENT_COMMAND_QUEUE,
						     sizeof(queue), &queue, NULL);
		if (status < CL_COMPLETE)
			return false;
		if (queue != NULL && status > CL_COMPLETE)
			opencl_next_functions.clFlush(queue);
	}
	return true;
}

struct queue_marker_wait_state {
	sem_t reached_semaphore;
	_Atomic int references;
};

static void release_queue_marker_wait_reference(struct queue_marker_wait_state *mark)
{
	if (atomic_fetch_sub(&mark->references, 1) != 1)
		return;
	sem_destroy(&mark->reached_semaphore);
	free(mark);
}

static void handle_marker_reached(cl_event event, cl_int status, void *data)
{
	struct queue_marker_wait_state *mark = data;

	(void)status;
	sem_post(&mark->reached_semaphore);
	release_queue_marker_wait_reference(mark);
	opencl_next_functions.clReleaseEvent(event);
}

static bool marker_has_failed(cl_event event)
{
	cl_int status = CL_COMPLETE;

	opencl_next_functions.clGetEventInfo(event, CL_EVENT_EXECUTION_STATUS, sizeof(status),
					     &status, NULL);
	return status < CL_COMPLETE;
}

static cl_event enqueue_queue_marker(struct queue_marker_wait_state *mark, cl_command_queue queue,
				     cl_uint count, const cl_event *events)
{
	typedef void event_callback(cl_event, cl_int, void *);
	event_callback *const call = handle_marker_reached;
	cl_event event = NULL;

	if (opencl_next_functions.clEnqueueMarkerWithWaitList(queue, events != NULL ? count : 0,
							      count != 0 ? events : NULL,
							      &event) != CL_SUCCESS)
		return NULL;
	opencl_next_functions.clRetainEvent(event); /* the callback's */
	if (opencl_next_functions.clSetEventCallback(event, CL_COMPLETE, (cl_callback)call, mark) ==
	    CL_SUCCESS)
		return event;
	opencl_next_functions.clReleaseEvent(event);
	opencl_next_functions.clReleaseEvent(event);
	return NULL;
}

/* Waits for what is before the kernel. false: it does not end. */
static bool wait_for_queue_within_patience(cl_command_queue queue, cl_uint count,
					   const cl_event *events)
{
	struct queue_marker_wait_state *mark;
	cl_event event;
	bool reached;

	if (opencl_next_functions.clEnqueueMarkerWithWaitList == NULL)
		return true;
	mark = calloc(1, sizeof(*mark));
	if (mark == NULL)
		return true;
	sem_init(&mark->reached_semaphore, 0, 0);
	mark->references = 2;
	event = enqueue_queue_marker(mark, queue, count, events);
	if (event == NULL) {
		sem_destroy(&mark->reached_semaphore); /* nobody else has it */
		free(mark);
		return true;
	}
	opencl_next_functions.clFlush(queue);
	reached = wait_for_semaphore_or_failure(&mark->reached_semaphore, marker_has_failed, event);
	opencl_next_functions.clReleaseEvent(event);
	release_queue_marker_wait_reference(mark);
	return reached;
}

static bool device_has_no_kernels_in_flight(void *context)
{
	const unsigned *number = context;

	if (opencl_get_in_flight_kernel_count(*number) != 0)
		opencl_complete_failed_commands_in_flight();
	return opencl_get_in_flight_kernel_count(*number) == 0;
}

/* What is found is reported like everything else: its semaphore is next. */
static bool complete_failed_commands_and_keep_waiting(cl_event event)
{
	(void)event;
	opencl_complete_failed_commands_in_flight();
	return false;
}

/* ---- one kernel ---- */

static struct opencl_counted_kernel *
create_counted_kernel(const struct opencl_tracked_command *command, struct opencl_counter_set *set)
{
	struct opencl_counted_kernel *counted = calloc(1, sizeof(*counted));

	if (counted == NULL)
		return NULL;
	counted->handle = command->handle;
	counted->agent = command->kernel.agent;
	counted->symbol = command->kernel.symbol;
	counted->set = set;
	counted->references = 2;
	sem_init(&counted->ended_semaphore, 0, 0);
	return counted;
}

static enum counting_status
filter_launch_and_acquire_turn(const struct opencl_tracked_command *command, cl_command_queue queue,
			       cl_uint waits, const cl_event *waits_for,
			       struct opencl_counter_set *set, struct counting_problem *problem)
{
	unsigned number = command->queue.device_number;
	enum counting_status status =
		serializer_count_and_filter_launch(command->kernel.symbol, problem);

	/* What is left out waits for nothing. */
	if (status != COUNTING_OK)
		return status;
	if (user_events_would_block_kernel(queue, number)) {
		snprintf(problem->text, sizeof(problem->text),
			 "it, or a command before it, waits for an event that the program sets");
		return COUNTING_NOT_SUPPORTED;
	}
	if (!flush_queues_of_awaited_events(waits, waits_for)) {
		snprintf(problem->text, sizeof(problem->text), "an event it waits for has failed");
		return COUNTING_FAILED;
	}
	if (set->process != NULL) {
		status = process_counter_set_open_once(set->process, problem);
		if (status != COUNTING_OK)
			return status;
	}
	if (!serializer_has_given_up_kernel(command->kernel.agent) &&
	    !wait_for_queue_within_patience(queue, waits, waits_for)) {
		serializer_give_up_kernel(command->kernel.agent, command->kernel.symbol,
					  DEVICE_RUNTIME_OPENCL, problem);
		return COUNTING_TIMED_OUT;
	}
	return serializer_acquire_turn(command->kernel.agent, command->kernel.symbol,
				       device_has_no_kernels_in_flight, &number, problem);
}

void opencl_begin_kernel_counting_if_asked(struct opencl_tracked_command *command,
					   cl_command_queue queue, cl_uint waits,
					   const cl_event *waits_for)
{
	const struct device_counting_sink *sink = get_counting_sink();
	struct counting_problem problem = {""};
	enum counting_status status;
	struct opencl_counter_set *set;

	if (sink == NULL || command->handle == DEVICE_HANDLE_NONE ||
	    !sink->counts_kernels(command->kernel.agent))
		return;
	set = sink->dispatch_select_set(command->handle, &command->kernel);
	if (set == NULL) {
		serializer_wait_while_turn_taken(command->kernel.agent);
		return;
	}
	status = filter_launch_and_acquire_turn(command, queue, waits, waits_for, set, &problem);
	if (status == COUNTING_OK) {
		command->counted = create_counted_kernel(command, set);
		if (command->counted != NULL) {
			if (set->process != NULL)
				process_counter_set_read(set->process, command->counted->before,
							 &problem);
			return;
		}
		serializer_release_turn(command->kernel.agent);
		status = COUNTING_NO_MEMORY;
	}
	sink->dispatch_not_counted(command->handle, status, problem.text);
	serializer_wait_while_turn_taken(command->kernel.agent);
}

void opencl_wait_for_counted_kernel(struct opencl_tracked_command *command, cl_command_queue queue)
{
	const struct device_counting_sink *sink = get_counting_sink();
	struct opencl_counted_kernel *counted = command->counted;
	struct counting_problem problem = {""};
	int counts = KERNEL_BEING_COUNTED;

	if (counted == NULL) {
		if (sink != NULL && sink->counts_kernels(command->kernel.agent))
			opencl_next_functions.clFlush(queue); /* others wait for its end */
		return;
	}
	opencl_next_functions.clFlush(queue);
	if (!wait_for_semaphore_or_failure(&counted->ended_semaphore,
					   complete_failed_commands_and_keep_waiting, NULL) &&
	    atomic_compare_exchange_strong(&counted->state, &counts, KERNEL_GIVEN_UP)) {
		serializer_give_up_kernel(counted->agent, counted->symbol, DEVICE_RUNTIME_OPENCL,
					  &problem);
		sink->dispatch_not_counted(counted->handle, COUNTING_TIMED_OUT, problem.text);
	} else {
		serializer_release_turn(counted->agent);
	}
	release_counted_kernel(counted);
}

static bool mark_counted_if_not_given_up(struct opencl_counted_kernel *counted)
{
	int counts = KERNEL_BEING_COUNTED;

	return atomic_compare_exchange_strong(&counted->state, &counts, KERNEL_COUNTED);
}

void opencl_fail_counted_kernel(struct opencl_counted_kernel *counted, const char *text)
{
	if (mark_counted_if_not_given_up(counted))
		get_counting_sink()->dispatch_not_counted(counted->handle, COUNTING_FAILED, text);
	sem_post(&counted->ended_semaphore);
	release_counted_kernel(counted);
}

static void emit_counted_values(const struct opencl_counted_kernel *counted, const double *after,
				uint64_t start, uint64_t end)
{
	const struct opencl_counter_set *set = counted->set;
	double values[OPENCL_COUNTERS_PER_SET_MAX];
	uint32_t of_process = 0;

	for (uint32_t i = 0; i < set->count; i++) {
		if (set->sources[i] == OPENCL_COUNTER_SOURCE_KERNEL_TIME) {
			values[i] = (double)(end - start);
		} else {
			values[i] = after[of_process] - counted->before[of_process];
			of_process++;
		}
	}
	get_counting_sink()->dispatch_counted(counted->handle, values, set->count, start, end);
}

void opencl_complete_counted_kernel(struct opencl_counted_kernel *counted, bool succeeded,
				    uint64_t start, uint64_t end)
{
	struct counting_problem problem = {""};
	enum counting_status status = succeeded ? COUNTING_OK : COUNTING_FAILED;
	double after[OPENCL_COUNTERS_PER_SET_MAX] = {0};

	if (counted->set->process != NULL && atomic_load(&counted->state) == KERNEL_BEING_COUNTED)
		status = process_counter_set_read(counted->set->process, after, &problem);
	if (!succeeded) {
		status = COUNTING_FAILED;
		snprintf(problem.text, sizeof(problem.text), "it ended with an error");
	}
	if (mark_counted_if_not_given_up(counted)) {
		if (status == COUNTING_OK)
			emit_counted_values(counted, after, start, end);
		else
			get_counting_sink()->dispatch_not_counted(counted->handle, status,
								  problem.text);
	}
	sem_post(&counted->ended_semaphore);
	release_counted_kernel(counted);
}

/* The sets tell what is counted; kernels are asked about when they come. */
static void opencl_ignore_kernel_counting_switch(device_handle agent, bool on)
{
	(void)agent;
	(void)on;
}

/* ---- events that the program sets ---- */

cl_event hooked_clCreateUserEvent(cl_context context, cl_int *errcode_ret)
{
	cl_event event = opencl_next_functions.clCreateUserEvent(context, errcode_ret);

	if (event != NULL)
		user_events_add(event);
	return event;
}

/* Functions of the program may be called in there, which enqueue what waited for it. */
cl_int hooked_clSetUserEventStatus(cl_event event, cl_int execution_status)
{
	if (execution_status <= CL_COMPLETE) /* others are refused */
		user_events_remove(event);
	return opencl_next_functions.clSetUserEventStatus(event, execution_status);
}

/* ---- the device over time ---- */

bool opencl_is_counting_busy_time(unsigned device_number)
{
	return atomic_load_explicit(&device_busy_times[device_number].user_count,
				    memory_order_relaxed) != 0;
}

/* Kernels of several queues overlap: what is behind the latest end so far is new. */
void opencl_add_busy_time(unsigned device_number, uint64_t start, uint64_t end)
{
	struct device_busy_time *it = &device_busy_times[device_number];
	uint64_t until = atomic_load(&it->latest_end_ns);

	if (!opencl_is_counting_busy_time(device_number))
		return;
	atomic_fetch_add(&it->kernels, 1);
	do {
		if (end <= until)
			return;
	} while (!atomic_compare_exchange_weak(&it->latest_end_ns, &until, end));
	atomic_fetch_add(&it->ns, end - (start > until ? start : until));
}

static enum counting_status counting_read_device(void *given, double *values,
						 struct counting_problem *problem)
{
	const struct opencl_counter_set *set = given;
	const struct device_busy_time *it = &device_busy_times[set->device_number];
	double of_process[OPENCL_COUNTERS_PER_SET_MAX];
	enum counting_status status = COUNTING_OK;
	uint32_t next = 0;

	if (set->process != NULL)
		status = process_counter_set_read(set->process, of_process, problem);
	for (uint32_t i = 0; i < set->count; i++) {
		if (set->sources[i] == OPENCL_COUNTER_SOURCE_PROCESS)
			values[i] = of_process[next++];
		else
			values[i] = (double)(set->sources[i] == OPENCL_COUNTER_SOURCE_KERNEL_COUNT
						     ? atomic_load(&it->kernels)
						     : atomic_load(&it->ns));
	}
	return status;
}

static enum counting_status counting_start_device(device_handle agent, void *given,
						  uint64_t interval_ns,
						  struct counting_problem *problem)
{
	struct opencl_counter_set *set = given;
	enum counting_status status = COUNTING_OK;

	if (set->process != NULL)
		status = process_counter_set_open_once(set->process, problem);
	if (status != COUNTING_OK)
		return status;
	atomic_fetch_add(&device_busy_times[set->device_number].user_count, 1);
	status = periodic_counters_start_of_agent(agent, set, set->count, counting_read_device,
						  interval_ns, problem);
	if (status != COUNTING_OK)
		atomic_fetch_sub(&device_busy_times[set->device_number].user_count, 1);
	return status;
}

static void counting_stop_device(device_handle agent)
{
	periodic_counters_stop_of_agent(agent);
	atomic_store(&device_busy_times[opencl_device_find_number_of_agent(agent)].user_count, 0);
}

const struct device_counting_backend opencl_counting = {opencl_for_each_countable_event,
							opencl_find_countable_event,
							opencl_counter_set_create,
							opencl_counter_set_free,
							opencl_ignore_kernel_counting_switch,
							counting_start_device,
							periodic_counters_read_of_agent,
							counting_stop_device};
