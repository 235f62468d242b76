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
	int64_t sent[2];    /* halo(): to the right, to the left */
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
	MPI_Allgather(own, 4, MPI_INT64_T, all, 4, MPI_INT64_T, MPI_COMM_WORLD);
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

/* Rank 1 sends late to both sides. */
static __attribute__((noinline)) void halo(struct times *own)
{
	int left = (rank + size - 1) % size, right = (rank + 1) % size, data[2], got[2];
	MPI_Request requests[4];

	MPI_Irecv(&got[0], 1, MPI_INT, left, 3, MPI_COMM_WORLD, &requests[0]);
	MPI_Irecv(&got[1], 1, MPI_INT, right, 4, MPI_COMM_WORLD, &requests[1]);
	data[0] = data[1] = rank;
	if (rank == 1)
		be_late();
	own->sent[0] = now();
	MPI_Isend(&data[0], 1, MPI_INT, right, 3, MPI_COMM_WORLD, &requests[2]);
	own->sent[1] = now();
	MPI_Isend(&data[1], 1, MPI_INT, left, 4, MPI_COMM_WORLD, &requests[3]);
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
};

static const struct phase phases[] = {
	{"late_sender", "late_sender", late_sender},
	{"late_receiver", "late_receiver", late_receiver},
	{"halo", "late_sender", halo},
	{"barrier", "wait_at_barrier", barrier},
	{"allreduce", "wait_at_collective", allreduce},
	{"broadcast", "late_broadcast", broadcast},
	{"reduce", "early_reduce", reduce},
};

/* The last of the ranks that `waiter` may wait for. */
static int find_last(const struct phase *phase, const struct times *all, int waiter)
{
	int last = -1, step = phase->run == allreduce ? 2 : 1;

	for (int i = step == 2 ? waiter % 2 : 0; i < size; i += step) {
		if ((phase->run != reduce || i != waiter) &&
		    (last < 0 || all[i].begin > all[last].begin))
			last = i;
	}
	return last;
}

/* Whom this rank waits for, and until when; -1: nobody. */
static int find_cause(const struct phase *phase, const struct times *all, int waiter,
		      int64_t *ret_until)
{
	int left = (waiter + size - 1) % size, right = (waiter + 1) % size, cause;

	if (phase->run == halo) {
		int64_t from_left = all[left].sent[0], from_right = all[right].sent[1];

		*ret_until = from_left > from_right ? from_left : from_right;
		return from_left > from_right ? left : right;
	}
	if (phase->run == late_sender || phase->run == late_receiver)
		cause = waiter ? -1 : size - 1;
	else if (phase->run == broadcast)
		cause = waiter == 1 ? -1 : 1;
	else
		cause = phase->run == reduce && waiter ? -1 : find_last(phase, all, waiter);
	if (cause >= 0)
		*ret_until = all[cause].begin;
	return cause == waiter ? -1 : cause;
}

static void run_phase(const struct phase *phase)
{
	struct times own = {0, 0, {0, 0}}, all[RANKS_MAX];
	int64_t sums[RANKS_MAX] = {0}, until;

	for (int round = 0; round < rounds; round++) {
		phase->run(&own);
		share_times(&own, all);
		for (int i = 0; i < size; i++) {
			int cause = find_cause(phase, all, i, &until);

			if (cause >= 0)
				sums[cause] += waited(&all[i], until);
		}
	}
	for (int cause = 0; cause < size; cause++) {
		if (sums[cause])
			tell(phase->name, phase->state, cause, sums[cause]);
	}
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
