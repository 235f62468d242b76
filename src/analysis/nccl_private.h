/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the model of NCCL's records keeps for itself. Only nccl*.c of this room include it.
 */
#ifndef KYMO_ANALYSIS_NCCL_PRIVATE_H
#define KYMO_ANALYSIS_NCCL_PRIVATE_H

#include "analysis/arena.h"
#include "analysis/nccl.h"

struct nccl_private {
	struct arena arena;
	size_t process_capacity, member_capacity, team_capacity, host_capacity, function_capacity,
		sum_capacity, problem_capacity;
	struct id_map files; /* identity of the process -> index */
	struct id_map teams; /* hash and occurrence -> team */
	struct id_map sums;  /* member and function -> sum */
	uint64_t now_boottime_ns;
};

static inline struct nccl_private *nccl_private(const struct nccl_data *data)
{
	return data->private_state;
}

int nccl_out_of_memory(struct problem *problem);
/* Adds a line to data.problems. 0 or -ENOMEM. */
int nccl_note(struct nccl_data *data, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* nccl_teams.c: members to teams. 0 or -ENOMEM. */
int nccl_make_teams(struct nccl_data *data);

/* nccl_timed.c: what the GPU's own records in `spool` have of the processes. 0 or -ENOMEM. */
int nccl_read_kernels(struct nccl_data *data, const char *spool);

/* nccl_proof.c: which operations have GPU times of their own. The process's file is not paused. 0
 * or negative errno. */
int nccl_prove(struct nccl_data *data, struct nccl_process *process);
bool nccl_is_proven(const struct nccl_process *process, const struct nccl_operation *operation);
bool nccl_has_gpu_times(const struct nccl_operation *operation);

/* nccl_survey.c: the pass over all records. 0 or negative errno. */
int nccl_survey(struct nccl_data *data, struct problem *problem);

/* nccl_totals.c; `around_ns`: what each duration of it leaves out. */
void nccl_total_add(struct nccl_tally *tally, const struct nccl_total *total,
		    enum nccl_function function, uint32_t ranks, uint64_t around_ns);

/* nccl_view.c: NULL: not known. */
struct nccl_kernel *nccl_kernel_of(struct nccl_process *process,
				   const struct nccl_operation *operation);
/* nccl_view.c: false: its communicator is not known. `times`: the clocks are known already. */
bool nccl_view_make(struct nccl_data *data, uint32_t process,
		    const struct nccl_operation *operation, bool times, struct nccl_view *ret);

#endif
