/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Records of devices: what is read, summed up, and refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/gpu/gpu.h"
#include "common/array.h"

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
	header()->pid = 42;
	used = GPU_HEADER_SIZE;
}

static void add(void *record, size_t size)
{
	struct gpu_record_head *head = record;

	head->size = (uint16_t)((size + 7) & ~(size_t)7);
	memcpy(bytes + used, record, size);
	used += head->size;
	header()->committed = used - GPU_HEADER_SIZE;
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

static void add_kernel(uint32_t shape, uint64_t start, uint64_t duration)
{
	struct gpu_kernel kernel = {
		.head = {GPU_RECORD_KERNEL, 0, shape}, .start = start, .duration = duration};

	add(&kernel, sizeof(kernel));
}

static void add_all(void)
{
	struct gpu_agent agent = {.head = {GPU_RECORD_AGENT, 0, 1}, .product = 2};
	struct gpu_shape shape = {.head = {GPU_RECORD_SHAPE, 0, 1}, .kernel = 1, .agent = 1};
	struct gpu_copy copy = {.head = {GPU_RECORD_COPY, 0, GPU_DIRECTION_HOST_TO_DEVICE},
				.start = 5,
				.duration = 100,
				.bytes = 1000};

	begin();
	add_string(1, "_Z3addPfS_");
	add_string(2, "Test device");
	add(&agent, sizeof(agent));
	add(&shape, sizeof(shape));
	shape.head.id = 2;
	shape.grid[0] = 77;
	add(&shape, sizeof(shape));
	add_kernel(1, 10, 20);
	add_kernel(2, 50, 30);
	add_kernel(1, 0, 0);
	add(&copy, sizeof(copy));
}

static int read_back(struct gpu_records_of_process *process)
{
	uint8_t *copy = malloc(used);

	memcpy(copy, bytes, used);
	return gpu_process_parse_bytes(copy, used, process);
}

static int count(const struct gpu_record_head *head, void *context)
{
	(void)head;
	++*(unsigned *)context;
	return 0;
}

static void records_are_read(void **state)
{
	struct gpu_records_of_process process;
	unsigned records = 0;

	(void)state;
	add_all();
	assert_int_equal(read_back(&process), 0);
	gpu_visit_records(&process, count, &records);
	assert_int_equal(records, 9);
	assert_int_equal(process.torn_bytes, 0);
	assert_string_equal(gpu_get_kernel_name_of_shape(&process, 1), "_Z3addPfS_");
	assert_string_equal(gpu_get_agent_name(&process, 1), "Test device");
	assert_string_equal(gpu_get_interned_string(&process, 99), "?");
	assert_string_equal(gpu_get_kernel_name_of_shape(&process, 99), "?");
	assert_string_equal(gpu_get_agent_name(&process, 0), "?");
	gpu_process_deinit(&process);
}

static void torn_ends_are_counted(void **state)
{
	size_t whole;

	(void)state;
	add_all();
	whole = used;
	for (used = GPU_HEADER_SIZE; used < whole; used++) {
		struct gpu_records_of_process process;

		assert_int_equal(read_back(&process), 0);
		assert_int_equal(process.size + process.torn_bytes, whole - GPU_HEADER_SIZE);
		gpu_process_deinit(&process);
	}
}

/* The header counts all records that were written; those behind a hole of zeros are read. */
static void what_is_missing_is_counted(void **state)
{
	struct gpu_records_of_process process;
	const struct gpu_record_head *head;
	uint32_t at = GPU_HEADER_SIZE, hole = 0;
	unsigned records = 0;

	(void)state;
	add_all();
	for (; at < used; at += head->size) {
		head = (const void *)(bytes + at);
		if (head->kind == GPU_RECORD_KERNEL || head->kind == GPU_RECORD_COPY ||
		    head->kind == GPU_RECORD_CALL) {
			header()->kernels += head->kind == GPU_RECORD_KERNEL;
			header()->copies += head->kind == GPU_RECORD_COPY;
			header()->calls += head->kind == GPU_RECORD_CALL;
			hole = at;
		}
	}
	assert_int_equal(read_back(&process), 0);
	assert_int_equal(process.missing_record_count, 0);
	gpu_process_deinit(&process);
	head = (const void *)(bytes + hole);
	memset(bytes + hole, 0, head->size);
	assert_int_equal(read_back(&process), 0);
	gpu_visit_records(&process, count, &records);
	assert_int_equal(records, 8);
	assert_int_equal(process.missing_record_count, 1);
	gpu_process_deinit(&process);
}

static void wild_sizes_end_the_file(void **state)
{
	static const uint16_t sizes[] = {0, 1, 4, 12, 65528};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct gpu_records_of_process process;
		unsigned records = 0;

		add_all();
		memcpy(bytes + GPU_HEADER_SIZE + 2, &sizes[i], 2);
		assert_int_equal(read_back(&process), 0);
		gpu_visit_records(&process, count, &records);
		assert_int_equal(records, 0);
		assert_true(process.torn_bytes != 0);
		gpu_process_deinit(&process);
	}
}

