/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counts calls and bytes of MPI by the profiling interface of the standard, as an independent view
 * of what exchange.c does: a library with MPI_ functions that is preloaded, calling PMPI_ ones. At
 * the end each rank writes lines "NAME CALLS SENT RECEIVED" to $MPI_COUNTS.<rank>.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct counter {
	const char *name;
	unsigned long calls;
	long long sent, received;
};

static struct counter counters[64];

static struct counter *counter(const char *name)
{
	int i = 0;

	while (counters[i].name && strcmp(counters[i].name, name))
		i++;
	counters[i].name = name;
	return &counters[i];
}

static void add(const char *name, long long sent, long long received)
{
	struct counter *at = counter(name);

	at->calls++;
	at->sent += sent;
	at->received += received;
}

static long long bytes(long long count, MPI_Datatype type)
{
	int size;

	PMPI_Type_size(type, &size);
	return count * size;
}

static int rank_in(MPI_Comm comm)
{
	int rank;

	PMPI_Comm_rank(comm, &rank);
	return rank;
}

static int size_of(MPI_Comm comm)
{
	int size;

	PMPI_Comm_size(comm, &size);
	return size;
}

static long long sum_of(const int counts[], MPI_Comm comm)
{
	long long sum = 0;

	for (int i = 0; i < size_of(comm); i++)
		sum += counts[i];
	return sum;
}

static long long got(const MPI_Status *status)
{
	int count;

	PMPI_Get_elements(status, MPI_BYTE, &count);
	return count;
}

