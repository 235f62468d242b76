/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Sessions of CUPTI's range profiler, one a context: see count_session.h. Ranges are decoded when
 * there are enough of them, or when somebody flushes.
 */
#include "device/cuda/count_session.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY_AGAIN_NS    1000000000u
#define CAPTURE_RELAXED 2

struct cuda_session cuda_sessions[SESSIONS_MAX];
struct session_driver session_driver;
_Thread_local bool cuda_own_call __attribute__((tls_model("initial-exec")));
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t driver_loaded = PTHREAD_ONCE_INIT;
static bool has_driver;

static void load_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	if (library == NULL)
		return;
	has_driver = true;
#define FIND(name)                                                                                 \
	*(void **)&session_driver.name = dlsym(library, "cu" #name);                               \
	has_driver = has_driver && session_driver.name != NULL
	FIND(EventCreate);
	FIND(EventRecord);
	FIND(EventQuery);
	FIND(EventElapsedTime);
	FIND(FuncGetAttribute);
	FIND(EventDestroy_v2);
	FIND(ThreadExchangeStreamCaptureMode);
	FIND(CtxPushCurrent_v2);
	FIND(CtxPopCurrent_v2);
#undef FIND
}

struct session_own session_own_begin(void)
{
	struct session_own own = {CAPTURE_RELAXED, cuda_own_call};

	cuda_own_call = true;
	session_driver.ThreadExchangeStreamCaptureMode(&own.mode);
	return own;
}

void session_own_end(struct session_own own)
{
	session_driver.ThreadExchangeStreamCaptureMode(&own.mode);
	cuda_own_call = own.outer;
}

/* ---- sessions ---- */

struct cuda_session *session_find(const void *context)
{
	for (unsigned i = 0; i < SESSIONS_MAX; i++) {
		if (atomic_load_explicit(&cuda_sessions[i].context, memory_order_acquire) ==
		    context)
			return &cuda_sessions[i];
	}
	return NULL;
}

struct cuda_session *session_of(void *context)
{
	struct cuda_session *session = context != NULL ? session_find(context) : NULL;
	uint32_t device = 0;

	if (session != NULL || context == NULL || cupti.GetDeviceId == NULL)
		return session;
	pthread_once(&driver_loaded, load_driver);
	if (!has_driver || cupti.GetDeviceId(context, &device) != CUPTI_SUCCESS)
		return NULL;
	pthread_mutex_lock(&making);
	session = session_find(context);
	if (session == NULL)
		session = session_find(NULL);
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
	size.count = cuda_clocks_count(set);
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

void session_is_done(struct cuda_session *session, struct cuda_counted *counted, double *values,
		     enum counting_status why, const char *text)
{
	counted->values = values;
	counted->why = why;
	snprintf(counted->text, sizeof(counted->text), "%s", text);
	counted->next = NULL;
	if (session->done == NULL)
		session->done = counted;
	else
		session->done_last->next = counted;
	session->done_last = counted;
}

void session_unlock_and_tell(struct cuda_session *session)
{
	struct cuda_counted *done = session->done, *ended = session->ended, *next;

	session->done = session->ended = NULL;
	pthread_mutex_unlock(&session->lock);
	for (; done != NULL; done = next) {
		next = done->next;
		if (done->why == COUNTING_OK)
			cuda_counted_values(done);
		else
			cuda_counted_not(done, done->why, done->text);
	}
	for (; ended != NULL; ended = next) {
		next = ended->next;
		cuda_counted_ran(cuda_counted_handle(ended), ended->end != 0 ? &ended->ran : NULL,
				 ended->start, ended->end);
	}
}

static void not_counted(struct cuda_session *session, const char *text)
{
	for (uint32_t i = 0; i < session->ranges; i++) {
		if (session->pending[i] != NULL)
			session_is_done(session, session->pending[i], NULL, COUNTING_FAILED, text);
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
		session_is_done(session, counted, values, COUNTING_OK, "");
		return;
	}
	free(values);
	session_is_done(session, counted, NULL, COUNTING_FAILED,
			"its values could not be computed");
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

void session_collect(struct cuda_session *session)
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

int session_close_range(const struct cuda_session *session)
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
	session_close_range(session);
	times_of_given_up(session);
	session->ranges++;
	session_collect(session);
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

static enum counting_status remember(struct cuda_session *session, enum counting_status status,
				     const struct counting_problem *problem)
{
	session->failed = status;
	session->failure = *problem;
	session->failed_ns = device_sink()->now();
	return status;
}

enum counting_status session_ready(struct cuda_session *session, struct cuda_set *set,
				   struct counting_problem *problem)
{
	enum counting_status status = COUNTING_OK;

	problem->text[0] = '\0';
	if (set->of[PROFILER_OF_RANGES].config == NULL) {
		snprintf(problem->text, sizeof(problem->text),
			 "these metrics are of the device over time only");
		return COUNTING_NOT_SUPPORTED;
	}
	close_open(session);
	if (session->set != set)
		session_collect(session);
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
	return remember(session, status, problem);
}

enum counting_status session_open_range(struct cuda_session *session,
					struct counting_problem *problem)
{
	PROFILER_PARAMETERS(range_push, push, name);
	enum counting_status status;
	char name[24];

	snprintf(name, sizeof(name), "%u", session->ranges);
	push.object = session->object;
	push.name = name;
	status = cuda_profiler_status(profiler.RangeProfilerPushRange(&push), "opening a range",
				      problem);
	return status == COUNTING_OK ? status : remember(session, status, problem);
}

void session_with_context(struct cuda_session *session, void (*act)(struct cuda_session *session))
{
	void *context = atomic_load(&session->context), *popped;
	struct session_own own;

	if (context == NULL)
		return;
	own = session_own_begin();
	pthread_mutex_lock(&session->lock);
	if (session_driver.CtxPushCurrent_v2(context) == 0) {
		act(session);
		session_driver.CtxPopCurrent_v2(&popped);
	}
	session_unlock_and_tell(session);
	session_own_end(own);
}

void session_end(struct cuda_session *session)
{
	PROFILER_PARAMETERS(object, disable, object);

	if (session->object == NULL)
		return;
	if (!session->is_open)
		session_collect(session);
	times_of_given_up(session);
	disable.object = session->object;
	profiler.RangeProfilerDisable(&disable);
	session->object = NULL;
	session->set = NULL;
	session->is_open = false;
	free(session->data);
	session->data = NULL;
}
