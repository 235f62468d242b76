/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * NCCL records to a model: communicators, durations, clocks, and what stands still.
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

#include "analysis/nccl/hang.h"
#include "analysis/nccl/join.h"
#include "common/time_units.h"
#include "unit/analysis/nccl_fixture.h"
#include "unit/analysis/test_directory.h"

#define MS        UINT64_C(1000000)
#define START     (100 * SECOND_NS)
#define LASTS     (500000 + NCCL_KERNEL_TIME_OUTSIDE_STAMPS_NS)
#define GPU_AHEAD (NCCL_FIXTURE_REALTIME + 12345)

static void assert_near(double got, double wanted)
{
	assert_true(got > wanted - 1e-6 && got < wanted + 1e-6);
}

static struct nccl_data *open_data(const char *directory)
{
	struct nccl_data *data = NULL;
	struct problem problem = {""};

	if (nccl_data_read_directory(directory, &data, &problem) < 0)
		fail_msg("%s", problem.text);
	assert_non_null(data);
	return data;
}

/* ---- one rank ---- */

/* One AllReduce of 1 MiB a millisecond, each 500 us long on the GPU. */
static void write_rank(const char *directory, uint32_t pid, const char *host, int32_t rank,
		       int64_t clock_ahead_ns, unsigned done, bool hangs)
{
	struct nccl_fixture fixture;
	struct nccl_communicator_record *communicator;
	uint64_t start = START + (uint64_t)clock_ahead_ns;

	nccl_fixture_init(&fixture, pid, host, start, NCCL_FIXTURE_REALTIME - clock_ahead_ns);
	communicator = nccl_fixture_communicator(&fixture, 0xabc, 2, rank, "world");
	for (unsigned i = 0; i < done; i++) {
		uint64_t at = start + (i + 1) * MS;
		struct nccl_operation *operation =
			nccl_fixture_operation(&fixture, communicator, "AllReduce", i, 1 << 20, at);

		nccl_fixture_run(&fixture, operation, at + 10000, at + 510000,
				 GPU_AHEAD - clock_ahead_ns);
		if (i == 3) { /* first and last were told by another thread */
			operation->channels_started_aside = operation->channels_stopped_aside = 2;
			operation->gpu_start_aside = operation->gpu_start;
			operation->gpu_stop_aside = operation->gpu_stop;
			operation->gpu_start += 1000;
			operation->gpu_stop -= 1000;
		}
	}
	if (hangs) {
		struct nccl_operation *operation =
			nccl_fixture_operation(&fixture, communicator, "AllReduce", done, 1 << 20,
					       start + (done + 1) * MS);

		operation->channels_started = 0xf;
		operation->channels_stopped = 0x3;
		operation->state = NCCL_OPERATION_RUNNING;
	}
	fixture.header->heartbeat_ticks = start + 60 * SECOND_NS;
	nccl_fixture_write(&fixture, directory);
	nccl_fixture_deinit(&fixture);
}

static int check_operation(const struct nccl_operation_view *view, void *context)
{
	unsigned *seen = context;
	uint64_t begin = START + (*seen + 1) * MS + 10000;

	assert_int_equal(view->timing_source, NCCL_TIMING_BY_GPU);
	assert_int_equal(view->channel_stamps_span_ns, 500000);
	assert_int_equal(view->duration_ns, LASTS);
	assert_true(view->is_size_known);
	assert_int_equal(view->size_bytes, 1 << 20);
	assert_near(view->bus_factor, 1); /* 2 * (2 - 1) / 2 */
	assert_true(view->begin_error_ns < 10000);
	assert_true(view->begin_ns + view->begin_error_ns >= begin);
	assert_true(view->begin_ns <= begin + view->begin_error_ns);
	assert_int_equal(view->end_ns, view->begin_ns + LASTS);
	(*seen)++;
	return 0;
}

