/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counting kernel by kernel. A tool's function says for each kernel, on the thread that enqueues
 * it, what is to be counted; when the backend hands over the values, on any thread, they become
 * records. One context at a time counts kernels. A kernel that was to be counted and was not is
 * reported once for each reason, and counted for the report at the end.
 */
#include <stdlib.h>
#include <string.h>

#include "libkymo-sdk/agents.h"
#include "libkymo-sdk/base/keep_loaded.h"
#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/calls.h"
#include "libkymo-sdk/counters/counters.h"

#define NOT_COUNTED_REASON_COUNT (COUNTING_NOT_FINISHED + 1)

struct sdk_dispatch_counting_service {
	rocprofiler_dispatch_counting_service_cb_t select_config_callback;
	void *select_config_callback_data;
	struct sdk_buffer *buffer; /* NULL: `record` instead */
	rocprofiler_dispatch_counting_record_cb_t record_callback;
	void *record_callback_data;
};

/* A kernel that is being counted. */
struct kernel_counting_state {
	struct sdk_counter_config *config;
	struct sdk_context *context;
	rocprofiler_user_data_t user_data;
};

static _Atomic uint64_t uncounted_kernel_count_by_reason[NOT_COUNTED_REASON_COUNT],
	counted_kernel_count;

/* ---- selecting ---- */

static rocprofiler_dispatch_counting_service_data_t
build_dispatch_service_data(const struct sdk_counted_dispatch_info *facts, uint64_t start,
			    uint64_t end)
{
	return (rocprofiler_dispatch_counting_service_data_t){
		.size = sizeof(rocprofiler_dispatch_counting_service_data_t),
		.correlation_id = facts->correlation_id,
		.start_timestamp = start,
		.end_timestamp = end,
		.dispatch_info = facts->dispatch_info,
	};
}

static void count_and_report_uncounted_kernel(enum counting_status why,
					      const struct sdk_counted_dispatch_info *facts,
					      const char *text)
{
	uint64_t before = atomic_fetch_add_explicit(&uncounted_kernel_count_by_reason[why], 1,
						    memory_order_relaxed);

	/* What the tool's user asked for is no problem. */
	if (!before && why != COUNTING_FILTERED)
		sdk_counters_report_problem_line(
			"kernel %llu (dispatch %llu) is not counted: %s%s%s",
			(unsigned long long)facts->dispatch_info.kernel_id,
			(unsigned long long)facts->dispatch_info.dispatch_id,
			counting_status_to_text(why), text && text[0] ? ": " : "",
			text ? text : "");
}

/* What the tool wants; NULL: nothing. */
static struct sdk_counter_config *
choose_counter_config_of_kernel(struct sdk_context *context,
				const struct sdk_counted_dispatch_info *facts,
				rocprofiler_user_data_t *user_data)
{
	const struct sdk_dispatch_counting_service *service = context->dispatch_counting_service;
	rocprofiler_counter_config_id_t id = {0};
	struct sdk_counter_config *config;
	uint32_t before;

	if (!sdk_tool_callback_guard_try_enter(context, &before))
		return NULL;
	service->select_config_callback(build_dispatch_service_data(facts, 0, 0), &id, user_data,
					service->select_config_callback_data);
	sdk_tool_callback_guard_leave(before);
	if (!id.handle)
		return NULL;
	config = sdk_counter_config_acquire_by_id(id.handle);
	if (!config) {
		count_and_report_uncounted_kernel(COUNTING_FAILED, facts,
						  "the tool names a config that does not exist");
		return NULL;
	}
	if (sdk_counter_config_get_agent_id(config) == facts->dispatch_info.agent_id.handle &&
	    (sdk_counter_config_get_counting_ways(config) & COUNTING_BY_DISPATCH))
		return config;
	if (sdk_counter_config_get_agent_id(config) == facts->dispatch_info.agent_id.handle)
		count_and_report_uncounted_kernel(
			COUNTING_NOT_SUPPORTED, facts,
			"its counters count a device over time, not single kernels");
	else
		count_and_report_uncounted_kernel(COUNTING_NO_SUCH_EVENT, facts,
						  "the config is for another agent");
	sdk_counter_config_release_reference(config);
	return NULL;
}

static bool is_any_context_counting_kernels(device_handle agent)
{
	(void)agent;
	return sdk_contexts_get_counting_bits() != 0;
}

