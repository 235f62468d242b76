/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Gives up root for nobody, in all threads, and works on: files opened for the profile before stay
 * usable or are done without. A child is forked and a thread started after the drop.
 * Without root there is nothing to give up; the program then only works.
 */
#include <grp.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "check.h"

#define NOBODY 65534

static void *thread_main(void *argument)
{
	check_burn_ms(30);
	CHECK(getuid() == *(uid_t *)argument);
	return NULL;
}

int main(void)
{
	uid_t wanted = getuid() == 0 ? NOBODY : getuid();
	pthread_t thread;
	int status;
	pid_t child;

	check_burn_ms(30);
	if (getuid() == 0) {
		CHECK(setgroups(0, NULL) == 0);
		CHECK(setresgid(NOBODY, NOBODY, NOBODY) == 0);
		CHECK(setresuid(NOBODY, NOBODY, NOBODY) == 0);
	}
	CHECK(pthread_create(&thread, NULL, thread_main, &wanted) == 0);
	check_burn_ms(60);
	pthread_join(thread, NULL);
	child = fork();
	if (child == 0) {
		check_burn_ms(30);
		exit(getuid() == wanted ? 33 : 99);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 33);
	return check_passed("privileges");
}
