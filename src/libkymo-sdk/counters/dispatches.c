/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counting kernel by kernel. A tool's function says for each kernel, on the thread that enqueues
 * it, what is to be counted; when the backend hands over the values, on any thread, they become
 * records. One context at a time counts kernels. A kernel that was to be counted and was not is
 * told of once for each reason, and counted for the report at the end.
 */
#include <stdlib.h>
#include <string.h>

#include "libkymo-sdk/agents.h"
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/calls.h"
#include "libkymo-sdk/counters/counters.h"
#include "libkymo-sdk/keep_loaded.h"
#include "libkymo-sdk/state.h"

#define REASONS (COUNTING_NOT_FINISHED + 1)

struct sdk_dispatch_counting {
	rocprofiler_dispatch_counting_service_cb_t select;
	void *select_data;
	struct sdk_buffer *buffer; /* NULL: `record` instead */
	rocprofiler_dispatch_counting_record_cb_t record;
	void *record_data;
};

/* A kernel that is being counted. */
struct counting {
	struct sdk_config *config;
	struct sdk_context *context;
	rocprofiler_user_data_t user_data;
};

_Atomic uint64_t sdk_counting_active;
static _Atomic uint64_t not_counted[REASONS], counted_kernels;

/* ---- selecting ---- */

static rocprofiler_dispatch_counting_service_data_t
dispatch_data(const struct sdk_work_facts *facts, uint64_t start, uint64_t end)
{
	return (rocprofiler_dispatch_counting_service_data_t){
		.size = sizeof(rocprofiler_dispatch_counting_service_data_t),
		.correlation_id = facts->correlation_id,
		.start_timestamp = start,
		.end_timestamp = end,
		.dispatch_info = facts->dispatch_info,
	};
}

static void not_counted_because(enum counting_status why, const struct sdk_work_facts *facts,
				const char *text)
{
	uint64_t before = atomic_fetch_add_explicit(&not_counted[why], 1, memory_order_relaxed);

	/* What the tool's user asked for is no problem. */
	if (!before && why != COUNTING_FILTERED)
		sdk_counters_say("kernel %llu (dispatch %llu) is not counted: %s%s%s",
				 (unsigned long long)facts->dispatch_info.kernel_id,
				 (unsigned long long)facts->dispatch_info.dispatch_id,
				 counting_status_text(why), text && text[0] ? ": " : "",
				 text ? text : "");
}

/* What the tool wants; NULL: nothing. */
static struct sdk_config *select_config(struct sdk_context *context,
					const struct sdk_work_facts *facts,
					rocprofiler_user_data_t *user_data)
{
	const struct sdk_dispatch_counting *service = context->dispatch_counting;
	rocprofiler_counter_config_id_t id = {0};
	struct sdk_config *config;
	uint32_t before;

	if (!sdk_tool_enter(context, &before))
		return NULL;
	service->select(dispatch_data(facts, 0, 0), &id, user_data, service->select_data);
	sdk_tool_leave(before);
	if (!id.handle)
		return NULL;
	config = sdk_config_get(id.handle);
	if (!config) {
		not_counted_because(COUNTING_FAILED, facts, "the tool names a config that is not");
		return NULL;
	}
	if (sdk_config_agent(config) == facts->dispatch_info.agent_id.handle &&
	    (sdk_config_ways(config) & COUNTING_BY_DISPATCH))
		return config;
	if (sdk_config_agent(config) == facts->dispatch_info.agent_id.handle)
		not_counted_because(
			COUNTING_NOT_SUPPORTED, facts,
			"its counters are of the device over time, not of single kernels");
	else
		not_counted_because(COUNTING_NO_SUCH_EVENT, facts,
				    "the config is for another agent");
	sdk_config_drop(config);
	return NULL;
}

static bool counts_kernels(device_handle agent)
{
	(void)agent;
	return sdk_counting_contexts() != 0;
}

