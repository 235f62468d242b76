/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Operations of NCCL whose kernels the GPU's own records have.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/nccl/nccl.h"
#include "common/time_units.h"
#include "kymo/gpu_records.h"
#include "unit/analysis/nccl_fixture.h"
#include "unit/analysis/test_directory.h"

#define US    UINT64_C(1000)
#define START (100 * SECOND_NS)
#define PID   100
#define LIGHT (0xffffu & ~NCCL_KIND_MASK(NCCL_KIND_KERNEL_CHANNEL))

/* ---- a file of a GPU's records ---- */

static uint8_t bytes[1 << 16];
static size_t used;

static struct gpu_file_header *header(void)
{
	return (struct gpu_file_header *)(void *)bytes;
}

static void add(void *record, size_t size)
{
	struct gpu_record_head *head = record;

	head->size = (uint16_t)((size + 7) & ~(size_t)7);
	assert_true(used + head->size <= sizeof(bytes));
	memcpy(bytes + used, record, size);
	used += head->size;
	header()->committed = used - GPU_HEADER_SIZE;
}

static void add_shape(uint32_t id, const char *name)
{
	struct gpu_shape shape = {.head = {GPU_RECORD_SHAPE, 0, id}, .kernel = id};
	union {
		struct gpu_string string;
		char bytes[128];
	} string = {.string = {{GPU_RECORD_STRING, 0, id}}};

	strcpy(string.bytes + sizeof(struct gpu_string), name);
	add(&string, sizeof(struct gpu_string) + strlen(name) + 1);
	add(&shape, sizeof(shape));
}

enum { OF_NCCL = 1, OF_OTHERS = 2 };

static void begin(void)
{
	memset(bytes, 0, sizeof(bytes));
	memcpy(header()->magic, GPU_MAGIC, sizeof(header()->magic));
	header()->version_major = GPU_VERSION_MAJOR;
	header()->header_size = GPU_HEADER_SIZE;
	header()->pid = PID;
	header()->process_start = 77;
	header()->start_boottime_ns = START;
	header()->start_realtime_ns = (uint64_t)NCCL_FIXTURE_REALTIME + START;
	used = GPU_HEADER_SIZE;
	add_shape(OF_NCCL,
		  "_Z40ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE");
	add_shape(OF_OTHERS, "axpy");
}

static void add_kernel(uint32_t shape, uint64_t correlation, uint64_t start, uint64_t duration)
{
	struct gpu_kernel kernel = {.head = {GPU_RECORD_KERNEL, 0, shape},
				    .start = start,
				    .duration = duration,
				    .correlation = correlation};

	add(&kernel, sizeof(kernel));
}

static void add_call(uint64_t correlation, uint64_t start, uint32_t thread)
{
	struct gpu_call call = {.head = {GPU_RECORD_CALL, 0, 0},
				.start = start,
				.duration = 2 * US,
				.correlation = correlation,
				.tid = thread};

	add(&call, sizeof(call));
}

static void write_gpu(const char *directory)
{
	char path[4096];
	FILE *stream;

	snprintf(path, sizeof(path), "%s/spool/100-0.gpu", directory);
	stream = fopen(path, "wb");
	assert_non_null(stream);
	assert_int_equal(fwrite(bytes, 1, used, stream), used);
	assert_int_equal(fclose(stream), 0);
}

/* ---- operations, enqueued 100 us apart ---- */

#define OPERATIONS 6

static uint64_t launched(unsigned operation)
{
	return START + (operation + 1) * 100 * US;
}

static void write_operations(const char *directory)
{
	struct nccl_communicator_record *communicator;
	struct nccl_operation *operation;
	struct nccl_fixture fixture;

	nccl_fixture_init(&fixture, PID, "node0", START, NCCL_FIXTURE_REALTIME);
	fixture.header->process_start = 77;
	communicator = nccl_fixture_communicator(&fixture, 0xabc, 2, 0, "world");
	communicator->mask = LIGHT;
	for (unsigned i = 0; i < OPERATIONS; i++) {
		operation = nccl_fixture_operation(&fixture, communicator, "AllReduce", i, 1 << 20,
						   launched(i));
		operation->flags |= NCCL_OPERATION_ENQUEUE_ONLY | NCCL_OPERATION_SEALED;
		/* 2 and 3 are of one launch. */
		if (i == 3) {
			operation->launch = launched(2);
			operation->start = launched(2) + 1500;
		}
	}
	nccl_fixture_write(&fixture, directory);
	nccl_fixture_deinit(&fixture);
}

/* 0, 1: their own kernels. 2, 3: one for both. 4: launched within a graph. 5: by another thread. */
static void write_kernels(const char *directory)
{
	begin();
	add_call(10, launched(0) + 300, PID);
	add_kernel(OF_NCCL, 10, launched(0) + 10 * US, 500 * US);
	add_kernel(OF_NCCL, 11, launched(1) + 20 * US, 40 * US);
	add_call(11, launched(1) + 400, PID);
	add_call(12, launched(2) + 300, PID);
	add_kernel(OF_NCCL, 12, launched(2) + 30 * US, 70 * US);
	add_call(13, launched(2) + 20 * US, PID);
	add_kernel(OF_NCCL, 13, launched(2) + 30 * US, 0);
	add_call(14, launched(4) + 300, PID);
	add_kernel(OF_NCCL, 14, launched(4) + 10 * US, 5 * US);
	add_kernel(OF_NCCL, 14, launched(4) + 20 * US, 5 * US);
	add_call(15, launched(5) + 300, PID + 1);
	add_kernel(OF_NCCL, 15, launched(5) + 10 * US, 5 * US);
	add_call(16, launched(5) + 200, PID);
	add_kernel(OF_OTHERS, 16, launched(5) + 10 * US, 5 * US);
	write_gpu(directory);
}

