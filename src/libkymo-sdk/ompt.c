/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * OpenMP: what its runtime reports (OpenMP 5.2, 19) is told to tools as operations of OMPT. The
 * runtime is ours to listen to when it finds ompt_start_tool() here, or in a tool, which hands over
 * to rocprofiler_ompt_start_tool().
 *
 * What begins and ends is ENTER and EXIT of one event, everything else one event without phase. A
 * scope may end on another thread than it began on (untied tasks) or with nobody interested; so the
 * open ones of a thread are counted by kind, and an end is told only where its begin was.
 */
#include <rocprofiler-sdk/ompt.h>

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/calls.h"
#include "libkymo-sdk/clients.h"
#include "libkymo-sdk/correlation.h"
#include "libkymo-sdk/external.h"
#include "libkymo-sdk/state.h"

/* A scope that somebody wanted when it began. */
struct ompt_scope {
	struct sdk_pooled pooled;
	struct ompt_scope *outer;
	uint32_t depth;
	struct sdk_call call;
};

/* Of a thread; kept by the state that the library has of it, for the thread that comes after. */
struct ompt_thread {
	uint64_t tid;
	uint32_t depths[ROCPROFILER_OMPT_ID_LAST]; /* open ones, wanted or not */
	struct ompt_scope *open;
	struct sdk_pool pool;
};

static atomic_int ompt_initialized, ompt_finalized;

