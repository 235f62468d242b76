/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Handlers on an alternate stack: the stack is the program's own as installed, SS_ONSTACK tells the
 * truth, a handler that runs long enough to be sampled returns unharmed, and a stack overflow is
 * caught on it and left by siglongjmp().
 */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "check.h"

static char stack[256 << 10];
static sigjmp_buf escape;
static int handled;

static int on_alternate(const void *address)
{
	return (const char *)address >= stack && (const char *)address < stack + sizeof(stack);
}

static void on_usr1(int number)
{
	stack_t now;
	int local;

	(void)number;
	CHECK(on_alternate(&local));
	CHECK(sigaltstack(NULL, &now) == 0);
	CHECK(now.ss_flags == SS_ONSTACK && now.ss_sp == stack);
	check_burn_ms(10);
	handled++;
}

static void on_overflow(int number, siginfo_t *info, void *context)
{
	int local;

	(void)number;
	(void)info;
	(void)context;
	CHECK(on_alternate(&local));
	siglongjmp(escape, 1);
}

__attribute__((noinline)) static int recurse(int depth)
{
	volatile char frame[512];

	frame[0] = (char)depth;
	if (depth < 0)
		return 0;
	return recurse(depth + 1) + frame[0];
}

int main(void)
{
	stack_t ours = {.ss_sp = stack, .ss_size = sizeof(stack)}, seen;
	struct sigaction usr1 = {.sa_handler = on_usr1, .sa_flags = SA_ONSTACK};
	struct sigaction overflow = {.sa_sigaction = on_overflow,
				     .sa_flags = SA_ONSTACK | SA_SIGINFO};

	CHECK(sigaltstack(NULL, &seen) == 0 && (seen.ss_flags & SS_DISABLE));
	CHECK(sigaltstack(&ours, NULL) == 0);
	CHECK(sigaltstack(NULL, &seen) == 0);
	CHECK(seen.ss_sp == stack && seen.ss_size == sizeof(stack) && seen.ss_flags == 0);
	CHECK(sigaction(SIGUSR1, &usr1, NULL) == 0);
	CHECK(sigaction(SIGSEGV, &overflow, NULL) == 0);
	for (int round = 0; round < 20; round++) {
		CHECK(raise(SIGUSR1) == 0);
		check_burn_ms(1);
	}
	CHECK(handled == 20);
	for (volatile int round = 0; round < 5; round++) {
		if (sigsetjmp(escape, 1) == 0)
			recurse(0);
		check_burn_ms(5);
	}
	return check_passed("signal_altstack");
}
