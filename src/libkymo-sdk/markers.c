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

#include "libkymo-sdk/emit.h"
#include "libkymo-sdk/markers.h"
#include "libkymo-sdk/runtimes.h"
#include "libkymo-sdk/state.h"

#define MARKER_COPIES(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
_Static_assert(SDK_RUNTIME_INSTANCES == 8, "a set of functions for each copy");

/* What the tables of a copy had. */
struct marker_copy {
	const roctxCoreApiTable_t *table;
	roctxCoreApiTable_t core;
	roctxControlApiTable_t control;
	roctxNameApiTable_t name;
};
static struct marker_copy marker_copies[SDK_RUNTIME_INSTANCES];

typedef rocprofiler_callback_tracing_marker_api_data_t marker_data;

#define CORE(name)    SDK_DOMAIN_MARKER_CORE, ROCPROFILER_MARKER_CORE_API_ID_##name
#define CONTROL(name) SDK_DOMAIN_MARKER_CONTROL, ROCPROFILER_MARKER_CONTROL_API_ID_##name
#define NAME(name)    SDK_DOMAIN_MARKER_NAME, ROCPROFILER_MARKER_NAME_API_ID_##name

static void marker_mark(unsigned copy, const char *message)
{
	marker_data data = {.size = sizeof(data), .args.roctxMarkA.message = message};
	struct sdk_call call;
	bool told = sdk_call_enter(&call, CORE(roctxMarkA), &data);

	sdk_range_mark(message);
	if (marker_copies[copy].core.roctxMarkA_fn)
		marker_copies[copy].core.roctxMarkA_fn(message);
	if (told)
		sdk_call_exit(&call, &data);
}

static int marker_push(unsigned copy, const char *message)
{
	const roctxCoreApiTable_t *core = &marker_copies[copy].core;
	marker_data data = {.size = sizeof(data), .args.roctxRangePushA.message = message};
	struct sdk_call call;
	bool told = sdk_call_enter(&call, CORE(roctxRangePushA), &data);

	data.retval.int32_t_retval =
		core->roctxRangePushA_fn ? core->roctxRangePushA_fn(message) : 0;
	if (told)
		sdk_call_exit(&call, &data);
	sdk_range_push(message);
	return data.retval.int32_t_retval;
}

static int marker_pop(unsigned copy)
{
	const roctxCoreApiTable_t *core = &marker_copies[copy].core;
	marker_data data = {.size = sizeof(data)};
	struct sdk_call call;
	bool told;

	sdk_range_pop();
	told = sdk_call_enter(&call, CORE(roctxRangePop), &data);
	data.retval.int32_t_retval = core->roctxRangePop_fn ? core->roctxRangePop_fn() : 0;
	if (told)
		sdk_call_exit(&call, &data);
	return data.retval.int32_t_retval;
}

/* Each copy counts its ranges from 1. */
static uint64_t marker_range(unsigned copy, uint64_t id)
{
	return id ^ (uint64_t)copy << 56;
}

/* id: what the range has already; 0: the copy gives it one. */
static roctx_range_id_t marker_start(unsigned copy, const char *message, uint64_t id)
{
	const roctxCoreApiTable_t *core = &marker_copies[copy].core;
	marker_data data = {.size = sizeof(data), .args.roctxRangeStartA.message = message};
	struct sdk_call call;
	bool told = sdk_call_enter(&call, CORE(roctxRangeStartA), &data);

	data.retval.roctx_range_id_t_retval =
		core->roctxRangeStartA_fn && !id ? core->roctxRangeStartA_fn(message) : id;
	if (told)
		sdk_call_exit(&call, &data);
	sdk_range_start(marker_range(copy, data.retval.roctx_range_id_t_retval), message);
	return data.retval.roctx_range_id_t_retval;
}

static void marker_stop(unsigned copy, roctx_range_id_t id)
{
	marker_data data = {.size = sizeof(data), .args.roctxRangeStop.id = id};
	struct sdk_call call;
	bool told;

	sdk_range_stop(marker_range(copy, id));
	told = sdk_call_enter(&call, CORE(roctxRangeStop), &data);
	if (marker_copies[copy].core.roctxRangeStop_fn)
		marker_copies[copy].core.roctxRangeStop_fn(id);
	if (told)
		sdk_call_exit(&call, &data);
}

