/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * nccl/collectives.jsonl: a collective a line, as its ranks saw it together. The first line says
 * what the file is.
 */
#include "analysis/nccl/join.h"
#include "files/stream.h"
#include "output/nccl/nccl.h"
#include "output/output.h"

#define COLLECTIVES_SCHEMA_NAME "kymo.nccl.collectives/1"

static void begin_json_line(struct json_writer *json, FILE *stream)
{
	json_writer_init(json, stream);
	json->compact_from_depth = 1;
	json_object_begin(json, NULL);
}

static void end_json_line(struct json_writer *json)
{
	json_object_end(json);
	fputc('\n', json->stream);
}

static void write_schema_line(const struct nccl_data *data,
			      const struct nccl_joined_collectives *joined, FILE *stream)
{
	struct json_writer json;

	begin_json_line(&json, stream);
	json_put_text(&json, "schema", COLLECTIVES_SCHEMA_NAME);
	json_put_text(&json, "kymo_version", KYMO_VERSION);
	json_put_text(&json, "time_clock", "boottime");
	json_put_signed_integer(&json, "realtime_minus_time_ns",
				data->host_count ? data->hosts[0].realtime_minus_boottime_ns : 0);
	json_put_count(&json, "collectives", joined->count);
	json_put_count(&json, "without_a_rank", joined->skipped_collective_count);
	json_put_count(&json, "mismatched", joined->mismatched_collective_count);
	json_put_count(&json, "transfer_ns", joined->transfer_ns);
	json_put_count(&json, "waiting_ns", joined->waiting_ns);
	end_json_line(&json);
}

static void json_put_missing_ranks(struct json_writer *json, const struct nccl_data *data,
				   const struct nccl_joined_collectives *joined,
				   const struct nccl_collective *collective)
{
	const struct nccl_communicator *communicator =
		&data->communicators[collective->communicator];
	const struct nccl_mismatched_collective_info *problem;

	if (collective->problem == NCCL_INDEX_NONE)
		return;
	problem = &joined->problems[collective->problem];
	json_array_begin(json, "ranks_missing");
	for (uint32_t i = 0; i < communicator->member_count; i++) {
		if (!(problem->present[i / 64] >> (i % 64) & 1))
			json_put_signed_integer(json, NULL,
						data->members[communicator->members[i]].rank);
	}
	json_array_end(json);
	json_put_count(json, "not_reported", problem->skipped_rank_count);
	json_put_count(json, "not_reached", problem->not_reached_rank_count);
	json_put_count(json, "not_known", problem->unknown_rank_count);
	json_put_boolean(json, "mismatch",
			 collective->differing_arguments_member != NCCL_INDEX_NONE);
	if (collective->differing_arguments_member != NCCL_INDEX_NONE)
		json_put_signed_integer(json, "mismatch_rank",
					data->members[collective->differing_arguments_member].rank);
}

static void json_put_collective_times(struct json_writer *json, const struct nccl_data *data,
				      const struct nccl_collective *collective)
{
	uint32_t late;
	enum nccl_lateness_basis how = nccl_collective_find_late_rank(collective, &late);

	json_put_count(json, "first_begin_ns", collective->first_begin_ns);
	json_put_count(json, "last_begin_ns", collective->last_begin_ns);
	if (collective->last_end_ns)
		json_put_count(json, "last_end_ns", collective->last_end_ns);
	else
		json_put_null(json, "last_end_ns");
	if (collective->begin_end_error_ns == UINT64_MAX)
		json_put_null(json, "time_error_ns");
	else
		json_put_count(json, "time_error_ns", collective->begin_end_error_ns);
	if (late == NCCL_INDEX_NONE)
		json_put_null(json, "late_rank");
	else
		json_put_signed_integer(json, "late_rank", data->members[late].rank);
	if (late != NCCL_INDEX_NONE && data->members[late].job_rank >= 0)
		json_put_signed_integer(json, "late_world_rank", data->members[late].job_rank);
	json_put_boolean(json, "complete", collective->is_complete);
	json_put_text(json, "late_by", nccl_get_lateness_basis_name(how));
	if (!collective->timed)
		return;
	json_put_count(json, "transfer_ns", collective->shortest_duration_ns);
	json_put_count(json, "longest_ns", collective->longest_duration_ns);
	json_put_count(json, "waiting_sum_ns",
		       collective->duration_sum_ns -
			       collective->shortest_duration_ns * collective->timed);
}

static void write_collective_line(const struct nccl_data *data,
				  const struct nccl_joined_collectives *joined,
				  const struct nccl_collective *collective, FILE *stream)
{
	const struct nccl_communicator *communicator =
		&data->communicators[collective->communicator];
	struct json_writer json;
	char hash[32];

	snprintf(hash, sizeof(hash), "0x%016llx", (unsigned long long)communicator->hash);
	begin_json_line(&json, stream);
	json_put_text(&json, "communicator", communicator->name);
	json_put_text(&json, "communicator_hash", hash);
	json_put_count(&json, "communicator_occurrence", communicator->same_hash_index);
	json_put_text(&json, "function", data->functions[collective->function].name);
	json_put_count(&json, "sequence", collective->sequence);
	json_put_count(&json, "bytes", collective->bytes);
	json_put_count(&json, "size_bytes", collective->size_bytes);
	json_put_count(&json, "ranks", communicator->rank_count);
	json_put_count(&json, "ranks_with_records", communicator->member_count);
	json_put_count(&json, "ranks_seen", collective->seen);
	json_put_count(&json, "ranks_in_flight", collective->in_flight_rank_count);
	json_put_count(&json, "ranks_timed", collective->timed);
	json_put_count(&json, "ranks_shared_times", collective->shared);
	json_put_collective_times(&json, data, collective);
	json_put_missing_ranks(&json, data, joined, collective);
	end_json_line(&json);
}

static int write_nccl_collectives(struct session *session, const struct output_options *options,
				  FILE *stream, struct problem *problem)
{
	struct nccl_joined_collectives joined;
	int result = nccl_require_records(session, problem);

	(void)options;
	if (result == 0)
		result = nccl_join_collectives(session_get_nccl_data(session), &joined, problem);
	if (result < 0)
		return result;
	write_schema_line(session_get_nccl_data(session), &joined, stream);
	for (size_t i = 0; i < joined.count; i++)
		write_collective_line(session_get_nccl_data(session), &joined,
				      &joined.collectives[i], stream);
	nccl_joined_collectives_deinit(&joined);
	return stream_flush_or_set_problem(stream, "the collectives", problem);
}

const struct output_format output_format_nccl_collectives = {
	.name = "nccl-collectives",
	.file_name = "nccl/collectives.jsonl",
	.description = "collectives of all ranks, one per line",
	.has_whole_run_only = true,
	.write = write_nccl_collectives,
};
