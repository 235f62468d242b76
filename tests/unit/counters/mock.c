/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See mock.h.
 */
#include "mock.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mock mock;
device_handle mock_agent;

struct mock_set {
	uint32_t count;
	size_t values;
	struct counting_event_request requests[MOCK_EVENTS_MAX];
};

static struct mock_set *mock_running;

struct mock_event *mock_event(const char *block, const char *event, const double *values, ...)
{
	struct mock_event *made = &mock.events[mock.count++];
	va_list extents;

	*made = (struct mock_event){.values = values, .is_listed = true};
	made->event =
		(struct counting_event_info){.name = event,
					     .block = block,
					     .event = event,
					     .description = "of the test",
					     .ways = COUNTING_BY_DISPATCH | COUNTING_BY_DEVICE};
	va_start(extents, values);
	for (;;) {
		int dimension = va_arg(extents, int);

		if (dimension == 0)
			break;
		made->event.extents[made->event.extents_count++] =
			(struct counting_dimension_extent){(enum counting_dimension_kind)dimension,
							   va_arg(extents, uint32_t)};
	}
	va_end(extents);
	if (made->event.extents_count == 0)
		made->event.extents[made->event.extents_count++] =
			(struct counting_dimension_extent){COUNTING_DIMENSION_INSTANCE, 1};
	return made;
}

static const struct mock_event *mock_find(const char *block, const char *event)
{
	for (uint32_t i = 0; i < mock.count; i++) {
		if (strcmp(mock.events[i].event.block, block) == 0 &&
		    strcmp(mock.events[i].event.event, event) == 0)
			return &mock.events[i];
	}
	return NULL;
}

static enum counting_status mock_events(device_handle agent,
					bool (*each)(void *, const struct counting_event_info *),
					void *context)
{
	if (agent != mock_agent)
		return COUNTING_NO_SUCH_EVENT;
	for (uint32_t i = 0; i < mock.count && mock.events_status == COUNTING_OK; i++) {
		if (mock.events[i].is_listed && !each(context, &mock.events[i].event))
			break;
	}
	return mock.events_status;
}

static enum counting_status mock_event_of(device_handle agent, const char *block, const char *event,
					  struct counting_event_info *told)
{
	const struct mock_event *found = agent == mock_agent ? mock_find(block, event) : NULL;

	if (found == NULL)
		return COUNTING_NO_SUCH_EVENT;
	*told = found->event;
	return COUNTING_OK;
}

static enum counting_status mock_make(device_handle agent,
				      const struct counting_event_request *requests, uint32_t count,
				      void **set, uint32_t *ways, struct counting_problem *problem)
{
	struct mock_set *made;

	if (agent != mock_agent || count > MOCK_EVENTS_MAX)
		return COUNTING_FAILED;
	if (mock.fits != 0 && count > mock.fits) {
		snprintf(problem->text, sizeof(problem->text), "%s does not fit with the others",
			 requests[mock.fits].event);
		return COUNTING_DOES_NOT_FIT;
	}
	if (mock.make_status != COUNTING_OK) {
		snprintf(problem->text, sizeof(problem->text), "the test says so");
		return mock.make_status;
	}
	made = calloc(1, sizeof(*made));
	made->count = count;
	for (uint32_t i = 0; i < count; i++) {
		const struct mock_event *found = mock_find(requests[i].block, requests[i].event);

		if (found == NULL) {
			free(made);
			return COUNTING_NO_SUCH_EVENT;
		}
		made->requests[i] = requests[i];
		made->values += requests[i].rollup != COUNTING_ROLLUP_NONE
					? 1
					: counting_get_event_value_count(&found->event);
	}
	mock.sets++;
	*ways = mock.ways != 0 ? mock.ways : COUNTING_BY_DISPATCH | COUNTING_BY_DEVICE;
	*set = made;
	return COUNTING_OK;
}

static void mock_free(void *set)
{
	mock.sets_freed++;
	free(set);
}

static void mock_dispatches(device_handle agent, bool on)
{
	if (agent == mock_agent)
		mock.dispatches = on;
}