static void one_rank(void **state)
{
	struct nccl_data *data;
	struct problem problem;
	unsigned seen = 0;

	write_rank(*state, 100, "node0", 0, 0, 100, false);
	data = open_data(*state);
	assert_int_equal(data->process_count, 1);
	assert_int_equal(data->communicator_count, 1);
	assert_int_equal(data->communicators[0].rank_count, 2);
	assert_string_equal(data->communicators[0].name, "world");
	assert_int_equal(data->processes[0].ended, NCCL_PROCESS_ENDED_SILENTLY);
	assert_int_equal(data->rank_function_sum_count, 1);
	assert_int_equal(data->rank_function_sums[0].tally.operations, 100);
	assert_int_equal(data->rank_function_sums[0].tally.timed, 100);
	assert_int_equal(data->rank_function_sums[0].tally.ns, 100 * LASTS);
	assert_int_equal(nccl_tally_find_duration_quantile(&data->rank_function_sums[0].tally, 0.5),
			 LASTS);
	assert_near(nccl_compute_bus_bandwidth(
			    data->rank_function_sums[0].tally.bus_bytes,
			    data->rank_function_sums[0].tally.known_size_duration_ns),
		    (1 << 20) / (double)LASTS);
	assert_int_equal(
		nccl_visit_operations_of_process(data, 0, check_operation, &seen, &problem), 0);
	assert_int_equal(seen, 100);
	nccl_data_free(data);
}

/* ---- the device goes round its ring of times ---- */

#define OVERRUN_FIRST 10
#define OVERRUN_LAST  99
#define OVERRUN_COUNT 300
#define OVERRUN_NS    100000

/* One begins every 100 us and is launched every 10 us; while NCCL's thread stands still 64 others
 * take the places of some. The plugin has marked one that is right. */
static void write_overrun(const char *directory)
{
	struct nccl_fixture fixture;
	struct nccl_communicator_record *communicator;

	nccl_fixture_init(&fixture, 100, "node0", START, NCCL_FIXTURE_REALTIME);
	communicator = nccl_fixture_communicator(&fixture, 0xabc, 2, 0, "world");
	for (unsigned i = 0; i < OVERRUN_COUNT; i++) {
		bool late = i >= OVERRUN_FIRST && i <= OVERRUN_LAST;
		uint64_t begin = START + 10000 + (uint64_t)(i + (late ? 64 : 0)) * OVERRUN_NS;
		struct nccl_operation *operation = nccl_fixture_operation(
			&fixture, communicator, "AllReduce", i, 1 << 20, START + i * 10000);

		nccl_fixture_run(&fixture, operation, begin, begin + 90000, GPU_AHEAD);
	}
	nccl_fixture_operation(&fixture, communicator, "Broadcast", 0, 4, START + 90 * MS);
	for (size_t at = NCCL_CHUNKS_OFFSET; at < fixture.size; at += NCCL_CHUNK_SIZE) {
		struct nccl_operation *first = (void *)(fixture.bytes + at + 64);

		if (((struct nccl_chunk_header *)(void *)(fixture.bytes + at))->kind ==
			    NCCL_CHUNK_OPERATIONS &&
		    first->ordinal > OVERRUN_LAST)
			first->flags |= NCCL_OPERATION_ALIASED;
	}
	nccl_fixture_write(&fixture, directory);
	nccl_fixture_deinit(&fixture);
}

static int check_overrun(const struct nccl_operation_view *view, void *context)
{
	uint64_t ordinal = view->record->ordinal, begin = START + 10000 + ordinal * OVERRUN_NS;
	bool late = ordinal >= OVERRUN_FIRST && ordinal <= OVERRUN_LAST;

	(*(unsigned *)context)++;
	if (ordinal == OVERRUN_COUNT)
		return 0;
	assert_int_equal(!!(view->flags & NCCL_OPERATION_ALIASED), late);
	assert_int_equal(view->timing_source,
			 late ? NCCL_TIMING_SHARED_BY_SEVERAL : NCCL_TIMING_BY_GPU);
	assert_int_equal(view->is_begin_known, !late);
	if (!late)
		assert_true((uint64_t)llabs((int64_t)(view->begin_ns - begin)) < 10000);
	return 0;
}

