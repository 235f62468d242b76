/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What one thread earns, owes, pays and is credited. Amounts are exact whatever the machine does
 * besides: sleeps that end late are counted as such.
 */
#include "fake.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

static void test_a_sample_at_a_breakpoint(void **state)
{
	(void)state;
	fake_experiment(3, 500);
	fake_at_breakpoint = true;
	fake_sample(3, 2 * MS);
	fake_at_breakpoint = false;
	assert_int_equal(fake_control->samples_in_target, 1);
	assert_int_equal(fake_control->targets[3].total_ns, 2 * MS);
	assert_int_equal(fake_control->targets[3].self_ns, 0);
}

static void test_what_a_sample_earns(void **state)
{
	(void)state;
	fake_experiment(3, 500);
	fake_sample(3, 2 * MS);
	fake_sample(4, 2 * MS); /* another's */
	fake_sample(0, 2 * MS); /* nobody's */
	fake_release();
	fake_assert_near(fake_delay_ns(), MS);
	fake_assert_near(fake_most_ns(), MS);
	fake_assert_near(fake_count_ns(&fake_control->earned), MS);
	assert_int_equal(fake_control->samples, 3);
	assert_int_equal(fake_control->samples_in_scope, 2);
	assert_int_equal(fake_control->samples_in_target, 1);
	assert_int_equal(fake_control->targets[3].self_ns, 2 * MS);
	assert_int_equal(fake_control->targets[4].total_ns, 2 * MS);
}

/* A thread that is in the target half of the time, by its samples, earns from then on as it runs.
 */
/* Target 3 is what follows a pause that is spun for half of the time between samples; target 4 is
 * what comes before it. Both have been sampled as often: it was as much time. */
static void test_places_behind_a_pause_count_the_same(void **state)
{
	_Atomic uint64_t *spun;
	uint64_t behind, before;

	(void)state;
	fake_experiment(9, 500);
	spun = &causal_find_or_make_current_state()->attribution.spun_ns;
	for (int i = 0; i < 200; i++) {
		causal_add_to_counter(spun, MS / 2);
		fake_sample(3, MS);
		fake_sample(4, MS);
		/* One that comes in a pause counts for neither, and not for the next one either. */
		causal_find_or_make_current_state()->attribution.is_pausing = 1;
		fake_sample(3, MS);
		causal_find_or_make_current_state()->attribution.is_pausing = 0;
		causal_add_to_counter(spun, MS);
	}
	behind = fake_control->targets[3].total_ns;
	before = fake_control->targets[4].total_ns;
	assert_in_range(behind, before * 9 / 10, before * 11 / 10);
	assert_in_range(behind + before, 298 * MS, 302 * MS);
}

/* In the end it has earned what its samples say. */
static void test_what_was_not_foreseen_is_due(void **state)
{
	struct causal_thread *self;

	(void)state;
	fake_experiment(3, 500);
	for (int i = 0; i < 10; i++)
		fake_sample(3, MS);
	self = causal_find_or_make_current_state();
	assert_true(causal_try_enter_state(self));
	causal_begin_burst(fake_control, self, self->attribution.kind,
			   ticks_now() - causal_ns_to_ticks(2 * MS));
	causal_pause_burst(fake_control, self, ticks_now());
	causal_leave_state(self);
	fake_assert_near(causal_ticks_to_ns((uint64_t)self->attribution.unapplied_delay),
			 5 * MS - fake_count_ns(&fake_control->earned));
	fake_release();
	fake_assert_near(fake_delay_ns(), 5 * MS);
	assert_int_equal(fake_control->runners_used, 0);
}

/* Runs for some time of this thread's CPU. */
static uint64_t run_for_cpu_ns(uint64_t ns)
{
	uint64_t begin = read_posix_clock_ns(CLOCK_THREAD_CPUTIME_ID), now;

	do
		now = read_posix_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	while (now - begin < ns);
	return now - begin;
}

