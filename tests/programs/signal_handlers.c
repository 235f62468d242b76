/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The program's own handlers for the signals that a sampler likes to use: every one of its own
 * signals arrives, with its payload, exactly as often as sent, and no other.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "check.h"

#define ROUNDS 200

static const int numbers[] = {SIGURG,    SIGTRAP, SIGPROF, SIGALRM,
			      SIGVTALRM, SIGIO,   SIGSEGV, SIGUSR1};
#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

static atomic_int counts[65];
static atomic_int strangers;

static void on_signal(int number, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_code != SI_TKILL && info->si_code != SI_USER && info->si_code != SI_QUEUE)
		atomic_fetch_add(&strangers, 1);
	else if (info->si_pid != getpid())
		atomic_fetch_add(&strangers, 1);
	atomic_fetch_add(&counts[number], 1);
}

static void install(void)
{
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct sigaction seen;

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < NUMBERS; i++) {
		CHECK(sigaction(numbers[i], &action, &seen) == 0);
		CHECK(seen.sa_handler == SIG_DFL);
		CHECK(sigaction(numbers[i], NULL, &seen) == 0);
		CHECK(seen.sa_sigaction == on_signal);
		CHECK((seen.sa_flags & (SA_SIGINFO | SA_RESTART)) == (SA_SIGINFO | SA_RESTART));
	}
}

static void *thread_main(void *argument)
{
	for (int round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < NUMBERS; i++) {
			int before = atomic_load(&counts[numbers[i]]);

			CHECK(pthread_kill(pthread_self(), numbers[i]) == 0);
			CHECK(atomic_load(&counts[numbers[i]]) >= before + 1);
		}
		check_burn_ms(1);
	}
	return argument;
}

/* sigqueue() keeps its value. */
static int queued_value;

static void on_queued(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	queued_value = info->si_value.sival_int;
}

static void check_queued(int number)
{
	struct sigaction action = {.sa_sigaction = on_queued, .sa_flags = SA_SIGINFO};
	union sigval value = {.sival_int = 4711};

	queued_value = 0;
	CHECK(sigaction(number, &action, NULL) == 0);
	CHECK(sigqueue(getpid(), number, value) == 0);
	for (int wait = 0; wait < 1000 && !queued_value; wait++)
		usleep(1000);
	CHECK(queued_value == 4711);
}

int main(void)
{
	pthread_t thread;

	install();
	CHECK(pthread_create(&thread, NULL, thread_main, NULL) == 0);
	thread_main(NULL);
	pthread_join(thread, NULL);
	for (size_t i = 0; i < NUMBERS; i++)
		CHECK(atomic_load(&counts[numbers[i]]) == 2 * ROUNDS);
	CHECK(atomic_load(&strangers) == 0);
	check_queued(SIGURG);
	check_queued(SIGPROF);
	CHECK(signal(SIGURG, SIG_IGN) != SIG_ERR);
	CHECK(raise(SIGURG) == 0);
	check_burn_ms(20);
	CHECK(signal(SIGURG, SIG_DFL) == SIG_IGN);
	check_burn_ms(20);
	return check_passed("signal_handlers");
}
