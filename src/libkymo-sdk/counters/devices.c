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
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/context.h"
#include "libkymo-sdk/counters/counters.h"
#include "libkymo-sdk/keep_loaded.h"
#include "libkymo-sdk/state.h"

enum service_state {
	SERVICE_OFF,
	SERVICE_CHANGING,
	SERVICE_WAITING /* for its runtime */,
	SERVICE_ON
};

struct counting_service {
	_Atomic(struct counting_service *) next;
	struct sdk_context *context;
	const rocprofiler_agent_v0_t *agent;
	struct sdk_buffer *buffer; /* may be NULL */
	rocprofiler_device_counting_service_cb_t choose;
	void *choose_data;
	uint64_t interval_ns;
	kymo_device_counting_samples_cb_t samples;
	void *samples_data;
	_Atomic int state;
	struct sdk_config *_Atomic config;
	double *last; /* what the last sample had read */
	_Atomic bool is_read;
};

static _Atomic(struct counting_service *) services;
static _Atomic uint64_t samples_lost;
/* Whose context is being started on this thread: set_config() is meant for it. */
static __thread struct counting_service *choosing;

static struct counting_service *service_first(const struct sdk_context *context)
{
	struct counting_service *service = atomic_load(&services);

	while (service && service->context != context)
		service = atomic_load(&service->next);
	return service;
}

static struct counting_service *service_next(const struct counting_service *service)
{
	struct counting_service *next = atomic_load(&service->next);

	while (next && next->context != service->context)
		next = atomic_load(&next->next);
	return next;
}

bool sdk_device_counting_has(const struct sdk_context *context)
{
	return service_first(context) != NULL;
}

/* ---- start and stop ---- */

static rocprofiler_status_t set_config(rocprofiler_context_id_t context_id,
				       rocprofiler_counter_config_id_t config_id)
{
	struct counting_service *service = choosing;
	struct sdk_config *config;
	rocprofiler_status_t status = ROCPROFILER_STATUS_SUCCESS;

	if (!sdk_context_find(context_id.handle))
		return ROCPROFILER_STATUS_ERROR_CONTEXT_INVALID;
	if (!service || service->context->id != context_id.handle)
		return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	config = sdk_config_get(config_id.handle);
	if (!config)
		return ROCPROFILER_STATUS_ERROR_PROFILE_NOT_FOUND;
	if (sdk_config_agent(config) != service->agent->id.handle)
		status = ROCPROFILER_STATUS_ERROR_AGENT_MISMATCH;
	else if (!(sdk_config_ways(config) & COUNTING_BY_DEVICE))
		status = ROCPROFILER_STATUS_ERROR_EXCEEDS_HW_LIMIT;
	/* The last one counts. */
	if (!status)
		config = atomic_exchange(&service->config, config);
	if (config)
		sdk_config_drop(config);
	return status;
}

static void service_forget(struct counting_service *service)
{
	struct sdk_config *config = atomic_exchange(&service->config, NULL);

	if (config)
		sdk_config_drop(config);
	free(service->last);
	service->last = NULL;
	atomic_store(&service->state, SERVICE_OFF);
}

/* Another context counts on the same agent. */
static bool service_conflicts(const struct counting_service *service)
{
	struct counting_service *other = atomic_load(&services);

	for (; other; other = atomic_load(&other->next)) {
		if (other != service && other->agent == service->agent &&
		    atomic_load(&other->state) != SERVICE_OFF)
			return true;
	}
	return false;
}

static enum counting_status service_begin(struct counting_service *service,
					  struct counting_problem *problem)
{
	struct sdk_config *config = atomic_load(&service->config);

	if (!sdk_config_set(config))
		return COUNTING_OK;
	return sdk_config_counting(config)->device_start(
		service->agent->id.handle, sdk_config_set(config), service->interval_ns, problem);
}

static rocprofiler_status_t service_refused(struct counting_service *service,
					    enum counting_status status,
					    const struct counting_problem *problem)
{
	if (status == COUNTING_NOT_READY) {
		atomic_store(&service->state, SERVICE_WAITING);
		return ROCPROFILER_STATUS_ERROR_HSA_NOT_LOADED;
	}
	sdk_counters_problem(problem->text[0] ? problem->text : counting_status_text(status));
	sdk_counters_say("%s is not counted: %s%s%s", service->agent->product_name,
			 counting_status_text(status), problem->text[0] ? ": " : "", problem->text);
	service_forget(service);
	return sdk_counting_status(status);
}

