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

#define COURSES_MAX      64
#define INTERVAL_DEFAULT 1000000u
#define INTERVAL_MIN     50000u    /* faster than samples can be decoded */
#define INTERVAL_MAX     20000000u /* longer ones are added up */
#define PERIOD_MIN       10000000u
#define BUFFER_BYTES     ((size_t)64 << 20)
#define SAMPLES_MIN      64u
#define FAR              3600000000000 /* of clocks from each other */

struct course {
	device_handle agent; /* DEVICE_NONE: free */
	struct cuda_set *set;
	void *object;
	uint8_t *data;
	size_t data_bytes;
	uint64_t hardware_ns, interval_ns; /* interval 0: nobody wants samples */
	double *values;                    /* of a sample */
	double *total, *part;              /* since the start, since the last that was told */
	uint64_t total_ns, part_ns, part_start, last_end;
	uint64_t started; /* our clock */
	int64_t shift;    /* of the device's clock to ours */
	uint64_t seen;
	pthread_t thread;
	sem_t ends;
	bool has_thread;
	_Atomic bool is_its_own_end;
	pthread_mutex_t lock;
};

static struct course courses[COURSES_MAX];
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

static struct course *find(device_handle agent)
{
	for (unsigned i = 0; i < COURSES_MAX; i++) {
		if (courses[i].agent == agent)
			return &courses[i];
	}
	return NULL;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Either clock may be theirs: the real-time clock, or the one that CUPTI's records were given. */
static uint64_t to_our_clock(struct course *course, uint64_t time, uint64_t now)
{
	if (course->seen == 0) {
		int64_t apart = (int64_t)(now - time);

		course->shift =
			apart > FAR || apart < -FAR ? (int64_t)(now - clock_ns(CLOCK_REALTIME)) : 0;
	}
	if ((int64_t)(time + (uint64_t)course->shift - now) > 0)
		course->shift -= (int64_t)(time + (uint64_t)course->shift - now);
	return time + (uint64_t)course->shift;
}

/* Counts are added up; shares and rates by the time that they are of. */
static void add(const struct course *course, double *sums, uint64_t of_ns, uint64_t ns)
{
	const struct cuda_set *set = course->set;

	for (uint32_t i = 0; i < set->count; i++) {
		if (!set->is_ratio[i])
			sums[i] += course->values[i];
		else if (of_ns + ns != 0)
			sums[i] +=
				(course->values[i] - sums[i]) * (double)ns / (double)(of_ns + ns);
	}
}

static void tell_part(struct course *course)
{
	if (course->part_ns == 0)
		return;
	device_sink()->counting->device_sample(course->agent, course->part, course->set->count,
					       course->part_start, course->last_end);
	memset(course->part, 0, course->set->count * sizeof(double));
	course->part_ns = 0;
}

static void take_sample(struct course *course, size_t index)
{
	PROFILER_PARAMETERS(sample_info, info, end);
	uint64_t now = device_sink()->now(), start, end;

	info.object = course->object;
	info.data = course->data;
	info.bytes = course->data_bytes;
	info.index = index;
	if (profiler.PmSamplingCounterDataGetSampleInfo(&info) != CUPTI_SUCCESS)
		return;
	end = to_our_clock(course, info.end, now);
	start = end - (info.end - info.start);
	if (course->seen++ == 0) { /* since the configuration */
		course->last_end = end;
		return;
	}
	if (cuda_set_evaluate(course->set, PROFILER_OF_SAMPLES, course->data, course->data_bytes,
			      index, course->values) != CUPTI_SUCCESS) {
		device_sink()->counting->device_samples_lost(course->agent, 1);
		return;
	}
	if (start > course->last_end + course->hardware_ns)
		device_sink()->counting->device_samples_lost(
			course->agent, (start - course->last_end) / course->hardware_ns);
	add(course, course->total, course->total_ns, end - start);
	course->total_ns += end - start;
	if (course->interval_ns != 0) {
		if (course->part_ns == 0)
			course->part_start = start;
		add(course, course->part, course->part_ns, end - start);
		course->part_ns += end - start;
	}
	course->last_end = end;
	if (course->interval_ns != 0 &&
	    course->part_ns + course->hardware_ns / 2 >= course->interval_ns)
		tell_part(course);
}

static void clear_data(const struct course *course)
{
	PROFILER_PARAMETERS(data_initialize, initialize, data);

	initialize.object = course->object;
	initialize.bytes = course->data_bytes;
	initialize.data = course->data;
	profiler.PmSamplingCounterDataImageInitialize(&initialize);
}

/* Everything that the hardware has; with the lock. A full image stops it half way. */
static void decode(struct course *course)
{
	bool is_full = true;

	while (is_full) {
		PROFILER_PARAMETERS(samples_decode, decoded, overflow);
		PROFILER_PARAMETERS(samples_count, count, completed);
		int result;

		decoded.object = course->object;
		decoded.data = course->data;
		count.data = course->data;
		decoded.bytes = count.bytes = course->data_bytes;
		result = profiler.PmSamplingDecodeData(&decoded);
		is_full = result == CUPTI_SUCCESS && decoded.why_stopped == PROFILER_IMAGE_FULL;
		if (result != CUPTI_SUCCESS || decoded.overflow != 0)
			device_sink()->counting->device_samples_lost(course->agent, 1);
		if (profiler.PmSamplingGetCounterDataInfo(&count) != CUPTI_SUCCESS)
			return;
		for (size_t i = 0; i < count.completed; i++)
			take_sample(course, i);
		clear_data(course);
		if (count.completed == 0)
			return;
	}
}

static void clear(struct course *course)
{
	PROFILER_PARAMETERS(object, disable, object);

	if (course->object != NULL) {
		disable.object = course->object;
		profiler.PmSamplingDisable(&disable);
	}
	free(course->data);
	free(course->values);
	free(course->total);
	free(course->part);
	memset((void *)course, 0, sizeof(*course));
}

static void stop_hardware(struct course *course)
{
	PROFILER_PARAMETERS(object, stop, object);

	stop.object = course->object;
	profiler.PmSamplingStop(&stop);
	decode(course);
	tell_part(course);
}

static void *run(void *data)
{
	struct course *course = data;
	uint64_t period = course->interval_ns > PERIOD_MIN ? course->interval_ns : PERIOD_MIN;
	uint64_t next = clock_ns(CLOCK_MONOTONIC) + period;

	pthread_setname_np(pthread_self(), "kymo-counting");
	device_sink()->own_thread();
	cuda_own_call = true;
	if (period > INTERVAL_MAX)
		period = INTERVAL_MAX;
	for (;; next += period) {
		struct timespec until = {(time_t)(next / 1000000000u), (long)(next % 1000000000u)};

		if (sem_clockwait(&course->ends, CLOCK_MONOTONIC, &until) == 0)
			break;
		pthread_mutex_lock(&course->lock);
		decode(course);
		pthread_mutex_unlock(&course->lock);
	}
	if (!course->is_its_own_end)
		return NULL;
	pthread_mutex_lock(&course->lock);
	stop_hardware(course);
	pthread_mutex_unlock(&course->lock);
	pthread_mutex_lock(&making);
	clear(course);
	pthread_mutex_unlock(&making);
	return NULL;
}

static bool start_thread(struct course *course)
{
	const struct device_sink *sink = device_sink();
	sigset_t all, before;

	sigfillset(&all);
	sink->thread_starting();
	pthread_sigmask(SIG_SETMASK, &all, &before);
	course->has_thread = pthread_create(&course->thread, NULL, run, course) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	sink->thread_started();
	return course->has_thread;
}

static enum counting_status make_room(struct course *course, struct counting_problem *problem)
{
	PROFILER_PARAMETERS(samples_data_size, size, bytes);
	uint32_t count = course->set->count;
	uint64_t samples = 4 * PERIOD_MIN / course->hardware_ns;
	int result;

