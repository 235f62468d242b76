/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The functions of roctx, told as calls of a runtime: its tables get functions of the same types
 * that tell and call the original ones. The layout of the tables is roctx's own (api_trace.h).
 */
#include <rocprofiler-sdk-roctx/api_trace.h>
#include <stdatomic.h>
#include <string.h>

#include "libkymo-sdk/emit.h"
#include "libkymo-sdk/markers.h"
#include "libkymo-sdk/runtimes.h"
#include "libkymo-sdk/state.h"

/* What the tables had. */
static roctxCoreApiTable_t core_original;
static roctxControlApiTable_t control_original;
static roctxNameApiTable_t name_original;

typedef rocprofiler_callback_tracing_marker_api_data_t marker_data;

#define CORE(name)    SDK_DOMAIN_MARKER_CORE, ROCPROFILER_MARKER_CORE_API_ID_##name
#define CONTROL(name) SDK_DOMAIN_MARKER_CONTROL, ROCPROFILER_MARKER_CONTROL_API_ID_##name
#define NAME(name)    SDK_DOMAIN_MARKER_NAME, ROCPROFILER_MARKER_NAME_API_ID_##name

static void marker_mark(const char *message)
{
	marker_data data = {.size = sizeof(data), .args.roctxMarkA.message = message};
	struct sdk_call call;
	bool told = sdk_call_enter(&call, CORE(roctxMarkA), &data);

	sdk_range_mark(message);
	if (core_original.roctxMarkA_fn)
		core_original.roctxMarkA_fn(message);
	if (told)
		sdk_call_exit(&call, &data);
}

static int marker_push(const char *message)
{
	marker_data data = {.size = sizeof(data), .args.roctxRangePushA.message = message};
	struct sdk_call call;
	bool told = sdk_call_enter(&call, CORE(roctxRangePushA), &data);

	data.retval.int32_t_retval =
		core_original.roctxRangePushA_fn ? core_original.roctxRangePushA_fn(message) : 0;
	if (told)
		sdk_call_exit(&call, &data);
	sdk_range_push(message);
	return data.retval.int32_t_retval;
}

static int marker_pop(void)
{
	marker_data data = {.size = sizeof(data)};
	struct sdk_call call;
	bool told;

	sdk_range_pop();
	told = sdk_call_enter(&call, CORE(roctxRangePop), &data);
	data.retval.int32_t_retval =
		core_original.roctxRangePop_fn ? core_original.roctxRangePop_fn() : 0;
	if (told)
		sdk_call_exit(&call, &data);
	return data.retval.int32_t_retval;
}

static roctx_range_id_t marker_start(const char *message, uint64_t id)
{
	marker_data data = {.size = sizeof(data), .args.roctxRangeStartA.message = message};
	struct sdk_call call;
	bool told = sdk_call_enter(&call, CORE(roctxRangeStartA), &data);

	data.retval.roctx_range_id_t_retval = core_original.roctxRangeStartA_fn && !id
						      ? core_original.roctxRangeStartA_fn(message)
						      : id;
	if (told)
		sdk_call_exit(&call, &data);
	sdk_range_start(data.retval.roctx_range_id_t_retval, message);
	return data.retval.roctx_range_id_t_retval;
}

static roctx_range_id_t marker_start_own(const char *message)
{
	return marker_start(message, 0);
}

static void marker_stop(roctx_range_id_t id)
{
	marker_data data = {.size = sizeof(data), .args.roctxRangeStop.id = id};
	struct sdk_call call;
	bool told;

	sdk_range_stop(id);
	told = sdk_call_enter(&call, CORE(roctxRangeStop), &data);
	if (core_original.roctxRangeStop_fn)
		core_original.roctxRangeStop_fn(id);
	if (told)
		sdk_call_exit(&call, &data);
}

/* Functions that are told as calls and nothing else: table, name, parameters, what to keep of them.
 */