static void *dispatch_select(device_handle kernel, const struct device_kernel *told)
{
	struct sdk_work *work = (struct sdk_work *)(uintptr_t)kernel; // NOLINT: made of a pointer
	uint64_t contexts = sdk_counting_contexts();
	struct sdk_work_facts facts;
	struct counting *counting;
	struct sdk_context *context;

	if (!work || !contexts)
		return NULL;
	context = sdk_context_at((unsigned)__builtin_ctzll(contexts));
	if (!sdk_work_facts(work, (unsigned)__builtin_ctzll(contexts), &facts))
		return NULL;
	if (!facts.dispatch_info.agent_id.handle && told) {
		facts.dispatch_info.agent_id.handle = told->agent;
		facts.dispatch_info.kernel_id = told->symbol;
		facts.dispatch_info.queue_id.handle = told->queue;
	}
	counting = calloc(1, sizeof(*counting));
	if (!counting) {
		not_counted_because(COUNTING_NO_MEMORY, &facts, NULL);
		return NULL;
	}
	counting->context = context;
	counting->config = select_config(context, &facts, &counting->user_data);
	if (!counting->config) {
		free(counting);
		return NULL;
	}
	sdk_work_set_counting(work, counting);
	/* NULL where it is nothing but properties of the agent: those are known when it ends. */
	return sdk_config_set(counting->config);
}

/* ---- what comes of it ---- */

static void put_records(const struct sdk_dispatch_counting *service, struct sdk_counted *counted,
			const rocprofiler_dispatch_counting_service_data_t *data, size_t count)
{
	rocprofiler_dispatch_counting_service_record_t header = {
		.size = sizeof(header),
		.num_records = count,
		.correlation_id = data->correlation_id,
		.start_timestamp = data->start_timestamp,
		.end_timestamp = data->end_timestamp,
		.dispatch_info = data->dispatch_info,
	};

	counted->list[0] =
		(struct arena_record){ROCPROFILER_BUFFER_CATEGORY_COUNTERS,
				      ROCPROFILER_COUNTER_RECORD_PROFILE_COUNTING_DISPATCH_HEADER,
				      sizeof(header), &header};
	for (size_t i = 0; i < count; i++)
		counted->list[i + 1] = (struct arena_record){
			ROCPROFILER_BUFFER_CATEGORY_COUNTERS, ROCPROFILER_COUNTER_RECORD_VALUE,
			sizeof(counted->records[0]), &counted->records[i]};
	sdk_buffer_put(service->buffer, counted->list, (uint32_t)count + 1, sdk_now());
}

static void hand_over(const struct counting *counting, struct sdk_counted *counted,
		      const rocprofiler_dispatch_counting_service_data_t *data)
{
	const struct sdk_dispatch_counting *service = counting->context->dispatch_counting;
	size_t count = sdk_config_records(counting->config);
	uint32_t before;

	if (service->buffer) {
		put_records(service, counted, data, count);
	} else if (sdk_tool_enter(counting->context, &before)) {
		service->record(*data, counted->records, count, counting->user_data,
				service->record_data);
		sdk_tool_leave(before);
	}
}

/* Takes the counting away from the work. NULL: it is not counted. */
static struct counting *counting_of(struct sdk_work *work, struct sdk_work_facts *facts)
{
	struct counting *counting = work ? sdk_work_set_counting(work, NULL) : NULL;

	if (counting)
		sdk_work_facts(work, (unsigned)atomic_load(&counting->context->bit), facts);
	return counting;
}

static void counting_free(struct counting *counting)
{
	sdk_config_drop(counting->config);
	free(counting);
}

static void counted_values(const struct counting *counting, const struct sdk_work_facts *facts,
			   const double *values, size_t count, uint64_t start, uint64_t end)
{
	struct sdk_counted *counted = sdk_config_take(counting->config);
	rocprofiler_dispatch_counting_service_data_t data = dispatch_data(facts, start, end);

	if (!counted || count != sdk_config_values(counting->config)) {
		not_counted_because(counted ? COUNTING_FAILED : COUNTING_NO_MEMORY, facts,
				    counted ? "not all values are there" : NULL);
	} else {
		sdk_config_evaluate(counted, values, facts->dispatch_info.dispatch_id,
				    counting->user_data);
		atomic_fetch_add_explicit(&counted_kernels, 1, memory_order_relaxed);
		hand_over(counting, counted, &data);
	}
	if (counted)
		sdk_config_give(counted);
}

