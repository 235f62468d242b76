/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Steps of the work on devices: which launches begin them, of what their time is made, and what
 * slow ones have more of.
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
#include "analysis/gpu/step_find.h"
#include "common/array.h"

enum { DEVICE = 1, HOST };
/* Names of kernels are strings, and shapes have the same numbers. */
enum { GEMM = 1, ADD, LOSS, ADAM, REDUCE, STEP, FORWARD, STRINGS = FORWARD };

static uint8_t *bytes;
static size_t used;
static uint64_t correlation, marker;

static void add(void *record, size_t size)
{
	struct gpu_record_head *head = record;

	head->size = (uint16_t)size;
	memcpy(bytes + used, record, size);
	used += size;
}

static void begin_file(void)
{
	static const char *const names[STRINGS + 1] = {
		NULL,         "gemm",   "add", "loss", "adam", "ncclDevKernel_AllReduce",
		"train_step", "forward"};
	struct {
		struct gpu_record_head head;
		char text[24];
	} string;
	struct gpu_agent device = {.head = {GPU_RECORD_AGENT, 0, DEVICE}, .type = GPU_AGENT_GPU},
			 host = {.head = {GPU_RECORD_AGENT, 0, HOST}, .type = GPU_AGENT_CPU};

	bytes = calloc(1, 1 << 20);
	assert_non_null(bytes);
	used = GPU_HEADER_SIZE;
	correlation = marker = 0;
	add(&device, sizeof(device));
	add(&host, sizeof(host));
	for (uint32_t i = 1; i <= STRINGS; i++) {
		struct gpu_shape shape = {
			.head = {GPU_RECORD_SHAPE, 0, i}, .kernel = i, .agent = DEVICE};

		memset(&string, 0, sizeof(string));
		string.head = (struct gpu_record_head){GPU_RECORD_STRING, 0, i};
		snprintf(string.text, sizeof(string.text), "%s", names[i]);
		add(&string, sizeof(string));
		add(&shape, sizeof(shape));
	}
}

static void add_call(uint64_t launch)
{
	struct gpu_call call = {.head = {GPU_RECORD_CALL, 0, 0},
				.start = launch,
				.duration = 1,
				.correlation = ++correlation};

	add(&call, sizeof(call));
}

static void add_kernel(uint32_t name, uint64_t launch, uint64_t start, uint64_t end, uint32_t path)
{
	struct gpu_kernel kernel = {.head = {GPU_RECORD_KERNEL, 0, name},
				    .start = start,
				    .duration = end - start,
				    .launch_path = path};

	add_call(launch);
	kernel.correlation = correlation;
	add(&kernel, sizeof(kernel));
}

static void add_copy(uint64_t launch, uint64_t start, uint64_t end)
{
	struct gpu_copy copy = {.head = {GPU_RECORD_COPY, 0, GPU_DIRECTION_HOST_TO_DEVICE},
				.start = start,
				.duration = end - start,
				.from = HOST,
				.to = DEVICE};

	add_call(launch);
	copy.correlation = correlation;
	add(&copy, sizeof(copy));
}

static void add_range(uint32_t name, uint64_t begin, uint64_t end)
{
	struct gpu_marker record = {.head = {GPU_RECORD_MARKER, 0, GPU_MARKER_BEGIN},
				    .time = begin,
				    .correlation = ++marker,
				    .message = name,
				    .tid = 7};

	add(&record, sizeof(record));
	record.head.id = GPU_MARKER_END;
	record.time = end;
	record.message = 0;
	add(&record, sizeof(record));
}

static struct gpu_steps find_steps(const char *wanted, struct gpu_records_of_process *process)
{
	struct gpu_file_header *header = (void *)bytes;
	struct gpu_steps steps = {0};

	memcpy(header->magic, GPU_MAGIC, sizeof(header->magic));
	header->version_major = GPU_VERSION_MAJOR;
	header->header_size = GPU_HEADER_SIZE;
	header->committed = used - GPU_HEADER_SIZE;
	assert_int_equal(gpu_process_parse_bytes(bytes, used, process), 0);
	assert_int_equal(gpu_steps_add_process(&steps, 3, process, wanted), 0);
	return steps;
}