/* A new thread of the program's that starts in target 5, and ends without a sample. */
static void short_thread(uint64_t cpu_ns)
{
	struct thread *thread = fake_thread();

	thread->origin = THREAD_ORIGIN_CREATED;
	thread->entry = FAKE_CODE + 16 * 5;
	thread->cpu_ns = read_posix_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	assert_non_null(causal_find_or_make_current_state());
	run_for_cpu_ns(cpu_ns);
	causal_pay_delay_of_ending_thread();
}

static void test_threads_too_short_for_samples_have_their_time(void **state)
{
	struct thread *sampled;

	(void)state;
	fake_experiment(5, 500);
	short_thread(2 * MS);
	assert_in_range(fake_control->targets[5].self_ns, 2 * MS, 4 * MS);
	assert_int_equal(fake_control->targets[5].total_ns, fake_control->targets[5].self_ns);
	fake_assert_near(fake_most_ns(), fake_control->targets[5].total_ns / 2);
	/* A sample of another one shows what these do: target 4, called by 5. */
	sampled = fake_thread();
	sampled->origin = THREAD_ORIGIN_CREATED;
	sampled->entry = FAKE_CODE + 16 * 5;
	fake_sample(4, MS);
	short_thread(2 * MS);
	assert_in_range(fake_control->targets[4].self_ns, 3 * MS, 5 * MS);
	assert_in_range(fake_control->targets[5].total_ns, 4 * MS, 8 * MS);
	assert_in_range(fake_control->targets[5].self_ns, 2 * MS, 4 * MS);
	/* A thread's own one counts more than that. */
	kymo_thread = sampled;
	kymo_causal_thread = sampled->causal_state;
	fake_sample(6, MS);
	short_thread(MS);
	assert_in_range(fake_control->targets[6].self_ns, 2 * MS, 3 * MS);
	sampled->cpu_ns = read_posix_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	kymo_thread = sampled;
	kymo_causal_thread = sampled->causal_state;
	fake_sample(7, MS);
	run_for_cpu_ns(MS);
	causal_pay_delay_of_ending_thread();
	assert_in_range(fake_control->targets[7].self_ns, 2 * MS, 3 * MS);
}

static void test_a_debt_is_paid_once(void **state)
{
	uint64_t begin;

	(void)state;
	fake_experiment(3, 500);
	causal_pay_delay();
	fake_owe(30 * MS);
	begin = fake_now_ns();
	causal_pay_delay();
	assert_true(fake_now_ns() - begin >= 29 * MS);
	fake_assert_near(fake_delay_ns(), 30 * MS);
	fake_assert_near(fake_count_ns(&fake_control->paid) -
				 fake_count_ns(&fake_control->overslept),
			 30 * MS);
	assert_int_equal(fake_control->pauses >= 1, 1);
	begin = fake_control->pauses;
	causal_pay_delay();
	assert_int_equal(fake_control->pauses, begin);
}

static void test_a_small_debt_is_kept(void **state)
{
	(void)state;
	fake_experiment(3, 500);
	causal_pay_delay();
	for (int i = 0; i < 100; i++) {
		fake_owe(2500);
		causal_pay_delay();
	}
	fake_assert_near(fake_delay_ns(), 250000);
	assert_true(fake_control->pauses <= 50);
}

/* So are those of locks once there were too many in short time. */
static void test_locks_are_not_all_turns(void **state)
{
	(void)state;
	fake_experiment(3, 500);
	kymo_causal_rates.sync_turn_period_ticks = causal_ns_to_ticks(1000000 * MS);
	for (int i = 0; i < 10; i++) {
		fake_owe(MS);
		causal_pay_delay_at_lock_if_due(0);
		fake_assert_near(fake_delay_ns(), fake_most_ns());
	}
	for (int i = 0; i < 100; i++)
		causal_pay_delay_at_lock_if_due(0);
	fake_owe(MS);
	causal_pay_delay_at_lock_if_due(0);
	fake_assert_near(fake_delay_ns(), 10 * MS);
	causal_pay_delay();
	fake_assert_near(fake_delay_ns(), 11 * MS);
	fake_owe(MS);
	causal_find_or_make_current_state()->turns_used_until_ticks =
		ticks_now() - 1; /* long after */
	causal_pay_delay_at_lock_if_due(0);
	fake_assert_near(fake_delay_ns(), 12 * MS);
}

