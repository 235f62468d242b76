/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What summary.json says of the job's ranks: how they are known, which have no records, which calls
 * differ, what holds the job up.
 */
#include "analysis/nccl/calls.h"
#include "output/nccl/nccl.h"

static void put_rank(struct json_writer *json, const char *key, int32_t rank)
{
	if (rank < 0)
		json_put_null(json, key);
	else
		json_put_signed_integer(json, key, rank);
}

void nccl_json_put_job(struct json_writer *json, const struct nccl_data *data)
{
	static const char *const basis[] = {"unknown", "launcher", "communicator"};

	json_object_begin(json, "job");
	json_put_count(json, "ranks", data->job_size);
	json_put_count(json, "ranks_with_records", data->job_rank_count);
	json_put_text(json, "ranks_known_by", basis[data->job_ranks_basis]);
	json_array_begin(json, "ranks_missing");
	for (uint32_t i = 0; i < data->missing_job_rank_count; i++)
		json_put_signed_integer(json, NULL, data->missing_job_ranks[i]);
	json_array_end(json);
	json_object_end(json);
}

void nccl_json_put_differing_calls(struct json_writer *json, const struct nccl_data *data)
{
	static const char *const kinds[] = {"different", "skipped", "extra", "disputed"};

	json_array_begin(json, "calls_that_differ");
	for (uint32_t i = 0; i < data->differing_call_count; i++) {
		const struct nccl_differing_call *call = &data->differing_calls[i];
		const struct nccl_communicator_rank *member = &data->members[call->member];

		json_object_begin(json, NULL);
		json_put_text(json, "communicator", data->communicators[call->communicator].name);
		json_put_signed_integer(json, "rank", member->rank);
		put_rank(json, "world_rank", member->job_rank);
		json_put_text(json, "what", kinds[call->difference]);
		json_put_count(json, "call", call->position);
		json_put_text(json, "function",
			      data->functions[data->call_shapes[call->shape].function].name);
		json_put_text(json, "others_function",
			      data->functions[data->call_shapes[call->other_shape].function].name);
		json_put_count(json, "bytes", data->call_shapes[call->shape].bytes);
		json_put_count(json, "others_bytes", data->call_shapes[call->other_shape].bytes);
		json_put_count(json, "count", call->count);
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_job_rank(struct json_writer *json, const char *key, const struct nccl_data *data,
			 uint32_t job_rank)
{
	put_rank(json, key, job_rank == NCCL_INDEX_NONE ? -1 : data->job_ranks[job_rank].rank);
}

void nccl_json_put_passed_waits(struct json_writer *json, const struct nccl_data *data,
				const struct nccl_joined_collectives *joined)
{
	json_array_begin(json, "passed_on");
	for (size_t i = 0; i < joined->passed_wait_count; i++) {
		const struct nccl_passed_wait *wait = &joined->passed_waits[i];
		const struct nccl_communicator_rank *member = &data->members[wait->member],
						    *waiting = &data->members[wait->waiting_member];

		json_object_begin(json, NULL);
		put_rank(json, "world_rank", member->job_rank);
		json_put_text(json, "communicator", data->communicators[member->communicator].name);
		json_put_text(json, "waited_in", data->communicators[waiting->communicator].name);
		put_job_rank(json, "waited_for_world_rank", data,
			     wait->awaited_member == NCCL_INDEX_NONE
				     ? NCCL_INDEX_NONE
				     : data->members[wait->awaited_member].job_rank_index);
		put_job_rank(json, "root_world_rank", data,
			     nccl_find_root_of_passed_wait(data, joined, wait));
		json_put_count(json, "count", wait->count);
		json_put_count(json, "others_waited_ns", wait->ns);
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_root(struct json_writer *json, const struct nccl_data *data,
		     const struct nccl_hang_findings *hang, const struct nccl_hang_root *root)
{
	static const char *const kinds[] = {"rank", "no_records", "call_differs", "cycle",
					    "all_are_inside"};

	json_object_begin(json, NULL);
	json_put_text(json, "kind", kinds[root->kind]);
	if (root->job_rank != NCCL_INDEX_NONE) {
		const struct nccl_job_rank *rank = &data->job_ranks[root->job_rank];

		put_rank(json, "world_rank", rank->rank);
		json_put_text(json, "host", data->processes[rank->process].file.header.host);
		json_put_count(json, "pid", data->processes[rank->process].file.header.pid);
		json_put_count(json, "ranks_waiting", root->victim_count);
		json_put_count(json, "ranks_waiting_directly", root->direct_count);
		json_put_boolean(json, "records_incomplete", root->is_unsure);
	}
	if (root->stuck != NCCL_INDEX_NONE) {
		const struct nccl_stuck_operation *stuck = &hang->stuck_operations[root->stuck];

		json_put_text(json, "communicator", data->communicators[stuck->communicator].name);
		json_put_text(json, "function", data->functions[stuck->function].name);
		json_put_count(json, "sequence", stuck->sequence);
	}
	if (root->kind == NCCL_ROOT_NO_RECORDS)
		json_put_signed_integer(json, "rank", root->rank);
	json_object_end(json);
}

int nccl_json_put_hang_roots(struct json_writer *json, const struct nccl_data *data,
			     const struct nccl_hang_findings *hang)
{
	struct nccl_hang_roots roots;
	int result = nccl_find_hang_roots(data, hang, &roots);

	if (result < 0)
		return result;
	json_array_begin(json, "roots");
	for (size_t i = 0; i < roots.root_count; i++)
		put_root(json, data, hang, &roots.roots[i]);
	json_array_end(json);
	nccl_hang_roots_deinit(&roots);
	return 0;
}