static void dispatch_counted(device_handle kernel, const double *values, size_t count,
			     uint64_t start, uint64_t end)
{
	struct sdk_work *work = (struct sdk_work *)(uintptr_t)kernel; // NOLINT: made of a pointer
	struct sdk_work_facts facts;
	struct counting *counting = counting_of(work, &facts);

	if (!counting)
		return;
	sdk_work_in_order(work, &start, &end);
	counted_values(counting, &facts, values, count, start, end);
	counting_free(counting);
}

static void dispatch_not_counted(device_handle kernel, enum counting_status why, const char *text)
{
	struct sdk_work *work = (struct sdk_work *)(uintptr_t)kernel; // NOLINT: made of a pointer
	struct sdk_work_facts facts;
	struct counting *counting = counting_of(work, &facts);

	if (!counting)
		return;
	not_counted_because((unsigned)why < REASONS ? why : COUNTING_FAILED, &facts, text);
	counting_free(counting);
}

void sdk_counting_again(struct sdk_work *work, struct sdk_work *again)
{
	const struct counting *counting = sdk_work_counting(work);
	struct counting *copy = counting ? malloc(sizeof(*copy)) : NULL;

	if (copy) {
		*copy = *counting;
		sdk_config_keep(copy->config);
	}
	sdk_work_set_counting(again, copy);
}

void sdk_counting_ends(struct sdk_work *work, uint64_t start, uint64_t end)
{
	struct sdk_work_facts facts;
	struct counting *counting = counting_of(work, &facts);

	if (!counting)
		return;
	if (!sdk_config_set(counting->config) && start)
		counted_values(counting, &facts, NULL, 0, start, end);
	else
		not_counted_because(COUNTING_NOT_FINISHED, &facts, NULL);
	counting_free(counting);
}

void sdk_counting_forget(struct sdk_work *work)
{
	struct counting *counting = sdk_work_set_counting(work, NULL);

	if (counting)
		counting_free(counting);
}

const struct device_counting_sink sdk_counting_sink = {
	.counts_kernels = counts_kernels,
	.dispatch_select = dispatch_select,
	.dispatch_counted = dispatch_counted,
	.dispatch_not_counted = dispatch_not_counted,
	.device_sample = sdk_device_sample,
	.device_samples_lost = sdk_device_samples_lost,
	.runtime_ready = sdk_counting_runtime_ready,
};

/* ---- on and off ---- */

/* Each backend is told for each of its agents; one that turns up later asks. */
static void dispatches_tell(bool on)
{
	for (uint32_t i = 0; i < sdk_agent_count(); i++) {
		const rocprofiler_agent_v0_t *agent = sdk_agent_at(i);
		const struct device_counting *counting = device_counting_of(agent->id.handle);

		if (counting)
			counting->dispatches(agent->id.handle, on);
	}
}

bool sdk_dispatch_counting_has(const struct sdk_context *context)
{
	return context->dispatch_counting != NULL;
}

rocprofiler_status_t sdk_counting_started(struct sdk_context *context)
{
	uint64_t bit = (uint64_t)1 << atomic_load(&context->bit), none = 0;

	if (context->dispatch_counting) {
		if (!atomic_compare_exchange_strong(&sdk_counting_active, &none, bit))
			return none == bit ? ROCPROFILER_STATUS_SUCCESS
					   : ROCPROFILER_STATUS_ERROR_CONTEXT_CONFLICT;
		dispatches_tell(true);
	}
	return sdk_device_counting_has(context) ? sdk_device_counting_started(context)
						: ROCPROFILER_STATUS_SUCCESS;
}

void sdk_counting_stopped(struct sdk_context *context)
{
	uint64_t bit = (uint64_t)1 << atomic_load(&context->bit);

	if (context->dispatch_counting &&
	    atomic_compare_exchange_strong(&sdk_counting_active, &bit, 0))
		dispatches_tell(false);
	if (sdk_device_counting_has(context))
		sdk_device_counting_stopped(context);
}

void sdk_counting_runtime_ready(void)
{
	/* Its agents have turned up since. */
	if (sdk_counting_contexts())
		dispatches_tell(true);
	sdk_device_counting_runtime_ready();
}

