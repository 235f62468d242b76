/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A whole device over time, whoever uses it: CUPTI's PM sampling. The hardware takes a sample every
 * so often into a buffer; a thread decodes what is there and adds it up. What was counted until now
 * is the sum of all samples so far: it ends with the last one, at most an interval ago. Shares and
 * rates are averages over time. The first sample has everything since the configuration in it, and
 * is left out.
 *
 * Samples have the device's own times, which are the host's real-time clock to a tenth of a
 * millisecond; they are moved so that none ends after it was read.
 */
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/cuda/counting.h"

#define DEVICE_SAMPLINGS_MAX           64
#define SAMPLE_INTERVAL_DEFAULT_NS     1000000u
#define SAMPLE_INTERVAL_MIN_NS         50000u    /* faster than samples can be decoded */
#define SAMPLE_INTERVAL_MAX_NS         20000000u /* longer ones are added up */
#define DECODE_PERIOD_MIN_NS           10000000u
#define HARDWARE_SAMPLE_BUFFER_BYTES   ((size_t)64 << 20)
#define COUNTER_DATA_IMAGE_SAMPLES_MIN 64u
#define SAME_CLOCK_DISTANCE_MAX_NS     3600000000000 /* of clocks from each other */

struct device_sampling_state {
	device_handle agent; /* DEVICE_HANDLE_NONE: free */
	struct cuda_metric_set *metric_set;
	void *object;
	uint8_t *counter_data;
	size_t counter_data_bytes;
	uint64_t hardware_interval_ns, report_interval_ns; /* interval 0: nobody wants samples */
	double *values;                                    /* of a sample */
	double *total_values,
		*unreported_values; /* since the start, since the last that was told */
	uint64_t total_sampled_ns, unreported_ns, unreported_start_ns, last_sample_end_ns;
	uint64_t started;              /* our clock */
	int64_t device_clock_shift_ns; /* of the device's clock to ours */
	uint64_t seen;
	pthread_t decoder_thread;
	sem_t ends;
	bool has_decoder_thread;
	_Atomic bool is_stopped_by_own_thread;
	pthread_mutex_t lock;
};

static struct device_sampling_state device_sampling_states[DEVICE_SAMPLINGS_MAX];
static pthread_mutex_t device_samplings_lock = PTHREAD_MUTEX_INITIALIZER;

static struct device_sampling_state *find_device_sampling(device_handle agent)
{
	for (unsigned i = 0; i < DEVICE_SAMPLINGS_MAX; i++) {
		if (device_sampling_states[i].agent == agent)
			return &device_sampling_states[i];
	}
	return NULL;
}

static uint64_t read_clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Either clock may be theirs: the real-time clock, or the one that CUPTI's records were given. */
static uint64_t convert_to_kymo_clock(struct device_sampling_state *course, uint64_t time,
				      uint64_t now)
{
	if (course->seen == 0) {
		int64_t apart = (int64_t)(now - time);

		course->device_clock_shift_ns =
			apart > SAME_CLOCK_DISTANCE_MAX_NS || apart < -SAME_CLOCK_DISTANCE_MAX_NS
				? (int64_t)(now - read_clock_ns(CLOCK_REALTIME))
				: 0;
	}
	if ((int64_t)(time + (uint64_t)course->device_clock_shift_ns - now) > 0)
		course->device_clock_shift_ns -=
			(int64_t)(time + (uint64_t)course->device_clock_shift_ns - now);
	return time + (uint64_t)course->device_clock_shift_ns;
}

/* Counts are added up; shares and rates by the time that they are of. */
static void add_sample_values(const struct device_sampling_state *course, double *sums,
			      uint64_t of_ns, uint64_t ns)
{
	const struct cuda_metric_set *set = course->metric_set;

	for (uint32_t i = 0; i < set->count; i++) {
		if (!set->is_ratio_by_metric[i])
			sums[i] += course->values[i];
		else if (of_ns + ns != 0)
			sums[i] +=
				(course->values[i] - sums[i]) * (double)ns / (double)(of_ns + ns);
	}
}