/* The clock is not looked at for some calls, but is as soon as the thread has waited, has had a
 * turn of its own or was sampled: what comes after is another matter. */
static void test_locks_that_pass_unread(void **state)
{
	struct causal_wait_state wait;

	(void)state;
	fake_experiment(3, 500);
	kymo_causal_rates.sync_turn_period_ticks = causal_ns_to_ticks(1000000 * MS);
	for (int i = 0; i < 100; i++)
		causal_pay_delay_at_lock_if_due(0);
	for (int i = 0; i < 3; i++) {
		while (!kymo_causal_unread)
			causal_pay_delay_at_lock_if_due(0);
		causal_find_or_make_current_state()->turns_used_until_ticks =
			ticks_now() - 1; /* would have one, if it looked */
		fake_owe(MS);
		causal_pay_delay_at_lock_if_due(0);
		assert_true(fake_delay_ns() < fake_most_ns() - MS / 2);
		if (i == 0)
			causal_pay_delay();
		if (i == 1)
			causal_pay_delay_of_sampled_thread(kymo_thread);
		if (i == 2) {
			causal_apply_delay_and_begin_wait(&wait);
			causal_end_wait_and_apply_delay(&wait, CAUSAL_WAKER_OUTSIDE);
		}
		assert_int_equal(kymo_causal_unread, 0);
		fake_owe(MS);
		causal_pay_delay_at_lock_if_due(0);
		fake_assert_near(fake_delay_ns(), fake_most_ns());
		causal_find_or_make_current_state()->turns_used_until_ticks =
			ticks_now() + 100 * kymo_causal_rates.sync_turn_period_ticks;
	}
}

/* Not for longer than a turn is worth, by how often they come. */
static void test_seldom_locks_are_all_looked_at(void **state)
{
	(void)state;
	fake_experiment(3, 500);
	kymo_causal_rates.sync_turn_period_ticks = 1; /* tick */
	causal_find_or_make_current_state()->turns_used_until_ticks =
		ticks_now() + causal_ns_to_ticks(1000000 * MS);
	for (int i = 0; i < 100; i++) {
		causal_pay_delay_at_lock_if_due(0);
		assert_int_equal(kymo_causal_unread, 0);
	}
}

static void test_oversleeping_goes_off_the_next_debt(void **state)
{
	struct causal_thread *self = causal_find_or_make_current_state();
	uint64_t slept;

	(void)state;
	fake_experiment(3, 500);
	causal_pay_delay();
	self->excess_delay = causal_ns_to_ticks(7 * MS);
	fake_owe(5 * MS);
	causal_pay_delay();
	assert_int_equal(fake_control->pauses, 0);
	fake_assert_near(fake_delay_ns(), 5 * MS);
	fake_assert_near(causal_ticks_to_ns(self->excess_delay), 2 * MS);
	fake_owe(5 * MS);
	causal_pay_delay();
	slept = fake_count_ns(&fake_control->paid);
	fake_assert_near(fake_delay_ns(), 10 * MS);
	fake_assert_near(slept, 3 * MS + causal_ticks_to_ns(self->excess_delay));
}

static void test_a_wait_for_others_is_credited(void **state)
{
	struct causal_wait_state wait;

	(void)state;
	fake_experiment(3, 500);
	causal_apply_delay_and_begin_wait(&wait);
	fake_owe(500 * MS);
	causal_end_wait_and_apply_delay(&wait, CAUSAL_WAKER_SESSION);
	assert_int_equal(fake_control->pauses, 0);
	fake_assert_near(fake_delay_ns(), 500 * MS);
}

/* What grew while the thread was on its way, woken and not there yet, is owed: on its way it would
 * be as long if others were faster. */
