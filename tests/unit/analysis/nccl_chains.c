/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Lateness that ranks pass on: one waits for another in a communicator and comes late into the next
 * one for that. Who began it is named, with the chain, and nobody else; also where clocks are
 * apart, files are missing, cut off or those of several ranks, a rank dies or calls something else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/nccl/calls.h"
#include "analysis/nccl/join.h"
#include "analysis/nccl/roots.h"
#include "unit/analysis/nccl_small_job.h"
#include "unit/analysis/test_directory.h"

#define STEPS 10
#define LATE  (5 * MS)

/* ---- what is said of it ---- */

struct answer {
	struct nccl_data *data;
	struct nccl_joined_collectives joined;
	int late; /* -1: nobody stands out; -2: several */
};

static void ask(const char *directory, struct answer *ret)
{
	struct problem problem = {""};
	struct nccl_late_ranks late;

	*ret = (struct answer){.late = -1};
	if (nccl_data_read_directory(directory, &ret->data, &problem) < 0)
		fail_msg("%s", problem.text);
	assert_non_null(ret->data);
	assert_int_equal(nccl_join_collectives(ret->data, &ret->joined, &problem), 0);
	assert_int_equal(nccl_find_late_ranks(ret->data, &ret->joined, &late), 0);
	if (late.count)
		ret->late = late.count > 1 ? -2 : ret->data->job_ranks[late.ranks[0].job_rank].rank;
}

static void forget(struct answer *answer)
{
	nccl_joined_collectives_deinit(&answer->joined);
	nccl_data_free(answer->data);
}

static uint64_t get_caused(const struct answer *answer, int rank)
{
	for (uint32_t i = 0; i < answer->data->job_rank_count; i++) {
		if (answer->data->job_ranks[i].rank == rank)
			return nccl_sum_waits_of_job_rank(answer->data, &answer->joined, i)
				.caused_wait_ns;
	}
	return 0;
}

/* `rank` came late into `where`, for it waited for `awaited`, and `root` began it. */
static void assert_passes_on(const struct answer *answer, int rank, const char *where, int awaited,
			     int root)
{
	const struct nccl_data *data = answer->data;

	for (size_t i = 0; i < answer->joined.passed_wait_count; i++) {
		const struct nccl_passed_wait *wait = &answer->joined.passed_waits[i];
		const struct nccl_communicator_rank *member = &data->members[wait->member];
		uint32_t began = nccl_find_root_of_passed_wait(data, &answer->joined, wait);

		if (member->job_rank != rank || strcmp(member->name, where) != 0 ||
		    wait->awaited_member == NCCL_INDEX_NONE ||
		    data->members[wait->awaited_member].job_rank != awaited)
			continue;
		assert_int_not_equal(began, NCCL_INDEX_NONE);
		assert_int_equal(data->job_ranks[began].rank, root);
		return;
	}
	fail_msg("rank %d does not pass on into %s what it waited for rank %d", rank, where,
		 awaited);
}

/* Nobody but `rank` made others wait for more than a tenth of a step's lateness. */
static void assert_only_late(const struct answer *answer, int rank)
{
	assert_int_equal(answer->late, rank);
	for (int i = 0; i < SMALL_JOB_RANKS_MAX; i++) {
		if (i != rank && get_caused(answer, i) > STEPS * (uint64_t)LATE / 10)
			fail_msg("rank %d made others wait %llu ns", i,
				 (unsigned long long)get_caused(answer, i));
	}
}

/* ---- chains ---- */

static int add_square_of_groups(struct small_job *job)
{
	int first = small_job_add_communicator(job, "tp0", "01");

	small_job_add_communicator(job, "tp1", "23");
	small_job_add_communicator(job, "dp0", "02");
	small_job_add_communicator(job, "dp1", "13");
	return first;
}

/* 3 is late into tp1, so 2 into dp0, and 0 waits there, and comes late into tp0. */
static void run_square(struct small_job *job, int steps)
{
	for (int step = 0; step < steps; step++) {
		small_job_work_all(job, 200 * US);
		small_job_work(job, 3, LATE);
		small_job_all_reduce(job, 1);
		small_job_all_reduce(job, 2);
		small_job_all_reduce(job, 0);
		small_job_work_all(job, 50 * US);
		small_job_all_reduce(job, 3);
	}
}

static void a_chain_over_groups(void **state)
{
	struct answer answer;
	struct small_job job;

	small_job_begin(&job, 4, 1, 4);
	add_square_of_groups(&job);
	run_square(&job, STEPS);
	small_job_write(&job, *state, 0);
	ask(*state, &answer);
	assert_only_late(&answer, 3);
	assert_passes_on(&answer, 2, "dp0", 3, 3);
	assert_passes_on(&answer, 0, "tp0", 2, 3);
	forget(&answer);
}

