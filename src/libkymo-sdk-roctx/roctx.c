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
static __thread int level;
static atomic_uint_fast64_t last_range;

static void mark(const char *message)
{
	(void)message;
}

static int range_push(const char *message)
{
	(void)message;
	return level++;
}

static int range_pop(void)
{
	return level ? --level : -1;
}

static roctx_range_id_t range_start(const char *message)
{
	(void)message;
	return atomic_fetch_add_explicit(&last_range, 1, memory_order_relaxed) + 1;
}

static void range_stop(roctx_range_id_t id)
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

static int no_objections(roctx_thread_id_t thread)
{
	(void)thread;
	return 0;
}

static int name_thread(const char *name)
{
	(void)name;
	return 0;
}

static int name_agent(const char *name, const struct hsa_agent_s *agent)
{
	(void)name;
	return agent ? 0 : -1;
}

static int name_device(const char *name, int device)
{
	(void)name;
	(void)device;
	return 0;
}

static int name_stream(const char *name, const struct ihipStream_t *stream)
{
	(void)name;
	(void)stream;
	return 0;
}

static struct {
	roctxCoreApiTable_t core;
	roctxControlApiTable_t control;
	roctxNameApiTable_t name;
} table = {
	{sizeof(table.core), mark, range_push, range_pop, range_start, range_stop, get_thread_id},
	{sizeof(table.control), no_objections, no_objections},
	{sizeof(table.name), name_thread, name_agent, name_device, name_stream},
};

static void *const tables[] = {&table.core, &table.control, &table.name};

/* The profiler may change a function while another thread calls it. */
#define CURRENT(part, function)                                                                    \
	(roctx_announce(tables, sizeof(tables) / sizeof(tables[0])),                               \
	 __atomic_load_n(&table.part.function##_fn, __ATOMIC_ACQUIRE))

/* A message may be printed by whoever gets it. */
#define TEXT(message) ((message) ? (message) : "")

ROCTX_EXPORT void roctxMarkA(const char *message)
{
	CURRENT(core, roctxMarkA)(TEXT(message));
}

ROCTX_EXPORT int roctxRangePushA(const char *message)
{
	return CURRENT(core, roctxRangePushA)(TEXT(message));
}

ROCTX_EXPORT int roctxRangePop(void)
{
	return CURRENT(core, roctxRangePop)();
}

ROCTX_EXPORT roctx_range_id_t roctxRangeStartA(const char *message)
{
	return CURRENT(core, roctxRangeStartA)(TEXT(message));
}

ROCTX_EXPORT void roctxRangeStop(roctx_range_id_t id)
{
	CURRENT(core, roctxRangeStop)(id);
}

ROCTX_EXPORT int roctxGetThreadId(roctx_thread_id_t *thread)
{
	return CURRENT(core, roctxGetThreadId)(thread);
}

ROCTX_EXPORT int roctxProfilerPause(roctx_thread_id_t thread)
{
	return CURRENT(control, roctxProfilerPause)(thread);
}

ROCTX_EXPORT int roctxProfilerResume(roctx_thread_id_t thread)
{
	return CURRENT(control, roctxProfilerResume)(thread);
}

ROCTX_EXPORT int roctxNameOsThread(const char *name)
{
	return CURRENT(name, roctxNameOsThread)(TEXT(name));
}

ROCTX_EXPORT int roctxNameHsaAgent(const char *name, const struct hsa_agent_s *agent)
{
	return CURRENT(name, roctxNameHsaAgent)(TEXT(name), agent);
}

ROCTX_EXPORT int roctxNameHipDevice(const char *name, int device)
{
	return CURRENT(name, roctxNameHipDevice)(TEXT(name), device);
}

ROCTX_EXPORT int roctxNameHipStream(const char *name, const struct ihipStream_t *stream)
{
	return CURRENT(name, roctxNameHipStream)(TEXT(name), stream);
}