static void test_a_wait_ends_with_what_is_given(void **state)
{
	static const int things[2];
	struct causal_wait_state wait;

	(void)state;
	fake_experiment(3, 500);
	causal_record_wakeup_in_process(&things[0]);
	causal_apply_delay_and_begin_wait(&wait);
	fake_owe(10 * MS);
	causal_record_wakeup_in_process(&things[0]);
	fake_owe(20 * MS);
	causal_end_wait_on_object_at_site(&wait, &things[0], 1);
	fake_assert_near(fake_count_ns(&fake_control->paid) -
				 fake_count_ns(&fake_control->overslept),
			 20 * MS);
	fake_assert_near(fake_delay_ns(), 30 * MS);
	/* given before it waited, or by nobody that is known */
	causal_apply_delay_and_begin_wait(&wait);
	fake_owe(500 * MS);
	causal_end_wait_on_object_at_site(&wait, &things[0], 1);
	fake_assert_near(fake_delay_ns(), 530 * MS);
}

static void test_a_wait_for_time_is_not(void **state)
{
	struct causal_wait_state wait;

	(void)state;
	fake_experiment(3, 500);
	causal_apply_delay_and_begin_wait(&wait);
	fake_owe(20 * MS);
	causal_end_wait_and_apply_delay(&wait, CAUSAL_WAKER_OUTSIDE);
	fake_assert_near(fake_count_ns(&fake_control->paid) -
				 fake_count_ns(&fake_control->overslept),
			 20 * MS);
}

/* It began in an epoch that is over: what grew before is nobody's business any more. */
static void test_a_wait_over_epochs(void **state)
{
	struct causal_wait_state wait;

	(void)state;
	fake_experiment(3, 500);
	causal_apply_delay_and_begin_wait(&wait);
	fake_owe(100 * MS);
	fake_experiment(4, 500);
	fake_owe(5 * MS);
	causal_end_wait_and_apply_delay(&wait, CAUSAL_WAKER_SESSION);
	assert_int_equal(fake_control->pauses, 0);
	fake_assert_near(fake_delay_ns(), 5 * MS);
}

static void test_debts_end_with_their_epoch(void **state)
{
	(void)state;
	fake_experiment(3, 500);
	causal_pay_delay();
	fake_owe(10000 * MS);
	fake_sample(3, 100 * MS);
	fake_experiment(4, 500);
	causal_pay_delay();
	fake_release();
	assert_int_equal(fake_control->pauses, 0);
	assert_int_equal(fake_delay_ns(), 0);
	assert_int_equal(fake_most_ns(), 0);
	fake_assert_near(fake_count_ns(&fake_control->forgiven), 10000 * MS);
}

static void test_nothing_is_owed_outside_of_epochs(void **state)
{
	(void)state;
	fake_experiment(3, 500);
	causal_pay_delay();
	fake_owe(10000 * MS);
	fake_control->experiment &= ~CAUSAL_ACTIVE;
	causal_pay_delay();
	fake_sample(3, 100 * MS);
	fake_release();
	assert_int_equal(fake_control->pauses, 0);
	assert_int_equal(fake_control->earned, 0);
}

static void *in_a_while(void *argument)
{
	uint64_t begin = fake_now_ns();

	while (fake_now_ns() - begin < 50 * MS)
		sched_yield();
	if (argument)
		fake_experiment(0, 0);
	else
		fake_control->expires = 0;
	return NULL;
}

/* A minute is owed. */
static void check_pause_ends(void *how)
{
	uint64_t begin = fake_now_ns();
	pthread_t thread;

	fake_experiment(3, 500);
	causal_pay_delay();
	fake_owe(60000 * MS);
	assert_int_equal(pthread_create(&thread, NULL, in_a_while, how), 0);
	causal_pay_delay();
	assert_true(fake_now_ns() - begin < 30000 * MS);
	pthread_join(thread, NULL);
	assert_true(fake_count_ns(&fake_control->paid) > 10 * MS);
}

static void test_a_pause_ends_with_its_experiment(void **state)
{
	(void)state;
	check_pause_ends(&fake_control);
}

static void test_a_pause_ends_with_the_controller(void **state)
{
	(void)state;
	check_pause_ends(NULL);
	causal_pay_delay();
	fake_sample(3, MS);
	causal_pay_delay_of_sampled_thread(kymo_thread);
}

