/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * nccl/collectives.jsonl: a collective a line, as its ranks saw it together. The first line says
 * what the file is.
 */
#include "analysis/nccl_join.h"
#include "output/nccl.h"
#include "output/stream.h"
#include "output/writers.h"

#define SCHEMA "kymo.nccl.collectives/1"

static void begin_line(struct json_writer *json, FILE *stream)
{
	json_writer_init(json, stream);
	json->compact_from = 1;
	json_object_begin(json, NULL);
}

static void end_line(struct json_writer *json)
{
	json_object_end(json);
	fputc('\n', json->stream);
}

static void write_head(const struct nccl_data *data, const struct nccl_joined *joined, FILE *stream)
{
	struct json_writer json;

	begin_line(&json, stream);
	json_put_text(&json, "schema", SCHEMA);
	json_put_text(&json, "kymo_version", KYMO_VERSION);
	json_put_text(&json, "time_clock", "boottime");
	json_put_signed(&json, "realtime_minus_time_ns",
			data->host_count ? data->hosts[0].realtime_minus_boottime_ns : 0);
	json_put_count(&json, "collectives", joined->count);
	json_put_count(&json, "without_a_rank", joined->unseen);
	json_put_count(&json, "mismatched", joined->mismatched);
	json_put_count(&json, "transfer_ns", joined->transfer_ns);
	json_put_count(&json, "waiting_ns", joined->waiting_ns);
	end_line(&json);
}

static void put_missing(struct json_writer *json, const struct nccl_data *data,
			const struct nccl_joined *joined, const struct nccl_collective *collective)
{
	const struct nccl_team *team = &data->teams[collective->team];
	const struct nccl_join_problem *problem;

	if (collective->problem == NCCL_NONE)
		return;
	problem = &joined->problems[collective->problem];
	json_array_begin(json, "ranks_missing");
	for (uint32_t i = 0; i < team->member_count; i++) {
		if (!(problem->present[i / 64] >> (i % 64) & 1))
			json_put_signed(json, NULL, data->members[team->members[i]].rank);
	}
	json_array_end(json);
	json_put_count(json, "not_reported", problem->unseen);
	json_put_count(json, "not_reached", problem->absent);
	json_put_count(json, "not_known", problem->unknown);
	json_put_boolean(json, "mismatch", collective->different_member != NCCL_NONE);
	if (collective->different_member != NCCL_NONE)
		json_put_signed(json, "mismatch_rank",
				data->members[collective->different_member].rank);
}

static void put_times(struct json_writer *json, const struct nccl_data *data,
		      const struct nccl_collective *collective)
{
	uint32_t late;
	enum nccl_lateness how = nccl_collective_late(collective, &late);

	json_put_count(json, "first_begin_ns", collective->first_ns);
	json_put_count(json, "last_begin_ns", collective->last_ns);
	if (collective->end_ns)
		json_put_count(json, "last_end_ns", collective->end_ns);
	else
		json_put_null(json, "last_end_ns");
	if (collective->error_ns == UINT64_MAX)
		json_put_null(json, "time_error_ns");
	else
		json_put_count(json, "time_error_ns", collective->error_ns);
	if (late == NCCL_NONE)
		json_put_null(json, "late_rank");
	else
		json_put_signed(json, "late_rank", data->members[late].rank);
	json_put_text(json, "late_by", nccl_lateness_name(how));
	if (!collective->timed)
		return;
	json_put_count(json, "transfer_ns", collective->shortest_ns);
	json_put_count(json, "longest_ns", collective->longest_ns);
	json_put_count(json, "waiting_sum_ns",
		       collective->sum_ns - collective->shortest_ns * collective->timed);
}

static void write_collective(const struct nccl_data *data, const struct nccl_joined *joined,
			     const struct nccl_collective *collective, FILE *stream)
{
	const struct nccl_team *team = &data->teams[collective->team];
	struct json_writer json;
	char hash[32];

	snprintf(hash, sizeof(hash), "0x%016llx", (unsigned long long)team->hash);
	begin_line(&json, stream);
	json_put_text(&json, "communicator", team->name);
	json_put_text(&json, "communicator_hash", hash);
	json_put_count(&json, "communicator_occurrence", team->occurrence);
	json_put_text(&json, "function", data->functions[collective->function].name);
	json_put_count(&json, "sequence", collective->sequence);
	json_put_count(&json, "bytes", collective->bytes);
	json_put_count(&json, "size_bytes", collective->size_bytes);
	json_put_count(&json, "ranks", team->ranks);
	json_put_count(&json, "ranks_with_records", team->member_count);
	json_put_count(&json, "ranks_seen", collective->seen);
	json_put_count(&json, "ranks_in_flight", collective->in_flight);
	json_put_count(&json, "ranks_timed", collective->timed);
	json_put_count(&json, "ranks_shared_times", collective->shared);
	put_times(&json, data, collective);
	put_missing(&json, data, joined, collective);
	end_line(&json);
}

int output_nccl_collectives(struct session *session, const struct output_options *options,
			    FILE *stream, struct problem *problem)
{
	struct nccl_joined joined;
	int result = nccl_check(session, problem);

	(void)options;
	if (result == 0)
		result = nccl_join(session->nccl, &joined, problem);
	if (result < 0)
		return result;
	write_head(session->nccl, &joined, stream);
	for (size_t i = 0; i < joined.count; i++)
		write_collective(session->nccl, &joined, &joined.collectives[i], stream);
	nccl_join_deinit(&joined);
	return stream_check(stream, "the collectives", problem);
}
