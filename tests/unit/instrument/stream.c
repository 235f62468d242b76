/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A chunk of words is given back when it is full, unless the trampoline code that a signal handler
 * interrupted has yet to write into it.
 */
#include "instrument/calls_stream.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "instrument/state.h"
#include "unit/core/spool_test.h"

#define ID 7u

static struct spool_writer writer, *spool = &writer;
static struct background_state background;
static struct instrument_options options;
static struct sampler sampler;
static struct calls_thread_state *calls;
static uint64_t now;

/* With a chunk that has room for `left` more words. */
static void start(const char *directory, uint64_t left)
{
	spool_test_start(spool, directory, 0, false);
	kymo_instrument.spool = spool;
	kymo_instrument.background = &background;
	kymo_instrument.sampler = &sampler;
	kymo_instrument.options = &options;
	spool_refill_ready_chunks(spool, spool->fd);
	calls = &kymo_calls;
	atomic_store(&kymo_process.state, RUNTIME_ACTIVE);
	calls->node = shadow_acquire_node();
	assert_non_null(calls->node);
	calls->top = calls->node->entries + 1;
	now = 1;
	do {
		calls_write_call_word(calls, ID, CALL_WORD_ENTRY, now++);
	} while ((uint64_t)(calls->end - calls->at) > left);
	assert_int_equal(calls->end - calls->at, left);
}

static void finish(void)
{
	struct shadow_stack_node *node = calls->node;

	calls_stream_close_open_record(node, calls->at);
	node->chunk = NULL;
	node->rest = NULL;
	calls->at = calls->end = NULL;
	calls->node = NULL;
	shadow_release_node(node);
	atomic_store(&kymo_process.state, RUNTIME_INACTIVE);
	close(spool->fd);
	spool_unmap_old_run(spool);
}

static uint64_t word(void)
{
	return ID << SPOOL_CALL_ID_SHIFT;
}

static void a_full_chunk_is_given_back(void **state)
{
	start(*state, 0);
	calls->at++; /* as the trampoline code does it */
	calls_write_word_that_had_no_room(calls, word(), true);
	assert_int_equal(spool->retired_chunks.count, 1);
	finish();
}

static void one_that_is_still_to_be_written_to_is_not(void **state)
{
	uint64_t *place;

	start(*state, 10);
	place = calls->at++;
	while (calls->at < calls->end)
		calls_write_call_word(calls, ID, CALL_WORD_ENTRY, now++);
	calls->at++;
	calls_write_word_that_had_no_room(calls, word(), true);
	assert_int_equal(spool->retired_chunks.count, 0);
	assert_true(calls->at - place > 10 || calls->at < place);
	*place = word() | 1ull << SPOOL_CALL_TICK_SHIFT;
	finish();
}

static void nor_one_whose_last_word_is(void **state)
{
	start(*state, 1);
	calls->at++;
	calls->at++;
	calls_write_word_that_had_no_room(calls, word(), true);
	assert_int_equal(spool->retired_chunks.count, 0);
	finish();
}

/* Two words are reserved together, and only one of them has a place. */
static void a_tail_call_waits_for_nobody(void **state)
{
	start(*state, 1);
	calls->at += 2;
	calls_write_call_word(calls, ID, CALL_WORD_ABANDONED, now);
	calls_write_call_word(calls, ID, CALL_WORD_ENTRY, now);
	assert_int_equal(spool->retired_chunks.count, 1);
	finish();
}

/* calls_force_new_records() */
static void a_chunk_that_is_ended_early_is_given_back(void **state)
{
	start(*state, 10);
	calls->end = NULL;
	calls->at++;
	calls_write_word_that_had_no_room(calls, word(), false);
	assert_int_equal(spool->retired_chunks.count, 1);
	finish();
}

/* What a thread left of its chunk may be too little for the next thread: that takes a chunk, and
 * when this is full, another one, and nothing is written behind the first thread's record. */
static void too_little_is_left_for_good(void **state)
{
	struct shadow_stack_node *node;
	uint64_t *rest;

	start(*state, 100);
	node = calls->node;
	calls_stream_close_open_record(node, calls->at);
	calls->at = calls->end = NULL;
	rest = (uint64_t *)(void *)node->rest;
	assert_non_null(rest);
	for (unsigned chunks = 0; chunks < 3; chunks++) {
		spool_refill_ready_chunks(spool, spool->fd);
		do {
			calls_write_call_word(calls, ID, CALL_WORD_ENTRY, now++);
		} while (calls->at < calls->end);
		assert_ptr_equal(calls->end, spool_chunk_get_data(node->chunk) +
						     spool_chunk_get_capacity(node->chunk));
		assert_ptr_equal(node->record, spool_chunk_get_data(node->chunk));
	}
	finish();
}

/* kymo leaves again and again while a thread begins records: each time that it has taken back what
 * the thread had, and the thread has come out of the slow way, the thread has nothing. */
static _Atomic bool is_leaving, is_done;
static _Atomic unsigned rounds;

static void *leave_often(void *unused)
{
	uint64_t *volatile *end = (uint64_t *volatile *)&calls->end;

	for (unsigned i = 0; i < 300; i++) {
		atomic_store(&kymo_process.state, RUNTIME_INACTIVE);
		calls_stream_invalidate_chunks();
		*end = NULL; /* calls_force_new_records() */
		atomic_store(&is_leaving, true);
		while (atomic_load(&is_leaving))
			sched_yield();
		atomic_store(&kymo_process.state, RUNTIME_ACTIVE);
		for (unsigned turns = 0; turns < i % 50; turns++)
			sched_yield();
	}
	atomic_store(&is_done, true);
	return unused;
}

static void no_record_begins_behind_the_end(void **state)
{
	pthread_t thread;

	start(*state, 10);
	assert_int_equal(pthread_create(&thread, NULL, leave_often, NULL), 0);
	while (!atomic_load(&is_done)) {
		spool_refill_ready_chunks(spool, spool->fd);
		calls->end = calls->at; /* the next word needs a record */
		calls->node->retry_ticks = 0;
		calls_write_call_word(calls, ID, CALL_WORD_ENTRY, now++);
		if (!atomic_load(&is_leaving))
			continue;
		calls_write_call_word(calls, ID, CALL_WORD_ENTRY,
				      now++); /* as one that comes late */
		assert_true(calls->at >= calls->end);
		rounds++;
		atomic_store(&is_leaving, false);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(rounds, 300);
	finish();
}

#define TEST(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, test_directory_create, test_directory_remove)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_full_chunk_is_given_back),
		TEST(one_that_is_still_to_be_written_to_is_not),
		TEST(nor_one_whose_last_word_is),
		TEST(a_tail_call_waits_for_nobody),
		TEST(a_chunk_that_is_ended_early_is_given_back),
		TEST(too_little_is_left_for_good),
		TEST(no_record_begins_behind_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
