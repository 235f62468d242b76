/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * fork() from the main thread, from other threads while the rest of the process is busy, and
 * grandchildren. Every child works, is waited for once, and its status arrives; nobody else's
 * children appear.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "check.h"

static atomic_int stop;

__attribute__((noinline)) static void child_work(void)
{
	check_burn_ms(40);
	__asm__ volatile("" ::: "memory");
}

static void *busy_main(void *argument)
{
	while (!atomic_load(&stop))
		check_burn_ms(1);
	return argument;
}

static void *thread_main(void *argument)
{
	child_work();
	return argument;
}

/* A child that starts a thread and a child of its own. */
static void child_main(int status, int grandchild)
{
	pthread_t thread;
	int seen;
	pid_t child;

	child_work();
	CHECK(pthread_create(&thread, NULL, thread_main, NULL) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	if (grandchild) {
		child = fork();
		if (child == 0) {
			child_work();
			exit(status + 1);
		}
		CHECK(child > 0 && waitpid(child, &seen, 0) == child);
		CHECK(WIFEXITED(seen) && WEXITSTATUS(seen) == status + 1);
	}
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	exit(status);
}

static void *forking_main(void *argument)
{
	for (int i = 0; i < 3; i++) {
		int seen;
		pid_t child = fork();

		if (child == 0)
			child_main(10 + i, i == 0);
		CHECK(child > 0 && waitpid(child, &seen, 0) == child);
		CHECK(WIFEXITED(seen) && WEXITSTATUS(seen) == 10 + i);
	}
	return argument;
}

int main(void)
{
	pthread_t busy, forking[2];

	forking_main(NULL);
	CHECK(pthread_create(&busy, NULL, busy_main, NULL) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&forking[i], NULL, forking_main, NULL) == 0);
	for (int i = 0; i < 2; i++)
		pthread_join(forking[i], NULL);
	atomic_store(&stop, 1);
	pthread_join(busy, NULL);
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	return check_passed("fork");
}
