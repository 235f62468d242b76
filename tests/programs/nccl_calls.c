/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Calls NCCL as nccl_fake.c expects it.
 */
#include "nccl.h"

#include <stdio.h>
#include <stdlib.h>

static void *pointer(unsigned long number)
{
	return (void *)number;
}

static void check(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "wrong result: %s\n", what);
	abort();
}

int main(void)
{
	void *stream = pointer(0x5), *send = pointer(1), *receive = pointer(2);
	ncclComm_t comm, other;
	ncclUniqueId id;

	ncclGetUniqueId(&id);
	check(!ncclCommInitRank(&comm, 4, id, 3) && comm == pointer(0xc0), "init rank");
	check(!ncclCommInitRankConfig(&other, 4, id, 2, pointer(0xcf)) && other == pointer(0xc1),
	      "init rank config");
	check(!ncclCommSplit(comm, 1, -5, &other, NULL) && other == pointer(0xc2), "split");
	ncclAllReduce(send, receive, 5000000000, ncclFloat, ncclMax, comm, stream);
	ncclReduce(send, receive, 10, ncclHalf, 77, 3, comm, stream);
	ncclBcast(receive, 20, ncclInt64, 1, comm, stream);
	ncclAllGather(send, receive, 30, ncclInt8, comm, stream);
	ncclReduceScatter(send, receive, 40, ncclInt32, ncclAvg, comm, stream);
	for (int i = 0; i < 10; i++) {
		ncclGroupStart();
		ncclSend(send, 50, ncclFloat, 2, comm, stream);
		check(ncclRecv(receive, 60, ncclFloat, 1, comm, stream) == 6, "receive");
		ncclGroupEnd();
	}
	ncclCommDestroy(comm);
	puts("ok");
	return 0;
}