/* ---- what repeats ---- */

static uint32_t ids[20000];
static size_t id_count;

static void launch(uint32_t id, unsigned times)
{
	while (times-- > 0)
		ids[id_count++] = id;
}

/* Layers have two kernels; what is before and behind them is there once a step. */
static void launch_step(unsigned layers, unsigned more)
{
	launch(1, 1);
	for (unsigned i = 0; i < layers; i++) {
		launch(2, 1);
		launch(3, 1);
	}
	launch(4, 1 + more);
}

static void expect_steps(size_t count, size_t distance, uint32_t id)
{
	struct step_find_result found;

	assert_int_equal(step_find(ids, id_count, 10, &found), 1);
	assert_int_equal(found.id, id);
	assert_int_equal(found.count, count);
	assert_int_equal(found.starts[2] - found.starts[1], distance);
	free(found.starts);
}

static void test_layers_are_no_steps(void **state)
{
	static const unsigned layers[] = {1, 2, 12, 24, 96};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(layers); i++) {
		id_count = 0;
		launch(5, 17); /* before the loop */
		for (unsigned step = 0; step < 30; step++)
			launch_step(layers[i], 0);
		launch(6, 9);
		expect_steps(30, 2 * layers[i] + 2, 1);
	}
}

static void test_a_step_may_be_longer_now_and_then(void **state)
{
	(void)state;
	id_count = 0;
	for (unsigned step = 0; step < 40; step++)
		launch_step(12, step % 7 == 3 ? 5 : 0);
	expect_steps(40, 26, 1);
}

/* Tokens: the layers have most kernels, what is around them the rest. */
static void test_layers_of_generated_tokens_are_no_steps(void **state)
{
	(void)state;
	id_count = 0;
	for (unsigned token = 0; token < 60; token++) {
		launch(1, 1);
		for (unsigned layer = 0; layer < 32; layer++) {
			for (uint32_t kernel = 2; kernel < 7; kernel++)
				launch(kernel, 1);
		}
		launch(7, 1);
		launch(8, 2);
	}
	expect_steps(60, 32 * 5 + 4, 1);
}

/* Validation each tenth step, with the kernels of the step's first half. */
static void test_validation_is_no_step(void **state)
{
	(void)state;
	id_count = 0;
	for (unsigned step = 0; step < 70; step++) {
		launch_step(12, 0);
		if (step % 10 == 9) {
			launch(2, 30);
			launch(3, 30);
		}
	}
	expect_steps(70, 26, 1);
}

static void test_what_does_not_repeat_has_no_steps(void **state)
{
	struct step_find_result found;
	uint64_t random = 1;

	(void)state;
	id_count = 0;
	for (unsigned i = 0; i < 3000; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		launch((uint32_t)(random >> 60) % 10, 1);
	}
	assert_int_equal(step_find(ids, id_count, 10, &found), 0);
	id_count = 0;
	launch(1, 3000);
	assert_int_equal(step_find(ids, id_count, 10, &found), 0);
	assert_int_equal(step_find(ids, 0, 10, &found), 0);
}

/* ---- of what a step is made ---- */

/* 100 ns: 40 of gemm, 10 of which under an exchange that goes on for 20 more, 10 of a copy alone,
 * 10 of the loss, 20 of idle time, of which 5 passed behind the launch of the next step's gemm. */
static void add_plain_step(uint64_t at)
{
	add_kernel(GEMM, at - 5, at, at + 40, 1);
	add_kernel(REDUCE, at - 4, at + 30, at + 60, 2);
	add_copy(at - 3, at + 55, at + 70);
	add_kernel(LOSS, at - 2, at + 70, at + 80, 4);
}