static void overwritten_times(void **state)
{
	struct nccl_data *data;
	struct problem problem;
	unsigned seen = 0;

	write_overrun(*state);
	data = open_data(*state);
	assert_int_equal(nccl_visit_operations_of_process(data, 0, check_overrun, &seen, &problem),
			 0);
	assert_int_equal(seen, OVERRUN_COUNT + 1);
	assert_int_equal(data->rank_function_sums[0].tally.aliased_operation_count,
			 OVERRUN_LAST - OVERRUN_FIRST + 1);
	assert_int_equal(data->rank_function_sums[0].tally.timed,
			 OVERRUN_COUNT - (OVERRUN_LAST - OVERRUN_FIRST + 1));
	assert_int_equal(data->rank_function_sums[0].tally.longest_duration_ns,
			 90000 + NCCL_KERNEL_TIME_OUTSIDE_STAMPS_NS);
	nccl_data_free(data);
}

/* ---- several ---- */

/* Host 1's clock is ahead by what NTP does not know of: both REALTIMEs look right by themselves. */
static void hosts_are_aligned(void **state)
{
	const int64_t ahead = 7 * (int64_t)SECOND_NS;
	struct nccl_host_clock_offset offset;
	struct nccl_data *data;

	write_rank(*state, 100, "node0", 0, 0, 200, false);
	write_rank(*state, 101, "node1", 1, ahead, 200, false);
	data = open_data(*state);
	assert_int_equal(data->host_count, 2);
	assert_int_equal(data->communicator_count, 1);
	assert_int_equal(data->communicators[0].member_count, 2);
	offset = nccl_align_get_offset_at_time(&data->clock_alignment, 1, START + (uint64_t)ahead);
	assert_int_equal(offset.alignment_basis, NCCL_ALIGN_BY_COLLECTIVES);
	assert_false(offset.is_contradicted);
	assert_true((uint64_t)llabs(offset.offset_to_host0_ns + ahead) <= offset.error_ns);
	assert_true(offset.error_ns < MS);
	nccl_data_free(data);
}

static const struct nccl_stuck_operation_rank *rank_of(const struct nccl_stuck_operation *stuck,
						       int32_t rank)
{
	for (uint32_t i = 0; i < stuck->rank_count; i++) {
		if (stuck->ranks[i].rank == rank)
			return &stuck->ranks[i];
	}
	fail_msg("no rank %d", rank);
	return NULL;
}

static void absent_rank_is_named(void **state)
{
	struct nccl_data *data;
	struct nccl_hang_findings hang;
	struct problem problem;

	write_rank(*state, 100, "node0", 0, 0, 10, true);
	write_rank(*state, 101, "node0", 1, 0, 10, false);
	data = open_data(*state);
	assert_int_equal(nccl_find_stuck_operations(data, &hang, &problem), 0);
	assert_int_equal(hang.stuck_operation_count, 1);
	assert_int_equal(hang.stuck_operations[0].sequence, 10);
	assert_false(hang.stuck_operations[0].has_function_mismatch);
	assert_int_equal(rank_of(&hang.stuck_operations[0], 0)->progress, NCCL_RANK_IS_WAITING);
	assert_int_equal(rank_of(&hang.stuck_operations[0], 1)->progress,
			 NCCL_RANK_HAS_NOT_ENTERED);
	assert_int_equal(hang.stuck_operations[0].longest_wait_ns, 60 * SECOND_NS - 11 * MS - 1000);
	nccl_hang_findings_deinit(&hang);
	nccl_data_free(data);
}

static void rank_without_a_file(void **state)
{
	struct nccl_data *data;
	struct nccl_hang_findings hang;
	struct problem problem;

	write_rank(*state, 100, "node0", 0, 0, 10, true);
	data = open_data(*state);
	assert_int_equal(nccl_find_stuck_operations(data, &hang, &problem), 0);
	assert_int_equal(rank_of(&hang.stuck_operations[0], 1)->progress, NCCL_RANK_HAS_NO_FILE);
	nccl_hang_findings_deinit(&hang);
	nccl_data_free(data);
}