static void *choose_counters_of_dispatch(device_handle kernel,
					 const struct device_kernel_launch *told)
{
	struct sdk_device_work *work =
		(struct sdk_device_work *)(uintptr_t)kernel; // NOLINT: made of a pointer
	uint64_t contexts = sdk_contexts_get_counting_bits();
	struct sdk_counted_dispatch_info facts;
	struct kernel_counting_state *counting;
	struct sdk_context *context;

	if (!work || !contexts)
		return NULL;
	context = sdk_context_get_by_bit((unsigned)__builtin_ctzll(contexts));
	if (!sdk_work_copy_counted_dispatch_info(work, (unsigned)__builtin_ctzll(contexts), &facts))
		return NULL;
	if (!facts.dispatch_info.agent_id.handle && told) {
		facts.dispatch_info.agent_id.handle = told->agent;
		facts.dispatch_info.kernel_id = told->symbol;
		facts.dispatch_info.queue_id.handle = told->queue;
	}
	counting = calloc(1, sizeof(*counting));
	if (!counting) {
		count_and_report_uncounted_kernel(COUNTING_NO_MEMORY, &facts, NULL);
		return NULL;
	}
	counting->context = context;
	counting->config = choose_counter_config_of_kernel(context, &facts, &counting->user_data);
	if (!counting->config) {
		free(counting);
		return NULL;
	}
	sdk_work_exchange_counting_state(work, counting);
	/* NULL where it is nothing but properties of the agent: those are known when it ends. */
	return sdk_counter_config_get_backend_event_set(counting->config);
}

/* ---- what comes of it ---- */

static void append_kernel_counter_records(const struct sdk_dispatch_counting_service *service,
					  struct sdk_counter_evaluation_memory *counted,
					  const rocprofiler_dispatch_counting_service_data_t *data,
					  size_t count)
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
	sdk_buffer_append_records(service->buffer, counted->list, (uint32_t)count + 1,
				  sdk_clock_read_now_ns());
}

static void deliver_kernel_counter_records(const struct kernel_counting_state *counting,
					   struct sdk_counter_evaluation_memory *counted,
					   const rocprofiler_dispatch_counting_service_data_t *data)
{
	const struct sdk_dispatch_counting_service *service =
		counting->context->dispatch_counting_service;
	size_t count = sdk_counter_config_get_record_count(counting->config);
	uint32_t before;

	if (service->buffer) {
		append_kernel_counter_records(service, counted, data, count);
	} else if (sdk_tool_callback_guard_try_enter(counting->context, &before)) {
		service->record_callback(*data, counted->records, count, counting->user_data,
					 service->record_callback_data);
		sdk_tool_callback_guard_leave(before);
	}
}

/* Takes the counting away from the work. NULL: it is not counted. */
static struct kernel_counting_state *
take_counting_state_from_work(struct sdk_device_work *work, struct sdk_counted_dispatch_info *facts)
{
	struct kernel_counting_state *counting =
		work ? sdk_work_exchange_counting_state(work, NULL) : NULL;

	if (counting)
		sdk_work_copy_counted_dispatch_info(
			work, (unsigned)atomic_load(&counting->context->bit_index), facts);
	return counting;
}

static void free_kernel_counting_state(struct kernel_counting_state *counting)
{
	sdk_counter_config_release_reference(counting->config);
	free(counting);
}

static void deliver_kernel_counter_values(const struct kernel_counting_state *counting,
					  const struct sdk_counted_dispatch_info *facts,
					  const double *values, size_t count, uint64_t start,
					  uint64_t end)
{
	struct sdk_counter_evaluation_memory *counted =
		sdk_counter_config_take_evaluation_memory(counting->config);
	rocprofiler_dispatch_counting_service_data_t data =
		build_dispatch_service_data(facts, start, end);

	if (!counted || count != sdk_counter_config_get_value_count(counting->config)) {
		count_and_report_uncounted_kernel(counted ? COUNTING_FAILED : COUNTING_NO_MEMORY,
						  facts,
						  counted ? "not all values are there" : NULL);
	} else {
		sdk_counter_config_compute_records(
			counted, values, facts->dispatch_info.dispatch_id, counting->user_data);
		atomic_fetch_add_explicit(&counted_kernel_count, 1, memory_order_relaxed);
		deliver_kernel_counter_records(counting, counted, &data);
	}
	if (counted)
		sdk_counter_config_return_evaluation_memory(counted);
}

static void handle_counted_dispatch(device_handle kernel, const double *values, size_t count,
				    uint64_t start, uint64_t end)
{
	struct sdk_device_work *work =
		(struct sdk_device_work *)(uintptr_t)kernel; // NOLINT: made of a pointer
	struct sdk_counted_dispatch_info facts;
	struct kernel_counting_state *counting = take_counting_state_from_work(work, &facts);

	if (!counting)
		return;
	sdk_work_clamp_times(work, &start, &end);
	deliver_kernel_counter_values(counting, &facts, values, count, start, end);
	free_kernel_counting_state(counting);
}