/* Functions that are told as calls and nothing else: table, name, parameters, what to keep of them.
 */
#define MARKER_CALLS(CALL, copy)                                                                   \
	CALL(copy, core, CORE, roctxGetThreadId, (roctx_thread_id_t * tid), (tid), tid)            \
	CALL(copy, control, CONTROL, roctxProfilerPause, (roctx_thread_id_t tid), (tid), tid)      \
	CALL(copy, control, CONTROL, roctxProfilerResume, (roctx_thread_id_t tid), (tid), tid)     \
	CALL(copy, name, NAME, roctxNameOsThread, (const char *name), (name), name)                \
	CALL(copy, name, NAME, roctxNameHsaAgent,                                                  \
	     (const char *name, const struct hsa_agent_s *agent), (name, agent), name)             \
	CALL(copy, name, NAME, roctxNameHipDevice, (const char *name, int device_id),              \
	     (name, device_id), name)                                                              \
	CALL(copy, name, NAME, roctxNameHipStream,                                                 \
	     (const char *name, const struct ihipStream_t *stream), (name, stream), name)

#define MARKER_SECOND_roctxGetThreadId(data)
#define MARKER_SECOND_roctxProfilerPause(data)
#define MARKER_SECOND_roctxProfilerResume(data)
#define MARKER_SECOND_roctxNameOsThread(data)
#define MARKER_SECOND_roctxNameHsaAgent(data)  data.args.roctxNameHsaAgent.agent = agent;
#define MARKER_SECOND_roctxNameHipDevice(data) data.args.roctxNameHipDevice.device_id = device_id;
#define MARKER_SECOND_roctxNameHipStream(data) data.args.roctxNameHipStream.stream = stream;

#define MARKER_FUNCTION(copy, table, ids, function, parameters, arguments, kept)                   \
	static int marker_##function##_##copy parameters                                           \
	{                                                                                          \
		marker_data data = {.size = sizeof(data), .args.function.kept = kept};             \
		struct sdk_call call;                                                              \
		bool told;                                                                         \
                                                                                                   \
		MARKER_SECOND_##function(data);                                                    \
		told = sdk_call_enter(&call, ids(function), &data);                                \
		data.retval.int32_t_retval = marker_copies[copy].table.function##_fn arguments;    \
		if (told)                                                                          \
			sdk_call_exit(&call, &data);                                               \
		return data.retval.int32_t_retval;                                                 \
	}

#define MARKER_FUNCTIONS(copy)                                                                     \
	MARKER_CALLS(MARKER_FUNCTION, copy)                                                        \
	static void marker_roctxMarkA_##copy(const char *message)                                  \
	{                                                                                          \
		marker_mark(copy, message);                                                        \
	}                                                                                          \
	static int marker_roctxRangePushA_##copy(const char *message)                              \
	{                                                                                          \
		return marker_push(copy, message);                                                 \
	}                                                                                          \
	static int marker_roctxRangePop_##copy(void)                                               \
	{                                                                                          \
		return marker_pop(copy);                                                           \
	}                                                                                          \
	static roctx_range_id_t marker_roctxRangeStartA_##copy(const char *message)                \
	{                                                                                          \
		return marker_start(copy, message, 0);                                             \
	}                                                                                          \
	static void marker_roctxRangeStop_##copy(roctx_range_id_t id)                              \
	{                                                                                          \
		marker_stop(copy, id);                                                             \
	}
MARKER_COPIES(MARKER_FUNCTIONS)

/* What goes into a copy's tables. */
#define MARKER_OF_COPY(copy, table, ids, function, parameters, arguments, kept)                    \
	.table.function##_fn = marker_##function##_##copy,