static void test_parts_add_up(void **state)
{
	struct gpu_records_of_process process;
	struct gpu_steps steps;

	(void)state;
	begin_file();
	for (uint64_t i = 0; i < 10; i++)
		add_plain_step(1000 + 100 * i);
	steps = find_steps(NULL, &process);
	assert_int_equal(steps.count, 1);
	assert_int_equal(steps.series[0].process, 3);
	assert_int_equal(steps.series[0].agent, DEVICE);
	assert_int_equal(steps.series[0].source, GPU_STEPS_BY_LAUNCHES);
	assert_string_equal(steps.series[0].name, "gemm");
	assert_int_equal(steps.series[0].count, 10);
	assert_int_equal(steps.series[0].median_ns, 100);
	assert_int_equal(steps.series[0].slow_count, 0);
	assert_int_equal(steps.series[0].steps[9].end_ns, 1980);
	assert_int_equal(steps.series[0].part_ns[GPU_STEP_QUEUED], 9 * 5);
	for (size_t i = 0; i < 9; i++) {
		const struct gpu_step *step = &steps.series[0].steps[i];

		assert_int_equal(step->begin_ns, 1000 + 100 * i);
		assert_int_equal(step->end_ns, 1100 + 100 * i);
		assert_int_equal(step->part_ns[GPU_STEP_COMPUTING], 50);
		assert_int_equal(step->part_ns[GPU_STEP_COMMUNICATION], 20);
		assert_int_equal(step->part_ns[GPU_STEP_COPIES], 10);
		assert_int_equal(step->part_ns[GPU_STEP_LATE_LAUNCH], 15);
		assert_int_equal(step->part_ns[GPU_STEP_QUEUED], 5);
		assert_int_equal(step->work_count, 4);
	}
	gpu_steps_deinit(&steps);
	gpu_process_deinit(&process);
}

static void test_slow_steps_are_told_by_what_they_have_more_of(void **state)
{
	struct gpu_records_of_process process;
	struct gpu_steps steps;
	uint64_t at = 1000;

	(void)state;
	begin_file();
	for (uint64_t i = 0; i < 20; i++) {
		add_plain_step(at);
		at += i % 10 == 4 ? 170 : 100;
	}
	steps = find_steps("auto", &process);
	assert_int_equal(steps.count, 1);
	assert_int_equal(steps.series[0].slow_count, 2);
	assert_true(steps.series[0].steps[4].is_slow);
	assert_true(steps.series[0].steps[14].is_slow);
	assert_int_equal(steps.series[0].difference_count, 1);
	assert_int_equal(steps.series[0].differences[0].kind, GPU_STEP_DIFFERENCE_IDLE);
	assert_int_equal(steps.series[0].differences[0].id, 1);
	assert_true(steps.series[0].differences[0].slow_ns == 85);
	assert_int_equal(steps.series[0].slowest_count, 2);
	assert_int_equal(steps.series[0].slowest[1].step, 14);
	assert_true(steps.series[0].slowest[1].is_explained);
	assert_int_equal(steps.series[0].slowest[1].difference.id, 1);
	assert_true(steps.series[0].slowest[1].difference.slow_ns == 85);
	/* Of 18 others, the last one ends with its work. */
	assert_true(steps.series[0].differences[0].other_ns == 17. * 15 / 18);
	gpu_steps_deinit(&steps);
	gpu_process_deinit(&process);
}

/* Of each cause one step; the first is slow as well, and no part of the comparison. */
static void test_each_slow_step_has_its_own_cause(void **state)
{
	struct gpu_records_of_process process;
	struct gpu_steps steps;
	const struct gpu_step_series *series;
	uint64_t at = 1000;

	(void)state;
	begin_file();
	for (uint64_t i = 0; i < 20; i++) {
		add_plain_step(at);
		if (i == 6)
			add_copy(at - 2, at + 80, at + 160);
		if (i == 12)
			add_kernel(ADD, at - 2, at + 80, at + 150, 9);
		at += i == 0 ? 900 : i == 6 || i == 12 ? 180 : 100;
	}
	steps = find_steps("auto", &process);
	assert_int_equal(steps.count, 1);
	series = &steps.series[0];
	assert_true(series->starts_slowly);
	assert_int_equal(series->slow_count, 2);
	assert_int_equal(series->slowest_count, 2);
	assert_int_equal(series->slowest[0].step, 6);
	assert_int_equal(series->slowest[0].difference.kind, GPU_STEP_DIFFERENCE_COPY);
	assert_int_equal(series->slowest[0].difference.id, GPU_DIRECTION_HOST_TO_DEVICE);
	assert_int_equal(series->slowest[1].step, 12);
	assert_int_equal(series->slowest[1].difference.kind, GPU_STEP_DIFFERENCE_KERNEL);
	assert_int_equal(series->slowest[1].difference.id, ADD);
	assert_int_equal(series->part_ns[GPU_STEP_COMMUNICATION], 19 * 20);
	gpu_steps_deinit(&steps);
	gpu_process_deinit(&process);
}