static void handle_uncounted_dispatch(device_handle kernel, enum counting_status why,
				      const char *text)
{
	struct sdk_device_work *work =
		(struct sdk_device_work *)(uintptr_t)kernel; // NOLINT: made of a pointer
	struct sdk_counted_dispatch_info facts;
	struct kernel_counting_state *counting = take_counting_state_from_work(work, &facts);

	if (!counting)
		return;
	count_and_report_uncounted_kernel(
		(unsigned)why < NOT_COUNTED_REASON_COUNT ? why : COUNTING_FAILED, &facts, text);
	free_kernel_counting_state(counting);
}

void sdk_counting_copy_state_to_work(struct sdk_device_work *work, struct sdk_device_work *again)
{
	const struct kernel_counting_state *counting = sdk_work_get_counting_state(work);
	struct kernel_counting_state *copy = counting ? malloc(sizeof(*copy)) : NULL;

	if (copy) {
		*copy = *counting;
		sdk_counter_config_add_reference(copy->config);
	}
	sdk_work_exchange_counting_state(again, copy);
}

void sdk_counting_finish_for_completed_work(struct sdk_device_work *work, uint64_t start,
					    uint64_t end)
{
	struct sdk_counted_dispatch_info facts;
	struct kernel_counting_state *counting = take_counting_state_from_work(work, &facts);

	if (!counting)
		return;
	if (!sdk_counter_config_get_backend_event_set(counting->config) && start)
		deliver_kernel_counter_values(counting, &facts, NULL, 0, start, end);
	else
		count_and_report_uncounted_kernel(COUNTING_NOT_FINISHED, &facts, NULL);
	free_kernel_counting_state(counting);
}

void sdk_counting_free_state_of_work(struct sdk_device_work *work)
{
	struct kernel_counting_state *counting = sdk_work_exchange_counting_state(work, NULL);

	if (counting)
		free_kernel_counting_state(counting);
}

const struct device_counting_sink sdk_counting_sink = {
	.counts_kernels = is_any_context_counting_kernels,
	.dispatch_select_set = choose_counters_of_dispatch,
	.dispatch_counted = handle_counted_dispatch,
	.dispatch_not_counted = handle_uncounted_dispatch,
	.device_sample_taken = sdk_device_report_counter_sample,
	.device_samples_lost = sdk_device_counting_add_lost_sample_count,
	.runtime_ready = sdk_counting_handle_runtime_ready,
};

/* ---- on and off ---- */

/* Each backend is called for each of its agents; one that turns up later asks. */
static void switch_all_backends_dispatch_counting(bool on)
{
	for (uint32_t i = 0; i < sdk_agents_get_count(); i++) {
		const rocprofiler_agent_v0_t *agent = sdk_agent_get_by_number(i);
		const struct device_counting_backend *counting =
			counting_find_backend_of_agent(agent->id.handle);

		if (counting)
			counting->dispatch_counting_switch(agent->id.handle, on);
	}
}

bool sdk_context_has_dispatch_counting(const struct sdk_context *context)
{
	return context->dispatch_counting_service != NULL;
}

static rocprofiler_status_t start_context_counting(struct sdk_context *context)
{
	uint64_t bit = (uint64_t)1 << atomic_load(&context->bit_index), none = 0;

	if (context->dispatch_counting_service) {
		if (!atomic_compare_exchange_strong(&sdk_counting_context_bits, &none, bit))
			return none == bit ? ROCPROFILER_STATUS_SUCCESS
					   : ROCPROFILER_STATUS_ERROR_CONTEXT_CONFLICT;
		switch_all_backends_dispatch_counting(true);
	}
	return sdk_context_has_device_counting(context) ? sdk_device_counting_start_context(context)
							: ROCPROFILER_STATUS_SUCCESS;
}

static void stop_context_counting(struct sdk_context *context)
{
	uint64_t bit = (uint64_t)1 << atomic_load(&context->bit_index);

	if (context->dispatch_counting_service &&
	    atomic_compare_exchange_strong(&sdk_counting_context_bits, &bit, 0))
		switch_all_backends_dispatch_counting(false);
	if (sdk_context_has_device_counting(context))
		sdk_device_counting_stop_context(context);
}

void sdk_counting_register_callbacks(void)
{
	static const struct sdk_counting_callbacks services = {.started = start_context_counting,
							       .stopped = stop_context_counting};

	sdk_set_counting_callbacks_of_contexts(&services);
}

void sdk_counting_handle_runtime_ready(void)
{
	/* Its agents have turned up since. */
	if (sdk_contexts_get_counting_bits())
		switch_all_backends_dispatch_counting(true);
	sdk_device_counting_start_all_waiting();
}

