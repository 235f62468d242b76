/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the hazard programs share. Each program does one thing that a profiler can break, checks it
 * itself, prints the same bytes on every run and ends with a fixed status; tests/e2e runs it bare
 * and under kymo and compares.
 */
#ifndef KYMO_TESTS_CHECK_H
#define KYMO_TESTS_CHECK_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS 1000000ull

/* The line goes out by one raw write, so that it works wherever the program stands: in a forked
 * child, a handler, with stdio closed. */
__attribute__((noreturn)) static inline void check_failed(const char *what, const char *file,
							  int line)
{
	char text[512];
	int length =
		snprintf(text, sizeof(text), "%s:%d: %s (errno %d)\n", file, line, what, errno);

	if (length > 0)
		(void)!write(2, text, (size_t)length);
	_exit(99);
}

#define CHECK(condition)                                                                           \
	((condition) ? (void)0 : check_failed("failed: " #condition, __FILE__, __LINE__))

static inline uint64_t check_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Uses CPU time of this thread, so that it is sampled in the state at hand. */
static inline void check_burn_ms(uint64_t ms)
{
	uint64_t end = check_clock_ns(CLOCK_THREAD_CPUTIME_ID) + ms * NS_PER_MS;

	do {
		for (volatile unsigned spin = 0; spin < 20000; spin++)
			;
	} while (check_clock_ns(CLOCK_THREAD_CPUTIME_ID) < end);
}

/* The one line of a program that came through. */
static inline int check_passed(const char *what)
{
	printf("%s: OK\n", what);
	return fflush(stdout) == 0 ? 0 : 98;
}

#endif