/* Clocks of the hosts are 7 ms apart, and those that NTP keeps 3 ms. */
static void hosts_have_other_clocks(void **state)
{
	struct answer answer;
	struct small_job job;

	small_job_begin(&job, 4, 1, 1);
	add_square_of_groups(&job);
	run_square(&job, STEPS);
	small_job_write(&job, *state, 0);
	ask(*state, &answer);
	assert_only_late(&answer, 3);
	assert_passes_on(&answer, 0, "tp0", 2, 3);
	forget(&answer);
}

static void several_ranks_in_a_process(void **state)
{
	struct answer answer;
	struct small_job job;

	small_job_begin(&job, 4, 2, 4);
	small_job_add_communicator(&job, "world", "0123");
	add_square_of_groups(&job);
	for (int step = 0; step < STEPS; step++) {
		small_job_work_all(&job, 200 * US);
		small_job_work(&job, 3, LATE);
		small_job_all_reduce(&job, 2);
		small_job_all_reduce(&job, 3);
		small_job_all_reduce(&job, 1);
		small_job_all_reduce(&job, 0);
	}
	small_job_write(&job, *state, 0);
	ask(*state, &answer);
	assert_only_late(&answer, 3);
	assert_passes_on(&answer, 2, "dp0", 3, 3);
	forget(&answer);
}

/* Who receives late sends late: in the same communicator. */
static void a_chain_along_a_pipeline(void **state)
{
	struct answer answer;
	struct small_job job;

	small_job_begin(&job, 4, 1, 2);
	small_job_add_communicator(&job, "pp", "0123");
	for (int step = 0; step < STEPS; step++) {
		for (int i = 0; i < 4; i++)
			small_job_work(&job, i, 200 * US + i * 60 * US);
		small_job_work(&job, 0, LATE);
		for (int i = 0; i + 1 < 4; i++)
			small_job_send(&job, 0, i, i + 1);
		small_job_all_reduce(&job, 0);
	}
	small_job_write(&job, *state, 0);
	ask(*state, &answer);
	assert_only_late(&answer, 0);
	assert_passes_on(&answer, 1, "pp", 0, 0);
	assert_passes_on(&answer, 2, "pp", 1, 0);
	forget(&answer);
}

/* Hosts that have no collective in common: only durations tell. */
static void a_pipeline_without_a_common_clock(void **state)
{
	struct answer answer;
	struct small_job job;

	small_job_begin(&job, 4, 1, 1);
	small_job_add_communicator(&job, "pp", "0123");
	for (int step = 0; step < STEPS; step++) {
		for (int i = 0; i < 4; i++)
			small_job_work(&job, i, 200 * US + i * 60 * US);
		small_job_work(&job, 1, LATE);
		for (int i = 0; i + 1 < 4; i++)
			small_job_send(&job, 0, i, i + 1);
	}
	small_job_write(&job, *state, 0);
	ask(*state, &answer);
	assert_int_equal(answer.late, 1);
	assert_true(get_caused(&answer, 2) < LATE);
	forget(&answer);
}

/* It waits for the others at the end of each step, longer than it is late itself later. */
static void who_waited_before_all_were_level_is_late_by_itself(void **state)
{
	struct answer answer;
	struct small_job job;

	small_job_begin(&job, 4, 1, 4);
	small_job_add_communicator(&job, "world", "0123");
	add_square_of_groups(&job);
	for (int step = 0; step < STEPS; step++) {
		small_job_work_all(&job, 200 * US);
		small_job_work(&job, 3, LATE);
		small_job_all_reduce(&job, 2);
		for (int i = 0; i < 4; i++)
			small_job_work(&job, i, i == 3 ? 0 : 6 * MS + i * US);
		small_job_all_reduce(&job, 0);
	}
	small_job_write(&job, *state, 0);
	ask(*state, &answer);
	assert_true(get_caused(&answer, 3) >= (STEPS - 1) * (uint64_t)LATE);
	forget(&answer);
}

/* The late one has no records: nobody else is late for it. */
static void who_began_it_has_no_records(void **state)
{
	struct answer answer;
	struct small_job job;

	small_job_begin(&job, 4, 1, 2);
	add_square_of_groups(&job);
	run_square(&job, STEPS);
	small_job_write(&job, *state, 1u << 3);
	ask(*state, &answer);
	assert_int_equal(answer.late, -1);
	for (int i = 0; i < 3; i++)
		assert_true(get_caused(&answer, i) < LATE / 10);
	forget(&answer);
}

