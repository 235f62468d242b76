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

#include "analysis/nccl/nccl.h"

/* Differences of times below this are how GPUs schedule, not somebody who is late. */
#define NCCL_LATENESS_LEAST_NS 1000

/* How it is known who entered last. */
enum nccl_lateness_basis {
	NCCL_LATENESS_UNKNOWN,
	NCCL_LATENESS_BY_CLOCK, /* when each began to run; the differences are larger than errors */
	NCCL_LATENESS_BY_DURATION /* the one with the shortest duration */
};

struct nccl_collective {
	uint32_t communicator, function;
	uint64_t sequence;
	uint32_t seen, in_flight_rank_count, timed, shared;   /* ranks */
	uint32_t first_to_begin_member, last_to_begin_member; /* to begin, by clocks */
	uint32_t shortest_duration_member, longest_duration_member;
	uint64_t first_begin_ns, last_begin_ns,
		last_end_ns;              /* begin of first and last, last end; 0 unknown */
	uint64_t begin_end_error_ns;      /* of these; UINT64_MAX unknown */
	uint64_t second_to_last_begin_ns; /* of another member than the last one; 0: none */
	uint64_t shortest_duration_ns, second_shortest_duration_ns, longest_duration_ns,
		duration_sum_ns;
	uint64_t longest_duration_end_ns; /* when it was over there; 0 unknown */
	bool is_in_doubt; /* it comes behind a call that ranks do not agree on, so it may
			     be other calls of some ranks */
	bool is_between_hosts;
	bool waits_for_all; /* nobody leaves it before all have entered */
	bool is_complete;   /* all ranks of the communicator have a record of it */
	bool is_timed;      /* and, all but a few of many, a duration of their own */
	uint64_t size_bytes, bytes, arguments_hash;
	uint32_t arguments_from_member;      /* of whom these are */
	uint32_t differing_arguments_member; /* one that has others; NCCL_INDEX_NONE */
	uint32_t problem; /* index in nccl_joined_collectives.problems; NCCL_INDEX_NONE */
	uint32_t next;    /* of the same slot of the table, + 1 */
};

/* A collective that not all ranks with records took part in, or not alike. */
struct nccl_mismatched_collective_info {
	uint32_t collective;
	uint64_t *present; /* bit a place in the communicator's `members` */
	/* Ranks that have later ones, that never came so far, and whose records are not complete.
	 */
	uint32_t skipped_rank_count, not_reached_rank_count, unknown_rank_count;
};

/* Calls of a function that a rank makes with another size, type or root than the first rank that
 * was read. NCCL counts the calls of each rank for itself, so one that left out a call goes on
 * under the same numbers with the calls that the others make one later. */
struct nccl_differing_argument_counts {
	uint64_t count, first_sequence;
	uint64_t like_next_call_count,
		like_previous_call_count; /* of them: like the others' next, or previous, call */
	uint32_t compared_to_member;
};

/* Sums of one rank in one communicator, over collectives that are complete and timed. */
struct nccl_rank_wait_sums {
	uint64_t joined; /* timed collectives with others */
	uint64_t last;   /* of them: it was the last to enter, and not for somebody else's sake */
	uint64_t joined_transfers, last_transfers; /* the same of sends and receives */
	uint64_t caused_wait_ns; /* by its own lateness (blame.h): how long the longest waiting
				    rank, or the partner of a transfer, waited for it, then */
	double caused_wait_square_sum; /* of the single ones */
	uint64_t passed_on_wait_ns; /* the same, but for the sake of others, that it had waited for
				       just before */
	uint64_t waited_ns;         /* waited itself, over all */
	uint64_t duration_ns;       /* of all */
	uint64_t left_out;          /* functions of which it seems to have left out a call */
};

/* Lateness that a rank passes on: it waited for somebody, and came late elsewhere because of that.
 */
struct nccl_passed_wait {
	uint32_t member;         /* that came late, where others waited for it */
	uint32_t waiting_member; /* of the same rank, where it had waited */
	uint32_t awaited_member; /* for whom; NCCL_INDEX_NONE: not known */
	uint64_t count, ns;
};

/* From a rank to a peer, of one communicator, by network or by send and receive. */
struct nccl_rank_to_peer_link {
	uint32_t member;
	int32_t peer;
	bool sends, is_over_network;
	uint64_t transfer_count, bytes, ns;
	uint64_t network_or_peer_wait_ns; /* network: the part in which the network or peer was
					     waited for */
	uint64_t slowest_transfer_ns;
	uint64_t paired_transfer_count; /* of send and receive: both sides are known, and `ns` is
					   without waiting for the partner */
	uint64_t sender_wait_ns, receiver_wait_ns;
};

