/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * When a counted kernel ran. CUPTI's record of it would say so, but where it makes records, kernels
 * run instructions of CUPTI's own, which would be counted. So there is none for this launch, and
 * its times are those of two events of the driver's around it, within the range. A graph keeps its
 * record, which takes no instructions.
 */
#include "device/cuda/count_session.h"

#define FUNCTION_ATTRIBUTE_SHARED_BYTES 1
#define FUNCTION_ATTRIBUTE_LOCAL_BYTES  3
#define EVENT_WITH_TIMES_FLAGS          0u

static uint64_t read_launch_queue_id(const struct cuda_countable_launch *going)
{
	uint32_t context = 0, stream = 0;

	if (cupti.GetContextId == NULL || cupti.GetStreamIdEx == NULL ||
	    cupti.GetContextId(going->context, &context) != CUPTI_SUCCESS ||
	    cupti.GetStreamIdEx(going->context, going->stream, going->is_per_thread_stream,
				&stream) != CUPTI_SUCCESS)
		return 0;
	return cuda_make_queue_id(context, stream);
}

static uint32_t read_function_attribute(int attribute, const void *function)
{
	int value = 0;

	return cuda_driver_functions.FuncGetAttribute(&value, attribute, function) == 0 && value > 0
		       ? (uint32_t)value
		       : 0;
}

static void fill_counted_kernel_launch(struct cuda_profiled_kernel *counted,
				       const struct cuda_countable_launch *going,
				       const struct device_kernel_launch *kernel)
{
	counted->launch_as_run = *kernel;
	counted->launch_as_run.queue = read_launch_queue_id(going);
	counted->launch_as_run.group_bytes +=
		read_function_attribute(FUNCTION_ATTRIBUTE_SHARED_BYTES, going->function);
	counted->launch_as_run.private_bytes =
		read_function_attribute(FUNCTION_ATTRIBUTE_LOCAL_BYTES, going->function);
}

static bool create_event_if_missing(void **event)
{
	if (*event == NULL && cuda_driver_functions.EventCreate(event, EVENT_WITH_TIMES_FLAGS) != 0)
		*event = NULL;
	return *event != NULL;
}

static bool create_and_record_event(void **event, void *stream)
{
	return create_event_if_missing(event) &&
	       cuda_driver_functions.EventRecord(*event, stream) == 0;
}

/* Asking for attributes has the driver load a function that it has not loaded yet. */
bool kernel_times_prepare_if_possible(struct cuda_range_session *session,
				      struct cuda_profiled_kernel *counted,
				      const struct cuda_countable_launch *going,
				      const struct device_kernel_launch *kernel)
{
	if (!create_event_if_missing(&session->before) ||
	    !create_event_if_missing(&session->behind) ||
	    !cuda_switch_context_kernel_records(going->context, false))
		return false;
	atomic_store(&session->has_own_kernel_record_switch, true);
	if (going->function == NULL)
		return false;
	fill_counted_kernel_launch(counted, going, kernel);
	return true;
}

bool kernel_times_record_start_event(struct cuda_range_session *session, void *stream)
{
	if (create_and_record_event(&session->before, stream)) {
		session->start_event_recorded_ns = session->kernel_launched_ns =
			device_get_sink()->now();
		return true;
	}
	cuda_switch_context_kernel_records(atomic_load(&session->context), true);
	return false;
}

void kernel_times_set_launch_time(struct cuda_range_session *session)
{
	session->kernel_launched_ns = device_get_sink()->now();
}

void kernel_times_reenable_cupti_records(const struct cuda_range_session *session)
{
	if (atomic_load(&session->has_own_kernel_record_switch))
		cuda_switch_context_kernel_records(atomic_load(&session->context), true);
}

bool kernel_times_record_end_event(struct cuda_range_session *session, void *stream)
{
	return create_and_record_event(&session->behind, stream);
}

static uint64_t compute_ns_between_events(void *before, void *behind)
{
	float milliseconds = 0;

	return cuda_driver_functions.EventElapsedTime(&milliseconds, before, behind) == 0 &&
			       milliseconds > 0
		       ? (uint64_t)((double)milliseconds * 1e6)
		       : 0;
}

/* Nothing else runs, so the device does each of the two as soon as it has been given to the driver:
 * the first event is before the kernel by as much as the launch took. */
void kernel_times_complete_kernel(const struct cuda_range_session *session,
				  struct cuda_profiled_kernel *counted, uint64_t end)
{
	uint64_t took = compute_ns_between_events(session->before, session->behind);
	uint64_t launch = session->kernel_launched_ns - session->start_event_recorded_ns;

	if (took > launch)
		took -= launch;
	cuda_profiled_kernel_add_record(cuda_profiled_kernel_to_handle(counted),
					&counted->launch_as_run, end - took, end);
}

void kernel_times_keep_events_of_given_up_kernel(struct cuda_range_session *session,
						 struct cuda_profiled_kernel *counted)
{
	counted->before = session->before;
	counted->behind = session->behind;
	session->before = session->behind = NULL;
	counted->next = session->given_up;
	session->given_up = counted;
}

void kernel_times_complete_given_up_kernels(struct cuda_range_session *session)
{
	struct cuda_profiled_kernel *counted, *next;

	for (counted = session->given_up; counted != NULL; counted = next) {
		next = counted->next;
		counted->end = 0; /* not known */
		if (counted->behind != NULL &&
		    cuda_driver_functions.EventQuery(counted->behind) == 0)
			counted->end = counted->start +
				       compute_ns_between_events(counted->before, counted->behind);
		cuda_driver_functions.EventDestroy_v2(counted->before);
		cuda_driver_functions.EventDestroy_v2(counted->behind);
		counted->next = session->ended;
		session->ended = counted;
	}
	session->given_up = NULL;
}
