/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the model of NCCL's records keeps for itself. Only nccl*.c of this room include it.
 */
#ifndef KYMO_ANALYSIS_NCCL_PRIVATE_H
#define KYMO_ANALYSIS_NCCL_PRIVATE_H

#include "analysis/arena.h"
#include "analysis/nccl/nccl.h"

struct nccl_private {
	struct arena arena;
	size_t process_capacity, member_capacity, communicator_capacity, host_capacity,
		function_capacity, rank_function_sum_capacity, job_rank_capacity,
		call_shape_capacity, differing_call_capacity, problem_capacity;
	struct id_map files;                          /* identity of the process -> index */
	struct id_map communicator_index_by_key;      /* hash and occurrence -> communicator */
	struct id_map rank_function_sum_index_by_key; /* member and function -> sum */
	struct id_map call_shape_index_by_key;
	struct id_map sequences_in_doubt; /* communicator and function -> calls beyond doubt */
	uint64_t now_boottime_ns;
};

static inline struct nccl_private *nccl_get_private(const struct nccl_data *data)
{
	return data->private_state;
}

int nccl_set_out_of_memory_problem(struct problem *problem);
/* Adds a line to data.problems. 0 or -ENOMEM. */
int nccl_add_problem_line(struct nccl_data *data, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* communicators.c: members to communicators. 0 or -ENOMEM. */
int nccl_group_ranks_by_communicator(struct nccl_data *data);
/* NCCL_INDEX_NONE: it has no records. */
uint32_t nccl_find_member_of_rank(const struct nccl_data *data, uint32_t communicator,
				  int32_t rank);

/* ranks.c: which rank of the job each member is, and which have no records. 0 or -ENOMEM. */
int nccl_identify_job_ranks(struct nccl_data *data);

/* timed.c: what the GPU's own records in `spool` have of the processes. 0 or -ENOMEM. */
int nccl_read_gpu_kernels(struct nccl_data *data, const char *spool);

/* gpu_time_check.c: which operations have GPU times of their own. The process's file is not paused.
 * 0 or negative errno. */
int nccl_mark_proven_gpu_times(struct nccl_data *data, struct nccl_process *process);
bool nccl_operation_gpu_times_are_proven(const struct nccl_process *process,
					 const struct nccl_operation *operation);
bool nccl_operation_has_gpu_times(const struct nccl_operation *operation);

/* scan.c: the pass over all records. 0 or negative errno. */
int nccl_scan_records_of_all_processes(struct nccl_data *data, struct problem *problem);

/* totals.c; `around_ns`: what each duration of it leaves out. */
void nccl_tally_add_total_record(struct nccl_operation_tally *tally, const struct nccl_total *total,
				 enum nccl_function_kind function, uint32_t ranks,
				 uint64_t around_ns);

/* view.c: NULL: not known. */
struct nccl_kernel *nccl_find_kernel_of_operation(struct nccl_process *process,
						  const struct nccl_operation *operation);
/* view.c: false: its communicator is not known. `times`: the clocks are known already. */
bool nccl_make_operation_view(struct nccl_data *data, uint32_t process,
			      const struct nccl_operation *operation, bool times,
			      struct nccl_operation_view *ret);

#endif