/* Its file ends in the middle. */
static void who_began_it_has_half_its_records(void **state)
{
	struct answer answer;
	char path[4096];
	struct small_job job;
	size_t size;

	small_job_begin(&job, 4, 1, 2);
	add_square_of_groups(&job);
	run_square(&job, STEPS);
	size = job.fixtures[3].size;
	small_job_write(&job, *state, 0);
	snprintf(path, sizeof(path), "%s/spool/nccl-103-0.nccl", (const char *)*state);
	assert_int_equal(truncate(path, (off_t)(size - size / 3)), 0);
	ask(*state, &answer);
	if (answer.late >= 0)
		assert_int_equal(answer.late, 3);
	for (int i = 0; i < 3; i++)
		assert_true(get_caused(&answer, i) < LATE);
	forget(&answer);
}

/* 0 waits in tp0 for 1, 1 in dp1 and 2 in tp1 for 3. */
static void hang_because_of_last_rank(struct small_job *job)
{
	static const int waits_in[3] = {0, 3, 1};

	for (int i = 0; i < 3; i++) {
		const struct small_job_communicator *in = &job->communicators[waits_in[i]];
		struct nccl_operation *operation =
			small_job_enqueue(job, in, i, "AllReduce", in->sequences[i]);

		operation->channels_started = 1;
		operation->state = NCCL_OPERATION_RUNNING;
	}
}

/* Nobody knows what it does: not even that the others wait for each other is said. */
static void who_holds_the_job_up_has_no_records(void **state)
{
	struct nccl_hang_findings hang;
	struct nccl_hang_roots roots;
	struct problem problem;
	struct answer answer;
	struct small_job job;

	small_job_begin(&job, 4, 1, 2);
	add_square_of_groups(&job);
	run_square(&job, STEPS);
	hang_because_of_last_rank(&job);
	small_job_write(&job, *state, 1u << 3);
	ask(*state, &answer);
	assert_int_equal(nccl_find_stuck_operations(answer.data, &hang, &problem), 0);
	assert_int_equal(nccl_find_hang_roots(answer.data, &hang, &roots), 0);
	assert_int_equal(roots.root_count, 2);
	for (size_t i = 0; i < roots.root_count; i++)
		assert_int_equal(roots.roots[i].kind, NCCL_ROOT_NO_RECORDS);
	nccl_hang_roots_deinit(&roots);
	nccl_hang_findings_deinit(&hang);
	forget(&answer);
}

/* It was late, and dies: both are said of it. */
static void who_began_it_dies(void **state)
{
	struct nccl_hang_findings hang;
	struct nccl_hang_roots roots;
	struct problem problem;
	struct answer answer;
	struct small_job job;

	small_job_begin(&job, 4, 1, 2);
	add_square_of_groups(&job);
	run_square(&job, STEPS);
	job.fixtures[3].header->state = NCCL_FILE_OPEN;
	job.fixtures[3].header->heartbeat_ticks = (uint64_t)(job.now[3] + job.ahead[3]);
	hang_because_of_last_rank(&job);
	small_job_write(&job, *state, 0);
	ask(*state, &answer);
	assert_only_late(&answer, 3);
	assert_int_equal(nccl_find_stuck_operations(answer.data, &hang, &problem), 0);
	assert_int_equal(nccl_find_hang_roots(answer.data, &hang, &roots), 0);
	assert_int_equal(roots.root_count, 1);
	assert_int_equal(answer.data->job_ranks[roots.roots[0].job_rank].rank, 3);
	assert_int_equal(roots.roots[0].victim_count, 3);
	nccl_hang_roots_deinit(&roots);
	nccl_hang_findings_deinit(&hang);
	forget(&answer);
}

/* Behind a call that ranks do not agree on, numbers belong to other calls: neither clocks nor
 * lateness come from them, and what other communicators say stays true. */
static void somebody_skips_a_call_elsewhere(void **state)
{
	struct answer answer;
	struct small_job job;

	small_job_begin(&job, 4, 1, 2);
	add_square_of_groups(&job);
	small_job_add_communicator(&job, "world", "0123");
	for (int step = 0; step < STEPS; step++) {
		small_job_call(&job, 4, step % 2 ? "AllGather" : "AllReduce");
		if (step == 2)
			small_job_run(&job, 1,
				      small_job_enqueue(&job, &job.communicators[4], 1, "AllReduce",
							job.communicators[4].sequences[1]++),
				      job.now[1], job.now[1] + 20 * US);
		run_square(&job, 1);
	}
	small_job_write(&job, *state, 0);
	ask(*state, &answer);
	assert_int_equal(answer.late, 3);
	assert_true(answer.data->differing_call_count > 0);
	forget(&answer);
}

