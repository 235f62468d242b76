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
	spun = &causal_self()->earning.spun_ns;
	for (int i = 0; i < 200; i++) {
		causal_count(spun, MS / 2);
		fake_sample(3, MS);
		fake_sample(4, MS);
		/* One that comes in a pause counts for neither, and not for the next one either. */
		causal_self()->earning.spinning = 1;
		fake_sample(3, MS);
		causal_self()->earning.spinning = 0;
		causal_count(spun, MS);
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
	self = causal_self();
	assert_true(causal_enter(self));
	causal_run(fake_control, self, self->earning.kind, ticks_now() - causal_ticks(2 * MS));
	causal_stop_running(fake_control, self, ticks_now());
	causal_leave(self);
	fake_assert_near(causal_ns((uint64_t)self->earning.due),
			 5 * MS - fake_count_ns(&fake_control->earned));
	fake_release();
	fake_assert_near(fake_delay_ns(), 5 * MS);
	assert_int_equal(fake_control->runners_used, 0);
}

static void test_a_debt_is_paid_once(void **state)
{
	uint64_t begin;

	(void)state;
	fake_experiment(3, 500);
	causal_pay();
	fake_owe(30 * MS);
	begin = fake_now_ns();
	causal_pay();
	assert_true(fake_now_ns() - begin >= 29 * MS);
	fake_assert_near(fake_delay_ns(), 30 * MS);
	fake_assert_near(fake_count_ns(&fake_control->paid) -
				 fake_count_ns(&fake_control->overslept),
			 30 * MS);
	assert_int_equal(fake_control->pauses >= 1, 1);
	begin = fake_control->pauses;
	causal_pay();
	assert_int_equal(fake_control->pauses, begin);
}

static void test_a_small_debt_is_kept(void **state)
{
	(void)state;
	fake_experiment(3, 500);
	causal_pay();
	for (int i = 0; i < 100; i++) {
		fake_owe(2500);
		causal_pay();
	}
	fake_assert_near(fake_delay_ns(), 250000);
	assert_true(fake_control->pauses <= 50);
}

/* So are those of locks once there were too many in short time. */
static void test_locks_are_not_all_turns(void **state)
{
	(void)state;
	fake_experiment(3, 500);
	kymo_causal_rates.turn = causal_ticks(1000000 * MS);
	for (int i = 0; i < 10; i++) {
		fake_owe(MS);
		causal_pay_often_at(0);
		fake_assert_near(fake_delay_ns(), fake_most_ns());
	}
	for (int i = 0; i < 100; i++)
		causal_pay_often_at(0);
	fake_owe(MS);
	causal_pay_often_at(0);
	fake_assert_near(fake_delay_ns(), 10 * MS);
	causal_pay();
	fake_assert_near(fake_delay_ns(), 11 * MS);
	fake_owe(MS);
	causal_self()->turns = ticks_now() - 1; /* long after */
	causal_pay_often_at(0);
	fake_assert_near(fake_delay_ns(), 12 * MS);
}

/* The clock is not looked at for some calls, but is as soon as the thread has waited, has had a
 * turn of its own or was sampled: what comes after is another matter. */
static void test_locks_that_pass_unread(void **state)
{
	struct causal_wait wait;

	(void)state;
	fake_experiment(3, 500);
	kymo_causal_rates.turn = causal_ticks(1000000 * MS);
	for (int i = 0; i < 100; i++)
		causal_pay_often_at(0);
	for (int i = 0; i < 3; i++) {
		while (!kymo_causal_unread)
			causal_pay_often_at(0);
		causal_self()->turns = ticks_now() - 1; /* would have one, if it looked */
		fake_owe(MS);
		causal_pay_often_at(0);
		assert_true(fake_delay_ns() < fake_most_ns() - MS / 2);
		if (i == 0)
			causal_pay();
		if (i == 1)
			causal_settle_thread(kymo_thread);
		if (i == 2) {
			causal_before_wait(&wait);
			causal_after_wait(&wait, CAUSAL_WAKER_OUTSIDE);
		}
		assert_int_equal(kymo_causal_unread, 0);
		fake_owe(MS);
		causal_pay_often_at(0);
		fake_assert_near(fake_delay_ns(), fake_most_ns());
		causal_self()->turns = ticks_now() + 100 * kymo_causal_rates.turn;
	}
}

/* Not for longer than a turn is worth, by how often they come. */
static void test_seldom_locks_are_all_looked_at(void **state)
{
	(void)state;
	fake_experiment(3, 500);
	kymo_causal_rates.turn = 1; /* tick */
	causal_self()->turns = ticks_now() + causal_ticks(1000000 * MS);
	for (int i = 0; i < 100; i++) {
		causal_pay_often_at(0);
		assert_int_equal(kymo_causal_unread, 0);
	}
}

