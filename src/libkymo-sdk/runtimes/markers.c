/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The functions of roctx, told as calls of a runtime: its tables get functions of the same types
 * that tell and call the original ones. The layout of the tables is roctx's own (api_trace.h). A
 * process may have several copies of it (a framework brings its own), each with tables of its own:
 * what goes into them are functions that know their copy by its number.
 */
#include <rocprofiler-sdk-roctx/api_trace.h>
#include <stdatomic.h>
#include <string.h>

#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/emit.h"
#include "libkymo-sdk/runtimes/markers.h"
#include "libkymo-sdk/runtimes/runtimes.h"

#define MARKER_FOR_EACH_LIBRARY_COPY(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
_Static_assert(SDK_RUNTIME_INSTANCES_MAX == 8, "a set of functions for each copy");

/* What the tables of a copy had. */
struct roctx_tables_of_library_copy {
	const roctxCoreApiTable_t *table;
	roctxCoreApiTable_t core;
	roctxControlApiTable_t control;
	roctxNameApiTable_t name;
};
static struct roctx_tables_of_library_copy roctx_original_tables_by_copy[SDK_RUNTIME_INSTANCES_MAX];

typedef rocprofiler_callback_tracing_marker_api_data_t marker_callback_data;

#define CORE_API_DOMAIN_AND_OPERATION_ARGS(name)                                                   \
	SDK_DOMAIN_MARKER_CORE, ROCPROFILER_MARKER_CORE_API_ID_##name
#define CONTROL_API_DOMAIN_AND_OPERATION_ARGS(name)                                                \
	SDK_DOMAIN_MARKER_CONTROL, ROCPROFILER_MARKER_CONTROL_API_ID_##name
#define NAME_API_DOMAIN_AND_OPERATION_ARGS(name)                                                   \
	SDK_DOMAIN_MARKER_NAME, ROCPROFILER_MARKER_NAME_API_ID_##name

static void trace_roctx_mark(unsigned copy, const char *message)
{
	marker_callback_data data = {.size = sizeof(data), .args.roctxMarkA.message = message};
	struct sdk_call_state call;
	bool told = sdk_call_enter(&call, CORE_API_DOMAIN_AND_OPERATION_ARGS(roctxMarkA), &data);

	sdk_range_report_mark(message);
	if (roctx_original_tables_by_copy[copy].core.roctxMarkA_fn)
		roctx_original_tables_by_copy[copy].core.roctxMarkA_fn(message);
	if (told)
		sdk_call_exit(&call, &data);
}

static int trace_roctx_push(unsigned copy, const char *message)
{
	const roctxCoreApiTable_t *core = &roctx_original_tables_by_copy[copy].core;
	marker_callback_data data = {.size = sizeof(data), .args.roctxRangePushA.message = message};
	struct sdk_call_state call;
	bool told =
		sdk_call_enter(&call, CORE_API_DOMAIN_AND_OPERATION_ARGS(roctxRangePushA), &data);

	data.retval.int32_t_retval =
		core->roctxRangePushA_fn ? core->roctxRangePushA_fn(message) : 0;
	if (told)
		sdk_call_exit(&call, &data);
	sdk_range_begin_on_thread(message);
	return data.retval.int32_t_retval;
}

static int trace_roctx_pop(unsigned copy)
{
	const roctxCoreApiTable_t *core = &roctx_original_tables_by_copy[copy].core;
	marker_callback_data data = {.size = sizeof(data)};
	struct sdk_call_state call;
	bool told;

	sdk_range_end_on_thread();
	told = sdk_call_enter(&call, CORE_API_DOMAIN_AND_OPERATION_ARGS(roctxRangePop), &data);
	data.retval.int32_t_retval = core->roctxRangePop_fn ? core->roctxRangePop_fn() : 0;
	if (told)
		sdk_call_exit(&call, &data);
	return data.retval.int32_t_retval;
}

/* Each copy counts its ranges from 1. */
static uint64_t roctx_range_id_to_unique_id(unsigned copy, uint64_t id)
{
	return id ^ (uint64_t)copy << 56;
}

