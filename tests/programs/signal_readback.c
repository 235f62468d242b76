/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the program sets it reads back: masks by sigprocmask() and pthread_sigmask(), inherited by
 * threads; dispositions, flags and masks by sigaction(); ppoll(), pselect() and sigsuspend() with a
 * full mask restore the old one.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/select.h>

#include "check.h"

static int usable(int number)
{
	return number != SIGKILL && number != SIGSTOP && (number < 32 || number >= SIGRTMIN);
}

static void check_mask(const sigset_t *wanted)
{
	sigset_t seen;

	CHECK(sigprocmask(SIG_BLOCK, NULL, &seen) == 0);
	for (int number = 1; number < NSIG; number++)
		if (usable(number))
			CHECK(sigismember(&seen, number) == sigismember(wanted, number));
}

static void *inheriting_thread(void *argument)
{
	check_mask(argument);
	check_burn_ms(5);
	check_mask(argument);
	return NULL;
}

static void check_one_mask(const sigset_t *mask)
{
	struct timespec wait = {0, 3000000};
	sigset_t full, old;
	pthread_t thread;

	sigfillset(&full);
	CHECK(sigprocmask(SIG_SETMASK, mask, NULL) == 0);
	check_mask(mask);
	check_burn_ms(5);
	check_mask(mask);
	CHECK(ppoll(NULL, 0, &wait, &full) == 0);
	check_mask(mask);
	CHECK(pselect(0, NULL, NULL, NULL, &wait, &full) == 0);
	check_mask(mask);
	CHECK(pthread_create(&thread, NULL, inheriting_thread, (void *)(uintptr_t)mask) == 0);
	pthread_join(thread, NULL);
	CHECK(pthread_sigmask(SIG_BLOCK, &full, &old) == 0);
	for (int number = 1; number < NSIG; number++)
		if (usable(number))
			CHECK(sigismember(&old, number) == sigismember(mask, number));
	CHECK(pthread_sigmask(SIG_SETMASK, mask, NULL) == 0);
	check_mask(mask);
}

static void check_masks(void)
{
	sigset_t mask;

	sigemptyset(&mask);
	check_one_mask(&mask);
	for (int number = 1; number < NSIG; number++) {
		if (!usable(number) || number % 3 == 0)
			continue;
		sigaddset(&mask, number);
		if (number == SIGURG || number == SIGTRAP || number == SIGPROF || number > 60)
			check_one_mask(&mask);
	}
	sigfillset(&mask);
	check_one_mask(&mask);
	sigemptyset(&mask);
	CHECK(sigprocmask(SIG_SETMASK, &mask, NULL) == 0);
}

static void handler(int number)
{
	(void)number;
}

static void check_dispositions(void)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_NODEFER},
			 seen;

	for (int number = 1; number < NSIG; number++) {
		if (!usable(number))
			continue;
		sigemptyset(&action.sa_mask);
		sigaddset(&action.sa_mask, SIGURG);
		sigaddset(&action.sa_mask, SIGTRAP);
		sigaddset(&action.sa_mask, SIGUSR1);
		CHECK(sigaction(number, &action, &seen) == 0 && seen.sa_handler == SIG_DFL);
		CHECK(sigaction(number, NULL, &seen) == 0);
		CHECK(seen.sa_handler == handler);
		CHECK((seen.sa_flags & (SA_RESTART | SA_NODEFER)) == (SA_RESTART | SA_NODEFER));
		CHECK(sigismember(&seen.sa_mask, SIGURG) && sigismember(&seen.sa_mask, SIGTRAP));
		CHECK(sigismember(&seen.sa_mask, SIGUSR1) && !sigismember(&seen.sa_mask, SIGUSR2));
		CHECK(signal(number, SIG_IGN) == handler);
		CHECK(signal(number, SIG_DFL) == SIG_IGN);
	}
}

int main(void)
{
	check_masks();
	check_dispositions();
	check_burn_ms(50);
	return check_passed("signal_readback");
}
