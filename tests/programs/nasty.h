/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the nasty programs share: programs that break engines which patch functions. Each does its
 * work in rounds (`PROGRAM [seconds|asked]`: one round, or as many as fit, or until its standard
 * input says something) and says what it saw in lines; the first round's lines are printed, later
 * rounds must say the same. A line "count F N" says that a round calls F exactly N times. What
 * differs from run to run goes to standard error.
 */
#ifndef KYMO_TESTS_NASTY_H
#define KYMO_TESTS_NASTY_H

#include "check.h"
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>

/* A function with one symbol that is called wherever the source calls it. */
#ifdef __clang__
#define NASTY_KEEP __attribute__((noinline, used, visibility("default")))
#else
#define NASTY_KEEP __attribute__((noinline, noclone, used, visibility("default")))
#endif
/* Nothing is known of what happens here. */
#define NASTY_OPAQUE() __asm__ volatile("" ::: "memory")

static char nasty_text[2][16384];
static size_t nasty_length;
static int nasty_round;

__attribute__((format(printf, 1, 2))) static inline void nasty_say(const char *format, ...)
{
	char *text = nasty_text[nasty_round > 0];
	size_t room = sizeof(nasty_text[0]) - nasty_length;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(text + nasty_length, room, format, arguments);
	va_end(arguments);
	CHECK(length >= 0 && (size_t)length < room);
	nasty_length += (size_t)length;
}

static inline void nasty_count(const char *function, long calls)
{
	nasty_say("count %s %ld\n", function, calls);
}

/* An interrupted poll() is no answer. */
static inline int nasty_asked(void)
{
	struct pollfd input = {0, POLLIN, 0};

	return poll(&input, 1, 0) == 1;
}

static inline int nasty_run(int argc, char **argv, void (*work)(void))
{
	uint64_t begin = check_clock_ns(CLOCK_MONOTONIC);
	uint64_t enough = (uint64_t)((argc > 1 ? atof(argv[1]) : 0) * 1e9);
	int until_asked = argc > 1 && strcmp(argv[1], "asked") == 0;

	do {
		nasty_length = 0;
		work();
		CHECK(nasty_round == 0 || strcmp(nasty_text[0], nasty_text[1]) == 0);
		nasty_round++;
	} while (until_asked ? !nasty_asked() : check_clock_ns(CLOCK_MONOTONIC) - begin < enough);
	fputs(nasty_text[0], stdout);
	return fflush(stdout) == 0 ? 0 : 98;
}

#endif