static void test_threads_that_leave_pay_nothing(void **state)
{
	(void)state;
	fake_experiment(3, 500);
	causal_pay_delay();
	fake_owe(60000 * MS);
	kymo_thread->exec_pending = 1;
	causal_pay_delay();
	kymo_thread->exec_pending = 0;
	kymo_thread->has_own_seccomp_filter = true;
	causal_pay_delay();
	assert_int_equal(fake_control->pauses, 0);
}

static void test_a_handler_does_not_pause_for_long(void **state)
{
	uint64_t paid;

	(void)state;
	fake_experiment(3, 500);
	causal_pay_delay();
	fake_owe(600 * MS);
	causal_pay_delay_of_sampled_thread(kymo_thread);
	paid = fake_count_ns(&fake_control->paid);
	assert_true(paid >= 40 * MS && fake_delay_ns() < 500 * MS);
}

/* ---- what interrupts a pause ---- */

static volatile int alarms;
static jmp_buf out;

static void on_alarm(int signal)
{
	struct causal_wait_state wait;

	(void)signal;
	alarms++;
	causal_apply_delay_and_begin_wait(&wait);
	causal_pay_delay();
	causal_end_wait_and_apply_delay(&wait, CAUSAL_WAKER_SESSION);
	fake_sample(3, MS);
}

static void leave_on_alarm(int signal)
{
	(void)signal;
	longjmp(out, 1);
}

static void alarm_every(unsigned microseconds, void (*handler)(int))
{
	struct itimerval timer = {{0, microseconds}, {0, microseconds}};
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_NODEFER};

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

static void test_interrupted_pauses(void **state)
{
	(void)state;
	alarms = 0;
	fake_experiment(3, 100);
	causal_pay_delay();
	alarm_every(2000, on_alarm);
	for (int i = 0; i < 50; i++) {
		fake_owe(MS);
		causal_pay_delay();
	}
	alarm_every(0, SIG_IGN);
	fake_release();
	causal_pay_delay();
	assert_true(alarms > 0);
	/* Its own earnings are no debt. */
	fake_assert_near(fake_delay_ns(), fake_most_ns());
	fake_assert_near(fake_delay_ns(), fake_count_ns(&fake_control->paid) -
						  fake_count_ns(&fake_control->overslept) +
						  fake_count_ns(&fake_control->earned));
}

static void test_a_pause_that_is_left_by_longjmp(void **state)
{
	(void)state;
	fake_experiment(3, 100);
	causal_pay_delay();
	fake_owe(200 * MS);
	if (!setjmp(out)) {
		alarm_every(5000, leave_on_alarm);
		causal_pay_delay();
	}
	alarm_every(0, SIG_IGN);
	causal_pay_delay();
	fake_assert_near(fake_delay_ns(), 200 * MS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_begin, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(test_what_a_sample_earns),
		TEST(test_a_sample_at_a_breakpoint),
		TEST(test_places_behind_a_pause_count_the_same),
		TEST(test_what_was_not_foreseen_is_due),
		TEST(test_threads_too_short_for_samples_have_their_time),
		TEST(test_a_debt_is_paid_once),
		TEST(test_a_small_debt_is_kept),
		TEST(test_locks_are_not_all_turns),
		TEST(test_locks_that_pass_unread),
		TEST(test_seldom_locks_are_all_looked_at),
		TEST(test_oversleeping_goes_off_the_next_debt),
		TEST(test_a_wait_for_others_is_credited),
		TEST(test_a_wait_ends_with_what_is_given),
		TEST(test_a_wait_for_time_is_not),
		TEST(test_a_wait_over_epochs),
		TEST(test_debts_end_with_their_epoch),
		TEST(test_nothing_is_owed_outside_of_epochs),
		TEST(test_a_pause_ends_with_its_experiment),
		TEST(test_a_pause_ends_with_the_controller),
		TEST(test_threads_that_leave_pay_nothing),
		TEST(test_a_handler_does_not_pause_for_long),
		TEST(test_interrupted_pauses),
		TEST(test_a_pause_that_is_left_by_longjmp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