/* id: what the range has already; 0: the copy gives it one. */
static roctx_range_id_t trace_roctx_start(unsigned copy, const char *message, uint64_t id)
{
	const roctxCoreApiTable_t *core = &roctx_original_tables_by_copy[copy].core;
	marker_callback_data data = {.size = sizeof(data),
				     .args.roctxRangeStartA.message = message};
	struct sdk_call_state call;
	bool told =
		sdk_call_enter(&call, CORE_API_DOMAIN_AND_OPERATION_ARGS(roctxRangeStartA), &data);

	data.retval.roctx_range_id_t_retval =
		core->roctxRangeStartA_fn && !id ? core->roctxRangeStartA_fn(message) : id;
	if (told)
		sdk_call_exit(&call, &data);
	sdk_range_begin_in_process(
		roctx_range_id_to_unique_id(copy, data.retval.roctx_range_id_t_retval), message);
	return data.retval.roctx_range_id_t_retval;
}

static void trace_roctx_stop(unsigned copy, roctx_range_id_t id)
{
	marker_callback_data data = {.size = sizeof(data), .args.roctxRangeStop.id = id};
	struct sdk_call_state call;
	bool told;

	sdk_range_end_in_process(roctx_range_id_to_unique_id(copy, id));
	told = sdk_call_enter(&call, CORE_API_DOMAIN_AND_OPERATION_ARGS(roctxRangeStop), &data);
	if (roctx_original_tables_by_copy[copy].core.roctxRangeStop_fn)
		roctx_original_tables_by_copy[copy].core.roctxRangeStop_fn(id);
	if (told)
		sdk_call_exit(&call, &data);
}

/* Functions that are reported as calls and nothing else: table, name, parameters, what to keep of
 * them. */
#define MARKER_PLAIN_CALL_LIST(CALL, copy)                                                         \
	CALL(copy, core, CORE_API_DOMAIN_AND_OPERATION_ARGS, roctxGetThreadId,                     \
	     (roctx_thread_id_t * tid), (tid), tid)                                                \
	CALL(copy, control, CONTROL_API_DOMAIN_AND_OPERATION_ARGS, roctxProfilerPause,             \
	     (roctx_thread_id_t tid), (tid), tid)                                                  \
	CALL(copy, control, CONTROL_API_DOMAIN_AND_OPERATION_ARGS, roctxProfilerResume,            \
	     (roctx_thread_id_t tid), (tid), tid)                                                  \
	CALL(copy, name, NAME_API_DOMAIN_AND_OPERATION_ARGS, roctxNameOsThread,                    \
	     (const char *name), (name), name)                                                     \
	CALL(copy, name, NAME_API_DOMAIN_AND_OPERATION_ARGS, roctxNameHsaAgent,                    \
	     (const char *name, const struct hsa_agent_s *agent), (name, agent), name)             \
	CALL(copy, name, NAME_API_DOMAIN_AND_OPERATION_ARGS, roctxNameHipDevice,                   \
	     (const char *name, int device_id), (name, device_id), name)                           \
	CALL(copy, name, NAME_API_DOMAIN_AND_OPERATION_ARGS, roctxNameHipStream,                   \
	     (const char *name, const struct ihipStream_t *stream), (name, stream), name)

#define MARKER_STORE_ARG2_roctxGetThreadId(data)
#define MARKER_STORE_ARG2_roctxProfilerPause(data)
#define MARKER_STORE_ARG2_roctxProfilerResume(data)
#define MARKER_STORE_ARG2_roctxNameOsThread(data)
#define MARKER_STORE_ARG2_roctxNameHsaAgent(data) data.args.roctxNameHsaAgent.agent = agent;
#define MARKER_STORE_ARG2_roctxNameHipDevice(data)                                                 \
	data.args.roctxNameHipDevice.device_id = device_id;
#define MARKER_STORE_ARG2_roctxNameHipStream(data) data.args.roctxNameHipStream.stream = stream;

