/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * OpenMP: what its runtime reports (OpenMP 5.2, 19) is reported to tools as operations of OMPT. The
 * runtime is ours to listen to when it finds ompt_start_tool() here, or in a tool, which hands over
 * to rocprofiler_ompt_start_tool().
 *
 * What begins and ends is ENTER and EXIT of one event, everything else one event without phase. A
 * scope may end on another thread than it began on (untied tasks) or with nobody interested; so the
 * open ones of a thread are counted by kind, and an end is reported only where its begin was.
 */
#include <rocprofiler-sdk/ompt.h>

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "common/array.h"
#include "common/loader.h"
#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/calls.h"
#include "libkymo-sdk/correlation.h"
#include "libkymo-sdk/external.h"
#include "libkymo-sdk/runtimes/clients.h"

/* A scope that somebody wanted when it began. */
struct ompt_scope {
	struct sdk_pooled_object_header pooled_object;
	struct ompt_scope *outer;
	uint32_t depth;
	struct sdk_call_state call;
};

/* A thread's open OpenMP regions; kept by the state that the library has of it, for the thread that
 * comes after. */
struct ompt_thread_state {
	uint64_t tid;
	uint32_t open_count_by_operation[ROCPROFILER_OMPT_ID_LAST]; /* open ones, wanted or not */
	struct ompt_scope *open;
	struct sdk_object_pool pool;
};

static atomic_int ompt_initialization_status, ompt_finalization_status;

/* What records in buffers have beside operation, times and ids. */
static void fill_ompt_record_arguments(rocprofiler_buffer_tracing_ompt_record_t *record,
				       const rocprofiler_ompt_args_t *args)
{
	switch (record->operation) {
	case ROCPROFILER_OMPT_ID_target_emi:
		record->target.kind = (int32_t)args->target_emi.kind;
		record->target.device_num = args->target_emi.device_num;
		record->target.task_id =
			args->target_emi.task_data ? args->target_emi.task_data->value : 0;
		record->target.target_id =
			args->target_emi.target_data ? args->target_emi.target_data->value : 0;
		record->target.codeptr_ra = args->target_emi.codeptr_ra;
		break;
	case ROCPROFILER_OMPT_ID_target_data_op_emi:
		record->target_data_op.host_op_id =
			args->target_data_op_emi.host_op_id
				? args->target_data_op_emi.host_op_id->value
				: 0;
		record->target_data_op.optype = (int32_t)args->target_data_op_emi.optype;
		record->target_data_op.src_device_num = args->target_data_op_emi.src_device_num;
		record->target_data_op.dst_device_num = args->target_data_op_emi.dst_device_num;
		record->target_data_op.bytes = args->target_data_op_emi.bytes;
		record->target_data_op.codeptr_ra = args->target_data_op_emi.codeptr_ra;
		break;
	case ROCPROFILER_OMPT_ID_target_submit_emi:
		record->target_kernel.host_op_id =
			args->target_submit_emi.host_op_id
				? args->target_submit_emi.host_op_id->value
				: 0;
		record->target_kernel.requested_num_teams =
			args->target_submit_emi.requested_num_teams;
		break;
	default:
		break;
	}
}

/* OMPT's record is longer than that of calls. */
static void append_ompt_records(struct sdk_call_state *call, uint64_t end,
				const rocprofiler_ompt_args_t *args)
{
	rocprofiler_buffer_tracing_ompt_record_t record = {
		.size = sizeof(record),
		.kind = ROCPROFILER_BUFFER_TRACING_OMPT,
		.operation = call->operation,
		.correlation_id = {.internal = call->id, .ancestor = call->ancestor_id},
		.start_timestamp = call->start,
		.end_timestamp = end,
		.thread_id = call->thread_id,
	};

	fill_ompt_record_arguments(&record, args);
	for (unsigned i = 0; i < call->seen_count; i++) {
		const struct sdk_context_call_data_entry *seen = &call->seen[i];

		if (!(call->buffer_context_bits >> seen->context & 1))
			continue;
		record.correlation_id.external = seen->external_id;
		sdk_buffer_append_tracing_record(sdk_context_get_by_bit(seen->context)
							 ->buffer_services[SDK_DOMAIN_OMPT]
							 ->buffer,
						 record.kind, &record, sizeof(record), end);
	}
	call->buffer_context_bits = 0;
}

static struct ompt_thread_state *get_or_create_ompt_thread_state(void)
{
	struct sdk_thread_state *thread = sdk_thread_get_or_create_own_state();
	struct ompt_thread_state *mine = thread ? thread->ompt_state : NULL;

