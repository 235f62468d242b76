/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * No return address of a call that is open is ever lost, whatever stacks a thread changes between;
 * and what was left without returning is ended.
 *
 * There are no arenas here, so the way back into every stub is address 0: a call is open as long as
 * its slot holds 0.
 */
#include "instrument/shadow.h"
#include "instrument/calls.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "../assert_at.h"
#include "core/runtime.h"
#include "kymo/plan.h"

#define WORDS 65536u

static uint64_t stacks[2 * WORDS], *other_stack, *own_stack;
static struct thread thread;
static unsigned ended;

static void note_end(const struct shadow_entry *entry)
{
	(void)entry;
	ended++;
}

static uint64_t address(const uint64_t *slot)
{
	return (uint64_t)(uintptr_t)slot;
}

/* As calls.c does it, from what is on the slot on. */
static void enter(uint64_t *slot)
{
	struct calls_thread_state *calls = &kymo_calls;

	if (!calls->node) {
		calls->node = shadow_acquire_node();
		assert_non_null(calls->node);
		calls->top = calls->node->entries + 1;
	}
	if (calls->top[-1].slot <= address(slot))
		shadow_end_stale_entries(calls, address(slot), note_end);
	*calls->top++ = (struct shadow_entry){
		.return_address = address(slot) + 1, .slot = address(slot), .id = PLAN_ID_MAX};
	*slot = 0;
}

static void leave(uint64_t *slot)
{
	struct shadow_entry entry;

	assert_true(shadow_pop_entry(&kymo_calls, address(slot), PLAN_ID_MAX, &entry, note_end));
	assert_int_equal(entry.return_address, address(slot) + 1);
	assert_int_equal(entry.slot, address(slot));
	assert_int_equal(entry.flags & ~(uint32_t)SHADOW_FLAG_REUSED, 0);
	*slot = 1;
}

static void end_thread(void)
{
	struct shadow_stack_node *node = kymo_calls.node;

	kymo_calls.node = NULL;
	shadow_release_node(node);
}

static int set_up(void **state)
{
	(void)state;
	memset(stacks, 0xff, sizeof(stacks));
	thread.stack_bounds =
		(struct unwind_stack_bounds){address(own_stack), address(own_stack + WORDS)};
	kymo_thread = &thread;
	ended = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (kymo_calls.node)
		end_thread();
	kymo_thread = NULL;
	return 0;
}

static void nested_calls_return(void **state)
{
	(void)state;
	for (unsigned i = 1; i < 1000; i++)
		enter(&own_stack[WORDS - i]);
	for (unsigned i = 999; i; i--)
		leave(&own_stack[WORDS - i]);
	assert_int_equal(ended, 0);
	assert_ptr_equal(kymo_calls.top, kymo_calls.node->entries + 1);
}

/* Whoever changes it there changes where the call returns to. */
static void return_addresses_have_a_place(void **state)
{
	uint64_t *slot = &own_stack[WORDS - 1];
	struct shadow_entry entry;

	(void)state;
	assert_ptr_equal(shadow_find_return_address_slot(address(slot)), slot);
	enter(slot);
	enter(slot - 1);
	assert_int_equal(*shadow_find_return_address_slot(address(slot)), address(slot) + 1);
	*shadow_find_return_address_slot(address(slot)) = 77;
	leave(slot - 1);
	assert_true(shadow_pop_entry(&kymo_calls, address(slot), PLAN_ID_MAX, &entry, note_end));
	assert_int_equal(entry.return_address, 77);
	*slot = 1;
	assert_ptr_equal(shadow_find_return_address_slot(address(slot)), slot);
}

/* The background thread works a thread's end off when another one may have its node, and has not
 * said yet who it is. */
static void the_next_thread_keeps_its_node(void **state)
{
	(void)state;
	enter(&own_stack[WORDS - 1]);
	kymo_calls.node->internal_thread_id = 7;
	leave(&own_stack[WORDS - 1]);
	end_thread();
	kymo_calls.node = shadow_acquire_node();
	calls_release_gone_thread(7);
	assert_ptr_equal(atomic_load(&kymo_calls.node->calls), &kymo_calls);
}

/* longjmp to the outermost, again and again */
static void calls_that_were_left_end(void **state)
{
	(void)state;
	enter(&own_stack[WORDS - 1]);
	for (unsigned round = 0; round < 1000; round++) {
		for (unsigned i = 2; i < 52; i++)
			enter(&own_stack[WORDS - i]);
	}
	assert_int_equal(ended, 999 * 50);
	leave(&own_stack[WORDS - 1]);
	assert_int_equal(ended, 1000 * 50);
	assert_ptr_equal(kymo_calls.top, kymo_calls.node->entries + 1);
}

