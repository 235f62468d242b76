/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Replaces itself by exec() again and again while CPU time goes by in several threads: a signal of
 * the profiler's that is pending when the old image's handlers are gone kills the new one.
 *
 * usage: exec_chain [CHAINS [LENGTH]]
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "check.h"

static void *busy_main(void *argument)
{
	for (;;)
		check_burn_ms(1);
	return argument;
}

/* One link: burns in two threads, execs the next. */
static void chain_link(const char *program, int left)
{
	char number[16];
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, busy_main, NULL) == 0);
	check_burn_ms(2 + (uint64_t)left % 3);
	if (left == 0)
		exit(42);
	snprintf(number, sizeof(number), "%d", left - 1);
	execl(program, program, "link", number, NULL);
	check_failed("exec", __FILE__, __LINE__);
}

int main(int argc, char **argv)
{
	int chains = argc > 1 ? atoi(argv[1]) : 60, length = argc > 2 ? atoi(argv[2]) : 20, seen;

	if (argc == 3 && strcmp(argv[1], "link") == 0)
		chain_link(argv[0], length);
	for (int chain = 0; chain < chains; chain++) {
		pid_t child = fork();

		if (child == 0)
			chain_link(argv[0], length);
		CHECK(child > 0 && waitpid(child, &seen, 0) == child);
		if (!WIFEXITED(seen) || WEXITSTATUS(seen) != 42) {
			fprintf(stderr, "exec_chain: wait status %#x\n", (unsigned)seen);
			return 99;
		}
	}
	return check_passed("exec_chain");
}
