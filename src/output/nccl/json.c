/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * nccl/summary.json: what summary.txt says, for programs; docs/reference/nccl.md describes the
 * keys.
 */
#include "analysis/nccl/join.h"
#include "output/nccl/nccl.h"
#include "output/nccl/rows.h"
#include "output/output.h"

#define NCCL_SUMMARY_SCHEMA_NAME "kymo.nccl.summary/1"

static void json_put_clock_error(struct json_writer *json, const char *key, uint64_t error_ns)
{
	if (error_ns == UINT64_MAX)
		json_put_null(json, key);
	else
		json_put_count(json, key, error_ns);
}

static void json_put_communicator_identity(struct json_writer *json,
					   const struct nccl_communicator *communicator)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%016llx", (unsigned long long)communicator->hash);
	json_put_text(json, "communicator", communicator->name);
	json_put_text(json, "communicator_hash", text);
	json_put_count(json, "communicator_occurrence", communicator->same_hash_index);
}

/* ---- who recorded ---- */

static void json_put_file_losses(struct json_writer *json, const struct nccl_file *file)
{
	json_object_begin(json, "losses");
	for (unsigned i = 0; i < NCCL_LOSS_COUNT; i++) {
		const char *name = nccl_get_loss_name((enum nccl_loss)i);
		char number[32];

		snprintf(number, sizeof(number), "reason_%u", i);
		if (name || file->header.losses[i])
			json_put_count(json, name ? name : number, file->header.losses[i]);
	}
	json_put_count(json, "torn_records", file->torn_record_count);
	json_put_count(json, "torn_chunks", file->torn_chunk_count);
	json_put_count(json, "missing_bytes", file->missing_bytes);
	json_object_end(json);
}

static void json_put_process(struct json_writer *json, const struct nccl_data *data,
			     const struct nccl_process *process)
{
	const struct nccl_file_header *header = &process->file.header;

	json_object_begin(json, NULL);
	json_put_text(json, "host", header->host);
	json_put_count(json, "pid", header->pid);
	json_put_signed_integer(json, "world_rank", process->rank);
	json_put_text(json, "program", header->program);
	json_put_text(json, "job", header->job);
	json_put_text(json, "ended", nccl_get_process_end_state_name(process->ended));
	json_put_count(json, "nccl_version", header->nccl_version);
	json_put_boolean(json, "rccl", header->rccl);
	json_put_count(json, "api_version", header->api);
	json_put_count(json, "event_mask", header->mask);
	json_put_count(json, "kernel_around_ns", nccl_get_kernel_time_outside_stamps_ns(process));
	json_put_count(json, "operations", process->operations);
	json_put_count(json, "events", process->events);
	json_put_count(json, "communicators", process->member_count);
	json_put_count(json, "helper_cpu_ns", header->helper_cpu_ns);
	json_put_text(json, "problem", header->problem);
	json_put_text(json, "clock_of", data->hosts[process->host].name);
	json_put_file_losses(json, &process->file);
	json_object_end(json);
}

static void json_put_host_clock_offsets(struct json_writer *json, const struct nccl_data *data)
{
	json_array_begin(json, "hosts");
	for (uint32_t i = 0; i < data->host_count; i++) {
		struct nccl_host_clock_offset offset =
			nccl_align_get_offset_at_time(&data->clock_alignment, i, data->start_ns);

		json_object_begin(json, NULL);
		json_put_text(json, "host", data->hosts[i].name);
		json_put_text(json, "boot_id", data->hosts[i].boot_id);
		json_put_signed_integer(json, "add_to_time_ns", offset.offset_to_host0_ns);
		json_put_clock_error(json, "error_ns", offset.error_ns);
		json_put_text(json, "aligned_by",
			      nccl_get_clock_alignment_basis_name(offset.alignment_basis));
		json_put_boolean(json, "contradicted", offset.is_contradicted);
		json_object_end(json);
	}
	json_array_end(json);
}

/* ---- what was done ---- */

static void json_put_ns_if_known(struct json_writer *json, const char *key, uint64_t ns, bool known)
{
	if (known)
		json_put_count(json, key, ns);
	else
		json_put_null(json, key);
}