/* A broadcast's last rank in a ring holds nobody up; the one before it does. */
static void nobody_waits_for_the_end_of_a_broadcast(void **state)
{
	struct answer answer;
	struct small_job job;
	struct small_job_communicator *in;

	small_job_begin(&job, 4, 1, 4);
	small_job_add_communicator(&job, "world", "0123");
	in = &job.communicators[0];
	for (int step = 0; step < STEPS; step++) {
		int64_t at = job.now[0] + 200 * US;
		const int64_t begins[4] = {at, at + LATE, at, at + LATE + MS};

		for (int i = 0; i < 4; i++) {
			int64_t end = i == 0   ? at + 30 * US
				      : i == 2 ? at + LATE + 60 * US
					       : begins[i] + 40 * US;

			job.now[i] = begins[i];
			small_job_run(
				&job, i,
				small_job_enqueue(&job, in, i, "Broadcast", in->sequences[i]++),
				begins[i], end);
			job.now[i] = end + 5 * US;
		}
		small_job_all_reduce(&job, 0);
	}
	small_job_write(&job, *state, 0);
	ask(*state, &answer);
	assert_int_not_equal(answer.late, 0);
	assert_int_not_equal(answer.late, 2);
	forget(&answer);
}

/* All send to all, in one launch a rank, and 1 is late; then two groups go on. */
static void who_is_late_to_an_exchange_of_all(void **state)
{
	struct small_job_communicator *in;
	struct answer answer;
	struct small_job job;

	small_job_begin(&job, 4, 1, 2);
	small_job_add_communicator(&job, "ep", "0123");
	small_job_add_communicator(&job, "tp0", "02");
	small_job_add_communicator(&job, "tp1", "13");
	in = &job.communicators[0];
	for (int step = 0; step < STEPS; step++) {
		int64_t end;

		small_job_work_all(&job, 200 * US);
		small_job_work(&job, 1, LATE);
		end = job.now[1] + 80 * US;
		for (int i = 0; i < 16; i++) {
			int rank = i / 4, peer = i % 4;
			struct nccl_operation *operations[2] = {
				small_job_enqueue_transfer(&job, in, rank, true, peer,
							   in->sends[rank][peer]++),
				small_job_enqueue_transfer(&job, in, rank, false, peer,
							   in->receives[rank][peer]++)};

			for (int k = 0; k < 2; k++) {
				operations[k]->flags |= NCCL_OPERATION_BATCHED;
				small_job_run(&job, rank, operations[k], job.now[rank], end);
			}
		}
		for (int i = 0; i < 4; i++)
			job.now[i] = end + 5 * US + i * 500;
		small_job_work(&job, 0, 300 * US);
		small_job_work(&job, 3, 300 * US);
		small_job_all_reduce(&job, 1);
		small_job_all_reduce(&job, 2);
	}
	small_job_write(&job, *state, 0);
	ask(*state, &answer);
	assert_only_late(&answer, 1);
	assert_true(get_caused(&answer, 1) < 2 * STEPS * (uint64_t)LATE);
	forget(&answer);
}

/* ---- pipelines that are filled and emptied ---- */

/* Forwards with each of four parts, then backwards, which takes twice as long. */
static void run_pipeline_step(struct small_job *job, int stages, int slow)
{
	for (int part = 0; part < 4; part++) {
		for (int i = 0; i < stages; i++) {
			if (i)
				small_job_send(job, 0, i - 1, i);
			small_job_work(job, i, i == slow ? 1200 * US : 300 * US);
		}
	}
	for (int part = 0; part < 4; part++) {
		for (int i = stages; i-- > 0;) {
			if (i + 1 < stages)
				small_job_send(job, 0, i + 1, i);
			small_job_work(job, i, i == slow ? 2400 * US : 600 * US);
		}
	}
	small_job_all_reduce(job, 0);
}

static void ask_about_pipeline(const char *directory, int stages, int slow, struct answer *ret)
{
	struct small_job job;

	small_job_begin(&job, stages, 1, 2);
	small_job_add_communicator(&job, "pp",
				   stages == 2   ? "01"
				   : stages == 4 ? "0123"
						 : "01234567");
	for (int step = 0; step < 3 * STEPS; step++)
		run_pipeline_step(&job, stages, slow);
	small_job_write(&job, directory, 0);
	ask(directory, ret);
}

