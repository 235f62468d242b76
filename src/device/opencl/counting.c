/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counting what OpenCL's kernels do. A kernel that is counted is made to run alone: what is before
 * it in its queue is waited for, its turn is taken (turns.h), and its enqueueing returns when it
 * has ended. On a device that is the CPU the process' counters are read before it is given to the
 * runtime and where its end is told, on the runtime's own thread; whoever waits sleeps meanwhile.
 * Other threads of the program that compute at the same time are counted too.
 */
#include "device/opencl/counting.h"

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "device/opencl/opencl.h"
#include "device/opencl/user_events.h"
#include "device/over_time.h"
#include "device/turns.h"

#define DEVICES_MAX   64
#define LOOK_AFTER_NS 20000000

enum { COUNTS, COUNTED, GIVEN_UP };

struct opencl_counted {
	device_handle handle, agent, symbol;
	struct opencl_set *set;
	sem_t ended;
	_Atomic int state;
	_Atomic int references; /* whoever waits, and the event */
	double before[OPENCL_SET_MAX];
};

/* Of whole devices, while somebody counts them. */
static struct busy {
	_Atomic uint32_t users;
	_Atomic uint64_t ns, kernels, until;
} busy[DEVICES_MAX + 1];

static const struct device_counting_sink *counting_sink(void)
{
	const struct device_sink *sink = device_sink();

	return sink != NULL ? sink->counting : NULL;
}

static void drop(struct opencl_counted *counted)
{
	if (atomic_fetch_sub(&counted->references, 1) != 1)
		return;
	sem_destroy(&counted->ended);
	free(counted);
}

/* Runtimes may never tell the end of what fails: now and then `has_failed` looks. false: it did not
 * come in time. */
static bool wait_for(sem_t *ended, bool (*has_failed)(cl_event event), cl_event event)
{
	uint64_t patience = turn_patience_ns(), waited = 0;

	while (waited < patience) {
		struct timespec until;
		int value;

		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += LOOK_AFTER_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		while ((value = sem_clockwait(ended, CLOCK_MONOTONIC, &until)) != 0 &&
		       errno == EINTR)
			;
		if (value == 0 || has_failed(event))
			return true;
		waited += LOOK_AFTER_NS;
	}
	return false;
}

/* ---- what a kernel waits for ---- */

/* What waits in other queues is sent on its way. false: some of it has failed; PoCL never ends what
 * is enqueued behind that. */
static bool flush_awaited(cl_uint count, const cl_event *events)
{
	for (cl_uint i = 0; events != NULL && i < count; i++) {
		cl_int status = CL_COMPLETE;
		cl_command_queue queue = NULL;

		opencl_next.clGetEventInfo(events[i], CL_EVENT_EXECUTION_STATUS, sizeof(status),
					   &status, NULL);
		opencl_next.clGetEventInfo(events[i], CL_EVENT_COMMAND_QUEUE, sizeof(queue), &queue,
					   NULL);
		if (status < CL_COMPLETE)
			return false;
		if (queue != NULL && status > CL_COMPLETE)
			opencl_next.clFlush(queue);
	}
	return true;
}

struct mark {
	sem_t reached;
	_Atomic int references;
};

static void drop_mark(struct mark *mark)
{
	if (atomic_fetch_sub(&mark->references, 1) != 1)
		return;
	sem_destroy(&mark->reached);
	free(mark);
}

static void mark_reached(cl_event event, cl_int status, void *data)
{
	struct mark *mark = data;

	(void)status;
	sem_post(&mark->reached);
	drop_mark(mark);
	opencl_next.clReleaseEvent(event);
}

static bool mark_failed(cl_event event)
{
	cl_int status = CL_COMPLETE;

	opencl_next.clGetEventInfo(event, CL_EVENT_EXECUTION_STATUS, sizeof(status), &status, NULL);
	return status < CL_COMPLETE;
}

static cl_event enqueue_mark(struct mark *mark, cl_command_queue queue, cl_uint count,
			     const cl_event *events)
{
	typedef void event_callback(cl_event, cl_int, void *);
	event_callback *const call = mark_reached;
	cl_event event = NULL;

	if (opencl_next.clEnqueueMarkerWithWaitList(queue, events != NULL ? count : 0,
						    count != 0 ? events : NULL,
						    &event) != CL_SUCCESS)
		return NULL;
	opencl_next.clRetainEvent(event); /* the callback's */
	if (opencl_next.clSetEventCallback(event, CL_COMPLETE, (cl_callback)call, mark) ==
	    CL_SUCCESS)
		return event;
	opencl_next.clReleaseEvent(event);
	opencl_next.clReleaseEvent(event);
	return NULL;
}

