/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Who waits for an event that the program has yet to set: through any number of commands, and no
 * longer once it is set; bits and addresses that are used again; more than there is room for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/opencl/user_events.h"

static cl_event event(uintptr_t number)
{
	return (cl_event)(0x10000 + number * 64); // NOLINT: only a key
}

static cl_command_queue queue(uintptr_t number)
{
	return (cl_command_queue)(0x90000000 + number * 64); // NOLINT: only a key
}

static void enqueue(uintptr_t where, const cl_event *waits_for, cl_event made)
{
	user_events_add_queue_waits(queue(where), waits_for != NULL, waits_for);
	if (made != NULL)
		user_events_copy_queue_waits_to_event(queue(where), made);
}

static int forget_all(void **state)
{
	(void)state;
	user_events_reset_forked();
	return 0;
}

static void a_chain(void **state)
{
	const cl_event go = event(1);
	cl_event before = go;

	(void)state;
	user_events_add(go);
	for (uintptr_t i = 0; i < 20; i++) {
		enqueue(i, &before, event(100 + i));
		before = event(100 + i);
	}
	assert_true(user_events_would_block_kernel(queue(0), 1));
	assert_true(user_events_would_block_kernel(queue(19), 1));
	assert_false(user_events_would_block_kernel(queue(20), 1));
	/* What is in flight is in everybody's way on its device. */
	user_events_add_queue_waits_to_device(queue(19), 2);
	assert_true(user_events_would_block_kernel(queue(20), 2));
	assert_false(user_events_would_block_kernel(queue(20), 3));
	user_events_remove(go);
	assert_false(user_events_are_pending());
	assert_false(user_events_would_block_kernel(queue(19), 2));
}

static void bits_are_used_again(void **state)
{
	const cl_event first = event(1), second = event(2);

	(void)state;
	user_events_add(first);
	enqueue(1, &first, event(100));
	user_events_remove(first);
	user_events_add(second);
	/* Waits for the first one, which has been set. */
	assert_false(user_events_would_block_kernel(queue(1), 1));
	enqueue(2, &(cl_event){event(100)}, NULL);
	assert_false(user_events_would_block_kernel(queue(2), 1));
	enqueue(1, &second, NULL);
	assert_true(user_events_would_block_kernel(queue(1), 1));
}

/* Released without having been set; then a command, and another user event, have its address. */
static void addresses_are_used_again(void **state)
{
	const cl_event lost = event(1);

	(void)state;
	user_events_add(lost);
	user_events_add(event(2));
	enqueue(1, NULL, lost);
	enqueue(2, &lost, NULL);
	assert_false(user_events_would_block_kernel(queue(2), 1));
	user_events_add(lost);
	user_events_add(lost);
	enqueue(2, &lost, NULL);
	assert_true(user_events_would_block_kernel(queue(2), 1));
	user_events_remove(lost);
	assert_false(user_events_would_block_kernel(queue(2), 1));
	user_events_remove(event(2));
	assert_false(user_events_are_pending());
}

static void more_events_than_bits(void **state)
{
	enum { MANY = USER_EVENTS_TRACKED_MAX + 50 };

	(void)state;
	for (uintptr_t i = 0; i < MANY; i++)
		user_events_add(event(i));
	enqueue(1, &(cl_event){event(3)}, NULL);
	enqueue(2, &(cl_event){event(MANY - 1)}, NULL);
	user_events_remove(event(3));
	assert_false(user_events_would_block_kernel(queue(1), 1));
	assert_true(user_events_would_block_kernel(queue(2), 1));
	for (uintptr_t i = 0; i < MANY; i++)
		user_events_remove(event(i));
	assert_false(user_events_are_pending());
	assert_false(user_events_would_block_kernel(queue(2), 1));
}

/* What has no place is taken for everything, and that has an end. */
static void more_commands_than_places(void **state)
{
	const cl_event go = event(1), later = event(2);

	(void)state;
	user_events_add(go);
	for (uintptr_t i = 0; i < 20000; i++)
		enqueue(1, &go, event(100 + i));
	for (uintptr_t i = 0; i < 20000; i++) {
		enqueue(2, &(cl_event){event(100 + i)}, NULL);
		assert_true(user_events_would_block_kernel(queue(2), 1));
	}
	user_events_remove(go);
	user_events_add(later);
	assert_false(user_events_would_block_kernel(queue(2), 1));
	enqueue(3, &later, NULL);
	assert_true(user_events_would_block_kernel(queue(3), 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_chain, forget_all),
		cmocka_unit_test_setup(bits_are_used_again, forget_all),
		cmocka_unit_test_setup(addresses_are_used_again, forget_all),
		cmocka_unit_test_setup(more_events_than_bits, forget_all),
		cmocka_unit_test_setup(more_commands_than_places, forget_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