#define MARKER_CALLS(CALL)                                                                         \
	CALL(core, CORE, roctxGetThreadId, (roctx_thread_id_t * tid), (tid), tid)                  \
	CALL(control, CONTROL, roctxProfilerPause, (roctx_thread_id_t tid), (tid), tid)            \
	CALL(control, CONTROL, roctxProfilerResume, (roctx_thread_id_t tid), (tid), tid)           \
	CALL(name, NAME, roctxNameOsThread, (const char *name), (name), name)                      \
	CALL(name, NAME, roctxNameHsaAgent, (const char *name, const struct hsa_agent_s *agent),   \
	     (name, agent), name)                                                                  \
	CALL(name, NAME, roctxNameHipDevice, (const char *name, int device_id), (name, device_id), \
	     name)                                                                                 \
	CALL(name, NAME, roctxNameHipStream,                                                       \
	     (const char *name, const struct ihipStream_t *stream), (name, stream), name)

#define MARKER_SECOND_roctxGetThreadId(data)
#define MARKER_SECOND_roctxProfilerPause(data)
#define MARKER_SECOND_roctxProfilerResume(data)
#define MARKER_SECOND_roctxNameOsThread(data)
#define MARKER_SECOND_roctxNameHsaAgent(data)  data.args.roctxNameHsaAgent.agent = agent;
#define MARKER_SECOND_roctxNameHipDevice(data) data.args.roctxNameHipDevice.device_id = device_id;
#define MARKER_SECOND_roctxNameHipStream(data) data.args.roctxNameHipStream.stream = stream;

#define MARKER_FUNCTION(table, ids, function, parameters, arguments, first)                        \
	static int marker_##function parameters                                                    \
	{                                                                                          \
		marker_data data = {.size = sizeof(data), .args.function.first = first};           \
		struct sdk_call call;                                                              \
		bool told;                                                                         \
                                                                                                   \
		MARKER_SECOND_##function(data);                                                    \
		told = sdk_call_enter(&call, ids(function), &data);                                \
		data.retval.int32_t_retval = table##_original.function##_fn arguments;             \
		if (told)                                                                          \
			sdk_call_exit(&call, &data);                                               \
		return data.retval.int32_t_retval;                                                 \
	}
MARKER_CALLS(MARKER_FUNCTION)

/* A table of an older library may end earlier. */
static bool table_has(const void *table, size_t offset)
{
	uint64_t size;

	memcpy(&size, table, sizeof(size));
	return offset + sizeof(void *) <= size;
}

#define WRAP(table, original, type, function, replacement)                                         \
	do {                                                                                       \
		if (table_has(table, offsetof(type, function##_fn)) && (table)->function##_fn) {   \
			(original)->function##_fn = (table)->function##_fn;                        \
			(table)->function##_fn = replacement;                                      \
		}                                                                                  \
	} while (0)

#define WRAP_CALL(table, ids, function, parameters, arguments, first)                              \
	WRAP(table, &table##_original, __typeof__(*table), function, marker_##function);

static void markers_wrap_core(roctxCoreApiTable_t *core)
{
	WRAP(core, &core_original, roctxCoreApiTable_t, roctxMarkA, marker_mark);
	WRAP(core, &core_original, roctxCoreApiTable_t, roctxRangePushA, marker_push);
	WRAP(core, &core_original, roctxCoreApiTable_t, roctxRangePop, marker_pop);
	WRAP(core, &core_original, roctxCoreApiTable_t, roctxRangeStartA, marker_start_own);
	WRAP(core, &core_original, roctxCoreApiTable_t, roctxRangeStop, marker_stop);
}

void sdk_markers_wrap(void **tables, uint64_t count)
{
	static _Atomic bool wrapped;
	roctxCoreApiTable_t *core = tables[0];
	roctxControlApiTable_t *control = count > 1 ? tables[1] : NULL;
	roctxNameApiTable_t *name = count > 2 ? tables[2] : NULL;

	if (count < 3 || !core || !control || !name || atomic_exchange(&wrapped, true)) {
		sdk_say(SDK_LOG_WARNING,
			"a second marker library, or one without its tables, is not traced");
		return;
	}
	markers_wrap_core(core);
	MARKER_CALLS(WRAP_CALL)
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
	return marker_start(message, atomic_fetch_add(&marker_own_ids, 1));
}

void sdk_marker_stop(uint64_t id)
{
	marker_data data = {.size = sizeof(data), .args.roctxRangeStop.id = id};
	struct sdk_call call;

	sdk_range_stop(id);
	if (sdk_call_enter(&call, CORE(roctxRangeStop), &data))
		sdk_call_exit(&call, &data);
}