static void other_files_are_refused(void **state)
{
	struct gpu_records_of_process process;

	(void)state;
	add_all();
	header()->version_major++;
	assert_int_equal(read_back(&process), -EPROTO);
	header()->version_major--;
	header()->magic[0] = 'X';
	assert_int_equal(read_back(&process), -EBADMSG);
	used = 100;
	assert_int_equal(read_back(&process), -EBADMSG);
}

static void write_file(const char *directory, const char *name)
{
	char path[512];
	FILE *stream;

	snprintf(path, sizeof(path), "%s/spool/%s", directory, name);
	stream = fopen(path, "we");
	assert_non_null(stream);
	assert_int_equal(fwrite(bytes, 1, used, stream), used);
	fclose(stream);
}

static void files_are_summed_up(void **state)
{
	char directory[] = "/tmp/kymo-gpu-XXXXXX", command[64], spool[64];
	struct gpu_data *data;
	struct problem problem;

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(spool, sizeof(spool), "%s/spool", directory);
	assert_int_equal(gpu_data_read_directory(directory, &data, &problem), 0);
	assert_null(data);
	assert_int_equal(mkdir(spool, 0700), 0);
	add_all();
	header()->losses[GPU_LOSS_RUNTIME] = 3;
	write_file(directory, "1-0.gpu");
	write_file(directory, "2-0.gpu");
	used = 10;
	write_file(directory, "3-0.gpu");
	assert_int_equal(gpu_data_read_directory(directory, &data, &problem), 0);
	assert_int_equal(data->process_count, 2);
	assert_int_equal(data->problem_count, 1);
	assert_int_equal(data->kernel_count, 1);
	assert_string_equal(data->kernels[0].name, "add(float*, float*)");
	assert_string_equal(data->kernels[0].agent_name, "Test device");
	assert_int_equal(data->kernels[0].count, 4);
	assert_int_equal(data->kernels[0].incomplete, 2);
	assert_int_equal(data->kernels[0].total_ns, 100);
	assert_int_equal(data->kernels[0].minimum_ns, 20);
	assert_int_equal(data->kernels[0].maximum_ns, 30);
	assert_int_equal(data->copy_sums_by_direction[GPU_DIRECTION_HOST_TO_DEVICE].bytes, 2000);
	assert_int_equal(data->losses[GPU_LOSS_RUNTIME], 6);
	gpu_data_free(data);
	snprintf(command, sizeof(command), "rm -r %s", directory);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_are_read),
		cmocka_unit_test(torn_ends_are_counted),
		cmocka_unit_test(what_is_missing_is_counted),
		cmocka_unit_test(wild_sizes_end_the_file),
		cmocka_unit_test(other_files_are_refused),
		cmocka_unit_test(files_are_summed_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
