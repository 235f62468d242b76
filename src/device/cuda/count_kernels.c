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
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/cuda/counting.h"
#include "device/turns.h"

#define SESSIONS_MAX     64
#define RANGES_MAX       64
#define STREAMS_MAX      64
#define DRIVER_NOT_READY 600
#define DECODE_AFTER_NS  200000000u
#define TRY_AGAIN_NS     1000000000u
#define CAPTURE_RELAXED  2
#define SPIN_NS          20000000u

struct cuda_session {
	_Atomic(void *) context;
	device_handle agent;
	pthread_mutex_t lock;
	void *object;
	struct cuda_set *set; /* that it is configured for */
	uint8_t *data;
	size_t data_bytes;
	bool is_started, is_open; /* open: a kernel was given up within its range */
	uint32_t ranges;
	struct cuda_counted *pending[RANGES_MAX]; /* NULL: not counted after all */
	struct cuda_counted *done;                /* to be told when the lock is free */
	uint64_t number, decoded_ns;
	/* What did not work is not tried again at once. */
	enum counting_status failed;
	struct counting_problem failure;
	uint64_t failed_ns;
	void *event; /* behind the kernel that is counted */
	struct {
		void *stream, *event;
		bool is_in_flight;
	} passing[STREAMS_MAX];
};

static struct cuda_session sessions[SESSIONS_MAX];
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
_Thread_local bool cuda_own_call;

static struct {
	int (*EventCreate)(void **event, unsigned flags);
	int (*EventRecord)(void *event, void *stream);
	int (*EventQuery)(void *event);
	int (*EventDestroy_v2)(void *event);
	int (*ThreadExchangeStreamCaptureMode)(int *mode);
	int (*CtxPushCurrent_v2)(void *context);
	int (*CtxPopCurrent_v2)(void **context);
} driver;
static pthread_once_t driver_loaded = PTHREAD_ONCE_INIT;
static bool has_driver;

static void load_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	if (library == NULL)
		return;
	has_driver = true;
#define FIND(name)                                                                                 \
	*(void **)&driver.name = dlsym(library, "cu" #name);                                       \
	has_driver = has_driver && driver.name != NULL
	FIND(EventCreate);
	FIND(EventRecord);
	FIND(EventQuery);
	FIND(EventDestroy_v2);
	FIND(ThreadExchangeStreamCaptureMode);
	FIND(CtxPushCurrent_v2);
	FIND(CtxPopCurrent_v2);
#undef FIND
}

/* Our own calls are no calls of the program, and do not spoil a capture. */
struct own {
	int mode;
	bool outer;
};

static struct own own_begin(void)
{
	struct own own = {CAPTURE_RELAXED, cuda_own_call};

	cuda_own_call = true;
	driver.ThreadExchangeStreamCaptureMode(&own.mode);
	return own;
}

static void own_end(struct own own)
{
	driver.ThreadExchangeStreamCaptureMode(&own.mode);
	cuda_own_call = own.outer;
}

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

/* ---- sessions ---- */

static struct cuda_session *find(const void *context)
{
	for (unsigned i = 0; i < SESSIONS_MAX; i++) {
		if (atomic_load_explicit(&sessions[i].context, memory_order_acquire) == context)
			return &sessions[i];
	}
	return NULL;
}

static struct cuda_session *session_of(void *context)
{
	struct cuda_session *session = context != NULL ? find(context) : NULL;
	uint32_t device = 0;

	if (session != NULL || context == NULL || cupti.GetDeviceId == NULL)
		return session;
	pthread_once(&driver_loaded, load_driver);
	if (!has_driver || cupti.GetDeviceId(context, &device) != CUPTI_SUCCESS)
		return NULL;
	pthread_mutex_lock(&making);
	session = find(context);
	if (session == NULL)
		session = find(NULL);
	if (session != NULL && atomic_load(&session->context) == NULL) {
		memset(&session->agent, 0, sizeof(*session) - offsetof(struct cuda_session, agent));
		pthread_mutex_init(&session->lock, NULL);
		session->agent = cuda_agent(device);
		atomic_store_explicit(&session->context, context, memory_order_release);
	}
	pthread_mutex_unlock(&making);
	return session;
}