#define MARKER_DEFINE_WRAPPER(copy, table, ids, function, parameters, arguments, kept)             \
	static int marker_##function##_##copy parameters                                           \
	{                                                                                          \
		marker_callback_data data = {.size = sizeof(data), .args.function.kept = kept};    \
		struct sdk_call_state call;                                                        \
		bool told;                                                                         \
                                                                                                   \
		MARKER_STORE_ARG2_##function(data);                                                \
		told = sdk_call_enter(&call, ids(function), &data);                                \
		data.retval.int32_t_retval =                                                       \
			roctx_original_tables_by_copy[copy].table.function##_fn arguments;         \
		if (told)                                                                          \
			sdk_call_exit(&call, &data);                                               \
		return data.retval.int32_t_retval;                                                 \
	}

#define MARKER_DEFINE_WRAPPERS_OF_LIBRARY_COPY(copy)                                               \
	MARKER_PLAIN_CALL_LIST(MARKER_DEFINE_WRAPPER, copy)                                        \
	static void marker_roctxMarkA_##copy(const char *message)                                  \
	{                                                                                          \
		trace_roctx_mark(copy, message);                                                   \
	}                                                                                          \
	static int marker_roctxRangePushA_##copy(const char *message)                              \
	{                                                                                          \
		return trace_roctx_push(copy, message);                                            \
	}                                                                                          \
	static int marker_roctxRangePop_##copy(void)                                               \
	{                                                                                          \
		return trace_roctx_pop(copy);                                                      \
	}                                                                                          \
	static roctx_range_id_t marker_roctxRangeStartA_##copy(const char *message)                \
	{                                                                                          \
		return trace_roctx_start(copy, message, 0);                                        \
	}                                                                                          \
	static void marker_roctxRangeStop_##copy(roctx_range_id_t id)                              \
	{                                                                                          \
		trace_roctx_stop(copy, id);                                                        \
	}
MARKER_FOR_EACH_LIBRARY_COPY(MARKER_DEFINE_WRAPPERS_OF_LIBRARY_COPY)

/* What goes into a copy's tables. */
#define MARKER_WRAPPER_MEMBER_INITIALIZER(copy, table, ids, function, parameters, arguments, kept) \
	.table.function##_fn = marker_##function##_##copy,
