/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include "session_fixture.h"

#include <stdlib.h>

#include "analysis/views.h"
#include "common/array.h"
#include "regions_fixture.h"

#define MS     UINT64_C(1000000)
#define AT(ms) (FIXTURE_START_NS + (ms)*MS)

static const char *const work_arguments[] = {"./work", "-j2", "a file"};
static const char *const other_arguments[] = {"</script>"};

static struct model_metric_sample work_metrics[] = {
	{AT(1), SPOOL_PROCESS_RSS_BYTES, 1 << 20},      {AT(1), SPOOL_PROCESS_USER_NS, 1 * MS},
	{AT(1), SPOOL_HOST_CPU_BUSY_NS, 100 * MS},      {AT(1), SPOOL_HOST_CPU_TOTAL_NS, 400 * MS},
	{AT(1), SPOOL_HOST_CPU_FREQUENCY_KHZ, 2000000}, {AT(101), SPOOL_PROCESS_RSS_BYTES, 2 << 20},
	{AT(101), SPOOL_PROCESS_USER_NS, 51 * MS},      {AT(101), SPOOL_HOST_CPU_BUSY_NS, 200 * MS},
	{AT(101), SPOOL_HOST_CPU_TOTAL_NS, 600 * MS},
};

static struct model_notice work_notices[] = {
	{AT(0), SPOOL_NOTICE_SOURCE, SPOOL_CPU_SOURCE_TIMER, "perf is not permitted"},
	{AT(50), SPOOL_NOTICE_THROTTLE, 2000000, "overhead above 5 %"},
};

static struct model_process processes[] = {
	{.pid = 1000,
	 .parent_pid = 999,
	 .image = 0,
	 .process_start = 77,
	 .spool_path = "1000-0",
	 .executable = "/bin/sh",
	 .command_line = "sh -c ./work",
	 .name = "sh",
	 .host = "box",
	 .working_directory = "/",
	 .start_ns = AT(0),
	 .end_ns = AT(1),
	 .state = SPOOL_STATE_EXEC,
	 .wait_status = -1,
	 .first_thread = 0,
	 .thread_count = 1,
	 .first_module = 0,
	 .module_count = 0,
	 .cpu_source = SPOOL_CPU_SOURCE_TIMER,
	 .cpu_source_reason = "no perf"},
	{.pid = 1000,
	 .parent_pid = 999,
	 .image = 1,
	 .process_start = 77,
	 .spool_path = "1000-1",
	 .executable = "/bin/work",
	 .command_line = "./work -j2 'a file'",
	 .name = "work",
	 .host = "box",
	 .working_directory = "/",
	 .arguments = work_arguments,
	 .argument_count = 3,
	 .start_ns = AT(1),
	 .end_ns = AT(200),
	 .state = SPOOL_STATE_EXITED,
	 .wait_status = 0,
	 .first_thread = 1,
	 .thread_count = 2,
	 .first_module = 0,
	 .module_count = 2,
	 .metrics = work_metrics,
	 .metric_count = ARRAY_SIZE(work_metrics),
	 .notices = work_notices,
	 .notice_count = 2,
	 .samples = 12,
	 .header_sample_count = 12,
	 .stacks = {11, 1},
	 .losses = {[SPOOL_LOSS_NO_CHUNK] = 5, [SPOOL_LOSS_THROTTLED] = 1},
	 .signals = 12,
	 .handler_ns = 12000,
	 .cpu_covered_ns = 70 * MS},
	{.pid = 2000,
	 .parent_pid = 1000,
	 .image = 0,
	 .process_start = 501,
	 .spool_path = "2000-0",
	 .executable = "/bin/</script>",
	 .command_line = "'</script>'",
	 .name = "</script>",
	 .host = "box",
	 .working_directory = "/",
	 .arguments = other_arguments,
	 .argument_count = 1,
	 .start_ns = AT(20),
	 .end_ns = AT(200),
	 .state = SPOOL_STATE_OPEN,
	 .wait_status = 9,
	 .first_thread = 3,
	 .thread_count = 1,
	 .first_module = 2,
	 .module_count = 1,
	 .samples = 2,
	 .header_sample_count = 2,
	 .stacks = {2},
	 .losses = {[SPOOL_LOSS_REENTRY] = 2},
	 .cpu_covered_ns = 20 * MS},
};

static struct model_thread threads[] = {
	{.process = 0,
	 .tid = 1000,
	 .parent = MODEL_ENTRY_INDEX_NONE,
	 .name = "sh",
	 .start_ns = AT(0),
	 .end_ns = AT(1)},
	{.process = 1,
	 .tid = 1000,
	 .parent = MODEL_ENTRY_INDEX_NONE,
	 .name = "main",
	 .start_ns = AT(1),
	 .end_ns = UINT64_MAX,
	 .cpu_ns = 40 * MS,
	 .covered_ns = 40 * MS,
	 .samples = {5, 2, 0, 1},
	 .weight = {40 * MS, 60 * MS, 0, 10 * MS}},
	{.process = 1,
	 .internal_id = 1,
	 .sequent_id = 1,
	 .tid = 1001,
	 .parent = 1,
	 .name = "pool; 1",
	 .how = 1,
	 .start_ns = AT(2),
	 .end_ns = AT(150),
	 .samples = {3},
	 .weight = {30 * MS}},
	{.process = 2,
	 .tid = 2000,
	 .parent = MODEL_ENTRY_INDEX_NONE,
	 .name = "other",
	 .start_ns = AT(20),
	 .end_ns = UINT64_MAX,
	 .samples = {1, 0, 2},
	 .weight = {20 * MS, 0, 2000}},
};

