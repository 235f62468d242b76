/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Stacks cut off by longjmp(), out of deep calls and out of signal handlers, over and over.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

#include "check.h"

static jmp_buf plain;
static sigjmp_buf saved;
static volatile int jumps;

__attribute__((noinline)) static int descend(int depth)
{
	volatile int keep = depth;

	if (depth < 0)
		return 0;
	if (depth == 0)
		longjmp(plain, 1);
	return descend(depth - 1) + keep;
}

static void on_usr1(int number)
{
	(void)number;
	siglongjmp(saved, 1);
}

int main(void)
{
	sigset_t mask;

	CHECK(signal(SIGUSR1, on_usr1) != SIG_ERR);
	for (volatile int round = 0; round < 20000; round++) {
		if (setjmp(plain) == 0)
			descend(round % 100);
		else
			jumps++;
	}
	for (volatile int round = 0; round < 20000; round++) {
		if (sigsetjmp(saved, 1) == 0)
			raise(SIGUSR1);
		else
			jumps++;
	}
	CHECK(jumps == 40000);
	CHECK(sigprocmask(SIG_BLOCK, NULL, &mask) == 0 && !sigismember(&mask, SIGUSR1));
	check_burn_ms(50);
	return check_passed("longjmp");
}
