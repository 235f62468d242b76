/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Device time by range: whose work it is where ranges nest, overlap, end elsewhere or never, and
 * where the launch is not known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/gpu/gpu.h"
#include "common/array.h"

enum { STEP = 1, FORWARD, BACKWARD, NAMES };

static const char *const names[] = {"", "step", "forward", "backward"};

static uint8_t *bytes;
static size_t used, room;

static void add(void *record, size_t size)
{
	struct gpu_record_head *head = record;
	size_t whole = (size + 7) & ~(size_t)7;

	if (used + whole > room) {
		room = 2 * (used + whole);
		bytes = realloc(bytes, room);
		assert_non_null(bytes);
	}
	head->size = (uint16_t)whole;
	memset(bytes + used, 0, whole);
	memcpy(bytes + used, record, size);
	used += whole;
}

static void add_string(uint32_t id, const char *text)
{
	union {
		struct gpu_string string;
		char bytes[256];
	} record = {.string = {{GPU_RECORD_STRING, 0, id}}};

	strcpy(record.bytes + sizeof(struct gpu_string), text);
	add(&record, sizeof(struct gpu_string) + strlen(text) + 1);
}

static void begin_file(void)
{
	room = 65536;
	bytes = calloc(1, room);
	assert_non_null(bytes);
	used = GPU_HEADER_SIZE;
	for (uint32_t i = STEP; i < NAMES; i++)
		add_string(i, names[i]);
}

static void add_range_begin(uint32_t tid, uint64_t time, uint64_t id, uint32_t name)
{
	struct gpu_marker marker = {.head = {GPU_RECORD_MARKER, 0, GPU_MARKER_BEGIN},
				    .time = time,
				    .correlation = id,
				    .message = name,
				    .tid = tid};

	add(&marker, sizeof(marker));
}

static void add_range_end(uint32_t tid, uint64_t time, uint64_t id)
{
	struct gpu_marker marker = {.head = {GPU_RECORD_MARKER, 0, GPU_MARKER_END},
				    .time = time,
				    .correlation = id,
				    .tid = tid};

	add(&marker, sizeof(marker));
}

static void add_call(uint32_t tid, uint64_t time, uint64_t correlation)
{
	struct gpu_call call = {.head = {GPU_RECORD_CALL, 0, STEP},
				.start = time,
				.duration = 1,
				.correlation = correlation,
				.tid = tid};

	add(&call, sizeof(call));
}

/* It runs much later than it was launched. */
static void add_kernel(uint64_t correlation, uint64_t duration)
{
	struct gpu_kernel kernel = {.head = {GPU_RECORD_KERNEL, 0, 1},
				    .start = 1000000,
				    .duration = duration,
				    .correlation = correlation};

	add(&kernel, sizeof(kernel));
}

static void add_copy(uint64_t correlation, uint64_t duration)
{
	struct gpu_copy copy = {.head = {GPU_RECORD_COPY, 0, GPU_DIRECTION_HOST_TO_DEVICE},
				.start = 1000000,
				.duration = duration,
				.correlation = correlation};

	add(&copy, sizeof(copy));
}

static void sum_up(struct gpu_records_of_process *process, struct gpu_ranges *ranges)
{
	struct gpu_file_header header = {.version_major = GPU_VERSION_MAJOR,
					 .header_size = GPU_HEADER_SIZE,
					 .committed = used - GPU_HEADER_SIZE};

	memcpy(header.magic, GPU_MAGIC, sizeof(header.magic));
	memcpy(bytes, &header, sizeof(header));
	assert_int_equal(gpu_process_parse_bytes(bytes, used, process), 0);
	bytes = NULL;
	*ranges = (struct gpu_ranges){0};
	assert_int_equal(gpu_ranges_add_process(ranges, process), 0);
	gpu_ranges_sum_totals(ranges);
}

static const struct gpu_range_row *find_row(const struct gpu_ranges *ranges, const char *wanted)
{
	char path[256];

	for (uint32_t i = 0; i < ranges->count; i++) {
		gpu_range_write_path(ranges, i, path, sizeof(path));
		if (strcmp(path, wanted) == 0)
			return &ranges->rows[i];
	}
	fail_msg("no range '%s'", wanted);
	return NULL;
}

/* PyTorch computes gradients in a thread of its own. */
static void threads_without_ranges_work_for_the_one_in_a_range(void **state)
{
	struct gpu_records_of_process process;
	struct gpu_ranges ranges;
	const struct gpu_range_row *row;

	(void)state;
	begin_file();
	add_range_begin(7, 10, 1, STEP);
	add_range_begin(7, 20, 2, BACKWARD);
	add_call(8, 30, 11); /* of thread 7's range */
	add_range_end(7, 40, 2);
	add_call(8, 45, 12);
	add_range_begin(9, 50, 3, FORWARD);
	add_call(8, 55, 13); /* two are in ranges: nobody knows */
	add_range_end(7, 60, 1);
	add_call(8, 65, 14); /* thread 9's */
	add_call(7, 66, 15); /* and of a thread that left its own */
	add_range_end(9, 70, 3);
	add_call(8, 75, 16);
	for (uint64_t i = 11; i <= 16; i++)
		add_kernel(i, (uint64_t)1 << (i - 11));
	sum_up(&process, &ranges);
	row = find_row(&ranges, "step > backward");
	assert_int_equal(row->own.ns, 0);
	assert_int_equal(row->from_other_threads.ns, 1);
	row = find_row(&ranges, "step");
	assert_int_equal(row->from_other_threads.ns, 2);
	assert_int_equal(row->total.ns, 3);
	assert_int_equal(find_row(&ranges, "forward")->from_other_threads.ns, 8 + 16);
	assert_int_equal(ranges.outside.ns, 4 + 32);
	gpu_ranges_deinit(&ranges);
	gpu_process_deinit(&process);
}

