/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a forked child does at its end: its exit handlers run, in reverse order, its unwritten
 * output is written, its status arrives; also when it exits from a thread, and when the parent has
 * registered handlers before the fork.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "check.h"

static void first_handler(void)
{
	printf("handler of the parent\n");
}

static void second_handler(void)
{
	printf("handler of the child\n");
}

static void *exiting_main(void *argument)
{
	printf("from a thread\n");
	exit((int)(intptr_t)argument);
}

static void child_main(int status, int by_thread)
{
	pthread_t thread;

	CHECK(atexit(second_handler) == 0);
	printf("unwritten line of the child\n");
	check_burn_ms(10);
	if (!by_thread)
		exit(status);
	CHECK(pthread_create(&thread, NULL, exiting_main, (void *)(intptr_t)status) == 0);
	pthread_join(thread, NULL);
	_exit(99);
}

int main(void)
{
	CHECK(atexit(first_handler) == 0);
	CHECK(setvbuf(stdout, NULL, _IOFBF, 65536) == 0);
	for (int i = 0; i < 4; i++) {
		int status;
		pid_t child = fork();

		if (child == 0)
			child_main(40 + i, i % 2);
		CHECK(child > 0 && waitpid(child, &status, 0) == child);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 40 + i);
	}
	return check_passed("child_exit");
}