struct seen {
	enum nccl_timing_source timing[OPERATIONS];
	uint64_t duration_ns[OPERATIONS], begin_ns[OPERATIONS], end_ns[OPERATIONS];
	uint64_t error_ns[OPERATIONS];
	bool waits[OPERATIONS];
};

static int see(const struct nccl_operation_view *view, void *context)
{
	struct seen *seen = context;
	uint64_t at = view->record->sequence;

	assert_in_range(at, 0, OPERATIONS - 1);
	seen->timing[at] = view->timing_source;
	seen->duration_ns[at] = view->duration_ns;
	seen->begin_ns[at] = view->begin_ns;
	seen->end_ns[at] = view->end_ns;
	seen->error_ns[at] = view->begin_error_ns;
	seen->waits[at] = view->is_waiting;
	return 0;
}

static struct nccl_data *look(const char *directory, struct seen *seen)
{
	struct nccl_data *data = NULL;
	struct problem problem = {""};

	if (nccl_data_read_directory(directory, &data, &problem) < 0)
		fail_msg("%s", problem.text);
	assert_int_equal(data->process_count, 1);
	assert_int_equal(nccl_visit_operations_of_process(data, 0, see, seen, &problem), 0);
	return data;
}

static void durations_are_the_kernels(void **state)
{
	struct seen seen;
	struct nccl_data *data;

	write_operations(*state);
	write_kernels(*state);
	data = look(*state, &seen);
	assert_int_equal(seen.timing[0], NCCL_TIMING_BY_KERNEL_RECORD);
	assert_int_equal(seen.duration_ns[0], 500 * US);
	assert_int_equal(seen.begin_ns[0], launched(0) + 10 * US);
	assert_int_equal(seen.end_ns[0], launched(0) + 510 * US);
	assert_int_equal(seen.error_ns[0], 10 * US - 300);
	assert_int_equal(seen.timing[1], NCCL_TIMING_BY_KERNEL_RECORD);
	assert_int_equal(seen.duration_ns[1], 40 * US);
	for (unsigned i = 2; i < 4; i++) {
		assert_int_equal(seen.timing[i], NCCL_TIMING_SHARED_BY_SEVERAL);
		assert_int_equal(seen.duration_ns[i], 70 * US);
	}
	for (unsigned i = 4; i < 6; i++) {
		assert_int_equal(seen.timing[i], NCCL_TIMING_UNKNOWN);
		assert_int_equal(seen.duration_ns[i], 0);
		assert_false(seen.waits[i]);
	}
	assert_int_equal(data->rank_function_sum_count, 1);
	assert_int_equal(data->rank_function_sums[0].tally.timed, 2);
	assert_int_equal(data->rank_function_sums[0].tally.enqueue_only_operation_count, 2);
	nccl_data_free(data);
}

static void none_of(const char *directory)
{
	struct seen seen;
	struct nccl_data *data;

	write_gpu(directory);
	data = look(directory, &seen);
	for (unsigned i = 0; i < OPERATIONS; i++)
		assert_int_equal(seen.timing[i], NCCL_TIMING_UNKNOWN);
	nccl_data_free(data);
}

/* A process of the same number, before it or on another host. */
static void kernels_of_others_are_not_taken(void **state)
{
	write_operations(*state);
	write_kernels(*state);
	header()->process_start = 78;
	none_of(*state);
	header()->process_start = 77;
	header()->start_realtime_ns += 10 * SECOND_NS;
	none_of(*state);
	header()->start_realtime_ns -= 10 * SECOND_NS;
	header()->pid++;
	none_of(*state);
}

/* Without calls there is no telling which kernel is whose. */
static void without_calls_nothing_is_joined(void **state)
{
	write_operations(*state);
	begin();
	for (unsigned i = 0; i < OPERATIONS; i++)
		add_kernel(OF_NCCL, 10 + i, launched(i) + 10 * US, 5 * US);
	none_of(*state);
}

static void what_is_no_file_of_records_is_left_out(void **state)
{
	write_operations(*state);
	begin();
	used = 100;
	none_of(*state);
	memset(bytes, 'x', sizeof(bytes));
	used = sizeof(bytes);
	none_of(*state);
}

int main(void)
{
#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, test_directory_create, test_directory_remove)
	const struct CMUnitTest tests[] = {
		TEST(durations_are_the_kernels),
		TEST(kernels_of_others_are_not_taken),
		TEST(without_calls_nothing_is_joined),
		TEST(what_is_no_file_of_records_is_left_out),
	};

	return cmocka_run_group_tests_name("analysis/nccl_kernels", tests, NULL, NULL);
}
