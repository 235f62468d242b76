/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Kernels are counted one at a time. Each goes within a range of its own of CUPTI's range profiler:
 * opened before the launch, closed when the kernel has ended, for which its thread waits here, and
 * no longer than it is allowed to (device/kernel_serializer.h). So a kernel that waits for another
 * one is let go, which CUPTI's own way (one range a kernel, replayed) does not allow: there the
 * launch itself does not return. A graph is one range.
 *
 * A context has one session. Ranges are decoded when there are enough of them, or when somebody
 * flushes. What is launched without being counted leaves an event behind, so that the next one that
 * is counted knows when it is alone.
 */
#include "device/cuda/count_session.h"

#include <string.h>
#include <time.h>

#include "common/monotonic.h"
#include "device/kernel_serializer.h"

#define CUDA_ERROR_NOT_READY     600
#define RANGE_DECODE_INTERVAL_NS 200000000u
#define SPIN_WAIT_MAX_NS         20000000u

bool cuda_is_counting_kernels_of_agent(device_handle agent)
{
	const struct device_sink *sink = device_get_sink();

	return agent != DEVICE_HANDLE_NONE && sink->counting != NULL &&
	       sink->counting->counts_kernels(agent);
}

bool cuda_is_counting_any_agent(void)
{
	device_handle agent;

	for (uint32_t i = 0; (agent = cuda_find_agent_by_ordinal(i)) != DEVICE_HANDLE_NONE; i++) {
		if (cuda_is_counting_kernels_of_agent(agent))
			return true;
	}
	return false;
}

/* ---- kernels that are not counted ---- */

static bool driver_event_has_completed(void *event)
{
	return cuda_driver_functions.EventQuery(event) != CUDA_ERROR_NOT_READY;
}

/* With the lock, and as our own call. */
static bool uncounted_launches_have_ended(struct cuda_range_session *session)
{
	bool idle = true;

	for (unsigned i = 0; i < SESSION_STREAMS_MAX; i++) {
		if (!session->uncounted_streams[i].is_in_flight)
			continue;
		if (driver_event_has_completed(session->uncounted_streams[i].event))
			session->uncounted_streams[i].is_in_flight = false;
		else
			idle = false;
	}
	return idle;
}

static bool no_uncounted_launch_is_in_flight(void *context)
{
	struct cuda_range_session *session = context;
	struct cuda_state_before_kymo_calls own = cuda_begin_kymo_calls_of_thread();
	bool idle;

	pthread_mutex_lock(&session->lock);
	idle = uncounted_launches_have_ended(session);
	pthread_mutex_unlock(&session->lock);
	cuda_end_kymo_calls_of_thread(own);
	return idle;
}

/* Where in `passing` the stream is; with all places in use the last is shared, and what was there
 * is not waited for. */
static unsigned find_uncounted_launch_slot(struct cuda_range_session *session, const void *stream)
{
	unsigned unused = SESSION_STREAMS_MAX - 1;

	for (unsigned i = 0; i < SESSION_STREAMS_MAX; i++) {
		if (session->uncounted_streams[i].event != NULL &&
		    session->uncounted_streams[i].stream == stream)
			return i;
	}
	uncounted_launches_have_ended(session);
	for (unsigned i = SESSION_STREAMS_MAX; i-- > 0;) {
		if (!session->uncounted_streams[i].is_in_flight)
			unused = i;
	}
	return unused;
}

static void record_event_of_uncounted_launch(struct cuda_range_session *session, void *stream)
{
	struct cuda_state_before_kymo_calls own = cuda_begin_kymo_calls_of_thread();
	unsigned place;

	pthread_mutex_lock(&session->lock);
	place = find_uncounted_launch_slot(session, stream);
	if (session->uncounted_streams[place].event == NULL &&
	    cuda_driver_functions.EventCreate(&session->uncounted_streams[place].event, 2) !=
		    0) /* without times */
		session->uncounted_streams[place].event = NULL;
	session->uncounted_streams[place].stream = stream;
	if (session->uncounted_streams[place].event != NULL &&
	    cuda_driver_functions.EventRecord(session->uncounted_streams[place].event, stream) == 0)
		session->uncounted_streams[place].is_in_flight = true;
	pthread_mutex_unlock(&session->lock);
	cuda_end_kymo_calls_of_thread(own);
}

/* ---- one launch ---- */

static enum counting_status prepare_session_under_its_lock(struct cuda_range_session *session,
							   struct cuda_metric_set *set,
							   struct counting_problem *problem)
{
	enum counting_status status;

	pthread_mutex_lock(&session->lock);
	status = session_prepare_for_set(session, set, problem);
	session_unlock_and_report_kernels(session);
	return status;
}

