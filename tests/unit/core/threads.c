/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The thread registry: ids, lookup by tid, announcements, and blocks that are used again while
 * others look at them.
 */
#include "unit/core/core_test.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "core/threads.h"

#define DEPTH 64

static struct threads threads;

static int set_up(void **state)
{
	(void)state;
	if (threads.slabs)
		threads_reset_in_child(&threads);
	else if (threads_init(&threads, DEPTH))
		return -1;
	return 0;
}

static struct thread *begin(enum thread_origin origin, uint32_t tid)
{
	struct thread *thread = threads_allocate_block(&threads, origin, THREADS_NO_PARENT);

	assert_non_null(thread);
	assert_ptr_equal(threads_bind_own_tid(&threads, thread, tid), thread);
	atomic_store(&thread->state, THREAD_STATE_LIVE);
	return thread;
}

/* What the background thread does with a thread that has ended. */
static void end(struct thread *thread)
{
	atomic_store(&thread->state, THREAD_STATE_ENDED);
	threads_unbind_and_free_one_block(&threads, thread);
}

static void ids_count_in_order_of_creation(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 200; i++) {
		const struct thread *thread = begin(THREAD_ORIGIN_CREATED, 1000 + i);
		assert_int_equal(thread->internal_id, i);
		assert_int_equal(thread->sequential_id, i);
		assert_int_equal(atomic_load(&thread->state), THREAD_STATE_LIVE);
	}
	assert_int_equal(threads.registered_count, 200);
}

static void threads_of_kymo_do_not_shift_the_programs_numbers(void **state)
{
	(void)state;
	assert_int_equal(begin(THREAD_ORIGIN_INTERNAL, 10)->sequential_id,
			 THREADS_SEQUENT_ID_INTERNAL_FIRST);
	assert_int_equal(begin(THREAD_ORIGIN_MAIN, 11)->sequential_id, 0);
	assert_int_equal(begin(THREAD_ORIGIN_INTERNAL, 12)->sequential_id,
			 THREADS_SEQUENT_ID_INTERNAL_FIRST + 1);
	assert_int_equal(begin(THREAD_ORIGIN_CREATED, 13)->sequential_id, 1);
	assert_int_equal(begin(THREAD_ORIGIN_FOUND, 14)->internal_id, 4);
}

static void a_new_block_is_clean(void **state)
{
	struct thread *thread = begin(THREAD_ORIGIN_CREATED, 5), *again;

	(void)state;
	thread->sample_count = thread->cpu_ns = 7;
	thread->perf_event_fd = 3;
	thread->previous_frame_count = 9;
	thread->metrics[0] = 1;
	atomic_store(&thread->is_in_signal_handler, 1);
	end(thread);
	again = threads_allocate_block(&threads, THREAD_ORIGIN_CREATED, 17);
	assert_ptr_equal(again, thread);
	assert_int_equal(again->sample_count + again->cpu_ns + again->previous_frame_count, 0);
	assert_int_equal(again->metrics[0], 0);
	assert_int_equal(again->perf_event_fd, -1);
	assert_int_equal(again->overflow_event_fd, -1);
	assert_int_equal(again->timer, -1);
	assert_int_equal(again->parent, 17);
	assert_int_equal(again->tid, 0);
	assert_int_equal(atomic_load(&again->is_in_signal_handler), 0);
	assert_int_equal(atomic_load(&again->state), THREAD_STATE_NEW);
	assert_null(again->chunk);
}

static void the_frame_buffers_of_blocks_do_not_overlap(void **state)
{
	struct thread *blocks[100];

	(void)state;
	for (uint32_t i = 0; i < LENGTH(blocks); i++) {
		blocks[i] = begin(THREAD_ORIGIN_CREATED, 100 + i);
		memset(blocks[i]->previous_frames, (int)i, DEPTH * sizeof(uint64_t));
		memset(blocks[i]->current_frames, (int)i, DEPTH * sizeof(uint64_t));
	}
	for (uint32_t i = 0; i < LENGTH(blocks); i++) {
		const uint8_t *bytes = (const uint8_t *)blocks[i]->previous_frames;
		assert_int_equal(blocks[i]->tid, 100 + i);
		for (size_t j = 0; j < 2 * DEPTH * sizeof(uint64_t); j++)
			assert_int_equal(bytes[j], i);
	}
}