struct nccl_paired_transfers; /* pairs.h */

struct nccl_joined_collectives {
	struct nccl_collective *collectives; /* by communicator, function, sequence */
	size_t count, capacity;
	uint32_t *slots;
	size_t slot_count;
	struct nccl_mismatched_collective_info *problems;
	size_t problem_count, problem_capacity;
	uint64_t unkept_problem_count;     /* than are kept */
	struct nccl_rank_wait_sums *ranks; /* by member */
	struct nccl_rank_to_peer_link *links;
	size_t link_count, link_capacity;
	struct id_map link_index_by_key;
	struct nccl_paired_transfers *pairs;
	struct nccl_passed_wait *passed_waits;
	size_t passed_wait_count, passed_wait_capacity;
	uint32_t *longest_passed_waits; /* by rank of the job; NCCL_INDEX_NONE: it passes none on
					 */
	struct id_map passed_wait_index_by_key;
	struct id_map member_by_rank_and_communicator; /* rank of the job -> member */
	uint32_t process_count;                        /* of the data */
	uint64_t waiting_ns, transfer_ns;     /* of all complete and timed ones, over ranks */
	uint64_t timed_collective_count;      /* complete and timed */
	uint64_t collectives_in_doubt;        /* behind a call that ranks do not agree on */
	uint64_t incomplete_collective_count; /* over, but not all ranks have a record of them: who
						 was late into them is not known */
	uint64_t mismatched_collective_count, skipped_collective_count; /* collectives: called
					differently; without a rank that has later ones */
	uint64_t left_out; /* ranks and functions: see nccl_differing_argument_counts */
	struct nccl_differing_argument_counts *argument_differences_by_sum; /* by sum of the data */
};

/* Only communicators of which two or more ranks have records take part. 0 or negative errno. */
int nccl_join_collectives(struct nccl_data *data, struct nccl_joined_collectives *ret,
			  struct problem *problem);
void nccl_joined_collectives_deinit(struct nccl_joined_collectives *joined);

/* What a function's collectives in a communicator come to without waiting: of each the shortest
 * duration over its ranks. Goes on from *place, 0 at first; false at the end. */
struct nccl_collective_transfer_sums {
	uint32_t communicator, function;
	uint64_t collectives, bytes, ns, longest_wait_ns;
	double bus_bytes;
};
bool nccl_get_next_function_transfer_sums(const struct nccl_data *data,
					  const struct nccl_joined_collectives *joined,
					  size_t *place, struct nccl_collective_transfer_sums *ret);

/* The ranks whose own lateness others waited for, where they stand out from the rest: by more than
 * chance makes the last ones of so many collectives, and by more than a hundredth of the ranks'
 * time. Several, if they are late alike; nobody, if many are. */
#define NCCL_LATE_RANKS_MAX 4
struct nccl_late_rank {
	uint32_t job_rank;
	struct nccl_rank_wait_sums sum;
};
struct nccl_late_ranks {
	struct nccl_late_rank ranks[NCCL_LATE_RANKS_MAX]; /* most waited for first */
	uint32_t count;
	uint64_t longest_caused_wait_ns; /* of all ranks, also where nobody stands out */
};
/* 0 or -ENOMEM. */
int nccl_find_late_ranks(const struct nccl_data *data, const struct nccl_joined_collectives *joined,
			 struct nccl_late_ranks *ret);
/* Who began what a rank passes on: the one that it waited for or, where that one passes on more
 * than is its own, whom that one waited for the longest, and so on. NCCL_INDEX_NONE: not known, as
 * where they go round in a circle. */
uint32_t nccl_find_root_of_passed_wait(const struct nccl_data *data,
				       const struct nccl_joined_collectives *joined,
				       const struct nccl_passed_wait *wait);
/* Over all communicators of one rank of the job. */
struct nccl_rank_wait_sums nccl_sum_waits_of_job_rank(const struct nccl_data *data,
						      const struct nccl_joined_collectives *joined,
						      uint32_t job_rank);

/* It goes on with the calls that the others make one later. */
bool nccl_differing_calls_suggest_skipped_call(
	const struct nccl_differing_argument_counts *difference);
/* The rank that was the last to enter. NCCL_INDEX_NONE with UNKNOWN: also where a rank has no
 * record of it, which may have been later than all others. */
enum nccl_lateness_basis nccl_collective_find_late_rank(const struct nccl_collective *collective,
							uint32_t *ret_member);
const char *nccl_get_lateness_basis_name(enum nccl_lateness_basis lateness);
double nccl_compute_link_bandwidth(const struct nccl_rank_to_peer_link *link); /* GB/s; 0 unknown */

#endif