device_handle cuda_context_agent(void *context)
{
	const struct cuda_session *session = session_of(context);

	return session != NULL ? session->agent : DEVICE_NONE;
}

static enum counting_status configure(struct cuda_session *session, struct cuda_set *set,
				      struct counting_problem *problem)
{
	PROFILER_PARAMETERS(range_config, config, level);
	int result;

	config.object = session->object;
	config.config_bytes = set->of[PROFILER_OF_RANGES].config_bytes;
	config.config = set->of[PROFILER_OF_RANGES].config;
	config.data_bytes = session->data_bytes;
	config.data = session->data;
	config.range = PROFILER_USER_RANGE;
	config.replay = PROFILER_USER_REPLAY;
	config.ranges_max = RANGES_MAX;
	config.levels = config.level_min = config.level = 1;
	result = profiler.RangeProfilerSetConfig(&config);
	return cuda_profiler_status(result, "configuring the range profiler", problem);
}

static int clear_data(const struct cuda_session *session)
{
	PROFILER_PARAMETERS(data_initialize, initialize, data);

	initialize.object = session->object;
	initialize.bytes = session->data_bytes;
	initialize.data = session->data;
	return profiler.RangeProfilerCounterDataImageInitialize(&initialize);
}

static enum counting_status make_data(struct cuda_session *session, const struct cuda_set *set,
				      struct counting_problem *problem)
{
	PROFILER_PARAMETERS(range_data_size, size, bytes);
	int result;

	size.object = session->object;
	size.names = set->names;
	size.count = set->count;
	size.ranges_max = RANGES_MAX;
	size.nodes_max = RANGES_MAX;
	result = profiler.RangeProfilerGetCounterDataSize(&size);
	if (result != CUPTI_SUCCESS)
		return cuda_profiler_status(result, "asking for the size of the data", problem);
	free(session->data);
	session->data_bytes = size.bytes;
	session->data = calloc(1, size.bytes + 1);
	if (session->data == NULL)
		return COUNTING_NO_MEMORY;
	return cuda_profiler_status(clear_data(session), "making room for the data", problem);
}

static enum counting_status enable(struct cuda_session *session, struct counting_problem *problem)
{
	PROFILER_PARAMETERS(range_enable, enable, object);
	int result;

	if (session->object != NULL)
		return COUNTING_OK;
	cuda_profiler_begin();
	enable.context = atomic_load(&session->context);
	result = profiler.RangeProfilerEnable(&enable);
	if (result == CUPTI_SUCCESS)
		session->object = enable.object;
	return cuda_profiler_status(result, "beginning to count kernels", problem);
}

/* ---- what was counted ---- */

static void is_done(struct cuda_session *session, struct cuda_counted *counted, double *values,
		    enum counting_status why, const char *text)
{
	counted->values = values;
	counted->why = why;
	snprintf(counted->text, sizeof(counted->text), "%s", text);
	counted->next = session->done;
	session->done = counted;
}

/* Unlocks, and tells what is done: the tool library may ask for anything in that. */
static void unlock_and_tell(struct cuda_session *session)
{
	struct cuda_counted *done = session->done, *next;

	session->done = NULL;
	pthread_mutex_unlock(&session->lock);
	for (; done != NULL; done = next) {
		next = done->next;
		if (done->why == COUNTING_OK)
			cuda_counted_values(done);
		else
			cuda_counted_not(done, done->why, done->text);
	}
}

static void not_counted(struct cuda_session *session, const char *text)
{
	for (uint32_t i = 0; i < session->ranges; i++) {
		if (session->pending[i] != NULL)
			is_done(session, session->pending[i], NULL, COUNTING_FAILED, text);
		session->pending[i] = NULL;
	}
	session->ranges = 0;
}

