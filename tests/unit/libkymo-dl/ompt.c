/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The OpenMP tool, driven by a runtime of this test's making that does what runtimes do when they
 * are at their worst: missing ends, tasks that move, no emi callbacks. tests/e2e/openmp.py has the
 * real one.
 */
#include "front_test.h"

#include "libkymo-dl/ompt_interface.h"

struct ompt_start_tool_result *ompt_start_tool(unsigned version, const char *runtime_version);

/* ---- the runtime ---- */

static union {
	ompt_function any;
	void (*thread_begin)(int kind, union ompt_data *thread);
	void (*thread_end)(union ompt_data *thread);
	void (*parallel_begin)(union ompt_data *task, const void *frame, union ompt_data *parallel,
			       unsigned threads, int flags, const void *code);
	void (*parallel_end)(union ompt_data *parallel, union ompt_data *task, int flags,
			     const void *code);
	void (*implicit_task)(int endpoint, union ompt_data *parallel, union ompt_data *task,
			      unsigned threads, unsigned index, int flags);
	void (*work)(int kind, int endpoint, union ompt_data *parallel, union ompt_data *task,
		     uint64_t count, const void *code);
	void (*masked)(int endpoint, union ompt_data *parallel, union ompt_data *task,
		       const void *code);
	void (*sync)(int kind, int endpoint, union ompt_data *parallel, union ompt_data *task,
		     const void *code);
	void (*acquire)(int kind, unsigned hint, unsigned implementation, uint64_t wait,
			const void *code);
	void (*mutex)(int kind, uint64_t wait, const void *code);
	void (*task_create)(union ompt_data *from, const void *frame, union ompt_data *task,
			    int flags, int dependences, const void *code);
	void (*task_schedule)(union ompt_data *prior, int status, union ompt_data *next);
	void (*flush)(union ompt_data *thread, const void *code);
	void (*cancel)(union ompt_data *task, int flags, const void *code);
	int (*control)(uint64_t command, uint64_t modifier, void *argument, const void *code);
	void (*target)(int kind, int endpoint, int device, union ompt_data *task, uint64_t id,
		       const void *code);
	void (*target_emi)(int kind, int endpoint, int device, union ompt_data *task,
			   union ompt_data *target_task, union ompt_data *target, const void *code);
	void (*data)(uint64_t target, uint64_t id, int operation, void *from, int from_device,
		     void *to, int to_device, size_t bytes, const void *code);
	void (*data_emi)(int endpoint, union ompt_data *task, union ompt_data *target, uint64_t *id,
			 int operation, void *from, int from_device, void *to, int to_device,
			 size_t bytes, const void *code);
	void (*submit)(uint64_t target, uint64_t id, unsigned teams);
	void (*submit_emi)(int endpoint, union ompt_data *target, uint64_t *id, unsigned teams);
	void (*error)(int severity, const char *message, size_t length, const void *code);
} on[64];
static bool has_emi = true;

static int set_callback(int event, ompt_function callback)
{
	if (!has_emi && event >= OMPT_TARGET_EMI && event <= OMPT_TARGET_SUBMIT_EMI)
		return OMPT_SET_NEVER;
	on[event].any = callback;
	return 5;
}

static ompt_function look_up(const char *name)
{
	return strcmp(name, "ompt_set_callback") ? NULL : (ompt_function)set_callback;
}

static struct ompt_start_tool_result *start(void *tool)
{
	return FUNCTION(tool, ompt_start_tool)(202011, "a runtime of the test's making");
}

static struct ompt_start_tool_result *runtime(void)
{
	struct ompt_start_tool_result *result;

	front_environment();
	result = start(front_open(DL_LIBRARY, RTLD_LOCAL));
	CHECK(result);
	CHECK(result->initialize(look_up, 0, &result->tool_data) != 0);
	front_seen();
	return result;
}

#define CODE ((const void *)0x40)

/* ---- regions ---- */

