/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * How real time is divided, given what the kernel says at each look. Times are ms.
 */
#include "unit/core/core_test.h"

#include "core/process/wall_account.h"

#define MS UINT64_C(1000000)

/* A thread, as the kernel would count it. */
struct play {
	struct wall_account account;
	uint64_t now, cpu, blocks;
	struct task_run_queue_counts queue;
};

static struct play begin(void)
{
	struct play play = {.now = 1000 * MS, .cpu = 5 * MS, .blocks = 7};

	play.queue = (struct task_run_queue_counts){3 * MS, 9};
	wall_account_init(&play.account, play.now, play.cpu, false);
	play.account.queue = play.queue;
	play.account.has_queue_counts = true;
	play.account.last_known_block_count = play.blocks;
	play.account.is_block_count_known = true;
	return play;
}

static void runs(struct play *play, uint64_t ms)
{
	play->now += ms * MS;
	play->cpu += ms * MS;
}

/* In the queue, until it arrives on a processor. */
static void queues(struct play *play, uint64_t ms)
{
	play->now += ms * MS;
	play->queue.queued_ns += ms * MS;
	play->queue.arrivals++;
}

static void blocks(struct play *play, uint64_t ms)
{
	play->now += ms * MS;
	play->blocks++;
}

static void look(struct play *play, enum wall_thread_state state)
{
	wall_account_add_elapsed_time(&play->account, play->now, play->cpu);
	if (wall_account_assign_open_time_at_state(&play->account, state, &play->queue))
		wall_account_divide_waits_by_cause(&play->account, &play->blocks);
}

static void expect(const struct play *play, uint64_t blocked, uint64_t woken, uint64_t preempted)
{
	assert_int_equal(play->account.blocked_ns, blocked * MS);
	assert_int_equal(play->account.queued_after_wakeup_ns, woken * MS);
	assert_int_equal(play->account.queued_after_preemption_ns, preempted * MS);
}

static void preempted_time_is_not_blocked(void **state)
{
	struct play play = begin();

	(void)state;
	for (int i = 0; i < 10; i++) {
		runs(&play, 3);
		queues(&play, 6);
		runs(&play, 1);
		look(&play, WALL_STATE_RUNNING);
	}
	expect(&play, 0, 0, 60);
}

static void blocked_time_is_not_preempted(void **state)
{
	struct play play = begin();

	(void)state;
	runs(&play, 1);
	play.blocks++;
	look(&play, WALL_STATE_BLOCKED);
	play.now += 20 * MS;
	look(&play, WALL_STATE_BLOCKED);
	expect(&play, 20, 0, 0);
	play.now += 5 * MS; /* and goes on: then it is woken, and waits for a processor */
	queues(&play, 4);
	runs(&play, 2);
	look(&play, WALL_STATE_RUNNING);
	expect(&play, 25, 4, 0);
}

/* A look that finds the thread in the queue cannot tell yet how long it has been there. */
static void a_wait_under_way_is_open(void **state)
{
	struct play play = begin();

	(void)state;
	runs(&play, 2);
	play.now += 7 * MS; /* in the queue; the kernel has not counted it */
	look(&play, WALL_STATE_QUEUED);
	expect(&play, 0, 0, 0);
	play.now += 3 * MS;
	look(&play, WALL_STATE_QUEUED);
	expect(&play, 0, 0, 0);
	play.queue.queued_ns += 10 * MS;
	play.queue.arrivals++;
	runs(&play, 1);
	look(&play, WALL_STATE_RUNNING);
	expect(&play, 0, 0, 10);
}

/* Blocked and woken between two looks, and in the queue at both: the block is found out all the
 * same. */
static void sleeps_between_looks_in_the_queue(void **state)
{
	struct play play = begin();

	(void)state;
	for (int i = 0; i < 20; i++) {
		runs(&play, 1);
		blocks(&play, 30);
		play.now += 5 * MS; /* woken: waits for a processor, not counted yet */
		look(&play, WALL_STATE_QUEUED);
		play.now += 5 * MS;
		play.queue.queued_ns += 10 * MS;
		play.queue.arrivals++;
	}
	runs(&play, 1);
	look(&play, WALL_STATE_RUNNING);
	expect(&play, 600, 200, 0);
}

static void both_kinds_are_divided_by_number(void **state)
{
	struct play play = begin();

	(void)state;
	runs(&play, 1);
	blocks(&play, 4);
	queues(&play, 6);
	runs(&play, 1);
	queues(&play, 6);
	runs(&play, 1);
	look(&play, WALL_STATE_RUNNING);
	expect(&play, 4, 6, 6);
}

