/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Who made others wait. A rank that comes late into an operation may itself have waited for
 * somebody just before: then it passes on a lateness that is not its own. So the time that it
 * waited itself since it was level with those that waited for it is subtracted from the time that
 * they did. It was level with them when it was last in a collective that all of them were in and
 * that nobody leaves before all have entered, of whatever communicator, or in a send or receive
 * with the same one. Waiting that is not known, because a rank has no records, counts as the whole
 * time of the operation: nobody is blamed for what may be somebody else's.
 */
#ifndef KYMO_ANALYSIS_NCCL_BLAME_H
#define KYMO_ANALYSIS_NCCL_BLAME_H

#include "analysis/nccl/join.h"

/* An operation of one rank, on host 0's clock. */
struct nccl_wait_entry {
	uint64_t begin_ns;
	uint64_t wait_ns;   /* time that it waited for others, at most; UINT64_MAX: not known */
	uint64_t caused_ns; /* time that others waited for it; 0: it was not the last to enter */
	uint64_t waited_before_ns; /* blame.c: that the rank had waited when it was through */
	uint32_t leaving_lag_ns;   /* by which it may leave behind the first one */
	uint32_t member;
	uint32_t other_member; /* that it waited for; of a transfer, the other side;
				  NCCL_INDEX_NONE: not known */
	bool is_transfer;
	bool levels; /* all ranks of the communicator, or both sides of a transfer, leave it
			together */
};

struct nccl_wait_entries {
	struct nccl_wait_entry *entries;
	size_t count, capacity;
};

/* A result goes from rank to rank, so they leave one after the other: by a ring's last hop at
 * least, by those of a tree at most. */
uint32_t nccl_get_leaving_lag(uint32_t rank_count, bool is_between_hosts);
/* 0 or -ENOMEM. */
int nccl_wait_entries_add(struct nccl_wait_entries *entries, const struct nccl_wait_entry *entry);
/* Adds what the entries of one process come to to the sums of its ranks, and what it passed on to
 * those of `joined`. Sorts them. 0 or -ENOMEM. */
int nccl_blame_ranks_of_process(const struct nccl_data *data, struct nccl_wait_entries *entries,
				struct nccl_joined_collectives *joined);
/* After all processes: which rank passes on what the most. 0 or -ENOMEM. */
int nccl_index_longest_passed_waits(const struct nccl_data *data,
				    struct nccl_joined_collectives *joined);

#endif
