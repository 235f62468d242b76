/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A thread that takes signals synchronously with everything blocked: sigwait(), sigwaitinfo() and
 * sigtimedwait() on the full set return what the program sent and nothing of the profiler's.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "check.h"

#define ROUNDS 60

static sigset_t full;
static pthread_t waiter;
static atomic_int taken;

static void *sender_main(void *argument)
{
	for (int round = 0; round < ROUNDS; round++) {
		usleep(3000);
		check_burn_ms(1);
		/* Two pending signals would be taken by number and not in order. */
		while (atomic_load(&taken) < round)
			usleep(100);
		CHECK(pthread_kill(waiter, round % 2 ? SIGUSR1 : SIGUSR2) == 0);
	}
	return argument;
}

/* Waits for the next signal in the way of this round. */
static int next_signal(int round)
{
	struct timespec long_wait = {10, 0};
	siginfo_t info;
	int number;

	check_burn_ms(3);
	switch (round % 3) {
	case 0:
		CHECK(sigwait(&full, &number) == 0);
		return number;
	case 1:
		number = sigwaitinfo(&full, &info);
		break;
	default:
		number = sigtimedwait(&full, &info, &long_wait);
		break;
	}
	CHECK(number > 0 && info.si_signo == number && info.si_pid == getpid());
	return number;
}

int main(void)
{
	struct timespec no_wait = {0, 0};
	pthread_t sender;

	sigfillset(&full);
	CHECK(pthread_sigmask(SIG_SETMASK, &full, NULL) == 0);
	waiter = pthread_self();
	CHECK(pthread_create(&sender, NULL, sender_main, NULL) == 0);
	for (int round = 0; round < ROUNDS; round++) {
		CHECK(next_signal(round) == (round % 2 ? SIGUSR1 : SIGUSR2));
		atomic_store(&taken, round + 1);
	}
	pthread_join(sender, NULL);
	check_burn_ms(50);
	CHECK(sigtimedwait(&full, NULL, &no_wait) == -1 && errno == EAGAIN);
	return check_passed("signal_sigwait");
}
