/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Kernels are counted one at a time. Each goes within a range of its own of CUPTI's range profiler:
 * opened before the launch, closed when the kernel has ended, for which its thread waits here, and
 * no longer than it is allowed to (turns.h). So a kernel that waits for another one is let go,
 * which CUPTI's own way (one range a kernel, replayed) does not allow: there the launch itself does
 * not return. A graph is one range.
 *
 * A context has one session. Ranges are decoded when there are enough of them, or when somebody
 * flushes. What is launched without being counted leaves an event behind, so that the next one that
 * is counted knows when it is alone.
 */
#include "device/cuda/count_session.h"

#include <string.h>
#include <time.h>

#include "device/turns.h"

#define DRIVER_NOT_READY 600
#define DECODE_AFTER_NS  200000000u
#define SPIN_NS          20000000u

bool cuda_counts(device_handle agent)
{
	const struct device_sink *sink = device_sink();

	return agent != DEVICE_NONE && sink->counting != NULL &&
	       sink->counting->counts_kernels(agent);
}

bool cuda_counts_any(void)
{
	device_handle agent;

	for (uint32_t i = 0; (agent = cuda_agent(i)) != DEVICE_NONE; i++) {
		if (cuda_counts(agent))
			return true;
	}
	return false;
}

/* ---- kernels that are not counted ---- */

static bool has_ended(void *event)
{
	return session_driver.EventQuery(event) != DRIVER_NOT_READY;
}

/* With the lock, and as our own call. */
static bool look(struct cuda_session *session)
{
	bool idle = true;

	for (unsigned i = 0; i < STREAMS_MAX; i++) {
		if (!session->passing[i].is_in_flight)
			continue;
		if (has_ended(session->passing[i].event))
			session->passing[i].is_in_flight = false;
		else
			idle = false;
	}
	return idle;
}

static bool is_idle(void *context)
{
	struct cuda_session *session = context;
	struct session_own own = session_own_begin();
	bool idle;

	pthread_mutex_lock(&session->lock);
	idle = look(session);
	pthread_mutex_unlock(&session->lock);
	session_own_end(own);
	return idle;
}

/* Where in `passing` the stream is; with all places in use the last is shared, and what was there
 * is not waited for. */
static unsigned place_of(struct cuda_session *session, const void *stream)
{
	unsigned unused = STREAMS_MAX - 1;

	for (unsigned i = 0; i < STREAMS_MAX; i++) {
		if (session->passing[i].event != NULL && session->passing[i].stream == stream)
			return i;
	}
	look(session);
	for (unsigned i = STREAMS_MAX; i-- > 0;) {
		if (!session->passing[i].is_in_flight)
			unused = i;
	}
	return unused;
}

static void mark_passing(struct cuda_session *session, void *stream)
{
	struct session_own own = session_own_begin();
	unsigned place;

	pthread_mutex_lock(&session->lock);
	place = place_of(session, stream);
	if (session->passing[place].event == NULL &&
	    session_driver.EventCreate(&session->passing[place].event, 2) != 0) /* without times */
		session->passing[place].event = NULL;
	session->passing[place].stream = stream;
	if (session->passing[place].event != NULL &&
	    session_driver.EventRecord(session->passing[place].event, stream) == 0)
		session->passing[place].is_in_flight = true;
	pthread_mutex_unlock(&session->lock);
	session_own_end(own);
}

/* ---- one launch ---- */

static enum counting_status ready(struct cuda_session *session, struct cuda_set *set,
				  struct counting_problem *problem)
{
	enum counting_status status;

	pthread_mutex_lock(&session->lock);
	status = session_ready(session, set, problem);
	session_unlock_and_tell(session);
	return status;
}