static void threads_are_found_by_tid_while_they_live(void **state)
{
	struct thread *thread = begin(THREAD_ORIGIN_CREATED, 4242);

	(void)state;
	assert_ptr_equal(threads_find_by_tid(&threads, 4242), thread);
	assert_null(threads_find_by_tid(&threads, 4243));
	assert_null(threads_find_by_tid(&threads, UINT32_MAX));
	end(thread);
	assert_null(threads_find_by_tid(&threads, 4242));
}

/* The thread itself and the background thread that found it both make a block for it. */
static void of_two_blocks_for_one_tid_the_first_counts(void **state)
{
	struct thread *found = threads_allocate_block(&threads, THREAD_ORIGIN_FOUND, 0);
	struct thread *late = threads_allocate_block(&threads, THREAD_ORIGIN_FOUND, 0);
	struct thread *own = threads_allocate_block(&threads, THREAD_ORIGIN_CREATED, 0);

	(void)state;
	assert_true(threads_bind_found_tid(&threads, found, 50));
	assert_ptr_equal(threads_bind_own_tid(&threads, own, 50), found);
	assert_int_equal(atomic_load(&found->state), THREAD_STATE_LIVE);
	threads_free_block(&threads, own);
	assert_ptr_equal(threads_find_by_tid(&threads, 50), found);
	assert_false(threads_bind_found_tid(&threads, late, 50));
	assert_ptr_equal(threads_find_by_tid(&threads, 50), found);
	/* It is the thread's own: the background thread cannot end it. */
	assert_false(threads_end_found_block(found));
}

/* It was found alive, ended without a word, and its tid was given to one that was created later. */
static void what_was_found_before_a_thread_was_created_is_not_it(void **state)
{
	struct thread *found = threads_allocate_block(&threads, THREAD_ORIGIN_FOUND, 0);
	struct thread *own = threads_allocate_block(&threads, THREAD_ORIGIN_CREATED, 0);

	(void)state;
	found->start_ticks = 1000;
	own->start_ticks = 1001;
	assert_true(threads_bind_found_tid(&threads, found, 52));
	assert_ptr_equal(threads_bind_own_tid(&threads, own, 52), own);
	assert_ptr_equal(threads_find_by_tid(&threads, 52), own);
	assert_true(threads_end_found_block(found));
	threads_unbind_and_free_one_block(&threads, found);
	assert_ptr_equal(threads_find_by_tid(&threads, 52), own);
}

/* A thread may end without a word, and its tid be given to the next one at once. */
static void the_block_of_a_thread_of_the_same_tid_is_not_taken_over(void **state)
{
	struct thread *silent = begin(THREAD_ORIGIN_CREATED, 55);
	struct thread *next = begin(THREAD_ORIGIN_CREATED, 55);
	struct thread *found = threads_allocate_block(&threads, THREAD_ORIGIN_FOUND, 0);
	struct thread *last;

	(void)state;
	assert_ptr_not_equal(silent, next);
	assert_ptr_equal(threads_find_by_tid(&threads, 55), next);
	end(next);
	assert_true(threads_bind_found_tid(&threads, found, 55));
	/* The background thread has seen that it is gone before the next one begins. */
	assert_true(threads_end_found_block(found));
	last = begin(THREAD_ORIGIN_CREATED, 55);
	assert_ptr_not_equal(last, found);
	threads_unbind_and_free_one_block(&threads, found);
	assert_ptr_equal(threads_find_by_tid(&threads, 55), last);
}

