/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counting over time, one service for each agent of a context. What is counted is asked for at each
 * start of the context. Values are those since the start, read when a tool asks; besides, a tool
 * may have them in intervals (kymo/counting.h), told by the backend's own thread.
 *
 * Services are never taken back, so the thread of a backend may look at them without a lock; a
 * backend that was stopped tells nothing any more, so what it was told of is there as long as it is
 * needed.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libkymo-sdk/agents.h"
#include "libkymo-sdk/base/keep_loaded.h"
#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/context.h"
#include "libkymo-sdk/counters/counters.h"

enum counting_service_state {
	COUNTING_SERVICE_OFF,
	COUNTING_SERVICE_CHANGING,
	COUNTING_SERVICE_WAITING_FOR_RUNTIME /* for its runtime */,
	COUNTING_SERVICE_ON
};

struct sdk_device_counting_service {
	_Atomic(struct sdk_device_counting_service *) next;
	struct sdk_context *context;
	const rocprofiler_agent_v0_t *agent;
	struct sdk_buffer *buffer; /* may be NULL */
	rocprofiler_device_counting_service_cb_t choose_config_callback;
	void *choose_config_callback_data;
	uint64_t interval_ns;
	kymo_device_counting_samples_cb_t samples_callback;
	void *samples_callback_data;
	_Atomic int state;
	struct sdk_counter_config *_Atomic config;
	double *last_sample_values; /* what the last sample had read */
	_Atomic bool is_being_read;
};

static _Atomic(struct sdk_device_counting_service *) device_counting_services;
static _Atomic uint64_t lost_device_sample_count;
/* Whose context is being started on this thread: set_config_of_service_being_started() is meant for
 * it. */
static __thread struct sdk_device_counting_service *service_being_started;

static struct sdk_device_counting_service *
find_first_service_of_context(const struct sdk_context *context)
{
	struct sdk_device_counting_service *service = atomic_load(&device_counting_services);

	while (service && service->context != context)
		service = atomic_load(&service->next);
	return service;
}

static struct sdk_device_counting_service *
find_next_service_of_context(const struct sdk_device_counting_service *service)
{
	struct sdk_device_counting_service *next = atomic_load(&service->next);

	while (next && next->context != service->context)
		next = atomic_load(&next->next);
	return next;
}

bool sdk_context_has_device_counting(const struct sdk_context *context)
{
	return find_first_service_of_context(context) != NULL;
}

/* ---- start and stop ---- */

static rocprofiler_status_t
set_config_of_service_being_started(rocprofiler_context_id_t context_id,
				    rocprofiler_counter_config_id_t config_id)
{
	struct sdk_device_counting_service *service = service_being_started;
	struct sdk_counter_config *config;
	rocprofiler_status_t status = ROCPROFILER_STATUS_SUCCESS;

	if (!sdk_context_find_by_id(context_id.handle))
		return ROCPROFILER_STATUS_ERROR_CONTEXT_INVALID;
	if (!service || service->context->id != context_id.handle)
		return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	config = sdk_counter_config_acquire_by_id(config_id.handle);
	if (!config)
		return ROCPROFILER_STATUS_ERROR_PROFILE_NOT_FOUND;
	if (sdk_counter_config_get_agent_id(config) != service->agent->id.handle)
		status = ROCPROFILER_STATUS_ERROR_AGENT_MISMATCH;
	else if (!(sdk_counter_config_get_counting_ways(config) & COUNTING_BY_DEVICE))
		status = ROCPROFILER_STATUS_ERROR_EXCEEDS_HW_LIMIT;
	/* The last one counts. */
	if (!status)
		config = atomic_exchange(&service->config, config);
	if (config)
		sdk_counter_config_release_reference(config);
	return status;
}

static void reset_counting_service(struct sdk_device_counting_service *service)
{
	struct sdk_counter_config *config = atomic_exchange(&service->config, NULL);

	if (config)
		sdk_counter_config_release_reference(config);
	free(service->last_sample_values);
	service->last_sample_values = NULL;
	atomic_store(&service->state, COUNTING_SERVICE_OFF);
}

/* Another context counts on the same agent. */
static bool is_agent_counted_by_other_service(const struct sdk_device_counting_service *service)
{
	struct sdk_device_counting_service *other = atomic_load(&device_counting_services);

	for (; other; other = atomic_load(&other->next)) {
		if (other != service && other->agent == service->agent &&
		    atomic_load(&other->state) != COUNTING_SERVICE_OFF)
			return true;
	}
	return false;
}

