/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What of CUPTI's profilers is needed, declared by ourselves: names and properties of metrics and
 * their values (cupti_profiler_host.h), counting within ranges (cupti_range_profiler.h), sampling
 * of a whole device (cupti_pmsampling.h); CUDA 12.6 and later. Every function takes a struct that
 * begins with its size, up to the end of its last field, which is how versions tell each other.
 */
#ifndef KYMO_DEVICE_CUDA_PROFILER_H
#define KYMO_DEVICE_CUDA_PROFILER_H

#include <stddef.h>
#include <stdint.h>

#define CUPTI_ERROR_NOT_READY                       13
#define CUPTI_ERROR_NOT_INITIALIZED                 15
#define CUPTI_ERROR_HARDWARE_BUSY                   26
#define CUPTI_ERROR_NOT_SUPPORTED                   27
#define CUPTI_ERROR_OUT_OF_MEMORY                   8
#define CUPTI_ERROR_VIRTUAL_NOT_SUPPORTED           33
#define CUPTI_ERROR_INSUFFICIENT_PRIVILEGES         35
#define CUPTI_ERROR_VIRTUAL_INSUFFICIENT_PRIVILEGES 40
#define CUPTI_ERROR_CONFIDENTIAL_NOT_SUPPORTED      41
#define CUPTI_ERROR_INVALID_CHIP_NAME               46

enum profiler_type { PROFILER_OF_RANGES, PROFILER_OF_SAMPLES, PROFILER_TYPE_COUNT };
enum profiler_metric_type {
	PROFILER_METRIC_COUNTER,
	PROFILER_METRIC_RATIO,
	PROFILER_METRIC_THROUGHPUT,
	PROFILER_METRIC_TYPE_COUNT
};
enum profiler_range_mode { PROFILER_AUTO_RANGE = 1, PROFILER_USER_RANGE = 2 };
enum profiler_replay_mode { PROFILER_KERNEL_REPLAY = 2, PROFILER_USER_REPLAY = 3 };
#define PROFILER_TRIGGER_TIME_INTERVAL     1
#define PROFILER_DECODE_STOPPED_IMAGE_FULL 1
#define PROFILER_KEEP_OLDEST               0

#define PROFILER_ARGS_HEAD_FIELDS                                                                  \
	size_t size;                                                                               \
	void *none

struct profiler_args_head { /* Initialize */
	PROFILER_ARGS_HEAD_FIELDS;
};
struct profiler_args_chip_name { /* Device_GetChipName */
	PROFILER_ARGS_HEAD_FIELDS;
	size_t device;
	const char *name;
};
struct profiler_args_host_initialize {
	PROFILER_ARGS_HEAD_FIELDS;
	int type;
	const char *chip;
	const uint8_t *availability;
	void *host;
};
struct profiler_args_host { /* Host_Deinitialize */
	PROFILER_ARGS_HEAD_FIELDS;
	void *host;
};
struct profiler_args_base_metrics {
	PROFILER_ARGS_HEAD_FIELDS;
	void *host;
	int type;
	const char **names;
	size_t count;
};
struct profiler_args_properties {
	PROFILER_ARGS_HEAD_FIELDS;
	void *host;
	const char *metric;
	const char *description, *unit, *dimension;
	int type;
};
struct profiler_args_add_metrics {
	PROFILER_ARGS_HEAD_FIELDS;
	void *host;
	const char **names;
	size_t count;
};
struct profiler_args_config_size {
	PROFILER_ARGS_HEAD_FIELDS;
	void *host;
	size_t bytes;
};
struct profiler_args_config_image {
	PROFILER_ARGS_HEAD_FIELDS;
	void *host;
	size_t bytes;
	uint8_t *image;
};
struct profiler_args_passes {
	PROFILER_ARGS_HEAD_FIELDS;
	size_t bytes;
	uint8_t *image;
	size_t passes;
};
struct profiler_args_evaluate {
	PROFILER_ARGS_HEAD_FIELDS;
	void *host;
	const uint8_t *image;
	size_t bytes, index;
	const char **names;
	size_t count;
	double *values;
};

struct profiler_args_range_enable {
	PROFILER_ARGS_HEAD_FIELDS;
	void *context, *object;
};
struct profiler_args_object { /* Disable, Start, PopRange; all of PM sampling's like it */
	PROFILER_ARGS_HEAD_FIELDS;
	void *object;
};
struct profiler_args_range_config {
	PROFILER_ARGS_HEAD_FIELDS;
	void *object;
	size_t config_bytes;
	const uint8_t *config;
	size_t data_bytes;
	uint8_t *data;
	int range, replay;
	size_t ranges_max;
	uint16_t levels, level_min;
	size_t pass;
	uint16_t level;
};
struct profiler_args_range_stop {
	PROFILER_ARGS_HEAD_FIELDS;
	void *object;
	size_t pass, level;
	uint8_t all_submitted;
};
struct profiler_args_range_push {
	PROFILER_ARGS_HEAD_FIELDS;
	void *object;
	const char *name;
};
struct profiler_args_range_decode {
	PROFILER_ARGS_HEAD_FIELDS;
	void *object;
	size_t dropped;
};
struct profiler_args_range_data_size {
	PROFILER_ARGS_HEAD_FIELDS;
	void *object;
	const char **names;
	size_t count, ranges_max;
	uint32_t nodes_max;
	size_t bytes;
};
struct profiler_args_data_initialize {
	PROFILER_ARGS_HEAD_FIELDS;
	void *object;
	size_t bytes;
	uint8_t *data;
};
struct profiler_args_range_count {
	PROFILER_ARGS_HEAD_FIELDS;
	const uint8_t *data;
	size_t bytes, ranges;
};
struct profiler_args_range_info {
	PROFILER_ARGS_HEAD_FIELDS;
	const uint8_t *data;
	size_t bytes, index;
	const char *delimiter, *name;
};

