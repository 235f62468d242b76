/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Who takes part: processes that were told of a control file they understand, and their children.
 */
#include "fake.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[] = "/tmp/kymo-causal-XXXXXX";
static char variable[64], file[64];

static int make_directory(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(variable, sizeof(variable), "KYMO_CAUSAL=%s", directory);
	snprintf(file, sizeof(file), "%s/control", directory);
	return 0;
}

static int remove_directory(void **state)
{
	(void)state;
	unlink(file);
	return rmdir(directory);
}

static struct causal_control header;
#define SIZE ((off_t)sizeof(header))

static void make_header_good(void)
{
	header.magic = CAUSAL_MAGIC;
	header.version = CAUSAL_VERSION;
	header.size_of_header = sizeof(header);
	header.ticks_per_second = 1000000000;
	header.ticks_are_ns = kymo_ticks_are_ns;
}

static struct causal_control *start_with_file(off_t size)
{
	char *environment[] = {"A=b", variable, NULL};
	int fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, &header, 4096), 4096);
	assert_int_equal(ftruncate(fd, size), 0);
	close(fd);
	atomic_store(&kymo_causal, NULL);
	kymo_runtime.environment = environment;
	causal_join_session_if_requested(&kymo_runtime);
	return atomic_load(&kymo_causal);
}

static bool starts_with_file(off_t size)
{
	struct causal_control *control = start_with_file(size);

	if (control)
		assert_int_equal(control->processes, 1);
	causal_hook_table.on_detach_process();
	assert_false(causal_is_active());
	return control;
}

static void test_control_files(void **state)
{
	(void)state;
	make_header_good();
	assert_true(starts_with_file(SIZE));
	assert_false(starts_with_file(SIZE - 1));
	header.version++;
	assert_false(starts_with_file(SIZE));
	make_header_good();
	header.magic++;
	assert_false(starts_with_file(SIZE));
	make_header_good();
	header.size_of_header--;
	assert_false(starts_with_file(SIZE));
	make_header_good();
	header.ticks_per_second = 0;
	assert_false(starts_with_file(SIZE));
	make_header_good();
	header.ticks_are_ns = !header.ticks_are_ns;
	assert_false(starts_with_file(SIZE));
}

static void test_no_control_file(void **state)
{
	char *nowhere[] = {"KYMO_CAUSAL=/nowhere", NULL}, *nothing[] = {"KYMO_CAUSAL=", NULL},
	     *other[] = {"KYMO_CAUSALITY=x", NULL};

	(void)state;
	atomic_store(&kymo_causal, NULL);
	assert_true(causal_is_requested_in_environment(nowhere));
	assert_false(causal_is_requested_in_environment(nothing));
	assert_false(causal_is_requested_in_environment(other));
	kymo_runtime.environment = nowhere;
	causal_join_session_if_requested(&kymo_runtime);
	kymo_runtime.environment = nothing;
	causal_join_session_if_requested(&kymo_runtime);
	assert_false(causal_is_active());
}

static void test_nothing_happens_without(void **state)
{
	struct causal_wait_state wait;

	(void)state;
	atomic_store(&kymo_causal, NULL);
	causal_apply_delay_and_begin_wait(&wait);
	causal_end_wait_and_apply_delay(&wait, CAUSAL_WAKER_SESSION);
	causal_pay_delay();
	causal_record_clock_reading();
	assert_int_equal(causal_compute_deadline_extension_ns(), 0);
	causal_publish_wakeup_to_session(1);
	assert_false(causal_wakeup_was_published_since(1, 0));
	causal_record_visit(0);
	causal_record_visit_by_name("point", CAUSAL_POINT_PROGRESS, CAUSAL_ORIGIN_USER);
	assert_int_equal(
		causal_find_or_add_point("point", CAUSAL_POINT_PROGRESS, CAUSAL_ORIGIN_USER),
		UINT32_MAX);
	fake_sample(1, MS);
	assert_int_equal(fake_control->samples, 0);
}

/* As core/runtime.c does it: blocks are numbered anew, the state's memory is a copy. */
static void test_a_child_goes_on_where_its_parent_was(void **state)
{
	struct causal_control *control;
	int status;

	(void)state;
	make_header_good();
	control = start_with_file(SIZE);
	assert_non_null(control);
	control->expires = UINT64_MAX;
	control->experiment = 1ull << CAUSAL_EPOCH_SHIFT | CAUSAL_ACTIVE | 1;
	fake_thread();
	fake_thread();
	causal_pay_delay();
	atomic_fetch_add(&control->global_delay, causal_ns_to_ticks(MS));
	causal_pay_delay();
	if (!fork()) {
		struct causal_thread *inherited = kymo_causal_thread;

		inherited->excess_delay = 5;
		fake_thread(); /* another index than the parent's */
		kymo_causal_thread = inherited;
		causal_hook_table.forked();
		_exit(control->processes == 2 && fake_delay_ns() / 100000 >= 9 &&
				      kymo_causal_thread == kymo_thread->causal_state &&
				      kymo_causal_thread->excess_delay == 5
			      ? 0
			      : 1);
	}
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
	causal_hook_table.on_detach_process();
}

/* A process made by a raw system call: nothing here is its own. */
static void test_raw_forks_take_no_part(void **state)
{
	static const uint32_t wiped;

	(void)state;
	fake_experiment(1, 500);
	causal_pay_delay();
	fake_owe(60000 * MS);
	kymo_process.zeroed_in_forked_child = &wiped;
	causal_pay_delay();
	causal_record_visit(0);
	assert_int_equal(fake_control->points[0].visits, 0);
	assert_int_equal(fake_control->pauses, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_begin, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(test_control_files),           TEST(test_no_control_file),
		TEST(test_nothing_happens_without), TEST(test_a_child_goes_on_where_its_parent_was),
		TEST(test_raw_forks_take_no_part),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