static void a_tid_can_be_used_again_before_its_last_end_was_seen(void **state)
{
	struct thread *first = begin(THREAD_ORIGIN_CREATED, 60), *second;

	(void)state;
	atomic_store(&first->state, THREAD_STATE_ENDED);
	threads_hand_block_to_background(&threads, first, THREAD_ANNOUNCED_END);
	second = begin(THREAD_ORIGIN_CREATED, 60);
	assert_ptr_not_equal(first, second);
	assert_ptr_equal(threads_find_by_tid(&threads, 60), second);
	threads_unbind_and_free_one_block(&threads,
					  first); /* late: must not take the newer thread away */
	assert_ptr_equal(threads_find_by_tid(&threads, 60), second);
}

static void tids_beyond_the_kernels_maximum_do_no_harm(void **state)
{
	struct thread *thread = begin(THREAD_ORIGIN_CREATED, 1u << 22);

	(void)state;
	assert_null(threads_find_by_tid(&threads, 1u << 22));
	end(thread);
}

static void announcements_are_taken_oldest_first_and_once(void **state)
{
	struct thread *blocks[5], *thread;
	enum thread_announcement_kind what;

	(void)state;
	assert_null(threads_take_announced(&threads));
	for (uint32_t i = 0; i < 5; i++) {
		blocks[i] = begin(THREAD_ORIGIN_CREATED, 70 + i);
		threads_hand_block_to_background(&threads, blocks[i], THREAD_ANNOUNCED_NEW);
	}
	thread = threads_take_announced(&threads);
	for (uint32_t i = 0; i < 5; i++) {
		assert_ptr_equal(thread, blocks[i]);
		thread = threads_get_next_announced(&threads, thread, &what);
		assert_int_equal(what, THREAD_ANNOUNCED_NEW);
	}
	assert_null(thread);
	assert_null(threads_take_announced(&threads));
}

static void a_thread_that_begins_and_ends_between_two_looks_is_on_the_list_once(void **state)
{
	struct thread *thread = begin(THREAD_ORIGIN_CREATED, 80);
	enum thread_announcement_kind what;

	(void)state;
	threads_hand_block_to_background(&threads, thread, THREAD_ANNOUNCED_NEW);
	threads_hand_block_to_background(&threads, thread, THREAD_ANNOUNCED_END);
	assert_ptr_equal(threads_take_announced(&threads), thread);
	assert_null(threads_get_next_announced(&threads, thread, &what));
	assert_int_equal(what, THREAD_ANNOUNCED_END);
	assert_null(threads_take_announced(&threads));
}

static void ten_thousand_threads_live_at_once(void **state)
{
	enum { COUNT = 10000 };
	static struct thread *blocks[COUNT];

	(void)state;
	for (uint32_t i = 0; i < COUNT; i++)
		blocks[i] = begin(THREAD_ORIGIN_CREATED, 20000 + i);
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_ptr_equal(threads_find_by_tid(&threads, 20000 + i), blocks[i]);
		assert_ptr_equal(threads_get_block_at_index(&threads, blocks[i]->index), blocks[i]);
		assert_int_equal(blocks[i]->internal_id, i);
	}
	for (uint32_t i = 0; i < COUNT; i++)
		end(blocks[i]);
}

/* A million threads one after the other take no more memory than one. */
static void blocks_are_used_again(void **state)
{
	uint32_t blocks;

	(void)state;
	end(begin(THREAD_ORIGIN_CREATED, 90));
	blocks = atomic_load(&threads.block_count);
	for (uint32_t i = 0; i < 100000; i++)
		end(begin(THREAD_ORIGIN_CREATED, 91 + i % 1000));
	assert_int_equal(atomic_load(&threads.block_count), blocks);
	assert_int_equal(begin(THREAD_ORIGIN_CREATED, 90)->internal_id, 100001);
}

static void after_a_fork_the_registry_is_empty(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		threads_hand_block_to_background(&threads, begin(THREAD_ORIGIN_CREATED, 30000 + i),
						 THREAD_ANNOUNCED_NEW);
	threads_reset_in_child(&threads);
	assert_null(threads_take_announced(&threads));
	assert_null(threads_find_by_tid(&threads, 30500));
	assert_int_equal(begin(THREAD_ORIGIN_MAIN, 30001)->internal_id, 0);
}