static void a_parallel_region(void)
{
	union ompt_data parallel = {0}, copy = {0}, task = {0};

	runtime();
	on[OMPT_THREAD_BEGIN].thread_begin(OMPT_THREAD_INITIAL, &task);
	on[OMPT_IMPLICIT_TASK].implicit_task(OMPT_BEGIN, &parallel, &task, 1, 1, OMPT_TASK_INITIAL);
	on[OMPT_PARALLEL_BEGIN].parallel_begin(&task, NULL, &parallel, 4, 1, CODE);
	on[OMPT_IMPLICIT_TASK].implicit_task(OMPT_BEGIN, &parallel, &task, 4, 0, 2);
	on[OMPT_WORK].work(OMPT_WORK_LOOP, OMPT_BEGIN, &parallel, &task, 100, CODE);
	on[OMPT_WORK].work(OMPT_WORK_LOOP, OMPT_END, &parallel, &task, 0, CODE);
	on[OMPT_WORK].work(OMPT_WORK_SINGLE_OTHER, OMPT_BEGIN_END, &parallel, &task, 1, CODE);
	on[OMPT_WORK].work(99, OMPT_BEGIN_END, &parallel, &task, 1, CODE);
	on[OMPT_MASKED].masked(OMPT_BEGIN, &parallel, &task, CODE);
	on[OMPT_MASKED].masked(OMPT_END, &parallel, &task, CODE);
	on[OMPT_SYNC_REGION].sync(OMPT_SYNC_BARRIER_IMPLICIT_PARALLEL, OMPT_BEGIN, &parallel, &task,
				  CODE);
	on[OMPT_SYNC_REGION_WAIT].sync(OMPT_SYNC_BARRIER_IMPLICIT_PARALLEL, OMPT_BEGIN, &parallel,
				       &task, CODE);
	on[OMPT_SYNC_REGION_WAIT].sync(OMPT_SYNC_BARRIER_IMPLICIT_PARALLEL, OMPT_END, NULL, &task,
				       CODE);
	on[OMPT_SYNC_REGION].sync(OMPT_SYNC_BARRIER_IMPLICIT_PARALLEL, OMPT_END, NULL, &task, CODE);
	on[OMPT_IMPLICIT_TASK].implicit_task(OMPT_END, NULL, &task, 0, 0, 2);
	/* Runtimes copy what they hand out: the pointer is another one. */
	on[OMPT_PARALLEL_END].parallel_end(&copy, &task, 1, CODE);
	CHECK_TEXT(front_seen(),
		   "begin ompt/omp_parallel\n  code = @40\n  requested_threads = 4\n"
		   "begin ompt/omp_implicit_task\n  thread = 0\n  threads = 4\n"
		   "begin ompt/omp_loop\n  code = @40\n  count = 100\nend ompt/omp_loop\n"
		   "begin ompt/omp_single_other\n  code = @40\n  count = 1\n"
		   "end ompt/omp_single_other\n"
		   "begin ompt/omp_masked\n  code = @40\nend ompt/omp_masked\n"
		   "begin ompt/omp_barrier_implicit\n  code = @40\nbegin ompt/omp_barrier_wait\n"
		   "end ompt/omp_barrier_wait\nend ompt/omp_barrier_implicit\n"
		   "end ompt/omp_implicit_task\nend ompt/omp_parallel\n");
}
IN_CHILD(a_parallel_region)

/* A worker's last task and barrier are never said to be over. */
static void a_worker_ends_what_is_left_open(void)
{
	union ompt_data parallel = {0}, task = {0};

	runtime();
	on[OMPT_THREAD_BEGIN].thread_begin(OMPT_THREAD_WORKER, &task);
	for (int i = 0; i < 2; i++) {
		on[OMPT_IMPLICIT_TASK].implicit_task(OMPT_BEGIN, &parallel, &task, 4, 1, 2);
		on[OMPT_SYNC_REGION].sync(OMPT_SYNC_BARRIER_IMPLICIT, OMPT_BEGIN, &parallel, &task,
					  NULL);
	}
	on[OMPT_THREAD_END].thread_end(&task);
	CHECK_TEXT(front_seen(), "begin ompt/omp_thread\n"
				 "begin ompt/omp_implicit_task\n  thread = 1\n  threads = 4\n"
				 "begin ompt/omp_barrier_implicit\n  code = @0\n"
				 "end ompt/omp_barrier_implicit\nend ompt/omp_implicit_task\n"
				 "begin ompt/omp_implicit_task\n  thread = 1\n  threads = 4\n"
				 "begin ompt/omp_barrier_implicit\n  code = @0\n"
				 "end ompt/omp_barrier_implicit\nend ompt/omp_implicit_task\n"
				 "end ompt/omp_thread\n");
	/* an end that has no begin */
	on[OMPT_IMPLICIT_TASK].implicit_task(OMPT_END, NULL, &task, 0, 1, 2);
	on[OMPT_THREAD_END].thread_end(&task);
	CHECK_TEXT(front_seen(), "");
}
IN_CHILD(a_worker_ends_what_is_left_open)

