/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the tool library asks of counting on NVIDIA's devices; see counting.h.
 */
#include "device/cuda/counting.h"

#include <stdio.h>
#include <string.h>

enum counting_status cuda_profiler_result_to_status(int result, const char *what,
						    struct counting_problem *problem)
{
	const char *why = "unknown";

	cupti.GetResultString(result, &why);
	snprintf(problem->text, sizeof(problem->text), "%s: %s (%d)", what, why, result);
	switch (result) {
	case CUPTI_SUCCESS:
		problem->text[0] = '\0';
		return COUNTING_OK;
	case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
	case CUPTI_ERROR_VIRTUAL_INSUFFICIENT_PRIVILEGES:
		snprintf(problem->text, sizeof(problem->text),
			 "%s: the driver permits only administrators to count (set "
			 "NVreg_RestrictProfilingToAdminUsers=0, or grant CAP_SYS_ADMIN)",
			 what);
		return COUNTING_NOT_PERMITTED;
	case CUPTI_ERROR_HARDWARE_BUSY:
		snprintf(problem->text, sizeof(problem->text),
			 "%s: another client counts on this device (another process, DCGM, ncu, or "
			 "--device-counters together with --counters)",
			 what);
		return COUNTING_BUSY;
	case CUPTI_ERROR_NOT_READY:
	case CUPTI_ERROR_NOT_INITIALIZED:
		return COUNTING_NOT_READY;
	case CUPTI_ERROR_OUT_OF_MEMORY:
		return COUNTING_NO_MEMORY;
	case CUPTI_ERROR_NOT_SUPPORTED:
	case CUPTI_ERROR_VIRTUAL_NOT_SUPPORTED:
		return COUNTING_NOT_SUPPORTED;
	default:
		/* Confidential computing, mining cards, MIG, SLI, WSL, and chips not known. */
		return result >= CUPTI_ERROR_CONFIDENTIAL_NOT_SUPPORTED &&
				       result <= CUPTI_ERROR_INVALID_CHIP_NAME
			       ? COUNTING_NOT_SUPPORTED
			       : COUNTING_FAILED;
	}
}

static enum counting_status
counting_list_events(device_handle agent,
		     bool (*each)(void *context, const struct counting_event_info *event),
		     void *context)
{
	enum counting_status status;
	const struct cuda_chip *chip = cuda_chip_find_or_add_by_agent(agent, &status);

	if (chip != NULL)
		cuda_chip_for_each_metric(chip, each, context);
	return status;
}

static enum counting_status counting_find_event(device_handle agent, const char *block,
						const char *text, struct counting_event_info *told)
{
	enum counting_status status;
	struct cuda_chip *chip = cuda_chip_find_or_add_by_agent(agent, &status);
	struct cuda_metric metric = {0};

	(void)block;
	if (chip == NULL)
		return status;
	status = cuda_chip_find_metric(chip, text, &metric);
	if (status == COUNTING_OK)
		*told = metric.event;
	return status;
}

static enum counting_status counting_make_set(device_handle agent,
					      const struct counting_event_request *requests,
					      uint32_t count, void **made, uint32_t *ways,
					      struct counting_problem *problem)
{
	enum counting_status status;
	struct cuda_chip *chip = cuda_chip_find_or_add_by_agent(agent, &status);
	struct cuda_metric_set *set = NULL;
	const char *missing;

	problem->text[0] = '\0';
	if (chip == NULL) {
		missing = status == COUNTING_NOT_SUPPORTED
				  ? cuda_profiler_load_or_get_missing_text()
				  : NULL;
		if (missing != NULL)
			snprintf(problem->text, sizeof(problem->text), "missing %s", missing);
		return status;
	}
	status = cuda_metric_set_create(chip, agent, requests, count, &set, ways, problem);
	*made = set;
	return status;
}

/* Launches must be heard of, whoever else wants them. */
static void apply_kernel_counting_change(device_handle agent, bool on)
{
	(void)agent;
	(void)on;
	if (cuda_is_tracing())
		device_backend_cuda.wanted_services_changed(device_get_sink());
}

const struct device_counting_backend cuda_counting = {
	counting_list_events,      counting_find_event,          counting_make_set,
	cuda_metric_set_free,      apply_kernel_counting_change, cuda_device_counting_start,
	cuda_device_counting_read, cuda_device_counting_stop};