static void test_oversleeping_goes_off_the_next_debt(void **state)
{
	struct causal_thread *self = causal_self();
	uint64_t slept;

	(void)state;
	fake_experiment(3, 500);
	causal_pay();
	self->bank = causal_ticks(7 * MS);
	fake_owe(5 * MS);
	causal_pay();
	assert_int_equal(fake_control->pauses, 0);
	fake_assert_near(fake_delay_ns(), 5 * MS);
	fake_assert_near(causal_ns(self->bank), 2 * MS);
	fake_owe(5 * MS);
	causal_pay();
	slept = fake_count_ns(&fake_control->paid);
	fake_assert_near(fake_delay_ns(), 10 * MS);
	fake_assert_near(slept, 3 * MS + causal_ns(self->bank));
}

static void test_a_wait_for_others_is_credited(void **state)
{
	struct causal_wait wait;

	(void)state;
	fake_experiment(3, 500);
	causal_before_wait(&wait);
	fake_owe(500 * MS);
	causal_after_wait(&wait, CAUSAL_WAKER_SESSION);
	assert_int_equal(fake_control->pauses, 0);
	fake_assert_near(fake_delay_ns(), 500 * MS);
}

/* What grew while the thread was on its way, woken and not there yet, is owed: on its way it would
 * be as long if others were faster. */
static void test_a_wait_ends_with_what_is_given(void **state)
{
	static const int things[2];
	struct causal_wait wait;

	(void)state;
	fake_experiment(3, 500);
	causal_give(&things[0]);
	causal_before_wait(&wait);
	fake_owe(10 * MS);
	causal_give(&things[0]);
	fake_owe(20 * MS);
	causal_after_wait_for(&wait, &things[0], 1);
	fake_assert_near(fake_count_ns(&fake_control->paid) -
				 fake_count_ns(&fake_control->overslept),
			 20 * MS);
	fake_assert_near(fake_delay_ns(), 30 * MS);
	/* given before it waited, or by nobody that is known */
	causal_before_wait(&wait);
	fake_owe(500 * MS);
	causal_after_wait_for(&wait, &things[0], 1);
	fake_assert_near(fake_delay_ns(), 530 * MS);
}

static void test_a_wait_for_time_is_not(void **state)
{
	struct causal_wait wait;

	(void)state;
	fake_experiment(3, 500);
	causal_before_wait(&wait);
	fake_owe(20 * MS);
	causal_after_wait(&wait, CAUSAL_WAKER_OUTSIDE);
	fake_assert_near(fake_count_ns(&fake_control->paid) -
				 fake_count_ns(&fake_control->overslept),
			 20 * MS);
}

/* It began in an epoch that is over: what grew before is nobody's business any more. */
static void test_a_wait_over_epochs(void **state)
{
	struct causal_wait wait;

	(void)state;
	fake_experiment(3, 500);
	causal_before_wait(&wait);
	fake_owe(100 * MS);
	fake_experiment(4, 500);
	fake_owe(5 * MS);
	causal_after_wait(&wait, CAUSAL_WAKER_SESSION);
	assert_int_equal(fake_control->pauses, 0);
	fake_assert_near(fake_delay_ns(), 5 * MS);
}

static void test_debts_end_with_their_epoch(void **state)
{
	(void)state;
	fake_experiment(3, 500);
	causal_pay();
	fake_owe(10000 * MS);
	fake_sample(3, 100 * MS);
	fake_experiment(4, 500);
	causal_pay();
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
	causal_pay();
	fake_owe(10000 * MS);
	fake_control->experiment &= ~CAUSAL_ACTIVE;
	causal_pay();
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
	causal_pay();
	fake_owe(60000 * MS);
	assert_int_equal(pthread_create(&thread, NULL, in_a_while, how), 0);
	causal_pay();
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
	causal_pay();
	fake_sample(3, MS);
	causal_settle_thread(kymo_thread);
}

static void test_threads_that_leave_pay_nothing(void **state)
{
	(void)state;
	fake_experiment(3, 500);
	causal_pay();
	fake_owe(60000 * MS);
	kymo_thread->leaving = 1;
	causal_pay();
	kymo_thread->leaving = 0;
	kymo_thread->sealed = true;
	causal_pay();
	assert_int_equal(fake_control->pauses, 0);
}

static void test_a_handler_does_not_pause_for_long(void **state)
{
	uint64_t paid;

	(void)state;
	fake_experiment(3, 500);
	causal_pay();
	fake_owe(600 * MS);
	causal_settle_thread(kymo_thread);
	paid = fake_count_ns(&fake_control->paid);
	assert_true(paid >= 40 * MS && fake_delay_ns() < 500 * MS);
}

