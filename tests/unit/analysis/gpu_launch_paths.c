/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Device time by the call path of its launch: work becomes part of the call tree, below its stack,
 * or below a node that says why it has none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "analysis/gpu/gpu.h"
#include "analysis/views.h"
#include "common/leb128.h"
#include "unit/analysis/spool_fixture.h"
#include "unit/analysis/test_directory.h"

#define PID           100
#define PROCESS_START 77

enum { GEMM = 1, ADD };

/* ---- files by hand ---- */

static uint8_t bytes[1 << 16];
static size_t used;

static void add(void *record, size_t size)
{
	struct gpu_record_head *head = record;

	head->size = (uint16_t)size;
	memcpy(bytes + used, record, size);
	used += size;
}

static void add_name(uint32_t id, const char *text)
{
	union {
		struct gpu_string string;
		char bytes[32];
	} record = {.string = {{GPU_RECORD_STRING, 0, id}}};
	struct gpu_shape shape = {.head = {GPU_RECORD_SHAPE, 0, id}, .kernel = id};

	strcpy(record.bytes + sizeof(struct gpu_string), text);
	add(&record, sizeof(record));
	add(&shape, sizeof(shape));
}

static void begin_gpu_file(void)
{
	memset(bytes, 0, sizeof(bytes));
	used = GPU_HEADER_SIZE;
	add_name(GEMM, "gemm");
	add_name(ADD, "add");
}

static void add_kernel(uint32_t shape, uint64_t ns, uint32_t tid, uint32_t launch_path)
{
	struct gpu_kernel kernel = {.head = {GPU_RECORD_KERNEL, 0, shape},
				    .start = FIXTURE_START + FIXTURE_BOOT + 5000,
				    .duration = ns,
				    .tid = tid,
				    .launch_path = launch_path};

	add(&kernel, sizeof(kernel));
}

static void add_copy(uint64_t ns, uint32_t launch_path)
{
	struct gpu_copy copy = {.head = {GPU_RECORD_COPY, 0, GPU_DIRECTION_HOST_TO_DEVICE},
				.start = FIXTURE_START + FIXTURE_BOOT + 5000,
				.duration = ns,
				.bytes = 1,
				.tid = PID,
				.launch_path = launch_path};

	add(&copy, sizeof(copy));
}

static void end_gpu_file(const char *directory)
{
	struct gpu_file_header *header = (void *)bytes;
	char path[4096];
	FILE *stream;

	memcpy(header->magic, GPU_MAGIC, sizeof(header->magic));
	header->version_major = GPU_VERSION_MAJOR;
	header->version_minor = GPU_VERSION_MINOR;
	header->header_size = GPU_HEADER_SIZE;
	header->pid = PID;
	header->process_start = PROCESS_START;
	header->start_boottime_ns = FIXTURE_START + FIXTURE_BOOT + 2000;
	header->committed = used - GPU_HEADER_SIZE;
	header->state = GPU_FILE_CLOSED;
	snprintf(path, sizeof(path), "%s/spool/%u-0.gpu", directory, PID);
	stream = fopen(path, "w");
	assert_non_null(stream);
	assert_int_equal(fwrite(bytes, 1, used, stream), used);
	assert_int_equal(fclose(stream), 0);
}

/* Innermost first, as recorded. */
static void add_path_with_waiting(struct spool_fixture *fixture, uint64_t number,
				  enum spool_stack_end end, const uint64_t *frames, size_t count,
				  uint64_t waiting_count)
{
	uint8_t record[256], *at = leb128_write(record, number);
	uint64_t before = 0;

	at = write_fixed64_little_endian(at, FIXTURE_START + 3000);
	at = leb128_write(at, end);
	at = leb128_write(at, count);
	for (size_t i = 0; i < count; i++) {
		at = leb128_write_zigzag(at, (int64_t)(frames[i] - before));
		before = frames[i];
	}
	at = leb128_write(at, waiting_count);
	fixture_record(fixture, SPOOL_RECORD_LAUNCH_PATH, record, (size_t)(at - record));
}

static void add_path(struct spool_fixture *fixture, uint64_t number, enum spool_stack_end end,
		     const uint64_t *frames, size_t count)
{
	add_path_with_waiting(fixture, number, end, frames, count, 0);
}