/* What records in buffers have beside operation, times and ids. */
static void ompt_describe(rocprofiler_buffer_tracing_ompt_record_t *record,
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
static void ompt_put(struct sdk_call *call, uint64_t end, const rocprofiler_ompt_args_t *args)
{
	rocprofiler_buffer_tracing_ompt_record_t record = {
		.size = sizeof(record),
		.kind = ROCPROFILER_BUFFER_TRACING_OMPT,
		.operation = call->operation,
		.correlation_id = {.internal = call->id, .ancestor = call->ancestor},
		.start_timestamp = call->start,
		.end_timestamp = end,
		.thread_id = call->thread_id,
	};

	ompt_describe(&record, args);
	for (unsigned i = 0; i < call->seen_count; i++) {
		const struct sdk_seen *seen = &call->seen[i];

		if (!(call->buffer_contexts >> seen->context & 1))
			continue;
		record.correlation_id.external = seen->external;
		sdk_buffer_put_tracing(
			sdk_context_at(seen->context)->buffers[SDK_DOMAIN_OMPT]->buffer,
			record.kind, &record, sizeof(record), end);
	}
	call->buffer_contexts = 0;
}

static struct ompt_thread *ompt_thread_self(void)
{
	struct sdk_thread *thread = sdk_thread_self();
	struct ompt_thread *mine = thread ? thread->ompt : NULL;

	if (thread && !mine) {
		mine = mmap(NULL, sizeof(*mine), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		thread->ompt = mine = mine == MAP_FAILED ? NULL : mine;
	}
	if (mine && mine->tid != thread->tid) {
		/* The thread before it ended within scopes. */
		while (mine->open) {
			struct ompt_scope *scope = mine->open;

			mine->open = scope->outer;
			sdk_pool_give(scope, &mine->pool);
		}
		memset(mine->depths, 0, sizeof(mine->depths));
		mine->tid = thread->tid;
	}
	return mine;
}

static void ompt_begin(int32_t operation, const rocprofiler_ompt_args_t *args)
{
	rocprofiler_callback_tracing_ompt_data_t data = {.size = sizeof(data)};
	struct ompt_thread *mine = ompt_thread_self();
	struct ompt_scope *scope;

	if (!mine)
		return;
	mine->depths[operation]++;
	if (!sdk_wants(SDK_DOMAIN_OMPT, operation))
		return;
	scope = sdk_pool_take(&mine->pool, sizeof(*scope));
	if (!scope)
		return;
	data.args = *args;
	if (!sdk_call_enter_detached(&scope->call, SDK_DOMAIN_OMPT, operation, &data)) {
		sdk_pool_give(scope, &mine->pool);
		return;
	}
	scope->depth = mine->depths[operation];
	scope->outer = mine->open;
	mine->open = scope;
}

static void ompt_end(int32_t operation, const rocprofiler_ompt_args_t *args)
{
	rocprofiler_callback_tracing_ompt_data_t data = {.size = sizeof(data)};
	struct ompt_thread *mine = ompt_thread_self();
	struct ompt_scope **at, *scope;
	uint32_t depth;

	if (!mine || !mine->depths[operation])
		return;
	depth = mine->depths[operation]--;
	for (at = &mine->open; *at; at = &(*at)->outer) {
		if ((*at)->call.operation == operation && (*at)->depth == depth)
			break;
	}
	scope = *at;
	if (!scope)
		return;
	*at = scope->outer;
	data.args = *args;
	ompt_put(&scope->call, sdk_now(), args);
	sdk_call_exit(&scope->call, &data);
	sdk_pool_give(scope, &mine->pool);
}

static void ompt_scope(int32_t operation, ompt_scope_endpoint_t endpoint,
		       const rocprofiler_ompt_args_t *args)
{
	if (endpoint == ompt_scope_begin || endpoint == ompt_scope_beginend)
		ompt_begin(operation, args);
	if (endpoint == ompt_scope_end || endpoint == ompt_scope_beginend)
		ompt_end(operation, args);
}

/* What happens at once. */
static void ompt_event(int32_t operation, const rocprofiler_ompt_args_t *args)
{
	rocprofiler_callback_tracing_ompt_data_t data = {.size = sizeof(data)};
	struct sdk_call call;

	if (!sdk_wants(SDK_DOMAIN_OMPT, operation))
		return;
	data.args = *args;
	if (!sdk_call_instant(&call, SDK_DOMAIN_OMPT, operation, &data))
		return;
	ompt_put(&call, call.start, args);
	sdk_call_instant_end(&call);
}

/* The functions that runtimes call. `args` is filled by position: the members have the types and
 * the order of the parameters. */
#define OMPT_LIST(...) __VA_ARGS__
#define OMPT_EVENT(name, parameters, members)                                                      \
	static void ompt_on_##name parameters                                                      \
	{                                                                                          \
		rocprofiler_ompt_args_t args = {.name = {OMPT_LIST members}};                      \
                                                                                                   \
		ompt_event(ROCPROFILER_OMPT_ID_##name, &args);                                     \
	}
#define OMPT_SCOPE(name, parameters, members)                                                      \
	static void ompt_on_##name parameters                                                      \
	{                                                                                          \
		rocprofiler_ompt_args_t args = {.name = {OMPT_LIST members}};                      \
                                                                                                   \
		ompt_scope(ROCPROFILER_OMPT_ID_##name, endpoint, &args);                           \
	}
#include "libkymo-sdk/ompt_list.h"
#undef OMPT_EVENT
#undef OMPT_SCOPE

static const struct {
	ompt_callbacks_t event;
	ompt_callback_t callback;
} ompt_functions[] = {
#define OMPT_EVENT(name, parameters, members)                                                      \
	{ompt_callback_##name, (ompt_callback_t)ompt_on_##name},
#define OMPT_SCOPE(name, parameters, members)                                                      \
	{ompt_callback_##name, (ompt_callback_t)ompt_on_##name},
#include "libkymo-sdk/ompt_list.h"
#undef OMPT_EVENT
#undef OMPT_SCOPE
};

/* Functions of the runtime that tools may call. */
static void ompt_tell_functions(ompt_function_lookup_t lookup)
{
	rocprofiler_ompt_args_t args;
#define FUNCTION(name) args.callback_functions.ompt_##name = (ompt_##name##_t)lookup("ompt_" #name)

	FUNCTION(enumerate_states);
	FUNCTION(enumerate_mutex_impls);
	FUNCTION(get_thread_data);
	FUNCTION(get_num_places);
	FUNCTION(get_place_proc_ids);
	FUNCTION(get_place_num);
	FUNCTION(get_partition_place_nums);
	FUNCTION(get_proc_id);
	FUNCTION(get_state);
	FUNCTION(get_parallel_info);
	FUNCTION(get_task_info);
	FUNCTION(get_task_memory);
	FUNCTION(get_num_devices);
	FUNCTION(get_num_procs);
	FUNCTION(get_target_info);
	FUNCTION(get_unique_id);
	ompt_event(ROCPROFILER_OMPT_ID_callback_functions, &args);
}

/* 1: the runtime is to go on reporting. What it cannot report it says no to; the rest comes. */
static int ompt_initialize(ompt_function_lookup_t lookup, int initial_device_num,
			   ompt_data_t *tool_data)
{
	ompt_set_callback_t set = (ompt_set_callback_t)lookup("ompt_set_callback");

	(void)initial_device_num;
	(void)tool_data;
	if (!set) {
		sdk_say(SDK_LOG_ERROR, "OpenMP: the runtime has no ompt_set_callback");
		atomic_store(&ompt_initialized, 0);
		return 0;
	}
	for (size_t i = 0; i < sizeof(ompt_functions) / sizeof(ompt_functions[0]); i++)
		set(ompt_functions[i].event, ompt_functions[i].callback);
	atomic_store(&ompt_initialized, 1);
	ompt_tell_functions(lookup);
	return 1;
}

static void ompt_finalize(ompt_data_t *tool_data)
{
	(void)tool_data;
	atomic_store(&ompt_finalized, 1);
}

/* Once: the runtime of the process has one tool. */
SDK_EXPORT ompt_start_tool_result_t *rocprofiler_ompt_start_tool(unsigned int omp_version,
								 const char *runtime_version)
{
	static ompt_start_tool_result_t result = {ompt_initialize, ompt_finalize, {0}};
	int before = 0;

	if (!atomic_compare_exchange_strong(&ompt_initialized, &before, -1))
		return NULL;
	sdk_say(SDK_LOG_INFO, "OpenMP %u: %s", omp_version,
		runtime_version ? runtime_version : "unknown runtime");
	return &result;
}

/* The runtime looks for it in the process. Nobody who wants to know: it goes on looking elsewhere.
 */
ompt_start_tool_result_t *ompt_start_tool(unsigned int omp_version, const char *runtime_version);

SDK_EXPORT ompt_start_tool_result_t *ompt_start_tool(unsigned int omp_version,
						     const char *runtime_version)
{
	if (!sdk_tools_are_asked_for() && sdk_init_status() == 0)
		return NULL;
	sdk_register(NULL);
	for (unsigned i = 0; i < atomic_load(&sdk_client_count); i++) {
		if (atomic_load(&sdk_clients[i].state) == SDK_CLIENT_READY)
			return rocprofiler_ompt_start_tool(omp_version, runtime_version);
	}
	return NULL;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_ompt_is_initialized(int *status)
{
	if (!status)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	*status = atomic_load(&ompt_initialized);
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_ompt_is_finalized(int *status)
{
	if (!status)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	*status = atomic_load(&ompt_finalized);
	return ROCPROFILER_STATUS_SUCCESS;
}