/* Whose records are lost may have entered. */
static void lost_records_prove_nothing(void **state)
{
	struct nccl_data *data;
	struct nccl_hang_findings hang;
	struct problem problem;
	struct nccl_fixture fixture;

	write_rank(*state, 100, "node0", 0, 0, 10, true);
	nccl_fixture_init(&fixture, 101, "node0", START, NCCL_FIXTURE_REALTIME);
	nccl_fixture_communicator(&fixture, 0xabc, 2, 1, "world");
	fixture.header->losses[NCCL_LOSS_OPERATIONS] = 3;
	nccl_fixture_write(&fixture, *state);
	nccl_fixture_deinit(&fixture);
	data = open_data(*state);
	assert_int_equal(nccl_find_stuck_operations(data, &hang, &problem), 0);
	assert_int_equal(rank_of(&hang.stuck_operations[0], 1)->progress,
			 NCCL_RANK_PROGRESS_UNKNOWN);
	nccl_hang_findings_deinit(&hang);
	nccl_data_free(data);
}

static void different_functions_are_a_mismatch(void **state)
{
	struct nccl_fixture fixture;
	struct nccl_communicator_record *communicator;
	struct nccl_data *data;
	struct nccl_hang_findings hang;
	struct problem problem;

	write_rank(*state, 100, "node0", 0, 0, 10, true);
	nccl_fixture_init(&fixture, 101, "node0", START, NCCL_FIXTURE_REALTIME);
	communicator = nccl_fixture_communicator(&fixture, 0xabc, 2, 1, "world");
	nccl_fixture_operation(&fixture, communicator, "AllGather", 0, 4096, START + MS)
		->channels_started = 1;
	nccl_fixture_write(&fixture, *state);
	nccl_fixture_deinit(&fixture);
	data = open_data(*state);
	assert_int_equal(nccl_find_stuck_operations(data, &hang, &problem), 0);
	assert_int_equal(hang.stuck_operation_count, 2);
	assert_true(hang.stuck_operations[0].has_function_mismatch &&
		    hang.stuck_operations[1].has_function_mismatch);
	nccl_hang_findings_deinit(&hang);
	nccl_data_free(data);
}

/* What rank 0's transfers wait for, and how far they are. */
static void open_transfers_are_found(void **state)
{
	struct nccl_fixture fixture;
	struct nccl_communicator_record *communicator;
	struct nccl_operation *operation;
	struct nccl_event *proxy, *step;
	struct nccl_data *data;
	struct nccl_hang_findings hang;
	struct problem problem;

	nccl_fixture_init(&fixture, 100, "node0", START, NCCL_FIXTURE_REALTIME);
	communicator = nccl_fixture_communicator(&fixture, 0xabc, 2, 0, "world");
	operation = nccl_fixture_operation(&fixture, communicator, "AllReduce", 0, 4096, START);
	operation->networks_started = 1;
	proxy = nccl_fixture_event(&fixture, 1, NCCL_KIND_PROXY_OP, operation->id, START + MS);
	proxy->a = 5;
	proxy->c = 1;
	proxy->flags = NCCL_EVENT_SEND | NCCL_EVENT_NETWORK;
	proxy->proxy_op.steps = 8;
	for (unsigned i = 0; i < 4; i++) {
		step = nccl_fixture_event(&fixture, 1, NCCL_KIND_PROXY_STEP, proxy->id,
					  START + (2 + i) * MS);
		step->c = (int32_t)i;
		step->a = i < 3 ? 7 : 3;
		step->flags = i < 3 ? NCCL_EVENT_STOPPED : 0;
		step->stop = START + (3 + i) * MS;
	}
	nccl_fixture_write(&fixture, *state);
	nccl_fixture_deinit(&fixture);
	data = open_data(*state);
	assert_int_equal(nccl_find_stuck_operations(data, &hang, &problem), 0);
	assert_int_equal(hang.unfinished_transfer_count, 1);
	assert_int_equal(hang.unfinished_transfers[0].channel, 5);
	assert_int_equal(hang.unfinished_transfers[0].peer, 1);
	assert_int_equal(hang.unfinished_transfers[0].done_step_count, 3);
	assert_int_equal(hang.unfinished_transfers[0].step_count, 8);
	assert_int_equal(hang.unfinished_transfers[0].wait, NCCL_WAIT_PEER);
	assert_true(hang.unfinished_transfers[0].sends);
	assert_int_equal(hang.unfinished_transfers[0].last_ticks, START + 6 * MS);
	nccl_hang_findings_deinit(&hang);
	nccl_data_free(data);
}

