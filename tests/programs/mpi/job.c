/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Jobs of MPI for `kymo merge`, in which what it must find is planted:
 *
 *   job stencil STEPS LATE   a halo exchange and a reduction a step; rank LATE (-1: none) relaxes
 *                            its cells four times, the extra three in relax_again()
 *   job sleep STEPS LATE     the same, but rank LATE sleeps instead
 *   job workers TASKS        rank 0 hands out tasks one by one, the others compute them
 *   job killed STEPS WHO     as stencil, but rank WHO kills itself with SIGKILL in the middle
 *
 * Each rank writes on standard output: rank, CPU time of its relax() and of its relax_again() in us
 * by CLOCK_THREAD_CPUTIME_ID, and how many reductions it took part in.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CELLS = 1 << 15, SWEEPS = 12, TAG_TASK = 1, TAG_STOP = 2 };

static double cells[2][CELLS + 2];
static double relax_us, again_us;

static double cpu_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void sweep(int from)
{
	for (int i = 1; i <= CELLS; i++)
		cells[!from][i] =
			(cells[from][i - 1] + cells[from][i] * 2 + cells[from][i + 1]) / 4;
}

__attribute__((noinline)) void relax(void);
__attribute__((noinline)) void relax_again(void);

void relax(void)
{
	double begin = cpu_us();

	for (int i = 0; i < SWEEPS; i++)
		sweep(i & 1);
	relax_us += cpu_us() - begin;
}

void relax_again(void)
{
	double begin = cpu_us();

	for (int i = 0; i < 3 * SWEEPS; i++)
		sweep(i & 1);
	again_us += cpu_us() - begin;
}

static void exchange_halo(int rank, int size)
{
	int left = (rank + size - 1) % size, right = (rank + 1) % size;

	MPI_Sendrecv(&cells[0][1], 1, MPI_DOUBLE, left, 0, &cells[0][CELLS + 1], 1, MPI_DOUBLE,
		     right, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Sendrecv(&cells[0][CELLS], 1, MPI_DOUBLE, right, 0, &cells[0][0], 1, MPI_DOUBLE, left,
		     0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void run_steps(const char *mode, int steps, int who, int rank, int size)
{
	double sum = 0;

	for (int i = 0; i < steps; i++) {
		relax();
		if (rank == who && !strcmp(mode, "stencil"))
			relax_again();
		if (rank == who && !strcmp(mode, "sleep"))
			usleep(4000);
		if (rank == who && !strcmp(mode, "killed") && i == steps / 2)
			raise(SIGKILL);
		exchange_halo(rank, size);
		MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	}
}

static int serve_tasks(int tasks, int size)
{
	int given = 0, done = 0, stopped = 0, task;

	while (stopped < size - 1) {
		MPI_Status status;

		MPI_Recv(&task, 1, MPI_INT, MPI_ANY_SOURCE, TAG_TASK, MPI_COMM_WORLD, &status);
		done += task >= 0;
		stopped += given == tasks;
		MPI_Send(&given, 1, MPI_INT, status.MPI_SOURCE,
			 given == tasks ? TAG_STOP : TAG_TASK, MPI_COMM_WORLD);
		given += given < tasks;
	}
	return done;
}

static int work_on_tasks(void)
{
	int task = -1, done = 0;
	MPI_Status status;

	for (;;) {
		MPI_Send(&task, 1, MPI_INT, 0, TAG_TASK, MPI_COMM_WORLD);
		MPI_Recv(&task, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
		if (status.MPI_TAG == TAG_STOP)
			return done;
		relax();
		done++;
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "stencil";
	int count = argc > 2 ? atoi(argv[2]) : 100, who = argc > 3 ? atoi(argv[3]) : -1, rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	cells[0][rank + 1] = 1;
	if (strcmp(mode, "workers"))
		run_steps(mode, count, who, rank, size);
	else
		count = rank ? work_on_tasks() : serve_tasks(count, size);
	printf("rank %d relax %.0f again %.0f count %d\n", rank, relax_us, again_us, count);
	MPI_Finalize();
	return 0;
}