/* ---- many at once ---- */

enum { WORKERS = 12, LIVES = 4000, TIDS = 64 };

static _Atomic uint32_t workers_left;
static _Atomic uint64_t begun, ended_seen;

/* Lives one short thread after another; tids come back soon, in other workers too. */
static void *live(void *argument)
{
	uint32_t tid = 40000 + (uint32_t)(uintptr_t)argument * TIDS;

	for (uint32_t i = 0; i < LIVES; i++) {
		struct thread *thread = threads_allocate_block(&threads, THREAD_ORIGIN_CREATED,
							       (uint32_t)(uintptr_t)argument);
		uint32_t own = tid + i % TIDS;
		if (!thread || threads_bind_own_tid(&threads, thread, own) != thread)
			break; /* counted as missing below */
		atomic_store_explicit(&thread->state, THREAD_STATE_LIVE, memory_order_release);
		threads_hand_block_to_background(&threads, thread, THREAD_ANNOUNCED_NEW);
		if (threads_find_by_tid(&threads, own) != thread)
			break;
		thread->sample_count = own; /* nobody else may write here */
		for (uint32_t j = 0; j < DEPTH; j += 16)
			thread->current_frames[j] = own;
		if (thread->sample_count != own || thread->current_frames[16] != own ||
		    thread->tid != own)
			break;
		thread->end_ticks = own;
		atomic_store_explicit(&thread->state, THREAD_STATE_ENDED, memory_order_release);
		threads_hand_block_to_background(&threads, thread, THREAD_ANNOUNCED_END);
		atomic_fetch_add(&begun, 1);
	}
	atomic_fetch_sub(&workers_left, 1);
	return NULL;
}

/* Looks up tids as handlers and other threads' binds do. */
static void *look(void *argument)
{
	uint64_t found = 0;

	(void)argument;
	while (atomic_load(&workers_left)) {
		for (uint32_t i = 0; i < WORKERS * TIDS; i++) {
			struct thread *thread = threads_find_by_tid(&threads, 40000 + i);
			found += thread && atomic_load(&thread->state) == THREAD_STATE_LIVE;
		}
		sched_yield();
	}
	return (void *)(uintptr_t)found;
}

static void work_off(void)
{
	struct thread *thread = threads_take_announced(&threads), *next;
	enum thread_announcement_kind what;

	for (; thread; thread = next) {
		next = threads_get_next_announced(&threads, thread, &what);
		if (what != THREAD_ANNOUNCED_END)
			continue;
		assert_int_equal(atomic_load(&thread->state), THREAD_STATE_ENDED);
		assert_int_equal(thread->end_ticks, thread->tid);
		threads_unbind_and_free_one_block(&threads, thread);
		ended_seen++;
	}
}

static void churn_of_many_threads_loses_none(void **state)
{
	pthread_t workers[WORKERS], looker;

	(void)state;
	begun = ended_seen = 0;
	workers_left = WORKERS;
	assert_int_equal(pthread_create(&looker, NULL, look, NULL), 0);
	for (uintptr_t i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&workers[i], NULL, live, (void *)i), 0);
	while (atomic_load(&workers_left)) {
		work_off();
		sched_yield();
	}
	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers[i], NULL);
	pthread_join(looker, NULL);
	work_off();
	assert_int_equal(begun, WORKERS * LIVES);
	assert_int_equal(ended_seen, WORKERS * LIVES);
	assert_int_equal(threads.registered_count, WORKERS * LIVES);
	for (uint32_t i = 0; i < WORKERS * TIDS; i++)
		assert_null(threads_find_by_tid(&threads, 40000 + i));
}

/* Both sides of a new thread race to bind it: one block counts for both. */
static struct thread *bound[2];
static pthread_barrier_t barrier;