static void json_put_rate_if_known(struct json_writer *json, const char *key, double rate,
				   bool known)
{
	if (known)
		json_put_real_with_6_digits(json, key, rate);
	else
		json_put_null(json, key);
}

static void json_put_size_classes(struct json_writer *json,
				  const struct nccl_operation_tally *tally)
{
	json_array_begin(json, "sizes");
	for (unsigned i = 0; i < NCCL_SIZE_CLASS_COUNT; i++) {
		const struct nccl_size_class_sums *sizes = &tally->sizes[i];

		if (!sizes->operations)
			continue;
		json_object_begin(json, NULL);
		json_put_count(json, "from_bytes", i ? (uint64_t)1 << (i - 1) : 0);
		json_put_count(json, "operations", sizes->operations);
		json_put_count(json, "timed", sizes->timed);
		json_put_count(json, "time_ns", sizes->ns);
		json_put_rate_if_known(
			json, "algbw_gbs",
			nccl_compute_algorithm_bandwidth(sizes->timed_bytes, sizes->ns), sizes->ns);
		json_put_rate_if_known(json, "busbw_gbs",
				       nccl_compute_bus_bandwidth(sizes->bus_bytes, sizes->ns),
				       sizes->ns);
		json_object_end(json);
	}
	json_array_end(json);
}

static void json_put_durations_and_bandwidths(struct json_writer *json,
					      const struct nccl_operation_tally *tally)
{
	/* What the network alone timed: a ring's sums have no more than the time of all. */
	bool timed = tally->longest_duration_ns != 0, rated = tally->known_size_duration_ns != 0;

	json_put_ns_if_known(json, "shortest_ns", tally->shortest_duration_ns, timed);
	json_put_ns_if_known(json, "median_ns", nccl_tally_find_duration_quantile(tally, 0.5),
			     timed);
	json_put_ns_if_known(json, "p99_ns", nccl_tally_find_duration_quantile(tally, 0.99), timed);
	json_put_ns_if_known(json, "longest_ns", tally->longest_duration_ns, timed);
	json_put_rate_if_known(
		json, "algbw_gbs",
		nccl_compute_algorithm_bandwidth(tally->timed_bytes, tally->known_size_duration_ns),
		rated);
	json_put_rate_if_known(
		json, "busbw_gbs",
		nccl_compute_bus_bandwidth(tally->bus_bytes, tally->known_size_duration_ns), rated);
}

static void json_put_function_sum(struct json_writer *json, const struct nccl_data *data,
				  const struct nccl_function_sum_row *row)
{
	const struct nccl_operation_tally *tally = row->tally;

	json_object_begin(json, NULL);
	if (row->communicator != NCCL_INDEX_NONE) {
		json_put_communicator_identity(json, &data->communicators[row->communicator]);
		json_put_count(json, "ranks", data->communicators[row->communicator].rank_count);
		json_put_boolean(json, "ranks_inferred",
				 data->communicators[row->communicator].is_rank_count_inferred);
	}
	json_put_text(json, "function", data->functions[row->function].name);
	json_put_count(json, "operations", tally->operations);
	json_put_count(json, "size_bytes", tally->bytes);
	json_put_count(json, "timed", tally->timed);
	json_put_count(json, "timed_by_network", tally->timed_by_network_count);
	json_put_count(json, "time_ns", tally->ns);
	json_put_durations_and_bandwidths(json, tally);
	json_put_count(json, "batched", tally->batched_operation_count);
	json_put_count(json, "aliased", tally->aliased_operation_count);
	json_put_count(json, "enqueue_only", tally->enqueue_only_operation_count);
	json_put_count(json, "incomplete", tally->incomplete);
	json_put_count(json, "in_flight", tally->in_flight_operation_count);
	json_put_size_classes(json, tally);
	json_object_end(json);
}

static int json_put_function_sums(struct json_writer *json, const struct nccl_data *data,
				  const char *key, bool by_communicator)
{
	struct nccl_function_sum_rows rows;
	int result = nccl_function_sum_rows_build(data, by_communicator, &rows);

	if (result < 0)
		return result;
	json_array_begin(json, key);
	for (size_t i = 0; i < rows.count; i++)
		json_put_function_sum(json, data, &rows.rows[i]);
	json_array_end(json);
	nccl_function_sum_rows_deinit(&rows);
	return 0;
}