static void work_belongs_to_the_innermost_range(void **state)
{
	struct gpu_records_of_process process;
	struct gpu_ranges ranges;
	const struct gpu_range_row *row;
	uint32_t *order;

	(void)state;
	begin_file();
	add_kernel(12, 300); /* before its call */
	for (uint64_t i = 0; i < 2; i++) {
		add_range_begin(7, 100 * i + 10, 100 * i + 1, STEP);
		add_range_begin(7, 100 * i + 20, 100 * i + 2, FORWARD);
		add_call(7, 100 * i + 20, 10 * i + 11); /* at the moment of the begin: inside */
		add_range_end(7, 100 * i + 30, 100 * i + 2);
		add_call(7, 100 * i + 30, 10 * i + 12); /* at the end, but after it */
		add_range_end(7, 100 * i + 50, 100 * i + 1);
	}
	add_kernel(11, 1000);
	add_copy(11, 50);
	add_kernel(21, 3000);
	add_call(7, 300, 31);
	add_kernel(31, 5);   /* outside */
	add_call(8, 75, 32); /* another thread: outside */
	add_kernel(32, 7);
	add_kernel(99, 11); /* no such call */
	add_kernel(0, 13);
	sum_up(&process, &ranges);
	assert_int_equal(ranges.count, 2);
	row = find_row(&ranges, "step > forward");
	assert_int_equal(row->count, 2);
	assert_int_equal(row->open, 0);
	assert_int_equal(row->host_ns, 20);
	assert_int_equal(row->own.kernels, 2);
	assert_int_equal(row->own.copies, 1);
	assert_int_equal(row->own.ns, 4050);
	row = find_row(&ranges, "step");
	assert_int_equal(row->own.ns, 300);
	assert_int_equal(row->total.ns, 4350);
	assert_int_equal(row->total.kernels, 3);
	assert_int_equal(row->host_ns, 80);
	assert_int_equal(ranges.outside.kernels, 2);
	assert_int_equal(ranges.outside.ns, 12);
	assert_int_equal(ranges.unknown_launches.ns, 24);
	order = gpu_ranges_sort_by_total(&ranges);
	assert_non_null(order);
	assert_string_equal(ranges.rows[order[0]].name, "step");
	free(order);
	gpu_ranges_deinit(&ranges);
	gpu_process_deinit(&process);
}

/* Started and ended by number: forward ends inside backward, in another thread; the last never. */
static void ranges_overlap_and_stay_open(void **state)
{
	struct gpu_records_of_process process;
	struct gpu_ranges ranges;

	(void)state;
	begin_file();
	add_range_end(7, 1, 77); /* began before anything was recorded */
	add_range_begin(7, 10, 1, FORWARD);
	add_range_begin(7, 20, 2, BACKWARD);
	add_call(7, 25, 11);
	add_range_end(9, 30, 1);
	add_call(7, 35, 12);
	add_range_end(7, 40, 2);
	add_call(7, 45, 13);
	add_range_begin(7, 50, 3, STEP);
	add_call(7, 55, 14);
	for (uint64_t i = 11; i <= 14; i++)
		add_kernel(i, i);
	sum_up(&process, &ranges);
	assert_int_equal(find_row(&ranges, "forward > backward")->own.ns, 11 + 12);
	assert_int_equal(find_row(&ranges, "forward")->total.ns, 11 + 12);
	assert_int_equal(find_row(&ranges, "forward")->host_ns, 20);
	assert_int_equal(ranges.outside.ns, 13);
	assert_int_equal(find_row(&ranges, "step")->open, 1);
	assert_int_equal(find_row(&ranges, "step")->own.ns, 14);
	gpu_ranges_deinit(&ranges);
	gpu_process_deinit(&process);
}

/* A file may say anything. */
static void depth_and_names_are_limited(void **state)
{
	struct gpu_records_of_process process;
	struct gpu_ranges ranges;
	uint64_t sum = 0;
	char text[32];

	(void)state;
	begin_file();
	for (uint32_t i = 0; i < 2 * GPU_RANGE_DEPTH_MAX; i++)
		add_range_begin(7, i, i + 1, STEP);
	add_call(7, 1000, 11);
	add_kernel(11, 5);
	for (uint32_t i = 0; i < GPU_RANGE_ROWS_MAX + 100; i++) {
		snprintf(text, sizeof(text), "step %u", i);
		add_string(NAMES + i, text);
		add_range_begin(8, 2000 + i, 1000000 + i, NAMES + i);
		add_call(8, 2000 + i, 5000000 + i);
		add_range_end(8, 2000 + i, 1000000 + i);
		add_kernel(5000000 + i, 1);
	}
	sum_up(&process, &ranges);
	assert_int_equal(ranges.count, GPU_RANGE_ROWS_MAX);
	assert_int_equal(ranges.unnamed_count, GPU_RANGE_DEPTH_MAX + GPU_RANGE_DEPTH_MAX + 100);
	assert_int_equal(ranges.rows[GPU_RANGE_DEPTH_MAX - 1].own.ns, 5);
	assert_int_equal(ranges.rows[0].total.ns, 5);
	for (size_t i = 0; i < ranges.count; i++)
		sum += ranges.rows[i].own.ns;
	assert_int_equal(sum + ranges.outside.ns, 5 + GPU_RANGE_ROWS_MAX + 100);
	gpu_ranges_deinit(&ranges);
	gpu_process_deinit(&process);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_belongs_to_the_innermost_range),
		cmocka_unit_test(threads_without_ranges_work_for_the_one_in_a_range),
		cmocka_unit_test(ranges_overlap_and_stay_open),
		cmocka_unit_test(depth_and_names_are_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