/* ---- ranges ---- */

static void add_ranges_and_work(void)
{
	begin_file();
	for (uint64_t i = 0; i < 6; i++) {
		uint64_t at = 1000 + 200 * i;

		add_range(STEP, at, at + 150);
		add_range(FORWARD, at + 10, at + 100);
		add_kernel(ADD, at + 20, at + 110, at + 150, 1);
		/* Launched by another thread meanwhile, or behind the range. */
		add_kernel(GEMM, at + 120, at + 150, at + 180, 1);
		add_kernel(ADAM, at + 160, at + 190, at + 195, 1);
	}
}

static void test_ranges_are_steps(void **state)
{
	static const char *const wanted[] = {NULL, "train_step", "forward"};
	struct gpu_records_of_process process;
	struct gpu_steps steps;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		add_ranges_and_work();
		steps = find_steps(wanted[i], &process);
		assert_int_equal(steps.count, 1);
		assert_int_equal(steps.series[0].source, GPU_STEPS_BY_RANGE);
		assert_string_equal(steps.series[0].name, wanted[i] ? wanted[i] : "train_step");
		assert_int_equal(steps.series[0].count, 6);
		assert_int_equal(steps.series[0].median_ns, 200);
		assert_int_equal(steps.series[0].steps[0].begin_ns, 1110);
		assert_int_equal(steps.series[0].steps[0].part_ns[GPU_STEP_COMPUTING], 75);
		gpu_steps_deinit(&steps);
		gpu_process_deinit(&process);
	}
	add_ranges_and_work();
	steps = find_steps("no such range", &process);
	assert_int_equal(steps.count, 0);
	gpu_process_deinit(&process);
	add_ranges_and_work();
	steps = find_steps("none", &process);
	assert_int_equal(steps.count, 0);
	gpu_process_deinit(&process);
}

/* Ranges of layers, and one that is open at the end, are no steps. */
static void test_ranges_that_do_not_stand_out(void **state)
{
	struct gpu_records_of_process process;
	struct gpu_steps steps;

	(void)state;
	begin_file();
	for (uint64_t i = 0; i < 10; i++) {
		add_range(FORWARD, 1000 + 100 * i, 1001 + 100 * i);
		add_plain_step(1005 + 100 * i);
	}
	steps = find_steps(NULL, &process);
	assert_int_equal(steps.count, 1);
	assert_int_equal(steps.series[0].source, GPU_STEPS_BY_LAUNCHES);
	gpu_steps_deinit(&steps);
	gpu_process_deinit(&process);
	begin_file();
	steps = find_steps(NULL, &process);
	assert_int_equal(steps.count, 0);
	gpu_process_deinit(&process);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layers_are_no_steps),
		cmocka_unit_test(test_a_step_may_be_longer_now_and_then),
		cmocka_unit_test(test_layers_of_generated_tokens_are_no_steps),
		cmocka_unit_test(test_validation_is_no_step),
		cmocka_unit_test(test_what_does_not_repeat_has_no_steps),
		cmocka_unit_test(test_parts_add_up),
		cmocka_unit_test(test_slow_steps_are_told_by_what_they_have_more_of),
		cmocka_unit_test(test_each_slow_step_has_its_own_cause),
		cmocka_unit_test(test_ranges_are_steps),
		cmocka_unit_test(test_ranges_that_do_not_stand_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
