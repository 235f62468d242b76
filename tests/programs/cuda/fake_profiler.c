/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See fake_profiler.h.
 */
#include "fake_profiler.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/cuda/cupti.h"
#include "device/cuda/profiler.h"

#define API        __attribute__((visibility("default")))
#define RANGES_MAX 64
#define INVALID    1
#define BUSY       26
#define NOT_READY  600
#define SAMPLE_NS  1000000u

/* A range is open for twice as long as its kernel runs (cuEventElapsedTime), at 2 GHz. */
#define RANGE_NS     500000.0
#define BASE_METRICS 3
static const char *const metrics[PROFILER_METRIC_TYPE_COUNT][BASE_METRICS + 1] = {
	{"fake__kernels", "fake__cycles_elapsed", "gpu__time_duration"},
	{"fake__share"},
	{"fake__throughput"}};

struct host {
	int type;
	size_t count;
};

/* What is behind an image of data. */
struct image {
	uint32_t magic, ranges;
	struct {
		char name[16];
		uint64_t kernels, start, end;
	} range[RANGES_MAX];
};
#define MAGIC 0x6b796d6fu

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t kernels, waiting;
static const void *waiting_stream;
/* Calls within a range that could have been before it or after it. */
API _Atomic int fake_profiler_delays;
static struct {
	bool is_enabled, is_started, is_open;
	struct image *image;
	struct image collected;
	uint64_t before;
} ranges;
static struct {
	bool is_enabled, is_started;
	uint64_t next, kernels;
} samples;

