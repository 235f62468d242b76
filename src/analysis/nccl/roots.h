/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What holds a job up, over all of its communicators. A rank that waits in an operation waits for
 * those that have not entered it; these may themselves wait in operations of other communicators.
 * Who is waited for and waits nowhere is a *root*, the others are victims. Where everybody waits
 * for somebody that waits, there is a *cycle* (two ranks that send to each other first, say), and
 * where all ranks are in an operation that does not end, the operation itself is what hangs.
 */
#ifndef KYMO_ANALYSIS_NCCL_ROOTS_H
#define KYMO_ANALYSIS_NCCL_ROOTS_H

#include "analysis/nccl/hang.h"

/* `waiter` waits in `stuck` for `awaited`; both are indexes in nccl_data.job_ranks. */
struct nccl_wait_edge {
	uint32_t waiter, awaited, stuck;
};

enum nccl_hang_root_kind {
	NCCL_ROOT_RANK,       /* waits in no operation that was recorded */
	NCCL_ROOT_NO_RECORDS, /* a rank of which there are no records: what it does is not known */
	NCCL_ROOT_DIFFERS,    /* waits in a call that is not that of the others (calls.h) */
	NCCL_ROOT_CYCLE,      /* ranks that wait for each other */
	NCCL_ROOT_ALL_ARE_INSIDE /* of an operation; nobody is waited for */
};

struct nccl_hang_root {
	enum nccl_hang_root_kind kind;
	uint32_t job_rank;     /* RANK; CYCLE: one of it */
	uint32_t stuck;        /* NO_RECORDS, ALL_ARE_INSIDE: index in stuck_operations */
	int32_t rank;          /* NO_RECORDS: in the communicator of `stuck` */
	uint32_t victim_count; /* that wait for it, directly or behind others */
	uint32_t direct_count; /* of them, directly */
	bool is_unsure;        /* its records are not complete */
};

struct nccl_hang_roots {
	struct nccl_wait_edge *edges; /* by waiter */
	size_t edge_count, edge_capacity;
	struct nccl_hang_root *roots; /* most victims first; 64 at most */
	size_t root_count, root_capacity;
};

/* 0 or -ENOMEM. */
int nccl_find_hang_roots(const struct nccl_data *data, const struct nccl_hang_findings *hang,
			 struct nccl_hang_roots *ret);
void nccl_hang_roots_deinit(struct nccl_hang_roots *roots);
/* The ranks of a cycle that `from` is in, in the order in which they wait; their number. */
size_t nccl_list_cycle(const struct nccl_hang_roots *roots, uint32_t job_rank_count, uint32_t from,
		       struct nccl_wait_edge *ret, size_t most);

#endif