#define PLAIN(name, parameters, arguments)                                                         \
	int MPI_##name parameters                                                                  \
	{                                                                                          \
		add("MPI_" #name, 0, 0);                                                           \
		return PMPI_##name arguments;                                                      \
	}

PLAIN(Barrier, (MPI_Comm c), (c))
PLAIN(Comm_dup, (MPI_Comm c, MPI_Comm *n), (c, n))
PLAIN(Comm_free, (MPI_Comm * c), (c))
PLAIN(Comm_rank, (MPI_Comm c, int *r), (c, r))
PLAIN(Comm_set_name, (MPI_Comm c, const char *n), (c, n))
PLAIN(Comm_size, (MPI_Comm c, int *s), (c, s))
PLAIN(Comm_split, (MPI_Comm c, int color, int key, MPI_Comm *n), (c, color, key, n))
PLAIN(Get_count, (const MPI_Status *s, MPI_Datatype t, int *n), (s, t, n))
PLAIN(Init, (int *c, char ***v), (c, v))
PLAIN(Recv_init, (void *b, int n, MPI_Datatype t, int s, int g, MPI_Comm c, MPI_Request *r),
      (b, n, t, s, g, c, r))
PLAIN(Request_free, (MPI_Request * r), (r))
PLAIN(Type_commit, (MPI_Datatype * t), (t))
PLAIN(Type_free, (MPI_Datatype * t), (t))
PLAIN(Type_vector, (int n, int b, int s, MPI_Datatype t, MPI_Datatype *r), (n, b, s, t, r))
PLAIN(Wait, (MPI_Request * r, MPI_Status *s), (r, s))
PLAIN(Win_create, (void *b, MPI_Aint s, int u, MPI_Info i, MPI_Comm c, MPI_Win *w),
      (b, s, u, i, c, w))
PLAIN(Win_fence, (int a, MPI_Win w), (a, w))
PLAIN(Win_free, (MPI_Win * w), (w))

int MPI_Send(const void *b, int n, MPI_Datatype t, int d, int g, MPI_Comm c)
{
	add("MPI_Send", bytes(n, t), 0);
	return PMPI_Send(b, n, t, d, g, c);
}

int MPI_Isend(const void *b, int n, MPI_Datatype t, int d, int g, MPI_Comm c, MPI_Request *r)
{
	add("MPI_Isend", bytes(n, t), 0);
	return PMPI_Isend(b, n, t, d, g, c, r);
}

int MPI_Irecv(void *b, int n, MPI_Datatype t, int s, int g, MPI_Comm c, MPI_Request *r)
{
	add("MPI_Irecv", 0, 0); /* it has received nothing yet */
	return PMPI_Irecv(b, n, t, s, g, c, r);
}

int MPI_Recv(void *b, int n, MPI_Datatype t, int s, int g, MPI_Comm c, MPI_Status *status)
{
	MPI_Status own;
	int result = PMPI_Recv(b, n, t, s, g, c, &own);

	add("MPI_Recv", 0, got(&own));
	if (status != MPI_STATUS_IGNORE)
		*status = own;
	return result;
}

int MPI_Sendrecv(const void *b, int n, MPI_Datatype t, int d, int g, void *rb, int rn,
		 MPI_Datatype rt, int s, int rg, MPI_Comm c, MPI_Status *status)
{
	MPI_Status own;
	int result = PMPI_Sendrecv(b, n, t, d, g, rb, rn, rt, s, rg, c, &own);

	add("MPI_Sendrecv", d == MPI_PROC_NULL ? 0 : bytes(n, t),
	    s == MPI_PROC_NULL ? 0 : got(&own));
	if (status != MPI_STATUS_IGNORE)
		*status = own;
	return result;
}

int MPI_Sendrecv_replace(void *b, int n, MPI_Datatype t, int d, int g, int s, int rg, MPI_Comm c,
			 MPI_Status *status)
{
	add("MPI_Sendrecv_replace", bytes(n, t), bytes(n, t));
	return PMPI_Sendrecv_replace(b, n, t, d, g, s, rg, c, status);
}

/* The only persistent send of the program. */
static MPI_Request persistent_send = MPI_REQUEST_NULL;
static long long persistent_bytes;

int MPI_Send_init(const void *b, int n, MPI_Datatype t, int d, int g, MPI_Comm c, MPI_Request *r)
{
	int result = PMPI_Send_init(b, n, t, d, g, c, r);

	add("MPI_Send_init", 0, 0);
	persistent_send = *r;
	persistent_bytes = bytes(n, t);
	return result;
}

int MPI_Startall(int n, MPI_Request r[])
{
	long long sent = 0;

	for (int i = 0; i < n; i++)
		sent += r[i] == persistent_send ? persistent_bytes : 0;
	add("MPI_Startall", sent, 0);
	return PMPI_Startall(n, r);
}

/* Of requests, sends are told from receives by their place: the receive is the first one. */
int MPI_Waitall(int n, MPI_Request r[], MPI_Status s[])
{
	MPI_Status own[64];
	int result = PMPI_Waitall(n, r, own);

	add("MPI_Waitall", 0, got(&own[0]));
	for (int i = 0; i < n && s != MPI_STATUSES_IGNORE; i++)
		s[i] = own[i];
	return result;
}

int MPI_Put(const void *b, int n, MPI_Datatype t, int r, MPI_Aint at, int rn, MPI_Datatype rt,
	    MPI_Win w)
{
	add("MPI_Put", bytes(n, t), 0);
	return PMPI_Put(b, n, t, r, at, rn, rt, w);
}

static void count_bcast(const char *name, int n, MPI_Datatype t, int root, MPI_Comm c)
{
	long long size = bytes(n, t);

	add(name, root == rank_in(c) ? size : 0, root == rank_in(c) ? 0 : size);
}

int MPI_Bcast(void *b, int n, MPI_Datatype t, int root, MPI_Comm c)
{
	count_bcast("MPI_Bcast", n, t, root, c);
	return PMPI_Bcast(b, n, t, root, c);
}

int MPI_Ibcast(void *b, int n, MPI_Datatype t, int root, MPI_Comm c, MPI_Request *r)
{
	count_bcast("MPI_Ibcast", n, t, root, c);
	return PMPI_Ibcast(b, n, t, root, c, r);
}

int MPI_Reduce(const void *b, void *rb, int n, MPI_Datatype t, MPI_Op o, int root, MPI_Comm c)
{
	add("MPI_Reduce", bytes(n, t), root == rank_in(c) ? bytes(n, t) : 0);
	return PMPI_Reduce(b, rb, n, t, o, root, c);
}

int MPI_Allreduce(const void *b, void *rb, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c)
{
	add("MPI_Allreduce", bytes(n, t), bytes(n, t));
	return PMPI_Allreduce(b, rb, n, t, o, c);
}

int MPI_Scan(const void *b, void *rb, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c)
{
	add("MPI_Scan", bytes(n, t), bytes(n, t));
	return PMPI_Scan(b, rb, n, t, o, c);
}

int MPI_Gather(const void *b, int n, MPI_Datatype t, void *rb, int rn, MPI_Datatype rt, int root,
	       MPI_Comm c)
{
	int is_root = rank_in(c) == root;

	add("MPI_Gather", b == MPI_IN_PLACE ? bytes(rn, rt) : bytes(n, t),
	    is_root ? bytes(rn, rt) * size_of(c) : 0);
	return PMPI_Gather(b, n, t, rb, rn, rt, root, c);
}

int MPI_Gatherv(const void *b, int n, MPI_Datatype t, void *rb, const int rn[], const int at[],
		MPI_Datatype rt, int root, MPI_Comm c)
{
	add("MPI_Gatherv", bytes(n, t), rank_in(c) == root ? bytes(sum_of(rn, c), rt) : 0);
	return PMPI_Gatherv(b, n, t, rb, rn, at, rt, root, c);
}

int MPI_Scatter(const void *b, int n, MPI_Datatype t, void *rb, int rn, MPI_Datatype rt, int root,
		MPI_Comm c)
{
	add("MPI_Scatter", rank_in(c) == root ? bytes(n, t) * size_of(c) : 0, bytes(rn, rt));
	return PMPI_Scatter(b, n, t, rb, rn, rt, root, c);
}

int MPI_Scatterv(const void *b, const int n[], const int at[], MPI_Datatype t, void *rb, int rn,
		 MPI_Datatype rt, int root, MPI_Comm c)
{
	add("MPI_Scatterv", rank_in(c) == root ? bytes(sum_of(n, c), t) : 0, bytes(rn, rt));
	return PMPI_Scatterv(b, n, at, t, rb, rn, rt, root, c);
}

int MPI_Allgather(const void *b, int n, MPI_Datatype t, void *rb, int rn, MPI_Datatype rt,
		  MPI_Comm c)
{
	add("MPI_Allgather", b == MPI_IN_PLACE ? bytes(rn, rt) : bytes(n, t),
	    bytes(rn, rt) * size_of(c));
	return PMPI_Allgather(b, n, t, rb, rn, rt, c);
}

int MPI_Allgatherv(const void *b, int n, MPI_Datatype t, void *rb, const int rn[], const int at[],
		   MPI_Datatype rt, MPI_Comm c)
{
	add("MPI_Allgatherv", bytes(n, t), bytes(sum_of(rn, c), rt));
	return PMPI_Allgatherv(b, n, t, rb, rn, at, rt, c);
}

int MPI_Alltoall(const void *b, int n, MPI_Datatype t, void *rb, int rn, MPI_Datatype rt,
		 MPI_Comm c)
{
	add("MPI_Alltoall", bytes(n, t) * size_of(c), bytes(rn, rt) * size_of(c));
	return PMPI_Alltoall(b, n, t, rb, rn, rt, c);
}

int MPI_Reduce_scatter_block(const void *b, void *rb, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c)
{
	add("MPI_Reduce_scatter_block", bytes(n, t) * size_of(c), bytes(n, t));
	return PMPI_Reduce_scatter_block(b, rb, n, t, o, c);
}

int MPI_Reduce_scatter(const void *b, void *rb, const int n[], MPI_Datatype t, MPI_Op o, MPI_Comm c)
{
	add("MPI_Reduce_scatter", bytes(sum_of(n, c), t), bytes(n[rank_in(c)], t));
	return PMPI_Reduce_scatter(b, rb, n, t, o, c);
}

int MPI_Pcontrol(const int level, ...)
{
	add("MPI_Pcontrol", 0, 0);
	return PMPI_Pcontrol(level);
}

int MPI_Finalize(void)
{
	const char *prefix = getenv("MPI_COUNTS");
	char path[4096];
	FILE *file;

	add("MPI_Finalize", 0, 0);
	snprintf(path, sizeof(path), "%s.%d", prefix ? prefix : "mpi-counts",
		 rank_in(MPI_COMM_WORLD));
	file = fopen(path, "w");
	for (int i = 0; file && counters[i].name; i++)
		fprintf(file, "%s %lu %lld %lld\n", counters[i].name, counters[i].calls,
			counters[i].sent, counters[i].received);
	if (file)
		fclose(file);
	return PMPI_Finalize();
}
