/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Sets of metrics, configured for both profilers where they fit: the range profiler for kernels,
 * PM sampling for the device over time. What needs more than one pass does not fit: a kernel runs
 * once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/counting.h"

#define METRICS_NOT_FITTING_LISTED_MAX 8 /* names of what does not fit */

static const char *rollup_to_suffix(enum counting_rollup rollup)
{
	switch (rollup) {
	case COUNTING_ROLLUP_AVERAGE:
		return ".avg";
	case COUNTING_ROLLUP_MIN:
		return ".min";
	case COUNTING_ROLLUP_MAX:
		return ".max";
	default:
		return ".sum";
	}
}

static void free_profiler_config(struct cuda_profiler_config *one)
{
	PROFILER_DECLARE_ARGS(host, host, host);

	if (one->host != NULL) {
		host.host = one->host;
		profiler.ProfilerHostDeinitialize(&host);
	}
	free(one->config);
	*one = (struct cuda_profiler_config){0};
}

static int create_config_image(struct cuda_profiler_config *one)
{
	PROFILER_DECLARE_ARGS(config_size, size, bytes);
	PROFILER_DECLARE_ARGS(config_image, image, image);
	PROFILER_DECLARE_ARGS(passes, passes, passes);
	int result;

	size.host = image.host = one->host;
	result = profiler.ProfilerHostGetConfigImageSize(&size);
	if (result != CUPTI_SUCCESS)
		return result;
	one->config = calloc(1, size.bytes + 1);
	if (one->config == NULL)
		return CUPTI_ERROR_OUT_OF_MEMORY;
	one->config_bytes = image.bytes = passes.bytes = size.bytes;
	image.image = passes.image = one->config;
	result = profiler.ProfilerHostGetConfigImage(&image);
	if (result == CUPTI_SUCCESS)
		result = profiler.ProfilerHostGetNumOfPasses(&passes);
	one->passes = passes.passes;
	return result;
}

/* The passes that so many of the names take; 0: they cannot be had so. */
static int configure_metrics(const struct cuda_chip *chip, enum profiler_type type,
			     const char **names, size_t count, struct cuda_profiler_config *one)
{
	PROFILER_DECLARE_ARGS(host_initialize, host, host);
	PROFILER_DECLARE_ARGS(add_metrics, add, count);
	int result;

	*one = (struct cuda_profiler_config){0};
	host.type = (int)type;
	host.chip = cuda_chip_get_name(chip);
	result = profiler.ProfilerHostInitialize(&host);
	if (result != CUPTI_SUCCESS)
		return result;
	one->host = add.host = host.host;
	add.names = names;
	add.count = count;
	result = profiler.ProfilerHostConfigAddMetrics(&add);
	if (result == CUPTI_SUCCESS)
		result = create_config_image(one);
	if (result != CUPTI_SUCCESS)
		free_profiler_config(one);
	return result;
}

/* Into one pass. */
static bool config_fits_one_pass(const struct cuda_profiler_config *one)
{
	return one->config != NULL && one->passes == 1;
}

static void append_problem_text(struct counting_problem *problem, const char *text)
{
	size_t used = strlen(problem->text);

	snprintf(problem->text + used, sizeof(problem->text) - used, "%s", text);
}

/* Which ones are too many, going from the first to the last. */
static void append_metrics_not_fitting(const struct cuda_chip *chip,
				       const struct cuda_metric_set *set,
				       struct counting_problem *problem)
{
	const char **fitting = calloc(set->count, sizeof(*fitting));
	size_t count = 0, listed = 0;

	append_problem_text(problem, "one pass of the hardware has no room for");
	for (uint32_t i = 0;
	     fitting != NULL && i < set->count && listed < METRICS_NOT_FITTING_LISTED_MAX; i++) {
		struct cuda_profiler_config one;
		bool has_room;

		fitting[count] = set->names[i];
		configure_metrics(chip, PROFILER_OF_RANGES, fitting, count + 1, &one);
		has_room = config_fits_one_pass(&one);
		free_profiler_config(&one);
		if (has_room) {
			count++;
			continue;
		}
		append_problem_text(problem, listed++ == 0 ? " " : ", ");
		append_problem_text(problem, set->names[i]);
	}
	if (count != 0) {
		append_problem_text(problem, " beside ");
		append_problem_text(problem, fitting[0]);
		append_problem_text(problem, count > 1 ? " and the others" : "");
	}
	free(fitting);
}

static enum counting_status fill_metric_set(struct cuda_chip *chip, struct cuda_metric_set *set,
					    const struct counting_event_request *requests,
					    struct counting_problem *problem)
{
	for (uint32_t i = 0; i < set->count; i++) {
		const struct counting_event_request *request = &requests[i];
		struct cuda_metric metric = {0};
		enum counting_status status = cuda_chip_find_metric(chip, request->event, &metric);
		char *name = NULL;

		if (status != COUNTING_OK) {
			snprintf(problem->text, sizeof(problem->text), "%s %s %s",
				 cuda_chip_get_name(chip),
				 status == COUNTING_NOT_SUPPORTED
					 ? "counts only by changing the kernel's code:"
					 : "has no metric",
				 request->event);
			return status;
		}
		if (request->accumulation_resolution != COUNTING_ACCUMULATE_NONE ||
		    (request->rollup != COUNTING_ROLLUP_NONE && !metric.event.has_rollups)) {
			snprintf(problem->text, sizeof(problem->text),
				 "%s cannot be %s by NVIDIA's devices", request->event,
				 request->accumulation_resolution != COUNTING_ACCUMULATE_NONE
					 ? "accumulated"
					 : "rolled up");
			return COUNTING_NOT_SUPPORTED;
		}
		if (asprintf(&name, "%s%s", request->event,
			     metric.event.has_rollups ? rollup_to_suffix(request->rollup) : "") < 0)
			return COUNTING_NO_MEMORY;
		set->names[i] = name;
		set->is_ratio_by_metric[i] = metric.is_ratio;
		set->time_dependence_by_metric[i] = cuda_metric_get_time_dependence(request->event);
	}
	return COUNTING_OK;
}