/* Ranges are named by their place. */
static void tell_range(struct cuda_session *session, size_t index)
{
	PROFILER_PARAMETERS(range_info, info, name);
	struct cuda_counted *counted;
	unsigned long place;
	double *values;

	info.data = session->data;
	info.bytes = session->data_bytes;
	info.index = index;
	info.delimiter = "/";
	if (profiler.RangeProfilerCounterDataGetRangeInfo(&info) != CUPTI_SUCCESS ||
	    info.name == NULL)
		return;
	place = strtoul(info.name, NULL, 10);
	counted = place < session->ranges ? session->pending[place] : NULL;
	if (counted == NULL)
		return;
	session->pending[place] = NULL;
	values = calloc(session->set->count + 1, sizeof(*values));
	if (values != NULL &&
	    cuda_set_evaluate(session->set, PROFILER_OF_RANGES, session->data, session->data_bytes,
			      index, values) == CUPTI_SUCCESS) {
		is_done(session, counted, values, COUNTING_OK, "");
		return;
	}
	free(values);
	is_done(session, counted, NULL, COUNTING_FAILED, "its values could not be computed");
}

static int decode(struct cuda_session *session, size_t *ranges)
{
	PROFILER_PARAMETERS(range_stop, stop, all_submitted);
	PROFILER_PARAMETERS(range_decode, decode, dropped);
	PROFILER_PARAMETERS(range_count, count, ranges);
	int result;

	stop.object = decode.object = session->object;
	result = profiler.RangeProfilerStop(&stop);
	if (result == CUPTI_SUCCESS)
		result = profiler.RangeProfilerDecodeData(&decode);
	count.data = session->data;
	count.bytes = session->data_bytes;
	if (result == CUPTI_SUCCESS)
		result = profiler.RangeProfilerGetCounterDataInfo(&count);
	*ranges = result == CUPTI_SUCCESS ? count.ranges : 0;
	return result;
}

/* Ends the session's ranges and tells their values. With the lock, and the context current. */
static void collect(struct cuda_session *session)
{
	struct counting_problem problem = {""};
	size_t ranges = 0;
	int result;

	if (!session->is_started)
		return;
	session->is_started = false;
	session->decoded_ns = device_sink()->now();
	result = decode(session, &ranges);
	for (size_t i = 0; i < ranges; i++)
		tell_range(session, i);
	if (result != CUPTI_SUCCESS)
		cuda_profiler_status(result, "reading the counters", &problem);
	not_counted(session,
		    result != CUPTI_SUCCESS ? problem.text : "the profiler has no range of it");
	clear_data(session);
}

static int pop(const struct cuda_session *session)
{
	PROFILER_PARAMETERS(object, pop, object);

	pop.object = session->object;
	return profiler.RangeProfilerPopRange(&pop);
}

/* The range of a kernel that was given up is closed when nothing runs any more. */
static void close_open(struct cuda_session *session)
{
	if (!session->is_open)
		return;
	session->is_open = false;
	pop(session);
	session->ranges++;
	collect(session);
}

static enum counting_status start(struct cuda_session *session, struct cuda_set *set,
				  struct counting_problem *problem)
{
	PROFILER_PARAMETERS(object, start, object);
	enum counting_status status;

	if (session->set != set) {
		session->set = NULL;
		status = make_data(session, set, problem);
		if (status != COUNTING_OK)
			return status;
		session->set = set;
	}
	status = configure(session, set, problem);
	if (status != COUNTING_OK)
		return status;
	start.object = session->object;
	status = cuda_profiler_status(profiler.RangeProfilerStart(&start), "counting kernels",
				      problem);
	session->is_started = status == COUNTING_OK;
	if (session->is_started)
		session->decoded_ns = device_sink()->now();
	return status;
}

static enum counting_status open_range(struct cuda_session *session, struct cuda_set *set,
				       struct counting_problem *problem)
{
	PROFILER_PARAMETERS(range_push, push, name);
	enum counting_status status = COUNTING_OK;
	char name[24];