static enum counting_status lock_and_open_range(struct cuda_range_session *session,
						struct counting_problem *problem)
{
	enum counting_status status;

	pthread_mutex_lock(&session->lock);
	status = session_open_range(session, problem);
	pthread_mutex_unlock(&session->lock);
	return status;
}

/* Clocks of the device are counted from where the range is open, whatever runs: what can be done
 * before that is. */
static enum counting_status open_range_for_kernel(const struct cuda_countable_launch *going,
						  const struct device_kernel_launch *kernel,
						  struct cuda_launch_counting_state *counting,
						  struct counting_problem *problem)
{
	struct cuda_range_session *session = counting->session;
	bool is_timed = kernel_times_prepare_if_possible(session, counting->counted, going, kernel);
	enum counting_status status;

	counting->counted->start = device_get_sink()->now();
	status = lock_and_open_range(session, problem);
	if (status != COUNTING_OK)
		kernel_times_reenable_cupti_records(session);
	else
		counting->is_timed_by_events =
			is_timed && kernel_times_record_start_event(session, going->stream);
	return status;
}

static enum counting_status begin_counted_kernel(const struct cuda_countable_launch *going,
						 struct cuda_metric_set *set, device_handle handle,
						 const struct device_kernel_launch *kernel,
						 struct cuda_launch_counting_state *counting,
						 struct counting_problem *problem)
{
	struct cuda_range_session *session = counting->session;
	enum counting_status status = serializer_filter_and_acquire_turn(
		session->agent, kernel->symbol, no_uncounted_launch_is_in_flight, session, problem);
	struct cuda_state_before_kymo_calls own;

	if (status != COUNTING_OK)
		return status;
	own = cuda_begin_kymo_calls_of_thread();
	status = prepare_session_under_its_lock(session, set, problem);
	if (status == COUNTING_OK) {
		counting->counted = cuda_profiled_kernel_new(handle, kernel->symbol, set);
		status = counting->counted != NULL
				 ? open_range_for_kernel(going, kernel, counting, problem)
				 : COUNTING_NO_MEMORY;
	}
	cuda_end_kymo_calls_of_thread(own);
	if (status != COUNTING_OK) {
		cuda_profiled_kernel_free(counting->counted);
		counting->counted = NULL;
		serializer_release_turn(session->agent);
	}
	return status;
}

bool cuda_kernel_counting_begin_launch(struct cuda_launch_counting_state *counting,
				       const struct cuda_countable_launch *going,
				       device_handle handle,
				       const struct device_kernel_launch *kernel)
{
	const struct device_counting_sink *sink = device_get_sink()->counting;
	struct cuda_range_session *session = cuda_session_find_or_add(going->context);
	struct counting_problem problem = {""};
	enum counting_status status;
	struct cuda_metric_set *set;

	*counting = (struct cuda_launch_counting_state){session, NULL, going->stream, false};
	if (session == NULL)
		return false;
	set = sink->dispatch_select_set(handle, kernel);
	if (set != NULL) {
		status = begin_counted_kernel(going, set, handle, kernel, counting, &problem);
		if (status == COUNTING_OK)
			return true;
		sink->dispatch_not_counted(handle, status, problem.text);
	}
	serializer_wait_while_turn_taken(session->agent);
	return false;
}

/* Without a pause at first: until the range is closed the device's clocks are counted. */
static bool wait_for_event_within_patience(void *event)
{
	const struct timespec pause = {0, 100000};
	uint64_t patience = serializer_get_patience_ns(), begun = monotonic_ns(), waited;

	while (!driver_event_has_completed(event)) {
		waited = monotonic_ns() - begun;
		if (waited > patience)
			return false;
		if (waited > SPIN_WAIT_MAX_NS)
			nanosleep(&pause, NULL);
	}
	return true;
}

static bool record_end_event_and_wait(struct cuda_range_session *session, void *stream)
{
	return kernel_times_record_end_event(session, stream) &&
	       wait_for_event_within_patience(session->behind);
}

/* It goes on within its range, which is closed later. */
static void give_up_counted_kernel(const struct cuda_launch_counting_state *counting)
{
	struct cuda_range_session *session = counting->session;
	struct cuda_profiled_kernel *counted = counting->counted;
	struct counting_problem problem = {""};

	pthread_mutex_lock(&session->lock);
	if (counting->is_timed_by_events)
		kernel_times_keep_events_of_given_up_kernel(session, counted);
	session->is_range_open = true;
	session->pending[session->ranges] = NULL;
	pthread_mutex_unlock(&session->lock);
	record_event_of_uncounted_launch(session, counting->stream);
	serializer_give_up_kernel(session->agent, counted->symbol, DEVICE_RUNTIME_CUDA, &problem);
	cuda_profiled_kernel_report_uncounted(counted, COUNTING_TIMED_OUT, problem.text);
}

