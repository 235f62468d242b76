/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Four threads a rank that exchange messages with MPI_THREAD_MULTIPLE, around the ring. Each rank
 * says what it sent and received, as matrix.c does.
 *
 * Arguments: messages of each thread (500).
 */
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, ROOM = 100 };

static int rank, size, messages = 500;

static int length(int message, int thread)
{
	return 1 + (message + thread) % ROOM;
}

static void *exchange(void *argument)
{
	int thread = (int)(intptr_t)argument, out[ROOM] = {0}, in[ROOM];
	MPI_Request request;

	for (int i = 0; i < messages; i++) {
		MPI_Irecv(in, ROOM, MPI_INT, MPI_ANY_SOURCE, thread, MPI_COMM_WORLD, &request);
		MPI_Send(out, length(i, thread), MPI_INT, (rank + 1) % size, thread,
			 MPI_COMM_WORLD);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	return NULL;
}

int main(int count, char **arguments)
{
	pthread_t threads[THREADS];
	long long sum = 0;
	int provided;

	if (count > 1)
		messages = atoi(arguments[1]);
	MPI_Init_thread(&count, &arguments, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (provided < MPI_THREAD_MULTIPLE)
		MPI_Abort(MPI_COMM_WORLD, 2);
	for (intptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, exchange, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int thread = 0; thread < THREADS; thread++) {
		for (int i = 0; i < messages; i++)
			sum += (long long)sizeof(int) * length(i, thread);
	}
	for (int peer = 0; peer < size; peer++)
		printf("%d sent %d %lld\n%d received %d %lld\n", rank, peer,
		       peer == (rank + 1) % size ? sum : 0, rank, peer,
		       peer == (rank + size - 1) % size ? sum : 0);
	return MPI_Finalize();
}