	problem->text[0] = '\0';
	if (set->of[PROFILER_OF_RANGES].config == NULL) {
		snprintf(problem->text, sizeof(problem->text),
			 "these metrics are of the device over time only");
		return COUNTING_NOT_SUPPORTED;
	}
	close_open(session);
	if (session->set != set)
		collect(session);
	if (session->failed != COUNTING_OK &&
	    device_sink()->now() - session->failed_ns < TRY_AGAIN_NS) {
		*problem = session->failure;
		return session->failed;
	}
	if (!session->is_started) {
		status = enable(session, problem);
		if (status == COUNTING_OK)
			status = start(session, set, problem);
	}
	if (status == COUNTING_OK) {
		snprintf(name, sizeof(name), "%u", session->ranges);
		push.object = session->object;
		push.name = name;
		status = cuda_profiler_status(profiler.RangeProfilerPushRange(&push),
					      "opening a range", problem);
	}
	session->failed = status;
	session->failure = *problem;
	session->failed_ns = device_sink()->now();
	return status;
}

/* ---- kernels that are not counted ---- */

static bool has_ended(void *event)
{
	return driver.EventQuery(event) != DRIVER_NOT_READY;
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
	struct own own = own_begin();
	bool idle;

	pthread_mutex_lock(&session->lock);
	idle = look(session);
	pthread_mutex_unlock(&session->lock);
	own_end(own);
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
	struct own own = own_begin();
	unsigned place;

	pthread_mutex_lock(&session->lock);
	place = place_of(session, stream);
	if (session->passing[place].event == NULL &&
	    driver.EventCreate(&session->passing[place].event, 2) != 0) /* without times */
		session->passing[place].event = NULL;
	session->passing[place].stream = stream;
	if (session->passing[place].event != NULL &&
	    driver.EventRecord(session->passing[place].event, stream) == 0)
		session->passing[place].is_in_flight = true;
	pthread_mutex_unlock(&session->lock);
	own_end(own);
}

/* ---- one launch ---- */

static enum counting_status enter(struct cuda_session *session, struct cuda_set *set,
				  device_handle handle, const struct device_kernel *kernel,
				  struct cuda_counting *counting, struct counting_problem *problem)
{
	enum counting_status status =
		turn_begin(session->agent, kernel->symbol, is_idle, session, problem);
	struct own own;

	if (status != COUNTING_OK)
		return status;
	own = own_begin();
	pthread_mutex_lock(&session->lock);
	status = open_range(session, set, problem);
	if (status == COUNTING_OK) {
		counting->counted = cuda_counted_new(handle, kernel->symbol, set);
		if (counting->counted == NULL) {
			pop(session);
			session->pending[session->ranges++] = NULL;
			status = COUNTING_NO_MEMORY;
		} else {
			counting->counted->start = device_sink()->now();
		}
	}
	unlock_and_tell(session);
	own_end(own);
	if (status != COUNTING_OK)
		turn_end(session->agent);
	return status;
}