static void emit_interval_sample(struct device_sampling_state *course)
{
	if (course->unreported_ns == 0)
		return;
	device_get_sink()->counting->device_sample_taken(
		course->agent, course->unreported_values, course->metric_set->count,
		course->unreported_start_ns, course->last_sample_end_ns);
	memset(course->unreported_values, 0, course->metric_set->count * sizeof(double));
	course->unreported_ns = 0;
}

static void add_decoded_sample(struct device_sampling_state *course, size_t index)
{
	PROFILER_DECLARE_ARGS(sample_info, info, end);
	uint64_t now = device_get_sink()->now(), start, end;

	info.object = course->object;
	info.data = course->counter_data;
	info.bytes = course->counter_data_bytes;
	info.index = index;
	if (profiler.PmSamplingCounterDataGetSampleInfo(&info) != CUPTI_SUCCESS)
		return;
	end = convert_to_kymo_clock(course, info.end, now);
	start = end - (info.end - info.start);
	if (course->seen++ == 0) { /* since the configuration */
		course->last_sample_end_ns = end;
		return;
	}
	if (cuda_metric_set_evaluate(course->metric_set, PROFILER_OF_SAMPLES, course->counter_data,
				     course->counter_data_bytes, index,
				     course->values) != CUPTI_SUCCESS) {
		device_get_sink()->counting->device_samples_lost(course->agent, 1);
		return;
	}
	if (start > course->last_sample_end_ns + course->hardware_interval_ns)
		device_get_sink()->counting->device_samples_lost(
			course->agent,
			(start - course->last_sample_end_ns) / course->hardware_interval_ns);
	add_sample_values(course, course->total_values, course->total_sampled_ns, end - start);
	course->total_sampled_ns += end - start;
	if (course->report_interval_ns != 0) {
		if (course->unreported_ns == 0)
			course->unreported_start_ns = start;
		add_sample_values(course, course->unreported_values, course->unreported_ns,
				  end - start);
		course->unreported_ns += end - start;
	}
	course->last_sample_end_ns = end;
	if (course->report_interval_ns != 0 &&
	    course->unreported_ns + course->hardware_interval_ns / 2 >= course->report_interval_ns)
		emit_interval_sample(course);
}

static void clear_counter_data_image(const struct device_sampling_state *course)
{
	PROFILER_DECLARE_ARGS(data_initialize, initialize, data);

	initialize.object = course->object;
	initialize.bytes = course->counter_data_bytes;
	initialize.data = course->counter_data;
	profiler.PmSamplingCounterDataImageInitialize(&initialize);
}

/* Everything that the hardware has; with the lock. A full image stops it half way. */
static void decode_hardware_samples(struct device_sampling_state *course)
{
	bool is_full = true;

	while (is_full) {
		PROFILER_DECLARE_ARGS(samples_decode, decoded, overflow);
		PROFILER_DECLARE_ARGS(samples_count, count, completed);
		int result;

		decoded.object = course->object;
		decoded.data = course->counter_data;
		count.data = course->counter_data;
		decoded.bytes = count.bytes = course->counter_data_bytes;
		result = profiler.PmSamplingDecodeData(&decoded);
		is_full = result == CUPTI_SUCCESS &&
			  decoded.why_stopped == PROFILER_DECODE_STOPPED_IMAGE_FULL;
		if (result != CUPTI_SUCCESS || decoded.overflow != 0)
			device_get_sink()->counting->device_samples_lost(course->agent, 1);
		if (profiler.PmSamplingGetCounterDataInfo(&count) != CUPTI_SUCCESS)
			return;
		for (size_t i = 0; i < count.completed; i++)
			add_decoded_sample(course, i);
		clear_counter_data_image(course);
		if (count.completed == 0)
			return;
	}
}