#define MARKER_WRAPPER_TABLES_INITIALIZER(copy)                                                    \
	{MARKER_PLAIN_CALL_LIST(MARKER_WRAPPER_MEMBER_INITIALIZER, copy).core.roctxMarkA_fn =      \
		 marker_roctxMarkA_##copy,                                                         \
	 .core.roctxRangePushA_fn = marker_roctxRangePushA_##copy,                                 \
	 .core.roctxRangePop_fn = marker_roctxRangePop_##copy,                                     \
	 .core.roctxRangeStartA_fn = marker_roctxRangeStartA_##copy,                               \
	 .core.roctxRangeStop_fn = marker_roctxRangeStop_##copy},
static const struct roctx_tables_of_library_copy
	roctx_replacement_tables_by_copy[SDK_RUNTIME_INSTANCES_MAX] = {
		MARKER_FOR_EACH_LIBRARY_COPY(MARKER_WRAPPER_TABLES_INITIALIZER)};

/* A table of an older library may end earlier. */
static bool table_has_member(const void *table, size_t offset)
{
	uint64_t size;

	memcpy(&size, table, sizeof(size));
	return offset + sizeof(void *) <= size;
}

#define WRAP_TABLE_FUNCTION(table, original, replacement, type, function)                          \
	do {                                                                                       \
		if (table_has_member(table, offsetof(type, function##_fn)) &&                      \
		    (table)->function##_fn) {                                                      \
			(original).function##_fn = (table)->function##_fn;                         \
			(table)->function##_fn = (replacement).function##_fn;                      \
		}                                                                                  \
	} while (0);

#define WRAP_PLAIN_MARKER_CALL(number, part, ids, function, parameters, arguments, kept)           \
	WRAP_TABLE_FUNCTION(part, copy->part, set->part, __typeof__(*part), function)

static void wrap_marker_tables_of_library_copy(struct roctx_tables_of_library_copy *copy,
					       const struct roctx_tables_of_library_copy *set,
					       roctxCoreApiTable_t *core,
					       roctxControlApiTable_t *control,
					       roctxNameApiTable_t *name)
{
	copy->table = core;
	WRAP_TABLE_FUNCTION(core, copy->core, set->core, roctxCoreApiTable_t, roctxMarkA)
	WRAP_TABLE_FUNCTION(core, copy->core, set->core, roctxCoreApiTable_t, roctxRangePushA)
	WRAP_TABLE_FUNCTION(core, copy->core, set->core, roctxCoreApiTable_t, roctxRangePop)
	WRAP_TABLE_FUNCTION(core, copy->core, set->core, roctxCoreApiTable_t, roctxRangeStartA)
	WRAP_TABLE_FUNCTION(core, copy->core, set->core, roctxCoreApiTable_t, roctxRangeStop)
	MARKER_PLAIN_CALL_LIST(WRAP_PLAIN_MARKER_CALL, 0)
}

void sdk_marker_tables_wrap(uint64_t number, void **tables, uint64_t count)
{
	static atomic_flag wrapping = ATOMIC_FLAG_INIT;
	bool is_known = number >= SDK_RUNTIME_INSTANCES_MAX;

	if (count < 3 || !tables[0] || !tables[1] || !tables[2]) {
		sdk_print_log_line(SDK_LOG_WARNING,
				   "a marker library without its tables is not traced");
		return;
	}
	while (atomic_flag_test_and_set(&wrapping)) {
	}
	/* One that announces itself again has our functions in its tables. */
	for (unsigned i = 0; i < SDK_RUNTIME_INSTANCES_MAX && !is_known; i++)
		is_known = roctx_original_tables_by_copy[i].table == tables[0];
	if (!is_known)
		wrap_marker_tables_of_library_copy(&roctx_original_tables_by_copy[number],
						   &roctx_replacement_tables_by_copy[number],
						   tables[0], tables[1], tables[2]);
	atomic_flag_clear(&wrapping);
}

/* ---- markers of another library ---- */

static _Atomic uint64_t next_kymo_range_id = (uint64_t)1 << 62; /* past any of roctx's */

void sdk_marker_report_mark(const char *message)
{
	marker_callback_data data = {.size = sizeof(data), .args.roctxMarkA.message = message};
	struct sdk_call_state call;

	if (sdk_call_enter(&call, CORE_API_DOMAIN_AND_OPERATION_ARGS(roctxMarkA), &data))
		sdk_call_exit(&call, &data);
	sdk_range_report_mark(message);
}

void sdk_marker_report_range_push(const char *message)
{
	marker_callback_data data = {.size = sizeof(data), .args.roctxRangePushA.message = message};
	struct sdk_call_state call;

	if (sdk_call_enter(&call, CORE_API_DOMAIN_AND_OPERATION_ARGS(roctxRangePushA), &data))
		sdk_call_exit(&call, &data);
	sdk_range_begin_on_thread(message);
}

void sdk_marker_report_range_pop(void)
{
	marker_callback_data data = {.size = sizeof(data)};
	struct sdk_call_state call;

	sdk_range_end_on_thread();
	if (sdk_call_enter(&call, CORE_API_DOMAIN_AND_OPERATION_ARGS(roctxRangePop), &data))
		sdk_call_exit(&call, &data);
}

uint64_t sdk_marker_report_range_start(const char *message)
{
	return trace_roctx_start(0, message, atomic_fetch_add(&next_kymo_range_id, 1));
}

void sdk_marker_report_range_stop(uint64_t id)
{
	marker_callback_data data = {.size = sizeof(data), .args.roctxRangeStop.id = id};
	struct sdk_call_state call;

	sdk_range_end_in_process(id);
	if (sdk_call_enter(&call, CORE_API_DOMAIN_AND_OPERATION_ARGS(roctxRangeStop), &data))
		sdk_call_exit(&call, &data);
}