static enum counting_status
start_backend_counting_of_agent(struct sdk_device_counting_service *service,
				struct counting_problem *problem)
{
	struct sdk_counter_config *config = atomic_load(&service->config);

	if (!sdk_counter_config_get_backend_event_set(config))
		return COUNTING_OK;
	return sdk_counter_config_get_backend(config)->device_counting_start(
		service->agent->id.handle, sdk_counter_config_get_backend_event_set(config),
		service->interval_ns, problem);
}

static rocprofiler_status_t
handle_refused_service_start(struct sdk_device_counting_service *service,
			     enum counting_status status, const struct counting_problem *problem)
{
	if (status == COUNTING_NOT_READY) {
		atomic_store(&service->state, COUNTING_SERVICE_WAITING_FOR_RUNTIME);
		return ROCPROFILER_STATUS_ERROR_HSA_NOT_LOADED;
	}
	sdk_counters_set_thread_problem_text(problem->text[0] ? problem->text
							      : counting_status_to_text(status));
	sdk_counters_report_problem_line("%s is not counted: %s%s%s", service->agent->product_name,
					 counting_status_to_text(status),
					 problem->text[0] ? ": " : "", problem->text);
	reset_counting_service(service);
	return sdk_counting_status_to_rocprofiler(status);
}

static rocprofiler_status_t start_counting_service(struct sdk_device_counting_service *service)
{
	struct counting_problem problem = {.text = ""};
	enum counting_status status;
	struct sdk_counter_config *config;
	int off = COUNTING_SERVICE_OFF;
	uint32_t before;

	if (is_agent_counted_by_other_service(service) ||
	    !atomic_compare_exchange_strong(&service->state, &off, COUNTING_SERVICE_CHANGING))
		return ROCPROFILER_STATUS_ERROR_CONTEXT_CONFLICT;
	if (sdk_tool_callback_guard_try_enter(service->context, &before)) {
		service_being_started = service;
		service->choose_config_callback(
			(rocprofiler_context_id_t){service->context->id}, service->agent->id,
			set_config_of_service_being_started, service->choose_config_callback_data);
		service_being_started = NULL;
		sdk_tool_callback_guard_leave(before);
	}
	config = atomic_load(&service->config);
	if (!config) { /* it wants nothing of this agent */
		atomic_store(&service->state, COUNTING_SERVICE_OFF);
		return ROCPROFILER_STATUS_SUCCESS;
	}
	service->last_sample_values =
		calloc(sdk_counter_config_get_value_count(config) + 1, sizeof(double));
	status = service->last_sample_values ? start_backend_counting_of_agent(service, &problem)
					     : COUNTING_NO_MEMORY;
	if (status)
		return handle_refused_service_start(service, status, &problem);
	atomic_store(&service->state, COUNTING_SERVICE_ON);
	return ROCPROFILER_STATUS_SUCCESS;
}

static void stop_counting_service(struct sdk_device_counting_service *service)
{
	const struct timespec pause = {0, 1000000};
	int state = atomic_load(&service->state);
	struct sdk_counter_config *config;

	/* It is just being begun, by the thread that heard of its runtime; not by this one. */
	for (unsigned i = 0;
	     state == COUNTING_SERVICE_CHANGING && service_being_started != service && i < 5000;
	     i++) {
		nanosleep(&pause, NULL);
		state = atomic_load(&service->state);
	}
	if ((state != COUNTING_SERVICE_ON && state != COUNTING_SERVICE_WAITING_FOR_RUNTIME) ||
	    !atomic_compare_exchange_strong(&service->state, &state, COUNTING_SERVICE_CHANGING))
		return;
	config = atomic_load(&service->config);
	if (state == COUNTING_SERVICE_WAITING_FOR_RUNTIME)
		sdk_counters_report_problem_line("%s was not counted: %s",
						 service->agent->product_name,
						 counting_status_to_text(COUNTING_NOT_READY));
	if (state == COUNTING_SERVICE_ON && sdk_counter_config_get_backend_event_set(config))
		sdk_counter_config_get_backend(config)->device_counting_stop(
			service->agent->id.handle);
	/* A sample that is being read ends. */
	while (atomic_exchange(&service->is_being_read, true))
		sched_yield();
	reset_counting_service(service);
	atomic_store(&service->is_being_read, false);
}

void sdk_device_counting_stop_context(struct sdk_context *context)
{
	struct sdk_device_counting_service *service = find_first_service_of_context(context);

	for (; service; service = find_next_service_of_context(service))
		stop_counting_service(service);
}