/* Once it is known what each takes, it is divided by that as well. */
static void both_kinds_are_divided_by_length(void **state)
{
	struct play play = begin();

	(void)state;
	for (int i = 0; i < 40; i++) {
		runs(&play, 1);
		queues(&play, 9);
		runs(&play, 1);
		look(&play, WALL_STATE_RUNNING); /* pre-empted alone */
		blocks(&play, 2);
		queues(&play, 1);
		runs(&play, 1);
		look(&play, WALL_STATE_RUNNING); /* woken alone */
	}
	expect(&play, 80, 40, 360);
	blocks(&play, 2);
	queues(&play, 1);
	runs(&play, 1);
	queues(&play, 9);
	runs(&play, 1);
	look(&play, WALL_STATE_RUNNING);
	assert_in_range(play.account.queued_after_wakeup_ns, 40 * MS + MS / 2, 42 * MS);
	assert_int_equal(play.account.blocked_ns, 82 * MS);
}

/* What a hypervisor takes is in no count of the guest's. */
static void stolen_time_is_not_blocked(void **state)
{
	struct play play = begin();

	(void)state;
	runs(&play, 1);
	play.now += 8 * MS;
	runs(&play, 1);
	look(&play, WALL_STATE_RUNNING);
	expect(&play, 0, 0, 8);
}

static void without_counts_the_state_tells(void **state)
{
	struct play play = begin();

	(void)state;
	runs(&play, 1);
	play.now += 4 * MS;
	wall_account_add_elapsed_time(&play.account, play.now, play.cpu);
	wall_account_assign_open_time_at_state(&play.account, WALL_STATE_QUEUED, NULL);
	expect(&play, 0, 0, 4);
	runs(&play, 1);
	play.now += 6 * MS;
	wall_account_add_elapsed_time(&play.account, play.now, play.cpu);
	wall_account_assign_open_time_at_state(&play.account, WALL_STATE_BLOCKED, NULL);
	expect(&play, 6, 0, 4);
}

static void nothing_is_lost(void **state)
{
	static const enum wall_thread_state states[] = {WALL_STATE_RUNNING, WALL_STATE_QUEUED,
							WALL_STATE_BLOCKED};
	struct play play = begin();
	uint64_t start = play.now, cpu = play.cpu, random = 1, rest;
	const struct wall_account *account = &play.account;

	(void)state;
	for (int i = 0; i < 10000; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		runs(&play, random >> 60);
		if (random >> 50 & 1)
			blocks(&play, random >> 40 & 15);
		if (random >> 51 & 1)
			queues(&play, random >> 44 & 15);
		look(&play, states[(random >> 33) % 3]);
	}
	rest = wall_account_assign_open_time_at_end(&play.account,
						    WALL_ACCOUNT_BLOCK_COUNT_UNKNOWN);
	assert_int_equal((int64_t)(account->blocked_ns + account->queued_after_wakeup_ns +
				   account->queued_after_preemption_ns + rest),
			 (int64_t)(play.now - start - (play.cpu - cpu)));
}

static void a_new_thread_begins_in_the_queue(void **state)
{
	struct play play = {.now = 1000 * MS};

	(void)state;
	wall_account_init(&play.account, play.now, 0, true);
	play.queue = (struct task_run_queue_counts){50 * MS, 1}; /* before it began to run */
	runs(&play, 2);
	look(&play, WALL_STATE_RUNNING);
	expect(&play, 0, 0, 0);
	queues(&play, 5);
	runs(&play, 2);
	look(&play, WALL_STATE_RUNNING);
	expect(&play, 0, 0, 5);
}

static void the_end_of_who_did_not_block(void **state)
{
	struct play play = begin();

	(void)state;
	runs(&play, 3);
	look(&play, WALL_STATE_RUNNING);
	play.now += 9 * MS;
	wall_account_add_elapsed_time(&play.account, play.now, play.cpu);
	assert_int_equal(wall_account_assign_open_time_at_end(&play.account, play.blocks), 0);
	expect(&play, 0, 0, 9);
	play.now += 9 * MS;
	wall_account_add_elapsed_time(&play.account, play.now, play.cpu);
	assert_int_equal(wall_account_assign_open_time_at_end(&play.account, play.blocks + 1),
			 9 * MS);
	expect(&play, 0, 0, 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(preempted_time_is_not_blocked),
		cmocka_unit_test(blocked_time_is_not_preempted),
		cmocka_unit_test(a_wait_under_way_is_open),
		cmocka_unit_test(sleeps_between_looks_in_the_queue),
		cmocka_unit_test(both_kinds_are_divided_by_number),
		cmocka_unit_test(both_kinds_are_divided_by_length),
		cmocka_unit_test(stolen_time_is_not_blocked),
		cmocka_unit_test(without_counts_the_state_tells),
		cmocka_unit_test(nothing_is_lost),
		cmocka_unit_test(the_end_of_who_did_not_block),
		cmocka_unit_test(a_new_thread_begins_in_the_queue),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
