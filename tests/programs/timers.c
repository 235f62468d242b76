/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The program's own timers, of every kind that a sampler may use too: each expires as set, goes to
 * the program's handler, and reads back; timer ids and itimers are not the profiler's.
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

#include "check.h"

static volatile sig_atomic_t ticks[65];
static sem_t thread_ticks;

static void on_tick(int number)
{
	ticks[number]++;
}

static void on_thread_tick(union sigval value)
{
	(void)value;
	sem_post(&thread_ticks);
}

static void check_itimer(int which, int number)
{
	struct itimerval every = {{0, 10000}, {0, 10000}}, off = {{0, 0}, {0, 0}}, seen;

	CHECK(signal(number, on_tick) != SIG_ERR);
	ticks[number] = 0;
	CHECK(setitimer(which, &every, NULL) == 0);
	CHECK(getitimer(which, &seen) == 0 && seen.it_interval.tv_usec == 10000);
	while (ticks[number] < 10)
		check_burn_ms(1);
	CHECK(setitimer(which, &off, &seen) == 0 && seen.it_interval.tv_usec == 10000);
}

static void check_timer(clockid_t clock, int number)
{
	struct itimerspec every = {{0, 10000000}, {0, 10000000}};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = number};
	timer_t timer;

	CHECK(signal(number, on_tick) != SIG_ERR);
	ticks[number] = 0;
	CHECK(timer_create(clock, &event, &timer) == 0);
	CHECK(timer_settime(timer, 0, &every, NULL) == 0);
	while (ticks[number] < 10)
		check_burn_ms(1);
	CHECK(timer_delete(timer) == 0);
}

static void check_thread_timer(void)
{
	struct itimerspec every = {{0, 10000000}, {0, 10000000}};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD,
				 .sigev_notify_function = on_thread_tick};
	timer_t timer;

	CHECK(sem_init(&thread_ticks, 0, 0) == 0);
	CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
	CHECK(timer_settime(timer, 0, &every, NULL) == 0);
	for (int i = 0; i < 5; i++)
		while (sem_wait(&thread_ticks) != 0)
			CHECK(errno == EINTR);
	CHECK(timer_delete(timer) == 0);
}

int main(void)
{
	check_itimer(ITIMER_REAL, SIGALRM);
	check_itimer(ITIMER_VIRTUAL, SIGVTALRM);
	check_itimer(ITIMER_PROF, SIGPROF);
	check_timer(CLOCK_MONOTONIC, SIGRTMIN);
	check_timer(CLOCK_THREAD_CPUTIME_ID, SIGRTMIN + 1);
	check_timer(CLOCK_PROCESS_CPUTIME_ID, SIGRTMAX);
	check_timer(CLOCK_MONOTONIC, SIGURG);
	check_timer(CLOCK_THREAD_CPUTIME_ID, SIGPROF);
	check_thread_timer();
	CHECK(alarm(100) == 0 && alarm(0) > 98);
	return check_passed("timers");
}