static struct model_module modules[] = {
	{.process = 1,
	 .start = 0x400000,
	 .end = 0x500000,
	 .file_offset = 0x1000,
	 .build_id = {0xde, 0xad, 0xbe, 0xef},
	 .build_id_size = 20,
	 .path = "/bin/work",
	 .name = "work",
	 .unloaded_ns = UINT64_MAX},
	{.process = 1,
	 .start = 0x7f0000000000,
	 .end = 0x7f0000100000,
	 .path = "/lib/libc.so.6",
	 .name = "libc.so.6",
	 .unloaded_ns = UINT64_MAX},
	{.process = 2,
	 .start = 0x400000,
	 .end = 0x500000,
	 .path = "/bin/</script>",
	 .name = "</script>",
	 .unloaded_ns = UINT64_MAX},
};

/* main at two lines is one function; "hot" is inlined into "compute". */
static struct model_frame frames[] = {
	{"main", NULL, "/src/work.c", 10, 5, 0, 0x1010, FRAME_NATIVE, 0},
	{"main", NULL, "/src/work.c", 12, 5, 0, 0x1020, FRAME_NATIVE, 0},
	{"compute(int, char const*)", "_Z7computeiPKc", "/src/work.c", 40, 30, 0, 0x1100,
	 FRAME_NATIVE, 1},
	{"hot", NULL, "/src/hot.h", 3, 1, 0, 0x1100, FRAME_INLINE, 2},
	{"poll", NULL, NULL, 0, 0, 1, 0x2200, FRAME_NATIVE, 3},
	{"worker;\xff<img src=x onerror=alert(1)>", NULL, "/src/work.c", 70, 60, 0, 0x1200,
	 FRAME_NATIVE, 4},
	{"[stack cut: no unwind information]", NULL, NULL, 0, 0, MODEL_ENTRY_INDEX_NONE, 0,
	 FRAME_SYNTHETIC, 5},
	{"</script><script>alert(1)</script>", NULL, NULL, 0, 0, 2, 0x3000, FRAME_UNRESOLVED, 6},
};

#define CPU(samples_, ms_) .self_samples = {samples_}, .self_weight = {(ms_)*MS}
static struct model_calltree_node nodes[] = {
	/* 0 */ {MODEL_ENTRY_INDEX_NONE, 0, 1, 1, 3, 0, CPU(1, 5)},
	/* 1 */ {0, 2, 1, 2, MODEL_ENTRY_INDEX_NONE, 1, CPU(0, 0)},
	/* 2 */ {1, 3, 1, MODEL_ENTRY_INDEX_NONE, MODEL_ENTRY_INDEX_NONE, 2, CPU(3, 25)},
	/* 3: main, another line */ {MODEL_ENTRY_INDEX_NONE, 1, 1, 4, 5, 0, CPU(0, 0)},
	/* 4 */
	{3, 4, 1, MODEL_ENTRY_INDEX_NONE, MODEL_ENTRY_INDEX_NONE, 1, .self_samples = {0, 2, 0, 1},
	 .self_weight = {0, 60 * MS, 0, 10 * MS}},
	/* 5 */ {MODEL_ENTRY_INDEX_NONE, 5, 1, 6, 7, 0, CPU(2, 20)},
	/* 6: recursion */ {5, 5, 1, MODEL_ENTRY_INDEX_NONE, MODEL_ENTRY_INDEX_NONE, 1, CPU(1, 10)},
	/* 7 */ {MODEL_ENTRY_INDEX_NONE, 6, 1, 8, MODEL_ENTRY_INDEX_NONE, 0, CPU(0, 0)},
	/* 8 */ {7, 4, 1, MODEL_ENTRY_INDEX_NONE, MODEL_ENTRY_INDEX_NONE, 1, CPU(1, 10)},
	/* 9 */
	{MODEL_ENTRY_INDEX_NONE, 7, 2, MODEL_ENTRY_INDEX_NONE, MODEL_ENTRY_INDEX_NONE, 0,
	 .self_samples = {1, 0, 2}, .self_weight = {20 * MS, 0, 2000}},
};