/* Waits for what is before the kernel. false: it does not end. */
static bool reach(cl_command_queue queue, cl_uint count, const cl_event *events)
{
	struct mark *mark;
	cl_event event;
	bool reached;

	if (opencl_next.clEnqueueMarkerWithWaitList == NULL)
		return true;
	mark = calloc(1, sizeof(*mark));
	if (mark == NULL)
		return true;
	sem_init(&mark->reached, 0, 0);
	mark->references = 2;
	event = enqueue_mark(mark, queue, count, events);
	if (event == NULL) {
		sem_destroy(&mark->reached); /* nobody else has it */
		free(mark);
		return true;
	}
	opencl_next.clFlush(queue);
	reached = wait_for(&mark->reached, mark_failed, event);
	opencl_next.clReleaseEvent(event);
	drop_mark(mark);
	return reached;
}

static bool is_idle(void *context)
{
	const unsigned *number = context;

	if (opencl_kernels_in_flight(*number) != 0)
		opencl_find_failed();
	return opencl_kernels_in_flight(*number) == 0;
}

/* What is found is told like everything else: its semaphore is next. */
static bool kernel_failed(cl_event event)
{
	(void)event;
	opencl_find_failed();
	return false;
}

/* ---- one kernel ---- */

static struct opencl_counted *make(const struct opencl_command *command, struct opencl_set *set)
{
	struct opencl_counted *counted = calloc(1, sizeof(*counted));

	if (counted == NULL)
		return NULL;
	counted->handle = command->handle;
	counted->agent = command->kernel.agent;
	counted->symbol = command->kernel.symbol;
	counted->set = set;
	counted->references = 2;
	sem_init(&counted->ended, 0, 0);
	return counted;
}

static enum counting_status prepare(const struct opencl_command *command, cl_command_queue queue,
				    cl_uint waits, const cl_event *waits_for,
				    struct opencl_set *set, struct counting_problem *problem)
{
	unsigned number = command->queue.device_number;
	enum counting_status status = turn_is_wanted(command->kernel.symbol, problem);

	/* What is left out waits for nothing. */
	if (status != COUNTING_OK)
		return status;
	if (user_events_hold(queue, number)) {
		snprintf(problem->text, sizeof(problem->text),
			 "it, or what is before it, waits for an event that the program itself "
			 "sets");
		return COUNTING_NOT_SUPPORTED;
	}
	if (!flush_awaited(waits, waits_for)) {
		snprintf(problem->text, sizeof(problem->text), "an event it waits for has failed");
		return COUNTING_FAILED;
	}
	if (set->process != NULL) {
		status = process_set_start(set->process, problem);
		if (status != COUNTING_OK)
			return status;
	}
	if (!turn_is_given_up(command->kernel.agent) && !reach(queue, waits, waits_for)) {
		turn_give_up(command->kernel.agent, command->kernel.symbol, DEVICE_RUNTIME_OPENCL,
			     problem);
		return COUNTING_RELEASED;
	}
	return turn_take(command->kernel.agent, command->kernel.symbol, is_idle, &number, problem);
}

void opencl_count_begin(struct opencl_command *command, cl_command_queue queue, cl_uint waits,
			const cl_event *waits_for)
{
	const struct device_counting_sink *sink = counting_sink();
	struct counting_problem problem = {""};
	enum counting_status status;
	struct opencl_set *set;

	if (sink == NULL || command->handle == DEVICE_NONE ||
	    !sink->counts_kernels(command->kernel.agent))
		return;
	set = sink->dispatch_select(command->handle, &command->kernel);
	if (set == NULL) {
		turn_pass(command->kernel.agent);
		return;
	}
	status = prepare(command, queue, waits, waits_for, set, &problem);
	if (status == COUNTING_OK) {
		command->counted = make(command, set);
		if (command->counted != NULL) {
			if (set->process != NULL)
				process_set_read(set->process, command->counted->before, &problem);
			return;
		}
		turn_end(command->kernel.agent);
		status = COUNTING_NO_MEMORY;
	}
	sink->dispatch_not_counted(command->handle, status, problem.text);
	turn_pass(command->kernel.agent);
}

void opencl_count_end(struct opencl_command *command, cl_command_queue queue)
{
	const struct device_counting_sink *sink = counting_sink();
	struct opencl_counted *counted = command->counted;
	struct counting_problem problem = {""};
	int counts = COUNTS;

	if (counted == NULL) {
		if (sink != NULL && sink->counts_kernels(command->kernel.agent))
			opencl_next.clFlush(queue); /* others wait for its end */
		return;
	}
	opencl_next.clFlush(queue);
	if (!wait_for(&counted->ended, kernel_failed, NULL) &&
	    atomic_compare_exchange_strong(&counted->state, &counts, GIVEN_UP)) {
		turn_give_up(counted->agent, counted->symbol, DEVICE_RUNTIME_OPENCL, &problem);
		sink->dispatch_not_counted(counted->handle, COUNTING_RELEASED, problem.text);
	} else {
		turn_end(counted->agent);
	}
	drop(counted);
}

static bool settle(struct opencl_counted *counted)
{
	int counts = COUNTS;

	return atomic_compare_exchange_strong(&counted->state, &counts, COUNTED);
}

