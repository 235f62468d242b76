/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Threads that block every signal, as libraries do with their helpers. They must work on
 * undisturbed, find nothing pending that they did not send, and should still be sampled: `hidden`
 * holds most of the program's CPU time.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "check.h"

__attribute__((noinline)) static void hidden(void)
{
	check_burn_ms(300);
	__asm__ volatile("" ::: "memory");
}

static void *thread_main(void *argument)
{
	sigset_t full, pending, mask;

	sigfillset(&full);
	CHECK(pthread_sigmask(SIG_SETMASK, &full, NULL) == 0);
	hidden();
	CHECK(pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0);
	CHECK(sigpending(&pending) == 0);
	for (int number = 1; number < NSIG; number++) {
		if (number == SIGKILL || number == SIGSTOP || (number >= 32 && number < SIGRTMIN))
			continue;
		CHECK(sigismember(&mask, number) == 1);
		CHECK(sigismember(&pending, number) == (number == SIGUSR1));
	}
	return argument;
}

int main(void)
{
	pthread_t threads[2];
	sigset_t one;

	sigemptyset(&one);
	sigaddset(&one, SIGUSR1);
	CHECK(pthread_sigmask(SIG_BLOCK, &one, NULL) == 0);
	CHECK(kill(getpid(), SIGUSR1) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&threads[i], NULL, thread_main, NULL) == 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return check_passed("signal_blocked");
}