#define PARAMETERS(type, name, last)                                                               \
	struct profiler_args_##type *name = given;                                                 \
	if (name->size != offsetof(struct profiler_args_##type, last) +                            \
				  sizeof(((struct profiler_args_##type *)NULL)->last) ||           \
	    name->none != NULL)                                                                    \
	return INVALID

void fake_profiler_called(void)
{
	pthread_mutex_lock(&lock);
	if (ranges.is_open && !waiting)
		fake_profiler_delays++;
	pthread_mutex_unlock(&lock);
}

void fake_profiler_kernel(const char *name, const void *stream, int is_recorded)
{
	pthread_mutex_lock(&lock);
	kernels += is_recorded && ranges.is_open ? 108 : 100;
	if (strcmp(name, "waits") == 0) {
		waiting = 1;
		waiting_stream = stream;
	} else if (strcmp(name, "signals") == 0) {
		waiting = 0;
	}
	pthread_mutex_unlock(&lock);
}

/* ---- the driver's events ---- */

API int cuEventCreate(void **event, unsigned flags)
{
	(void)flags;
	fake_profiler_called();
	*event = calloc(1, sizeof(void *));
	return 0;
}

API int cuEventRecord(void *event, void *stream)
{
	*(const void **)event = stream;
	return 0;
}

API int cuEventElapsedTime(float *milliseconds, void *before, void *behind)
{
	fake_profiler_called();
	*milliseconds = 0.25F;
	return before == NULL || behind == NULL;
}

API int cuFuncGetAttribute(int *value, int attribute, const void *function)
{
	fake_profiler_called();
	*value = attribute == 1 ? 256 : 16;
	return function == NULL;
}

API int cuEventQuery(void *event)
{
	int result;

	pthread_mutex_lock(&lock);
	result = waiting && *(const void **)event == waiting_stream ? NOT_READY : 0;
	pthread_mutex_unlock(&lock);
	return result;
}

API int cuEventDestroy_v2(void *event)
{
	free(event);
	return 0;
}

API int cuThreadExchangeStreamCaptureMode(int *mode)
{
	static _Thread_local int current;
	int before = current;

	current = *mode;
	*mode = before;
	return 0;
}

API int cuCtxPushCurrent_v2(void *context)
{
	return context == NULL;
}

API int cuCtxPopCurrent_v2(void **context)
{
	*context = NULL;
	return 0;
}

/* ---- the host's side ---- */

API int cuptiProfilerInitialize(void *given)
{
	PARAMETERS(head, head, none);
	return head->size == 0;
}

API int cuptiDeviceGetChipName(void *given)
{
	PARAMETERS(chip_name, chip, name);
	chip->name = "GH100";
	return 0;
}

API int cuptiProfilerHostInitialize(void *given)
{
	PARAMETERS(host_initialize, initialize, host);
	struct host *host;

	if (strcmp(initialize->chip, "GH100") != 0)
		return 46;
	host = calloc(1, sizeof(*host));
	host->type = initialize->type;
	initialize->host = host;
	return 0;
}

API int cuptiProfilerHostDeinitialize(void *given)
{
	PARAMETERS(host, host, host);
	free(host->host);
	return 0;
}

API int cuptiProfilerHostGetBaseMetrics(void *given)
{
	PARAMETERS(base_metrics, base, count);
	base->names = (const char **)(uintptr_t)metrics[base->type];
	base->count = 0;
	while (metrics[base->type][base->count] != NULL)
		base->count++;
	return 0;
}

API int cuptiProfilerHostGetMetricProperties(void *given)
{
	PARAMETERS(properties, properties, type);
	for (int type = 0; type < PROFILER_METRIC_TYPE_COUNT; type++) {
		for (const char *const *at = metrics[type]; *at != NULL; at++) {
			if (strlen(*at) != strcspn(properties->metric, ".") ||
			    strncmp(properties->metric, *at, strlen(*at)) != 0)
				continue;
			properties->type = type;
			properties->unit = "fake";
			properties->description = "of no device";
			return 0;
		}
	}
	return INVALID;
}

API int cuptiProfilerHostConfigAddMetrics(void *given)
{
	PARAMETERS(add_metrics, add, count);
	((struct host *)add->host)->count += add->count;
	for (size_t i = 0; i < add->count; i++) {
		if (strchr(add->names[i], '.') == NULL)
			return INVALID;
	}
	return 0;
}

API int cuptiProfilerHostGetConfigImageSize(void *given)
{
	PARAMETERS(config_size, size, bytes);
	size->bytes = sizeof(size_t);
	return 0;
}

API int cuptiProfilerHostGetConfigImage(void *given)
{
	PARAMETERS(config_image, image, image);
	memcpy(image->image, &((struct host *)image->host)->count, sizeof(size_t));
	return 0;
}

API int cuptiProfilerHostGetNumOfPasses(void *given)
{
	PARAMETERS(passes, passes, passes);
	memcpy(&passes->passes, passes->image, sizeof(size_t));
	passes->passes = passes->passes > 3 ? 2 : 1;
	return 0;
}

static double value_of(const char *name, double counted)
{
	if (strcmp(name, "fake__kernels.sum.per_second") == 0)
		return counted / (RANGE_NS / 1e9);
	if (strncmp(name, "fake__kernels", 13) == 0)
		return counted;
	if (strncmp(name, "gpu__time_duration", 18) == 0)
		return RANGE_NS;
	return strncmp(name, "fake__cycles_elapsed", 20) == 0 ? RANGE_NS * 2 : 50;
}

API int cuptiProfilerHostEvaluateToGpuValues(void *given)
{
	PARAMETERS(evaluate, evaluate, values);
	const struct image *image = (const void *)evaluate->image;

	if (image->magic != MAGIC || evaluate->index >= image->ranges)
		return INVALID;
	for (size_t i = 0; i < evaluate->count; i++)
		evaluate->values[i] =
			value_of(evaluate->names[i], (double)image->range[evaluate->index].kernels);
	return 0;
}

/* ---- ranges ---- */

static int asked_for(const char *variable)
{
	const char *asked = getenv(variable);

	return asked != NULL ? atoi(asked) : 0;
}

API int cuptiRangeProfilerEnable(void *given)
{
	PARAMETERS(range_enable, enable, object);
	enable->object = &ranges;
	ranges.is_enabled = true;
	return asked_for("FAKE_CUPTI_RANGES") == 35 ? 35 : 0;
}

API int cuptiRangeProfilerDisable(void *given)
{
	PARAMETERS(object, object, object);
	ranges.is_enabled = ranges.is_started = false;
	return object->object != &ranges;
}

API int cuptiRangeProfilerGetCounterDataSize(void *given)
{
	PARAMETERS(range_data_size, size, bytes);
	size->bytes = sizeof(struct image);
	return size->ranges_max > RANGES_MAX || size->nodes_max < size->ranges_max;
}

static int clear_image(uint8_t *data, size_t bytes)
{
	struct image *image = (void *)data;

	if (bytes != sizeof(*image))
		return INVALID;
	memset(image, 0, sizeof(*image));
	image->magic = MAGIC;
	return 0;
}

API int cuptiRangeProfilerCounterDataImageInitialize(void *given)
{
	PARAMETERS(data_initialize, initialize, data);
	return clear_image(initialize->data, initialize->bytes);
}

API int cuptiRangeProfilerSetConfig(void *given)
{
	PARAMETERS(range_config, config, level);
	if (!ranges.is_enabled || ranges.is_started || config->range != PROFILER_USER_RANGE ||
	    config->replay != PROFILER_USER_REPLAY || config->levels != 1 || config->level != 1)
		return INVALID;
	ranges.image = (void *)config->data;
	return 0;
}

API int cuptiRangeProfilerStart(void *given)
{
	PARAMETERS(object, object, object);
	if (asked_for("FAKE_CUPTI_RANGES") == BUSY)
		return BUSY;
	if (ranges.is_started || object->object != &ranges)
		return INVALID;
	ranges.is_started = true;
	clear_image((void *)&ranges.collected, sizeof(ranges.collected));
	return 0;
}

API int cuptiRangeProfilerPushRange(void *given)
{
	PARAMETERS(range_push, push, name);
	if (!ranges.is_started || ranges.is_open || ranges.collected.ranges == RANGES_MAX)
		return INVALID;
	ranges.is_open = true;
	ranges.before = kernels;
	snprintf(ranges.collected.range[ranges.collected.ranges].name, 16, "%s", push->name);
	return 0;
}

API int cuptiRangeProfilerPopRange(void *given)
{
	PARAMETERS(object, object, object);
	if (!ranges.is_open || object->object != &ranges)
		return INVALID;
	ranges.is_open = false;
	ranges.collected.range[ranges.collected.ranges++].kernels = kernels - ranges.before;
	return 0;
}

API int cuptiRangeProfilerStop(void *given)
{
	PARAMETERS(range_stop, stop, all_submitted);
	if (!ranges.is_started || ranges.is_open)
		return INVALID;
	ranges.is_started = false;
	stop->all_submitted = 1;
	return 0;
}

API int cuptiRangeProfilerDecodeData(void *given)
{
	PARAMETERS(range_decode, decode, dropped);
	memcpy(ranges.image, &ranges.collected, sizeof(*ranges.image));
	decode->dropped = 0;
	return 0;
}

API int cuptiRangeProfilerGetCounterDataInfo(void *given)
{
	PARAMETERS(range_count, count, ranges);
	count->ranges = ((const struct image *)(const void *)count->data)->ranges;
	return 0;
}

API int cuptiRangeProfilerCounterDataGetRangeInfo(void *given)
{
	PARAMETERS(range_info, info, name);
	info->name = ((const struct image *)(const void *)info->data)->range[info->index].name;
	return 0;
}

/* ---- samples: one a millisecond; the first has everything before in it ---- */

API int cuptiPmSamplingEnable(void *given)
{
	PARAMETERS(samples_enable, enable, object);
	if (asked_for("FAKE_CUPTI_SAMPLES") != 0)
		return asked_for("FAKE_CUPTI_SAMPLES");
	enable->object = &samples;
	samples.is_enabled = true;
	return 0;
}

API int cuptiPmSamplingDisable(void *given)
{
	PARAMETERS(object, object, object);
	samples.is_enabled = false;
	return object->object != &samples;
}

/* NVIDIA's library crashes then. */
static bool is_gone;

__attribute__((destructor)) static void is_unloaded(void)
{
	is_gone = true;
	if (samples.is_started)
		abort();
}

API int cuptiPmSamplingSetConfig(void *given)
{
	PARAMETERS(samples_config, config, append);
	for (int ms = asked_for("FAKE_CUPTI_SLOW"); ms > 0; ms--) {
		usleep(1000);
		if (is_gone)
			abort();
	}
	samples.kernels = 0;
	return config->trigger != PROFILER_TRIGGER_TIME_INTERVAL;
}

API int cuptiPmSamplingGetCounterDataSize(void *given)
{
	PARAMETERS(samples_data_size, size, bytes);
	size->bytes = sizeof(struct image);
	return 0;
}

API int cuptiPmSamplingCounterDataImageInitialize(void *given)
{
	PARAMETERS(data_initialize, initialize, data);
	return clear_image(initialize->data, initialize->bytes);
}

API int cuptiPmSamplingStart(void *given)
{
	PARAMETERS(object, object, object);
	samples.is_started = true;
	samples.next = fake_now();
	return object->object != &samples;
}

API int cuptiPmSamplingStop(void *given)
{
	PARAMETERS(object, object, object);
	samples.is_started = false;
	return object->object != &samples;
}

API int cuptiPmSamplingDecodeData(void *given)
{
	PARAMETERS(samples_decode, decode, overflow);
	struct image *image = (void *)decode->data;
	uint64_t now = fake_now();

	decode->overflow = 0;
	decode->why_stopped = 2;
	for (; samples.next + SAMPLE_NS <= now; samples.next += SAMPLE_NS) {
		if (image->ranges == 8) {
			decode->why_stopped = PROFILER_DECODE_STOPPED_IMAGE_FULL;
			return 0;
		}
		image->range[image->ranges].start = samples.next;
		image->range[image->ranges].end = samples.next + SAMPLE_NS;
		image->range[image->ranges++].kernels = kernels - samples.kernels;
		samples.kernels = kernels;
	}
	return 0;
}

API int cuptiPmSamplingGetCounterDataInfo(void *given)
{
	PARAMETERS(samples_count, count, completed);
	count->total = 64;
	count->populated = count->completed =
		((const struct image *)(const void *)count->data)->ranges;
	return 0;
}

API int cuptiPmSamplingCounterDataGetSampleInfo(void *given)
{
	PARAMETERS(sample_info, info, end);
	info->start = ((const struct image *)(const void *)info->data)->range[info->index].start;
	info->end = ((const struct image *)(const void *)info->data)->range[info->index].end;
	return 0;
}
