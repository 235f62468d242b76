/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Resource limits that the program sets for itself once it runs, one a run. What is limited is the
 * program's; the profiler has to do without and must not be what exceeds it.
 *
 * usage: limits nofile|fsize|as|sigpending|memlock
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "check.h"

static void *thread_main(void *argument)
{
	check_burn_ms(20);
	return argument;
}

static void work(void)
{
	for (int i = 0; i < 10; i++) {
		pthread_t thread;

		CHECK(pthread_create(&thread, NULL, thread_main, NULL) == 0);
		check_burn_ms(10);
		pthread_join(thread, NULL);
	}
}

static void set_limit(int which, rlim_t value)
{
	struct rlimit limit = {value, value};

	CHECK(setrlimit((unsigned)which, &limit) == 0);
}

/* The program can open exactly as many files as without the profiler. */
static void nofile(void)
{
	int opened = 0, fd = 0;

	set_limit(RLIMIT_NOFILE, 64);
	work();
	while ((fd = open("/dev/null", O_RDONLY)) >= 0)
		opened = fd;
	CHECK(errno == EMFILE);
	printf("highest descriptor %d\n", opened);
	work();
	for (fd = 3; fd <= opened; fd++)
		close(fd);
	work();
}

/* Growing a file past the limit raises SIGXFSZ in whoever does it. */
static void fsize(void)
{
	set_limit(RLIMIT_FSIZE, 8192);
	work();
	work();
}

static void address_space(void)
{
	set_limit(RLIMIT_AS, 300ul << 20);
	work();
	CHECK(mmap(NULL, 400ul << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
	work();
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	check_burn_ms(20);
	if (strcmp(mode, "nofile") == 0)
		nofile();
	else if (strcmp(mode, "fsize") == 0)
		fsize();
	else if (strcmp(mode, "as") == 0)
		address_space();
	else if (strcmp(mode, "sigpending") == 0)
		set_limit(RLIMIT_SIGPENDING, 1);
	else if (strcmp(mode, "memlock") == 0)
		set_limit(RLIMIT_MEMLOCK, 0);
	else
		return 2;
	work();
	return check_passed(mode);
}