/* ---- what stands still ---- */

static void json_put_unfinished_transfers(struct json_writer *json, struct nccl_data *data,
					  const struct nccl_hang_findings *hang, uint32_t member,
					  uint64_t operation)
{
	json_array_begin(json, "transfers");
	for (size_t i = 0; i < hang->unfinished_transfer_count; i++) {
		const struct nccl_unfinished_transfer *transfer = &hang->unfinished_transfers[i];

		if (transfer->member != member || transfer->operation != operation)
			continue;
		json_object_begin(json, NULL);
		json_put_count(json, "channel", transfer->channel);
		json_put_signed_integer(json, "peer", transfer->peer);
		json_put_text(json, "direction", transfer->sends ? "send" : "receive");
		json_put_signed_integer(json, "steps", transfer->step_count);
		json_put_count(json, "steps_done", transfer->done_step_count);
		json_put_text(json, "waits_for", nccl_get_transfer_wait_text(transfer->wait));
		json_put_count(json, "quiet_ns",
			       nccl_compute_ns_since_ticks(data, data->members[member].process,
							   transfer->last_ticks));
		json_object_end(json);
	}
	json_array_end(json);
}

static void json_put_stuck_rank(struct json_writer *json, struct nccl_data *data,
				const struct nccl_hang_findings *hang,
				const struct nccl_stuck_operation_rank *rank)
{
	const struct nccl_communicator_rank *member = NULL;

	json_object_begin(json, NULL);
	json_put_signed_integer(json, "rank", rank->rank);
	json_put_text(json, "standing", nccl_get_rank_progress_name(rank->progress));
	if (rank->member != NCCL_INDEX_NONE) {
		member = &data->members[rank->member];
		json_put_text(json, "host", data->processes[member->process].file.header.host);
		json_put_count(json, "pid", data->processes[member->process].file.header.pid);
		json_put_text(
			json, "process",
			nccl_get_process_end_state_name(data->processes[member->process].ended));
		json_put_count(json, "quiet_ns", rank->quiet_ns);
	}
	if (member && rank->progress == NCCL_RANK_IS_WAITING) {
		const struct nccl_operation *record = &member->waiting[0].record;

		json_put_count(json, "waiting_ns",
			       nccl_compute_ns_since_ticks(data, member->process, record->start));
		json_put_text(json, "channels_open",
			      nccl_channel_bitmap_to_text(record->channels_started &
							  ~record->channels_stopped)
				      .text);
		json_put_count(json, "enqueued_behind", member->waiting_operation_count - 1);
		json_put_unfinished_transfers(json, data, hang, rank->member, record->id);
	}
	json_object_end(json);
}

static int json_put_in_flight_operations(struct json_writer *json, struct nccl_data *data,
					 struct problem *problem)
{
	struct nccl_hang_findings hang;
	int result = nccl_find_stuck_operations(data, &hang, problem);

