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

#include "common/loader.h"
#include "common/loader_state.h"

#define SESSION_RETRY_AFTER_FAILURE_NS 1000000000u
#define CAPTURE_MODE_RELAXED           2

struct cuda_range_session cuda_range_sessions[RANGE_SESSIONS_MAX];
struct cuda_driver_functions cuda_driver_functions;
_Thread_local bool cuda_thread_in_kymo_call_flag __attribute__((tls_model("initial-exec")));
static pthread_mutex_t range_sessions_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t driver_functions_once = PTHREAD_ONCE_INIT;
static bool driver_functions_found_flag;

static void load_driver_functions(void)
{
	void *library = loader_dlopen_keeping_dlerror("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	if (library == NULL)
		return;
	driver_functions_found_flag = true;
#define LOAD_DRIVER_FUNCTION(name)                                                                 \
	*(void **)&cuda_driver_functions.name = loader_find_symbol_in_handle(library, "cu" #name); \
	driver_functions_found_flag =                                                              \
		driver_functions_found_flag && cuda_driver_functions.name != NULL
	LOAD_DRIVER_FUNCTION(EventCreate);
	LOAD_DRIVER_FUNCTION(EventRecord);
	LOAD_DRIVER_FUNCTION(EventQuery);
	LOAD_DRIVER_FUNCTION(EventElapsedTime);
	LOAD_DRIVER_FUNCTION(FuncGetAttribute);
	LOAD_DRIVER_FUNCTION(EventDestroy_v2);
	LOAD_DRIVER_FUNCTION(ThreadExchangeStreamCaptureMode);
	LOAD_DRIVER_FUNCTION(CtxPushCurrent_v2);
	LOAD_DRIVER_FUNCTION(CtxPopCurrent_v2);
#undef LOAD_DRIVER_FUNCTION
}

struct cuda_state_before_kymo_calls cuda_begin_kymo_calls_of_thread(void)
{
	struct cuda_state_before_kymo_calls own = {CAPTURE_MODE_RELAXED,
						   cuda_thread_in_kymo_call_flag};

	cuda_thread_in_kymo_call_flag = true;
	cuda_driver_functions.ThreadExchangeStreamCaptureMode(&own.mode);
	return own;
}

void cuda_end_kymo_calls_of_thread(struct cuda_state_before_kymo_calls own)
{
	cuda_driver_functions.ThreadExchangeStreamCaptureMode(&own.mode);
	cuda_thread_in_kymo_call_flag = own.outer;
}

/* ---- sessions ---- */

struct cuda_range_session *session_find_by_context(const void *context)
{
	for (unsigned i = 0; i < RANGE_SESSIONS_MAX; i++) {
		if (atomic_load_explicit(&cuda_range_sessions[i].context, memory_order_acquire) ==
		    context)
			return &cuda_range_sessions[i];
	}
	return NULL;
}

struct cuda_range_session *cuda_session_find_or_add(void *context)
{
	struct cuda_range_session *session =
		context != NULL ? session_find_by_context(context) : NULL;
	uint32_t device = 0;

	if (session != NULL || context == NULL || cupti.GetDeviceId == NULL)
		return session;
	pthread_once(&driver_functions_once, load_driver_functions);
	if (!driver_functions_found_flag || cupti.GetDeviceId(context, &device) != CUPTI_SUCCESS)
		return NULL;
	pthread_mutex_lock(&range_sessions_lock);
	session = session_find_by_context(context);
	if (session == NULL)
		session = session_find_by_context(NULL);
	if (session != NULL && atomic_load(&session->context) == NULL) {
		memset(&session->agent, 0,
		       sizeof(*session) - offsetof(struct cuda_range_session, agent));
		pthread_mutex_init(&session->lock, NULL);
		session->agent = cuda_find_agent_by_ordinal(device);
		atomic_store_explicit(&session->context, context, memory_order_release);
	}
	pthread_mutex_unlock(&range_sessions_lock);
	return session;
}

device_handle cuda_get_context_agent(void *context)
{
	const struct cuda_range_session *session = cuda_session_find_or_add(context);

	return session != NULL ? session->agent : DEVICE_HANDLE_NONE;
}

static enum counting_status configure_range_profiler(struct cuda_range_session *session,
						     struct cuda_metric_set *set,
						     struct counting_problem *problem)
{
	PROFILER_DECLARE_ARGS(range_config, config, level);
	int result;

	config.object = session->object;
	config.config_bytes = set->configs_by_profiler[PROFILER_OF_RANGES].config_bytes;
	config.config = set->configs_by_profiler[PROFILER_OF_RANGES].config;
	config.data_bytes = session->counter_data_bytes;
	config.data = session->counter_data;
	config.range = PROFILER_USER_RANGE;
	config.replay = PROFILER_USER_REPLAY;
	config.ranges_max = SESSION_RANGES_MAX;
	config.levels = config.level_min = config.level = 1;
	result = profiler.RangeProfilerSetConfig(&config);
	return cuda_profiler_result_to_status(result, "configuring the range profiler", problem);
}

static int clear_counter_data_image(const struct cuda_range_session *session)
{
	PROFILER_DECLARE_ARGS(data_initialize, initialize, data);

	initialize.object = session->object;
	initialize.bytes = session->counter_data_bytes;
	initialize.data = session->counter_data;
	return profiler.RangeProfilerCounterDataImageInitialize(&initialize);
}

static enum counting_status allocate_counter_data_image(struct cuda_range_session *session,
							const struct cuda_metric_set *set,
							struct counting_problem *problem)
{
	PROFILER_DECLARE_ARGS(range_data_size, size, bytes);
	int result;

	size.object = session->object;
	size.names = set->names;
	size.count = cuda_metric_set_get_value_count(set);
	size.ranges_max = SESSION_RANGES_MAX;
	size.nodes_max = SESSION_RANGES_MAX;
	result = profiler.RangeProfilerGetCounterDataSize(&size);
	if (result != CUPTI_SUCCESS)
		return cuda_profiler_result_to_status(result, "asking for the size of the data",
						      problem);
	free(session->counter_data);
	session->counter_data_bytes = size.bytes;
	session->counter_data = calloc(1, size.bytes + 1);
	if (session->counter_data == NULL)
		return COUNTING_NO_MEMORY;
	return cuda_profiler_result_to_status(clear_counter_data_image(session),
					      "making room for the data", problem);
}

static enum counting_status enable_range_profiler(struct cuda_range_session *session,
						  struct counting_problem *problem)
{
	PROFILER_DECLARE_ARGS(range_enable, enable, object);
	int result;

	if (session->object != NULL)
		return COUNTING_OK;
	cuda_profiler_initialize_once();
	enable.context = atomic_load(&session->context);
	result = profiler.RangeProfilerEnable(&enable);
	if (result == CUPTI_SUCCESS)
		session->object = enable.object;
	return cuda_profiler_result_to_status(result, "beginning to count kernels", problem);
}

/* ---- what was counted ---- */

void session_append_kernel_result(struct cuda_range_session *session,
				  struct cuda_profiled_kernel *counted, double *values,
				  enum counting_status why, const char *text)
{
	counted->values = values;
	counted->why = why;
	snprintf(counted->text, sizeof(counted->text), "%s", text);
	counted->next = NULL;
	if (session->unreported_kernels == NULL)
		session->unreported_kernels = counted;
	else
		session->last_unreported_kernel->next = counted;
	session->last_unreported_kernel = counted;
}

void session_unlock_and_report_kernels(struct cuda_range_session *session)
{
	struct cuda_profiled_kernel *done = session->unreported_kernels, *ended = session->ended,
				    *next;

	session->unreported_kernels = session->ended = NULL;
	pthread_mutex_unlock(&session->lock);
	for (; done != NULL; done = next) {
		next = done->next;
		if (done->why == COUNTING_OK)
			cuda_profiled_kernel_mark_values_ready(done);
		else
			cuda_profiled_kernel_report_uncounted(done, done->why, done->text);
	}
	for (; ended != NULL; ended = next) {
		next = ended->next;
		cuda_profiled_kernel_add_record(cuda_profiled_kernel_to_handle(ended),
						ended->end != 0 ? &ended->launch_as_run : NULL,
						ended->start, ended->end);
	}
}

static void fail_pending_kernels(struct cuda_range_session *session, const char *text)
{
	for (uint32_t i = 0; i < session->ranges; i++) {
		if (session->pending[i] != NULL)
			session_append_kernel_result(session, session->pending[i], NULL,
						     COUNTING_FAILED, text);
		session->pending[i] = NULL;
	}
	session->ranges = 0;
}

/* Ranges are named by their place. */
static void read_range_values(struct cuda_range_session *session, size_t index)
{
	PROFILER_DECLARE_ARGS(range_info, info, name);
	struct cuda_profiled_kernel *counted;
	unsigned long place;
	double *values;

	info.data = session->counter_data;
	info.bytes = session->counter_data_bytes;
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
	values = calloc(session->metric_set->count + 1, sizeof(*values));
	if (values != NULL &&
	    cuda_metric_set_evaluate(session->metric_set, PROFILER_OF_RANGES, session->counter_data,
				     session->counter_data_bytes, index, values) == CUPTI_SUCCESS) {
		session_append_kernel_result(session, counted, values, COUNTING_OK, "");
		return;
	}
	free(values);
	session_append_kernel_result(session, counted, NULL, COUNTING_FAILED,
				     "its values could not be computed");
}

static int stop_and_decode_ranges(struct cuda_range_session *session, size_t *ranges)
{
	PROFILER_DECLARE_ARGS(range_stop, stop, all_submitted);
	PROFILER_DECLARE_ARGS(range_decode, decode, dropped);
	PROFILER_DECLARE_ARGS(range_count, count, ranges);
	int result;

	stop.object = decode.object = session->object;
	result = profiler.RangeProfilerStop(&stop);
	if (result == CUPTI_SUCCESS)
		result = profiler.RangeProfilerDecodeData(&decode);
	count.data = session->counter_data;
	count.bytes = session->counter_data_bytes;
	if (result == CUPTI_SUCCESS)
		result = profiler.RangeProfilerGetCounterDataInfo(&count);
	*ranges = result == CUPTI_SUCCESS ? count.ranges : 0;
	return result;
}

void session_collect_values(struct cuda_range_session *session)
{
	struct counting_problem problem = {""};
	size_t ranges = 0;
	int result;

	if (!session->is_profiler_started)
		return;
	session->is_profiler_started = false;
	session->last_decoded_ns = device_get_sink()->now();
	result = stop_and_decode_ranges(session, &ranges);
	for (size_t i = 0; i < ranges; i++)
		read_range_values(session, i);
	if (result != CUPTI_SUCCESS)
		cuda_profiler_result_to_status(result, "reading the counters", &problem);
	fail_pending_kernels(session, result != CUPTI_SUCCESS ? problem.text
							      : "the profiler has no range of it");
	clear_counter_data_image(session);
}

int session_close_range(const struct cuda_range_session *session)
{
	PROFILER_DECLARE_ARGS(object, pop, object);

	pop.object = session->object;
	return profiler.RangeProfilerPopRange(&pop);
}

/* The range of a kernel that was given up is closed when nothing runs any more. */
static void close_given_up_range_if_open(struct cuda_range_session *session)
{
	if (!session->is_range_open)
		return;
	session->is_range_open = false;
	session_close_range(session);
	kernel_times_complete_given_up_kernels(session);
	session->ranges++;
	session_collect_values(session);
}

static enum counting_status start_range_profiler_with_metric_set(struct cuda_range_session *session,
								 struct cuda_metric_set *set,
								 struct counting_problem *problem)
{
	PROFILER_DECLARE_ARGS(object, start, object);
	enum counting_status status;

	if (session->metric_set != set) {
		session->metric_set = NULL;
		status = allocate_counter_data_image(session, set, problem);
		if (status != COUNTING_OK)
			return status;
		session->metric_set = set;
	}
	status = configure_range_profiler(session, set, problem);
	if (status != COUNTING_OK)
		return status;
	start.object = session->object;
	status = cuda_profiler_result_to_status(profiler.RangeProfilerStart(&start),
						"counting kernels", problem);
	session->is_profiler_started = status == COUNTING_OK;
	if (session->is_profiler_started)
		session->last_decoded_ns = device_get_sink()->now();
	return status;
}

static enum counting_status
record_and_return_session_failure(struct cuda_range_session *session, enum counting_status status,
				  const struct counting_problem *problem)
{
	session->last_failure_status = status;
	session->last_failure_problem = *problem;
	session->last_failure_ns = device_get_sink()->now();
	return status;
}

enum counting_status session_prepare_for_set(struct cuda_range_session *session,
					     struct cuda_metric_set *set,
					     struct counting_problem *problem)
{
	enum counting_status status = COUNTING_OK;

	problem->text[0] = '\0';
	if (set->configs_by_profiler[PROFILER_OF_RANGES].config == NULL) {
		snprintf(problem->text, sizeof(problem->text),
			 "these metrics count the device over time only");
		return COUNTING_NOT_SUPPORTED;
	}
	close_given_up_range_if_open(session);
	if (session->metric_set != set)
		session_collect_values(session);
	if (session->last_failure_status != COUNTING_OK &&
	    device_get_sink()->now() - session->last_failure_ns < SESSION_RETRY_AFTER_FAILURE_NS) {
		*problem = session->last_failure_problem;
		return session->last_failure_status;
	}
	if (!session->is_profiler_started) {
		status = enable_range_profiler(session, problem);
		if (status == COUNTING_OK)
			status = start_range_profiler_with_metric_set(session, set, problem);
	}
	return record_and_return_session_failure(session, status, problem);
}

enum counting_status session_open_range(struct cuda_range_session *session,
					struct counting_problem *problem)
{
	PROFILER_DECLARE_ARGS(range_push, push, name);
	enum counting_status status;
	char name[24];

	snprintf(name, sizeof(name), "%u", session->ranges);
	push.object = session->object;
	push.name = name;
	status = cuda_profiler_result_to_status(profiler.RangeProfilerPushRange(&push),
						"opening a range", problem);
	return status == COUNTING_OK ? status
				     : record_and_return_session_failure(session, status, problem);
}

void session_call_with_context(struct cuda_range_session *session,
			       void (*act)(struct cuda_range_session *session))
{
	void *context = atomic_load(&session->context), *popped;
	struct cuda_state_before_kymo_calls own;

	if (context == NULL)
		return;
	own = cuda_begin_kymo_calls_of_thread();
	pthread_mutex_lock(&session->lock);
	if (cuda_driver_functions.CtxPushCurrent_v2(context) == 0) {
		act(session);
		cuda_driver_functions.CtxPopCurrent_v2(&popped);
	}
	session_unlock_and_report_kernels(session);
	cuda_end_kymo_calls_of_thread(own);
}

void session_end_if_enabled(struct cuda_range_session *session)
{
	PROFILER_DECLARE_ARGS(object, disable, object);

	if (session->object == NULL)
		return;
	if (!session->is_range_open)
		session_collect_values(session);
	kernel_times_complete_given_up_kernels(session);
	disable.object = session->object;
	profiler.RangeProfilerDisable(&disable);
	session->object = NULL;
	session->metric_set = NULL;
	session->is_range_open = false;
	free(session->counter_data);
	session->counter_data = NULL;
}
