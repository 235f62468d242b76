/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A chunk of words is given back when it is full, unless the gate code that a signal handler
 * interrupted has yet to write into it.
 */
#include "instrument/calls_stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/core/spool_test.h"

#define ID 7u

static struct spool_writer *spool = &kymo_runtime.spool;
static struct calls_thread *calls;
static uint64_t now;

/* With a chunk that has room for `left` more words. */
static void start(const char *directory, uint64_t left)
{
	spool_test_start(spool, directory, 0, false);
	spool_refill(spool, spool->fd);
	calls = &kymo_calls;
	calls->node = shadow_take();
	assert_non_null(calls->node);
	calls->top = calls->node->entries + 1;
	now = 1;
	do {
		calls_write(calls, ID, CALL_ENTRY, now++);
	} while ((uint64_t)(calls->end - calls->at) > left);
	assert_int_equal(calls->end - calls->at, left);
}

static void finish(void)
{
	struct shadow_node *node = calls->node;

	calls_stream_end(node, calls->at);
	node->chunk = NULL;
	node->rest = NULL;
	calls->at = calls->end = NULL;
	calls->node = NULL;
	shadow_release(node);
	close(spool->fd);
	spool_abandon(spool);
}

static uint64_t word(void)
{
	return ID << SPOOL_CALL_ID_SHIFT;
}

static void a_full_chunk_is_given_back(void **state)
{
	start(*state, 0);
	calls->at++; /* as the gate code does it */
	calls_write_word(calls, word(), true);
	assert_int_equal(spool->retired.count, 1);
	finish();
}

static void one_that_is_still_to_be_written_to_is_not(void **state)
{
	uint64_t *place;

	start(*state, 10);
	place = calls->at++;
	while (calls->at < calls->end)
		calls_write(calls, ID, CALL_ENTRY, now++);
	calls->at++;
	calls_write_word(calls, word(), true);
	assert_int_equal(spool->retired.count, 0);
	assert_true(calls->at - place > 10 || calls->at < place);
	*place = word() | 1ull << SPOOL_CALL_TICK_SHIFT;
	finish();
}

static void nor_one_whose_last_word_is(void **state)
{
	start(*state, 1);
	calls->at++;
	calls->at++;
	calls_write_word(calls, word(), true);
	assert_int_equal(spool->retired.count, 0);
	finish();
}

/* Two words are reserved together, and only one of them has a place. */
static void a_tail_call_waits_for_nobody(void **state)
{
	start(*state, 1);
	calls->at += 2;
	calls_write(calls, ID, CALL_LEFT, now);
	calls_write(calls, ID, CALL_ENTRY, now);
	assert_int_equal(spool->retired.count, 1);
	finish();
}

/* calls_poke() */
static void a_chunk_that_is_ended_early_is_given_back(void **state)
{
	start(*state, 10);
	calls->end = NULL;
	calls->at++;
	calls_write_word(calls, word(), false);
	assert_int_equal(spool->retired.count, 1);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
