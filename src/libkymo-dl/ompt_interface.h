/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The part of the OpenMP tools interface that kymo uses: names, numbers and parameter lists of the
 * OpenMP API specification 5.0 to 5.2, chapter "OMPT interface" (section numbers are those of 5.1).
 * kymo builds without an OpenMP runtime, so there is no omp-tools.h to include.
 */
#ifndef KYMO_LIBKYMO_DL_OMPT_INTERFACE_H
#define KYMO_LIBKYMO_DL_OMPT_INTERFACE_H

#include <stddef.h>
#include <stdint.h>

/* 4.4.4.4 */
union ompt_data {
	uint64_t value;
	void *pointer;
};

/* 4.2.1, 4.4.1: what the tool gives the runtime. lookup() returns functions by name. */
typedef void (*ompt_function)(void);
typedef ompt_function (*ompt_lookup)(const char *name);

struct ompt_start_tool_result {
	int (*initialize)(ompt_lookup lookup, int initial_device, union ompt_data *tool_data);
	void (*finalize)(union ompt_data *tool_data);
	union ompt_data tool_data;
};

/* "ompt_set_callback", 4.6.1.3; results 4.4.4.2 */
typedef int (*ompt_set_callback)(int event, ompt_function callback);
enum { OMPT_SET_ERROR = 0, OMPT_SET_NEVER = 1, OMPT_SET_IMPOSSIBLE = 2, OMPT_SET_SOMETIMES = 3 };

/* 4.4.2 */
enum ompt_event {
	OMPT_THREAD_BEGIN = 1,
	OMPT_THREAD_END = 2,
	OMPT_PARALLEL_BEGIN = 3,
	OMPT_PARALLEL_END = 4,
	OMPT_TASK_CREATE = 5,
	OMPT_TASK_SCHEDULE = 6,
	OMPT_IMPLICIT_TASK = 7,
	OMPT_TARGET = 8,
	OMPT_TARGET_DATA_OP = 9,
	OMPT_TARGET_SUBMIT = 10,
	OMPT_CONTROL_TOOL = 11,
	OMPT_SYNC_REGION_WAIT = 16,
	OMPT_MUTEX_RELEASED = 17,
	OMPT_WORK = 20,
	OMPT_MASKED = 21,
	OMPT_SYNC_REGION = 23,
	OMPT_MUTEX_ACQUIRE = 26,
	OMPT_MUTEX_ACQUIRED = 27,
	OMPT_FLUSH = 29,
	OMPT_CANCEL = 30,
	OMPT_REDUCTION = 31,
	OMPT_TARGET_EMI = 33,
	OMPT_TARGET_DATA_OP_EMI = 34,
	OMPT_TARGET_SUBMIT_EMI = 35,
	OMPT_ERROR = 37
};

/* 4.4.4.11 */
enum ompt_endpoint { OMPT_BEGIN = 1, OMPT_END = 2, OMPT_BEGIN_END = 3 };

/* 4.4.4.10 */
enum ompt_thread_kind { OMPT_THREAD_INITIAL = 1, OMPT_THREAD_WORKER = 2 };

/* 4.4.4.15; from 9 on additions of 5.2 and 6.0 */
enum ompt_work {
	OMPT_WORK_LOOP = 1,
	OMPT_WORK_SECTIONS,
	OMPT_WORK_SINGLE_EXECUTOR,
	OMPT_WORK_SINGLE_OTHER,
	OMPT_WORK_WORKSHARE,
	OMPT_WORK_DISTRIBUTE,
	OMPT_WORK_TASKLOOP,
	OMPT_WORK_SCOPE,
	OMPT_WORK_LOOP_STATIC = 10,
	OMPT_WORK_LOOP_DYNAMIC,
	OMPT_WORK_LOOP_GUIDED,
	OMPT_WORK_LOOP_OTHER
};

/* 4.4.4.13 */
enum ompt_sync {
	OMPT_SYNC_BARRIER = 1,
	OMPT_SYNC_BARRIER_IMPLICIT,
	OMPT_SYNC_BARRIER_EXPLICIT,
	OMPT_SYNC_BARRIER_IMPLEMENTATION,
	OMPT_SYNC_TASKWAIT,
	OMPT_SYNC_TASKGROUP,
	OMPT_SYNC_REDUCTION,
	OMPT_SYNC_BARRIER_IMPLICIT_WORKSHARE,
	OMPT_SYNC_BARRIER_IMPLICIT_PARALLEL,
	OMPT_SYNC_BARRIER_TEAMS
};

/* 4.4.4.16 */
enum ompt_mutex {
	OMPT_MUTEX_LOCK = 1,
	OMPT_MUTEX_TEST_LOCK,
	OMPT_MUTEX_NEST_LOCK,
	OMPT_MUTEX_TEST_NEST_LOCK,
	OMPT_MUTEX_CRITICAL,
	OMPT_MUTEX_ATOMIC,
	OMPT_MUTEX_ORDERED
};

/* 4.4.4.18 */
enum { OMPT_TASK_INITIAL = 1, OMPT_TASK_EXPLICIT = 4 };

/* 4.4.4.19 */
enum ompt_task_status {
	OMPT_TASK_COMPLETE = 1,
	OMPT_TASK_YIELD,
	OMPT_TASK_CANCEL,
	OMPT_TASK_DETACH,
	OMPT_TASK_EARLY_FULFILL,
	OMPT_TASK_LATE_FULFILL,
	OMPT_TASK_SWITCH,
	OMPT_TASKWAIT_COMPLETE
};

/* 4.4.4.20; the nowait forms are 8 more */
enum ompt_target {
	OMPT_TARGET_REGION = 1,
	OMPT_TARGET_ENTER_DATA,
	OMPT_TARGET_EXIT_DATA,
	OMPT_TARGET_UPDATE,
	OMPT_TARGET_NOWAIT = 8
};

/* 4.4.4.14; the asynchronous forms are 16 more */
enum ompt_data_op {
	OMPT_DATA_ALLOC = 1,
	OMPT_DATA_TO_DEVICE,
	OMPT_DATA_FROM_DEVICE,
	OMPT_DATA_DELETE,
	OMPT_DATA_ASSOCIATE,
	OMPT_DATA_DISASSOCIATE,
	OMPT_DATA_ASYNC = 16
};

/* 4.4.4.25 */
enum {
	OMPT_CANCEL_PARALLEL = 1,
	OMPT_CANCEL_SECTIONS = 2,
	OMPT_CANCEL_LOOP = 4,
	OMPT_CANCEL_TASKGROUP = 8,
	OMPT_CANCEL_ACTIVATED = 16,
	OMPT_CANCEL_DETECTED = 32,
	OMPT_CANCEL_DISCARDED = 64
};

/* Commands of omp_control_tool(), 3.14 */
enum { OMPT_CONTROL_START = 1, OMPT_CONTROL_PAUSE, OMPT_CONTROL_FLUSH, OMPT_CONTROL_END };

#endif
