/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Coroutines that run in turns, each in the midst of a few calls: what a change between stacks
 * costs whoever keeps return addresses. Prints ns of CPU time a turn, of which each has eight
 * calls.
 *
 * usage: coroutines COUNT TURNS
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define STACK_SIZE 65536
#define DEPTH      3

void nasty_switch(void **save, void *load);
void nasty_begin(void);

static void **suspended, *home;
static long sum;

__attribute__((noinline)) static void yield(long self)
{
	nasty_switch(&suspended[self], home);
}

__attribute__((noinline)) static long step(long self, int depth)
{
	long value = depth;

	if (depth > 0)
		value += step(self, depth - 1);
	else
		yield(self);
	__asm__ volatile("" : "+r"(value));
	return value;
}

static void coroutine(void *self)
{
	for (;;)
		sum += step((long)self, DEPTH);
}

static void *make(long self)
{
	char *stack =
		mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void **top = (void **)(stack + STACK_SIZE - 16);

	if (stack == MAP_FAILED)
		exit(1);
	*--top = NULL;
	*--top = (void *)(uintptr_t)nasty_begin;
	*--top = NULL;
	*--top = (void *)(uintptr_t)coroutine;
	*--top = (void *)self;
	return top - 3;
}

static double cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(int argc, char **argv)
{
	long count = argc > 2 ? atol(argv[1]) : 100, turns = argc > 2 ? atol(argv[2]) : 1000;
	double begin;

	suspended = calloc((size_t)count, sizeof(*suspended));
	if (!suspended)
		return 1;
	for (long i = 0; i < count; i++)
		suspended[i] = make(i);
	begin = cpu_ns();
	for (long turn = 0; turn < turns; turn++)
		for (long i = 0; i < count; i++)
			nasty_switch(&home, suspended[i]);
	printf("turn %.2f\n", (cpu_ns() - begin) / (double)(count * turns));
	return 0;
}
