/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * nccl/summary.json: what summary.txt says, for programs; docs/nccl.md describes the keys.
 */
#include "analysis/nccl_join.h"
#include "output/nccl.h"
#include "output/nccl_rows.h"
#include "output/writers.h"

#define SCHEMA "kymo.nccl.summary/1"

static void put_error(struct json_writer *json, const char *key, uint64_t error_ns)
{
	if (error_ns == UINT64_MAX)
		json_put_null(json, key);
	else
		json_put_count(json, key, error_ns);
}

static void put_hash(struct json_writer *json, const struct nccl_team *team)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%016llx", (unsigned long long)team->hash);
	json_put_text(json, "communicator", team->name);
	json_put_text(json, "communicator_hash", text);
	json_put_count(json, "communicator_occurrence", team->occurrence);
}

/* ---- who recorded ---- */

static void put_losses(struct json_writer *json, const struct nccl_file *file)
{
	json_object_begin(json, "losses");
	for (unsigned i = 0; i < NCCL_LOSS_COUNT; i++) {
		const char *name = nccl_loss_name((enum nccl_loss)i);
		char number[32];

		snprintf(number, sizeof(number), "reason_%u", i);
		if (name || file->header.losses[i])
			json_put_count(json, name ? name : number, file->header.losses[i]);
	}
	json_put_count(json, "torn_records", file->torn_records);
	json_put_count(json, "torn_chunks", file->torn_chunks);
	json_put_count(json, "missing_bytes", file->missing_bytes);
	json_object_end(json);
}

static void put_process(struct json_writer *json, const struct nccl_data *data,
			const struct nccl_process *process)
{
	const struct nccl_file_header *header = &process->file.header;

	json_object_begin(json, NULL);
	json_put_text(json, "host", header->host);
	json_put_count(json, "pid", header->pid);
	json_put_signed(json, "world_rank", process->rank);
	json_put_text(json, "program", header->program);
	json_put_text(json, "job", header->job);
	json_put_text(json, "ended", nccl_ended_name(process->ended));
	json_put_count(json, "nccl_version", header->nccl_version);
	json_put_boolean(json, "rccl", header->rccl);
	json_put_count(json, "api_version", header->api);
	json_put_count(json, "event_mask", header->mask);
	json_put_count(json, "kernel_around_ns", nccl_kernel_around_ns(process));
	json_put_count(json, "operations", process->operations);
	json_put_count(json, "events", process->events);
	json_put_count(json, "communicators", process->member_count);
	json_put_count(json, "helper_cpu_ns", header->helper_cpu_ns);
	json_put_text(json, "problem", header->problem);
	json_put_text(json, "clock_of", data->hosts[process->host].name);
	put_losses(json, &process->file);
	json_object_end(json);
}

static void put_hosts(struct json_writer *json, const struct nccl_data *data)
{
	json_array_begin(json, "hosts");
	for (uint32_t i = 0; i < data->host_count; i++) {
		struct nccl_offset offset = nccl_align_at(&data->align, i, data->start_ns);

		json_object_begin(json, NULL);
		json_put_text(json, "host", data->hosts[i].name);
		json_put_text(json, "boot_id", data->hosts[i].boot_id);
		json_put_signed(json, "add_to_time_ns", offset.add_ns);
		put_error(json, "error_ns", offset.error_ns);
		json_put_text(json, "aligned_by", nccl_align_basis_name(offset.basis));
		json_put_boolean(json, "contradicted", offset.contradicted);
		json_object_end(json);
	}
	json_array_end(json);
}

/* ---- what was done ---- */

static void put_known_ns(struct json_writer *json, const char *key, uint64_t ns, bool known)
{
	if (known)
		json_put_count(json, key, ns);
	else
		json_put_null(json, key);
}

static void put_rate(struct json_writer *json, const char *key, double rate, bool known)
{
	if (known)
		json_put_number(json, key, rate);
	else
		json_put_null(json, key);
}