/* ---- bad input ---- */

static void damage_is_counted(void **state)
{
	struct nccl_data *data;
	char path[4096], other[4096];
	struct stat status;
	FILE *stream;

	write_rank(*state, 100, "node0", 0, 0, 200, false);
	write_rank(*state, 101, "node0", 1, 0, 200, false);
	snprintf(path, sizeof(path), "%s/spool/nccl-100-0.nccl", (char *)*state);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(truncate(path, status.st_size - 3 * NCCL_CHUNK_SIZE / 2), 0);
	snprintf(other, sizeof(other), "%s/spool/nccl-101-0.nccl", (char *)*state);
	stream = fopen(other, "r+b");
	assert_non_null(stream);
	assert_int_equal(fseek(stream, 8, SEEK_SET), 0);
	fputc(9, stream); /* another major version */
	fclose(stream);
	snprintf(other, sizeof(other), "%s/spool/nccl-102-0.nccl", (char *)*state);
	stream = fopen(other, "wb");
	assert_non_null(stream);
	fclose(stream);
	data = open_data(*state);
	assert_int_equal(data->process_count, 1);
	assert_int_equal(data->unreadable_files, 2);
	assert_int_equal(data->problem_count, 3);
	assert_int_equal(data->processes[0].file.missing_bytes, 3 * NCCL_CHUNK_SIZE / 2);
	assert_true(data->processes[0].lost_operation_count > 0);
	assert_non_null(strstr(data->problems[0], "cut off"));
	assert_non_null(strstr(data->problems[1], "format 9.0"));
	assert_non_null(strstr(data->problems[2], "empty"));
	nccl_data_free(data);
}

static void nothing_there(void **state)
{
	struct nccl_data *data = (void *)1;
	struct problem problem;

	assert_int_equal(nccl_data_read_directory(*state, &data, &problem), 0);
	assert_null(data);
}

/* NCCL's hash comes again where a communicator is made again. */
static void hash_comes_again(void **state)
{
	struct nccl_data *data;

	for (uint32_t rank = 0; rank < 2; rank++) {
		struct nccl_fixture fixture;

		nccl_fixture_init(&fixture, 100 + rank, "node0", START, NCCL_FIXTURE_REALTIME);
		nccl_fixture_communicator(&fixture, 0xabc, 2, (int32_t)rank, "first");
		nccl_fixture_communicator(&fixture, 0xabc, 2, (int32_t)rank, "second");
		nccl_fixture_communicator(&fixture, 0, 0, -1, "nobody's");
		nccl_fixture_write(&fixture, *state);
		nccl_fixture_deinit(&fixture);
	}
	data = open_data(*state);
	assert_int_equal(data->communicator_count, 4);
	assert_string_equal(data->communicators[0].name, "first");
	assert_int_equal(data->communicators[0].member_count, 2);
	assert_string_equal(data->communicators[1].name, "second");
	assert_int_equal(data->communicators[1].member_count, 2);
	assert_int_equal(data->communicators[2].member_count, 1);
	nccl_data_free(data);
}

/* Two ranks of a communicator in one process are no second communicator. */
static void ranks_of_one_process(void **state)
{
	struct nccl_fixture fixture;
	struct nccl_data *data;

	nccl_fixture_init(&fixture, 100, "node0", START, NCCL_FIXTURE_REALTIME);
	nccl_fixture_communicator(&fixture, 0xabc, 2, 1, "world");
	nccl_fixture_communicator(&fixture, 0xabc, 2, 0, "world");
	nccl_fixture_write(&fixture, *state);
	nccl_fixture_deinit(&fixture);
	data = open_data(*state);
	assert_int_equal(data->communicator_count, 1);
	assert_int_equal(data->communicators[0].member_count, 2);
	assert_int_equal(data->members[data->communicators[0].members[0]].rank, 0);
	nccl_data_free(data);
}

