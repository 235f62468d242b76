/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Who waited for whom, from events with known times; clocks of hosts that are apart.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "job/results/waits.h"

#define MS    1000000ull
#define START (1000ull * 86400 * 1000 * MS) /* the host has been up for 1,000 days */

/* Ranks 0 to count - 1; those from `others` on are of another host. */
static void make_job(struct job *job, uint32_t count, uint32_t size, uint32_t others)
{
	struct job_name site = {JOB_NAME_SITE, "MPI_Recv", "exchange", "halo.c:7"};
	struct problem problem;
	uint32_t index;

	job_init(job);
	for (uint32_t i = 0; i < count; i++) {
		struct job_rank rank = {.rank = i,
					.size = size,
					.events = 4,
					.host = i < others ? "near" : "far",
					.directory = "",
					.command = ""};

		assert_int_equal(job_add_rank(job, &rank, &problem), 0);
	}
	assert_int_equal(job_find_or_add_name(job, &site, &index), 0);
	assert_int_equal(index, 0);
}

static void add_event(struct job *job, struct job_event event)
{
	event.context = event.context ? event.context : 1;
	assert_int_equal(job_add_event(job, &event), 0);
}

/* A message whose send takes no time and whose receive waits from `wait_ns` to `end_ns`. */
static void add_message(struct job *job, uint32_t from, uint32_t to, uint32_t order,
			uint64_t sent_ns, uint64_t wait_ns, uint64_t end_ns)
{
	add_event(job, (struct job_event){.kind = JOB_EVENT_SEND,
					  .rank = from,
					  .peer = to,
					  .order = order,
					  .begin_ns = sent_ns,
					  .wait_ns = sent_ns,
					  .end_ns = sent_ns,
					  .call = 100 + order});
	add_event(job, (struct job_event){.kind = JOB_EVENT_RECEIVE,
					  .rank = to,
					  .peer = from,
					  .order = order,
					  .begin_ns = wait_ns,
					  .wait_ns = wait_ns,
					  .end_ns = end_ns,
					  .call = 200 + order});
}

static struct job_waits find(struct job *job)
{
	struct job_waits waits;

	assert_int_equal(job_sort(job), 0);
	assert_int_equal(job_find_waits(job, &waits), 0);
	return waits;
}

static void done(struct job *job, struct job_waits *waits)
{
	job_waits_deinit(waits);
	job_deinit(job);
}

static void a_late_sender_is_named(void **state)
{
	struct job job;
	struct job_waits waits;

	(void)state;
	make_job(&job, 2, 2, 2);
	add_message(&job, 1, 0, 0, START + 5 * MS, START, START + 6 * MS);
	add_message(&job, 1, 0, 1, START + 7 * MS, START + 8 * MS, START + 9 * MS); /* in time */
	waits = find(&job);
	assert_int_equal(waits.verdict, JOB_WAITS_FOUND);
	assert_int_equal(waits.messages, 2);
	assert_int_equal(waits.row_count, 1);
	assert_int_equal(waits.rows[0].state, JOB_WAIT_LATE_SENDER);
	assert_int_equal(waits.rows[0].wait_ns, 5 * MS);
	assert_int_equal(waits.rows[0].cause_rank, 1);
	assert_int_equal(waits.rank_ns[0][JOB_WAIT_LATE_SENDER], 5 * MS);
	assert_int_equal(waits.caused_ns[1], 5 * MS);
	done(&job, &waits);
}

/* A send that waits until the receive is posted; one that was gone before; one whose call also
 * receives. */