static void free_device_sampling(struct device_sampling_state *course)
{
	PROFILER_DECLARE_ARGS(object, disable, object);

	if (course->object != NULL) {
		disable.object = course->object;
		profiler.PmSamplingDisable(&disable);
	}
	free(course->counter_data);
	free(course->values);
	free(course->total_values);
	free(course->unreported_values);
	memset((void *)course, 0, sizeof(*course));
}

static void stop_sampling_and_emit_rest(struct device_sampling_state *course)
{
	PROFILER_DECLARE_ARGS(object, stop, object);

	stop.object = course->object;
	profiler.PmSamplingStop(&stop);
	decode_hardware_samples(course);
	emit_interval_sample(course);
}

static void *run_sampling_thread(void *data)
{
	struct device_sampling_state *course = data;
	uint64_t period = course->report_interval_ns > DECODE_PERIOD_MIN_NS
				  ? course->report_interval_ns
				  : DECODE_PERIOD_MIN_NS;
	uint64_t next = read_clock_ns(CLOCK_MONOTONIC) + period;

	pthread_setname_np(pthread_self(), "kymo-counting");
	device_get_sink()->exclude_calling_thread();
	cuda_thread_in_kymo_call_flag = true;
	if (period > SAMPLE_INTERVAL_MAX_NS)
		period = SAMPLE_INTERVAL_MAX_NS;
	for (;; next += period) {
		struct timespec until = {(time_t)(next / 1000000000u), (long)(next % 1000000000u)};

		if (sem_clockwait(&course->ends, CLOCK_MONOTONIC, &until) == 0)
			break;
		pthread_mutex_lock(&course->lock);
		decode_hardware_samples(course);
		pthread_mutex_unlock(&course->lock);
	}
	if (!course->is_stopped_by_own_thread)
		return NULL;
	pthread_mutex_lock(&course->lock);
	stop_sampling_and_emit_rest(course);
	pthread_mutex_unlock(&course->lock);
	pthread_mutex_lock(&device_samplings_lock);
	free_device_sampling(course);
	pthread_mutex_unlock(&device_samplings_lock);
	return NULL;
}

static bool start_sampling_thread(struct device_sampling_state *course)
{
	const struct device_sink *sink = device_get_sink();
	sigset_t all, before;

	sigfillset(&all);
	sink->tool_thread_starting();
	pthread_sigmask(SIG_SETMASK, &all, &before);
	course->has_decoder_thread =
		pthread_create(&course->decoder_thread, NULL, run_sampling_thread, course) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	sink->tool_thread_started();
	return course->has_decoder_thread;
}

static enum counting_status allocate_counter_data_image(struct device_sampling_state *course,
							struct counting_problem *problem)
{
	PROFILER_DECLARE_ARGS(samples_data_size, size, bytes);
	uint32_t count = course->metric_set->count;
	uint64_t samples = 4 * DECODE_PERIOD_MIN_NS / course->hardware_interval_ns;
	int result;

	size.object = course->object;
	size.names = course->metric_set->names;
	size.count = count;
	size.samples_max = samples < COUNTER_DATA_IMAGE_SAMPLES_MIN ? COUNTER_DATA_IMAGE_SAMPLES_MIN
								    : (uint32_t)samples;
	result = profiler.PmSamplingGetCounterDataSize(&size);
	if (result != CUPTI_SUCCESS)
		return cuda_profiler_result_to_status(result, "asking for the size of samples",
						      problem);
	course->counter_data_bytes = size.bytes;
	course->counter_data = calloc(1, size.bytes + 1);
	course->values = calloc(count + 1, sizeof(double));
	course->total_values = calloc(count + 1, sizeof(double));
	course->unreported_values = calloc(count + 1, sizeof(double));
	if (course->counter_data == NULL || course->values == NULL ||
	    course->total_values == NULL || course->unreported_values == NULL)
		return COUNTING_NO_MEMORY;
	clear_counter_data_image(course);
	return COUNTING_OK;
}

