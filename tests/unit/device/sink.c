/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 */
#include "sink.h"

#include "counting_sink.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum kind { NONE, AGENT, CALL, KERNEL, COPY, CORRELATION, PROGRAM, SYMBOL, RANGE };

struct told told;
_Atomic device_handle sink_agent;
_Atomic uint32_t sink_wanted = UINT32_MAX;
static _Atomic uint8_t kinds[HANDLES_MAX];
static _Atomic uint32_t handles;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static device_handle make(enum kind kind)
{
	uint32_t handle = atomic_fetch_add(&handles, 1) + 1;

	if (handle >= HANDLES_MAX)
		return DEVICE_HANDLE_NONE;
	atomic_store(&kinds[handle], (uint8_t)kind);
	return handle;
}

/* The handle must be of this kind, and is gone afterwards if it ends. */
static void use(device_handle handle, enum kind kind, bool ends)
{
	if (handle == 0 || handle >= HANDLES_MAX || atomic_load(&kinds[handle]) != kind)
		told.misused++;
	else if (ends)
		atomic_store(&kinds[handle], NONE);
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_BOOTTIME, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static bool wants(enum device_service_kind service, int32_t operation)
{
	(void)operation;
	return (atomic_load(&sink_wanted) >> service & 1) != 0;
}

static device_handle agent(const struct device_agent *agent)
{
	pthread_mutex_lock(&lock);
	told.last_device = *agent;
	snprintf(told.last_agent, sizeof(told.last_agent), "%s, %s",
		 agent->name != NULL ? agent->name : "",
		 agent->product_name != NULL ? agent->product_name : "");
	pthread_mutex_unlock(&lock);
	told.agents++;
	return sink_agent != DEVICE_HANDLE_NONE ? sink_agent : make(AGENT);
}

static device_handle host_agent(void)
{
	return HANDLES_MAX;
}

static void runtime_ready(enum device_runtime_kind runtime, uint64_t version)
{
	(void)runtime;
	(void)version;
	told.runtimes++;
}

/* As the tool library does. */
static void runtime_tables(enum device_runtime_kind runtime, uint64_t version, void **tables,
			   uint64_t count)
{
	(void)runtime;
	(void)version;
	told.misused += count != 1 || tables[0] == NULL;
	told.runtimes++;
	device_report_hsa_agents(tables[0]);
}

static device_handle call_enter(const struct device_api_call_info *call)
{
	(void)call;
	told.calls_entered++;
	return make(CALL);
}

static void call_exit(device_handle handle, const struct device_api_call_info *call,
		      const void *result)
{
	(void)call;
	(void)result;
	use(handle, CALL, true);
	told.calls_left++;
}

static device_handle kernel_enqueue(const struct device_kernel_launch *kernel)
{
	pthread_mutex_lock(&lock);
	told.last_kernel = *kernel;
	pthread_mutex_unlock(&lock);
	told.kernels++;
	return make(KERNEL);
}

/* It may have been completed already. */
static void kernel_submitted(device_handle kernel, bool failed)
{
	if (failed)
		use(kernel, KERNEL, true);
	told.submitted++;
	told.failed += failed;
}

static void kernel_complete(device_handle kernel, const struct device_kernel_launch *ran,
			    uint64_t start, uint64_t end)
{
	use(kernel, KERNEL, true);
	if (ran != NULL) {
		pthread_mutex_lock(&lock);
		told.last_kernel = *ran;
		pthread_mutex_unlock(&lock);
	}
	told.completed++;
	told.without_time += start == 0;
	told.misused += end < start;
}

static device_handle copy_begin(const struct device_copy *copy)
{
	pthread_mutex_lock(&lock);
	told.last_copy = *copy;
	pthread_mutex_unlock(&lock);
	told.copies++;
	told.copied_bytes += copy->bytes;
	return make(COPY);
}

static void copy_complete(device_handle copy, const struct device_copy *ran, uint64_t start,
			  uint64_t end)
{
	(void)ran;
	use(copy, COPY, true);
	told.copies_completed++;
	told.without_time += start == 0;
	told.misused += end < start;
}

static void copy_failed(device_handle copy)
{
	use(copy, COPY, true);
	told.copies_failed++;
}

static device_handle correlation_open(void)
{
	told.opened++;
	return make(CORRELATION);
}

static void correlation_close(device_handle correlation)
{
	use(correlation, CORRELATION, true);
	told.closed++;
}

static void kernel_record(device_handle correlation, const struct device_kernel_launch *kernel,
			  uint64_t start, uint64_t end)
{
	if (correlation == DEVICE_HANDLE_NONE)
		told.unknown_correlations++;
	else
		use(correlation, CORRELATION, false);
	pthread_mutex_lock(&lock);
	told.last_kernel = *kernel;
	pthread_mutex_unlock(&lock);
	told.kernel_records++;
	told.misused += end < start;
}

static void copy_record(device_handle correlation, const struct device_copy *copy, uint64_t start,
			uint64_t end)
{
	if (correlation == DEVICE_HANDLE_NONE)
		told.unknown_correlations++;
	else
		use(correlation, CORRELATION, false);
	told.copy_records++;
	told.copied_bytes += copy->bytes;
	told.misused += end < start;
}

static void allocation(const struct device_allocation *allocation)
{
	if (allocation->operation == DEVICE_ALLOCATE) {
		told.allocations++;
		told.allocated_bytes += allocation->bytes;
	} else {
		told.frees++;
	}
}

static device_handle program_load(const struct device_program *program)
{
	(void)program;
	told.programs++;
	return make(PROGRAM);
}

static device_handle kernel_symbol(const struct device_symbol *symbol)
{
	use(symbol->program, PROGRAM, false);
	pthread_mutex_lock(&lock);
	snprintf(told.last_symbol, sizeof(told.last_symbol), "%s", symbol->name);
	pthread_mutex_unlock(&lock);
	told.symbols++;
	return make(SYMBOL);
}

static void program_unload(device_handle program)
{
	use(program, PROGRAM, true);
	told.unloaded++;
}

static uint64_t marker(enum device_marker_kind what, const char *message, uint64_t range)
{
	pthread_mutex_lock(&lock);
	snprintf(told.last_marker, sizeof(told.last_marker), "%d %s", (int)what,
		 message != NULL ? message : "");
	pthread_mutex_unlock(&lock);
	told.markers++;
	if (what == DEVICE_MARKER_STOP)
		use(range, RANGE, true);
	return what == DEVICE_MARKER_START ? make(RANGE) : 0;
}

static void nothing(void)
{
}

static void say(enum device_runtime_kind runtime, const char *text)
{
	(void)runtime;
	snprintf(told.last_said, sizeof(told.last_said), "%s", text);
	told.said++;
}

static const struct device_sink sink = {
	.now = now,
	.is_wanted = wants,
	.agent = agent,
	.get_host_agent = host_agent,
	.runtime_ready = runtime_ready,
	.runtime_tables_ready = runtime_tables,
	.call_enter = call_enter,
	.call_exit = call_exit,
	.kernel_enqueue = kernel_enqueue,
	.kernel_submitted = kernel_submitted,
	.kernel_complete = kernel_complete,
	.copy_begin = copy_begin,
	.copy_complete = copy_complete,
	.copy_failed = copy_failed,
	.correlation_open = correlation_open,
	.correlation_close = correlation_close,
	.kernel_record = kernel_record,
	.copy_record = copy_record,
	.allocation_event = allocation,
	.program_load = program_load,
	.kernel_symbol = kernel_symbol,
	.program_unload = program_unload,
	.marker_event = marker,
	.tool_thread_starting = nothing,
	.tool_thread_started = nothing,
	.exclude_calling_thread = nothing,
	.say = say,
	.counting = &counting_test_sink,
};

void sink_start(void)
{
	memset((void *)&told, 0, sizeof(told));
	device_set_sink(&sink, NULL);
}