#define MARKER_SET(copy)                                                                           \
	{MARKER_CALLS(MARKER_OF_COPY, copy).core.roctxMarkA_fn = marker_roctxMarkA_##copy,         \
	 .core.roctxRangePushA_fn = marker_roctxRangePushA_##copy,                                 \
	 .core.roctxRangePop_fn = marker_roctxRangePop_##copy,                                     \
	 .core.roctxRangeStartA_fn = marker_roctxRangeStartA_##copy,                               \
	 .core.roctxRangeStop_fn = marker_roctxRangeStop_##copy},
static const struct marker_copy marker_sets[SDK_RUNTIME_INSTANCES] = {MARKER_COPIES(MARKER_SET)};

/* A table of an older library may end earlier. */
static bool table_has(const void *table, size_t offset)
{
	uint64_t size;

	memcpy(&size, table, sizeof(size));
	return offset + sizeof(void *) <= size;
}

#define WRAP(table, original, replacement, type, function)                                         \
	do {                                                                                       \
		if (table_has(table, offsetof(type, function##_fn)) && (table)->function##_fn) {   \
			(original).function##_fn = (table)->function##_fn;                         \
			(table)->function##_fn = (replacement).function##_fn;                      \
		}                                                                                  \
	} while (0);

#define WRAP_CALL(number, part, ids, function, parameters, arguments, kept)                        \
	WRAP(part, copy->part, set->part, __typeof__(*part), function)

static void markers_wrap(struct marker_copy *copy, const struct marker_copy *set,
			 roctxCoreApiTable_t *core, roctxControlApiTable_t *control,
			 roctxNameApiTable_t *name)
{
	copy->table = core;
	WRAP(core, copy->core, set->core, roctxCoreApiTable_t, roctxMarkA)
	WRAP(core, copy->core, set->core, roctxCoreApiTable_t, roctxRangePushA)
	WRAP(core, copy->core, set->core, roctxCoreApiTable_t, roctxRangePop)
	WRAP(core, copy->core, set->core, roctxCoreApiTable_t, roctxRangeStartA)
	WRAP(core, copy->core, set->core, roctxCoreApiTable_t, roctxRangeStop)
	MARKER_CALLS(WRAP_CALL, 0)
}

void sdk_markers_wrap(uint64_t number, void **tables, uint64_t count)
{
	static atomic_flag wrapping = ATOMIC_FLAG_INIT;
	bool is_known = number >= SDK_RUNTIME_INSTANCES;

	if (count < 3 || !tables[0] || !tables[1] || !tables[2]) {
		sdk_say(SDK_LOG_WARNING, "a marker library without its tables is not traced");
		return;
	}
	while (atomic_flag_test_and_set(&wrapping)) {
	}
	/* One that announces itself again has our functions in its tables. */
	for (unsigned i = 0; i < SDK_RUNTIME_INSTANCES && !is_known; i++)
		is_known = marker_copies[i].table == tables[0];
	if (!is_known)
		markers_wrap(&marker_copies[number], &marker_sets[number], tables[0], tables[1],
			     tables[2]);
	atomic_flag_clear(&wrapping);
}

/* ---- markers of another library ---- */

static _Atomic uint64_t marker_own_ids = (uint64_t)1 << 62; /* past any of roctx's */

void sdk_marker_mark(const char *message)
{
	marker_data data = {.size = sizeof(data), .args.roctxMarkA.message = message};
	struct sdk_call call;

	if (sdk_call_enter(&call, CORE(roctxMarkA), &data))
		sdk_call_exit(&call, &data);
	sdk_range_mark(message);
}

void sdk_marker_push(const char *message)
{
	marker_data data = {.size = sizeof(data), .args.roctxRangePushA.message = message};
	struct sdk_call call;

	if (sdk_call_enter(&call, CORE(roctxRangePushA), &data))
		sdk_call_exit(&call, &data);
	sdk_range_push(message);
}

void sdk_marker_pop(void)
{
	marker_data data = {.size = sizeof(data)};
	struct sdk_call call;

	sdk_range_pop();
	if (sdk_call_enter(&call, CORE(roctxRangePop), &data))
		sdk_call_exit(&call, &data);
}

uint64_t sdk_marker_start(const char *message)
{
	return marker_start(0, message, atomic_fetch_add(&marker_own_ids, 1));
}

void sdk_marker_stop(uint64_t id)
{
	marker_data data = {.size = sizeof(data), .args.roctxRangeStop.id = id};
	struct sdk_call call;

	sdk_range_stop(id);
	if (sdk_call_enter(&call, CORE(roctxRangeStop), &data))
		sdk_call_exit(&call, &data);
}