static void *bind_same(void *argument)
{
	uintptr_t side = (uintptr_t)argument;

	for (uint32_t i = 0; i < 2000; i++) {
		struct thread *thread = threads_allocate_block(
			&threads, side ? THREAD_ORIGIN_FOUND : THREAD_ORIGIN_CREATED, 0);
		pthread_barrier_wait(&barrier);
		if (!side)
			bound[side] = threads_bind_own_tid(&threads, thread, 50000 + i);
		else
			bound[side] = threads_bind_found_tid(&threads, thread, 50000 + i)
					      ? thread
					      : threads_find_by_tid(&threads, 50000 + i);
		if (bound[side] != thread)
			threads_free_block(&threads, thread);
		pthread_barrier_wait(&barrier);
		if (bound[0] != bound[1])
			return (void *)1;
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

/* The thread takes the found block over, or the background thread ends it: not both. */
static void *take_over_or_end(void *argument)
{
	uintptr_t side = (uintptr_t)argument;

	for (uint32_t i = 0; i < 2000; i++) {
		static struct thread *found;
		static bool ended;
		struct thread *own;

		if (side) {
			found = threads_allocate_block(&threads, THREAD_ORIGIN_FOUND, 0);
			if (!found || !threads_bind_found_tid(&threads, found, 60000 + i))
				return (void *)1;
		}
		pthread_barrier_wait(&barrier);
		if (side) {
			ended = threads_end_found_block(found);
			pthread_barrier_wait(&barrier);
			pthread_barrier_wait(&barrier);
			continue;
		}
		own = threads_allocate_block(&threads, THREAD_ORIGIN_CREATED, 0);
		if (threads_bind_own_tid(&threads, own, 60000 + i) != own)
			own = NULL;
		pthread_barrier_wait(&barrier);
		if ((own != NULL) != ended)
			return (void *)1;
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void run_both_sides(void *(*side)(void *))
{
	pthread_t sides[2];
	void *result;

	pthread_barrier_init(&barrier, NULL, 2);
	for (uintptr_t i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&sides[i], NULL, side, (void *)i), 0);
	for (int i = 0; i < 2; i++) {
		pthread_join(sides[i], &result);
		assert_null(result);
	}
	pthread_barrier_destroy(&barrier);
}

static void a_found_block_is_taken_over_or_ended(void **state)
{
	(void)state;
	run_both_sides(take_over_or_end);
}

static void a_race_for_a_tid_has_one_winner(void **state)
{
	(void)state;
	run_both_sides(bind_same);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

/* Those that are forgotten meanwhile come all the same. */
static void comings_are_counted(void **state)
{
	(void)state;
	threads_note_creation_begin(&threads);
	threads_note_creation_begin(&threads);
	threads_note_creation_end(&threads);
	assert_int_equal(threads.not_yet_running_count, 1);
	threads_note_creation_end(&threads);
	threads_note_creation_end(&threads);
	assert_int_equal(threads.not_yet_running_count, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(ids_count_in_order_of_creation),
		TEST(threads_of_kymo_do_not_shift_the_programs_numbers),
		TEST(a_new_block_is_clean),
		TEST(the_frame_buffers_of_blocks_do_not_overlap),
		TEST(threads_are_found_by_tid_while_they_live),
		TEST(of_two_blocks_for_one_tid_the_first_counts),
		TEST(a_tid_can_be_used_again_before_its_last_end_was_seen),
		TEST(tids_beyond_the_kernels_maximum_do_no_harm),
		TEST(announcements_are_taken_oldest_first_and_once),
		TEST(a_thread_that_begins_and_ends_between_two_looks_is_on_the_list_once),
		TEST(ten_thousand_threads_live_at_once),
		TEST(blocks_are_used_again),
		TEST(after_a_fork_the_registry_is_empty),
		TEST(churn_of_many_threads_loses_none),
		TEST(a_race_for_a_tid_has_one_winner),
		TEST(a_found_block_is_taken_over_or_ended),
		TEST(what_was_found_before_a_thread_was_created_is_not_it),
		TEST(the_block_of_a_thread_of_the_same_tid_is_not_taken_over),
		TEST(comings_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