struct profiler_args_samples_enable {
	PROFILER_ARGS_HEAD_FIELDS;
	size_t device;
	void *object;
};
struct profiler_args_samples_config {
	PROFILER_ARGS_HEAD_FIELDS;
	void *object;
	size_t config_bytes;
	const uint8_t *config;
	size_t buffer_bytes;
	uint64_t interval;
	int trigger, append;
};
struct profiler_args_samples_decode {
	PROFILER_ARGS_HEAD_FIELDS;
	void *object;
	uint8_t *data;
	size_t bytes;
	int why_stopped;
	uint8_t overflow;
};
struct profiler_args_samples_data_size {
	PROFILER_ARGS_HEAD_FIELDS;
	void *object;
	const char **names;
	size_t count;
	uint32_t samples_max;
	size_t bytes;
};
struct profiler_args_samples_count {
	PROFILER_ARGS_HEAD_FIELDS;
	const uint8_t *data;
	size_t bytes, total, populated, completed;
};
struct profiler_args_sample_info {
	PROFILER_ARGS_HEAD_FIELDS;
	void *object;
	const uint8_t *data;
	size_t bytes, index;
	uint64_t start, end;
};

#define PROFILER_CHECK_LAYOUT(type, field, offset)                                                 \
	_Static_assert(offsetof(struct profiler_args_##type, field) == (offset), "layout of "      \
										 "CUPTI's " #type)
PROFILER_CHECK_LAYOUT(host_initialize, host, 40);
PROFILER_CHECK_LAYOUT(properties, type, 56);
PROFILER_CHECK_LAYOUT(evaluate, values, 64);
PROFILER_CHECK_LAYOUT(range_config, range, 56);
PROFILER_CHECK_LAYOUT(range_config, level, 88);
PROFILER_CHECK_LAYOUT(range_stop, all_submitted, 40);
PROFILER_CHECK_LAYOUT(range_data_size, bytes, 56);
PROFILER_CHECK_LAYOUT(range_info, name, 48);
PROFILER_CHECK_LAYOUT(samples_config, append, 60);
PROFILER_CHECK_LAYOUT(samples_decode, overflow, 44);
PROFILER_CHECK_LAYOUT(samples_data_size, bytes, 48);
PROFILER_CHECK_LAYOUT(sample_info, end, 56);
#undef PROFILER_CHECK_LAYOUT

/* A struct of CUPTI's, all 0 but for its size. */
#define PROFILER_DECLARE_ARGS(type, variable, last)                                                \
	struct profiler_args_##type variable = {                                                   \
		.size = offsetof(struct profiler_args_##type, last) +                              \
			sizeof(((struct profiler_args_##type *)NULL)->last)}

/* Names; each is cupti<name>(struct profiler_args_... *). */
#define PROFILER_FUNCTIONS(X)                                                                      \
	X(DeviceGetChipName)                                                                       \
	X(ProfilerInitialize)                                                                      \
	X(ProfilerHostInitialize)                                                                  \
	X(ProfilerHostDeinitialize)                                                                \
	X(ProfilerHostGetBaseMetrics)                                                              \
	X(ProfilerHostGetMetricProperties)                                                         \
	X(ProfilerHostConfigAddMetrics)                                                            \
	X(ProfilerHostGetConfigImageSize)                                                          \
	X(ProfilerHostGetConfigImage)                                                              \
	X(ProfilerHostGetNumOfPasses)                                                              \
	X(ProfilerHostEvaluateToGpuValues)                                                         \
	X(RangeProfilerEnable)                                                                     \
	X(RangeProfilerDisable)                                                                    \
	X(RangeProfilerSetConfig)                                                                  \
	X(RangeProfilerStart)                                                                      \
	X(RangeProfilerStop)                                                                       \
	X(RangeProfilerPushRange)                                                                  \
	X(RangeProfilerPopRange)                                                                   \
	X(RangeProfilerDecodeData)                                                                 \
	X(RangeProfilerGetCounterDataSize)                                                         \
	X(RangeProfilerCounterDataImageInitialize)                                                 \
	X(RangeProfilerGetCounterDataInfo)                                                         \
	X(RangeProfilerCounterDataGetRangeInfo)                                                    \
	X(PmSamplingEnable)                                                                        \
	X(PmSamplingDisable)                                                                       \
	X(PmSamplingSetConfig)                                                                     \
	X(PmSamplingStart)                                                                         \
	X(PmSamplingStop)                                                                          \
	X(PmSamplingDecodeData)                                                                    \
	X(PmSamplingGetCounterDataSize)                                                            \
	X(PmSamplingCounterDataImageInitialize)                                                    \
	X(PmSamplingGetCounterDataInfo)                                                            \
	X(PmSamplingCounterDataGetSampleInfo)

struct profiler_api {
#define X(name) int (*name)(void *parameters);
	PROFILER_FUNCTIONS(X)
#undef X
};

#endif
