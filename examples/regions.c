/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The user API in C. Build and look:
 *
 *     cc regions.c $(pkg-config --cflags --libs kymo) -lm -o regions
 *     kymo sample --trace on --profile on -- ./regions
 *
 * Without kymo the program does the same, and the calls cost next to nothing.
 */
#include <math.h>
#include <stdio.h>

#include <kymo/user.h>

static double solve(int steps)
{
	double sum = 0;

	for (int i = 1; i <= steps * 1000; i++)
		sum += sqrt(i);
	return sum;
}

/* A region with values. They are given by their address. */
static double iteration(int number, int steps)
{
	struct kymo_annotation at_begin[] = {{"iteration", KYMO_INT32, &number},
					     {"solver", KYMO_TEXT, "roots"}};
	struct kymo_annotation at_end = {"sum", KYMO_DOUBLE, NULL};
	double sum;

	kymo_push_annotated_region("iteration", at_begin, 2);
	sum = solve(steps);
	at_end.value = &sum;
	kymo_pop_annotated_region("iteration", &at_end, 1);
	return sum;
}

int main(void)
{
	double total = 0;
	int status;

	kymo_mark("setup done");
	status = kymo_push_region("all iterations");
	for (int i = 0; i < 10; i++) {
		kymo_begin("request");
		total += iteration(i, i + 1);
		kymo_end("request");
		kymo_counter("total", total);
		KYMO_PROGRESS;
	}
	kymo_pop_region("all iterations");

	/* In a category of its own, which DISABLE_CATEGORIES=output turns off. */
	kymo_push_category_region("output", "print", NULL, 0);
	printf("%.3f\n", total);
	kymo_pop_category_region("output", "print", NULL, 0);
	if (status != KYMO_SUCCESS)
		fprintf(stderr, "regions: %s\n", kymo_error_string(status));
	return 0;
}