/* ---- numbers ---- */

static void bandwidths_of_nccl_tests(void **state)
{
	uint64_t size;

	(void)state;
	assert_true(nccl_function_compute_message_size(NCCL_FUNCTION_ALL_GATHER, 100, 8, &size));
	assert_int_equal(size, 800);
	assert_true(nccl_function_compute_message_size(NCCL_FUNCTION_ALL_REDUCE, 100, 0, &size));
	assert_int_equal(size, 100);
	assert_false(
		nccl_function_compute_message_size(NCCL_FUNCTION_REDUCE_SCATTER, 100, 0, &size));
	assert_false(
		nccl_function_compute_message_size(NCCL_FUNCTION_ALL_GATHER, UINT64_MAX, 8, &size));
	assert_near(nccl_function_get_bus_bandwidth_factor(NCCL_FUNCTION_ALL_REDUCE, 8), 1.75);
	assert_near(nccl_function_get_bus_bandwidth_factor(NCCL_FUNCTION_ALL_GATHER, 8), 0.875);
	assert_near(nccl_function_get_bus_bandwidth_factor(NCCL_FUNCTION_BROADCAST, 8), 1);
	assert_near(nccl_function_get_bus_bandwidth_factor(NCCL_FUNCTION_ALL_REDUCE, 0), 0);
	assert_int_equal(nccl_name_to_function("AllReduce"), NCCL_FUNCTION_ALL_REDUCE);
	assert_int_equal(nccl_name_to_function("PutSignal"), NCCL_FUNCTION_OTHER);
}

static void quantiles_are_close(void **state)
{
	static struct nccl_operation_tally tally;

	(void)state;
	for (uint64_t i = 1; i <= 10000; i++)
		nccl_tally_add_operation(&tally, &(struct nccl_timed_operation){.ns = i * 1000});
	for (unsigned percent = 1; percent < 100; percent++) {
		double wanted = percent * 100000.,
		       got = (double)nccl_tally_find_duration_quantile(&tally, percent / 100.);

		assert_true(got > wanted * 0.87 && got < wanted * 1.13);
	}
	assert_int_equal(nccl_tally_find_duration_quantile(&tally, 1), 10000000);
	assert_int_equal(tally.shortest_duration_ns, 1000);
}

/* A GPU clock that runs fast by 20 parts per million, heard of with up to 30 us of delay. */
static void gpu_clock_drifts(void **state)
{
	struct nccl_gpu_clock_model line = {0};
	uint64_t host = START;

	(void)state;
	for (unsigned i = 0; i < 60000; i++) {
		uint64_t gpu = NCCL_FIXTURE_REALTIME + host + (host - START) / 50000;

		assert_int_equal(
			nccl_gpu_clock_add_bound(&line, gpu, host - 5000 - i % 7 * 1000, true), 0);
		assert_int_equal(
			nccl_gpu_clock_add_bound(&line, gpu, host + 3000 + i * 7919 % 30000, false),
			0);
		host += MS;
	}
	nccl_gpu_clock_compute_drift(&line);
	for (host = START; host < START + 60 * SECOND_NS; host += SECOND_NS / 3) {
		uint64_t gpu = NCCL_FIXTURE_REALTIME + host + (host - START) / 50000;
		struct nccl_gpu_time_on_host time;

		assert_true(nccl_gpu_clock_to_host_time(&line, gpu, &time));
		assert_true(time.error_ns < 6000);
		assert_true((uint64_t)llabs((int64_t)(time.time_ns - host)) <= time.error_ns);
	}
	nccl_gpu_clock_deinit(&line);
}

