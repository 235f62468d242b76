/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Idle time of devices: gaps between work of any queue, by the launch that ended them, and what of
 * them passed before that launch.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "analysis/gpu/gpu.h"

enum { FIRST_DEVICE = 1, SECOND_DEVICE, HOST };

static uint8_t *bytes;
static size_t used;

static void add(void *record, size_t size)
{
	struct gpu_record_head *head = record;

	head->size = (uint16_t)size;
	memcpy(bytes + used, record, size);
	used += size;
}

static void begin_file(void)
{
	bytes = calloc(1, 1 << 16);
	assert_non_null(bytes);
	used = GPU_HEADER_SIZE;
	for (uint32_t i = FIRST_DEVICE; i <= HOST; i++) {
		struct gpu_agent agent = {.head = {GPU_RECORD_AGENT, 0, i},
					  .type = i == HOST ? GPU_AGENT_CPU : GPU_AGENT_GPU};
		struct gpu_shape shape = {.head = {GPU_RECORD_SHAPE, 0, i}, .agent = i};

		add(&agent, sizeof(agent));
		add(&shape, sizeof(shape));
	}
}

/* The shape has the number of its device. */
static void add_kernel(uint32_t device, uint64_t start, uint64_t end, uint64_t call, uint32_t path)
{
	struct gpu_kernel kernel = {.head = {GPU_RECORD_KERNEL, 0, device},
				    .start = start,
				    .duration = end - start,
				    .correlation = call,
				    .launch_path = path};

	add(&kernel, sizeof(kernel));
}

static void add_copy(uint32_t from, uint32_t to, uint64_t start, uint64_t end, uint32_t path)
{
	struct gpu_copy copy = {.head = {GPU_RECORD_COPY, 0, GPU_DIRECTION_DEVICE_TO_HOST},
				.start = start,
				.duration = end - start,
				.from = from,
				.to = to,
				.launch_path = path};

	add(&copy, sizeof(copy));
}

static void add_call(uint64_t call, uint64_t start)
{
	struct gpu_call record = {.head = {GPU_RECORD_CALL, 0, 0},
				  .start = start,
				  .duration = 1,
				  .correlation = call};

	add(&record, sizeof(record));
}

static struct gpu_idle read_idle(void)
{
	struct gpu_file_header *header = (void *)bytes;
	struct gpu_records_of_process process;
	struct gpu_idle idle = {0};

	memcpy(header->magic, GPU_MAGIC, sizeof(header->magic));
	header->version_major = GPU_VERSION_MAJOR;
	header->header_size = GPU_HEADER_SIZE;
	header->committed = used - GPU_HEADER_SIZE;
	assert_int_equal(gpu_process_parse_bytes(bytes, used, &process), 0);
	assert_int_equal(gpu_idle_add_process(&idle, 7, &process), 0);
	gpu_process_deinit(&process);
	return idle;
}

static struct gpu_idle_row get_row(const struct gpu_idle *idle, uint32_t path)
{
	for (size_t i = 0; i < idle->count; i++) {
		if (idle->rows[i].launch_path == path)
			return idle->rows[i];
	}
	return (struct gpu_idle_row){0};
}

static void test_a_gap_counts_for_the_launch_that_ended_it(void **state)
{
	struct gpu_idle idle;

	(void)state;
	begin_file();
	/* Records come in any order. */
	add_kernel(FIRST_DEVICE, 500, 600, 3, 12);
	add_kernel(FIRST_DEVICE, 100, 200, 1, 11);
	add_kernel(FIRST_DEVICE, 300, 400, 2, 12);
	add_call(1, 50);
	add_call(2, 150); /* before the gap: it was queued all the time */
	add_call(3, 470); /* 70 ns after it began */
	idle = read_idle();
	assert_int_equal(idle.span_ns, 500);
	assert_int_equal(idle.busy_ns, 300);
	assert_int_equal(idle.idle_ns, 200);
	assert_int_equal(idle.before_launch_ns, 70);
	assert_int_equal(idle.count, 1);
	assert_int_equal(get_row(&idle, 12).gaps, 2);
	assert_int_equal(get_row(&idle, 12).ns, 200);
	assert_int_equal(get_row(&idle, 12).before_launch_ns, 70);
	assert_int_equal(get_row(&idle, 12).longest_ns, 100);
	assert_int_equal(get_row(&idle, 12).process, 7);
	gpu_idle_deinit(&idle);
}

static void test_queues_side_by_side_leave_no_gap(void **state)
{
	struct gpu_idle idle;

	(void)state;
	begin_file();
	add_kernel(FIRST_DEVICE, 100, 400, 0, 11);
	add_kernel(FIRST_DEVICE, 150, 250, 0, 12);
	add_kernel(FIRST_DEVICE, 350, 500, 0, 13);
	add_copy(FIRST_DEVICE, HOST, 500, 650, 14);
	add_kernel(FIRST_DEVICE, 700, 800, 0, 15);
	idle = read_idle();
	assert_int_equal(idle.span_ns, 700);
	assert_int_equal(idle.busy_ns, 650);
	assert_int_equal(idle.idle_ns, 50);
	assert_int_equal(idle.unknown_launch_ns, 50);
	assert_int_equal(get_row(&idle, 15).ns, 50);
	gpu_idle_deinit(&idle);
}

static void test_devices_are_apart(void **state)
{
	struct gpu_idle idle;

	(void)state;
	begin_file();
	add_kernel(FIRST_DEVICE, 100, 200, 0, 11);
	add_kernel(SECOND_DEVICE, 150, 900, 0, 12);
	add_kernel(FIRST_DEVICE, 800, 1000, 1, 13);
	add_copy(HOST, SECOND_DEVICE, 910, 1010, 14);
	add_call(1, 10000); /* its clock is wrong: no more than the gap */
	idle = read_idle();
	assert_int_equal(idle.span_ns, 900 + 860);
	assert_int_equal(idle.busy_ns, 300 + 850);
	assert_int_equal(idle.idle_ns, 600 + 10);
	assert_int_equal(get_row(&idle, 13).ns, 600);
	assert_int_equal(get_row(&idle, 13).before_launch_ns, 600);
	assert_int_equal(get_row(&idle, 14).ns, 10);
	gpu_idle_deinit(&idle);
}

static void test_no_work_is_no_idle_time(void **state)
{
	struct gpu_idle idle;

	(void)state;
	begin_file();
	add_call(1, 100);
	add_kernel(FIRST_DEVICE, 0, 0, 1, 11); /* not finished */
	idle = read_idle();
	assert_int_equal(idle.span_ns, 0);
	assert_int_equal(idle.count, 0);
	gpu_idle_deinit(&idle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_gap_counts_for_the_launch_that_ended_it),
		cmocka_unit_test(test_queues_side_by_side_leave_no_gap),
		cmocka_unit_test(test_devices_are_apart),
		cmocka_unit_test(test_no_work_is_no_idle_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