static void deep_nesting_stays_balanced(void)
{
	union ompt_data task = {0};
	const char *seen;
	int begun = 0, ended = 0;

	runtime();
	for (int i = 0; i < 100; i++)
		on[OMPT_SYNC_REGION].sync(OMPT_SYNC_TASKGROUP, OMPT_BEGIN, NULL, &task, NULL);
	for (int i = 0; i < 100; i++)
		on[OMPT_SYNC_REGION].sync(OMPT_SYNC_TASKGROUP, OMPT_END, NULL, &task, NULL);
	for (seen = front_seen(); seen; seen = strchr(seen, '\n')) {
		seen += *seen == '\n';
		begun += !strncmp(seen, "begin", 5);
		ended += !strncmp(seen, "end", 3);
	}
	CHECK(begun == 100 && ended == 100);
}
IN_CHILD(deep_nesting_stays_balanced)

static void locks(void)
{
	runtime();
	on[OMPT_MUTEX_ACQUIRE].acquire(OMPT_MUTEX_CRITICAL, 0, 0, 0x99, CODE);
	on[OMPT_MUTEX_ACQUIRED].mutex(OMPT_MUTEX_CRITICAL, 0x99, CODE);
	on[OMPT_MUTEX_RELEASED].mutex(OMPT_MUTEX_CRITICAL, 0x99, CODE);
	CHECK_TEXT(front_seen(), "begin ompt/omp_critical_wait\n  code = @40\n  lock = @99\n"
				 "end ompt/omp_critical_wait\n"
				 "begin ompt/omp_critical\n  code = @40\n  lock = @99\n"
				 "end ompt/omp_critical\n");
	/* Held across whatever begins and ends meanwhile, so no region. A test that fails is not
	 * acquired. */
	on[OMPT_MUTEX_ACQUIRE].acquire(OMPT_MUTEX_LOCK, 0, 0, 0x98, CODE);
	on[OMPT_MUTEX_ACQUIRE].acquire(OMPT_MUTEX_TEST_LOCK, 0, 0, 0x98, CODE);
	on[OMPT_MUTEX_ACQUIRE].acquire(OMPT_MUTEX_LOCK, 0, 0, 0x99, CODE);
	on[OMPT_MUTEX_ACQUIRED].mutex(OMPT_MUTEX_LOCK, 0x99, CODE);
	on[OMPT_MUTEX_RELEASED].mutex(OMPT_MUTEX_LOCK, 0x99, CODE);
	CHECK_TEXT(front_seen(), "whole ompt/omp_lock_wait for 1\n  code = @40\n  lock = @99\n"
				 "mark ompt/omp_lock_released\n  lock = @99\n");
}
IN_CHILD(locks)

/* ---- tasks ---- */

static void tasks_run_inside_tasks_that_wait(void)
{
	union ompt_data implicit = {0}, a = {0}, b = {0};

	runtime();
	on[OMPT_TASK_CREATE].task_create(&implicit, NULL, &implicit, OMPT_TASK_INITIAL, 0, CODE);
	on[OMPT_TASK_CREATE].task_create(&implicit, NULL, &a, OMPT_TASK_EXPLICIT, 0, CODE);
	on[OMPT_TASK_CREATE].task_create(&a, NULL, &b, OMPT_TASK_EXPLICIT, 0, CODE);
	front_seen();
	on[OMPT_TASK_SCHEDULE].task_schedule(&implicit, OMPT_TASK_SWITCH, &a);
	on[OMPT_SYNC_REGION].sync(OMPT_SYNC_TASKWAIT, OMPT_BEGIN, NULL, &a, CODE);
	on[OMPT_TASK_SCHEDULE].task_schedule(&a, OMPT_TASK_SWITCH, &b);
	on[OMPT_TASK_SCHEDULE].task_schedule(&b, OMPT_TASK_COMPLETE, &a);
	on[OMPT_SYNC_REGION].sync(OMPT_SYNC_TASKWAIT, OMPT_END, NULL, &a, CODE);
	on[OMPT_TASK_SCHEDULE].task_schedule(&a, OMPT_TASK_COMPLETE, &implicit);
	on[OMPT_TASK_SCHEDULE].task_schedule(&implicit, OMPT_TASKWAIT_COMPLETE, NULL);
	CHECK_TEXT(front_seen(), "begin ompt/omp_task\n  task = 1\n"
				 "begin ompt/omp_taskwait\n  code = @40\n"
				 "begin ompt/omp_task\n  task = 2\nend ompt/omp_task\n"
				 "end ompt/omp_taskwait\nend ompt/omp_task\n");
}
IN_CHILD(tasks_run_inside_tasks_that_wait)