	size.object = course->object;
	size.names = course->set->names;
	size.count = count;
	size.samples_max = samples < SAMPLES_MIN ? SAMPLES_MIN : (uint32_t)samples;
	result = profiler.PmSamplingGetCounterDataSize(&size);
	if (result != CUPTI_SUCCESS)
		return cuda_profiler_status(result, "asking for the size of samples", problem);
	course->data_bytes = size.bytes;
	course->data = calloc(1, size.bytes + 1);
	course->values = calloc(count + 1, sizeof(double));
	course->total = calloc(count + 1, sizeof(double));
	course->part = calloc(count + 1, sizeof(double));
	if (course->data == NULL || course->values == NULL || course->total == NULL ||
	    course->part == NULL)
		return COUNTING_NO_MEMORY;
	clear_data(course);
	return COUNTING_OK;
}

static enum counting_status enable(struct course *course, uint32_t ordinal,
				   struct counting_problem *problem)
{
	PROFILER_PARAMETERS(samples_enable, enable, object);
	PROFILER_PARAMETERS(samples_config, config, append);
	const struct cuda_configured *configured = &course->set->of[PROFILER_OF_SAMPLES];
	int result;

	cuda_profiler_begin();
	enable.device = ordinal;
	result = profiler.PmSamplingEnable(&enable);
	if (result != CUPTI_SUCCESS)
		return cuda_profiler_status(result, "beginning to sample the device", problem);
	course->object = config.object = enable.object;
	config.config_bytes = configured->config_bytes;
	config.config = configured->config;
	config.buffer_bytes = BUFFER_BYTES;
	config.interval = course->hardware_ns;
	config.trigger = PROFILER_TRIGGER_NS;
	config.append = PROFILER_KEEP_OLDEST;
	result = profiler.PmSamplingSetConfig(&config);
	return cuda_profiler_status(result, "configuring samples of the device", problem);
}

static enum counting_status begin(struct course *course, uint32_t ordinal,
				  struct counting_problem *problem)
{
	PROFILER_PARAMETERS(object, start, object);
	enum counting_status status = enable(course, ordinal, problem);

