/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Collectives over ranks: who entered last, how much of the time was waiting for it, who skipped
 * or called something else; and how fast the links between ranks are.
 *
 * A collective is what NCCL counts: the n-th call of a function in a communicator. In the kernel a
 * rank waits until the others are there, so the shortest duration over the ranks is the transfer,
 * what others take longer is waiting, and the rank with the shortest one was the last to enter.
 * Where the clocks tell better, they do.
 *
 * Two passes over all files, one after the other; memory grows with the number of collectives, not
 * with that of ranks.
 */
#ifndef KYMO_ANALYSIS_NCCL_JOIN_H
#define KYMO_ANALYSIS_NCCL_JOIN_H

#include "analysis/nccl.h"

/* How it is known who entered last. */
enum nccl_lateness {
	NCCL_LATENESS_UNKNOWN,
	NCCL_LATENESS_CLOCK,   /* when each began to run; the differences are larger than errors */
	NCCL_LATENESS_DURATION /* the one with the shortest duration */
};

struct nccl_collective {
	uint32_t team, function;
	uint64_t sequence;
	uint32_t seen, in_flight, timed, shared; /* ranks */
	uint32_t first_member, last_member;      /* to begin, by clocks */
	uint32_t shortest_member, longest_member;
	uint64_t first_ns, last_ns, end_ns; /* begin of first and last, last end; 0 unknown */
	uint64_t error_ns;                  /* of these; UINT64_MAX unknown */
	uint64_t shortest_ns, longest_ns, sum_ns;
	uint64_t size_bytes, bytes, type_hash;
	uint32_t described_member; /* of whom these are */
	uint32_t different_member; /* one that has others; NCCL_NONE */
	uint32_t problem;          /* index in nccl_joined.problems; NCCL_NONE */
	uint32_t next;             /* of the same slot of the table, + 1 */
};

/* A collective that not all ranks with records took part in, or not alike. */
struct nccl_join_problem {
	uint32_t collective;
	uint64_t *present; /* bit a place in the team's `members` */
	/* Ranks that have later ones, that never came so far, and whose records are not complete.
	 */
	uint32_t unseen, absent, unknown;
};

/* Calls of a function that a rank makes with another size, type or root than the first rank that
 * was read. NCCL counts the calls of each rank for itself, so one that left out a call goes on
 * under the same numbers with the calls that the others make one later. */
struct nccl_difference {
	uint64_t count, first_sequence;
	uint64_t as_next, as_previous; /* of them: like the others' next, or previous, call */
	uint32_t other_member;
};

/* Of one rank in one communicator. */
struct nccl_rank_sum {
	uint64_t joined;      /* timed collectives with others */
	uint64_t last;        /* of them: it was the last to enter */
	uint64_t caused_ns;   /* how long the longest waiting rank waited for it, then */
	uint64_t waited_ns;   /* waited itself, over all */
	uint64_t duration_ns; /* of all */
	uint64_t left_out;    /* functions of which it seems to have left out a call */
};

/* From a rank to a peer, of one communicator, by network or by send and receive. */
struct nccl_link {
	uint32_t member;
	int32_t peer;
	bool sends, network;
	uint64_t transfers, bytes, ns;
	uint64_t wait_ns; /* network: the part in which the network or peer was waited for */
	uint64_t slowest_ns;
};

struct nccl_joined {
	struct nccl_collective *collectives; /* by team, function, sequence */
	size_t count, capacity;
	uint32_t *slots;
	size_t slot_count;
	struct nccl_join_problem *problems;
	size_t problem_count, problem_capacity;
	uint64_t more_problems;      /* than are kept */
	struct nccl_rank_sum *ranks; /* by member */
	struct nccl_link *links;
	size_t link_count, link_capacity;
	struct id_map link_ids;
	uint64_t waiting_ns, transfer_ns; /* of all timed ones, over ranks */
	uint64_t mismatched, unseen; /* collectives: called differently; without a rank that has
					later ones */
	uint64_t left_out;           /* ranks and functions: see nccl_difference */
	struct nccl_difference *differences; /* by sum of the data */
};

/* Only communicators of which two or more ranks have records take part. 0 or negative errno. */
int nccl_join(struct nccl_data *data, struct nccl_joined *ret, struct problem *problem);
void nccl_join_deinit(struct nccl_joined *joined);

/* The rank that was the last to enter. NCCL_NONE with UNKNOWN. */
/* What a function's collectives in a team come to without waiting: of each the shortest duration
 * over its ranks. Goes on from *place, 0 at first; false at the end. */
struct nccl_transfer_sum {
	uint32_t team, function;
	uint64_t collectives, bytes, ns, longest_wait_ns;
	double bus_bytes;
};
bool nccl_transfer_next(const struct nccl_data *data, const struct nccl_joined *joined,
			size_t *place, struct nccl_transfer_sum *ret);

/* It goes on with the calls that the others make one later. */
bool nccl_difference_is_left_out(const struct nccl_difference *difference);
enum nccl_lateness nccl_collective_late(const struct nccl_collective *collective,
					uint32_t *ret_member);
const char *nccl_lateness_name(enum nccl_lateness lateness);
double nccl_link_bandwidth(const struct nccl_link *link); /* GB/s; 0 unknown */

#endif
