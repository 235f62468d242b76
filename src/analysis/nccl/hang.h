/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What was in flight when the recording ended, put together over ranks: for each communicator the
 * operation that its ranks wait in, who has not entered it, who is through, and which transfers
 * of it are open.
 */
#ifndef KYMO_ANALYSIS_NCCL_HANG_H
#define KYMO_ANALYSIS_NCCL_HANG_H

#include "analysis/nccl/nccl.h"

/* What an open network transfer waits for. */
enum nccl_transfer_wait_reason {
	NCCL_WAIT_UNKNOWN,
	NCCL_WAIT_GPU,     /* send: data of the GPU; receive: room there */
	NCCL_WAIT_PEER,    /* the peer has not posted its receive */
	NCCL_WAIT_NETWORK, /* sent or posted; the network is not done */
	NCCL_WAIT_FLUSH
};

/* A proxy operation that did not stop. */
struct nccl_unfinished_transfer {
	uint32_t member;
	uint64_t operation, id;
	int32_t peer, step_count;
	uint32_t done_step_count;
	uint8_t channel;
	bool sends;
	enum nccl_transfer_wait_reason wait;
	uint64_t last_ticks; /* when something of it was heard of last */
};

/* How a rank stands to an operation that others wait in. */
enum nccl_rank_progress {
	NCCL_RANK_IS_WAITING,       /* is in it */
	NCCL_RANK_HAS_FINISHED,     /* has done it */
	NCCL_RANK_HAS_QUEUED,       /* has enqueued it behind others that it waits in */
	NCCL_RANK_HAS_NOT_ENTERED,  /* has not entered it */
	NCCL_RANK_PROGRESS_UNKNOWN, /* its records are not complete */
	NCCL_RANK_HAS_NO_FILE       /* there is no file of this rank */
};

struct nccl_stuck_operation_rank {
	int32_t rank;
	uint32_t member; /* NCCL_INDEX_NONE: no data */
	enum nccl_rank_progress progress;
	uint64_t quiet_ns; /* since anything of the operation was heard; of the process, where it is
			      not in it */
};

struct nccl_stuck_operation {
	uint32_t communicator, function;
	uint64_t sequence;
	uint8_t kind;
	const struct nccl_waiting_operation *waiting; /* of the first rank in it */
	uint32_t first_waiting_member;
	struct nccl_stuck_operation_rank *ranks;
	uint32_t rank_count, rank_count_by_progress[NCCL_RANK_HAS_NO_FILE + 1];
	uint64_t longest_wait_ns;   /* that a rank has been in it */
	bool has_function_mismatch; /* other ranks of the communicator wait in another function */
};

/* A send or receive that a rank waits in: all of the group that is the oldest it waits in. */
struct nccl_waiting_transfer {
	uint32_t member;
	int32_t peer;
	uint64_t sequence;
	bool sends;
	bool is_done_by_peer; /* its side; others of the group keep the rank there */
};

struct nccl_hang_findings {
	struct nccl_stuck_operation *stuck_operations;
	size_t stuck_operation_count, stuck_operation_capacity;
	struct nccl_unfinished_transfer *unfinished_transfers;
	size_t unfinished_transfer_count, unfinished_transfer_capacity;
	struct nccl_waiting_transfer *waiting_transfers; /* by member, peer, sequence, direction */
	size_t waiting_transfer_count, waiting_transfer_capacity;
};

/* 0 or negative errno. */
int nccl_find_stuck_operations(struct nccl_data *data, struct nccl_hang_findings *ret,
			       struct problem *problem);
/* Those of a member, one after the other; NULL: none. */
const struct nccl_waiting_transfer *
nccl_find_waiting_transfers(const struct nccl_hang_findings *hang, uint32_t member,
			    size_t *ret_count);
bool nccl_rank_waits_in_transfer(const struct nccl_hang_findings *hang,
				 const struct nccl_waiting_transfer *transfer);
void nccl_hang_findings_deinit(struct nccl_hang_findings *hang);
const char *nccl_get_transfer_wait_text(enum nccl_transfer_wait_reason wait);
const char *nccl_get_rank_progress_name(enum nccl_rank_progress standing);
/* How long ago, by the process's last sign or now. */
uint64_t nccl_compute_ns_since_ticks(struct nccl_data *data, uint32_t process, uint64_t ticks);

#endif