/* A function of Python. */
static void add_code(struct spool_fixture *fixture, uint64_t id, const char *name, const char *file)
{
	uint8_t record[256], *at = leb128_write(record, id);

	at = leb128_write(at, SPOOL_INTERPRETER_CPYTHON);
	at = leb128_write(at, SPOOL_LINES_NONE);
	at = leb128_write(at, 1);
	at = leb128_write(at, 0);
	at = leb128_write(at, strlen(name));
	memcpy(at, name, strlen(name));
	at = leb128_write(at + strlen(name), strlen(file));
	memcpy(at, file, strlen(file));
	at += strlen(file);
	fixture_record(fixture, SPOOL_RECORD_INTERPRETED_CODE, record, (size_t)(at - record));
}

static uint64_t frame_of_code(uint64_t id)
{
	return SPOOL_INTERPRETED_FRAME_BIT | id << SPOOL_INTERPRETED_POSITION_BITS | 1;
}

/* A program at 0x400000, the driver at 0x500000, kymo at 0x600000; two threads. */
static void begin_spool_file(struct spool_fixture *fixture, const char *directory)
{
	fixture_open_in(fixture, directory, PID, 0);
	fixture->header.process_start = PROCESS_START;
	fixture_clock(fixture, FIXTURE_START);
	fixture_process(fixture, "/nowhere/train", "train", 6);
	fixture_module(fixture, FIXTURE_START, 1, 0x400000, 0x410000, 0, "/nowhere/train");
	fixture_module(fixture, FIXTURE_START, 2, 0x500000, 0x510000, 0, "/nowhere/libcuda.so.1");
	fixture_module(fixture, FIXTURE_START, 3, 0x600000, 0x610000, 0, "/nowhere/libkymo-gpu.so");
	fixture_module(fixture, FIXTURE_START, 4, 0x700000, 0x710000, 0,
		       "/nowhere/libtorch_python.so");
	fixture_thread_start(fixture, FIXTURE_START, 1, PID, 0, "train", 0);
	fixture_thread_start(fixture, FIXTURE_START, 2, PID + 1, 1, "backward", 1);
}

static struct gpu_launch_path_sums get_sums(const struct session *session)
{
	assert_non_null(session_get_gpu_data(session));
	return session_get_gpu_data(session)->launch_paths;
}

/* The device time of all nodes below the root whose path begins so. */
static uint64_t sum_device_ns(const struct session *session, const char *path)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < session->node_count; i++) {
		if (!strncmp(test_path(session, i), path, strlen(path)))
			ns += session->nodes[i].self_weight[MODEL_SOURCE_DEVICE];
	}
	return ns;
}

/* ---- tests ---- */

static const uint64_t forward[] = {0x600010, 0x600020, 0x500010, 0x400100, 0x400010};
static const uint64_t backward[] = {0x600010, 0x600020, 0x500010, 0x400200, 0x400010};

static struct session *open_session(const char *directory)
{
	struct session_options options = {.skip_symbolizing = false, .symbol_cache_directory = ""};

	return test_session(directory, &options);
}

static void test_work_stands_below_the_stack_of_its_launch(void **state)
{
	struct spool_fixture fixture;
	struct gpu_launch_path_sums sums;
	struct session *session;
	uint64_t forward_ns = 0, backward_ns = 0;

	begin_spool_file(&fixture, *state);
	add_path(&fixture, 1, SPOOL_STACK_COMPLETE, forward, 5);
	add_path(&fixture, 2, SPOOL_STACK_COMPLETE, backward, 5);
	fixture_close(&fixture);
	begin_gpu_file();
	add_kernel(GEMM, 100, PID, 1);
	add_kernel(GEMM, 150, PID, 1);
	add_kernel(ADD, 30, PID, 1);
	add_kernel(GEMM, 700, PID + 1, 2);
	add_copy(20, 2);
	end_gpu_file(*state);
	session = open_session(*state);
	sums = get_sums(session);
	assert_true(sums.is_recorded);
	assert_int_equal(sums.all.ns, 1000);
	assert_int_equal(sums.all.kernels, 4);
	assert_int_equal(sums.complete.ns, 1000);
	assert_int_equal(sums.complete.copies, 1);
	for (uint32_t i = 0; i < session->node_count; i++) {
		const struct model_calltree_node *node = &session->nodes[i];
		const struct model_frame *frame = &session->frames[node->frame];
		uint64_t ns = node->self_weight[MODEL_SOURCE_DEVICE];

		if (!ns)
			continue;
		/* The program's two frames and the driver's, without kymo's, and the work. */
		assert_int_equal(node->depth, 3);
		assert_int_equal(frame->kind, FRAME_DEVICE_WORK);
		if (!strcmp(frame->function, "gemm")) {
			bool is_backward = ns == 700;

			assert_int_equal(ns, is_backward ? 700 : 250);
			assert_int_equal(node->self_samples[MODEL_SOURCE_DEVICE],
					 is_backward ? 1 : 2);
			*(is_backward ? &backward_ns : &forward_ns) += ns;
		} else if (!strcmp(frame->function, "add")) {
			assert_int_equal(ns, 30);
			forward_ns += ns;
		} else {
			assert_string_equal(frame->function, "[copy host to device]");
			assert_int_equal(ns, 20);
			backward_ns += ns;
		}
	}
	assert_int_equal(forward_ns, 280);
	assert_int_equal(backward_ns, 720);
	assert_int_equal(session->threads[0].weight[MODEL_SOURCE_DEVICE], 300);
	assert_int_equal(session->threads[1].weight[MODEL_SOURCE_DEVICE], 700);
	session_close(session);
}