static void a_task_that_leaves_the_thread_ends_there(void)
{
	union ompt_data implicit = {0}, a = {0};

	runtime();
	on[OMPT_TASK_CREATE].task_create(&implicit, NULL, &a, OMPT_TASK_EXPLICIT, 0, CODE);
	front_seen();
	on[OMPT_TASK_SCHEDULE].task_schedule(&implicit, OMPT_TASK_SWITCH, &a);
	on[OMPT_TASK_SCHEDULE].task_schedule(&a, OMPT_TASK_YIELD, &implicit);
	on[OMPT_TASK_SCHEDULE].task_schedule(&implicit, OMPT_TASK_SWITCH, &a);
	on[OMPT_TASK_SCHEDULE].task_schedule(&a, OMPT_TASK_DETACH, &implicit);
	on[OMPT_TASK_SCHEDULE].task_schedule(&a, OMPT_TASK_LATE_FULFILL, NULL);
	CHECK_TEXT(front_seen(), "begin ompt/omp_task\n  task = 1\nend ompt/omp_task\n"
				 "begin ompt/omp_task\n  task = 1\nend ompt/omp_task\n");
}
IN_CHILD(a_task_that_leaves_the_thread_ends_there)

/* ---- the rest ---- */

static void instants_and_control(void)
{
	runtime();
	on[OMPT_FLUSH].flush(NULL, CODE);
	on[OMPT_CANCEL].cancel(NULL, OMPT_CANCEL_LOOP | OMPT_CANCEL_ACTIVATED, CODE);
	on[OMPT_ERROR].error(2, "no", 2, CODE);
	CHECK_TEXT(front_seen(),
		   "mark ompt/omp_flush\n  code = @40\n"
		   "mark ompt/omp_cancel\n  code = @40\n  what = 'loop'\n  how = 'activated'\n"
		   "mark ompt/omp_error\n  code = @40\n  message = 'no'\n");
	CHECK(on[OMPT_CONTROL_TOOL].control(OMPT_CONTROL_PAUSE, 0, NULL, CODE) == 0);
	CHECK(on[OMPT_CONTROL_TOOL].control(OMPT_CONTROL_START, 0, NULL, CODE) == 0);
	CHECK(on[OMPT_CONTROL_TOOL].control(OMPT_CONTROL_FLUSH, 0, NULL, CODE) == 0);
	CHECK(on[OMPT_CONTROL_TOOL].control(99, 0, NULL, CODE) == -1);
	CHECK_TEXT(front_seen(), "trace_stop\ntrace_start\nflush\n");
}
IN_CHILD(instants_and_control)

static void devices(void)
{
	uint64_t id = 0;

	runtime();
	on[OMPT_TARGET_EMI].target_emi(9, OMPT_BEGIN, 2, NULL, NULL, NULL, CODE);
	on[OMPT_TARGET_DATA_OP_EMI].data_emi(OMPT_BEGIN, NULL, NULL, &id, OMPT_DATA_TO_DEVICE, NULL,
					     -1, (void *)16, 2, 64, CODE);
	on[OMPT_TARGET_DATA_OP_EMI].data_emi(OMPT_END, NULL, NULL, &id, OMPT_DATA_TO_DEVICE, NULL,
					     -1, (void *)16, 2, 64, CODE);
	on[OMPT_TARGET_SUBMIT_EMI].submit_emi(OMPT_BEGIN, NULL, &id, 8);
	on[OMPT_TARGET_SUBMIT_EMI].submit_emi(OMPT_END, NULL, &id, 8);
	on[OMPT_TARGET_EMI].target_emi(9, OMPT_END, 2, NULL, NULL, NULL, CODE);
	CHECK(!on[OMPT_TARGET].any);
	CHECK_TEXT(front_seen(),
		   "begin ompt/omp_target\n  code = @40\n  device = 2\n"
		   "begin ompt/omp_target_transfer_to_device\n  code = @40\n  bytes = 64\n"
		   "  from_device = -1\n  from = @0\n  to_device = 2\n  to = @10\n"
		   "end ompt/omp_target_transfer_to_device\n"
		   "begin ompt/omp_target_submit\n  requested_teams = 8\n"
		   "end ompt/omp_target_submit\nend ompt/omp_target\n");
}
IN_CHILD(devices)

