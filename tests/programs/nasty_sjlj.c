/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Jumps out of many frames at once, in all spellings, also out of handlers of faults and of timers.
 */
#include "nasty.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

#define ROUNDS 500
static jmp_buf plain;
static sigjmp_buf masked;
static void *builtin[5];
static volatile int ticks;

NASTY_KEEP int sj_deep(int depth, int kind)
{
	NASTY_OPAQUE();
	if (depth > 0)
		return sj_deep(depth - 1, kind) + 1;
	switch (kind) {
	case 0:
		longjmp(plain, 7);
	case 1:
		_longjmp(plain, 8);
	case 2:
		siglongjmp(masked, 9);
	case 3:
		__builtin_longjmp(builtin, 1);
	default:
		return *(volatile int *)NULL;
	}
}

NASTY_KEEP int sj_plain(int depth)
{
	int value = setjmp(plain);

	return value ? value : sj_deep(depth, 0);
}

NASTY_KEEP int sj_underscore(int depth)
{
	int value = _setjmp(plain);

	return value ? value : sj_deep(depth, 1);
}

NASTY_KEEP int sj_masked(int depth, int kind)
{
	int value = sigsetjmp(masked, 1);

	return value ? value : sj_deep(depth, kind);
}

NASTY_KEEP int sj_builtin(int depth)
{
	if (__builtin_setjmp(builtin))
		return 10;
	return sj_deep(depth, 3);
}

static void fault(int signal)
{
	(void)signal;
	siglongjmp(masked, 11);
}

static void tick(int signal)
{
	(void)signal;
	ticks++;
	siglongjmp(masked, 12);
}

NASTY_KEEP int sj_spin(int value)
{
	NASTY_OPAQUE();
	return value + 1;
}

NASTY_KEEP int sj_interrupted(void)
{
	struct itimerval soon = {{0, 0}, {0, 1000}};
	volatile int value = 0;

	if (sigsetjmp(masked, 1) == 0) {
		setitimer(ITIMER_REAL, &soon, NULL);
		for (;;)
			value = sj_spin(value);
	}
	return 1;
}

static void out_of_timer(void)
{
	int times = 0;

	signal(SIGALRM, tick);
	for (int i = 0; i < 50; i++)
		times += sj_interrupted();
	nasty_say("interrupted %d\n", times);
}

static char elsewhere[65536];

NASTY_KEEP int sj_alternate_handler(int value)
{
	NASTY_OPAQUE();
	if (value)
		siglongjmp(masked, value);
	return value;
}

static void fault_elsewhere(int signal)
{
	(void)signal;
	sj_alternate_handler(13);
}

NASTY_KEEP int sj_alternate_bad(void)
{
	NASTY_OPAQUE();
	return *(volatile int *)NULL;
}

NASTY_KEEP int sj_alternate(void)
{
	int value = sigsetjmp(masked, 1);

	return value ? value : sj_alternate_bad();
}

/* The handler's stack still holds what it did, and its calls have been left all the same. */
static void out_of_alternate_stack(void)
{
	stack_t stack = {.ss_sp = elsewhere, .ss_size = sizeof(elsewhere)};
	struct sigaction action = {.sa_handler = fault_elsewhere, .sa_flags = SA_ONSTACK};
	long sum = 0;

	sigaltstack(&stack, NULL);
	sigaction(SIGSEGV, &action, NULL);
	for (int i = 0; i < ROUNDS; i++)
		sum += sj_alternate();
	nasty_say("alternate %ld\n", sum);
}

static void work(void)
{
	struct sigaction action = {.sa_handler = fault};
	long sum = 0;

	sigaction(SIGSEGV, &action, NULL);
	for (int i = 0; i < ROUNDS; i++)
		sum += sj_plain(i % 9) + sj_underscore(i % 9) + sj_masked(i % 9, 2) +
		       sj_builtin(i % 9) + sj_masked(i % 9, 4);
	nasty_say("sum %ld\n", sum);
	out_of_timer();
	out_of_alternate_stack();
	nasty_count("sj_plain", ROUNDS);
	nasty_count("sj_underscore", ROUNDS);
	nasty_count("sj_masked", 2 * ROUNDS);
	nasty_count("sj_builtin", ROUNDS);
	nasty_count("sj_interrupted", 50);
	nasty_count("sj_alternate", ROUNDS);
	nasty_count("sj_alternate_bad", ROUNDS);
	nasty_count("sj_alternate_handler", ROUNDS);
}

int main(int argc, char **argv)
{
	return nasty_run(argc, argv, work);
}
