/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * roctx without a profiler, and with one that comes late: the function that it looks for is here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rocprofiler-sdk-roctx/api_trace.h>
#include <rocprofiler-sdk-roctx/roctx.h>

static unsigned calls, asked, marks;
static const char *marked;
/* 6: "the profiler did not take the tables"; 1: it keeps them. */
static int answer = 6;

int rocprofiler_register_library_api_table(const char *name, uint32_t (*import)(void),
					   uint32_t version, void **tables, uint64_t count,
					   uint64_t *identifier);

static void mark(const char *message)
{
	marked = message;
	marks++;
}

__attribute__((visibility("default"))) int
rocprofiler_register_library_api_table(const char *name, uint32_t (*import)(void), uint32_t version,
				       void **tables, uint64_t count, uint64_t *identifier)
{
	roctxCoreApiTable_t *core = tables[0];

	asked++;
	assert_string_equal(name, "roctx");
	assert_int_equal(import(), version);
	assert_int_equal(version, ROCTX_VERSION);
	assert_int_equal(count, 3);
	assert_int_equal(core->size, sizeof(*core));
	assert_int_equal(((roctxControlApiTable_t *)tables[1])->size,
			 sizeof(roctxControlApiTable_t));
	assert_int_equal(((roctxNameApiTable_t *)tables[2])->size, sizeof(roctxNameApiTable_t));
	*identifier = 1;
	if (answer != 6)
		core->roctxMarkA_fn = mark;
	return answer;
}

static void *another_thread(void *nothing)
{
	assert_int_equal(roctxRangePushA("its own level"), 0);
	assert_int_equal(roctxRangePop(), 0);
	return nothing;
}

static void levels_and_ids(void **state)
{
	roctx_thread_id_t id = 0;
	roctx_range_id_t first;
	pthread_t thread;

	(void)state;
	assert_int_equal(roctxRangePop(), -1);
	assert_int_equal(roctxRangePush("one"), 0);
	assert_int_equal(roctxRangePush("two"), 1);
	assert_int_equal(pthread_create(&thread, NULL, another_thread, NULL), 0);
	pthread_join(thread, NULL);
	assert_int_equal(roctxRangePop(), 1);
	assert_int_equal(roctxRangePop(), 0);
	assert_int_equal(roctxRangePop(), -1);
	first = roctxRangeStart("a");
	assert_int_equal(first, 1);
	assert_int_equal(roctxRangeStart("b"), 2);
	roctxRangeStop(first);
	roctxRangeStop(77);
	assert_int_equal(roctxGetThreadId(&id), 0);
	assert_int_equal(id, syscall(SYS_gettid));
	assert_int_equal(roctxProfilerPause(0), 0);
	assert_int_equal(roctxProfilerResume(id), 0);
	assert_int_equal(roctxNameOsThread("main"), 0);
	assert_int_equal(roctxNameHipDevice("gpu", 0), 0);
	assert_int_equal(roctxNameHipStream("stream", NULL), 0);
}

/* In C no compiler keeps a program from it. */
static void null_is_survived(void **state)
{
	const char *volatile none = NULL;
	roctx_thread_id_t *volatile nowhere = NULL;

	(void)state;
	roctxMarkA(none);
	assert_int_equal(roctxRangePushA(none), 0);
	assert_int_equal(roctxRangePop(), 0);
	roctxRangeStop(roctxRangeStartA(none));
	assert_int_equal(roctxGetThreadId(nowhere), -1);
	assert_int_equal(roctxNameHsaAgent("agent", (const struct hsa_agent_s *)(uintptr_t)none),
			 -1);
}

/* Asked at once, then ever more seldom, and no more when it has the tables. */
static void a_profiler_that_comes_late(void **state)
{
	unsigned before = asked;

	(void)state;
	for (calls = 0; calls < 4096; calls++)
		roctxMark("nobody");
	assert_in_range(asked - before, 3, 16);
	assert_int_equal(marks, 0);
	answer = 1;
	for (calls = 0; calls < 1 << 16 && !marks; calls++)
		roctxMark("somebody");
	assert_int_equal(marks, 1);
	assert_string_equal(marked, "somebody");
	before = asked;
	for (calls = 0; calls < 4096; calls++)
		roctxMark("all");
	assert_int_equal(asked, before);
	assert_int_equal(marks, 4097);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(levels_and_ids),
		cmocka_unit_test(null_is_survived),
		cmocka_unit_test(a_profiler_that_comes_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
