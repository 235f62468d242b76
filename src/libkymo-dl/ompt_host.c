/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Threads, parallel regions, worksharing and synchronisation. Every callback runs on the thread
 * that it is about. `code` is the address that the construct returns to: results name its file and
 * line.
 */
#include "libkymo-dl/ompt.h"
#include "libkymo-dl/runtime.h"

/* ---- threads and teams ---- */

/* Only workers: the initial thread was there before OpenMP, and a region as long as its rest of
 * life would be open across everything else that begins and ends on it. */
static void host_on_thread_begin(int kind, union ompt_data *data)
{
	(void)data;
	ompt_end_all_regions(false);
	if (kind == OMPT_THREAD_WORKER)
		ompt_begin_region(OMPT_NAME_THREAD, 0, NULL, 0);
}

static void host_on_thread_end(union ompt_data *data)
{
	(void)data;
	ompt_end_all_regions(false);
}

enum { PARALLEL_LEAGUE = 0x40000000 }; /* ompt_parallel_league, 4.4.4.21 */

static enum ompt_region_name parallel_flags_to_region_name(int flags)
{
	return flags & PARALLEL_LEAGUE ? OMPT_NAME_TEAMS : OMPT_NAME_PARALLEL;
}

static void host_on_parallel_begin(union ompt_data *task, const void *frame,
				   union ompt_data *parallel, unsigned requested, int flags,
				   const void *code)
{
	struct region_value values[] = {ompt_address_to_value("code", code),
					ompt_number_to_value("requested_threads", requested)};

	(void)task;
	(void)frame;
	(void)parallel;
	ompt_begin_region(parallel_flags_to_region_name(flags), 0, values, 2);
}

static void host_on_parallel_end(union ompt_data *parallel, union ompt_data *task, int flags,
				 const void *code)
{
	(void)parallel;
	(void)task;
	(void)code;
	ompt_end_region(parallel_flags_to_region_name(flags), 0);
}

/* The initial task is the program itself. A worker belongs to one team at a time: what is open when
 * it joins one has ended without a word. */
static void host_on_implicit_task(int endpoint, union ompt_data *parallel, union ompt_data *task,
				  unsigned threads, unsigned index, int flags)
{
	struct region_value values[] = {ompt_number_to_value("thread", index),
					ompt_number_to_value("threads", threads)};

	(void)parallel;
	(void)task;
	if (flags & OMPT_TASK_INITIAL)
		return;
	if (endpoint == OMPT_END) {
		ompt_end_region(OMPT_NAME_IMPLICIT_TASK, 0);
		return;
	}
	if (index)
		ompt_end_all_regions(true);
	ompt_begin_region(OMPT_NAME_IMPLICIT_TASK, 0, values, 2);
}

/* ---- worksharing ---- */

static enum ompt_region_name host_work_to_region_name(int kind)
{
	switch (kind) {
	case OMPT_WORK_LOOP:
	case OMPT_WORK_LOOP_STATIC:
	case OMPT_WORK_LOOP_DYNAMIC:
	case OMPT_WORK_LOOP_GUIDED:
	case OMPT_WORK_LOOP_OTHER:
		return OMPT_NAME_LOOP;
	case OMPT_WORK_SECTIONS:
		return OMPT_NAME_SECTIONS;
	case OMPT_WORK_SINGLE_EXECUTOR:
		return OMPT_NAME_SINGLE;
	case OMPT_WORK_SINGLE_OTHER:
		return OMPT_NAME_SINGLE_OTHER;
	case OMPT_WORK_WORKSHARE:
		return OMPT_NAME_WORKSHARE;
	case OMPT_WORK_DISTRIBUTE:
		return OMPT_NAME_DISTRIBUTE;
	case OMPT_WORK_TASKLOOP:
		return OMPT_NAME_TASKLOOP;
	case OMPT_WORK_SCOPE:
		return OMPT_NAME_SCOPE;
	default:
		return OMPT_NAME_NONE;
	}
}

static void host_begin_or_end_region(int endpoint, enum ompt_region_name name,
				     const struct region_value *values, uint32_t count)
{
	if (endpoint & OMPT_BEGIN)
		ompt_begin_region(name, 0, values, count);
	if (endpoint & OMPT_END)
		ompt_end_region(name, 0);
}

static void host_on_worksharing_construct(int kind, int endpoint, union ompt_data *parallel,
					  union ompt_data *task, uint64_t count, const void *code)
{
	struct region_value values[] = {ompt_address_to_value("code", code),
					ompt_number_to_value("count", count)};

