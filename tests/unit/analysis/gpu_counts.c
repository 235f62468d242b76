/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counters in records of devices: values of a launch in one record or in several, positions of
 * instances, sums by kernel, and what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "analysis/gpu/counts.h"

static uint8_t bytes[65536];
static size_t used;

static struct gpu_file_header *header(void)
{
	return (struct gpu_file_header *)(void *)bytes;
}

static void begin(void)
{
	memset(bytes, 0, sizeof(bytes));
	memcpy(header()->magic, GPU_MAGIC, sizeof(header()->magic));
	header()->version_major = GPU_VERSION_MAJOR;
	header()->header_size = GPU_HEADER_SIZE;
	used = GPU_HEADER_SIZE;
}

static void add(const void *record, size_t size)
{
	struct gpu_record_head *head = (void *)(bytes + used);

	memcpy(head, record, size);
	head->size = (uint16_t)((size + 7) & ~(size_t)7);
	used += head->size;
	header()->committed = used - GPU_HEADER_SIZE;
}

static void add_string(uint32_t id, const char *text)
{
	union {
		struct gpu_string string;
		char bytes[64];
	} record = {.bytes = ""};

	record.string.head = (struct gpu_record_head){GPU_RECORD_STRING, 0, id};
	strcpy(record.bytes + sizeof(struct gpu_string), text);
	add(&record, sizeof(struct gpu_string) + strlen(text) + 1);
}

/* Two dimensions, of 2 and 4. */
static void add_counter(uint32_t id, uint32_t name)
{
	union {
		struct gpu_counter counter;
		char bytes[sizeof(struct gpu_counter) + 2 * sizeof(struct gpu_dimension)];
	} record = {.bytes = ""};

	record.counter.head = (struct gpu_record_head){GPU_RECORD_COUNTER, 0, id};
	record.counter.name = name;
	record.counter.agent = 1;
	record.counter.dimension_count = 2;
	record.counter.dimensions[0] = (struct gpu_dimension){5, 2};
	record.counter.dimensions[1] = (struct gpu_dimension){6, 4};
	add(&record, sizeof(record));
}

static void add_launch(uint64_t dispatch, uint64_t start, uint64_t duration)
{
	struct gpu_counted counted = {.head = {GPU_RECORD_COUNTED, 0, 1},
				      .start = start,
				      .duration = duration,
				      .dispatch = dispatch};

	add(&counted, sizeof(counted));
}

static void add_values(uint32_t counter, uint64_t dispatch, uint32_t first, uint32_t count,
		       double value)
{
	union {
		struct gpu_values values;
		char bytes[sizeof(struct gpu_values) + 8 * sizeof(struct gpu_value)];
	} record = {.bytes = ""};

	record.values.head = (struct gpu_record_head){GPU_RECORD_VALUES, 0, counter};
	record.values.dispatch = dispatch;
	record.values.count = count;
	for (uint32_t i = 0; i < count; i++)
		record.values.values[i] = (struct gpu_value){first + i, 0, value + i};
	add(&record, sizeof(struct gpu_values) + count * sizeof(struct gpu_value));
}

static void add_reading(uint32_t counter, uint64_t start, uint64_t end, double value)
{
	union {
		struct gpu_reading reading;
		char bytes[sizeof(struct gpu_reading) + sizeof(struct gpu_value)];
	} record = {.bytes = ""};

	record.reading.head = (struct gpu_record_head){GPU_RECORD_READING, 0, counter};
	record.reading.start = start;
	record.reading.end = end;
	record.reading.count = 1;
	record.reading.values[0].value = value;
	add(&record, sizeof(record));
}

static void add_names(void)
{
	struct gpu_agent agent = {.head = {GPU_RECORD_AGENT, 0, 1}, .product = 2};
	struct gpu_shape shape = {.head = {GPU_RECORD_SHAPE, 0, 1}, .kernel = 1, .agent = 1};

	add_string(1, "_Z3addPfS_");
	add_string(2, "Test device");
	add_string(3, "WAVES");
	add_string(4, "CYCLES");
	add_string(5, "DIMENSION_XCC");
	add_string(6, "DIMENSION_WGP");
	add(&agent, sizeof(agent));
	add(&shape, sizeof(shape));
	add_counter(1, 3);
	add_counter(2, 4);
}

static void read_bytes(struct gpu_records_of_process *process)
{
	uint8_t *copy = malloc(used);

	assert_non_null(copy);
	memcpy(copy, bytes, used);
	assert_int_equal(gpu_process_parse_bytes(copy, used, process), 0);
}

static struct gpu_counter_measurement seen[16];
static size_t seen_count;

static int keep(const struct gpu_counter_measurement *count, void *context)
{
	(void)context;
	assert_true(seen_count < 16);
	seen[seen_count++] = *count;
	return 0;
}

static void walk(struct gpu_records_of_process *process)
{
	seen_count = 0;
	assert_int_equal(gpu_visit_counter_measurements(process, keep, NULL), 0);
}