/* By siglongjmp, out of a handler that ran on an alternate stack: its slots hold what they did. */
static void handlers_that_were_left_end(void **state)
{
	uint64_t *out = &own_stack[WORDS - 1], *in = &own_stack[WORDS - 9];
	stack_t stack = {.ss_sp = other_stack, .ss_size = WORDS * sizeof(*other_stack)};
	stack_t off = {.ss_flags = SS_DISABLE};

	(void)state;
	enter(out);
	for (unsigned round = 1; round < 100; round++) {
		assert_int_equal(sigaltstack(&off, NULL), 0); /* as while it runs there */
		enter(in);
		enter(&other_stack[9]);
		enter(&other_stack[5]);
		assert_int_equal(sigaltstack(&stack, NULL), 0);
		kymo_calls.node->return_under_others_count = 0; /* the next one asks */
		if (round % 2 && other_stack < own_stack) {
			enter(&in[1]); /* called next, further out than all of them */
			leave(&in[1]);
		} else {
			leave(out); /* or who called returns */
			enter(out);
		}
		assert_int_equal(ended, 3 * round);
		assert_ptr_equal(kymo_calls.top, kymo_calls.node->entries + 2);
	}
	/* Should it only have changed to another stack, it returns all the same. */
	leave(&other_stack[5]);
	leave(out);
	assert_int_equal(sigaltstack(&off, NULL), 0);
}

/* Of one size, on the thread's own stack: open calls lie at the same distances. */
static void carved_coroutines_go_on(void **state)
{
	const unsigned size = 512, count = WORDS / size;

	(void)state;
	for (unsigned i = 0; i < count; i++)
		for (unsigned depth = 1; depth < 20; depth++)
			enter(&own_stack[(i + 1) * size - depth]);
	for (unsigned i = 0; i < count; i++)
		for (unsigned depth = 19; depth; depth--)
			leave(&own_stack[(i + 1) * size - depth]);
}

/* More of them than there is room for calls that seem to have been left; and what was really left
 * in the meantime. */
static void coroutines_outlive_any_number(void **state)
{
	(void)state;
	for (unsigned i = 0; i < WORDS / 2; i++)
		enter(&own_stack[i]);
	for (unsigned round = 0; round < 10; round++) {
		for (unsigned i = 1; i < 5000; i++) {
			enter(&own_stack[WORDS - i]);
			own_stack[WORDS - i] = round;
		}
	}
	for (unsigned i = 0; i < WORDS / 2; i++)
		leave(&own_stack[WORDS / 2 - 1 - i]);
}

/* The newest of a slot's is the one that is open, whether the coroutine that ran when the older one
 * was left is at an end or not. */
static void check_newest(bool coroutine_ends)
{
	struct shadow_entry entry;

	enter(&own_stack[100]);
	enter(&other_stack[10]);
	kymo_calls.top[-2].return_address = 7; /* left, and its slot is in use again */
	enter(&own_stack[50]);
	kymo_calls.top[-1].slot = address(&own_stack[100]);
	own_stack[100] = 0;
	if (coroutine_ends)
		other_stack[10] = 1;
	enter(&own_stack[200]);
	assert_true(shadow_pop_entry(&kymo_calls, address(&own_stack[100]), PLAN_ID_MAX, &entry,
				     note_end));
	assert_int_equal(entry.return_address, address(&own_stack[50]) + 1);
	leave(&own_stack[200]);
	if (!coroutine_ends)
		leave(&other_stack[10]);
}

static void newest_counts(void **state)
{
	(void)state;
	check_newest(true);
	check_newest(false);
}

/* As above, but the call that returns is one in the middle. */
static void newest_counts_in_the_middle(void **state)
{
	struct shadow_entry entry;

	(void)state;
	enter(&own_stack[300]);
	enter(&own_stack[100]);
	kymo_calls.top[-1].return_address = 7;
	enter(&other_stack[10]);
	enter(&own_stack[50]);
	kymo_calls.top[-1].slot = address(&own_stack[100]);
	own_stack[100] = 0;
	leave(&own_stack[300]);
	assert_true(shadow_pop_entry(&kymo_calls, address(&own_stack[100]), PLAN_ID_MAX, &entry,
				     note_end));
	assert_int_equal(entry.return_address, address(&own_stack[50]) + 1);
	leave(&other_stack[10]);
}

/* A coroutine came from another thread, to where this one has left calls of another function. */
static void *enter_and_stay(void *barrier)
{
	struct thread other = {.stack_bounds = {1, 2}};

	kymo_thread = &other;
	enter(&other_stack[100]);
	pthread_barrier_wait(barrier);
	pthread_barrier_wait(barrier);
	end_thread();
	return NULL;
}