static void late_receivers_are_told_from_sends_that_were_gone(void **state)
{
	static const struct {
		uint64_t end_ns;
		bool is_mixed;
		uint64_t wait_ns;
	} cases[] = {
		{START + 6 * MS, false, 5 * MS},
		{START + 1 * MS, false, 0},
		{START + 6 * MS, true, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct job job;
		struct job_waits waits;

		make_job(&job, 2, 2, 2);
		add_event(&job, (struct job_event){.kind = JOB_EVENT_SEND,
						   .rank = 0,
						   .peer = 1,
						   .begin_ns = START,
						   .wait_ns = START,
						   .end_ns = cases[i].end_ns,
						   .is_mixed = cases[i].is_mixed});
		add_event(&job, (struct job_event){.kind = JOB_EVENT_RECEIVE,
						   .rank = 1,
						   .peer = 0,
						   .begin_ns = START + 5 * MS,
						   .wait_ns = START + 5 * MS,
						   .end_ns = START + 6 * MS});
		waits = find(&job);
		assert_int_equal(waits.state_ns[JOB_WAIT_LATE_RECEIVER], cases[i].wait_ns);
		assert_int_equal(waits.unmatched, 0);
		done(&job, &waits);
	}
}

/* One call that waits for two messages waits for the later one. */
static void a_call_waits_for_the_last_message(void **state)
{
	struct job job;
	struct job_waits waits;

	(void)state;
	make_job(&job, 3, 3, 3);
	add_message(&job, 1, 0, 0, START + 3 * MS, START, START + 8 * MS);
	add_message(&job, 2, 0, 0, START + 7 * MS, START, START + 8 * MS);
	waits = find(&job);
	assert_int_equal(waits.row_count, 1);
	assert_int_equal(waits.rows[0].cause_rank, 2);
	assert_int_equal(waits.rows[0].wait_ns, 7 * MS);
	done(&job, &waits);
}

static void add_collective(struct job *job, enum job_event_kind kind, uint32_t rank, uint32_t size,
			   uint32_t root_or_order, uint64_t begin_ns, uint64_t end_ns)
{
	bool has_root = kind == JOB_EVENT_ONE_TO_ALL || kind == JOB_EVENT_ALL_TO_ONE;

	add_event(job, (struct job_event){.kind = kind,
					  .rank = rank,
					  .peer = has_root ? root_or_order : JOB_NO_RANK,
					  .order = has_root ? 0 : root_or_order,
					  .size = size,
					  .begin_ns = begin_ns,
					  .wait_ns = begin_ns,
					  .end_ns = end_ns});
}

static void collectives_have_their_states(void **state)
{
	static const struct {
		enum job_event_kind kind;
		uint32_t root;
		enum job_wait_state state;
		uint64_t sum_ns;
		uint32_t cause;
	} cases[] = {
		{JOB_EVENT_BARRIER, 0, JOB_WAIT_AT_BARRIER, 5 * MS, 2},
		{JOB_EVENT_ALL, 0, JOB_WAIT_AT_COLLECTIVE, 5 * MS, 2},
		{JOB_EVENT_ONE_TO_ALL, 1, JOB_WAIT_LATE_BROADCAST, 1 * MS, 1},
		{JOB_EVENT_ALL_TO_ONE, 0, JOB_WAIT_EARLY_REDUCE, 3 * MS, 2},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct job job;
		struct job_waits waits;

		make_job(&job, 3, 3, 3);
		for (uint32_t rank = 0; rank < 3; rank++)
			add_collective(&job, cases[i].kind, rank, 3, cases[i].root,
				       START + (rank == 2 ? 3 : rank) * MS, START + 4 * MS);
		waits = find(&job);
		assert_int_equal(waits.collectives, 1);
		assert_int_equal(waits.state_ns[cases[i].state], cases[i].sum_ns);
		assert_int_equal(waits.rows[0].cause_rank, cases[i].cause);
		done(&job, &waits);
	}
}

static void a_collective_without_all_ranks_tells_nothing(void **state)
{
	struct job job;
	struct job_waits waits;

	(void)state;
	make_job(&job, 3, 3, 3);
	add_collective(&job, JOB_EVENT_BARRIER, 0, 3, 0, START, START + 4 * MS);
	add_collective(&job, JOB_EVENT_BARRIER, 1, 3, 0, START + 3 * MS, START + 4 * MS);
	waits = find(&job);
	assert_int_equal(waits.row_count, 0);
	assert_int_equal(waits.unmatched, 2);
	done(&job, &waits);
}

static void missing_and_incomplete_ranks_forbid_conclusions(void **state)
{
	struct job job;
	struct job_waits waits;

	(void)state;
	make_job(&job, 2, 3, 2);
	add_message(&job, 1, 0, 0, START + 5 * MS, START, START + 6 * MS);
	waits = find(&job);
	assert_int_equal(waits.verdict, JOB_WAITS_INCOMPLETE);
	done(&job, &waits);
	make_job(&job, 2, 2, 2);
	add_message(&job, 1, 0, 0, START + 5 * MS, START, START + 6 * MS);
	job.ranks[1].flags |= JOB_RANK_LOST_RECORDS;
	waits = find(&job);
	assert_int_equal(waits.verdict, JOB_WAITS_INCOMPLETE);
	done(&job, &waits);
}

/* The far host's clock is an hour ahead; messages take 100 us. */
static void clocks_are_aligned_by_messages_both_ways(void **state)
{
	const uint64_t ahead = 3600 * 1000 * MS, flight = MS / 10;
	struct job job;
	struct job_waits waits;

	(void)state;
	make_job(&job, 2, 2, 1);
	/* Both arrive where somebody waits for them already. */
	add_message(&job, 0, 1, 0, START + 4 * MS, ahead + START, ahead + START + 4 * MS + flight);
	add_message(&job, 1, 0, 0, ahead + START + 20 * MS, START + 13 * MS,
		    START + 20 * MS + flight);
	/* Shorter than what the clocks may be wrong by. */
	add_message(&job, 1, 0, 1, ahead + START + 30 * MS, START + 30 * MS - flight / 2,
		    START + 31 * MS);
	waits = find(&job);
	assert_int_equal(waits.hosts, 2);
	assert_int_equal(waits.hosts_without_clock, 0);
	assert_int_equal(waits.messages, 3);
	assert_in_range(waits.clock_error_ns, flight, 2 * flight);
	assert_int_equal(waits.below_clock_error, 1);
	assert_in_range(waits.rank_ns[0][JOB_WAIT_LATE_SENDER], 7 * MS - flight, 7 * MS + flight);
	assert_in_range(waits.rank_ns[1][JOB_WAIT_LATE_SENDER], 4 * MS - flight, 4 * MS + flight);
	done(&job, &waits);
}

static void clocks_are_not_aligned_by_messages_one_way(void **state)
{
	const uint64_t ahead = 3600 * 1000 * MS;
	struct job job;
	struct job_waits waits;

	(void)state;
	make_job(&job, 2, 2, 1);
	add_message(&job, 0, 1, 0, START + 4 * MS, ahead + START, ahead + START + 5 * MS);
	waits = find(&job);
	assert_int_equal(waits.hosts_without_clock, 1);
	assert_int_equal(waits.row_count, 0);
	done(&job, &waits);
}

/* Each barrier bounds one side well: that on which the last rank was. */
static void barriers_align_clocks(void **state)
{
	const uint64_t ahead = 77 * MS;
	struct job job;
	struct job_waits waits;

	(void)state;
	make_job(&job, 2, 2, 1);
	for (uint32_t i = 0; i < 2; i++) {
		uint64_t begin = START + i * 100 * MS;

		add_collective(&job, JOB_EVENT_BARRIER, 0, 2, i, begin + (i ? 0 : 9) * MS,
			       begin + 10 * MS);
		add_collective(&job, JOB_EVENT_BARRIER, 1, 2, i, ahead + begin + (i ? 9 : 0) * MS,
			       ahead + begin + 10 * MS);
	}
	waits = find(&job);
	assert_int_equal(waits.hosts_without_clock, 0);
	assert_int_equal(waits.collectives, 2);
	assert_in_range(waits.clock_error_ns, MS, MS + MS / 10);
	assert_int_equal(waits.state_calls[JOB_WAIT_AT_BARRIER], 2);
	assert_in_range(waits.state_ns[JOB_WAIT_AT_BARRIER], 16 * MS, 20 * MS);
	done(&job, &waits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_late_sender_is_named),
		cmocka_unit_test(late_receivers_are_told_from_sends_that_were_gone),
		cmocka_unit_test(a_call_waits_for_the_last_message),
		cmocka_unit_test(collectives_have_their_states),
		cmocka_unit_test(a_collective_without_all_ranks_tells_nothing),
		cmocka_unit_test(missing_and_incomplete_ranks_forbid_conclusions),
		cmocka_unit_test(clocks_are_aligned_by_messages_both_ways),
		cmocka_unit_test(clocks_are_not_aligned_by_messages_one_way),
		cmocka_unit_test(barriers_align_clocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