	if (status == COUNTING_OK)
		status = make_room(course, problem);
	if (status != COUNTING_OK)
		return status;
	start.object = course->object;
	status = cuda_profiler_status(profiler.PmSamplingStart(&start), "sampling the device",
				      problem);
	course->started = course->last_end = device_sink()->now();
	if (status == COUNTING_OK && !start_thread(course)) {
		snprintf(problem->text, sizeof(problem->text), "no thread for the samples");
		status = COUNTING_FAILED;
	}
	return status;
}

static uint64_t clamp(uint64_t value, uint64_t least, uint64_t most)
{
	return value < least ? least : value > most ? most : value;
}

static enum counting_status start(device_handle agent, uint32_t ordinal, struct cuda_set *set,
				  uint64_t interval_ns, struct counting_problem *problem)
{
	struct course *course = find(agent) == NULL ? find(DEVICE_NONE) : NULL;
	enum counting_status status;

	if (course == NULL) {
		snprintf(problem->text, sizeof(problem->text),
			 "another context counts on this device over time");
		return COUNTING_BUSY;
	}
	memset((void *)course, 0, sizeof(*course));
	course->agent = agent;
	course->set = set;
	course->interval_ns = interval_ns != 0 ? clamp(interval_ns, INTERVAL_MIN, UINT64_MAX) : 0;
	course->hardware_ns = clamp(interval_ns != 0 ? interval_ns : INTERVAL_DEFAULT, INTERVAL_MIN,
				    INTERVAL_MAX);
	pthread_mutex_init(&course->lock, NULL);
	sem_init(&course->ends, 0, 0);
	status = begin(course, ordinal, problem);
	if (status != COUNTING_OK)
		clear(course);
	return status;
}

enum counting_status cuda_device_start(device_handle agent, void *given, uint64_t interval_ns,
				       struct counting_problem *problem)
{
	struct cuda_set *set = given;
	uint32_t ordinal;
	enum counting_status status;
	bool outer = cuda_own_call;

	problem->text[0] = '\0';
	if (!cuda_agent_ordinal(agent, &ordinal)) {
		snprintf(problem->text, sizeof(problem->text), "the CUDA driver is not up yet");
		cuda_await_driver();
		return COUNTING_NOT_READY;
	}
	if (set->of[PROFILER_OF_SAMPLES].config == NULL) {
		snprintf(problem->text, sizeof(problem->text),
			 "these metrics are of single kernels only");
		return COUNTING_NOT_SUPPORTED;
	}
	cuda_own_call = true;
	pthread_mutex_lock(&making);
	status = start(agent, ordinal, set, interval_ns, problem);
	pthread_mutex_unlock(&making);
	cuda_own_call = outer;
	return status;
}

enum counting_status cuda_device_read(device_handle agent, double *values, size_t count,
				      uint64_t *time, struct counting_problem *problem)
{
	struct course *course;
	enum counting_status status = COUNTING_FAILED;
	bool outer = cuda_own_call;

	problem->text[0] = '\0';
	cuda_own_call = true;
	pthread_mutex_lock(&making);
	course = agent != DEVICE_NONE ? find(agent) : NULL;
	if (course != NULL && course->set->count == count) {
		pthread_mutex_lock(&course->lock);
		if (course->interval_ns == 0) /* else the thread does, which tells samples */
			decode(course);
		memcpy(values, course->total, count * sizeof(double));
		*time = course->last_end;
		pthread_mutex_unlock(&course->lock);
		status = COUNTING_OK;
	} else {
		snprintf(problem->text, sizeof(problem->text), "nothing is counted over time");
	}
	pthread_mutex_unlock(&making);
	cuda_own_call = outer;
	return status;
}

void cuda_device_stop(device_handle agent)
{
	struct course *course;
	bool outer = cuda_own_call;

	cuda_own_call = true;
	pthread_mutex_lock(&making);
	course = agent != DEVICE_NONE ? find(agent) : NULL;
	if (course != NULL && course->has_thread) {
		course->is_its_own_end = pthread_equal(course->thread, pthread_self()) != 0;
		if (course->is_its_own_end)
			pthread_detach(course->thread);
		sem_post(&course->ends);
	}
	pthread_mutex_unlock(&making);
	if (course != NULL && !course->is_its_own_end) {
		if (course->has_thread)
			pthread_join(course->thread, NULL);
		pthread_mutex_lock(&course->lock);
		stop_hardware(course);
		pthread_mutex_unlock(&course->lock);
		pthread_mutex_lock(&making);
		clear(course);
		pthread_mutex_unlock(&making);
	}
	cuda_own_call = outer;
}

void cuda_device_finish(void)
{
	for (unsigned i = 0; i < COURSES_MAX; i++) {
		device_handle agent;

		pthread_mutex_lock(&making);
		agent = courses[i].agent;
		pthread_mutex_unlock(&making);
		if (agent != DEVICE_NONE)
			cuda_device_stop(agent);
	}
}

void cuda_device_forked(void)
{
	memset((void *)courses, 0, sizeof(courses));
	pthread_mutex_init(&making, NULL);
}
