/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Ranks together: which rank of the job is which, who is late where all are there and where not,
 * sends with their receives, calls that differ, and what holds a job up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/nccl/calls.h"
#include "analysis/nccl/join.h"
#include "analysis/nccl/pairs.h"
#include "analysis/nccl/roots.h"
#include "common/time_units.h"
#include "unit/analysis/nccl_fixture.h"
#include "unit/analysis/test_directory.h"

#define US    UINT64_C(1000)
#define MS    UINT64_C(1000000)
#define START (100 * SECOND_NS)
#define CALLS 10

static struct nccl_data *open_data(const char *directory)
{
	struct nccl_data *data = NULL;
	struct problem problem = {""};

	if (nccl_data_read_directory(directory, &data, &problem) < 0)
		fail_msg("%s", problem.text);
	assert_non_null(data);
	return data;
}

static void join(struct nccl_data *data, struct nccl_joined_collectives *joined)
{
	struct problem problem = {""};

	assert_int_equal(nccl_join_collectives(data, joined, &problem), 0);
}

static uint32_t find_most_waited_for(const struct nccl_data *data,
				     const struct nccl_joined_collectives *joined)
{
	uint64_t most = 0;
	uint32_t found = NCCL_INDEX_NONE;

	for (uint32_t i = 0; i < data->job_rank_count; i++) {
		struct nccl_rank_wait_sums sum = nccl_sum_waits_of_job_rank(data, joined, i);

		if (sum.caused_wait_ns <= most)
			continue;
		most = sum.caused_wait_ns;
		found = i;
	}
	return found;
}

static void begin_rank(struct nccl_fixture *fixture, int32_t rank, int32_t size)
{
	nccl_fixture_init(fixture, 100 + (uint32_t)rank, "node0", START, NCCL_FIXTURE_REALTIME);
	fixture->header->world_rank = rank;
	fixture->header->world_size = size;
	fixture->header->state = NCCL_FILE_EXITED;
	fixture->header->heartbeat_ticks = START + SECOND_NS;
}

static void end_rank(struct nccl_fixture *fixture, const char *directory)
{
	nccl_fixture_write(fixture, directory);
	nccl_fixture_deinit(fixture);
}

/* The n-th call, a millisecond after the one before; it ends for all at once, and the late rank
 * comes 300 us late. */
static void add_call(struct nccl_fixture *fixture, struct nccl_communicator_record *communicator,
		     const char *function, unsigned call, uint64_t sequence, bool late)
{
	uint64_t at = START + (call + 1) * MS;

	nccl_fixture_run(
		fixture,
		nccl_fixture_operation(fixture, communicator, function, sequence, 4096, at),
		at + 10 * US + (late ? 300 * US : 0), at + 500 * US, NCCL_FIXTURE_REALTIME);
}

static void write_job_with_late_rank(const char *directory, int32_t size, int32_t late,
				     uint64_t absent)
{
	for (int32_t rank = 0; rank < size; rank++) {
		struct nccl_fixture fixture;
		struct nccl_communicator_record *world;

		if (absent >> rank & 1)
			continue;
		begin_rank(&fixture, rank, size);
		world = nccl_fixture_communicator(&fixture, 0xabc, size, rank, "world");
		for (unsigned i = 0; i < CALLS; i++)
			add_call(&fixture, world, "AllReduce", i, i, rank == late);
		end_rank(&fixture, directory);
	}
}

/* ---- ranks ---- */

