/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Ways for a process to end, one a run; status or signal must reach the one who waits for kymo, and
 * what was printed must be there.
 *
 * usage: ends return|exit|_exit|quick_exit|abort|segv|fpe|kill|term|pipe|xcpu|trap|quit|urg|alarm
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "check.h"

static const char *mode;

static void at_exit_first(void)
{
	printf("%s: registered first\n", mode);
}

static void at_exit_second(void)
{
	check_burn_ms(20);
	printf("%s: registered second\n", mode);
}

static void at_quick_exit_only(void)
{
	(void)!write(1, "at_quick_exit\n", 14);
}

__attribute__((destructor)) static void destructor(void)
{
	printf("%s: destructor\n", mode);
}

static int fault(void)
{
	volatile int *volatile nowhere = NULL;

	return *nowhere;
}

static int divide(volatile int zero)
{
	return 100 / zero;
}

static void end_by_signal(void)
{
	static const struct {
		const char *name;
		int number;
	} signals[] = {{"kill", SIGKILL}, {"term", SIGTERM}, {"pipe", SIGPIPE}, {"xcpu", SIGXCPU},
		       {"trap", SIGTRAP}, {"quit", SIGQUIT}, {"urg", SIGURG}};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		if (strcmp(mode, signals[i].name) != 0)
			continue;
		if (signals[i].number == SIGPIPE) {
			int ends[2];

			CHECK(pipe(ends) == 0 && close(ends[0]) == 0);
			(void)!write(ends[1], "x", 1);
		}
		kill(getpid(), signals[i].number);
	}
}

int main(int argc, char **argv)
{
	struct rlimit no_core = {0, 0};

	mode = argc > 1 ? argv[1] : "return";
	setrlimit(RLIMIT_CORE, &no_core);
	printf("%s: begins\n", mode);
	fflush(stdout);
	atexit(at_exit_first);
	atexit(at_exit_second);
	at_quick_exit(at_quick_exit_only);
	check_burn_ms(100);
	if (strcmp(mode, "exit") == 0)
		exit(3);
	if (strcmp(mode, "_exit") == 0)
		_exit(4);
	if (strcmp(mode, "quick_exit") == 0)
		quick_exit(5);
	if (strcmp(mode, "abort") == 0)
		abort();
	if (strcmp(mode, "segv") == 0)
		return fault();
	if (strcmp(mode, "fpe") == 0)
		return divide(0);
	if (strcmp(mode, "alarm") == 0) {
		alarm(1);
		pause();
	}
	end_by_signal();
	return 6;
}