static enum counting_status enable_pm_sampling(struct device_sampling_state *course,
					       uint32_t ordinal, struct counting_problem *problem)
{
	PROFILER_DECLARE_ARGS(samples_enable, enable, object);
	PROFILER_DECLARE_ARGS(samples_config, config, append);
	const struct cuda_profiler_config *configured =
		&course->metric_set->configs_by_profiler[PROFILER_OF_SAMPLES];
	int result;

	cuda_profiler_initialize_once();
	enable.device = ordinal;
	result = profiler.PmSamplingEnable(&enable);
	if (result != CUPTI_SUCCESS)
		return cuda_profiler_result_to_status(result, "beginning to sample the device",
						      problem);
	course->object = config.object = enable.object;
	config.config_bytes = configured->config_bytes;
	config.config = configured->config;
	config.buffer_bytes = HARDWARE_SAMPLE_BUFFER_BYTES;
	config.interval = course->hardware_interval_ns;
	config.trigger = PROFILER_TRIGGER_TIME_INTERVAL;
	config.append = PROFILER_KEEP_OLDEST;
	result = profiler.PmSamplingSetConfig(&config);
	return cuda_profiler_result_to_status(result, "configuring samples of the device", problem);
}

static enum counting_status start_device_sampling(struct device_sampling_state *course,
						  uint32_t ordinal,
						  struct counting_problem *problem)
{
	PROFILER_DECLARE_ARGS(object, start, object);
	enum counting_status status = enable_pm_sampling(course, ordinal, problem);

	if (status == COUNTING_OK)
		status = allocate_counter_data_image(course, problem);
	if (status != COUNTING_OK)
		return status;
	start.object = course->object;
	status = cuda_profiler_result_to_status(profiler.PmSamplingStart(&start),
						"sampling the device", problem);
	course->started = course->last_sample_end_ns = device_get_sink()->now();
	if (status == COUNTING_OK && !start_sampling_thread(course)) {
		snprintf(problem->text, sizeof(problem->text),
			 "cannot start a thread for the samples");
		status = COUNTING_FAILED;
	}
	return status;
}

static uint64_t clamp_u64(uint64_t value, uint64_t least, uint64_t most)
{
	return value < least ? least : value > most ? most : value;
}

static enum counting_status allocate_and_start_sampling(device_handle agent, uint32_t ordinal,
							struct cuda_metric_set *set,
							uint64_t interval_ns,
							struct counting_problem *problem)
{
	struct device_sampling_state *course = find_device_sampling(agent) == NULL
						       ? find_device_sampling(DEVICE_HANDLE_NONE)
						       : NULL;
	enum counting_status status;

	if (course == NULL) {
		snprintf(problem->text, sizeof(problem->text),
			 "another context counts on this device over time");
		return COUNTING_BUSY;
	}
	memset((void *)course, 0, sizeof(*course));
	course->agent = agent;
	course->metric_set = set;
	course->report_interval_ns =
		interval_ns != 0 ? clamp_u64(interval_ns, SAMPLE_INTERVAL_MIN_NS, UINT64_MAX) : 0;
	course->hardware_interval_ns =
		clamp_u64(interval_ns != 0 ? interval_ns : SAMPLE_INTERVAL_DEFAULT_NS,
			  SAMPLE_INTERVAL_MIN_NS, SAMPLE_INTERVAL_MAX_NS);
	pthread_mutex_init(&course->lock, NULL);
	sem_init(&course->ends, 0, 0);
	status = start_device_sampling(course, ordinal, problem);
	if (status != COUNTING_OK)
		free_device_sampling(course);
	return status;
}

enum counting_status cuda_device_counting_start(device_handle agent, void *given,
						uint64_t interval_ns,
						struct counting_problem *problem)
{
	struct cuda_metric_set *set = given;
	uint32_t ordinal;
	enum counting_status status;
	bool outer = cuda_thread_in_kymo_call_flag;