/* What waits for its runtime does not keep the others from counting. */
rocprofiler_status_t sdk_device_counting_start_context(struct sdk_context *context)
{
	rocprofiler_status_t result = ROCPROFILER_STATUS_SUCCESS;
	struct sdk_device_counting_service *service = find_first_service_of_context(context);

	for (; service; service = find_next_service_of_context(service)) {
		rocprofiler_status_t status = start_counting_service(service);

		if (status && status != ROCPROFILER_STATUS_ERROR_HSA_NOT_LOADED) {
			sdk_device_counting_stop_context(context);
			return status;
		}
		if (status)
			result = status;
	}
	return result;
}

void sdk_device_counting_start_all_waiting(void)
{
	struct sdk_device_counting_service *service = atomic_load(&device_counting_services);

	for (; service; service = atomic_load(&service->next)) {
		struct counting_problem problem = {.text = ""};
		int waiting = COUNTING_SERVICE_WAITING_FOR_RUNTIME;
		enum counting_status status;

		if (!atomic_compare_exchange_strong(&service->state, &waiting,
						    COUNTING_SERVICE_CHANGING))
			continue;
		status = start_backend_counting_of_agent(service, &problem);
		if (status)
			handle_refused_service_start(service, status, &problem);
		else
			atomic_store(&service->state, COUNTING_SERVICE_ON);
	}
}

/* Nothing counts in the child until its contexts are started again. */
void sdk_device_counting_reset_after_fork(void)
{
	struct sdk_device_counting_service *service = atomic_load(&device_counting_services);

	for (; service; service = atomic_load(&service->next)) {
		atomic_store(&service->is_being_read, false);
		atomic_store(&service->state, COUNTING_SERVICE_OFF);
		atomic_store(&service->config, NULL);
		service->last_sample_values = NULL;
	}
	atomic_store(&lost_device_sample_count, 0);
}

/* ---- samples that a tool asks for ---- */

struct counter_sample_request {
	rocprofiler_user_data_t user_data;
	bool is_since_last_sample;
	rocprofiler_counter_record_t *records; /* NULL: none are wanted */
	size_t capacity, count;
};

static void append_sample_records(const struct sdk_device_counting_service *service,
				  struct sdk_counter_evaluation_memory *counted, size_t count)
{
	for (size_t i = 0; i < count; i++)
		counted->list[i] = (struct arena_record){
			ROCPROFILER_BUFFER_CATEGORY_COUNTERS, ROCPROFILER_COUNTER_RECORD_VALUE,
			sizeof(counted->records[0]), &counted->records[i]};
	if (count)
		sdk_buffer_append_records(service->buffer, counted->list, (uint32_t)count,
					  sdk_clock_read_now_ns());
}

static void subtract_last_sample_values(struct sdk_device_counting_service *service, double *values,
					size_t count)
{
	for (size_t i = 0; i < count; i++) {
		double now = values[i];

		values[i] = now - service->last_sample_values[i];
		service->last_sample_values[i] = now;
	}
}

static enum counting_status read_service_sample(struct sdk_device_counting_service *service,
						struct sdk_counter_config *config,
						struct sdk_counter_evaluation_memory *counted,
						bool since_last)
{
	size_t values = sdk_counter_config_get_value_count(config);
	struct counting_problem problem = {.text = ""};
	enum counting_status status = COUNTING_OK;
	uint64_t time;

	if (sdk_counter_config_get_backend_event_set(config))
		status = sdk_counter_config_get_backend(config)->device_counting_read(
			service->agent->id.handle, counted->values, values, &time, &problem);
	if (status) {
		sdk_counters_set_thread_problem_text(
			problem.text[0] ? problem.text : counting_status_to_text(status));
		return status;
	}
	if (since_last)
		subtract_last_sample_values(service, counted->values, values);
	else
		memcpy(service->last_sample_values, counted->values, values * sizeof(double));
	return COUNTING_OK;
}

static rocprofiler_status_t
read_and_evaluate_service_sample(struct sdk_device_counting_service *service,
				 struct sdk_counter_config *config,
				 struct counter_sample_request *sampling)
{
	struct sdk_counter_evaluation_memory *counted =
		sdk_counter_config_take_evaluation_memory(config);
	size_t count = sdk_counter_config_get_record_count(config);
	enum counting_status status;