static void the_function_counts(void **state)
{
	pthread_barrier_t barrier;
	pthread_t other;

	(void)state;
	enter(&other_stack[100]);
	kymo_calls.top[-1].return_address = 7;
	kymo_calls.top[-1].id = 1;
	pthread_barrier_init(&barrier, NULL, 2);
	assert_int_equal(pthread_create(&other, NULL, enter_and_stay, &barrier), 0);
	pthread_barrier_wait(&barrier);
	leave(&other_stack[100]);
	pthread_barrier_wait(&barrier);
	pthread_join(other, NULL);
	pthread_barrier_destroy(&barrier);
}

/* Left twice at the same slot, and then it returns: as where stacks are copied. */
static void slots_that_were_reused_are_told(void **state)
{
	struct shadow_entry entry;

	(void)state;
	for (uint32_t times = 1; times <= 2; times++) {
		enter(&own_stack[700]);
		for (uint32_t i = 0; i < times; i++) {
			enter(&own_stack[500]);
			enter(&own_stack[600]); /* further out */
			leave(&own_stack[600]);
		}
		assert_true(shadow_pop_entry(&kymo_calls, address(&own_stack[500]), PLAN_ID_MAX,
					     &entry, note_end));
		assert_int_equal(entry.flags, times == 1 ? 0 : SHADOW_FLAG_REUSED);
		leave(&own_stack[700]);
	}
}

/* A call that returned returns again: there is one address that it can go to, or none is known. */
static void calls_that_return_twice(void **state)
{
	uint64_t got;

	(void)state;
	enter(&own_stack[700]);
	for (struct shadow_entry *entry = kymo_calls.top; entry->return_address; entry++)
		*entry = (struct shadow_entry){0}; /* of other tests */
	enter(&own_stack[500]);
	leave(&own_stack[500]);
	assert_true(shadow_find_return_address_of_returned_call(&kymo_calls, PLAN_ID_MAX, &got));
	assert_int_equal(got, address(&own_stack[500]) + 1);
	assert_false(
		shadow_find_return_address_of_returned_call(&kymo_calls, PLAN_ID_MAX - 1, &got));
	enter(&own_stack[500]);
	enter(&own_stack[400]);
	leave(&own_stack[400]);
	leave(&own_stack[500]);
	assert_false(shadow_find_return_address_of_returned_call(&kymo_calls, PLAN_ID_MAX, &got));
	leave(&own_stack[700]);
}

static void other_stacks_are_kept(void **state)
{
	(void)state;
	enter(&own_stack[100]);
	enter(&other_stack[10]);
	enter(&own_stack[90]);
	enter(&other_stack[50]);
	leave(&own_stack[90]);
	enter(&other_stack[100]);
	leave(&other_stack[50]);
	leave(&other_stack[100]);
	leave(&other_stack[10]);
	leave(&own_stack[100]);
	assert_int_equal(ended, 0);
}

static void *begin_and_end(void *nothing)
{
	struct thread other = {.stack_bounds = {1, 2}};

	(void)nothing;
	kymo_thread = &other;
	for (unsigned i = 1; i < 10; i++)
		enter(&other_stack[WORDS - i]);
	end_thread();
	return NULL;
}

/* A coroutine goes on on another thread when the one that began it has ended. */
static void coroutines_outlive_threads(void **state)
{
	pthread_t other;

	(void)state;
	for (unsigned round = 0; round < 3; round++) {
		assert_int_equal(pthread_create(&other, NULL, begin_and_end, NULL), 0);
		pthread_join(other, NULL);
		enter(&own_stack[10]);
		assert_int_equal(shadow_find_return_address(address(&other_stack[WORDS - 5])),
				 address(&other_stack[WORDS - 5]) + 1);
		for (unsigned i = 9; i; i--)
			leave(&other_stack[WORDS - i]);
		leave(&own_stack[10]);
		assert_null(shadow_find_return_address(address(&other_stack[WORDS - 5])));
	}
}

static size_t listed(void)
{
	return (size_t)(kymo_calls.top - kymo_calls.node->entries);
}

/* Each has a call open that it returns from only when all the others have begun new ones: what is
 * taken out is never on top. */
