/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Calls of functions that the user wraps by name: every way to pass arguments and results, variable
 * arguments, exceptions through them, longjmp over them, recursion, from several threads, at the
 * end of a stack.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "wrapped_library.h"

static void expect(bool truth, const char *what)
{
	if (truth)
		return;
	fprintf(stderr, "wrapped_functions: %s\n", what);
	exit(99);
}

static void values()
{
	struct library_big big = {{1, 2, 3, 4, 5, 6}};

	errno = EDOM;
	expect(library_many(1, -2, "hello", 1.5, 2.5f, 200, -3, 100, 1000, 1, 2, 3, 4, 5, 6, 7,
			    8) == 7806,
	       "many arguments");
	expect(library_sum(12, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12) == 78, "variable arguments");
	expect(library_extended(3.5L, 2, 1.25L) == 5.75L, "long double");
	big = library_structure(big, 41);
	expect(big.word[0] == 42 && big.word[5] == 6, "structure");
	expect(library_single(5.0f) == 2.5f, "float");
	expect(errno == EDOM, "errno");
}

__attribute__((target("avx512f"))) static bool wide_values()
{
	library_wide a = {1, 2, 3, 4, 5, 6, 7, 8}, b = {9, 8, 7, 6, 5, 4, 3, 2};
	library_wide difference = library_vectors(a, b);

	for (int i = 0; i < 8; i++) {
		if (difference[i] != 2 * i - 8)
			return false;
	}
	return true;
}

static ucontext_t outside;

static void call_at_the_end()
{
	expect(library_sum(2, 3, 4) == 7, "call at the end of a stack");
}

/* Behind the last words of this stack there is nothing. */
static void short_of_stack()
{
	const size_t size = 256 << 10;
	void *stack = mmap(nullptr, size + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ucontext_t inside;

	expect(stack != MAP_FAILED && !mprotect(stack, size, PROT_READ | PROT_WRITE), "stack");
	getcontext(&inside);
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = size;
	inside.uc_link = &outside;
	makecontext(&inside, call_at_the_end, 0);
	swapcontext(&outside, &inside);
}

static void leave_by_exception()
{
	int caught = 0;

	for (int i = 0; i < 1000; i++) {
		try {
			library_throw(i & 1);
		} catch (int value) {
			caught += value;
		}
	}
	expect(caught == 500, "exceptions");
}

static void leave_by_jump()
{
	volatile int jumps = 0;

	for (volatile int i = 0; i < 1000; i++) {
		jmp_buf target;
		if (!setjmp(target))
			library_jump(target);
		else
			jumps++;
	}
	expect(jumps == 1000, "longjmp");
}

static void *all(void *argument)
{
	values();
	leave_by_exception();
	leave_by_jump();
	return argument;
}

int main(int count, char **)
{
	pthread_t threads[3];
	volatile double base = count + 1.0;

	for (pthread_t &thread : threads)
		expect(!pthread_create(&thread, nullptr, all, nullptr), "thread");
	for (pthread_t thread : threads)
		pthread_join(thread, nullptr);
	expect(pow(base, 10) == 1024, "pow");
	expect(!__builtin_cpu_supports("avx512f") || wide_values(), "wide vectors");
	short_of_stack();
	puts("wrapped_functions: OK");
	return 0;
}