	if (result < 0)
		return result;
	json_array_begin(json, "in_flight");
	for (size_t i = 0; i < hang.stuck_operation_count; i++) {
		const struct nccl_stuck_operation *stuck = &hang.stuck_operations[i];

		json_object_begin(json, NULL);
		json_put_communicator_identity(json, &data->communicators[stuck->communicator]);
		json_put_text(json, "function", data->functions[stuck->function].name);
		json_put_count(json, "sequence", stuck->sequence);
		if (stuck->kind == NCCL_KIND_P2P)
			json_put_signed_integer(json, "peer", stuck->waiting->record.peer);
		json_put_count(json, "bytes", stuck->waiting->record.bytes);
		json_put_count(json, "longest_ns", stuck->longest_wait_ns);
		json_put_boolean(json, "mismatch", stuck->has_function_mismatch);
		json_array_begin(json, "ranks");
		for (uint32_t k = 0; k < stuck->rank_count; k++)
			json_put_stuck_rank(json, data, &hang, &stuck->ranks[k]);
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
	result = nccl_json_put_hang_roots(json, data, &hang);
	nccl_hang_findings_deinit(&hang);
	return result;
}

/* ---- between ranks ---- */

static void json_put_collective_transfer_sums(struct json_writer *json,
					      const struct nccl_data *data,
					      const struct nccl_joined_collectives *joined)
{
	struct nccl_collective_transfer_sums sum;
	size_t place = 0;

	json_array_begin(json, "functions");
	while (nccl_get_next_function_transfer_sums(data, joined, &place, &sum)) {
		if (!sum.collectives)
			continue;
		json_object_begin(json, NULL);
		json_put_communicator_identity(json, &data->communicators[sum.communicator]);
		json_put_text(json, "function", data->functions[sum.function].name);
		json_put_count(json, "collectives", sum.collectives);
		json_put_count(json, "size_bytes", sum.bytes);
		json_put_count(json, "transfer_ns", sum.ns);
		json_put_count(json, "longest_wait_ns", sum.longest_wait_ns);
		json_put_real_with_6_digits(json, "algbw_gbs",
					    nccl_compute_algorithm_bandwidth(sum.bytes, sum.ns));
		json_put_real_with_6_digits(json, "busbw_gbs",
					    nccl_compute_bus_bandwidth(sum.bus_bytes, sum.ns));
		json_object_end(json);
	}
	json_array_end(json);
}

static void json_put_argument_differences(struct json_writer *json, const struct nccl_data *data,
					  const struct nccl_joined_collectives *joined)
{
	json_array_begin(json, "differences");
	for (uint32_t i = 0; i < data->rank_function_sum_count; i++) {
		const struct nccl_differing_argument_counts *difference =
			&joined->argument_differences_by_sum[i];
		const struct nccl_communicator_rank *member =
			&data->members[data->rank_function_sums[i].member];

		if (!difference->count)
			continue;
		json_object_begin(json, NULL);
		json_put_communicator_identity(json, &data->communicators[member->communicator]);
		json_put_text(json, "function",
			      data->functions[data->rank_function_sums[i].function].name);
		json_put_signed_integer(json, "rank", member->rank);
		json_put_signed_integer(json, "other_rank",
					data->members[difference->compared_to_member].rank);
		json_put_count(json, "count", difference->count);
		json_put_count(json, "first_sequence", difference->first_sequence);
		json_put_count(json, "as_next", difference->like_next_call_count);
		json_put_count(json, "as_previous", difference->like_previous_call_count);
		json_put_boolean(json, "left_out",
				 nccl_differing_calls_suggest_skipped_call(difference));
		json_object_end(json);
	}
	json_array_end(json);
}

static void json_put_rank_wait_sums(struct json_writer *json, const struct nccl_data *data,
				    const struct nccl_joined_collectives *joined)
{
	json_array_begin(json, "ranks");
	for (uint32_t i = 0; i < data->member_count; i++) {
		const struct nccl_rank_wait_sums *sum = &joined->ranks[i];

		if (!sum->joined && !sum->joined_transfers && !sum->left_out)
			continue;
		json_object_begin(json, NULL);
		json_put_communicator_identity(json,
					       &data->communicators[data->members[i].communicator]);
		json_put_signed_integer(json, "rank", data->members[i].rank);
		json_put_signed_integer(json, "world_rank", data->members[i].job_rank);
		json_put_count(json, "collectives", sum->joined);
		json_put_count(json, "last", sum->last);
		json_put_count(json, "transfers", sum->joined_transfers);
		json_put_count(json, "last_transfers", sum->last_transfers);
		json_put_count(json, "others_waited_ns", sum->caused_wait_ns);
		json_put_count(json, "passed_on_ns", sum->passed_on_wait_ns);
		json_put_count(json, "waited_ns", sum->waited_ns);
		json_put_count(json, "time_ns", sum->duration_ns);
		json_put_count(json, "left_out", sum->left_out);
		json_object_end(json);
	}
	json_array_end(json);
}

static void json_put_rank_links(struct json_writer *json, const struct nccl_data *data,
				const struct nccl_joined_collectives *joined)
{
	json_array_begin(json, "links");
	for (size_t i = 0; i < joined->link_count; i++) {
		const struct nccl_rank_to_peer_link *link = &joined->links[i];

		json_object_begin(json, NULL);
		json_put_communicator_identity(
			json, &data->communicators[data->members[link->member].communicator]);
		json_put_signed_integer(json, "rank", data->members[link->member].rank);
		json_put_signed_integer(json, "peer", link->peer);
		json_put_text(json, "direction", link->sends ? "send" : "receive");
		json_put_text(json, "seen_by", link->is_over_network ? "network" : "operation");
		json_put_count(json, "transfers", link->transfer_count);
		json_put_count(json, "bytes", link->bytes);
		json_put_count(json, "time_ns", link->ns);
		json_put_count(json, "network_wait_ns", link->network_or_peer_wait_ns);
		json_put_count(json, "paired", link->paired_transfer_count);
		json_put_count(json, "sender_wait_ns", link->sender_wait_ns);
		json_put_count(json, "receiver_wait_ns", link->receiver_wait_ns);
		json_put_count(json, "slowest_ns", link->slowest_transfer_ns);
		json_put_real_with_6_digits(json, "gbs", nccl_compute_link_bandwidth(link));
		json_object_end(json);
	}
	json_array_end(json);
}

static int json_put_rank_comparison(struct json_writer *json, struct nccl_data *data,
				    struct problem *problem)
{
	struct nccl_joined_collectives joined;
	int result = nccl_join_collectives(data, &joined, problem);

