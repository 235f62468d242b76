/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a call of the user API costs a program: nanoseconds a call, the best of some rounds. Bare it
 * measures calls that do nothing; under kymo, calls that record:
 *
 *     bench/user_api
 *     kymo sample -q --sampling-cputime off --trace on --profile off -- bench/user_api
 *     kymo sample -q --sampling-cputime off --trace off --profile on -- bench/user_api
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "kymo/user.h"

enum { CALLS = 200000, ROUNDS = 20 };

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* The loop alone, with a call that the compiler cannot see through. */
static __attribute__((noinline)) int nothing(const char *name)
{
	__asm__ volatile("" : : "r"(name) : "memory");
	return 0;
}

#define MEASURE(what, statement)                                                                   \
	do {                                                                                       \
		double best = 1e18;                                                                \
		for (int round = 0; round < ROUNDS; round++) {                                     \
			double begin = now_ns(), took;                                             \
			for (int call = 0; call < CALLS; call++) {                                 \
				statement;                                                         \
			}                                                                          \
			took = (now_ns() - begin) / CALLS;                                         \
			best = took < best ? took : best;                                          \
		}                                                                                  \
		printf("%-44s %7.2f ns\n", what, best);                                            \
	} while (0)

int main(void)
{
	struct kymo_annotation value = {"number", KYMO_INT32, &(int){42}};
	struct kymo_callbacks before = {.size = sizeof(before)};

	printf("kymo_push_region: %s\n", kymo_error_string(kymo_push_region("start")));
	kymo_pop_region("start");
	MEASURE("an empty function of the program", nothing("name"));
	MEASURE("push + pop", (kymo_push_region("region"), kymo_pop_region("region")));
	MEASURE("push + pop, in a category", (kymo_push_category_region("mine", "region", NULL, 0),
					      kymo_pop_category_region("mine", "region", NULL, 0)));
	MEASURE("push + pop, with a value",
		(kymo_push_annotated_region("region", &value, 1), kymo_pop_region("region")));
	MEASURE("mark", kymo_mark("mark"));
	MEASURE("counter", kymo_counter("counter", call));
	MEASURE("progress", kymo_progress("progress"));
	/* Replaced by itself, as a program that chains does. */
	kymo_set_callbacks(NULL, &before);
	before.size = offsetof(struct kymo_callbacks, annotate);
	kymo_set_callbacks(&before, NULL);
	MEASURE("push + pop, put back after a replacement",
		(kymo_push_region("region"), kymo_pop_region("region")));
	return 0;
}