static void devices_of_older_runtimes(void)
{
	has_emi = false;
	runtime();
	on[OMPT_TARGET].target(OMPT_TARGET_REGION, OMPT_BEGIN, 0, NULL, 1, CODE);
	on[OMPT_TARGET_DATA_OP].data(1, 1, OMPT_DATA_DELETE + OMPT_DATA_ASYNC, NULL, 0, NULL, 0, 32,
				     CODE);
	on[OMPT_TARGET_SUBMIT].submit(1, 1, 4);
	on[OMPT_TARGET].target(OMPT_TARGET_REGION, OMPT_END, 0, NULL, 1, CODE);
	CHECK_TEXT(front_seen(),
		   "begin ompt/omp_target\n  code = @40\n  device = 0\n"
		   "mark ompt/omp_target_delete\n  code = @40\n  bytes = 32\n  from_device = 0\n"
		   "  from = @0\n  to_device = 0\n  to = @0\n"
		   "mark ompt/omp_target_submit\n  requested_teams = 4\nend ompt/omp_target\n");
}
IN_CHILD(devices_of_older_runtimes)

/* ---- whose turn is it? ---- */

static void declines_when_it_is_off(void)
{
	front_environment();
	setenv("KYMO_USE_OMPT", "off", 1);
	CHECK(!start(front_open(DL_LIBRARY, RTLD_GLOBAL)));
	CHECK(!dlopen(FAKE_RUNTIME, RTLD_NOW | RTLD_NOLOAD));
}
IN_CHILD(declines_when_it_is_off)

static void declines_without_a_session(void)
{
	setenv("KYMO_LIBRARY", FAKE_RUNTIME, 1);
	CHECK(!start(front_open(DL_LIBRARY, RTLD_GLOBAL)));
}
IN_CHILD(declines_without_a_session)

/* Asked from the address space it makes way for the user's tool; asked again, that tool has
 * declined, and the list names this library as well. */
static void makes_way_for_another_tool(void)
{
	void *tool;

	front_environment();
	setenv("OMP_TOOL_LIBRARIES", "/opt/libother.so:" DL_LIBRARY, 1);
	tool = front_open(DL_LIBRARY, RTLD_GLOBAL);
	CHECK(!start(tool));
	CHECK(start(tool));
}
IN_CHILD(makes_way_for_another_tool)

static void takes_its_own_place(void)
{
	front_environment();
	setenv("OMP_TOOL_LIBRARIES", DL_LIBRARY ":/opt/libother.so", 1);
	CHECK(start(front_open(DL_LIBRARY, RTLD_GLOBAL)));
}
IN_CHILD(takes_its_own_place)

static void a_runtime_without_callbacks_is_left(void)
{
	struct ompt_start_tool_result *result;

	front_environment();
	result = start(front_open(DL_LIBRARY, RTLD_LOCAL));
	CHECK(result);
	memset(on, 0, sizeof(on));
	result->finalize(&result->tool_data);
}
IN_CHILD(a_runtime_without_callbacks_is_left)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_child_a_parallel_region),
		cmocka_unit_test(in_child_a_worker_ends_what_is_left_open),
		cmocka_unit_test(in_child_deep_nesting_stays_balanced),
		cmocka_unit_test(in_child_locks),
		cmocka_unit_test(in_child_tasks_run_inside_tasks_that_wait),
		cmocka_unit_test(in_child_a_task_that_leaves_the_thread_ends_there),
		cmocka_unit_test(in_child_instants_and_control),
		cmocka_unit_test(in_child_devices),
		cmocka_unit_test(in_child_devices_of_older_runtimes),
		cmocka_unit_test(in_child_declines_when_it_is_off),
		cmocka_unit_test(in_child_declines_without_a_session),
		cmocka_unit_test(in_child_makes_way_for_another_tool),
		cmocka_unit_test(in_child_takes_its_own_place),
		cmocka_unit_test(in_child_a_runtime_without_callbacks_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