	if (thread && !mine) {
		mine = mmap(NULL, sizeof(*mine), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		thread->ompt_state = mine = mine == MAP_FAILED ? NULL : mine;
	}
	if (mine && mine->tid != thread->tid) {
		/* The thread before it ended within scopes. */
		while (mine->open) {
			struct ompt_scope *scope = mine->open;

			mine->open = scope->outer;
			sdk_object_pool_return(scope, &mine->pool);
		}
		memset(mine->open_count_by_operation, 0, sizeof(mine->open_count_by_operation));
		mine->tid = thread->tid;
	}
	return mine;
}

static void begin_ompt_scope(int32_t operation, const rocprofiler_ompt_args_t *args)
{
	rocprofiler_callback_tracing_ompt_data_t data = {.size = sizeof(data)};
	struct ompt_thread_state *mine = get_or_create_ompt_thread_state();
	struct ompt_scope *scope;

	if (!mine)
		return;
	mine->open_count_by_operation[operation]++;
	if (!sdk_is_operation_wanted(SDK_DOMAIN_OMPT, operation))
		return;
	scope = sdk_object_pool_take(&mine->pool, sizeof(*scope));
	if (!scope)
		return;
	data.args = *args;
	if (!sdk_call_enter_detached(&scope->call, SDK_DOMAIN_OMPT, operation, &data)) {
		sdk_object_pool_return(scope, &mine->pool);
		return;
	}
	scope->depth = mine->open_count_by_operation[operation];
	scope->outer = mine->open;
	mine->open = scope;
}

static void end_ompt_scope(int32_t operation, const rocprofiler_ompt_args_t *args)
{
	rocprofiler_callback_tracing_ompt_data_t data = {.size = sizeof(data)};
	struct ompt_thread_state *mine = get_or_create_ompt_thread_state();
	struct ompt_scope **at, *scope;
	uint32_t depth;

	if (!mine || !mine->open_count_by_operation[operation])
		return;
	depth = mine->open_count_by_operation[operation]--;
	for (at = &mine->open; *at; at = &(*at)->outer) {
		if ((*at)->call.operation == operation && (*at)->depth == depth)
			break;
	}
	scope = *at;
	if (!scope)
		return;
	*at = scope->outer;
	data.args = *args;
	append_ompt_records(&scope->call, sdk_clock_read_now_ns(), args);
	sdk_call_exit(&scope->call, &data);
	sdk_object_pool_return(scope, &mine->pool);
}

static void report_ompt_scope_endpoint(int32_t operation, ompt_scope_endpoint_t endpoint,
				       const rocprofiler_ompt_args_t *args)
{
	if (endpoint == ompt_scope_begin || endpoint == ompt_scope_beginend)
		begin_ompt_scope(operation, args);
	if (endpoint == ompt_scope_end || endpoint == ompt_scope_beginend)
		end_ompt_scope(operation, args);
}

/* What happens at once. */
static void report_ompt_instant_event(int32_t operation, const rocprofiler_ompt_args_t *args)
{
	rocprofiler_callback_tracing_ompt_data_t data = {.size = sizeof(data)};
	struct sdk_call_state call;

	if (!sdk_is_operation_wanted(SDK_DOMAIN_OMPT, operation))
		return;
	data.args = *args;
	if (!sdk_call_begin_instant_event(&call, SDK_DOMAIN_OMPT, operation, &data))
		return;
	append_ompt_records(&call, call.start, args);
	sdk_call_end_instant_event(&call);
}

/* The functions that runtimes call. `args` is filled by position: the members have the types and
 * the order of the parameters. */
#define OMPT_STRIP_PARENTHESES(...) __VA_ARGS__
#define OMPT_INSTANT_EVENT_ROW(name, parameters, members)                                          \
	static void ompt_on_##name parameters                                                      \
	{                                                                                          \
		rocprofiler_ompt_args_t args = {.name = {OMPT_STRIP_PARENTHESES members}};         \
                                                                                                   \
		report_ompt_instant_event(ROCPROFILER_OMPT_ID_##name, &args);                      \
	}
#define OMPT_SCOPE_EVENT_ROW(name, parameters, members)                                            \
	static void ompt_on_##name parameters                                                      \
	{                                                                                          \
		rocprofiler_ompt_args_t args = {.name = {OMPT_STRIP_PARENTHESES members}};         \
                                                                                                   \
		report_ompt_scope_endpoint(ROCPROFILER_OMPT_ID_##name, endpoint, &args);           \
	}
#include "libkymo-sdk/runtimes/ompt_list.h"
#undef OMPT_INSTANT_EVENT_ROW
#undef OMPT_SCOPE_EVENT_ROW

static const struct {
	ompt_callbacks_t event;
	ompt_callback_t callback;
} ompt_event_callbacks[] = {
#define OMPT_INSTANT_EVENT_ROW(name, parameters, members)                                          \
	{ompt_callback_##name, (ompt_callback_t)ompt_on_##name},
#define OMPT_SCOPE_EVENT_ROW(name, parameters, members)                                            \
	{ompt_callback_##name, (ompt_callback_t)ompt_on_##name},
#include "libkymo-sdk/runtimes/ompt_list.h"
#undef OMPT_INSTANT_EVENT_ROW
#undef OMPT_SCOPE_EVENT_ROW
};

/* Functions of the runtime that tools may call. */
static void report_ompt_runtime_functions(ompt_function_lookup_t lookup)
{
	rocprofiler_ompt_args_t args;
#define LOOK_UP_OMPT_FUNCTION(name)                                                                \
	args.callback_functions.ompt_##name = (ompt_##name##_t)lookup("ompt_" #name)

	LOOK_UP_OMPT_FUNCTION(enumerate_states);
	LOOK_UP_OMPT_FUNCTION(enumerate_mutex_impls);
	LOOK_UP_OMPT_FUNCTION(get_thread_data);
	LOOK_UP_OMPT_FUNCTION(get_num_places);
	LOOK_UP_OMPT_FUNCTION(get_place_proc_ids);
	LOOK_UP_OMPT_FUNCTION(get_place_num);
	LOOK_UP_OMPT_FUNCTION(get_partition_place_nums);
	LOOK_UP_OMPT_FUNCTION(get_proc_id);
	LOOK_UP_OMPT_FUNCTION(get_state);
	LOOK_UP_OMPT_FUNCTION(get_parallel_info);
	LOOK_UP_OMPT_FUNCTION(get_task_info);
	LOOK_UP_OMPT_FUNCTION(get_task_memory);
	LOOK_UP_OMPT_FUNCTION(get_num_devices);
	LOOK_UP_OMPT_FUNCTION(get_num_procs);
	LOOK_UP_OMPT_FUNCTION(get_target_info);
	LOOK_UP_OMPT_FUNCTION(get_unique_id);
	report_ompt_instant_event(ROCPROFILER_OMPT_ID_callback_functions, &args);
}

/* 1: the runtime is to go on reporting. What it cannot report it says no to; the rest comes. */
static int ompt_initialize(ompt_function_lookup_t lookup, int initial_device_num,
			   ompt_data_t *tool_data)
{
	ompt_set_callback_t set = (ompt_set_callback_t)lookup("ompt_set_callback");

	(void)initial_device_num;
	(void)tool_data;
	if (!set) {
		sdk_print_log_line(SDK_LOG_ERROR, "OpenMP: the runtime has no ompt_set_callback");
		atomic_store(&ompt_initialization_status, 0);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(ompt_event_callbacks); i++)
		set(ompt_event_callbacks[i].event, ompt_event_callbacks[i].callback);
	atomic_store(&ompt_initialization_status, 1);
	report_ompt_runtime_functions(lookup);
	return 1;
}

static void ompt_finalize(ompt_data_t *tool_data)
{
	(void)tool_data;
	atomic_store(&ompt_finalization_status, 1);
}

/* Once: the runtime of the process has one tool. */
SDK_EXPORT ompt_start_tool_result_t *rocprofiler_ompt_start_tool(unsigned int omp_version,
								 const char *runtime_version)
{
	static ompt_start_tool_result_t result = {ompt_initialize, ompt_finalize, {0}};
	int before = 0;

	if (!atomic_compare_exchange_strong(&ompt_initialization_status, &before, -1))
		return NULL;
	sdk_print_log_line(SDK_LOG_INFO, "OpenMP %u: %s", omp_version,
			   runtime_version ? runtime_version : "unknown runtime");
	return &result;
}

/* The runtime looks for it in the process. */
ompt_start_tool_result_t *ompt_start_tool(unsigned int omp_version, const char *runtime_version);

/* A runtime calls the first function of the name. Who does not want to be its tool leaves that to
 * the next one, which may be the runtime's own. */
static ompt_start_tool_result_t *ask_next_ompt_tool(unsigned int omp_version,
						    const char *runtime_version)
{
	__typeof__(&ompt_start_tool) next = NULL;
	void *found = loader_find_symbol(LOADER_SCOPE_AFTER_OWN_OBJECT,
					 (const void *)ompt_start_tool, "ompt_start_tool");

	memcpy(&next, &found, sizeof(next));
	return next ? next(omp_version, runtime_version) : NULL;
}

static bool is_any_tool_initialized(void)
{
	if (!sdk_is_any_tool_requested() && sdk_get_init_status() == 0)
		return false;
	sdk_register_tools_once(NULL);
	for (unsigned i = 0; i < atomic_load(&sdk_client_count); i++) {
		if (atomic_load(&sdk_clients[i].state) == SDK_CLIENT_INITIALIZED)
			return true;
	}
	return false;
}

SDK_EXPORT ompt_start_tool_result_t *ompt_start_tool(unsigned int omp_version,
						     const char *runtime_version)
{
	ompt_start_tool_result_t *own =
		is_any_tool_initialized()
			? rocprofiler_ompt_start_tool(omp_version, runtime_version)
			: NULL;

	return own ? own : ask_next_ompt_tool(omp_version, runtime_version);
}

SDK_EXPORT rocprofiler_status_t rocprofiler_ompt_is_initialized(int *status)
{
	if (!status)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	*status = atomic_load(&ompt_initialization_status);
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_ompt_is_finalized(int *status)
{
	if (!status)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	*status = atomic_load(&ompt_finalization_status);
	return ROCPROFILER_STATUS_SUCCESS;
}