static void test_samples_do_not_count_work(void **state)
{
	const struct view_thread_node_row *rows;
	struct spool_fixture fixture;
	struct session *session;
	uint64_t device = 0, cpu = 0;
	size_t count;

	begin_spool_file(&fixture, *state);
	add_path(&fixture, 1, SPOOL_STACK_COMPLETE, forward, 5);
	fixture_close(&fixture);
	begin_gpu_file();
	add_kernel(GEMM, 100, PID + 1, 1);
	end_gpu_file(*state);
	session = open_session(*state);
	assert_int_equal(view_sum_by_thread_and_node(session, &rows, &count), 0);
	for (size_t i = 0; i < count; i++) {
		device +=
			view_sum_sources_of_measure(rows[i].self_weight, VIEW_MEASURE_DEVICE_TIME);
		cpu += view_sum_sources_of_measure(rows[i].self_weight, VIEW_MEASURE_REAL_TIME);
		if (rows[i].self_weight[MODEL_SOURCE_DEVICE])
			assert_int_equal(session->threads[rows[i].thread].tid, PID + 1);
	}
	assert_int_equal(device, 100);
	assert_int_equal(cpu, 0);
	session_close(session);
}

static void test_what_has_no_path_says_why(void **state)
{
	struct spool_fixture fixture;
	struct gpu_launch_path_sums sums;
	struct session *session;

	begin_spool_file(&fixture, *state);
	add_path(&fixture, 7, SPOOL_STACK_NO_TABLE, forward, 3);
	fixture_close(&fixture);
	begin_gpu_file();
	add_kernel(GEMM, 1, PID, 7);
	add_kernel(GEMM, 2, PID, GPU_LAUNCH_PATH_NONE);
	add_kernel(GEMM, 4, PID, GPU_LAUNCH_PATH_NO_COLLECTOR);
	add_kernel(GEMM, 8, PID, GPU_LAUNCH_PATH_UNKNOWN_THREAD);
	add_kernel(GEMM, 16, PID, GPU_LAUNCH_PATH_NESTED);
	add_kernel(GEMM, 32, PID, GPU_LAUNCH_PATH_TOO_MANY);
	add_kernel(GEMM, 64, PID, GPU_LAUNCH_PATH_NOT_WRITTEN);
	add_kernel(GEMM, 128, PID, 8);   /* its record is lost */
	add_kernel(GEMM, 256, PID, ~0u); /* of a later version */
	end_gpu_file(*state);
	session = open_session(*state);
	sums = get_sums(session);
	assert_int_equal(sums.all.ns, 511);
	assert_int_equal(sums.complete.ns, 0);
	assert_int_equal(sums.cut[SPOOL_STACK_NO_TABLE].ns, 1);
	assert_int_equal(sums.gaps[GPU_PATH_GAP_LAUNCH_UNSEEN].ns, 2);
	assert_int_equal(sums.gaps[GPU_PATH_GAP_NO_COLLECTOR].ns, 4);
	assert_int_equal(sums.gaps[GPU_PATH_GAP_UNKNOWN_THREAD].ns, 8);
	assert_int_equal(sums.gaps[GPU_PATH_GAP_NESTED].ns, 16);
	assert_int_equal(sums.gaps[GPU_PATH_GAP_TOO_MANY].ns, 32);
	assert_int_equal(sums.gaps[GPU_PATH_GAP_NOT_WRITTEN].ns, 64);
	assert_int_equal(sums.gaps[GPU_PATH_GAP_RECORD_MISSING].ns, 384);
	assert_int_equal(sum_device_ns(session, "[no call path: its launch was not seen];"), 2);
	assert_int_equal(sum_device_ns(session, "[no call path: "), 510);
	assert_int_equal(sum_device_ns(session, "[stack cut: no unwind information];"), 1);
	session_close(session);
}

