/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Messages by a generated matrix: in each round every rank sends to every other one as many
 * messages of such sizes as a formula says, and receives them in one of the ways that MPI has. The
 * last lines say what the formula gives for each pair of ranks, which a profiler must agree with.
 *
 * Arguments: seed (1).
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS_MAX = 64, ROOM = 1024, MESSAGES_MAX = RANKS_MAX * 3 };

static int rank, size, members, member; /* in the world; in the communicator of the round */
static unsigned seed = 1;
static MPI_Comm comm;
static char out[MESSAGES_MAX][ROOM], in[MESSAGES_MAX][ROOM];
static MPI_Request sends[MESSAGES_MAX], receives[MESSAGES_MAX];
static MPI_Status statuses[MESSAGES_MAX];
static int indices[MESSAGES_MAX];
static long long sent_to[RANKS_MAX], received_from[RANKS_MAX];

static void check(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "rank %d: %s\n", rank, what);
	MPI_Abort(MPI_COMM_WORLD, 3);
}

static unsigned mix(unsigned a, unsigned b, unsigned c, unsigned d)
{
	unsigned long long hash = seed;

	for (int i = 0; i < 4; i++)
		hash = (hash ^ (i == 0   ? a
				: i == 1 ? b
				: i == 2 ? c
					 : d)) *
		       0x9e3779b97f4a7c15ull,
		hash ^= hash >> 29;
	return (unsigned)(hash >> 20);
}

static int messages(int round, int from, int to)
{
	return from == to ? 0 : (int)(mix((unsigned)round, (unsigned)from, (unsigned)to, 99) % 4);
}

static int bytes(int round, int from, int to, int number)
{
	return 8 + (int)(mix((unsigned)round, (unsigned)from, (unsigned)to, (unsigned)number) %
			 (ROOM - 8));
}

static void send_one(int round, int how, int to, const char *buffer, int count, int tag, int number)
{
	sends[number] = MPI_REQUEST_NULL;
	switch (how % 6) {
	case 0:
		MPI_Isend(buffer, count, MPI_BYTE, to, tag, comm, &sends[number]);
		break;
	case 1:
		MPI_Issend(buffer, count, MPI_BYTE, to, tag, comm, &sends[number]);
		break;
	case 2:
		MPI_Send_init(buffer, count, MPI_BYTE, to, tag, comm, &sends[number]);
		MPI_Start(&sends[number]);
		break;
	case 3:
		MPI_Ibsend(buffer, count, MPI_BYTE, to, tag, comm, &sends[number]);
		break;
#if MPI_VERSION >= 4
	case 4:
		MPI_Isend_c(buffer, count, MPI_BYTE, to, tag, comm, &sends[number]);
		break;
#endif
	default:
		MPI_Send(buffer, count, MPI_BYTE, to, tag, comm); /* small: it does not wait */
	}
	(void)round;
}

static int send_all(int round)
{
	int number = 0;

	for (int to = 0; to < members; to++) {
		for (int i = 0; i < messages(round, member, to); i++, number++) {
			int count = bytes(round, member, to, i);

			memcpy(out[number], (int[]){member, count}, 8);
			send_one(round, round + number, to, out[number], count, i, number);
		}
	}
	return number;
}

static int expected(int round)
{
	int number = 0;

	for (int from = 0; from < members; from++)
		number += messages(round, from, member);
	return number;
}

static void post_all(int count)
{
	for (int i = 0; i < count; i++)
		MPI_Irecv(in[i], ROOM, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &receives[i]);
}

static void receive_blocking(int count)
{
	for (int i = 0; i < count; i++)
		MPI_Recv(in[i], ROOM, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm,
			 MPI_STATUS_IGNORE);
}

static void receive_waitall(int count)
{
	post_all(count);
	MPI_Waitall(count, receives, MPI_STATUSES_IGNORE);
}

static void receive_waitany(int count)
{
	int index;

	post_all(count);
	for (int i = 0; i < count; i++)
		MPI_Waitany(count, receives, &index, MPI_STATUS_IGNORE);
	MPI_Waitany(count, receives, &index, MPI_STATUS_IGNORE);
	check(index == MPI_UNDEFINED, "Waitany of nothing");
}

static void receive_waitsome(int count)
{
	int done = 0, some;

	post_all(count);
	while (done < count) {
		MPI_Waitsome(count, receives, &some, indices,
			     done % 2 ? MPI_STATUSES_IGNORE : statuses);
		done += some;
	}
}

static void receive_wait(int count)
{
	post_all(count);
	for (int i = count; i-- > 0;)
		MPI_Wait(&receives[i], i % 2 ? MPI_STATUS_IGNORE : &statuses[0]);
}

static void receive_test(int count)
{
	int flag = 0, index, some;

	post_all(count);
	for (int i = 0; i < count && i < 2; i++) {
		for (flag = 0; !flag;)
			MPI_Test(&receives[i], &flag, MPI_STATUS_IGNORE);
	}
	for (int i = 2; i < count && i < 4; i++) {
		for (flag = 0; !flag;)
			MPI_Testany(count, receives, &index, &flag, MPI_STATUS_IGNORE);
	}
	for (some = 0; some == 0;)
		MPI_Testsome(count, receives, &some, indices, MPI_STATUSES_IGNORE);
	for (flag = 0; !flag;)
		MPI_Testall(count, receives, &flag, MPI_STATUSES_IGNORE);
}

