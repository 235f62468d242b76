/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A library with NCCL's functions that does nothing but look at its arguments: what nccl_calls.c
 * passes must arrive, through whatever is in between. Bcast is made of Broadcast, as in NCCL.
 */
#include "nccl.h"

#include <stdio.h>
#include <stdlib.h>

static void check(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "wrong arguments: %s\n", what);
	abort();
}

static void *pointer(unsigned long number)
{
	return (void *)number;
}

int ncclGetUniqueId(ncclUniqueId *id)
{
	for (int i = 0; i < 128; i++)
		id->internal[i] = (char)i;
	return 0;
}

static void check_id(const ncclUniqueId *id)
{
	for (int i = 0; i < 128; i++)
		check(id->internal[i] == (char)i, "unique id");
}

int ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
	check_id(&id);
	check(nranks == 4 && rank == 3, "init rank");
	*comm = pointer(0xc0);
	return 0;
}

int ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank, void *config)
{
	check_id(&id);
	check(nranks == 4 && rank == 2 && config == pointer(0xcf), "init rank config");
	*comm = pointer(0xc1);
	return 0;
}

int ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm, void *config)
{
	check(comm == pointer(0xc0) && color == 1 && key == -5 && !config, "split");
	*newcomm = pointer(0xc2);
	return 0;
}

int ncclCommDestroy(ncclComm_t comm)
{
	check(comm == pointer(0xc0), "destroy");
	return 0;
}

int ncclAllReduce(const void *send, void *receive, size_t count, int type, int op, ncclComm_t comm,
		  cudaStream_t stream)
{
	check(send == pointer(1) && receive == pointer(2) && count == 5000000000 &&
		      type == ncclFloat && op == ncclMax && comm == pointer(0xc0) &&
		      stream == pointer(0x5),
	      "all reduce");
	return 0;
}

int ncclReduce(const void *send, void *receive, size_t count, int type, int op, int root,
	       ncclComm_t comm, cudaStream_t stream)
{
	check(send == pointer(1) && receive == pointer(2) && count == 10 && type == ncclHalf &&
		      op == 77 && root == 3 && comm == pointer(0xc0) && stream == pointer(0x5),
	      "reduce");
	return 0;
}

int ncclBroadcast(const void *send, void *receive, size_t count, int type, int root,
		  ncclComm_t comm, cudaStream_t stream)
{
	check(send && receive && count == 20 && type == ncclInt64 && root == 1 &&
		      comm == pointer(0xc0) && stream == pointer(0x5),
	      "broadcast");
	return 0;
}

int ncclBcast(void *buffer, size_t count, int type, int root, ncclComm_t comm, cudaStream_t stream)
{
	return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

int ncclAllGather(const void *send, void *receive, size_t count, int type, ncclComm_t comm,
		  cudaStream_t stream)
{
	check(send == pointer(1) && receive == pointer(2) && count == 30 && type == ncclInt8 &&
		      comm == pointer(0xc0) && stream == pointer(0x5),
	      "all gather");
	return 0;
}

int ncclReduceScatter(const void *send, void *receive, size_t count, int type, int op,
		      ncclComm_t comm, cudaStream_t stream)
{
	check(send == pointer(1) && receive == pointer(2) && count == 40 && type == ncclInt32 &&
		      op == ncclAvg && comm == pointer(0xc0) && stream == pointer(0x5),
	      "reduce scatter");
	return 0;
}

int ncclSend(const void *send, size_t count, int type, int peer, ncclComm_t comm,
	     cudaStream_t stream)
{
	check(send == pointer(1) && count == 50 && type == ncclFloat && peer == 2 &&
		      comm == pointer(0xc0) && stream == pointer(0x5),
	      "send");
	return 0;
}

int ncclRecv(void *receive, size_t count, int type, int peer, ncclComm_t comm, cudaStream_t stream)
{
	check(receive == pointer(2) && count == 60 && type == ncclFloat && peer == 1 &&
		      comm == pointer(0xc0) && stream == pointer(0x5),
	      "receive");
	return 6; /* ncclRemoteError: results come back as they are */
}

int ncclGroupStart(void)
{
	return 0;
}

int ncclGroupEnd(void)
{
	return 0;
}
