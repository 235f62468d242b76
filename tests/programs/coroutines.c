/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A ring of 1,000 makecontext() coroutines on small heap stacks, switched 200,000 times: samples
 * fall on stacks that are no thread's, and swapcontext() carries the signal mask along.
 */
#include <stdlib.h>
#include <ucontext.h>

#include "check.h"

#define COROUTINES 1000
#define STACK_SIZE (64 << 10)
#define ROUNDS     200

static ucontext_t contexts[COROUTINES], home;
static unsigned long sums[COROUTINES];

__attribute__((noinline)) static void coroutine_work(unsigned which)
{
	for (unsigned i = 0; i < 300; i++)
		sums[which] += i ^ which;
	__asm__ volatile("" ::: "memory");
}

static void coroutine_main(unsigned which)
{
	for (int round = 0; round < ROUNDS; round++) {
		coroutine_work(which);
		CHECK(swapcontext(&contexts[which], &contexts[(which + 1) % COROUTINES]) == 0);
	}
	CHECK(setcontext(which + 1 < COROUTINES ? &contexts[which + 1] : &home) == 0);
}

static void print_total(void)
{
	unsigned long total = 0;

	for (unsigned which = 0; which < COROUTINES; which++)
		total += sums[which];
	printf("%lu\n", total);
}

int main(void)
{
	char *stacks = malloc((size_t)COROUTINES * STACK_SIZE);

	CHECK(stacks);
	for (unsigned which = 0; which < COROUTINES; which++) {
		CHECK(getcontext(&contexts[which]) == 0);
		contexts[which].uc_stack.ss_sp = stacks + (size_t)which * STACK_SIZE;
		contexts[which].uc_stack.ss_size = STACK_SIZE;
		contexts[which].uc_link = &home;
		makecontext(&contexts[which], (void (*)(void))coroutine_main, 1, which);
	}
	CHECK(swapcontext(&home, &contexts[0]) == 0);
	print_total();
	free(stacks);
	return check_passed("coroutines");
}