	if (!counted)
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	status = read_service_sample(service, config, counted, sampling->is_since_last_sample);
	if (!status) {
		sdk_counter_config_compute_records(counted, counted->values, 0,
						   sampling->user_data);
		if (sampling->records)
			memcpy(sampling->records + sampling->count, counted->records,
			       count * sizeof(counted->records[0]));
		sampling->count += count;
		if (service->buffer)
			append_sample_records(service, counted, count);
	}
	sdk_counter_config_return_evaluation_memory(counted);
	return sdk_counting_status_to_rocprofiler(status);
}

static rocprofiler_status_t take_service_sample(struct sdk_device_counting_service *service,
						struct counter_sample_request *sampling)
{
	rocprofiler_status_t status = ROCPROFILER_STATUS_SUCCESS;
	struct sdk_counter_config *config;

	if (atomic_exchange(&service->is_being_read, true))
		return ROCPROFILER_STATUS_ERROR_SAMPLE_RATE_EXCEEDED;
	config = atomic_load(&service->config);
	if (atomic_load(&service->state) == COUNTING_SERVICE_WAITING_FOR_RUNTIME)
		status = ROCPROFILER_STATUS_ERROR_HSA_NOT_LOADED;
	else if (config && atomic_load(&service->state) == COUNTING_SERVICE_ON &&
		 (!sampling->records || sampling->capacity - sampling->count >=
						sdk_counter_config_get_record_count(config)))
		status = read_and_evaluate_service_sample(service, config, sampling);
	atomic_store(&service->is_being_read, false);
	return status;
}

/* All records that a sample has now. */
static size_t count_sample_records(const struct sdk_context *context)
{
	struct sdk_device_counting_service *service = find_first_service_of_context(context);
	size_t records = 0;

	for (; service; service = find_next_service_of_context(service)) {
		struct sdk_counter_config *config = NULL;

		if (atomic_exchange(&service->is_being_read, true))
			continue; /* the sample itself finds it busy, too */
		if (atomic_load(&service->state) == COUNTING_SERVICE_ON)
			config = atomic_load(&service->config);
		if (config)
			records += sdk_counter_config_get_record_count(config);
		atomic_store(&service->is_being_read, false);
	}
	return records;
}