void opencl_count_failed(struct opencl_counted *counted, const char *text)
{
	if (settle(counted))
		counting_sink()->dispatch_not_counted(counted->handle, COUNTING_FAILED, text);
	sem_post(&counted->ended);
	drop(counted);
}

static void tell_values(const struct opencl_counted *counted, const double *after, uint64_t start,
			uint64_t end)
{
	const struct opencl_set *set = counted->set;
	double values[OPENCL_SET_MAX];
	uint32_t of_process = 0;

	for (uint32_t i = 0; i < set->count; i++) {
		if (set->sources[i] == OPENCL_KERNEL_TIME) {
			values[i] = (double)(end - start);
		} else {
			values[i] = after[of_process] - counted->before[of_process];
			of_process++;
		}
	}
	counting_sink()->dispatch_counted(counted->handle, values, set->count, start, end);
}

void opencl_count_completed(struct opencl_counted *counted, bool succeeded, uint64_t start,
			    uint64_t end)
{
	struct counting_problem problem = {""};
	enum counting_status status = succeeded ? COUNTING_OK : COUNTING_FAILED;
	double after[OPENCL_SET_MAX] = {0};

	if (counted->set->process != NULL && atomic_load(&counted->state) == COUNTS)
		status = process_set_read(counted->set->process, after, &problem);
	if (!succeeded) {
		status = COUNTING_FAILED;
		snprintf(problem.text, sizeof(problem.text), "it ended with an error");
	}
	if (settle(counted)) {
		if (status == COUNTING_OK)
			tell_values(counted, after, start, end);
		else
			counting_sink()->dispatch_not_counted(counted->handle, status,
							      problem.text);
	}
	sem_post(&counted->ended);
	drop(counted);
}

/* The sets tell what is counted; kernels are asked about when they come. */
static void dispatches(device_handle agent, bool on)
{
	(void)agent;
	(void)on;
}

/* ---- events that the program sets ---- */

cl_event hooked_clCreateUserEvent(cl_context context, cl_int *errcode_ret)
{
	cl_event event = opencl_next.clCreateUserEvent(context, errcode_ret);

	if (event != NULL)
		user_events_created(event);
	return event;
}

/* Functions of the program may be called in there, which enqueue what waited for it. */
cl_int hooked_clSetUserEventStatus(cl_event event, cl_int execution_status)
{
	if (execution_status <= CL_COMPLETE) /* others are refused */
		user_events_set(event);
	return opencl_next.clSetUserEventStatus(event, execution_status);
}

/* ---- the device over time ---- */

bool opencl_counts_time(unsigned device_number)
{
	return atomic_load_explicit(&busy[device_number].users, memory_order_relaxed) != 0;
}

/* Kernels of several queues overlap: what is behind the latest end so far is new. */
void opencl_count_busy(unsigned device_number, uint64_t start, uint64_t end)
{
	struct busy *it = &busy[device_number];
	uint64_t until = atomic_load(&it->until);

	if (!opencl_counts_time(device_number))
		return;
	atomic_fetch_add(&it->kernels, 1);
	do {
		if (end <= until)
			return;
	} while (!atomic_compare_exchange_weak(&it->until, &until, end));
	atomic_fetch_add(&it->ns, end - (start > until ? start : until));
}

static enum counting_status read_device(void *given, double *values,
					struct counting_problem *problem)
{
	const struct opencl_set *set = given;
	const struct busy *it = &busy[set->device_number];
	double of_process[OPENCL_SET_MAX];
	enum counting_status status = COUNTING_OK;
	uint32_t next = 0;

	if (set->process != NULL)
		status = process_set_read(set->process, of_process, problem);
	for (uint32_t i = 0; i < set->count; i++) {
		if (set->sources[i] == OPENCL_PROCESS)
			values[i] = of_process[next++];
		else
			values[i] = (double)(set->sources[i] == OPENCL_KERNELS
						     ? atomic_load(&it->kernels)
						     : atomic_load(&it->ns));
	}
	return status;
}

static enum counting_status start_device(device_handle agent, void *given, uint64_t interval_ns,
					 struct counting_problem *problem)
{
	struct opencl_set *set = given;
	enum counting_status status = COUNTING_OK;

	if (set->process != NULL)
		status = process_set_start(set->process, problem);
	if (status != COUNTING_OK)
		return status;
	atomic_fetch_add(&busy[set->device_number].users, 1);
	status = over_time_start(agent, set, set->count, read_device, interval_ns, problem);
	if (status != COUNTING_OK)
		atomic_fetch_sub(&busy[set->device_number].users, 1);
	return status;
}

static void stop_device(device_handle agent)
{
	over_time_stop(agent);
	atomic_store(&busy[opencl_device_of_agent(agent)].users, 0);
}

const struct device_counting opencl_counting = {opencl_events,   opencl_event, opencl_set_make,
						opencl_set_free, dispatches,   start_device,
						over_time_read,  stop_device};