static void receive_matched(int count)
{
	MPI_Message message;
	int flag;

	for (int i = 0; i < count; i++) {
		if (i % 2) {
			MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &message, MPI_STATUS_IGNORE);
			MPI_Mrecv(in[i], ROOM, MPI_BYTE, &message, MPI_STATUS_IGNORE);
			continue;
		}
		for (flag = 0; !flag;)
			MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, &message,
				    MPI_STATUS_IGNORE);
		MPI_Imrecv(in[i], ROOM, MPI_BYTE, &message, &receives[i]);
		MPI_Wait(&receives[i], MPI_STATUS_IGNORE);
	}
}

static void receive_probed(int count)
{
	for (int i = 0; i < count; i++) {
		MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &statuses[0]);
		MPI_Recv(in[i], ROOM, MPI_BYTE, statuses[0].MPI_SOURCE, statuses[0].MPI_TAG, comm,
			 MPI_STATUS_IGNORE);
	}
}

/* Each request is started twice: in this round and by receive_persistent_again(). */
static void receive_persistent(int count)
{
	for (int i = 0; i < count; i++)
		MPI_Recv_init(in[i], ROOM, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm,
			      &receives[i]);
	MPI_Waitall(count, receives, MPI_STATUSES_IGNORE); /* they rest: nothing to wait for */
	MPI_Startall(count, receives);
	MPI_Waitall(count, receives, MPI_STATUSES_IGNORE);
	MPI_Waitall(count, receives, MPI_STATUSES_IGNORE);
	for (int i = 0; i < count; i++)
		MPI_Request_free(&receives[i]);
}

static void receive_after_cancelled(int count)
{
	MPI_Request never, nobody;
	MPI_Status status;
	int cancelled;

	MPI_Irecv(out[MESSAGES_MAX - 1], 8, MPI_BYTE, MPI_ANY_SOURCE, 12345, comm, &never);
	MPI_Irecv(out[MESSAGES_MAX - 1], 8, MPI_BYTE, MPI_PROC_NULL, 0, comm, &nobody);
	MPI_Wait(&nobody, MPI_STATUS_IGNORE);
	receive_waitall(count);
	MPI_Cancel(&never);
	MPI_Wait(&never, &status);
	MPI_Test_cancelled(&status, &cancelled);
	check(cancelled, "nothing came, and it was not cancelled");
}

static void (*const ways[])(int count) = {
	receive_blocking,        receive_waitall, receive_waitany,
	receive_waitsome,        receive_wait,    receive_test,
	receive_matched,         receive_probed,  receive_persistent,
	receive_after_cancelled,
};
enum { WAYS = sizeof(ways) / sizeof(*ways) };

static void add_truth(int round, const int world_ranks[])
{
	for (int peer = 0; peer < members; peer++) {
		for (int i = 0; i < messages(round, member, peer); i++)
			sent_to[world_ranks[peer]] += bytes(round, member, peer, i);
		for (int i = 0; i < messages(round, peer, member); i++)
			received_from[world_ranks[peer]] += bytes(round, peer, member, i);
	}
}

static void run_round(int round, const int world_ranks[])
{
	int count, outgoing;

	MPI_Comm_size(comm, &members);
	MPI_Comm_rank(comm, &member);
	outgoing = send_all(round);
	count = expected(round);
	ways[round % WAYS](count);
	MPI_Waitall(outgoing, sends, MPI_STATUSES_IGNORE);
	for (int i = 0; i < outgoing; i++) {
		if (sends[i] != MPI_REQUEST_NULL)
			MPI_Request_free(&sends[i]);
	}
	for (int i = 0; i < count; i++) {
		int head[2];

		memcpy(head, in[i], 8);
		check(head[0] >= 0 && head[0] < members && head[1] >= 8 && head[1] <= ROOM,
		      "content");
	}
	add_truth(round, world_ranks);
	MPI_Barrier(comm);
}

/* Sendrecv with anyone, around the ring. */
static void run_ring(void)
{
	int right = (rank + 1) % size, left = (rank + size - 1) % size;

	MPI_Sendrecv(out[0], 77, MPI_BYTE, right, 7, in[0], ROOM, MPI_BYTE, MPI_ANY_SOURCE,
		     MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Sendrecv_replace(out[0], 33, MPI_BYTE, right, 8, MPI_ANY_SOURCE, 8, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
	sent_to[right] += 110;
	received_from[left] += 110;
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int count, char **arguments)
{
	int world[RANKS_MAX], half_ranks[RANKS_MAX], halves = 0;
	static char buffered[MESSAGES_MAX * (ROOM + 512)];
	MPI_Comm half, copy;
	MPI_Request made;

	seed = count > 1 ? (unsigned)atoi(arguments[1]) : 1;
	MPI_Init(&count, &arguments);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Buffer_attach(buffered, sizeof(buffered));
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
	MPI_Comm_idup(half, &copy, &made);
	MPI_Wait(&made, MPI_STATUS_IGNORE);
	for (int i = size; i-- > 0;) {
		world[i] = i;
		if (i % 2 == rank % 2)
			half_ranks[halves++] = i;
	}
	for (int round = 0; round < 2 * WAYS; round++) {
		comm = round < WAYS ? MPI_COMM_WORLD : round % 2 ? half : copy;
		run_round(round, round < WAYS ? world : half_ranks);
	}
	run_ring();
	for (int peer = 0; peer < size; peer++)
		printf("%d sent %d %lld\n%d received %d %lld\n", rank, peer, sent_to[peer], rank,
		       peer, received_from[peer]);
	MPI_Comm_free(&copy);
	MPI_Comm_free(&half);
	return MPI_Finalize();
}