	(void)parallel;
	(void)task;
	host_begin_or_end_region(endpoint, host_work_to_region_name(kind), values, 2);
}

static void host_on_masked_construct(int endpoint, union ompt_data *parallel, union ompt_data *task,
				     const void *code)
{
	struct region_value values[] = {ompt_address_to_value("code", code)};

	(void)parallel;
	(void)task;
	host_begin_or_end_region(endpoint, OMPT_NAME_MASKED, values, 1);
}

/* ---- synchronisation ---- */

static enum ompt_region_name host_sync_to_region_name(int kind)
{
	switch (kind) {
	case OMPT_SYNC_BARRIER:
	case OMPT_SYNC_BARRIER_EXPLICIT:
		return OMPT_NAME_BARRIER;
	case OMPT_SYNC_BARRIER_IMPLICIT:
	case OMPT_SYNC_BARRIER_IMPLICIT_WORKSHARE:
	case OMPT_SYNC_BARRIER_IMPLICIT_PARALLEL:
		return OMPT_NAME_BARRIER_IMPLICIT;
	case OMPT_SYNC_BARRIER_IMPLEMENTATION:
		return OMPT_NAME_BARRIER_IMPLEMENTATION;
	case OMPT_SYNC_BARRIER_TEAMS:
		return OMPT_NAME_BARRIER_TEAMS;
	case OMPT_SYNC_TASKWAIT:
		return OMPT_NAME_TASKWAIT;
	case OMPT_SYNC_TASKGROUP:
		return OMPT_NAME_TASKGROUP;
	case OMPT_SYNC_REDUCTION:
		return OMPT_NAME_REDUCTION;
	default:
		return OMPT_NAME_NONE;
	}
}

static enum ompt_region_name host_sync_to_wait_region_name(int kind)
{
	switch (host_sync_to_region_name(kind)) {
	case OMPT_NAME_TASKWAIT:
		return OMPT_NAME_TASKWAIT_WAIT;
	case OMPT_NAME_TASKGROUP:
		return OMPT_NAME_TASKGROUP_WAIT;
	case OMPT_NAME_REDUCTION:
		return OMPT_NAME_REDUCTION_WAIT;
	case OMPT_NAME_NONE:
		return OMPT_NAME_NONE;
	default:
		return OMPT_NAME_BARRIER_WAIT;
	}
}

static void host_on_sync_region(int kind, int endpoint, union ompt_data *parallel,
				union ompt_data *task, const void *code)
{
	struct region_value values[] = {ompt_address_to_value("code", code)};

	(void)parallel;
	(void)task;
	host_begin_or_end_region(endpoint, host_sync_to_region_name(kind), values, 1);
}

static void host_on_sync_region_wait(int kind, int endpoint, union ompt_data *parallel,
				     union ompt_data *task, const void *code)
{
	(void)parallel;
	(void)task;
	(void)code;
	host_begin_or_end_region(endpoint, host_sync_to_wait_region_name(kind), NULL, 0);
}

static void host_on_reduction(int kind, int endpoint, union ompt_data *parallel,
			      union ompt_data *task, const void *code)
{
	struct region_value values[] = {ompt_address_to_value("code", code)};

	(void)kind;
	(void)parallel;
	(void)task;
	host_begin_or_end_region(endpoint, OMPT_NAME_REDUCTION, values, 1);
}

/* ---- mutual exclusion ---- */

/* What is held within a block is a region; locks are held from anywhere to anywhere. */
static enum ompt_region_name host_mutex_to_region_name(int kind)
{
	switch (kind) {
	case OMPT_MUTEX_CRITICAL:
		return OMPT_NAME_CRITICAL;
	case OMPT_MUTEX_ATOMIC:
		return OMPT_NAME_ATOMIC;
	case OMPT_MUTEX_ORDERED:
		return OMPT_NAME_ORDERED;
	default:
		return OMPT_NAME_NONE;
	}
}

static enum ompt_region_name host_mutex_to_wait_region_name(int kind)
{
	switch (kind) {
	case OMPT_MUTEX_CRITICAL:
		return OMPT_NAME_CRITICAL_WAIT;
	case OMPT_MUTEX_ATOMIC:
		return OMPT_NAME_ATOMIC_WAIT;
	case OMPT_MUTEX_ORDERED:
		return OMPT_NAME_ORDERED_WAIT;
	default:
		return OMPT_NAME_NONE;
	}
}

static struct region_value host_lock_to_value(uint64_t wait_id)
{
	return ompt_address_to_value("lock", (const void *)(uintptr_t)wait_id);
}