/* A program that enqueues 9 ms ahead of the GPU, and stamps that are now and then those of a later
 * moment. */
static void stamps_of_later_moments(void **state)
{
	struct nccl_gpu_clock_model line = {0};
	struct nccl_gpu_time_on_host time;

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t host = START + i * 10000, gpu = NCCL_FIXTURE_REALTIME + host;
		uint64_t later = i % 4000 == 3999 ? 30 * MS : 0;

		assert_int_equal(
			nccl_gpu_clock_add_bound(&line, gpu, host - 9 * MS - i % 100, true), 0);
		assert_int_equal(
			nccl_gpu_clock_add_bound(&line, gpu + later, host + 2500 + i % 1000, false),
			0);
	}
	nccl_gpu_clock_compute_drift(&line);
	assert_true(nccl_gpu_clock_to_host_time(&line, NCCL_FIXTURE_REALTIME + START + MS, &time));
	assert_true((uint64_t)llabs((int64_t)(time.time_ns - START - MS)) < 1000);
	assert_true(time.error_ns > 8 * MS && time.error_ns < 10 * MS);
	nccl_gpu_clock_deinit(&line);
}

/* Rank 1 leaves out the sixth of twelve calls of different sizes. */
static void left_out(void **state)
{
	struct nccl_data *data;
	struct nccl_joined_collectives joined;
	struct problem problem;

	for (uint32_t rank = 0; rank < 2; rank++) {
		struct nccl_fixture fixture;
		struct nccl_communicator_record *communicator;

		nccl_fixture_init(&fixture, 100 + rank, "node0", START, NCCL_FIXTURE_REALTIME);
		communicator =
			nccl_fixture_communicator(&fixture, 0xabc, 2, (int32_t)rank, "world");
		for (unsigned i = 0; i < 12 - rank; i++) {
			uint64_t at = START + (i + 1) * MS, size = 1000 + (i + (rank && i > 4)) * 8;

			nccl_fixture_run(&fixture,
					 nccl_fixture_operation(&fixture, communicator, "AllReduce",
								i, size, at),
					 at + 10000 + rank * 50000, at + 100000, GPU_AHEAD);
		}
		nccl_fixture_write(&fixture, *state);
		nccl_fixture_deinit(&fixture);
	}
	data = open_data(*state);
	assert_int_equal(nccl_join_collectives(data, &joined, &problem), 0);
	assert_int_equal(joined.count, 12);
	assert_int_equal(joined.left_out, 1);
	assert_int_equal(joined.mismatched_collective_count, 6);
	assert_int_equal(joined.ranks[1].left_out, 1);
	assert_int_equal(joined.ranks[1].last, 11);
	assert_int_equal(joined.ranks[1].caused_wait_ns, 11 * 50000);
	assert_int_equal(joined.ranks[0].waited_ns, 11 * 50000);
	assert_int_equal(joined.transfer_ns, 2 * 11 * (40000 + NCCL_KERNEL_TIME_OUTSIDE_STAMPS_NS));
	assert_int_equal(joined.waiting_ns, 11 * 50000);
	nccl_joined_collectives_deinit(&joined);
	nccl_data_free(data);
}

int main(void)
{
#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, test_directory_create, test_directory_remove)
	const struct CMUnitTest tests[] = {
		TEST(one_rank),
		TEST(overwritten_times),
		TEST(hosts_are_aligned),
		TEST(absent_rank_is_named),
		TEST(rank_without_a_file),
		TEST(lost_records_prove_nothing),
		TEST(different_functions_are_a_mismatch),
		TEST(open_transfers_are_found),
		TEST(damage_is_counted),
		TEST(nothing_there),
		TEST(hash_comes_again),
		TEST(ranks_of_one_process),
		TEST(left_out),
		cmocka_unit_test(bandwidths_of_nccl_tests),
		cmocka_unit_test(quantiles_are_close),
		cmocka_unit_test(gpu_clock_drifts),
		cmocka_unit_test(stamps_of_later_moments),
	};

	return cmocka_run_group_tests_name("analysis/nccl", tests, NULL, NULL);
}
