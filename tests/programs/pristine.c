/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a program may take for granted when main() begins: no signal blocked or pending, default
 * dispositions, no alternate stack, no timers, no children, errno 0, limits and personality as
 * inherited, file descriptors 0 to 2 only and the next one is 3.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "check.h"

static void check_signals(void)
{
	struct sigaction action;
	sigset_t mask, pending;
	stack_t stack;

	CHECK(sigprocmask(SIG_BLOCK, NULL, &mask) == 0 && sigpending(&pending) == 0);
	for (int number = 1; number < NSIG; number++) {
		if (number >= 32 && number < SIGRTMIN)
			continue;
		CHECK(!sigismember(&mask, number));
		CHECK(!sigismember(&pending, number));
		CHECK(sigaction(number, NULL, &action) == 0);
		CHECK(action.sa_handler == SIG_DFL);
	}
	CHECK(sigaltstack(NULL, &stack) == 0 && (stack.ss_flags & SS_DISABLE));
}

static void check_timers(void)
{
	struct itimerval value;

	for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++) {
		CHECK(getitimer(which, &value) == 0);
		CHECK(value.it_value.tv_sec == 0 && value.it_value.tv_usec == 0);
	}
}

static void print_limits(void)
{
	struct rlimit limit;

	for (int which = 0; which < RLIM_NLIMITS; which++) {
		CHECK(getrlimit((unsigned)which, &limit) == 0);
		printf("limit %d: %llx %llx\n", which, (unsigned long long)limit.rlim_cur,
		       (unsigned long long)limit.rlim_max);
	}
}

int main(int argc, char **argv)
{
	int first = errno, fd;
	mode_t mask = umask(022);

	CHECK(first == 0 && argc == 1 && argv[1] == NULL);
	umask(mask);
	check_signals();
	check_timers();
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	print_limits();
	printf("umask %03o nice %d\n", mask, nice(0));
	fd = open("/dev/null", O_RDONLY);
	printf("first descriptor %d\n", fd);
	check_burn_ms(50);
	check_signals();
	return check_passed("pristine");
}
