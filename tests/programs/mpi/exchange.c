/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A bit of everything that MPI programs do, the same in every run: point to point, collectives,
 * non-blocking, persistent and one-sided calls, communicators, and arguments that MPI ignores and
 * that are garbage. The counting library (count.c) says what a run must have done.
 *
 * Arguments: rounds (20).
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 100, RANKS_MAX = 64 };

static int rank, size, left, right;
static int buffer[LENGTH * RANKS_MAX], other[LENGTH * RANKS_MAX];

static void check(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "rank %d: %s\n", rank, what);
	MPI_Abort(MPI_COMM_WORLD, 3);
}

static void ring(int round)
{
	MPI_Status status;
	int count;

	buffer[0] = rank * 1000 + round;
	MPI_Sendrecv(buffer, LENGTH, MPI_INT, right, 5, other, LENGTH, MPI_INT, left, 5,
		     MPI_COMM_WORLD, &status);
	MPI_Get_count(&status, MPI_INT, &count);
	check(count == LENGTH && other[0] == left * 1000 + round, "ring");
	/* Shorter than there is room for, and nobody wants to know. */
	if (rank % 2) {
		MPI_Recv(other, LENGTH, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	} else if (rank + 1 < size) {
		MPI_Send(buffer, LENGTH / 2, MPI_INT, rank + 1, round, MPI_COMM_WORLD);
	}
	MPI_Sendrecv(buffer, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, other, 1, MPI_DOUBLE, MPI_PROC_NULL,
		     0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void nonblocking(void)
{
	MPI_Request requests[2];
	MPI_Datatype column;

	MPI_Type_vector(10, 1, 10, MPI_INT, &column);
	MPI_Type_commit(&column);
	MPI_Irecv(other, 1, column, left, 1, MPI_COMM_WORLD, &requests[0]);
	MPI_Isend(buffer, 1, column, right, 1, MPI_COMM_WORLD, &requests[1]);
	MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	MPI_Type_free(&column);
	MPI_Ibcast(buffer, 7, MPI_INT, 0, MPI_COMM_WORLD, &requests[0]);
	MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

static void persistent(void)
{
	MPI_Request requests[2];

	MPI_Recv_init(other, LENGTH, MPI_INT, left, 9, MPI_COMM_WORLD, &requests[0]);
	MPI_Send_init(buffer, LENGTH, MPI_INT, right, 9, MPI_COMM_WORLD, &requests[1]);
	for (int i = 0; i < 3; i++) {
		MPI_Startall(2, requests);
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	}
	MPI_Request_free(&requests[0]);
	MPI_Request_free(&requests[1]);
}

static void collectives(void)
{
	int counts[RANKS_MAX], places[RANKS_MAX];
	long sum = rank, total = 0;

	for (int i = 0; i < size; i++) {
		counts[i] = i + 1;
		places[i] = i * LENGTH;
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Bcast(buffer, LENGTH, MPI_INT, size - 1, MPI_COMM_WORLD);
	MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Allreduce(&sum, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	check(total == (long)size * (size - 1) / 2, "sum");
	MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
	/* What the root sends is in place, what the others receive is ignored: both garbage. */
	if (rank == 0)
		MPI_Gather(MPI_IN_PLACE, -77, MPI_DATATYPE_NULL, buffer, 3, MPI_INT, 0,
			   MPI_COMM_WORLD);
	else
		MPI_Gather(buffer, 3, MPI_INT, NULL, -77, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
	MPI_Gatherv(buffer, rank + 1, MPI_INT, other, rank ? NULL : counts, rank ? NULL : places,
		    MPI_INT, 0, MPI_COMM_WORLD);
	MPI_Scatter(other, 4, MPI_INT, buffer, 4, MPI_INT, 0, MPI_COMM_WORLD);
	MPI_Scatterv(other, rank ? NULL : counts, rank ? NULL : places, MPI_INT, buffer, rank + 1,
		     MPI_INT, 0, MPI_COMM_WORLD);
	MPI_Allgather(buffer, 2, MPI_INT, other, 2, MPI_INT, MPI_COMM_WORLD);
	MPI_Allgather(MPI_IN_PLACE, -77, MPI_DATATYPE_NULL, other, 2, MPI_INT, MPI_COMM_WORLD);
	MPI_Allgatherv(buffer, rank + 1, MPI_INT, other, counts, places, MPI_INT, MPI_COMM_WORLD);
	MPI_Alltoall(buffer, 2, MPI_INT, other, 2, MPI_INT, MPI_COMM_WORLD);
	MPI_Reduce_scatter_block(buffer, other, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Reduce_scatter(buffer, other, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Scan(buffer, other, 6, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

/* Rank 0 of each half talks in the world's numbering as well. */
static void communicators(void)
{
	MPI_Comm half, copy;
	int half_rank, half_size;

	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
	MPI_Comm_set_name(half, rank % 2 ? "odd" : "even");
	MPI_Comm_rank(half, &half_rank);
	MPI_Comm_size(half, &half_size);
	MPI_Sendrecv_replace(buffer, 11, MPI_INT, (half_rank + 1) % half_size, 2,
			     (half_rank + half_size - 1) % half_size, 2, half, MPI_STATUS_IGNORE);
	MPI_Comm_dup(half, &copy);
	MPI_Allreduce(buffer, other, 5, MPI_INT, MPI_SUM, copy);
	MPI_Comm_free(&copy);
	MPI_Comm_free(&half);
}

static void one_sided(void)
{
	MPI_Win window;

	MPI_Win_create(other, sizeof(other), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	MPI_Win_fence(0, window);
	MPI_Put(buffer, 13, MPI_INT, right, 0, 13, MPI_INT, window);
	MPI_Win_fence(0, window);
	MPI_Win_free(&window);
}

int main(int count, char **arguments)
{
	int rounds = count > 1 ? atoi(arguments[1]) : 20;

	MPI_Init(&count, &arguments);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size > RANKS_MAX)
		MPI_Abort(MPI_COMM_WORLD, 2);
	left = (rank + size - 1) % size;
	right = (rank + 1) % size;
	for (int i = 0; i < rounds; i++) {
		ring(i);
		nonblocking();
		collectives();
		communicators();
	}
	persistent();
	one_sided();
	MPI_Pcontrol(0);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Pcontrol(1);
	printf("rank %d of %d done\n", rank, size);
	return MPI_Finalize();
}