/* The device time below a function. */
static uint64_t sum_below(const struct session *session, const char *function)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < session->node_count; i++) {
		uint32_t at = i;

		while (at != MODEL_ENTRY_INDEX_NONE &&
		       strcmp(session->frames[session->nodes[at].frame].function, function) != 0)
			at = session->nodes[at].parent;
		if (at != MODEL_ENTRY_INDEX_NONE)
			ns += session->nodes[i].self_weight[MODEL_SOURCE_DEVICE];
	}
	return ns;
}

static void test_frames_of_who_waits_count_where_others_launch_for_it(void **state)
{
	uint64_t gradients[] = {0x500010, 0x700100, frame_of_code(1), frame_of_code(3)};
	uint64_t pool[] = {0x500010, 0x700200, frame_of_code(2), frame_of_code(3)};
	/* A thread of the program's own, while gradients are waited for. */
	uint64_t beside[] = {0x500010, 0x400100, frame_of_code(1), frame_of_code(3)};
	struct spool_fixture fixture;
	struct session *session;

	begin_spool_file(&fixture, *state);
	add_code(&fixture, 1, "run_backward", "/lib/torch/autograd/graph.py");
	add_code(&fixture, 2, "sleep", "/home/train.py");
	add_code(&fixture, 3, "train", "/home/train.py");
	add_path_with_waiting(&fixture, 1, SPOOL_STACK_COMPLETE, gradients, 4, 2);
	add_path_with_waiting(&fixture, 2, SPOOL_STACK_COMPLETE, pool, 4, 2);
	add_path_with_waiting(&fixture, 3, SPOOL_STACK_COMPLETE, pool, 4, 5); /* impossible */
	add_path_with_waiting(&fixture, 4, SPOOL_STACK_COMPLETE, beside, 4, 2);
	fixture_close(&fixture);
	begin_gpu_file();
	add_kernel(GEMM, 100, PID, 1);
	add_kernel(GEMM, 30, PID, 2);
	add_kernel(GEMM, 7, PID, 3);
	add_kernel(GEMM, 11, PID, 4);
	end_gpu_file(*state);
	session = open_session(*state);
	assert_int_equal(get_sums(session).complete.ns, 141);
	assert_int_equal(get_sums(session).gaps[GPU_PATH_GAP_RECORD_MISSING].ns, 7);
	assert_int_equal(sum_below(session, "train"), 100);
	assert_int_equal(sum_below(session, "run_backward"), 100);
	assert_int_equal(sum_below(session, "sleep"), 0);
	assert_int_equal(sum_below(session, "gemm"), 148);
	session_close(session);
}

static void test_records_without_paths_have_no_measure(void **state)
{
	struct spool_fixture fixture;
	struct session *session;

	begin_spool_file(&fixture, *state);
	fixture_close(&fixture);
	begin_gpu_file();
	add_kernel(GEMM, 5, PID, GPU_LAUNCH_PATH_NONE);
	end_gpu_file(*state);
	session = open_session(*state);
	assert_false(get_sums(session).is_recorded);
	assert_int_equal(sum_device_ns(session, ""), 0);
	session_close(session);
}

static void test_damaged_records_are_left_out(void **state)
{
	static const uint8_t cut[] = {1, 0, 0, 0},
			     many[] = {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 7, 1, 1};
	struct spool_fixture fixture;
	struct session *session;

	begin_spool_file(&fixture, *state);
	fixture_record(&fixture, SPOOL_RECORD_LAUNCH_PATH, cut, sizeof(cut));
	fixture_record(&fixture, SPOOL_RECORD_LAUNCH_PATH, many, sizeof(many));
	add_path(&fixture, 3, SPOOL_STACK_COMPLETE, forward, 5);
	fixture_close(&fixture);
	begin_gpu_file();
	add_kernel(GEMM, 5, PID, 1);
	add_kernel(GEMM, 6, PID, 3);
	end_gpu_file(*state);
	session = open_session(*state);
	assert_int_equal(get_sums(session).complete.ns, 6);
	assert_int_equal(get_sums(session).gaps[GPU_PATH_GAP_RECORD_MISSING].ns, 5);
	session_close(session);
}

#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, test_directory_create, test_directory_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_work_stands_below_the_stack_of_its_launch),
		TEST(test_samples_do_not_count_work),
		TEST(test_what_has_no_path_says_why),
		TEST(test_frames_of_who_waits_count_where_others_launch_for_it),
		TEST(test_records_without_paths_have_no_measure),
		TEST(test_damaged_records_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
