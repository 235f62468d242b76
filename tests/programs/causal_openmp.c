/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Every construct of OpenMP that causal profiling leads through a wrapper, with its result. Built
 * by tests/e2e/causal_waits.py with each compiler.
 */
#include <omp.h>
#include <stdio.h>

#define ROUNDS 20

static long fibonacci(int n)
{
	long one, two;

	if (n < 2)
		return n;
#pragma omp task shared(one)
	one = fibonacci(n - 1);
#pragma omp task shared(two) firstprivate(n)
	two = fibonacci(n - 2);
#pragma omp taskwait
	return one + two;
}

static void loops(void)
{
	long dynamic = 0, guided = 0, runtime = 0, ordered = 0, cells[64] = {0};

	for (int round = 0; round < ROUNDS; round++) {
#pragma omp parallel for reduction(+ : dynamic) schedule(dynamic, 7)
		for (int i = 0; i < 1000; i++)
			dynamic += i;
#pragma omp parallel for reduction(+ : guided) schedule(guided)
		for (int i = 0; i < 1000; i++)
			guided += i;
#pragma omp parallel for reduction(+ : runtime) schedule(runtime)
		for (int i = 0; i < 1000; i++)
			runtime += i;
#pragma omp parallel for schedule(static)
		for (int i = 0; i < 64; i++)
			cells[i] += i;
#pragma omp parallel for ordered schedule(dynamic)
		for (int i = 0; i < 10; i++) {
#pragma omp ordered
			ordered = ordered * 3 % 1000003 + i;
		}
	}
	printf("loops %ld %ld %ld %ld %ld\n", dynamic, guided, runtime, ordered, cells[63]);
}

static void teams(void)
{
	long critical = 0, named = 0, locked = 0, nested = 0, sections = 0, copied = 0, all = 0;
	omp_lock_t lock;
	omp_nest_lock_t nest_lock;

	omp_init_lock(&lock);
	omp_init_nest_lock(&nest_lock);
	for (int round = 0; round < ROUNDS; round++) {
#pragma omp parallel num_threads(3)
		{
			int value = 0;
#pragma omp critical
			critical++;
#pragma omp critical(named)
			named++;
#pragma omp barrier
			omp_set_lock(&lock);
			locked++;
			omp_unset_lock(&lock);
			omp_set_nest_lock(&nest_lock);
			nested++;
			omp_unset_nest_lock(&nest_lock);
#pragma omp single copyprivate(value)
			value = 42;
#pragma omp atomic
			copied += value;
#pragma omp sections
			{
#pragma omp section
#pragma omp atomic
				sections++;
#pragma omp section
#pragma omp atomic
				sections++;
			}
#pragma omp for reduction(+ : all)
			for (int i = 0; i < 100; i++)
				all++;
#pragma omp parallel num_threads(2)
			{
#pragma omp atomic
				nested++;
			}
		}
#pragma omp parallel sections
		{
#pragma omp section
			{
#pragma omp atomic
				sections++;
			}
#pragma omp section
			{
#pragma omp atomic
				sections++;
			}
		}
	}
	printf("teams %ld %ld %ld %ld %ld %ld\n", critical, named, locked, sections, copied, all);
}

struct large {
	char bytes[100];
};

static void tasks(void)
{
	struct large large = {{1, 2, 3}};
	long result = 0, seen = 0, looped = 0;

#pragma omp parallel num_threads(3)
#pragma omp single
	result = fibonacci(15);
#pragma omp parallel num_threads(3)
#pragma omp single
	for (int i = 0; i < 10; i++) {
#pragma omp task firstprivate(large, i) shared(seen)
		if (large.bytes[0] == 1 && large.bytes[2] == 3 && i < 10) {
#pragma omp atomic
			seen++;
		}
#pragma omp task if (0) firstprivate(i) shared(seen)
		{
#pragma omp atomic
			seen += i;
		}
#pragma omp task depend(inout : seen) priority(3) shared(seen)
		{
#pragma omp atomic
			seen++;
		}
#pragma omp taskgroup
		{
#pragma omp task shared(seen)
			{
#pragma omp atomic
				seen++;
			}
		}
	}
#pragma omp parallel num_threads(3)
#pragma omp single
	{
#pragma omp taskloop shared(looped)
		for (int i = 0; i < 100; i++) {
#pragma omp atomic
			looped += i;
		}
	}
	printf("tasks %ld %ld %ld\n", result, seen, looped);
}

/* More arguments of a body than fit in registers. */
static void arguments(void)
{
	int a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8, i = 9, j = 10;
	long sum = 0;

#pragma omp parallel num_threads(3) firstprivate(a, b, c, d, e) shared(f, g, h, i, j)              \
	reduction(+ : sum)
	sum += a + b + c + d + e + f + g + h + i + j;
	printf("arguments %ld\n", sum);
}

int main(void)
{
	loops();
	teams();
	tasks();
	arguments();
	return 0;
}
