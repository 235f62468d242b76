/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Sends with their receives. The n-th send from a rank to another in a communicator belongs with
 * the other's n-th receive from it. Each kernel waits for the other one, so of the two durations
 * the shorter one is the transfer, and who has it came last; where the clocks tell better, they do.
 *
 * Halves are kept until the other one is read: memory grows with what one process sends to, and
 * receives from, those that are read later.
 */
#ifndef KYMO_ANALYSIS_NCCL_PAIRS_H
#define KYMO_ANALYSIS_NCCL_PAIRS_H

#include "analysis/nccl/join.h"

/* A pair whose sides do not agree, or a half whose other one its peer's records do not have. */
enum nccl_pair_fault {
	NCCL_PAIR_BYTES_DIFFER,
	NCCL_PAIR_SEND_ALONE, /* no receive for it */
	NCCL_PAIR_RECEIVE_ALONE
};

struct nccl_faulty_pair {
	uint32_t communicator;
	int32_t from, to; /* ranks of the communicator */
	uint64_t sequence, sent_bytes, received_bytes;
	enum nccl_pair_fault fault;
};

/* One that somebody waited long in. */
struct nccl_waiting_pair {
	uint32_t communicator;
	int32_t from, to;
	uint32_t late_member;
	uint64_t sequence, transfer_ns, wait_ns;
};

#define NCCL_WAITING_PAIRS_KEPT_MAX 64
#define NCCL_FAULTY_PAIRS_KEPT_MAX  256

struct nccl_wait_entries; /* blame.h */

struct nccl_paired_transfers {
	uint64_t pair_count, timed_pair_count;
	uint64_t transfer_ns, waiting_ns; /* of the timed ones, over both sides */
	uint64_t faulty_pair_count;
	struct nccl_faulty_pair faulty[NCCL_FAULTY_PAIRS_KEPT_MAX];    /* the first ones */
	struct nccl_waiting_pair waiting[NCCL_WAITING_PAIRS_KEPT_MAX]; /* longest first */
	uint32_t waiting_count;
	struct nccl_wait_entries *entries_by_process; /* of those in which somebody waited */
};

void nccl_paired_transfers_free(struct nccl_paired_transfers *pairs, uint32_t process_count);

/* Adds to the links and to the sums of ranks of `joined`. 0 or negative errno. */
int nccl_pair_transfers(struct nccl_data *data, struct nccl_joined_collectives *joined,
			struct problem *problem);

#endif