	if (result < 0)
		return result;
	json_object_begin(json, "between_ranks");
	json_put_count(json, "collectives", joined.count);
	json_put_count(json, "left_out", joined.left_out);
	json_put_count(json, "without_a_rank", joined.skipped_collective_count);
	json_put_count(json, "mismatched", joined.mismatched_collective_count);
	json_put_count(json, "transfer_ns", joined.transfer_ns);
	json_put_count(json, "waiting_ns", joined.waiting_ns);
	json_put_count(json, "incomplete", joined.incomplete_collective_count);
	json_put_count(json, "in_doubt", joined.collectives_in_doubt);
	json_put_collective_transfer_sums(json, data, &joined);
	json_put_rank_wait_sums(json, data, &joined);
	nccl_json_put_passed_waits(json, data, &joined);
	json_put_argument_differences(json, data, &joined);
	nccl_json_put_differing_calls(json, data);
	json_put_rank_links(json, data, &joined);
	json_object_end(json);
	nccl_joined_collectives_deinit(&joined);
	return 0;
}

static void json_put_processes(struct json_writer *json, const struct nccl_data *data)
{
	json_array_begin(json, "processes");
	for (uint32_t i = 0; i < data->process_count; i++)
		json_put_process(json, data, &data->processes[i]);
	json_array_end(json);
}

static void json_put_reading_problems(struct json_writer *json, const struct nccl_data *data)
{
	json_put_count(json, "unreadable_files", data->unreadable_files);
	json_array_begin(json, "problems");
	for (size_t i = 0; i < data->problem_count; i++)
		json_put_text(json, NULL, data->problems[i]);
	json_array_end(json);
}

static int write_nccl_summary_json(struct session *session, const struct output_options *options,
				   FILE *stream, struct problem *problem)
{
	struct nccl_data *data = session_get_nccl_data(session);
	struct json_writer json;
	int result = nccl_require_records(session, problem);

	(void)options;
	if (result < 0)
		return result;
	json_writer_init(&json, stream);
	json_object_begin(&json, NULL);
	json_put_text(&json, "schema", NCCL_SUMMARY_SCHEMA_NAME);
	json_put_text(&json, "kymo_version", KYMO_VERSION);
	json_put_text(&json, "command", session->command_line);
	json_put_count(&json, "start_ns", data->start_ns);
	json_put_count(&json, "end_ns", data->end_ns);
	nccl_json_put_job(&json, data);
	json_put_host_clock_offsets(&json, data);
	json_put_processes(&json, data);
	result = json_put_in_flight_operations(&json, data, problem);
	if (result == 0)
		result = json_put_function_sums(&json, data, "functions_by_communicator", true);
	if (result == 0)
		result = json_put_function_sums(&json, data, "functions", false);
	if (result == 0)
		result = json_put_rank_comparison(&json, data, problem);
	if (result < 0)
		return problem_set(problem, result, "out of memory");
	json_put_reading_problems(&json, data);
	json_object_end(&json);
	return json_writer_finish(&json, problem);
}

const struct output_format output_format_nccl_json = {
	.name = "nccl-json",
	.file_name = "nccl/summary.json",
	.description = "the same as JSON",
	.has_whole_run_only = true,
	.write = write_nccl_summary_json,
};