static void test_values_in_several_records(void **state)
{
	struct gpu_records_of_process process;

	(void)state;
	begin();
	add_names();
	add_launch(1, 100, 50);
	add_values(1, 1, 0, 4, 1); /* 1 2 3 4 */
	add_values(1, 1, 4, 4, 5); /* 5 6 7 8 */
	add_values(2, 1, 0, 1, 9);
	add_launch(2, 200, 70);
	add_values(1, 2, 0, 1, 3);
	read_bytes(&process);
	walk(&process);
	assert_int_equal(seen_count, 3);
	assert_int_equal(seen[0].value_count, 8);
	assert_true(seen[0].total == 36);
	assert_int_equal(seen[0].end, 150);
	assert_true(seen[1].total == 9);
	assert_ptr_equal(seen[0].kernel, seen[1].kernel);
	assert_int_equal(seen[2].kernel->dispatch, 2);
	gpu_process_deinit(&process);
}

static void test_values_of_nothing_are_left_out(void **state)
{
	struct gpu_records_of_process process;

	(void)state;
	begin();
	add_names();
	add_values(1, 1, 0, 1, 1); /* before any launch */
	add_launch(1, 100, 50);
	add_values(1, 2, 0, 1, 1);  /* of another launch */
	add_values(17, 1, 0, 1, 1); /* of no counter */
	add_values(0, 1, 0, 1, 1);
	read_bytes(&process);
	walk(&process);
	assert_int_equal(seen_count, 0);
	assert_int_equal(process.torn_bytes, 0);
	gpu_process_deinit(&process);
}

static void test_readings(void **state)
{
	struct gpu_records_of_process process;

	(void)state;
	begin();
	add_names();
	add_reading(1, 0, 10, 5);
	add_reading(2, 0, 10, 6);
	add_reading(1, 10, 20, 7);
	read_bytes(&process);
	walk(&process);
	assert_int_equal(seen_count, 3);
	assert_null(seen[0].kernel);
	assert_int_equal(seen[2].start, 10);
	assert_true(seen[2].total == 7);
	gpu_process_deinit(&process);
}

static void test_positions(void **state)
{
	struct gpu_records_of_process process;
	uint32_t positions[GPU_DIMENSIONS_MAX];

	(void)state;
	begin();
	add_names();
	read_bytes(&process);
	gpu_counter_instance_to_dimension_positions(process.counters[1], 6, positions);
	assert_int_equal(positions[0], 1);
	assert_int_equal(positions[1], 2);
	gpu_process_deinit(&process);
}

static void test_sums(void **state)
{
	struct gpu_data data = {.process_count = 2};

	(void)state;
	begin();
	add_names();
	for (uint64_t i = 1; i <= 3; i++) {
		add_launch(i, 100 * i, 10);
		add_values(1, i, 0, 2, (double)i); /* i + i + 1 */
	}
	add_reading(2, 0, 10, 5);
	header()->filtered = 4;
	data.processes = calloc(2, sizeof(*data.processes));
	read_bytes(&data.processes[0]);
	read_bytes(&data.processes[1]);
	assert_int_equal(gpu_sum_counter_rows(&data), 0);
	assert_int_equal(data.kernel_counter_row_count, 1);
	assert_string_equal(data.kernel_counter_rows[0].kernel_name, "add(float*, float*)");
	assert_string_equal(data.kernel_counter_rows[0].counter_name, "WAVES");
	assert_int_equal(data.kernel_counter_rows[0].count, 6);
	assert_true(data.kernel_counter_rows[0].sum == 2 * (3 + 5 + 7));
	assert_true(data.kernel_counter_rows[0].minimum == 3 &&
		    data.kernel_counter_rows[0].maximum == 7);
	assert_int_equal(data.kernel_counter_rows[0].ns, 60);
	assert_int_equal(data.device_reading_row_count, 1);
	assert_true(data.device_reading_rows[0].sum == 10);
	assert_int_equal(data.filtered_out_kernel_count, 8);
	gpu_counter_rows_deinit(&data);
	gpu_process_deinit(&data.processes[0]);
	gpu_process_deinit(&data.processes[1]);
	free(data.processes);
}

/* More values, or dimensions, than the record has room for: it is torn, and so is the rest. */
static void test_records_that_claim_too_much(void **state)
{
	struct gpu_values values = {.head = {GPU_RECORD_VALUES, 0, 1}, .count = 1};
	struct gpu_counter counter = {.head = {GPU_RECORD_COUNTER, 0, 3}, .dimension_count = 9};
	struct gpu_reading reading = {.head = {GPU_RECORD_READING, 0, 1}, .count = UINT32_MAX};
	const void *const records[] = {&values, &counter, &reading};
	const size_t sizes[] = {sizeof(values), sizeof(counter), sizeof(reading)};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct gpu_records_of_process process;

		begin();
		add_names();
		add(records[i], sizes[i]);
		read_bytes(&process);
		assert_int_equal(process.torn_bytes, sizes[i]);
		assert_int_equal(process.counter_count, 2);
		gpu_process_deinit(&process);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_in_several_records),
		cmocka_unit_test(test_values_of_nothing_are_left_out),
		cmocka_unit_test(test_readings),
		cmocka_unit_test(test_positions),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_records_that_claim_too_much),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