bool cuda_count_enter(struct cuda_counting *counting, void *context, void *stream,
		      device_handle handle, const struct device_kernel *kernel)
{
	const struct device_counting_sink *sink = device_sink()->counting;
	struct cuda_session *session = session_of(context);
	struct counting_problem problem = {""};
	enum counting_status status;
	struct cuda_set *set;

	*counting = (struct cuda_counting){session, NULL, stream};
	if (session == NULL)
		return false;
	set = sink->dispatch_select(handle, kernel);
	if (set != NULL) {
		status = enter(session, set, handle, kernel, counting, &problem);
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
	if (session->event == NULL && driver.EventCreate(&session->event, 2) != 0)
		return false;
	return driver.EventRecord(session->event, stream) == 0 && wait_for(session->event);
}

/* It goes on within its range, which is closed later. */
static void give_up(struct cuda_session *session, struct cuda_counted *counted, void *stream)
{
	struct counting_problem problem = {""};

	pthread_mutex_lock(&session->lock);
	session->is_open = true;
	session->pending[session->ranges] = NULL;
	pthread_mutex_unlock(&session->lock);
	mark_passing(session, stream);
	turn_give_up(session->agent, counted->symbol, DEVICE_RUNTIME_CUDA, &problem);
	cuda_counted_not(counted, COUNTING_RELEASED, problem.text);
}

static void leave(struct cuda_session *session, struct cuda_counted *counted, bool failed)
{
	struct counting_problem problem = {""};
	int result;

	pthread_mutex_lock(&session->lock);
	result = pop(session);
	counted->end = device_sink()->now();
	if (failed) {
		session->pending[session->ranges] = NULL;
	} else if (result != CUPTI_SUCCESS) {
		session->pending[session->ranges] = NULL;
		cuda_profiler_status(result, "closing a range", &problem);
		is_done(session, counted, NULL, COUNTING_FAILED, problem.text);
	} else {
		session->pending[session->ranges] = counted;
	}
	session->ranges++;
	if (session->ranges == RANGES_MAX ||
	    device_sink()->now() - session->decoded_ns > DECODE_AFTER_NS)
		collect(session);
	unlock_and_tell(session);
	if (failed)
		cuda_counted_failed(counted);
}

void cuda_count_exit(struct cuda_counting *counting, bool failed)
{
	struct cuda_session *session = counting->session;
	struct own own;

	if (session == NULL)
		return;
	if (counting->counted == NULL) {
		if (!failed)
			mark_passing(session, counting->stream);
		return;
	}
	own = own_begin();
	if (!failed && !wait_for_kernel(session, counting->stream)) {
		give_up(session, counting->counted, counting->stream);
	} else {
		leave(session, counting->counted, failed);
		turn_end(session->agent);
	}
	own_end(own);
}

/* ---- the end ---- */

static void with_context(struct cuda_session *session, void (*act)(struct cuda_session *session))
{
	void *context = atomic_load(&session->context), *popped;
	struct own own;

	if (context == NULL)
		return;
	own = own_begin();
	pthread_mutex_lock(&session->lock);
	if (driver.CtxPushCurrent_v2(context) == 0) {
		act(session);
		driver.CtxPopCurrent_v2(&popped);
	}
	unlock_and_tell(session);
	own_end(own);
}

/* Between two kernels: `turns` are kept by whoever launches, so a range may be open. */
static void flush_one(struct cuda_session *session)
{
	if (session->ranges != 0 && !session->is_open && !turn_is_taken(session->agent))
		collect(session);
}

void cuda_count_flush(void)
{
	for (unsigned i = 0; i < SESSIONS_MAX; i++)
		with_context(&sessions[i], flush_one);
}

static void end(struct cuda_session *session)
{
	PROFILER_PARAMETERS(object, disable, object);

	if (session->object == NULL)
		return;
	if (!session->is_open)
		collect(session);
	disable.object = session->object;
	profiler.RangeProfilerDisable(&disable);
	session->object = NULL;
	session->set = NULL;
	session->is_open = false;
	free(session->data);
	session->data = NULL;
}

void cuda_count_context_gone(void *context)
{
	struct cuda_session *session = find(context);

	if (session == NULL)
		return;
	with_context(session, end);
	atomic_store(&session->context, NULL);
}

static void end_of_set(struct cuda_session *session)
{
	collect(session);
	session->set = NULL;
}

void cuda_count_set_gone(const struct cuda_set *set)
{
	for (unsigned i = 0; i < SESSIONS_MAX; i++) {
		if (sessions[i].set == set)
			with_context(&sessions[i], end_of_set);
	}
}

void cuda_count_finish(void)
{
	for (unsigned i = 0; i < SESSIONS_MAX; i++)
		with_context(&sessions[i], end);
}

void cuda_count_forked(void)
{
	memset((void *)sessions, 0, sizeof(sessions));
}