static void put_sizes(struct json_writer *json, const struct nccl_tally *tally)
{
	json_array_begin(json, "sizes");
	for (unsigned i = 0; i < NCCL_SIZE_CLASSES; i++) {
		const struct nccl_size_class *sizes = &tally->sizes[i];

		if (!sizes->operations)
			continue;
		json_object_begin(json, NULL);
		json_put_count(json, "from_bytes", i ? (uint64_t)1 << (i - 1) : 0);
		json_put_count(json, "operations", sizes->operations);
		json_put_count(json, "timed", sizes->timed);
		json_put_count(json, "time_ns", sizes->ns);
		put_rate(json, "algbw_gbs", nccl_algorithm_bandwidth(sizes->timed_bytes, sizes->ns),
			 sizes->ns);
		put_rate(json, "busbw_gbs", nccl_bus_bandwidth(sizes->bus_bytes, sizes->ns),
			 sizes->ns);
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_durations(struct json_writer *json, const struct nccl_tally *tally)
{
	/* Of what the network alone timed, a ring's sums have no more than the time of all. */
	bool timed = tally->longest_ns != 0, rated = tally->sized_ns != 0;

	put_known_ns(json, "shortest_ns", tally->shortest_ns, timed);
	put_known_ns(json, "median_ns", nccl_tally_quantile(tally, 0.5), timed);
	put_known_ns(json, "p99_ns", nccl_tally_quantile(tally, 0.99), timed);
	put_known_ns(json, "longest_ns", tally->longest_ns, timed);
	put_rate(json, "algbw_gbs", nccl_algorithm_bandwidth(tally->timed_bytes, tally->sized_ns),
		 rated);
	put_rate(json, "busbw_gbs", nccl_bus_bandwidth(tally->bus_bytes, tally->sized_ns), rated);
}

static void put_row(struct json_writer *json, const struct nccl_data *data,
		    const struct nccl_row *row)
{
	const struct nccl_tally *tally = row->tally;

	json_object_begin(json, NULL);
	if (row->team != NCCL_NONE) {
		put_hash(json, &data->teams[row->team]);
		json_put_count(json, "ranks", data->teams[row->team].ranks);
		json_put_boolean(json, "ranks_inferred", data->teams[row->team].ranks_inferred);
	}
	json_put_text(json, "function", data->functions[row->function].name);
	json_put_count(json, "operations", tally->operations);
	json_put_count(json, "size_bytes", tally->bytes);
	json_put_count(json, "timed", tally->timed);
	json_put_count(json, "timed_by_network", tally->by_network);
	json_put_count(json, "time_ns", tally->ns);
	put_durations(json, tally);
	json_put_count(json, "batched", tally->batched);
	json_put_count(json, "aliased", tally->aliased);
	json_put_count(json, "enqueue_only", tally->enqueue_only);
	json_put_count(json, "incomplete", tally->incomplete);
	json_put_count(json, "in_flight", tally->in_flight);
	put_sizes(json, tally);
	json_object_end(json);
}

static int put_rows(struct json_writer *json, const struct nccl_data *data, const char *key,
		    bool by_team)
{
	struct nccl_rows rows;
	int result = nccl_rows_make(data, by_team, &rows);

	if (result < 0)
		return result;
	json_array_begin(json, key);
	for (size_t i = 0; i < rows.count; i++)
		put_row(json, data, &rows.rows[i]);
	json_array_end(json);
	nccl_rows_deinit(&rows);
	return 0;
}

/* ---- what stands still ---- */

static void put_transfers(struct json_writer *json, struct nccl_data *data,
			  const struct nccl_hang *hang, uint32_t member, uint64_t operation)
{
	json_array_begin(json, "transfers");
	for (size_t i = 0; i < hang->transfer_count; i++) {
		const struct nccl_open_transfer *transfer = &hang->transfers[i];

		if (transfer->member != member || transfer->operation != operation)
			continue;
		json_object_begin(json, NULL);
		json_put_count(json, "channel", transfer->channel);
		json_put_signed(json, "peer", transfer->peer);
		json_put_text(json, "direction", transfer->sends ? "send" : "receive");
		json_put_signed(json, "steps", transfer->steps);
		json_put_count(json, "steps_done", transfer->steps_done);
		json_put_text(json, "waits_for", nccl_wait_text(transfer->wait));
		json_put_count(
			json, "quiet_ns",
			nccl_quiet_ns(data, data->members[member].process, transfer->last_ticks));
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_stuck_rank(struct json_writer *json, struct nccl_data *data,
			   const struct nccl_hang *hang, const struct nccl_stuck_rank *rank)
{
	const struct nccl_member *member = NULL;

	json_object_begin(json, NULL);
	json_put_signed(json, "rank", rank->rank);
	json_put_text(json, "standing", nccl_standing_name(rank->standing));
	if (rank->member != NCCL_NONE) {
		member = &data->members[rank->member];
		json_put_text(json, "host", data->processes[member->process].file.header.host);
		json_put_count(json, "pid", data->processes[member->process].file.header.pid);
		json_put_text(json, "process",
			      nccl_ended_name(data->processes[member->process].ended));
		json_put_count(json, "quiet_ns", rank->quiet_ns);
	}
	if (member && rank->standing == NCCL_STANDING_WAITS) {
		const struct nccl_operation *record = &member->waiting[0].record;

		json_put_count(json, "waiting_ns",
			       nccl_quiet_ns(data, member->process, record->start));
		json_put_text(
			json, "channels_open",
			nccl_channels_text(record->channels_started & ~record->channels_stopped)
				.text);
		json_put_count(json, "enqueued_behind", member->waiting_count - 1);
		put_transfers(json, data, hang, rank->member, record->id);
	}
	json_object_end(json);
}

static int put_hang(struct json_writer *json, struct nccl_data *data, struct problem *problem)
{
	struct nccl_hang hang;
	int result = nccl_hang_find(data, &hang, problem);

	if (result < 0)
		return result;
	json_array_begin(json, "in_flight");
	for (size_t i = 0; i < hang.stuck_count; i++) {
		const struct nccl_stuck *stuck = &hang.stuck[i];

		json_object_begin(json, NULL);
		put_hash(json, &data->teams[stuck->team]);
		json_put_text(json, "function", data->functions[stuck->function].name);
		json_put_count(json, "sequence", stuck->sequence);
		if (stuck->kind == NCCL_KIND_P2P)
			json_put_signed(json, "peer", stuck->waiting->record.peer);
		json_put_count(json, "bytes", stuck->waiting->record.bytes);
		json_put_count(json, "longest_ns", stuck->longest_ns);
		json_put_boolean(json, "mismatch", stuck->mismatch);
		json_array_begin(json, "ranks");
		for (uint32_t k = 0; k < stuck->rank_count; k++)
			put_stuck_rank(json, data, &hang, &stuck->ranks[k]);
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
	nccl_hang_deinit(&hang);
	return 0;
}

/* ---- between ranks ---- */

static void put_transfer_sums(struct json_writer *json, const struct nccl_data *data,
			      const struct nccl_joined *joined)
{
	struct nccl_transfer_sum sum;
	size_t place = 0;

	json_array_begin(json, "functions");
	while (nccl_transfer_next(data, joined, &place, &sum)) {
		if (!sum.collectives)
			continue;
		json_object_begin(json, NULL);
		put_hash(json, &data->teams[sum.team]);
		json_put_text(json, "function", data->functions[sum.function].name);
		json_put_count(json, "collectives", sum.collectives);
		json_put_count(json, "size_bytes", sum.bytes);
		json_put_count(json, "transfer_ns", sum.ns);
		json_put_count(json, "longest_wait_ns", sum.longest_wait_ns);
		json_put_number(json, "algbw_gbs", nccl_algorithm_bandwidth(sum.bytes, sum.ns));
		json_put_number(json, "busbw_gbs", nccl_bus_bandwidth(sum.bus_bytes, sum.ns));
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_differences(struct json_writer *json, const struct nccl_data *data,
			    const struct nccl_joined *joined)
{
	json_array_begin(json, "differences");
	for (uint32_t i = 0; i < data->sum_count; i++) {
		const struct nccl_difference *difference = &joined->differences[i];
		const struct nccl_member *member = &data->members[data->sums[i].member];

		if (!difference->count)
			continue;
		json_object_begin(json, NULL);
		put_hash(json, &data->teams[member->team]);
		json_put_text(json, "function", data->functions[data->sums[i].function].name);
		json_put_signed(json, "rank", member->rank);
		json_put_signed(json, "other_rank", data->members[difference->other_member].rank);
		json_put_count(json, "count", difference->count);
		json_put_count(json, "first_sequence", difference->first_sequence);
		json_put_count(json, "as_next", difference->as_next);
		json_put_count(json, "as_previous", difference->as_previous);
		json_put_boolean(json, "left_out", nccl_difference_is_left_out(difference));
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_rank_sums(struct json_writer *json, const struct nccl_data *data,
			  const struct nccl_joined *joined)
{
	json_array_begin(json, "ranks");
	for (uint32_t i = 0; i < data->member_count; i++) {
		const struct nccl_rank_sum *sum = &joined->ranks[i];

		if (!sum->joined && !sum->left_out)
			continue;
		json_object_begin(json, NULL);
		put_hash(json, &data->teams[data->members[i].team]);
		json_put_signed(json, "rank", data->members[i].rank);
		json_put_signed(json, "world_rank", data->processes[data->members[i].process].rank);
		json_put_count(json, "collectives", sum->joined);
		json_put_count(json, "last", sum->last);
		json_put_count(json, "others_waited_ns", sum->caused_ns);
		json_put_count(json, "waited_ns", sum->waited_ns);
		json_put_count(json, "time_ns", sum->duration_ns);
		json_put_count(json, "left_out", sum->left_out);
		json_object_end(json);
	}
	json_array_end(json);
}

static void put_links(struct json_writer *json, const struct nccl_data *data,
		      const struct nccl_joined *joined)
{
	json_array_begin(json, "links");
	for (size_t i = 0; i < joined->link_count; i++) {
		const struct nccl_link *link = &joined->links[i];

		json_object_begin(json, NULL);
		put_hash(json, &data->teams[data->members[link->member].team]);
		json_put_signed(json, "rank", data->members[link->member].rank);
		json_put_signed(json, "peer", link->peer);
		json_put_text(json, "direction", link->sends ? "send" : "receive");
		json_put_text(json, "seen_by", link->network ? "network" : "operation");
		json_put_count(json, "transfers", link->transfers);
		json_put_count(json, "bytes", link->bytes);
		json_put_count(json, "time_ns", link->ns);
		json_put_count(json, "network_wait_ns", link->wait_ns);
		json_put_count(json, "slowest_ns", link->slowest_ns);
		json_put_number(json, "gbs", nccl_link_bandwidth(link));
		json_object_end(json);
	}
	json_array_end(json);
}

static int put_joined(struct json_writer *json, struct nccl_data *data, struct problem *problem)
{
	struct nccl_joined joined;
	int result = nccl_join(data, &joined, problem);

	if (result < 0)
		return result;
	json_object_begin(json, "between_ranks");
	json_put_count(json, "collectives", joined.count);
	json_put_count(json, "left_out", joined.left_out);
	json_put_count(json, "without_a_rank", joined.unseen);
	json_put_count(json, "mismatched", joined.mismatched);
	json_put_count(json, "transfer_ns", joined.transfer_ns);
	json_put_count(json, "waiting_ns", joined.waiting_ns);
	put_transfer_sums(json, data, &joined);
	put_rank_sums(json, data, &joined);
	put_differences(json, data, &joined);
	put_links(json, data, &joined);
	json_object_end(json);
	nccl_join_deinit(&joined);
	return 0;
}

static void put_processes(struct json_writer *json, const struct nccl_data *data)
{
	json_array_begin(json, "processes");
	for (uint32_t i = 0; i < data->process_count; i++)
		put_process(json, data, &data->processes[i]);
	json_array_end(json);
}

static void put_problems(struct json_writer *json, const struct nccl_data *data)
{
	json_put_count(json, "unreadable_files", data->unreadable_files);
	json_array_begin(json, "problems");
	for (size_t i = 0; i < data->problem_count; i++)
		json_put_text(json, NULL, data->problems[i]);
	json_array_end(json);
}

int output_nccl_json(struct session *session, const struct output_options *options, FILE *stream,
		     struct problem *problem)
{
	struct nccl_data *data = session->nccl;
	struct json_writer json;
	int result = nccl_check(session, problem);

	(void)options;
	if (result < 0)
		return result;
	json_writer_init(&json, stream);
	json_object_begin(&json, NULL);
	json_put_text(&json, "schema", SCHEMA);
	json_put_text(&json, "kymo_version", KYMO_VERSION);
	json_put_text(&json, "command", session->command_line);
	json_put_count(&json, "start_ns", data->start_ns);
	json_put_count(&json, "end_ns", data->end_ns);
	put_hosts(&json, data);
	put_processes(&json, data);
	result = put_hang(&json, data, problem);
	if (result == 0)
		result = put_rows(&json, data, "functions_by_communicator", true);
	if (result == 0)
		result = put_rows(&json, data, "functions", false);
	if (result == 0)
		result = put_joined(&json, data, problem);
	if (result < 0)
		return problem_set(problem, result, "out of memory");
	put_problems(&json, data);
	json_object_end(&json);
	return json_writer_finish(&json, problem);
}