static rocprofiler_status_t service_start(struct counting_service *service)
{
	struct counting_problem problem = {.text = ""};
	enum counting_status status;
	struct sdk_config *config;
	int off = SERVICE_OFF;
	uint32_t before;

	if (service_conflicts(service) ||
	    !atomic_compare_exchange_strong(&service->state, &off, SERVICE_CHANGING))
		return ROCPROFILER_STATUS_ERROR_CONTEXT_CONFLICT;
	if (sdk_tool_enter(service->context, &before)) {
		choosing = service;
		service->choose((rocprofiler_context_id_t){service->context->id},
				service->agent->id, set_config, service->choose_data);
		choosing = NULL;
		sdk_tool_leave(before);
	}
	config = atomic_load(&service->config);
	if (!config) { /* it wants nothing of this agent */
		atomic_store(&service->state, SERVICE_OFF);
		return ROCPROFILER_STATUS_SUCCESS;
	}
	service->last = calloc(sdk_config_values(config) + 1, sizeof(double));
	status = service->last ? service_begin(service, &problem) : COUNTING_NO_MEMORY;
	if (status)
		return service_refused(service, status, &problem);
	atomic_store(&service->state, SERVICE_ON);
	return ROCPROFILER_STATUS_SUCCESS;
}

static void service_stop(struct counting_service *service)
{
	const struct timespec pause = {0, 1000000};
	int state = atomic_load(&service->state);
	struct sdk_config *config;

	/* It is just being begun, by the thread that heard of its runtime; not by this one. */
	for (unsigned i = 0; state == SERVICE_CHANGING && choosing != service && i < 5000; i++) {
		nanosleep(&pause, NULL);
		state = atomic_load(&service->state);
	}
	if ((state != SERVICE_ON && state != SERVICE_WAITING) ||
	    !atomic_compare_exchange_strong(&service->state, &state, SERVICE_CHANGING))
		return;
	config = atomic_load(&service->config);
	if (state == SERVICE_WAITING)
		sdk_counters_say("%s was not counted: %s", service->agent->product_name,
				 counting_status_text(COUNTING_NOT_READY));
	if (state == SERVICE_ON && sdk_config_set(config))
		sdk_config_counting(config)->device_stop(service->agent->id.handle);
	/* A sample that is being read ends. */
	while (atomic_exchange(&service->is_read, true))
		sched_yield();
	service_forget(service);
	atomic_store(&service->is_read, false);
}

void sdk_device_counting_stopped(struct sdk_context *context)
{
	struct counting_service *service = service_first(context);

	for (; service; service = service_next(service))
		service_stop(service);
}

/* What waits for its runtime does not keep the others from counting. */
rocprofiler_status_t sdk_device_counting_started(struct sdk_context *context)
{
	rocprofiler_status_t result = ROCPROFILER_STATUS_SUCCESS;
	struct counting_service *service = service_first(context);

	for (; service; service = service_next(service)) {
		rocprofiler_status_t status = service_start(service);

		if (status && status != ROCPROFILER_STATUS_ERROR_HSA_NOT_LOADED) {
			sdk_device_counting_stopped(context);
			return status;
		}
		if (status)
			result = status;
	}
	return result;
}

void sdk_device_counting_runtime_ready(void)
{
	struct counting_service *service = atomic_load(&services);

	for (; service; service = atomic_load(&service->next)) {
		struct counting_problem problem = {.text = ""};
		int waiting = SERVICE_WAITING;
		enum counting_status status;

		if (!atomic_compare_exchange_strong(&service->state, &waiting, SERVICE_CHANGING))
			continue;
		status = service_begin(service, &problem);
		if (status)
			service_refused(service, status, &problem);
		else
			atomic_store(&service->state, SERVICE_ON);
	}
}

/* Nothing counts in the child until its contexts are started anew. */
void sdk_device_counting_forked(void)
{
	struct counting_service *service = atomic_load(&services);

	for (; service; service = atomic_load(&service->next)) {
		atomic_store(&service->is_read, false);
		atomic_store(&service->state, SERVICE_OFF);
		atomic_store(&service->config, NULL);
		service->last = NULL;
	}
	atomic_store(&samples_lost, 0);
}

/* ---- samples that a tool asks for ---- */

struct sampling {
	rocprofiler_user_data_t user_data;
	bool since_last;
	rocprofiler_counter_record_t *records; /* NULL: none are wanted */
	size_t capacity, count;
};