static void coroutines_in_turns_need_no_more_room(void **state)
{
	const unsigned size = 512, count = WORDS / size;

	(void)state;
	enter(&own_stack[WORDS - 1]);
	for (unsigned i = 1; i <= count; i++)
		enter(&other_stack[i * size - 10]);
	for (unsigned round = 1; round < 3000; round++) {
		for (unsigned i = 1; i <= count; i++) {
			leave(&other_stack[i * size - 10 + (round - 1) % 5]);
			enter(&other_stack[i * size - 10 + round % 5]);
			assert_true(listed() <= 2 * (count + 2) + 64);
		}
	}
	for (unsigned i = 1; i <= count; i++)
		leave(&other_stack[i * size - 10 + 2999 % 5]);
	leave(&own_stack[WORDS - 1]);
	assert_int_equal(ended, 0);
	assert_ptr_equal(kymo_calls.top, kymo_calls.node->entries + 1);
}

/* Stacks that are given up with calls open, while others come: they are ended in time, and only
 * they. */
static void coroutines_that_are_given_up_end(void **state)
{
	const unsigned size = 16, count = WORDS / size, kept = 20;

	(void)state;
	for (unsigned i = 1; i <= kept; i++)
		enter(&other_stack[i * size - 1]);
	for (unsigned round = 0; round < 30; round++) {
		for (unsigned i = kept + 1; i <= count; i++) {
			enter(&other_stack[i * size - 1]);
			enter(&other_stack[i * size - 2]);
			leave(&other_stack[(i + round) % kept * size + size - 1]);
			enter(&other_stack[(i + round) % kept * size + size - 1]);
			other_stack[i * size - 1] = other_stack[i * size - 2] = 1; /* freed */
			assert_true(listed() < 8 * kept + 4 * 64 + 64);
		}
	}
	for (unsigned i = 1; i <= kept; i++)
		leave(&other_stack[i * size - 1]);
	assert_true(ended > 29 * (count - kept));
	assert_true(ended <= 2 * 30 * (count - kept));
}

/* Two threads that each go on with the coroutines that the other one left, while they close up
 * their lists. */
enum { HANDED = 64, TURNS = 4000 };
static _Atomic unsigned turn_of[HANDED];

static void *take_turns(void *number)
{
	struct thread self = {.stack_bounds = {1, 2}};
	unsigned which = number != NULL, from = which * WORDS / 2;

	kymo_thread = &self;
	for (unsigned i = 0; i < HANDED; i++) {
		if (i % 2 == which) {
			enter(&stacks[i * 64 + 63]);
			atomic_store(&turn_of[i], 1);
		}
	}
	for (unsigned turn = 1; turn < TURNS; turn++) {
		for (unsigned i = 0; i < HANDED; i++) {
			uint64_t *slot = &stacks[i * 64 + 63];

			if ((turn + i) % 2 != which)
				continue;
			while (atomic_load(&turn_of[i]) != turn)
				sched_yield();
			enter(&stacks[WORDS + from + 1]);
			leave(slot - (turn - 1) % 3);
			enter(slot - turn % 3);
			leave(&stacks[WORDS + from + 1]);
			atomic_store(&turn_of[i], turn + 1);
		}
	}
	end_thread();
	return NULL;
}

static void coroutines_change_threads(void **state)
{
	pthread_t threads[2];

	(void)state;
	memset(turn_of, 0, sizeof(turn_of));
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal_at(
			i, pthread_create(&threads[i], NULL, take_turns, i ? stacks : NULL), 0);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < HANDED; i++)
		leave(&stacks[i * 64 + 63] - (TURNS - 1) % 3);
}

/* As a coroutine's does from where the first thread's is. */
static int other_lies_further_in(void **state)
{
	(void)state;
	other_stack = stacks;
	own_stack = stacks + WORDS;
	return 0;
}

/* As it may from where another thread's is. */
static int other_lies_further_out(void **state)
{
	(void)state;
	own_stack = stacks;
	other_stack = stacks + WORDS;
	return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(nested_calls_return),
		TEST(return_addresses_have_a_place),
		TEST(the_next_thread_keeps_its_node),
		TEST(calls_that_were_left_end),
		TEST(handlers_that_were_left_end),
		TEST(carved_coroutines_go_on),
		TEST(coroutines_outlive_any_number),
		TEST(newest_counts),
		TEST(newest_counts_in_the_middle),
		TEST(the_function_counts),
		TEST(slots_that_were_reused_are_told),
		TEST(calls_that_return_twice),
		TEST(other_stacks_are_kept),
		TEST(coroutines_outlive_threads),
		TEST(coroutines_in_turns_need_no_more_room),
		TEST(coroutines_that_are_given_up_end),
		TEST(coroutines_change_threads),
	};

	return cmocka_run_group_tests(tests, other_lies_further_in, NULL) +
	       cmocka_run_group_tests(tests, other_lies_further_out, NULL);
}
