/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The order of the collectives that the ranks of a communicator call. NCCL runs the n-th call of a
 * rank with the n-th calls of the others, whatever they are, so where one skips a call, makes one
 * more or another one, all that follows goes wrong or gives wrong numbers. NCCL's own numbers do
 * not show that: it counts the calls of each function by themselves.
 *
 * Who differs is who the majority does not agree with; between two ranks nobody can say.
 */
#ifndef KYMO_ANALYSIS_NCCL_CALLS_H
#define KYMO_ANALYSIS_NCCL_CALLS_H

#include "analysis/nccl/nccl.h"

/* What all ranks must agree on. */
struct nccl_call_shape {
	uint32_t function;
	int32_t root;
	uint64_t bytes;
	const char *data_type;
};

enum nccl_call_difference {
	NCCL_CALL_IS_DIFFERENT,
	NCCL_CALL_IS_SKIPPED, /* it goes on with what the others call one later */
	NCCL_CALL_IS_EXTRA,   /* and with what the others call instead, one later */
	NCCL_CALL_IS_DISPUTED /* no majority */
};

struct nccl_differing_call {
	uint32_t communicator, member;
	uint32_t other_member; /* DISPUTED: one that calls something else; NCCL_INDEX_NONE */
	enum nccl_call_difference difference;
	uint64_t position; /* n-th collective of the communicator, from 0 */
	uint32_t shape,
		other_shape; /* its own, and that of the others; SKIPPED: other_shape only */
	uint64_t count;      /* DIFFERENT: how many such calls there are from there on */
};

/* During the pass over all records, in the order of recording. 0 or -ENOMEM. */
int nccl_add_call_of_rank(struct nccl_data *data, const struct nccl_operation_view *view);
/* After it: finds data.differing_calls. 0 or -ENOMEM. */
int nccl_find_differing_calls(struct nccl_data *data);
/* Calls with this number or a higher one may belong to other ones of the other ranks. UINT64_MAX:
 * all belong together. */
uint64_t nccl_get_first_sequence_in_doubt(const struct nccl_data *data, uint32_t communicator,
					  uint32_t function);

#endif
