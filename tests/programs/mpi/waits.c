/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Ranks that make others wait, in each way that has a name, a function each. Rank 0 says at the end
 * how long each function's calls must have waited, from times that the ranks took themselves before
 * and after these calls: "truth FUNCTION STATE CAUSE NS".
 *
 * Arguments: rounds (8), milliseconds that the late rank is late (12).
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { RANKS_MAX = 64 };

static int rank, size, rounds = 8, late_ms = 12;

struct times {
	int64_t begin, end; /* of the call that waits, or is waited for */
};

static int64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_BOOTTIME, &time);
	return time.tv_sec * 1000000000 + time.tv_nsec;
}

static void be_late(void)
{
	struct timespec time = {0, late_ms * 1000000L};

	nanosleep(&time, NULL);
}

/* Of all ranks, in all of them. Its own waiting is another function's. */
static __attribute__((noinline)) void share_times(const struct times *own, struct times *all)
{
	MPI_Allgather(own, 2, MPI_INT64_T, all, 2, MPI_INT64_T, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
}

static int64_t waited(const struct times *waiter, int64_t until)
{
	if (until > waiter->end)
		until = waiter->end;
	return until > waiter->begin ? until - waiter->begin : 0;
}

static void tell(const char *function, const char *state, int cause, int64_t ns)
{
	if (!rank)
		printf("truth %s %s %d %lld\n", function, state, cause, (long long)ns);
}

static __attribute__((noinline)) void late_sender(struct times *own)
{
	int data = 7;

	own->begin = own->end = now();
	if (rank == size - 1) {
		be_late();
		own->begin = now();
		MPI_Send(&data, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
	} else if (rank == 0) {
		MPI_Recv(&data, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		own->end = now();
	}
}

static __attribute__((noinline)) void late_receiver(struct times *own)
{
	int data = 7;

	own->begin = own->end = now();
	if (rank == 0) {
		MPI_Ssend(&data, 1, MPI_INT, size - 1, 2, MPI_COMM_WORLD);
		own->end = now();
	} else if (rank == size - 1) {
		be_late();
		own->begin = now();
		MPI_Recv(&data, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

/* Rank 1 sends late to both sides; `begin` of the others is when they wait, its own when it sends.
 */
static __attribute__((noinline)) void halo(struct times *own)
{
	int left = (rank + size - 1) % size, right = (rank + 1) % size, data[2], got[2];
	MPI_Request requests[4];

	MPI_Irecv(&got[0], 1, MPI_INT, left, 3, MPI_COMM_WORLD, &requests[0]);
	MPI_Irecv(&got[1], 1, MPI_INT, right, 4, MPI_COMM_WORLD, &requests[1]);
	data[0] = data[1] = rank;
	if (rank == 1)
		be_late();
	own->begin = now();
	MPI_Isend(&data[0], 1, MPI_INT, right, 3, MPI_COMM_WORLD, &requests[2]);
	MPI_Isend(&data[1], 1, MPI_INT, left, 4, MPI_COMM_WORLD, &requests[3]);
	if (rank != 1)
		own->begin = now();
	MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
	own->end = now();
}

static __attribute__((noinline)) void barrier(struct times *own)
{
	if (rank == size - 1)
		be_late();
	own->begin = now();
	MPI_Barrier(MPI_COMM_WORLD);
	own->end = now();
}

static MPI_Comm half; /* even and odd ranks, in the reverse order */

static __attribute__((noinline)) void allreduce(struct times *own)
{
	int one = 1, sum;

	if (rank == 0)
		be_late();
	own->begin = now();
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, half);
	own->end = now();
}

static __attribute__((noinline)) void broadcast(struct times *own)
{
	int data = 1;

	if (rank == 1)
		be_late();
	own->begin = now();
	MPI_Bcast(&data, 1, MPI_INT, 1, MPI_COMM_WORLD);
	own->end = now();
}

static __attribute__((noinline)) void reduce(struct times *own)
{
	int one = 1, sum;

	if (rank == 1)
		be_late();
	own->begin = now();
	MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	own->end = now();
}

struct phase {
	const char *name, *state;
	void (*run)(struct times *own);
	int cause; /* negative: from the end */
};

static const struct phase phases[] = {
	{"late_sender", "late_sender", late_sender, -1},
	{"late_receiver", "late_receiver", late_receiver, -1},
	{"halo", "late_sender", halo, 1},
	{"barrier", "wait_at_barrier", barrier, -1},
	{"allreduce", "wait_at_collective", allreduce, 0},
	{"broadcast", "late_broadcast", broadcast, 1},
	{"reduce", "early_reduce", reduce, 1},
};

/* Does this rank wait for the cause in the phase? */
static int waits(const struct phase *phase, int waiter, int cause)
{
	if (waiter == cause)
		return 0;
	if (phase->run == late_sender || phase->run == late_receiver || phase->run == reduce)
		return waiter == 0;
	if (phase->run == halo)
		return (waiter + 1) % size == cause || (cause + 1) % size == waiter;
	if (phase->run == allreduce)
		return waiter % 2 == cause % 2;
	return 1;
}

static void run_phase(const struct phase *phase)
{
	int cause = phase->cause < 0 ? size + phase->cause : phase->cause;
	struct times own, all[RANKS_MAX];
	int64_t sum = 0;

	for (int round = 0; round < rounds; round++) {
		phase->run(&own);
		share_times(&own, all);
		for (int i = 0; i < size; i++) {
			if (waits(phase, i, cause))
				sum += waited(&all[i], all[cause].begin);
		}
	}
	tell(phase->name, phase->state, cause, sum);
}

int main(int count, char **arguments)
{
	if (count > 1)
		rounds = atoi(arguments[1]);
	if (count > 2)
		late_ms = atoi(arguments[2]);
	MPI_Init(&count, &arguments);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
	MPI_Barrier(MPI_COMM_WORLD);
	for (size_t i = 0; i < sizeof(phases) / sizeof(*phases); i++)
		run_phase(&phases[i]);
	MPI_Comm_free(&half);
	return MPI_Finalize();
}
