/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The part of NCCL's interface that nccl_calls.c uses, as the user guide of NCCL gives it.
 */
#ifndef TESTS_NCCL_H
#define TESTS_NCCL_H

#include <stddef.h>

typedef struct {
	char internal[128];
} ncclUniqueId;
typedef void *ncclComm_t;
typedef void *cudaStream_t;
enum { ncclInt8, ncclUint8, ncclInt32, ncclUint32, ncclInt64, ncclUint64, ncclHalf, ncclFloat };
enum { ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg };

int ncclGetUniqueId(ncclUniqueId *id);
int ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank);
int ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank, void *config);
int ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm, void *config);
int ncclCommDestroy(ncclComm_t comm);
int ncclAllReduce(const void *send, void *receive, size_t count, int type, int op, ncclComm_t comm,
		  cudaStream_t stream);
int ncclReduce(const void *send, void *receive, size_t count, int type, int op, int root,
	       ncclComm_t comm, cudaStream_t stream);
int ncclBcast(void *buffer, size_t count, int type, int root, ncclComm_t comm, cudaStream_t stream);
int ncclBroadcast(const void *send, void *receive, size_t count, int type, int root,
		  ncclComm_t comm, cudaStream_t stream);
int ncclAllGather(const void *send, void *receive, size_t count, int type, ncclComm_t comm,
		  cudaStream_t stream);
int ncclReduceScatter(const void *send, void *receive, size_t count, int type, int op,
		      ncclComm_t comm, cudaStream_t stream);
int ncclSend(const void *send, size_t count, int type, int peer, ncclComm_t comm,
	     cudaStream_t stream);
int ncclRecv(void *receive, size_t count, int type, int peer, ncclComm_t comm, cudaStream_t stream);
int ncclGroupStart(void);
int ncclGroupEnd(void);

#endif