static void sample_put(const struct counting_service *service, struct sdk_counted *counted,
		       size_t count)
{
	for (size_t i = 0; i < count; i++)
		counted->list[i] = (struct arena_record){
			ROCPROFILER_BUFFER_CATEGORY_COUNTERS, ROCPROFILER_COUNTER_RECORD_VALUE,
			sizeof(counted->records[0]), &counted->records[i]};
	if (count)
		sdk_buffer_put(service->buffer, counted->list, (uint32_t)count, sdk_now());
}

static void sample_difference(struct counting_service *service, double *values, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		double now = values[i];

		values[i] = now - service->last[i];
		service->last[i] = now;
	}
}

static enum counting_status sample_read(struct counting_service *service, struct sdk_config *config,
					struct sdk_counted *counted, bool since_last)
{
	size_t values = sdk_config_values(config);
	struct counting_problem problem = {.text = ""};
	enum counting_status status = COUNTING_OK;
	uint64_t time;

	if (sdk_config_set(config))
		status = sdk_config_counting(config)->device_read(
			service->agent->id.handle, counted->values, values, &time, &problem);
	if (status) {
		sdk_counters_problem(problem.text[0] ? problem.text : counting_status_text(status));
		return status;
	}
	if (since_last)
		sample_difference(service, counted->values, values);
	else
		memcpy(service->last, counted->values, values * sizeof(double));
	return COUNTING_OK;
}

static rocprofiler_status_t sample_config(struct counting_service *service,
					  struct sdk_config *config, struct sampling *sampling)
{
	struct sdk_counted *counted = sdk_config_take(config);
	size_t count = sdk_config_records(config);
	enum counting_status status;

	if (!counted)
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	status = sample_read(service, config, counted, sampling->since_last);
	if (!status) {
		sdk_config_evaluate(counted, counted->values, 0, sampling->user_data);
		if (sampling->records)
			memcpy(sampling->records + sampling->count, counted->records,
			       count * sizeof(counted->records[0]));
		sampling->count += count;
		if (service->buffer)
			sample_put(service, counted, count);
	}
	sdk_config_give(counted);
	return sdk_counting_status(status);
}

static rocprofiler_status_t sample_service(struct counting_service *service,
					   struct sampling *sampling)
{
	rocprofiler_status_t status = ROCPROFILER_STATUS_SUCCESS;
	struct sdk_config *config;

	if (atomic_exchange(&service->is_read, true))
		return ROCPROFILER_STATUS_ERROR_SAMPLE_RATE_EXCEEDED;
	config = atomic_load(&service->config);
	if (atomic_load(&service->state) == SERVICE_WAITING)
		status = ROCPROFILER_STATUS_ERROR_HSA_NOT_LOADED;
	else if (config && atomic_load(&service->state) == SERVICE_ON &&
		 (!sampling->records ||
		  sampling->capacity - sampling->count >= sdk_config_records(config)))
		status = sample_config(service, config, sampling);
	atomic_store(&service->is_read, false);
	return status;
}

/* All records that a sample has now. */
static size_t sample_records(const struct sdk_context *context)
{
	struct counting_service *service = service_first(context);
	size_t records = 0;

	for (; service; service = service_next(service)) {
		struct sdk_config *config = NULL;

		if (atomic_exchange(&service->is_read, true))
			continue; /* the sample itself finds it busy, too */
		if (atomic_load(&service->state) == SERVICE_ON)
			config = atomic_load(&service->config);
		if (config)
			records += sdk_config_records(config);
		atomic_store(&service->is_read, false);
	}
	return records;
}