static void mock_fill(const struct mock_set *set, double *values)
{
	for (uint32_t i = 0; i < set->count; i++) {
		const struct counting_event_request *request = &set->requests[i];
		const struct mock_event *found = mock_find(request->block, request->event);
		size_t count = counting_get_event_value_count(&found->event);

		if (request->rollup != COUNTING_ROLLUP_NONE) {
			*values++ = found->rollups[request->rollup] * mock.scale;
			continue;
		}
		/* Accumulated ones are told apart by their values. */
		for (size_t j = 0; j < count; j++)
			*values++ = ((found->values != NULL ? found->values[j] : (double)(j + 1)) +
				     1000.0 * (int)request->accumulation_resolution) *
				    mock.scale;
	}
}

static enum counting_status mock_device_start(device_handle agent, void *set, uint64_t interval_ns,
					      struct counting_problem *problem)
{
	(void)agent;
	snprintf(problem->text, sizeof(problem->text), "the test says so");
	if (mock.start_status != COUNTING_OK)
		return mock.start_status;
	mock.started++;
	mock.interval_ns = interval_ns;
	mock_running = set;
	return COUNTING_OK;
}

static enum counting_status mock_device_read(device_handle agent, double *values, size_t count,
					     uint64_t *time, struct counting_problem *problem)
{
	(void)problem;
	if (agent != mock_agent || mock_running == NULL || count != mock_running->values)
		return COUNTING_FAILED;
	mock.reads++;
	*time = device_get_sink()->now();
	mock_fill(mock_running, values);
	return COUNTING_OK;
}

static void mock_device_stop(device_handle agent)
{
	(void)agent;
	mock.stopped++;
	mock_running = NULL;
}

static const struct device_counting_backend mock_counting = {
	.events = mock_events,
	.event = mock_event_of,
	.set_make = mock_make,
	.set_free = mock_free,
	.dispatch_counting_switch = mock_dispatches,
	.device_counting_start = mock_device_start,
	.device_counting_read = mock_device_read,
	.device_counting_stop = mock_device_stop,
};

void mock_start(const char *name, bool is_gpu)
{
	struct device_agent agent = {.runtime = DEVICE_RUNTIME_CUDA,
				     .is_gpu = is_gpu,
				     .name = name,
				     .vendor_name = "TEST",
				     .product_name = "Counts what it is told",
				     .model_name = "mock",
				     .compute_units = 12,
				     .simds_per_unit = 4,
				     .wave_size = 64,
				     .shader_engines = 3};

	mock = (struct mock){.scale = 1.0};
	mock_agent = device_get_sink()->agent(&agent);
	device_counting_set_test_backend(&mock_counting);
}

static device_handle mock_enqueue(device_handle symbol, struct mock_set **set)
{
	const struct device_sink *sink = device_get_sink();
	struct device_kernel_launch kernel = {.agent = mock_agent,
					      .symbol = symbol,
					      .queue = 7,
					      .group_threads = {64, 1, 1},
					      .grid_threads = {4096, 1, 1}};
	device_handle handle = sink->kernel_enqueue(&kernel);

	*set = sink->counting->counts_kernels(mock_agent)
		       ? sink->counting->dispatch_select_set(handle, &kernel)
		       : NULL;
	sink->kernel_submitted(handle, false);
	return handle;
}

bool mock_kernel(device_handle symbol, uint64_t start, uint64_t end)
{
	struct mock_set *set;
	device_handle handle = mock_enqueue(symbol, &set);

	if (set != NULL) {
		double *values = malloc((set->values + 1) * sizeof(double));

		mock_fill(set, values);
		device_get_sink()->counting->dispatch_counted(handle, values, set->values, start,
							      end);
		free(values);
	}
	device_get_sink()->kernel_complete(handle, NULL, start, end);
	return set != NULL;
}

void mock_kernel_not_counted(enum counting_status why, const char *text)
{
	struct mock_set *set;
	device_handle handle = mock_enqueue(0, &set);

	if (set != NULL)
		device_get_sink()->counting->dispatch_not_counted(handle, why, text);
	device_get_sink()->kernel_complete(handle, NULL, 0, 0);
}

void mock_sample(uint64_t start, uint64_t end)
{
	double *values;

	if (mock_running == NULL)
		return;
	values = malloc((mock_running->values + 1) * sizeof(double));
	mock_fill(mock_running, values);
	device_get_sink()->counting->device_sample_taken(mock_agent, values, mock_running->values,
							 start, end);
	free(values);
}
