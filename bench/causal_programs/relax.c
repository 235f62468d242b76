/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * An OpenMP program of an everyday kind: heat spreads over a plate, the loop over rows is parallel,
 * the sum of differences is not. It knows nothing of profilers; a step is a call of step().
 *
 * usage: relax STEPS
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "relax.h"

#define HEIGHT 512

static double plates[2][HEIGHT][RELAX_WIDTH];

double row_difference(const double *one, const double *other)
{
	double sum = 0;
	for (int i = 0; i < RELAX_WIDTH; i++)
		sum += fabs(one[i] - other[i]);
	return sum;
}

double step(int number);
__attribute__((noinline)) double step(int number)
{
	double(*from)[RELAX_WIDTH] = plates[number % 2], (*to)[RELAX_WIDTH] = plates[!(number % 2)];
	double difference = 0;
#pragma omp parallel for schedule(static) num_threads(2)
	for (int i = 1; i < HEIGHT - 1; i++)
		relax_row(to[i], from[i - 1], from[i], from[i + 1]);
	for (int i = 1; i < HEIGHT - 1; i++)
		difference += row_difference(to[i], from[i]);
	return difference;
}

int main(int argc, char **argv)
{
	int steps = argc > 1 ? atoi(argv[1]) : 100;
	double difference = 0;
	for (int i = 0; i < RELAX_WIDTH; i++)
		plates[0][0][i] = plates[1][0][i] = 100;
	for (int i = 0; i < steps; i++)
		difference = step(i);
	printf("%d steps, difference %.6g\n", steps, difference);
	return 0;
}