static rocprofiler_status_t sample_context(struct sdk_context *context, struct sampling *sampling,
					   size_t *count)
{
	struct counting_service *service = service_first(context);
	rocprofiler_status_t result = ROCPROFILER_STATUS_SUCCESS;
	size_t needed = sample_records(context);

	if (sampling->records && needed > sampling->capacity) {
		*count = needed;
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	}
	for (; service; service = service_next(service)) {
		rocprofiler_status_t status = sample_service(service, sampling);

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
	struct sampling sampling = {
		.user_data = user_data,
		.since_last = (asked & (uint32_t)KYMO_COUNTER_FLAG_SINCE_LAST_SAMPLE) != 0,
		.records = output_records};
	struct sdk_context *context = sdk_context_find(context_id.handle);
	int is_active = 0;

	if (!context)
		return ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND;
	asked &= ~(uint32_t)KYMO_COUNTER_FLAG_SINCE_LAST_SAMPLE;
	if (output_records && (!rec_count || asked == ROCPROFILER_COUNTER_FLAG_ASYNC))
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (sdk_fini_status())
		return ROCPROFILER_STATUS_ERROR_FINALIZED;
	rocprofiler_context_is_active(context_id, &is_active);
	if (!is_active)
		return ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_STARTED;
	if (!sdk_device_counting_has(context))
		return ROCPROFILER_STATUS_ERROR_CONTEXT_INVALID;
	if (output_records)
		sampling.capacity = *rec_count;
	return sample_context(context, &sampling, rec_count);
}

/* ---- samples that the backend takes ---- */

static void sample_tell(struct counting_service *service, struct sdk_config *config,
			const double *values, uint64_t start, uint64_t end)
{
	struct sdk_counted *counted = sdk_config_take(config);
	uint32_t before;

	if (!counted) {
		atomic_fetch_add(&samples_lost, 1);
		return;
	}
	sdk_config_evaluate(counted, values, 0, (rocprofiler_user_data_t){.value = 0});
	if (sdk_tool_enter(service->context, &before)) {
		service->samples((rocprofiler_context_id_t){service->context->id},
				 service->agent->id, counted->records, sdk_config_records(config),
				 start, end, service->samples_data);
		sdk_tool_leave(before);
	}
	sdk_config_give(counted);
}

void sdk_device_sample(device_handle agent, const double *values, size_t count, uint64_t start,
		       uint64_t end)
{
	struct counting_service *service = atomic_load(&services);

	for (; service; service = atomic_load(&service->next)) {
		struct sdk_config *config = atomic_load(&service->config);

		if (service->agent->id.handle != agent || !service->samples || !config ||
		    atomic_load(&service->state) == SERVICE_OFF)
			continue;
		if (count == sdk_config_values(config))
			sample_tell(service, config, values, start, end);
		return;
	}
}

void sdk_device_samples_lost(device_handle agent, uint64_t count)
{
	(void)agent;
	atomic_fetch_add(&samples_lost, count);
}

uint64_t sdk_device_samples_lost_in_all(void)
{
	return atomic_load(&samples_lost);
}

/* ---- configuration ---- */

/* With the lock held. */
static rocprofiler_status_t device_configure(const struct counting_service *told)
{
	struct counting_service *service;

	for (service = service_first(told->context); service; service = service_next(service)) {
		if (service->agent == told->agent)
			return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	}
	service = calloc(1, sizeof(*service));
	if (!service)
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	service->context = told->context;
	service->agent = told->agent;
	service->buffer = told->buffer;
	service->choose = told->choose;
	service->choose_data = told->choose_data;
	atomic_store(&service->next, atomic_load(&services));
	atomic_store(&services, service);
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_configure_device_counting_service(
	rocprofiler_context_id_t context_id, rocprofiler_buffer_id_t buffer_id,
	rocprofiler_agent_id_t agent_id, rocprofiler_device_counting_service_cb_t cb,
	void *user_data)
{
	struct counting_service told = {.context = sdk_context_find(context_id.handle),
					.agent = sdk_agent_find(agent_id.handle),
					.buffer = sdk_buffer_find(buffer_id.handle),
					.choose = cb,
					.choose_data = user_data};
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
	if (sdk_dispatch_counting_has(told.context))
		return ROCPROFILER_STATUS_ERROR_AGENT_DISPATCH_CONFLICT;
	sdk_keep_loaded((void (*)(void))cb);
	sdk_counters_lock();
	status = device_configure(&told);
	sdk_counters_unlock();
	return status;
}

SDK_EXPORT rocprofiler_status_t
kymo_configure_device_counting_samples(rocprofiler_context_id_t context_id, uint64_t interval_ns,
				       kymo_device_counting_samples_cb_t samples, void *data)
{
	struct sdk_context *context = sdk_context_find(context_id.handle);
	struct counting_service *service;

	if (!context)
		return ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND;
	if (interval_ns && !samples)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (atomic_load(&context->is_active))
		return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	service = service_first(context);
	if (!service)
		return ROCPROFILER_STATUS_ERROR_CONTEXT_INVALID;
	sdk_keep_loaded((void (*)(void))samples);
	for (; service; service = service_next(service)) {
		service->interval_ns = interval_ns;
		service->samples = interval_ns ? samples : NULL;
		service->samples_data = data;
	}
	return ROCPROFILER_STATUS_SUCCESS;
}