static void a_pipeline_without_a_slow_stage(void **state)
{
	struct answer answer;

	ask_about_pipeline(*state, 4, -1, &answer);
	assert_int_equal(answer.late, -1);
	forget(&answer);
}

/* The first stage waits for the second one to turn round, which is not told from a slow one. */
static void a_short_pipeline_without_a_slow_stage(void **state)
{
	struct answer answer;

	ask_about_pipeline(*state, 2, -1, &answer);
	assert_int_not_equal(answer.late, 0);
	forget(&answer);
}

static void a_pipeline_with_a_slow_stage(void **state)
{
	struct answer answer;

	ask_about_pipeline(*state, 4, 2, &answer);
	assert_int_equal(answer.late, 2);
	forget(&answer);
}

/* ---- what holds up a group of sends and receives ---- */

static void open_transfer(struct small_job *job, int communicator, int rank, bool sends, int peer)
{
	struct small_job_communicator *in = &job->communicators[communicator];
	struct nccl_operation *operation = small_job_enqueue_transfer(
		job, in, rank, sends, peer,
		sends ? in->sends[rank][peer]++ : in->receives[rank][peer]++);

	operation->group = 7;
	operation->channels_started = 1;
	operation->state = NCCL_OPERATION_RUNNING;
}

static void assert_root(const char *directory, int rank, uint32_t victims)
{
	struct nccl_hang_findings hang;
	struct nccl_hang_roots roots;
	struct problem problem;
	struct answer answer;

	ask(directory, &answer);
	assert_int_equal(nccl_find_stuck_operations(answer.data, &hang, &problem), 0);
	assert_int_equal(nccl_find_hang_roots(answer.data, &hang, &roots), 0);
	assert_int_equal(roots.root_count, 1);
	assert_int_equal(roots.roots[0].kind, NCCL_ROOT_RANK);
	assert_int_equal(answer.data->job_ranks[roots.roots[0].job_rank].rank, rank);
	assert_int_equal(roots.roots[0].victim_count, victims);
	nccl_hang_roots_deinit(&roots);
	nccl_hang_findings_deinit(&hang);
	forget(&answer);
}

/* Sixteen operations a rank, all of one group. */
static void one_does_not_come_to_an_exchange_of_all(void **state)
{
	struct small_job job;

	small_job_begin(&job, 8, 1, 4);
	small_job_add_communicator(&job, "ep", "01234567");
	small_job_all_reduce(&job, 0);
	for (int rank = 0; rank < 7; rank++) {
		for (int peer = 0; peer < 8; peer++) {
			open_transfer(&job, 0, rank, true, peer);
			open_transfer(&job, 0, rank, false, peer);
		}
	}
	small_job_write(&job, *state, 0);
	assert_root(*state, 7, 7);
}

/* 0 sends to 1, which is through with it and works, and to 2, which has not come. */
static void who_has_done_its_side_is_not_waited_for(void **state)
{
	struct small_job job;

	small_job_begin(&job, 3, 1, 3);
	small_job_add_communicator(&job, "ep", "012");
	small_job_all_reduce(&job, 0);
	open_transfer(&job, 0, 0, true, 1);
	open_transfer(&job, 0, 0, true, 2);
	small_job_run(&job, 1,
		      small_job_enqueue_transfer(&job, &job.communicators[0], 1, false, 0, 0),
		      job.now[1], job.now[1] + 50 * US);
	small_job_write(&job, *state, 0);
	assert_root(*state, 2, 1);
}

#define TEST(function)                                                                             \
	cmocka_unit_test_setup_teardown(function, test_directory_create, test_directory_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_chain_over_groups),
		TEST(hosts_have_other_clocks),
		TEST(several_ranks_in_a_process),
		TEST(a_chain_along_a_pipeline),
		TEST(a_pipeline_without_a_common_clock),
		TEST(who_waited_before_all_were_level_is_late_by_itself),
		TEST(who_began_it_has_no_records),
		TEST(who_began_it_has_half_its_records),
		TEST(who_holds_the_job_up_has_no_records),
		TEST(who_began_it_dies),
		TEST(somebody_skips_a_call_elsewhere),
		TEST(nobody_waits_for_the_end_of_a_broadcast),
		TEST(who_is_late_to_an_exchange_of_all),
		TEST(a_pipeline_without_a_slow_stage),
		TEST(a_short_pipeline_without_a_slow_stage),
		TEST(a_pipeline_with_a_slow_stage),
		TEST(one_does_not_come_to_an_exchange_of_all),
		TEST(who_has_done_its_side_is_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