/* A test of a lock that fails is never said to be over, and LLVM 14's runtime reports
 * omp_test_lock() as it reports omp_set_lock(). So waits for locks are recorded when the lock is
 * had. */
static void host_on_mutex_acquire(int kind, unsigned hint, unsigned implementation,
				  uint64_t wait_id, const void *code)
{
	struct region_value values[] = {ompt_address_to_value("code", code),
					host_lock_to_value(wait_id)};

	(void)hint;
	(void)implementation;
	if (host_mutex_to_region_name(kind) == OMPT_NAME_NONE)
		ompt_remember_lock_wait_begin();
	else
		ompt_begin_region(host_mutex_to_wait_region_name(kind), 0, values, 2);
}

static void host_on_mutex_acquired(int kind, uint64_t wait_id, const void *code)
{
	struct region_value values[] = {ompt_address_to_value("code", code),
					host_lock_to_value(wait_id)};

	if (host_mutex_to_region_name(kind) == OMPT_NAME_NONE) {
		ompt_record_lock_wait(OMPT_NAME_LOCK_WAIT, values, 2);
		return;
	}
	ompt_end_region(host_mutex_to_wait_region_name(kind), 0);
	ompt_begin_region(host_mutex_to_region_name(kind), 0, values, 2);
}

static void host_on_mutex_released(int kind, uint64_t wait_id, const void *code)
{
	struct region_value values[] = {host_lock_to_value(wait_id)};

	(void)code;
	if (host_mutex_to_region_name(kind) == OMPT_NAME_NONE)
		ompt_record_mark(OMPT_NAME_LOCK_RELEASED, values, 1);
	else
		ompt_end_region(host_mutex_to_region_name(kind), 0);
}

/* ---- the rest ---- */

static void host_on_flush(union ompt_data *thread, const void *code)
{
	struct region_value values[] = {ompt_address_to_value("code", code)};

	(void)thread;
	ompt_record_mark(OMPT_NAME_FLUSH, values, 1);
}

static void host_on_error(int severity, const char *message, size_t length, const void *code)
{
	struct region_value values[] = {ompt_address_to_value("code", code),
					ompt_text_to_value("message", message)};

	(void)severity;
	(void)length;
	ompt_record_mark(OMPT_NAME_ERROR, values, message ? 2 : 1);
}

/* omp_control_tool(): the program's own way to start and stop tools. 0: done, -1: did nothing. */
static int host_on_control_tool(uint64_t command, uint64_t modifier, void *argument,
				const void *code)
{
	const struct runtime_api *api = dl_runtime_get_api();

	(void)modifier;
	(void)argument;
	(void)code;
	switch (command) {
	case OMPT_CONTROL_START:
		return api->trace_start() ? -1 : 0;
	case OMPT_CONTROL_PAUSE:
	case OMPT_CONTROL_END:
		return api->trace_stop() ? -1 : 0;
	case OMPT_CONTROL_FLUSH:
		return api->flush() ? -1 : 0;
	default:
		return -1;
	}
}

void ompt_set_host_callbacks(ompt_set_callback set)
{
	set(OMPT_THREAD_BEGIN, (ompt_function)host_on_thread_begin);
	set(OMPT_THREAD_END, (ompt_function)host_on_thread_end);
	set(OMPT_PARALLEL_BEGIN, (ompt_function)host_on_parallel_begin);
	set(OMPT_PARALLEL_END, (ompt_function)host_on_parallel_end);
	set(OMPT_IMPLICIT_TASK, (ompt_function)host_on_implicit_task);
	set(OMPT_WORK, (ompt_function)host_on_worksharing_construct);
	set(OMPT_MASKED, (ompt_function)host_on_masked_construct);
	set(OMPT_SYNC_REGION, (ompt_function)host_on_sync_region);
	set(OMPT_SYNC_REGION_WAIT, (ompt_function)host_on_sync_region_wait);
	set(OMPT_REDUCTION, (ompt_function)host_on_reduction);
	set(OMPT_MUTEX_ACQUIRE, (ompt_function)host_on_mutex_acquire);
	set(OMPT_MUTEX_ACQUIRED, (ompt_function)host_on_mutex_acquired);
	set(OMPT_MUTEX_RELEASED, (ompt_function)host_on_mutex_released);
	set(OMPT_FLUSH, (ompt_function)host_on_flush);
	set(OMPT_ERROR, (ompt_function)host_on_error);
	set(OMPT_CONTROL_TOOL, (ompt_function)host_on_control_tool);
}