void sdk_counting_reset_after_fork(void)
{
	for (int i = 0; i < NOT_COUNTED_REASON_COUNT; i++)
		atomic_store(&uncounted_kernel_count_by_reason[i], 0);
	atomic_store(&counted_kernel_count, 0);
	sdk_device_counting_reset_after_fork();
}

void sdk_counting_report_losses(void)
{
	uint64_t lost = sdk_device_counting_get_lost_sample_count();

	for (int i = COUNTING_OK + 1; i < NOT_COUNTED_REASON_COUNT; i++) {
		uint64_t count = atomic_load(&uncounted_kernel_count_by_reason[i]);

		if (count)
			sdk_counters_report_problem_line(
				"%llu kernels were not counted: %s", (unsigned long long)count,
				counting_status_to_text((enum counting_status)i));
	}
	if (lost)
		sdk_counters_report_problem_line("%llu samples of counters were lost",
						 (unsigned long long)lost);
}

SDK_EXPORT void kymo_counting_totals(uint64_t totals[4])
{
	totals[0] = atomic_load(&counted_kernel_count);
	totals[1] = atomic_load(&uncounted_kernel_count_by_reason[COUNTING_FILTERED]);
	totals[2] = 0;
	for (int i = COUNTING_OK + 1; i < NOT_COUNTED_REASON_COUNT; i++)
		totals[2] += i == COUNTING_FILTERED
				     ? 0
				     : atomic_load(&uncounted_kernel_count_by_reason[i]);
	totals[3] = sdk_device_counting_get_lost_sample_count();
}

/* ---- configuration ---- */

static rocprofiler_status_t
add_dispatch_counting_service(struct sdk_context *context,
			      const struct sdk_dispatch_counting_service *service)
{
	struct sdk_dispatch_counting_service *made;

	if (sdk_context_has_device_counting(context))
		return ROCPROFILER_STATUS_ERROR_AGENT_DISPATCH_CONFLICT;
	if (context->dispatch_counting_service)
		return ROCPROFILER_STATUS_ERROR_SERVICE_ALREADY_CONFIGURED;
	made = malloc(sizeof(*made));
	if (!made)
		return ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
	*made = *service;
	context->dispatch_counting_service = made;
	sdk_context_publish_services(context);
	return ROCPROFILER_STATUS_SUCCESS;
}

static rocprofiler_status_t
check_and_add_dispatch_counting(struct sdk_context *context,
				const struct sdk_dispatch_counting_service *service)
{
	rocprofiler_status_t status;
	int active = 0;

	rocprofiler_context_is_active((rocprofiler_context_id_t){context->id}, &active);
	if (active)
		return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	sdk_keep_library_of_function_loaded((void (*)(void))service->select_config_callback);
	sdk_keep_library_of_function_loaded((void (*)(void))service->record_callback);
	sdk_counters_acquire_lock();
	status = add_dispatch_counting_service(context, service);
	sdk_counters_release_lock();
	return status;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_configure_buffer_dispatch_counting_service(
	rocprofiler_context_id_t context_id, rocprofiler_buffer_id_t buffer_id,
	rocprofiler_dispatch_counting_service_cb_t callback, void *callback_data_args)
{
	struct sdk_context *context = sdk_context_find_by_id(context_id.handle);
	struct sdk_dispatch_counting_service service = {
		.select_config_callback = callback,
		.select_config_callback_data = callback_data_args,
		.buffer = sdk_buffer_find_by_id(buffer_id.handle)};

	if (!callback)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (!context)
		return ROCPROFILER_STATUS_ERROR_CONTEXT_INVALID;
	if (!service.buffer)
		return ROCPROFILER_STATUS_ERROR_BUFFER_NOT_FOUND;
	return check_and_add_dispatch_counting(context, &service);
}

SDK_EXPORT rocprofiler_status_t rocprofiler_configure_callback_dispatch_counting_service(
	rocprofiler_context_id_t context_id,
	rocprofiler_dispatch_counting_service_cb_t dispatch_callback, void *dispatch_callback_args,
	rocprofiler_dispatch_counting_record_cb_t record_callback, void *record_callback_args)
{
	struct sdk_context *context = sdk_context_find_by_id(context_id.handle);
	struct sdk_dispatch_counting_service service = {
		.select_config_callback = dispatch_callback,
		.select_config_callback_data = dispatch_callback_args,
		.record_callback = record_callback,
		.record_callback_data = record_callback_args};

	if (!dispatch_callback || !record_callback)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	if (!context)
		return ROCPROFILER_STATUS_ERROR_CONTEXT_INVALID;
	return check_and_add_dispatch_counting(context, &service);
}
