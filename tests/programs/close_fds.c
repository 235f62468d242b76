/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Closes every descriptor it does not know, three ways, and opens its own in their place: none of
 * the profiler's may be missed by it, and none of the program's may be written to.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "check.h"

static void *thread_main(void *argument)
{
	check_burn_ms(40);
	return argument;
}

static void work(void)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, thread_main, NULL) == 0);
	check_burn_ms(40);
	pthread_join(thread, NULL);
}

/* Fills the low numbers with a file of our own and sees that nobody else writes to or closes it. */
static void check_own(int from, int to)
{
	FILE *file = tmpfile();
	struct stat info;

	CHECK(file);
	for (int fd = from; fd < to; fd++)
		CHECK(fd == fileno(file) || dup2(fileno(file), fd) == fd);
	work();
	for (int fd = from; fd < to; fd++)
		CHECK(fstat(fd, &info) == 0 && info.st_size == 0 && info.st_nlink == 0);
	for (int fd = from; fd < to; fd++)
		if (fd != fileno(file))
			close(fd);
	fclose(file);
}

int main(void)
{
	work();
	closefrom(3);
	CHECK(open("/dev/null", O_RDONLY) == 3);
	close(3);
	check_own(10, 300);
	CHECK(close_range(3, ~0u, 0) == 0);
	check_own(10, 300);
	for (int fd = 3; fd < 70000; fd++)
		close(fd);
	check_own(10, 1000);
	return check_passed("close_fds");
}