void sdk_counting_forked(void)
{
	for (int i = 0; i < REASONS; i++)
		atomic_store(&not_counted[i], 0);
	atomic_store(&counted_kernels, 0);
	sdk_device_counting_forked();
}

void sdk_counting_report(void)
{
	uint64_t lost = sdk_device_samples_lost_in_all();

	for (int i = COUNTING_OK + 1; i < REASONS; i++) {
		uint64_t count = atomic_load(&not_counted[i]);

		if (count)
			sdk_counters_say("%llu kernels were not counted: %s",
					 (unsigned long long)count,
					 counting_status_text((enum counting_status)i));
	}
	if (lost)
		sdk_counters_say("%llu samples of counters were lost", (unsigned long long)lost);
}

SDK_EXPORT void kymo_counting_totals(uint64_t totals[4])
{
	totals[0] = atomic_load(&counted_kernels);
	totals[1] = atomic_load(&not_counted[COUNTING_FILTERED]);
	totals[2] = 0;
	for (int i = COUNTING_OK + 1; i < REASONS; i++)
		totals[2] += i == COUNTING_FILTERED ? 0 : atomic_load(&not_counted[i]);
	totals[3] = sdk_device_samples_lost_in_all();
}

/* ---- configuration ---- */

static rocprofiler_status_t dispatch_configure(struct sdk_context *context,
					       const struct sdk_dispatch_counting *service)
{
	struct sdk_dispatch_counting *made;

	if (sdk_device_counting_has(context))
		return ROCPROFILER_STATUS_ERROR_AGENT_DISPATCH_CONFLICT;
	if (context->dispatch_counting)
		return ROCPROFILER_STATUS_ERROR_SERVICE_ALREADY_CONFIGURED;
	made = malloc(sizeof(*made));
	if (!made)
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	*made = *service;
	context->dispatch_counting = made;
	sdk_context_configured(context);
	return ROCPROFILER_STATUS_SUCCESS;
}

static rocprofiler_status_t dispatch_configure_locked(struct sdk_context *context,
						      const struct sdk_dispatch_counting *service)
{
	rocprofiler_status_t status;
	int active = 0;

	rocprofiler_context_is_active((rocprofiler_context_id_t){context->id}, &active);
	if (active)
		return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	sdk_keep_loaded((void (*)(void))service->select);
	sdk_keep_loaded((void (*)(void))service->record);
	sdk_counters_lock();
	status = dispatch_configure(context, service);
	sdk_counters_unlock();
	return status;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_configure_buffer_dispatch_counting_service(
	rocprofiler_context_id_t context_id, rocprofiler_buffer_id_t buffer_id,
	rocprofiler_dispatch_counting_service_cb_t callback, void *callback_data_args)
{
	struct sdk_context *context = sdk_context_find(context_id.handle);
	struct sdk_dispatch_counting service = {.select = callback,
						.select_data = callback_data_args,
						.buffer = sdk_buffer_find(buffer_id.handle)};

	if (!callback)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (!context)
		return ROCPROFILER_STATUS_ERROR_CONTEXT_INVALID;
	if (!service.buffer)
		return ROCPROFILER_STATUS_ERROR_BUFFER_NOT_FOUND;
	return dispatch_configure_locked(context, &service);
}

SDK_EXPORT rocprofiler_status_t rocprofiler_configure_callback_dispatch_counting_service(
	rocprofiler_context_id_t context_id,
	rocprofiler_dispatch_counting_service_cb_t dispatch_callback, void *dispatch_callback_args,
	rocprofiler_dispatch_counting_record_cb_t record_callback, void *record_callback_args)
{
	struct sdk_context *context = sdk_context_find(context_id.handle);
	struct sdk_dispatch_counting service = {.select = dispatch_callback,
						.select_data = dispatch_callback_args,
						.record = record_callback,
						.record_data = record_callback_args};

	if (!dispatch_callback || !record_callback)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (!context)
		return ROCPROFILER_STATUS_ERROR_CONTEXT_INVALID;
	return dispatch_configure_locked(context, &service);
}