static const struct model_sample samples[] = {
	/* The pool thread's chunk comes first, so times go back once. */
	{AT(30), 10 * MS, 1, 2, 5, SPOOL_SOURCE_CPU, SPOOL_STACK_COMPLETE, .metric_bitmap = 5,
	 .metrics = {20 * MS, 0, 3}},
	{AT(31), 10 * MS, 1, 2, 5, SPOOL_SOURCE_CPU, SPOOL_STACK_COMPLETE, .metric_bitmap = 5,
	 .metrics = {30 * MS, 0, 4}},
	{AT(41), 10 * MS, 1, 2, 6, SPOOL_SOURCE_CPU, SPOOL_STACK_COMPLETE, .metric_bitmap = 1,
	 .metrics = {31 * MS, 0, 4}},
	{AT(10), 5 * MS, 1, 1, 0, SPOOL_SOURCE_CPU, SPOOL_STACK_COMPLETE, .is_repeat = 0},
	{AT(20), 10 * MS, 1, 1, 2, SPOOL_SOURCE_CPU, SPOOL_STACK_COMPLETE, .is_repeat = 0},
	{AT(30), 10 * MS, 1, 1, 2, SPOOL_SOURCE_CPU, SPOOL_STACK_COMPLETE, .is_repeat = 0},
	{AT(40), 5 * MS, 1, 1, 2, SPOOL_SOURCE_CPU, SPOOL_STACK_COMPLETE, .is_repeat = 0},
	{AT(60), 40 * MS, 1, 1, 4, SPOOL_SOURCE_WALL, SPOOL_STACK_COMPLETE, .is_repeat = 0},
	{AT(80), 20 * MS, 1, 1, 4, SPOOL_SOURCE_WALL, SPOOL_STACK_COMPLETE, .is_repeat = 1},
	{AT(90), 10 * MS, 1, 1, 4, SPOOL_SOURCE_RUNNABLE, SPOOL_STACK_COMPLETE, .metric_bitmap = 8,
	 .metrics = {0, 0, 0, 1}},
	{AT(95), 10 * MS, 1, 1, 8, SPOOL_SOURCE_CPU, SPOOL_STACK_NO_TABLE, .metric_bitmap = 8,
	 .metrics = {0, 0, 0, 2}},
	{AT(100), 20 * MS, 2, 3, 9, SPOOL_SOURCE_CPU, SPOOL_STACK_COMPLETE, .is_repeat = 0},
	{AT(110), 1000, 2, 3, 9, SPOOL_SOURCE_OVERFLOW, SPOOL_STACK_COMPLETE, .is_repeat = 0},
	{AT(120), 1000, 2, 3, 9, SPOOL_SOURCE_OVERFLOW, SPOOL_STACK_COMPLETE, .is_repeat = 0},
};
#define SAMPLE_COUNT ARRAY_SIZE(samples)

/* Sorted by thread, then node, as view_sum_by_thread_and_node() promises. */
static const struct view_thread_node_row thread_nodes[] = {
	{1, 0, .self_weight = {5 * MS}, .self_samples = {1}},
	{1, 2, .self_weight = {25 * MS}, .self_samples = {3}},
	{1, 4, .self_weight = {0, 60 * MS, 0, 10 * MS}, .self_samples = {0, 2, 0, 1}},
	{1, 8, .self_weight = {10 * MS}, .self_samples = {1}},
	{2, 5, .self_weight = {20 * MS}, .self_samples = {2}},
	{2, 6, .self_weight = {10 * MS}, .self_samples = {1}},
	{3, 9, .self_weight = {20 * MS, 0, 2000}, .self_samples = {1, 0, 2}},
};

static uint64_t repeated_samples;

struct session *fixture_session(void)
{
	static struct session session = {.directory = "/tmp/result",
					 .command_line = "sh -c ./work",
					 .processes = processes,
					 .threads = threads,
					 .modules = modules,
					 .frames = frames,
					 .nodes = nodes,
					 .process_count = 3,
					 .thread_count = 4,
					 .module_count = 3,
					 .frame_count = 8,
					 .node_count = 10,
					 .function_count = 7,
					 .start_ns = AT(0),
					 .end_ns = AT(200),
					 .realtime_minus_boottime_ns =
						 INT64_C(1700000000000000000)};
	repeated_samples = 0;
	session_set_kind_data(&session, REGIONS_DATA_KIND_NAME, fixture_no_regions());
	return &session;
}

struct session *fixture_empty_session(void)
{
	static struct session session = {.directory = "/tmp/result", .command_line = "nothing"};

	session_set_kind_data(&session, REGIONS_DATA_KIND_NAME, fixture_no_regions());
	return &session;
}

void fixture_repeat_samples(uint64_t count)
{
	repeated_samples = count;
}

int session_visit_samples(struct session *session, int (*each)(const struct model_sample *, void *),
			  void *context, struct problem *problem)
{
	(void)problem;
	uint64_t count = repeated_samples != 0 ? repeated_samples : SAMPLE_COUNT;
	if (session->process_count == 0)
		count = 0;

	for (uint64_t i = 0; i < count; i++) {
		struct model_sample sample = samples[i % SAMPLE_COUNT];
		sample.time_ns += i / SAMPLE_COUNT * 1000;
		int result = each(&sample, context);
		if (result != 0)
			return result;
	}
	return 0;
}

int view_sum_by_thread_and_node(struct session *session, const struct view_thread_node_row **ret,
				size_t *count)
{
	*ret = thread_nodes;
	*count = session->process_count == 0 ? 0 : ARRAY_SIZE(thread_nodes);
	return 0;
}