	problem->text[0] = '\0';
	if (!cuda_get_agent_ordinal(agent, &ordinal)) {
		snprintf(problem->text, sizeof(problem->text), "the CUDA driver is not up yet");
		cuda_set_counting_awaits_driver();
		return COUNTING_NOT_READY;
	}
	if (set->configs_by_profiler[PROFILER_OF_SAMPLES].config == NULL) {
		snprintf(problem->text, sizeof(problem->text),
			 "these metrics count single kernels only");
		return COUNTING_NOT_SUPPORTED;
	}
	cuda_thread_in_kymo_call_flag = true;
	pthread_mutex_lock(&device_samplings_lock);
	status = allocate_and_start_sampling(agent, ordinal, set, interval_ns, problem);
	pthread_mutex_unlock(&device_samplings_lock);
	cuda_thread_in_kymo_call_flag = outer;
	return status;
}

enum counting_status cuda_device_counting_read(device_handle agent, double *values, size_t count,
					       uint64_t *time, struct counting_problem *problem)
{
	struct device_sampling_state *course;
	enum counting_status status = COUNTING_FAILED;
	bool outer = cuda_thread_in_kymo_call_flag;

	problem->text[0] = '\0';
	cuda_thread_in_kymo_call_flag = true;
	pthread_mutex_lock(&device_samplings_lock);
	course = agent != DEVICE_HANDLE_NONE ? find_device_sampling(agent) : NULL;
	if (course != NULL && course->metric_set->count == count) {
		pthread_mutex_lock(&course->lock);
		if (course->report_interval_ns == 0) /* else the thread does, which tells samples */
			decode_hardware_samples(course);
		memcpy(values, course->total_values, count * sizeof(double));
		*time = course->last_sample_end_ns;
		pthread_mutex_unlock(&course->lock);
		status = COUNTING_OK;
	} else {
		snprintf(problem->text, sizeof(problem->text), "nothing is counted over time");
	}
	pthread_mutex_unlock(&device_samplings_lock);
	cuda_thread_in_kymo_call_flag = outer;
	return status;
}

void cuda_device_counting_stop(device_handle agent)
{
	struct device_sampling_state *course;
	bool outer = cuda_thread_in_kymo_call_flag;

	cuda_thread_in_kymo_call_flag = true;
	pthread_mutex_lock(&device_samplings_lock);
	course = agent != DEVICE_HANDLE_NONE ? find_device_sampling(agent) : NULL;
	if (course != NULL && course->has_decoder_thread) {
		course->is_stopped_by_own_thread =
			pthread_equal(course->decoder_thread, pthread_self()) != 0;
		if (course->is_stopped_by_own_thread)
			pthread_detach(course->decoder_thread);
		sem_post(&course->ends);
	}
	pthread_mutex_unlock(&device_samplings_lock);
	if (course != NULL && !course->is_stopped_by_own_thread) {
		if (course->has_decoder_thread)
			pthread_join(course->decoder_thread, NULL);
		pthread_mutex_lock(&course->lock);
		stop_sampling_and_emit_rest(course);
		pthread_mutex_unlock(&course->lock);
		pthread_mutex_lock(&device_samplings_lock);
		free_device_sampling(course);
		pthread_mutex_unlock(&device_samplings_lock);
	}
	cuda_thread_in_kymo_call_flag = outer;
}

void cuda_device_counting_stop_all(void)
{
	for (unsigned i = 0; i < DEVICE_SAMPLINGS_MAX; i++) {
		device_handle agent;

		pthread_mutex_lock(&device_samplings_lock);
		agent = device_sampling_states[i].agent;
		pthread_mutex_unlock(&device_samplings_lock);
		if (agent != DEVICE_HANDLE_NONE)
			cuda_device_counting_stop(agent);
	}
}

void cuda_device_counting_reset_forked(void)
{
	memset((void *)device_sampling_states, 0, sizeof(device_sampling_states));
	pthread_mutex_init(&device_samplings_lock, NULL);
}
