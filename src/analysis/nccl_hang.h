/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What was in flight when the recording ended, put together over ranks: for each communicator the
 * operation that its ranks wait in, who has not entered it, who is through, and which transfers
 * of it are open.
 */
#ifndef KYMO_ANALYSIS_NCCL_HANG_H
#define KYMO_ANALYSIS_NCCL_HANG_H

#include "analysis/nccl.h"

/* What an open network transfer waits for. */
enum nccl_wait {
	NCCL_WAIT_NOTHING_TOLD,
	NCCL_WAIT_GPU,     /* send: data of the GPU; receive: room there */
	NCCL_WAIT_PEER,    /* the peer has not posted its receive */
	NCCL_WAIT_NETWORK, /* sent or posted; the network is not done */
	NCCL_WAIT_FLUSH
};

/* A proxy operation that did not stop. */
struct nccl_open_transfer {
	uint32_t member;
	uint64_t operation, id;
	int32_t peer, steps;
	uint32_t steps_done;
	uint8_t channel;
	bool sends;
	enum nccl_wait wait;
	uint64_t last_ticks; /* when something of it was heard of last */
};

/* How a rank stands to an operation that others wait in. */
enum nccl_standing {
	NCCL_STANDING_WAITS,   /* is in it */
	NCCL_STANDING_THROUGH, /* has done it */
	NCCL_STANDING_QUEUED,  /* has enqueued it behind others that it waits in */
	NCCL_STANDING_ABSENT,  /* has not entered it */
	NCCL_STANDING_UNKNOWN, /* its records are not complete */
	NCCL_STANDING_NO_DATA  /* there is no file of this rank */
};

struct nccl_stuck_rank {
	int32_t rank;
	uint32_t member; /* NCCL_NONE: no data */
	enum nccl_standing standing;
	uint64_t quiet_ns; /* since anything of the operation was heard; of the process, where it is
			      not in it */
};

struct nccl_stuck {
	uint32_t team, function;
	uint64_t sequence;
	uint8_t kind;
	const struct nccl_waiting *waiting; /* of the first rank in it */
	uint32_t first_member;
	struct nccl_stuck_rank *ranks;
	uint32_t rank_count, standing_counts[NCCL_STANDING_NO_DATA + 1];
	uint64_t longest_ns; /* that a rank has been in it */
	bool mismatch;       /* other ranks of the team wait in another function */
};

struct nccl_hang {
	struct nccl_stuck *stuck;
	size_t stuck_count, stuck_capacity;
	struct nccl_open_transfer *transfers;
	size_t transfer_count, transfer_capacity;
};

/* 0 or negative errno. */
int nccl_hang_find(struct nccl_data *data, struct nccl_hang *ret, struct problem *problem);
void nccl_hang_deinit(struct nccl_hang *hang);
const char *nccl_wait_text(enum nccl_wait wait);
const char *nccl_standing_name(enum nccl_standing standing);
/* How long ago, by the process's last sign or now. */
uint64_t nccl_quiet_ns(struct nccl_data *data, uint32_t process, uint64_t ticks);

#endif
