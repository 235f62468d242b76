/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * At the program's end: signals of its timers that would kill it while kymo is at work are taken,
 * others come.
 */
#include "unit/core/core_test.h"

#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/process/program_signals.h"
#include "core/process/program_timers.h"

static volatile int calls;

static void handler(int signal)
{
	(void)signal;
	calls++;
}

static void let_timer_expire(void)
{
	struct itimerval once = {.it_value = {.tv_usec = 1000}};
	sigset_t pending;

	setitimer(ITIMER_REAL, &once, NULL);
	do
		sigpending(&pending);
	while (!sigismember(&pending, SIGALRM) && !calls);
}

static void let_posix_timer_expire(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
	struct itimerspec once = {.it_value = {.tv_nsec = 1000000}};
	sigset_t pending;
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &once, NULL))
		_exit(99);
	do
		sigpending(&pending);
	while (!sigismember(&pending, SIGPROF));
}

/* How a process ends that has this happen while signals are held. */
static int status_after(void (*happen)(void))
{
	int status = -1;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		uint64_t held = program_timers_hold_deadly_signals();

		happen();
		program_timers_release_signals(held);
		_exit(7);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void send_alarm(void)
{
	kill(getpid(), SIGALRM);
}

static void send_both(void)
{
	let_posix_timer_expire();
	send_alarm();
}

static void timers_do_not_kill(void **state)
{
	(void)state;
	assert_int_equal(status_after(let_timer_expire), 7 << 8);
	assert_int_equal(status_after(let_posix_timer_expire), 7 << 8);
}

static void what_somebody_sends_comes(void **state)
{
	(void)state;
	assert_int_equal(status_after(send_alarm), SIGALRM);
	assert_int_equal(status_after(send_both), SIGALRM);
}

static void handlers_run(void **state)
{
	uint64_t held;
	sigset_t mask;

	(void)state;
	signal(SIGALRM, handler);
	held = program_timers_hold_deadly_signals();
	assert_false(held & signal_to_mask_bit(SIGALRM));
	let_timer_expire();
	assert_int_equal(calls, 1);
	program_timers_release_signals(held);
	signal(SIGALRM, SIG_DFL);
	sigprocmask(SIG_SETMASK, NULL, &mask);
	assert_int_equal(sigismember(&mask, SIGALRM) | sigismember(&mask, SIGPROF), 0);
}

/* The program's own mask stays as it is. */
static void blocked_signals_stay_blocked(void **state)
{
	sigset_t mask, before;

	(void)state;
	sigemptyset(&mask);
	sigaddset(&mask, SIGPROF);
	sigprocmask(SIG_BLOCK, &mask, &before);
	program_timers_release_signals(program_timers_hold_deadly_signals());
	sigprocmask(SIG_SETMASK, &before, &mask);
	assert_true(sigismember(&mask, SIGPROF));
	assert_false(sigismember(&mask, SIGALRM));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timers_do_not_kill),
		cmocka_unit_test(what_somebody_sends_comes),
		cmocka_unit_test(handlers_run),
		cmocka_unit_test(blocked_signals_stay_blocked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
