/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * An MPI program for the guides: ranks compute and agree on a residual in each step. The last rank
 * has half as much work again as the others, so that all others wait for it in MPI_Allreduce().
 *
 *     mpicc -O2 -g stencil.c -o stencil
 *     mpirun -n 2 ./stencil [STEPS]
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define CELLS 200000

static double cells[2][CELLS];

__attribute__((noinline)) static double relax(int from, int sweeps)
{
	double residual = 0;

	for (int sweep = 0; sweep < sweeps; sweep++) {
		const double *old = cells[(from + sweep) % 2];
		double *new = cells[(from + sweep + 1) % 2];

		residual = 0;
		for (int i = 1; i < CELLS - 1; i++) {
			double change;

			new[i] = (old[i - 1] + old[i] + old[i + 1]) / 3;
			change = new[i] - old[i];
			residual += change * change;
		}
	}
	return residual;
}

int main(int argument_count, char **arguments)
{
	int steps = argument_count > 1 ? atoi(arguments[1]) : 200;
	int rank, size, sweeps;
	double own, all = 0;

	MPI_Init(&argument_count, &arguments);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	sweeps = rank == size - 1 ? 12 : 8;
	cells[0][CELLS / 2] = cells[1][CELLS / 2] = 1;
	for (int step = 0; step < steps; step++) {
		own = relax(0, sweeps);
		MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	}
	if (rank == 0)
		printf("residual %g after %d steps\n", all, steps);
	MPI_Finalize();
	return 0;
}
