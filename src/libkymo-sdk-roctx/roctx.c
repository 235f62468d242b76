/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Marks and ranges of programs (rocprofiler-sdk-roctx/roctx.h). Each function calls through a
 * table, which the profiler, if there is one, has changed: registered with it under the name
 * "roctx" at the first call. Without one a call costs a load and an indirect call.
 */
#include <rocprofiler-sdk-roctx/api_trace.h>
#include <rocprofiler-sdk-roctx/roctx.h>

#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libkymo-sdk-roctx/announce.h"

/* The level of the calling thread's innermost range, and the last range of the process. */
static __thread int thread_range_level;
static atomic_uint_fast64_t last_process_range_id;

static void ignore_mark(const char *message)
{
	(void)message;
}

static int push_range_level(const char *message)
{
	(void)message;
	return thread_range_level++;
}

static int pop_range_level(void)
{
	return thread_range_level ? --thread_range_level : -1;
}

static roctx_range_id_t allocate_range_id(const char *message)
{
	(void)message;
	return atomic_fetch_add_explicit(&last_process_range_id, 1, memory_order_relaxed) + 1;
}

static void ignore_range_stop(roctx_range_id_t id)
{
	(void)id;
}

static int get_thread_id(roctx_thread_id_t *thread)
{
	if (!thread)
		return -1;
	*thread = (roctx_thread_id_t)syscall(SYS_gettid);
	return 0;
}

static int ignore_pause_or_resume(roctx_thread_id_t thread)
{
	(void)thread;
	return 0;
}

static int ignore_thread_name(const char *name)
{
	(void)name;
	return 0;
}

static int ignore_agent_name(const char *name, const struct hsa_agent_s *agent)
{
	(void)name;
	return agent ? 0 : -1;
}

static int ignore_device_name(const char *name, int device)
{
	(void)name;
	(void)device;
	return 0;
}

static int ignore_stream_name(const char *name, const struct ihipStream_t *stream)
{
	(void)name;
	(void)stream;
	return 0;
}

static struct {
	roctxCoreApiTable_t core_functions;
	roctxControlApiTable_t control_functions;
	roctxNameApiTable_t name_functions;
} roctx_function_table = {
	{sizeof(roctx_function_table.core_functions), ignore_mark, push_range_level,
	 pop_range_level, allocate_range_id, ignore_range_stop, get_thread_id},
	{sizeof(roctx_function_table.control_functions), ignore_pause_or_resume,
	 ignore_pause_or_resume},
	{sizeof(roctx_function_table.name_functions), ignore_thread_name, ignore_agent_name,
	 ignore_device_name, ignore_stream_name},
};

static void *const function_table_parts[] = {&roctx_function_table.core_functions,
					     &roctx_function_table.control_functions,
					     &roctx_function_table.name_functions};

/* The profiler may change a function while another thread calls it. */
#define ANNOUNCE_AND_LOAD_TABLE_FUNCTION(part, function)                                           \
	(roctx_announce_tables_when_due(function_table_parts,                                      \
					sizeof(function_table_parts) /                             \
						sizeof(function_table_parts[0])),                  \
	 __atomic_load_n(&roctx_function_table.part.function##_fn, __ATOMIC_ACQUIRE))

/* A message may be printed by whoever gets it. */
#define TEXT_OR_EMPTY(message) ((message) ? (message) : "")

ROCTX_EXPORT void roctxMarkA(const char *message)
{
	ANNOUNCE_AND_LOAD_TABLE_FUNCTION(core_functions, roctxMarkA)(TEXT_OR_EMPTY(message));
}

ROCTX_EXPORT int roctxRangePushA(const char *message)
{
	return ANNOUNCE_AND_LOAD_TABLE_FUNCTION(core_functions,
						roctxRangePushA)(TEXT_OR_EMPTY(message));
}

ROCTX_EXPORT int roctxRangePop(void)
{
	return ANNOUNCE_AND_LOAD_TABLE_FUNCTION(core_functions, roctxRangePop)();
}

ROCTX_EXPORT roctx_range_id_t roctxRangeStartA(const char *message)
{
	return ANNOUNCE_AND_LOAD_TABLE_FUNCTION(core_functions,
						roctxRangeStartA)(TEXT_OR_EMPTY(message));
}

ROCTX_EXPORT void roctxRangeStop(roctx_range_id_t id)
{
	ANNOUNCE_AND_LOAD_TABLE_FUNCTION(core_functions, roctxRangeStop)(id);
}

ROCTX_EXPORT int roctxGetThreadId(roctx_thread_id_t *thread)
{
	return ANNOUNCE_AND_LOAD_TABLE_FUNCTION(core_functions, roctxGetThreadId)(thread);
}

ROCTX_EXPORT int roctxProfilerPause(roctx_thread_id_t thread)
{
	return ANNOUNCE_AND_LOAD_TABLE_FUNCTION(control_functions, roctxProfilerPause)(thread);
}

ROCTX_EXPORT int roctxProfilerResume(roctx_thread_id_t thread)
{
	return ANNOUNCE_AND_LOAD_TABLE_FUNCTION(control_functions, roctxProfilerResume)(thread);
}

ROCTX_EXPORT int roctxNameOsThread(const char *name)
{
	return ANNOUNCE_AND_LOAD_TABLE_FUNCTION(name_functions,
						roctxNameOsThread)(TEXT_OR_EMPTY(name));
}

ROCTX_EXPORT int roctxNameHsaAgent(const char *name, const struct hsa_agent_s *agent)
{
	return ANNOUNCE_AND_LOAD_TABLE_FUNCTION(name_functions,
						roctxNameHsaAgent)(TEXT_OR_EMPTY(name), agent);
}

ROCTX_EXPORT int roctxNameHipDevice(const char *name, int device)
{
	return ANNOUNCE_AND_LOAD_TABLE_FUNCTION(name_functions,
						roctxNameHipDevice)(TEXT_OR_EMPTY(name), device);
}

ROCTX_EXPORT int roctxNameHipStream(const char *name, const struct ihipStream_t *stream)
{
	return ANNOUNCE_AND_LOAD_TABLE_FUNCTION(name_functions,
						roctxNameHipStream)(TEXT_OR_EMPTY(name), stream);
}