static void test_clocks(void **state)
{
	uint64_t before;

	(void)state;
	fake_experiment(3, 500);
	causal_clock_was_read();
	assert_int_equal(causal_lateness_ns(), 0);
	fake_owe(10 * MS);
	causal_pay();
	fake_assert_near(causal_lateness_ns(), 10 * MS + causal_ns(causal_self()->bank));
	causal_clock_was_read();
	assert_int_equal(causal_lateness_ns(), 0);
	before = fake_count_ns(&fake_control->paid);
	fake_owe(10 * MS);
	causal_pay();
	/* it stays late when the experiment is over, and after the next one */
	fake_control->experiment &= ~CAUSAL_ACTIVE;
	fake_assert_near(causal_lateness_ns(), fake_count_ns(&fake_control->paid) - before);
	fake_experiment(3, 500);
	fake_owe(5 * MS);
	causal_pay();
	fake_assert_near(causal_lateness_ns(), fake_count_ns(&fake_control->paid) - before);
	causal_clock_was_read();
	assert_int_equal(causal_lateness_ns(), 0);
}

/* A timetable of one millisecond: by all that was ever absorbed, though clocks are read. */
static void test_timetables(void **state)
{
	int64_t time = 1000 * MS;
	uint64_t paid = 0, late;

	(void)state;
	fake_experiment(3, 500);
	for (int i = 0; i < 30; i++, time += MS) {
		causal_clock_was_read();
		causal_put_off_ns(CLOCK_MONOTONIC, time, time - (int64_t)MS + (int64_t)paid);
		fake_owe(MS / 2);
		causal_pay();
		paid = fake_count_ns(&fake_control->paid);
	}
	assert_int_equal(causal_self()->timetable.kind, CAUSAL_TIMES_OWN);
	fake_experiment(0, 0);
	causal_clock_was_read();
	late = causal_put_off_ns(CLOCK_MONOTONIC, time, time);
	assert_true(paid >= 14 * MS);
	assert_in_range(late, paid - MS / 5, paid + MS / 5);
}

/* The clock and so much more: by what was absorbed since it was read. */
static void test_times_from_a_clock(void **state)
{
	int64_t now = 1000 * MS;
	uint64_t before;

	(void)state;
	fake_experiment(3, 500);
	for (int i = 0; i < 30; i++) {
		causal_clock_was_read();
		now += MS + (int64_t)causal_put_off_ns(CLOCK_MONOTONIC, now + MS, now);
		fake_owe(MS / 2);
		causal_pay();
		now += MS / 2;
	}
	assert_int_equal(causal_self()->timetable.kind, CAUSAL_TIMES_CLOCKS);
	causal_clock_was_read();
	assert_int_equal(causal_put_off_ns(CLOCK_MONOTONIC, now + MS, now), 0);
	before = fake_count_ns(&fake_control->paid);
	fake_owe(30 * MS);
	causal_pay();
	fake_assert_near(causal_put_off_ns(CLOCK_MONOTONIC, now + 31 * MS, now + 30 * MS),
			 fake_count_ns(&fake_control->paid) - before);
}

static void test_marks(void **state)
{
	uint64_t now = ticks_now();

	(void)state;
	assert_false(causal_marked_since(77, now));
	causal_mark(77);
	assert_true(causal_marked_since(77, now));
	assert_false(causal_marked_since(78, now));
	assert_false(causal_marked_since(77, ticks_now()));
}

/* ---- what interrupts a pause ---- */

static volatile int alarms;
static jmp_buf out;

static void on_alarm(int signal)
{
	struct causal_wait wait;

	(void)signal;
	alarms++;
	causal_before_wait(&wait);
	causal_pay();
	causal_after_wait(&wait, CAUSAL_WAKER_SESSION);
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
	causal_pay();
	alarm_every(2000, on_alarm);
	for (int i = 0; i < 50; i++) {
		fake_owe(MS);
		causal_pay();
	}
	alarm_every(0, SIG_IGN);
	fake_release();
	causal_pay();
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
	causal_pay();
	fake_owe(200 * MS);
	if (!setjmp(out)) {
		alarm_every(5000, leave_on_alarm);
		causal_pay();
	}
	alarm_every(0, SIG_IGN);
	causal_pay();
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
		TEST(test_clocks),
		TEST(test_timetables),
		TEST(test_times_from_a_clock),
		TEST(test_marks),
		TEST(test_interrupted_pauses),
		TEST(test_a_pause_that_is_left_by_longjmp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