static void end_counted_kernel(const struct cuda_launch_counting_state *counting, bool failed)
{
	struct cuda_range_session *session = counting->session;
	struct cuda_profiled_kernel *counted = counting->counted;
	struct counting_problem problem = {""};
	int result;

	pthread_mutex_lock(&session->lock);
	counted->end = device_get_sink()->now();
	result = session_close_range(session);
	if (counting->is_timed_by_events && !failed)
		kernel_times_complete_kernel(session, counted, counted->end);
	if (failed) {
		session->pending[session->ranges] = NULL;
	} else if (result != CUPTI_SUCCESS) {
		session->pending[session->ranges] = NULL;
		cuda_profiler_result_to_status(result, "closing a range", &problem);
		session_append_kernel_result(session, counted, NULL, COUNTING_FAILED, problem.text);
	} else {
		session->pending[session->ranges] = counted;
	}
	session->ranges++;
	if (session->ranges == SESSION_RANGES_MAX ||
	    device_get_sink()->now() - session->last_decoded_ns > RANGE_DECODE_INTERVAL_NS)
		session_collect_values(session);
	session_unlock_and_report_kernels(session);
	if (failed)
		cuda_profiled_kernel_report_unlaunched(counted);
}

void cuda_kernel_counting_end_launch(struct cuda_launch_counting_state *counting, bool failed)
{
	struct cuda_range_session *session = counting->session;
	struct cuda_state_before_kymo_calls own;

	if (session == NULL)
		return;
	if (counting->counted == NULL) {
		if (!failed)
			record_event_of_uncounted_launch(session, counting->stream);
		return;
	}
	kernel_times_set_launch_time(session);
	own = cuda_begin_kymo_calls_of_thread();
	if (!failed && !record_end_event_and_wait(session, counting->stream)) {
		kernel_times_reenable_cupti_records(session);
		give_up_counted_kernel(counting);
	} else {
		end_counted_kernel(counting, failed);
		kernel_times_reenable_cupti_records(session);
		serializer_release_turn(session->agent);
	}
	cuda_end_kymo_calls_of_thread(own);
}

/* ---- the end ---- */

/* Between two kernels: `turns` are kept by whoever launches, so a range may be open. */
static void collect_values_if_no_turn_taken(struct cuda_range_session *session)
{
	if (session->ranges != 0 && !session->is_range_open &&
	    !serializer_is_turn_taken(session->agent))
		session_collect_values(session);
}

void cuda_kernel_counting_collect_values(void)
{
	for (unsigned i = 0; i < RANGE_SESSIONS_MAX; i++)
		session_call_with_context(&cuda_range_sessions[i], collect_values_if_no_turn_taken);
}

void cuda_sessions_switch_kernel_records(bool on)
{
	for (unsigned i = 0; i < RANGE_SESSIONS_MAX; i++) {
		void *context = atomic_load(&cuda_range_sessions[i].context);

		if (context == NULL ||
		    !atomic_load(&cuda_range_sessions[i].has_own_kernel_record_switch))
			continue;
		if (on)
			cupti.ActivityEnableContext(context, CUPTI_KIND_CONCURRENT_KERNEL);
		else
			cupti.ActivityDisableContext(context, CUPTI_KIND_CONCURRENT_KERNEL);
	}
}

void cuda_kernel_counting_end_session_of_context(void *context)
{
	struct cuda_range_session *session = session_find_by_context(context);

	if (session == NULL)
		return;
	session_call_with_context(session, session_end_if_enabled);
	atomic_store(&session->context, NULL);
}

static void collect_and_drop_session_set(struct cuda_range_session *session)
{
	session_collect_values(session);
	session->metric_set = NULL;
}

void cuda_kernel_counting_drop_metric_set(const struct cuda_metric_set *set)
{
	for (unsigned i = 0; i < RANGE_SESSIONS_MAX; i++) {
		if (cuda_range_sessions[i].metric_set == set)
			session_call_with_context(&cuda_range_sessions[i],
						  collect_and_drop_session_set);
	}
}

void cuda_kernel_counting_end_all_sessions(void)
{
	for (unsigned i = 0; i < RANGE_SESSIONS_MAX; i++)
		session_call_with_context(&cuda_range_sessions[i], session_end_if_enabled);
}

void cuda_kernel_counting_reset_forked(void)
{
	memset((void *)cuda_range_sessions, 0, sizeof(cuda_range_sessions));
}
