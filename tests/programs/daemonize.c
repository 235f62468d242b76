/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A daemon: double fork, setsid(), chdir("/"), descriptors closed and pointed at /dev/null. It
 * works on after its parent has gone and reports through a pipe.
 */
#include <stdlib.h>
#include <sys/wait.h>

#include "check.h"

__attribute__((noinline)) static void daemon_work(void)
{
	check_burn_ms(100);
	__asm__ volatile("" ::: "memory");
}

int main(void)
{
	int ends[2], status;
	char byte = 0;
	pid_t child;

	CHECK(pipe(ends) == 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		close(ends[0]);
		CHECK(dup2(ends[1], 9) == 9);
		CHECK(daemon(0, 0) == 0);
		daemon_work();
		CHECK(write(9, "d", 1) == 1);
		exit(0);
	}
	close(ends[1]);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(read(ends[0], &byte, 1) == 1 && byte == 'd');
	CHECK(read(ends[0], &byte, 1) == 0);
	return check_passed("daemonize");
}