static enum counting_status open_range(struct cuda_session *session,
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
static enum counting_status open_for(const struct cuda_going *going,
				     const struct device_kernel *kernel,
				     struct cuda_counting *counting,
				     struct counting_problem *problem)
{
	struct cuda_session *session = counting->session;
	bool is_timed = times_prepare(session, counting->counted, going, kernel);
	enum counting_status status;

	counting->counted->start = device_sink()->now();
	status = open_range(session, problem);
	if (status != COUNTING_OK)
		times_launched(session);
	else
		counting->is_timed = is_timed && times_before(session, going->stream);
	return status;
}

static enum counting_status enter(const struct cuda_going *going, struct cuda_set *set,
				  device_handle handle, const struct device_kernel *kernel,
				  struct cuda_counting *counting, struct counting_problem *problem)
{
	struct cuda_session *session = counting->session;
	enum counting_status status =
		turn_begin(session->agent, kernel->symbol, is_idle, session, problem);
	struct session_own own;

	if (status != COUNTING_OK)
		return status;
	own = session_own_begin();
	status = ready(session, set, problem);
	if (status == COUNTING_OK) {
		counting->counted = cuda_counted_new(handle, kernel->symbol, set);
		status = counting->counted != NULL ? open_for(going, kernel, counting, problem)
						   : COUNTING_NO_MEMORY;
	}
	session_own_end(own);
	if (status != COUNTING_OK) {
		cuda_counted_free(counting->counted);
		counting->counted = NULL;
		turn_end(session->agent);
	}
	return status;
}

bool cuda_count_enter(struct cuda_counting *counting, const struct cuda_going *going,
		      device_handle handle, const struct device_kernel *kernel)
{
	const struct device_counting_sink *sink = device_sink()->counting;
	struct cuda_session *session = session_of(going->context);
	struct counting_problem problem = {""};
	enum counting_status status;
	struct cuda_set *set;

	*counting = (struct cuda_counting){session, NULL, going->stream, false};
	if (session == NULL)
		return false;
	set = sink->dispatch_select(handle, kernel);
	if (set != NULL) {
		status = enter(going, set, handle, kernel, counting, &problem);
		if (status == COUNTING_OK)
			return true;
		sink->dispatch_not_counted(handle, status, problem.text);
	}
	turn_pass(session->agent);
	return false;
}

static uint64_t monotonic(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Without a pause at first: until the range is closed the device's clocks are counted. */
static bool wait_for(void *event)
{
	const struct timespec pause = {0, 100000};
	uint64_t patience = turn_patience_ns(), begun = monotonic(), waited;

	while (!has_ended(event)) {
		waited = monotonic() - begun;
		if (waited > patience)
			return false;
		if (waited > SPIN_NS)
			nanosleep(&pause, NULL);
	}
	return true;
}

static bool wait_for_kernel(struct cuda_session *session, void *stream)
{
	return times_behind(session, stream) && wait_for(session->behind);
}

/* It goes on within its range, which is closed later. */
static void give_up(const struct cuda_counting *counting)
{
	struct cuda_session *session = counting->session;
	struct cuda_counted *counted = counting->counted;
	struct counting_problem problem = {""};

	pthread_mutex_lock(&session->lock);
	if (counting->is_timed)
		times_give_up(session, counted);
	session->is_open = true;
	session->pending[session->ranges] = NULL;
	pthread_mutex_unlock(&session->lock);
	mark_passing(session, counting->stream);
	turn_give_up(session->agent, counted->symbol, DEVICE_RUNTIME_CUDA, &problem);
	cuda_counted_not(counted, COUNTING_RELEASED, problem.text);
}

static void leave(const struct cuda_counting *counting, bool failed)
{
	struct cuda_session *session = counting->session;
	struct cuda_counted *counted = counting->counted;
	struct counting_problem problem = {""};
	int result;

	pthread_mutex_lock(&session->lock);
	counted->end = device_sink()->now();
	result = session_close_range(session);
	if (counting->is_timed && !failed)
		times_of(session, counted, counted->end);
	if (failed) {
		session->pending[session->ranges] = NULL;
	} else if (result != CUPTI_SUCCESS) {
		session->pending[session->ranges] = NULL;
		cuda_profiler_status(result, "closing a range", &problem);
		session_is_done(session, counted, NULL, COUNTING_FAILED, problem.text);
	} else {
		session->pending[session->ranges] = counted;
	}
	session->ranges++;
	if (session->ranges == RANGES_MAX ||
	    device_sink()->now() - session->decoded_ns > DECODE_AFTER_NS)
		session_collect(session);
	session_unlock_and_tell(session);
	if (failed)
		cuda_counted_failed(counted);
}

void cuda_count_exit(struct cuda_counting *counting, bool failed)
{
	struct cuda_session *session = counting->session;
	struct session_own own;

	if (session == NULL)
		return;
	if (counting->counted == NULL) {
		if (!failed)
			mark_passing(session, counting->stream);
		return;
	}
	times_returned(session);
	own = session_own_begin();
	if (!failed && !wait_for_kernel(session, counting->stream)) {
		times_launched(session);
		give_up(counting);
	} else {
		leave(counting, failed);
		times_launched(session);
		turn_end(session->agent);
	}
	session_own_end(own);
}

/* ---- the end ---- */

/* Between two kernels: `turns` are kept by whoever launches, so a range may be open. */
static void flush_one(struct cuda_session *session)
{
	if (session->ranges != 0 && !session->is_open && !turn_is_taken(session->agent))
		session_collect(session);
}

void cuda_count_flush(void)
{
	for (unsigned i = 0; i < SESSIONS_MAX; i++)
		session_with_context(&cuda_sessions[i], flush_one);
}

void cuda_count_records(bool on)
{
	for (unsigned i = 0; i < SESSIONS_MAX; i++) {
		void *context = atomic_load(&cuda_sessions[i].context);

		if (context == NULL || !atomic_load(&cuda_sessions[i].is_switched))
			continue;
		if (on)
			cupti.ActivityEnableContext(context, CUPTI_KIND_CONCURRENT_KERNEL);
		else
			cupti.ActivityDisableContext(context, CUPTI_KIND_CONCURRENT_KERNEL);
	}
}

void cuda_count_context_gone(void *context)
{
	struct cuda_session *session = session_find(context);

	if (session == NULL)
		return;
	session_with_context(session, session_end);
	atomic_store(&session->context, NULL);
}

static void end_of_set(struct cuda_session *session)
{
	session_collect(session);
	session->set = NULL;
}

void cuda_count_set_gone(const struct cuda_set *set)
{
	for (unsigned i = 0; i < SESSIONS_MAX; i++) {
		if (cuda_sessions[i].set == set)
			session_with_context(&cuda_sessions[i], end_of_set);
	}
}

void cuda_count_finish(void)
{
	for (unsigned i = 0; i < SESSIONS_MAX; i++)
		session_with_context(&cuda_sessions[i], session_end);
}

void cuda_count_forked(void)
{
	memset((void *)cuda_sessions, 0, sizeof(cuda_sessions));
}