static void several_ranks_in_one_process(void **state)
{
	struct nccl_joined_collectives joined;
	struct nccl_fixture fixture;
	struct nccl_data *data;
	uint32_t late;

	begin_rank(&fixture, 0, 1);
	for (int32_t rank = 0; rank < 4; rank++) {
		struct nccl_communicator_record *world =
			nccl_fixture_communicator(&fixture, 0xabc, 4, rank, "world");

		for (unsigned i = 0; i < CALLS; i++)
			add_call(&fixture, world, "AllReduce", i, i, rank == 2);
	}
	end_rank(&fixture, *state);
	data = open_data(*state);
	assert_int_equal(data->process_count, 1);
	assert_int_equal(data->job_rank_count, 4);
	assert_int_equal(data->job_size, 4);
	assert_int_equal(data->missing_job_rank_count, 0);
	join(data, &joined);
	late = find_most_waited_for(data, &joined);
	assert_int_not_equal(late, NCCL_INDEX_NONE);
	assert_int_equal(data->job_ranks[late].rank, 2);
	nccl_joined_collectives_deinit(&joined);
	nccl_data_free(data);
}

/* Two groups of two, and nothing that says which rank of the job a process is. */
static void ranks_of_the_job_are_not_known(void **state)
{
	struct nccl_data *data;

	for (int32_t process = 0; process < 4; process++) {
		struct nccl_fixture fixture;

		begin_rank(&fixture, process, 4);
		fixture.header->world_rank = fixture.header->world_size = -1;
		nccl_fixture_communicator(&fixture, 0xa + (uint64_t)process / 2, 2, process % 2,
					  "tp");
		end_rank(&fixture, *state);
	}
	data = open_data(*state);
	assert_int_equal(data->job_ranks_basis, NCCL_JOB_RANKS_UNKNOWN);
	assert_int_equal(data->job_rank_count, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(data->job_ranks[i].rank, -1);
	nccl_data_free(data);
}

/* A variable of the node, say, is the same in processes that live at the same time. */
static void launcher_told_two_the_same(void **state)
{
	struct nccl_data *data;

	for (int32_t process = 0; process < 2; process++) {
		struct nccl_fixture fixture;

		begin_rank(&fixture, process, 1);
		fixture.header->world_rank = 0;
		nccl_fixture_communicator(&fixture, 0xa, 2, process, "world");
		end_rank(&fixture, *state);
	}
	data = open_data(*state);
	assert_int_equal(data->job_ranks_basis, NCCL_JOB_RANKS_BY_COMMUNICATOR);
	assert_int_equal(data->job_ranks[0].rank, 0);
	assert_int_equal(data->job_ranks[1].rank, 1);
	nccl_data_free(data);
}

/* ---- who is missing ---- */

static void a_late_rank_is_named_where_all_are_there(void **state)
{
	struct nccl_joined_collectives joined;
	struct nccl_data *data;

	write_job_with_late_rank(*state, 4, 3, 0);
	data = open_data(*state);
	join(data, &joined);
	assert_int_equal(joined.timed_collective_count, CALLS);
	assert_int_equal(joined.incomplete_collective_count, 0);
	assert_int_equal(data->job_ranks[find_most_waited_for(data, &joined)].rank, 3);
	nccl_joined_collectives_deinit(&joined);
	nccl_data_free(data);
}

static void nothing_is_concluded_without_the_late_rank(void **state)
{
	struct nccl_joined_collectives joined;
	struct nccl_data *data;
	uint32_t late;

	write_job_with_late_rank(*state, 4, 3, 1u << 3);
	data = open_data(*state);
	assert_int_equal(data->job_size, 4);
	assert_int_equal(data->missing_job_rank_count, 1);
	assert_int_equal(data->missing_job_ranks[0], 3);
	assert_int_equal(data->communicators[0].missing_rank_count, 1);
	join(data, &joined);
	assert_int_equal(joined.count, CALLS);
	assert_int_equal(joined.incomplete_collective_count, CALLS);
	assert_int_equal(joined.waiting_ns + joined.transfer_ns, 0);
	assert_int_equal(find_most_waited_for(data, &joined), NCCL_INDEX_NONE);
	assert_int_equal(nccl_collective_find_late_rank(&joined.collectives[0], &late),
			 NCCL_LATENESS_UNKNOWN);
	nccl_joined_collectives_deinit(&joined);
	nccl_data_free(data);
}

/* ---- send and receive ---- */

static void add_transfer(struct nccl_fixture *fixture,
			 struct nccl_communicator_record *communicator, bool sends, unsigned number,
			 int32_t peer, uint64_t bytes, uint64_t begin_ns, uint64_t end_ns)
{
	struct nccl_operation *operation = nccl_fixture_operation(
		fixture, communicator, sends ? "Send" : "Recv", number, bytes, begin_ns - 5 * US);

	operation->kind = NCCL_KIND_P2P;
	operation->peer = peer;
	if (end_ns)
		nccl_fixture_run(fixture, operation, begin_ns, end_ns, NCCL_FIXTURE_REALTIME);
}

/* The receiver comes 20 ms late; a transfer takes 1 ms. The last one has other sizes, and a send
 * has no receive. */
static void a_late_receiver_is_no_slow_link(void **state)
{
	struct nccl_joined_collectives joined;
	struct nccl_data *data;

	for (int32_t rank = 0; rank < 2; rank++) {
		struct nccl_communicator_record *pipeline;
		struct nccl_fixture fixture;

		begin_rank(&fixture, rank, 2);
		pipeline = nccl_fixture_communicator(&fixture, 0xabc, 2, rank, "pp");
		for (unsigned i = 0; i < CALLS; i++) {
			uint64_t at = START + (i + 1) * 100 * MS, late = rank == 1 ? 20 * MS : 0;

			add_transfer(&fixture, pipeline, rank == 0, i, 1 - rank,
				     rank == 1 && i == CALLS - 1 ? 500000 : 1000000, at + late,
				     at + 21 * MS);
		}
		if (rank == 0)
			add_transfer(&fixture, pipeline, true, CALLS, 1, 8, START + 2 * SECOND_NS,
				     START + 2 * SECOND_NS + MS);
		fixture.header->heartbeat_ticks = START + 3 * SECOND_NS;
		end_rank(&fixture, *state);
	}
	data = open_data(*state);
	join(data, &joined);
	assert_int_equal(joined.pairs->pair_count, CALLS);
	assert_int_equal(data->job_ranks[find_most_waited_for(data, &joined)].rank, 1);
	assert_true(joined.link_count >= 1);
	assert_true(joined.links[0].sends);
	assert_int_equal(joined.links[0].paired_transfer_count, CALLS);
	assert_true(joined.links[0].ns / joined.links[0].transfer_count < 1100 * US);
	assert_true(joined.links[0].sender_wait_ns >= CALLS * 19 * MS);
	assert_int_equal(joined.links[0].receiver_wait_ns, 0);
	assert_int_equal(joined.pairs->waiting_count, CALLS);
	assert_int_equal(joined.pairs->faulty_pair_count, 2);
	assert_int_equal(joined.pairs->faulty[0].fault, NCCL_PAIR_BYTES_DIFFER);
	assert_int_equal(joined.pairs->faulty[1].fault, NCCL_PAIR_SEND_ALONE);
	nccl_joined_collectives_deinit(&joined);
	nccl_data_free(data);
}

/* ---- the order of calls ---- */

/* Calls alternate between two functions; rank 2 does something else at the fifth. */
static void write_job_with_other_call(const char *directory, enum nccl_call_difference difference)
{
	for (int32_t rank = 0; rank < 4; rank++) {
		struct nccl_communicator_record *world;
		struct nccl_fixture fixture;
		uint64_t sequences[2] = {0, 0};

		begin_rank(&fixture, rank, 4);
		world = nccl_fixture_communicator(&fixture, 0xabc, 4, rank, "world");
		for (unsigned i = 0; i < CALLS; i++) {
			bool odd = rank == 2 && i == 4, gather = i % 2;

			if (odd && difference == NCCL_CALL_IS_SKIPPED)
				continue;
			if (odd && difference == NCCL_CALL_IS_DIFFERENT)
				gather = !gather;
			for (unsigned k = 0; k < (odd && difference == NCCL_CALL_IS_EXTRA ? 2 : 1);
			     k++)
				add_call(&fixture, world, gather ? "AllGather" : "AllReduce", i,
					 sequences[gather]++, false);
		}
		end_rank(&fixture, directory);
	}
}

static void check_other_call(const char *directory, enum nccl_call_difference difference,
			     uint64_t position)
{
	struct nccl_joined_collectives joined;
	struct nccl_data *data;

	write_job_with_other_call(directory, difference);
	data = open_data(directory);
	assert_int_equal(data->differing_call_count, 1);
	assert_int_equal(data->differing_calls[0].difference, difference);
	assert_int_equal(data->differing_calls[0].position, position);
	assert_int_equal(data->members[data->differing_calls[0].member].rank, 2);
	join(data, &joined);
	/* What comes behind it belongs to other calls of rank 2. */
	assert_int_equal(joined.timed_collective_count, position);
	nccl_joined_collectives_deinit(&joined);
	nccl_data_free(data);
}

static void one_calls_something_else(void **state)
{
	check_other_call(*state, NCCL_CALL_IS_DIFFERENT, 4);
}

static void one_skips_a_call(void **state)
{
	check_other_call(*state, NCCL_CALL_IS_SKIPPED, 4);
}

static void one_makes_a_call_twice(void **state)
{
	check_other_call(*state, NCCL_CALL_IS_EXTRA, 5);
}

/* ---- what holds a job up ---- */

static void add_open_call(struct nccl_fixture *fixture,
			  struct nccl_communicator_record *communicator, uint64_t sequence)
{
	struct nccl_operation *operation = nccl_fixture_operation(
		fixture, communicator, "AllReduce", sequence, 4096, START + 20 * MS);

	operation->channels_started = 1;
	operation->state = NCCL_OPERATION_RUNNING;
}

static void find_roots(struct nccl_data *data, struct nccl_hang_findings *hang,
		       struct nccl_hang_roots *roots)
{
	struct problem problem = {""};

	assert_int_equal(nccl_find_stuck_operations(data, hang, &problem), 0);
	assert_int_equal(nccl_find_hang_roots(data, hang, roots), 0);
}

/* Groups (0,1) (2,3) and (0,2) (1,3): 2 waits for 3, and so does 1; 0 waits for 1. */
static void the_root_of_a_chain(void **state)
{
	struct nccl_hang_findings hang;
	struct nccl_hang_roots roots;
	struct nccl_data *data;

	for (int32_t rank = 0; rank < 4; rank++) {
		struct nccl_communicator_record *tensor, *batch;
		struct nccl_fixture fixture;

		begin_rank(&fixture, rank, 4);
		tensor = nccl_fixture_communicator(&fixture, 0xa + (uint64_t)rank / 2, 2, rank % 2,
						   "tp");
		batch = nccl_fixture_communicator(&fixture, 0xc + (uint64_t)rank % 2, 2, rank / 2,
						  "dp");
		add_call(&fixture, tensor, "AllReduce", 0, 0, false);
		add_call(&fixture, batch, "AllReduce", 1, 0, false);
		if (rank == 0 || rank == 2)
			add_open_call(&fixture, tensor, 1);
		if (rank == 1)
			add_open_call(&fixture, batch, 1);
		end_rank(&fixture, *state);
	}
	data = open_data(*state);
	find_roots(data, &hang, &roots);
	assert_int_equal(roots.root_count, 1);
	assert_int_equal(roots.roots[0].kind, NCCL_ROOT_RANK);
	assert_int_equal(data->job_ranks[roots.roots[0].job_rank].rank, 3);
	assert_int_equal(roots.roots[0].direct_count, 2);
	assert_int_equal(roots.roots[0].victim_count, 3);
	nccl_hang_roots_deinit(&roots);
	nccl_hang_findings_deinit(&hang);
	nccl_data_free(data);
}

/* Rank 2 has enqueued two calls whose kernels nobody saw, and the others have finished the first
 * one: so it ran there, too, and rank 2 waits nowhere. */
static void who_was_not_seen_to_run_does_not_wait(void **state)
{
	struct nccl_hang_findings hang;
	struct nccl_hang_roots roots;
	struct nccl_data *data;

	for (int32_t rank = 0; rank < 3; rank++) {
		struct nccl_communicator_record *world;
		struct nccl_fixture fixture;

		begin_rank(&fixture, rank, 3);
		world = nccl_fixture_communicator(&fixture, 0xabc, 3, rank, "world");
		if (rank == 2) {
			nccl_fixture_operation(&fixture, world, "AllReduce", 0, 4096, START + MS);
		} else {
			add_call(&fixture, world, "AllReduce", 0, 0, false);
			add_open_call(&fixture, world, 1);
		}
		end_rank(&fixture, *state);
	}
	data = open_data(*state);
	find_roots(data, &hang, &roots);
	assert_int_equal(roots.root_count, 1);
	assert_int_equal(roots.roots[0].kind, NCCL_ROOT_RANK);
	assert_int_equal(data->job_ranks[roots.roots[0].job_rank].rank, 2);
	nccl_hang_roots_deinit(&roots);
	nccl_hang_findings_deinit(&hang);
	nccl_data_free(data);
}

/* Each sends to the other first. */
static void a_cycle_of_sends(void **state)
{
	struct nccl_wait_edge cycle[4];
	struct nccl_hang_findings hang;
	struct nccl_hang_roots roots;
	struct nccl_data *data;

	for (int32_t rank = 0; rank < 2; rank++) {
		struct nccl_fixture fixture;

		begin_rank(&fixture, rank, 2);
		add_transfer(&fixture, nccl_fixture_communicator(&fixture, 0xabc, 2, rank, "pp"),
			     true, 0, 1 - rank, 1 << 20, START + MS, 0);
		end_rank(&fixture, *state);
	}
	data = open_data(*state);
	find_roots(data, &hang, &roots);
	assert_int_equal(roots.root_count, 1);
	assert_int_equal(roots.roots[0].kind, NCCL_ROOT_CYCLE);
	assert_int_equal(nccl_list_cycle(&roots, data->job_rank_count, 0, cycle, 4), 2);
	nccl_hang_roots_deinit(&roots);
	nccl_hang_findings_deinit(&hang);
	nccl_data_free(data);
}

/* All are in it: nobody is to blame. */
static void all_are_inside(void **state)
{
	struct nccl_hang_findings hang;
	struct nccl_hang_roots roots;
	struct nccl_data *data;

	for (int32_t rank = 0; rank < 3; rank++) {
		struct nccl_fixture fixture;

		begin_rank(&fixture, rank, 3);
		add_open_call(&fixture, nccl_fixture_communicator(&fixture, 0xabc, 3, rank, "w"),
			      0);
		end_rank(&fixture, *state);
	}
	data = open_data(*state);
	find_roots(data, &hang, &roots);
	assert_int_equal(roots.root_count, 1);
	assert_int_equal(roots.roots[0].kind, NCCL_ROOT_ALL_ARE_INSIDE);
	assert_int_equal(roots.edge_count, 0);
	nccl_hang_roots_deinit(&roots);
	nccl_hang_findings_deinit(&hang);
	nccl_data_free(data);
}

#define TEST(function)                                                                             \
	cmocka_unit_test_setup_teardown(function, test_directory_create, test_directory_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(several_ranks_in_one_process),
		TEST(ranks_of_the_job_are_not_known),
		TEST(launcher_told_two_the_same),
		TEST(a_late_rank_is_named_where_all_are_there),
		TEST(nothing_is_concluded_without_the_late_rank),
		TEST(a_late_receiver_is_no_slow_link),
		TEST(one_calls_something_else),
		TEST(one_skips_a_call),
		TEST(one_makes_a_call_twice),
		TEST(the_root_of_a_chain),
		TEST(who_was_not_seen_to_run_does_not_wait),
		TEST(a_cycle_of_sends),
		TEST(all_are_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