static rocprofiler_status_t take_context_samples(struct sdk_context *context,
						 struct counter_sample_request *sampling,
						 size_t *count)
{
	struct sdk_device_counting_service *service = find_first_service_of_context(context);
	rocprofiler_status_t result = ROCPROFILER_STATUS_SUCCESS;
	size_t needed = count_sample_records(context);

	if (sampling->records && needed > sampling->capacity) {
		*count = needed;
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	}
	for (; service; service = find_next_service_of_context(service)) {
		rocprofiler_status_t status = take_service_sample(service, sampling);

		if (status)
			result = status;
	}
	if (count)
		*count = sampling->count;
	return result;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_sample_device_counting_service(
	rocprofiler_context_id_t context_id, rocprofiler_user_data_t user_data,
	rocprofiler_counter_flag_t flags, rocprofiler_counter_record_t *output_records,
	size_t *rec_count)
{
	uint32_t asked = (uint32_t)flags;
	struct counter_sample_request sampling = {
		.user_data = user_data,
		.is_since_last_sample =
			(asked & (uint32_t)KYMO_COUNTER_FLAG_SINCE_LAST_SAMPLE) != 0,
		.records = output_records};
	struct sdk_context *context = sdk_context_find_by_id(context_id.handle);
	int is_active = 0;

	if (!context)
		return ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND;
	asked &= ~(uint32_t)KYMO_COUNTER_FLAG_SINCE_LAST_SAMPLE;
	if (output_records && (!rec_count || asked == ROCPROFILER_COUNTER_FLAG_ASYNC))
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (sdk_get_fini_status())
		return ROCPROFILER_STATUS_ERROR_FINALIZED;
	rocprofiler_context_is_active(context_id, &is_active);
	if (!is_active)
		return ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_STARTED;
	if (!sdk_context_has_device_counting(context))
		return ROCPROFILER_STATUS_ERROR_CONTEXT_INVALID;
	if (output_records)
		sampling.capacity = *rec_count;
	return take_context_samples(context, &sampling, rec_count);
}

/* ---- samples that the backend takes ---- */

static void deliver_sample_to_tool(struct sdk_device_counting_service *service,
				   struct sdk_counter_config *config, const double *values,
				   uint64_t start, uint64_t end)
{
	struct sdk_counter_evaluation_memory *counted =
		sdk_counter_config_take_evaluation_memory(config);
	uint32_t before;

	if (!counted) {
		atomic_fetch_add(&lost_device_sample_count, 1);
		return;
	}
	sdk_counter_config_compute_records(counted, values, 0,
					   (rocprofiler_user_data_t){.value = 0});
	if (sdk_tool_callback_guard_try_enter(service->context, &before)) {
		service->samples_callback((rocprofiler_context_id_t){service->context->id},
					  service->agent->id, counted->records,
					  sdk_counter_config_get_record_count(config), start, end,
					  service->samples_callback_data);
		sdk_tool_callback_guard_leave(before);
	}
	sdk_counter_config_return_evaluation_memory(counted);
}

void sdk_device_report_counter_sample(device_handle agent, const double *values, size_t count,
				      uint64_t start, uint64_t end)
{
	struct sdk_device_counting_service *service = atomic_load(&device_counting_services);

	for (; service; service = atomic_load(&service->next)) {
		struct sdk_counter_config *config = atomic_load(&service->config);

		if (service->agent->id.handle != agent || !service->samples_callback || !config ||
		    atomic_load(&service->state) == COUNTING_SERVICE_OFF)
			continue;
		if (count == sdk_counter_config_get_value_count(config))
			deliver_sample_to_tool(service, config, values, start, end);
		return;
	}
}

void sdk_device_counting_add_lost_sample_count(device_handle agent, uint64_t count)
{
	(void)agent;
	atomic_fetch_add(&lost_device_sample_count, count);
}

uint64_t sdk_device_counting_get_lost_sample_count(void)
{
	return atomic_load(&lost_device_sample_count);
}

/* ---- configuration ---- */

/* With the lock held. */
static rocprofiler_status_t
add_device_counting_service(const struct sdk_device_counting_service *told)
{
	struct sdk_device_counting_service *service;

	for (service = find_first_service_of_context(told->context); service;
	     service = find_next_service_of_context(service)) {
		if (service->agent == told->agent)
			return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	}
	service = calloc(1, sizeof(*service));
	if (!service)
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	service->context = told->context;
	service->agent = told->agent;
	service->buffer = told->buffer;
	service->choose_config_callback = told->choose_config_callback;
	service->choose_config_callback_data = told->choose_config_callback_data;
	atomic_store(&service->next, atomic_load(&device_counting_services));
	atomic_store(&device_counting_services, service);
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_configure_device_counting_service(
	rocprofiler_context_id_t context_id, rocprofiler_buffer_id_t buffer_id,
	rocprofiler_agent_id_t agent_id, rocprofiler_device_counting_service_cb_t cb,
	void *user_data)
{
	struct sdk_device_counting_service told = {
		.context = sdk_context_find_by_id(context_id.handle),
		.agent = sdk_agent_find_by_id(agent_id.handle),
		.buffer = sdk_buffer_find_by_id(buffer_id.handle),
		.choose_config_callback = cb,
		.choose_config_callback_data = user_data};
	rocprofiler_status_t status;

	if (!cb)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (!told.context)
		return ROCPROFILER_STATUS_ERROR_CONTEXT_INVALID;
	if (buffer_id.handle && !told.buffer)
		return ROCPROFILER_STATUS_ERROR_BUFFER_NOT_FOUND;
	if (!told.agent)
		return ROCPROFILER_STATUS_ERROR_AGENT_NOT_FOUND;
	if (atomic_load(&told.context->is_active))
		return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	if (sdk_context_has_dispatch_counting(told.context))
		return ROCPROFILER_STATUS_ERROR_AGENT_DISPATCH_CONFLICT;
	sdk_keep_library_of_function_loaded((void (*)(void))cb);
	sdk_counters_acquire_lock();
	status = add_device_counting_service(&told);
	sdk_counters_release_lock();
	return status;
}

SDK_EXPORT rocprofiler_status_t
kymo_configure_device_counting_samples(rocprofiler_context_id_t context_id, uint64_t interval_ns,
				       kymo_device_counting_samples_cb_t samples, void *data)
{
	struct sdk_context *context = sdk_context_find_by_id(context_id.handle);
	struct sdk_device_counting_service *service;

	if (!context)
		return ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND;
	if (interval_ns && !samples)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (atomic_load(&context->is_active))
		return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	service = find_first_service_of_context(context);
	if (!service)
		return ROCPROFILER_STATUS_ERROR_CONTEXT_INVALID;
	sdk_keep_library_of_function_loaded((void (*)(void))samples);
	for (; service; service = find_next_service_of_context(service)) {
		service->interval_ns = interval_ns;
		service->samples_callback = interval_ns ? samples : NULL;
		service->samples_callback_data = data;
	}
	return ROCPROFILER_STATUS_SUCCESS;
}