/* Configures ranges with their time where it is of use, and fits. */
static int configure_set_for_profiler(const struct cuda_chip *chip, struct cuda_metric_set *set,
				      enum profiler_type type)
{
	struct cuda_profiler_config *one = &set->configs_by_profiler[type];
	uint32_t count = set->count;

	if (type == PROFILER_OF_RANGES) {
		cuda_add_range_time_to_metric_set(set);
		count = cuda_metric_set_get_value_count(set);
	}
	if (count != set->count) {
		configure_metrics(chip, type, set->names, count, one);
		if (config_fits_one_pass(one))
			return CUPTI_SUCCESS;
		free_profiler_config(one);
		cuda_drop_range_time_from_metric_set(set);
	}
	return configure_metrics(chip, type, set->names, set->count, one);
}

static enum counting_status configure_set_for_all_profilers(struct cuda_chip *chip,
							    struct cuda_metric_set *set,
							    uint32_t *ways,
							    struct counting_problem *problem)
{
	static const uint32_t way[] = {COUNTING_BY_DISPATCH, COUNTING_BY_DEVICE};
	int results[PROFILER_TYPE_COUNT];
	bool is_many = false;

	*ways = 0;
	for (unsigned type = 0; type < PROFILER_TYPE_COUNT; type++) {
		results[type] = configure_set_for_profiler(chip, set, type);
		if (results[type] != CUPTI_SUCCESS)
			continue;
		if (config_fits_one_pass(&set->configs_by_profiler[type])) {
			*ways |= way[type];
			continue;
		}
		is_many = true;
		free_profiler_config(&set->configs_by_profiler[type]);
	}
	if (*ways != 0)
		return COUNTING_OK;
	if (is_many) {
		append_metrics_not_fitting(chip, set, problem);
		return COUNTING_DOES_NOT_FIT;
	}
	return cuda_profiler_result_to_status(results[PROFILER_OF_RANGES],
					      "configuring the metrics", problem);
}

enum counting_status cuda_metric_set_create(struct cuda_chip *chip, device_handle agent,
					    const struct counting_event_request *requests,
					    uint32_t count, struct cuda_metric_set **made,
					    uint32_t *ways, struct counting_problem *problem)
{
	struct cuda_metric_set *set = calloc(1, sizeof(*set));
	enum counting_status status = COUNTING_NO_MEMORY;

	problem->text[0] = '\0';
	if (set == NULL)
		return status;
	pthread_mutex_init(&set->lock, NULL);
	set->agent = agent;
	set->names = calloc(count + 1, sizeof(*set->names));
	set->is_ratio_by_metric = calloc(count + 1, sizeof(*set->is_ratio_by_metric));
	set->time_dependence_by_metric = calloc(count + 1, sizeof(*set->time_dependence_by_metric));
	set->range_time_name_index = CUDA_NO_RANGE_TIME;
	if (set->names != NULL && set->is_ratio_by_metric != NULL &&
	    set->time_dependence_by_metric != NULL) {
		set->count = count;
		status = fill_metric_set(chip, set, requests, problem);
	}
	if (status == COUNTING_OK)
		status = configure_set_for_all_profilers(chip, set, ways, problem);
	if (status != COUNTING_OK) {
		cuda_metric_set_free(set);
		return status;
	}
	*made = set;
	return COUNTING_OK;
}

void cuda_metric_set_free(void *given)
{
	struct cuda_metric_set *set = given;

	cuda_kernel_counting_drop_metric_set(set);
	for (unsigned type = 0; type < PROFILER_TYPE_COUNT; type++)
		free_profiler_config(&set->configs_by_profiler[type]);
	for (uint32_t i = 0; i < set->count; i++)
		free((void *)(uintptr_t)set->names[i]); // NOLINT: made by fill()
	free(set->names);
	free(set->is_ratio_by_metric);
	free(set->time_dependence_by_metric);
	pthread_mutex_destroy(&set->lock);
	free(set);
}

int cuda_metric_set_evaluate(struct cuda_metric_set *set, enum profiler_type type,
			     const uint8_t *data, size_t bytes, size_t index, double *values)
{
	PROFILER_DECLARE_ARGS(evaluate, evaluate, values);
	int result;

	evaluate.host = set->configs_by_profiler[type].host;
	evaluate.image = data;
	evaluate.bytes = bytes;
	evaluate.index = index;
	evaluate.names = set->names;
	evaluate.count =
		type == PROFILER_OF_RANGES ? cuda_metric_set_get_value_count(set) : set->count;
	evaluate.values = values;
	pthread_mutex_lock(&set->lock);
	result = profiler.ProfilerHostEvaluateToGpuValues(&evaluate);
	pthread_mutex_unlock(&set->lock);
	return result;
}
