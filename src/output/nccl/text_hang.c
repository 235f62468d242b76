/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What was in flight, for somebody who has a job that stands still: the operation, who is missing,
 * which channels and peers those that are there wait for, and for how long.
 */
#include <inttypes.h>
#include <string.h>

#include "output/nccl/nccl.h"

#define EARLY_PROCESS_END_LAG_NS_LEAST                                                             \
	UINT64_C(300000000) /* the plugin's own thread looks more often */

static const char *plural_suffix(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static struct nccl_label_text format_process_pid_and_host(const struct nccl_data *data,
							  const struct nccl_process *process)
{
	struct nccl_label_text label;

	snprintf(label.text, sizeof(label.text), "process %u%s%.48s", process->file.header.pid,
		 data->host_count > 1 ? " on " : "",
		 data->host_count > 1 ? process->file.header.host : "");
	return label;
}

/* Where others went on, when it was heard of last says when it died. */
static struct nccl_label_text format_process_end(const struct nccl_data *data,
						 const struct nccl_process *process)
{
	struct nccl_label_text label = {.text = "still runs"};
	uint64_t latest = 0;

	for (uint32_t i = 0; i < data->process_count; i++) {
		if (data->processes[i].known_until_ns > latest)
			latest = data->processes[i].known_until_ns;
	}
	if (process->ended == NCCL_PROCESS_EXITED)
		snprintf(label.text, sizeof(label.text), "has exited");
	else if (process->ended == NCCL_PROCESS_ENDED_SILENTLY &&
		 latest > process->known_until_ns + EARLY_PROCESS_END_LAG_NS_LEAST)
		snprintf(label.text, sizeof(label.text),
			 "ended abnormally %s before the last record of the others",
			 quantity_from_ns(latest - process->known_until_ns).text);
	else if (process->ended == NCCL_PROCESS_ENDED_SILENTLY)
		snprintf(label.text, sizeof(label.text),
			 "ended abnormally: killed, crashed or aborted");
	return label;
}

struct nccl_process_text nccl_format_process(const struct nccl_data *data, uint32_t process)
{
	struct nccl_process_text text;

	snprintf(text.text, sizeof(text.text), "%.94s, %.95s",
		 format_process_pid_and_host(data, &data->processes[process]).text,
		 format_process_end(data, &data->processes[process]).text);
	return text;
}

/* ---- ranks that are in it ---- */

static void write_unfinished_transfer(struct nccl_data *data,
				      const struct nccl_unfinished_transfer *transfer, FILE *stream)
{
	uint32_t process = data->members[transfer->member].process;

	nccl_print_wrapped_line(
		stream, 8, "channel %u %s rank %d: %u of %d steps done, waits for %s, quiet for %s",
		transfer->channel, transfer->sends ? "sends to" : "receives from", transfer->peer,
		transfer->done_step_count, transfer->step_count,
		nccl_get_transfer_wait_text(transfer->wait),
		quantity_from_ns(nccl_compute_ns_since_ticks(data, process, transfer->last_ticks))
			.text);
}

static void write_unfinished_transfers(struct nccl_data *data,
				       const struct nccl_hang_findings *hang, uint32_t member,
				       uint64_t operation, FILE *stream, unsigned most)
{
	uint64_t left_out = 0;
	unsigned written = 0;

	for (size_t i = 0; i < hang->unfinished_transfer_count; i++) {
		const struct nccl_unfinished_transfer *transfer = &hang->unfinished_transfers[i];

		if (transfer->member != member || transfer->operation != operation)
			continue;
		if (most && written == most) {
			left_out++;
			continue;
		}
		write_unfinished_transfer(data, transfer, stream);
		written++;
	}
	if (left_out)
		nccl_print_wrapped_line(stream, 8, "… and %" PRIu64 " more open transfer%s",
					left_out, plural_suffix(left_out));
}

static void format_operation_progress(const struct nccl_operation *record, char *ret, size_t size)
{
	uint64_t open = record->channels_started & ~record->channels_stopped;
	unsigned done = (unsigned)__builtin_popcountll(record->channels_stopped);

	if (!record->stop)
		snprintf(ret, size, "NCCL is still enqueuing it");
	else if (open)
		snprintf(ret, size, "channels %s open, %u done",
			 nccl_channel_bitmap_to_text(open).text, done);
	else if (record->channels_started)
		snprintf(ret, size, "its %u channel%s are done, a transfer is not", done,
			 plural_suffix(done));
	else if (record->networks_started)
		snprintf(ret, size, "%u of %u transfers done", record->networks_stopped,
			 record->networks_started);
	else
		snprintf(ret, size, "enqueued, not seen running");
}

static void write_waiting_rank(struct nccl_data *data, const struct nccl_hang_findings *hang,
			       const struct nccl_stuck_operation_rank *rank, FILE *stream,
			       unsigned most)
{
	const struct nccl_communicator_rank *member = &data->members[rank->member];
	const struct nccl_process *process = &data->processes[member->process];
	const struct nccl_operation *record = &member->waiting[0].record;
	char channels[400];

	format_operation_progress(record, channels, sizeof(channels));
	nccl_print_wrapped_line(
		stream, 6, "%s (%s, %s): in it for %s, quiet for %s; %s",
		nccl_format_rank_label(data, rank->member).text,
		format_process_pid_and_host(data, process).text,
		format_process_end(data, process).text,
		quantity_from_ns(nccl_compute_ns_since_ticks(data, member->process, record->start))
			.text,
		quantity_from_ns(rank->quiet_ns).text, channels);
	if (record->kind == NCCL_KIND_P2P)
		nccl_print_wrapped_line(
			stream, 8, "it waits for %s",
			nccl_format_peer_label(data, member->communicator, record->peer).text);
	write_unfinished_transfers(data, hang, rank->member, record->id, stream, most);
	if (member->waiting_operation_count > 1)
		nccl_print_wrapped_line(stream, 8, "%" PRIu64 " more enqueued behind it",
					member->waiting_operation_count - 1);
}

/* ---- ranks that are not ---- */

static void write_absent_rank(struct nccl_data *data, const struct nccl_stuck_operation_rank *rank,
			      FILE *stream)
{
	const struct nccl_communicator_rank *member = &data->members[rank->member];
	const struct nccl_process *process = &data->processes[member->process];
	const char *unsure = rank->progress == NCCL_RANK_PROGRESS_UNKNOWN
				     ? " as far as its records go, some of which are lost"
				     : "";

	if (!member->has_last_operation) {
		nccl_print_wrapped_line(stream, 6,
					"%s (%s, %s) has NOT ENTERED it%s, nor any other",
					nccl_format_rank_label(data, rank->member).text,
					format_process_pid_and_host(data, process).text,
					format_process_end(data, process).text, unsure);
		return;
	}
	nccl_print_wrapped_line(
		stream, 6, "%s (%s, %s) has NOT ENTERED it%s; its last was %s, %s, enqueued %s %s",
		nccl_format_rank_label(data, rank->member).text,
		format_process_pid_and_host(data, process).text,
		format_process_end(data, process).text, unsure,
		nccl_format_operation_label(data, member->last_operation_function,
					    &member->last_operation)
			.text,
		member->waiting_operation_count ? "not done" : "done",
		quantity_from_ns(rank->quiet_ns).text,
		process->ended == NCCL_PROCESS_RUNNING ? "ago" : "before the end of its records");
}

/* "2, 5-7": ranks of one standing. */
static void format_ranks_with_progress(const struct nccl_stuck_operation *stuck,
				       enum nccl_rank_progress standing, char *ret, size_t size)
{
	size_t used = 0;

	*ret = '\0';
	for (uint32_t i = 0; i < stuck->rank_count && used + 32 < size; i++) {
		uint32_t last = i;

		if (stuck->ranks[i].progress != standing)
			continue;
		while (last + 1 < stuck->rank_count &&
		       stuck->ranks[last + 1].progress == standing &&
		       stuck->ranks[last + 1].rank == stuck->ranks[last].rank + 1)
			last++;
		used += (size_t)snprintf(ret + used, size - used, last > i ? "%s%d-%d" : "%s%d",
					 used ? ", " : "", stuck->ranks[i].rank,
					 stuck->ranks[last].rank);
		i = last;
	}
	if (used + 32 >= size)
		snprintf(ret + used, size - used, ", …");
}

static void write_ranks_with_progress(const struct nccl_data *data,
				      const struct nccl_stuck_operation *stuck,
				      enum nccl_rank_progress standing, const char *text,
				      FILE *stream)
{
	char ranks[512];

	if (!stuck->rank_count_by_progress[standing])
		return;
	format_ranks_with_progress(stuck, standing, ranks, sizeof(ranks));
	nccl_print_wrapped_line(
		stream, 6, "rank%s %s%s%s %s",
		plural_suffix(stuck->rank_count_by_progress[standing]), ranks,
		nccl_communicator_counts_as_job(data, stuck->communicator) ? "" : " of ",
		nccl_communicator_counts_as_job(data, stuck->communicator)
			? ""
			: nccl_format_communicator_label(data, stuck->communicator).text,
		text);
}

static void write_all_ranks_of_stuck_operation(struct nccl_data *data,
					       const struct nccl_hang_findings *hang,
					       const struct nccl_stuck_operation *stuck,
					       FILE *stream, unsigned most)
{
	unsigned absent = 0, waiting = 0;

	for (uint32_t i = 0; i < stuck->rank_count; i++) {
		const struct nccl_stuck_operation_rank *rank = &stuck->ranks[i];

		if (rank->progress != NCCL_RANK_HAS_NOT_ENTERED &&
		    rank->progress != NCCL_RANK_PROGRESS_UNKNOWN)
			continue;
		if (!most || absent++ < most)
			write_absent_rank(data, rank, stream);
	}
	if (most && absent > most)
		write_ranks_with_progress(data, stuck, NCCL_RANK_HAS_NOT_ENTERED,
					  "have NOT ENTERED it, with those above", stream);
	for (uint32_t i = 0; i < stuck->rank_count; i++) {
		if (stuck->ranks[i].progress != NCCL_RANK_IS_WAITING)
			continue;
		if (!most || waiting++ < most)
			write_waiting_rank(data, hang, &stuck->ranks[i], stream, most);
	}
	if (most && waiting > most)
		nccl_print_wrapped_line(stream, 6, "… and %u more that wait in it", waiting - most);
	write_ranks_with_progress(data, stuck, NCCL_RANK_HAS_QUEUED,
				  "enqueued it behind an operation that has not finished", stream);
	write_ranks_with_progress(data, stuck, NCCL_RANK_HAS_FINISHED, "finished it", stream);
	write_ranks_with_progress(
		data, stuck, NCCL_RANK_HAS_NO_FILE,
		"unknown: no records here (kymo merge joins the results of all ranks)", stream);
}

static void write_stuck_operation(struct nccl_data *data, const struct nccl_hang_findings *hang,
				  const struct nccl_stuck_operation *stuck, FILE *stream,
				  unsigned most)
{
	const struct nccl_operation *record = &stuck->waiting->record;
	uint32_t process = data->members[stuck->first_waiting_member].process;
	uint32_t waiting = stuck->rank_count_by_progress[NCCL_RANK_IS_WAITING];
	char size[64] = "";

	if (record->bytes)
		snprintf(size, sizeof(size), ", %s", quantity_from_bytes(record->bytes).text);
	nccl_print_wrapped_line(stream, 4, "%s (%s%s%s%s %s): %u rank%s wait%s, for up to %s",
				nccl_format_operation_label(data, stuck->function, record).text,
				nccl_get_interned_name(data, process, record->data_type), size,
				record->algorithm ? ", " : "",
				nccl_get_interned_name(data, process, record->algorithm),
				nccl_get_interned_name(data, process, record->protocol), waiting,
				plural_suffix(waiting), waiting == 1 ? "s" : "",
				quantity_from_ns(stuck->longest_wait_ns).text);
	if (stuck->has_function_mismatch)
		nccl_print_wrapped_line(
			stream, 6,
			"MISMATCH: ranks of this communicator wait in different functions");
	write_all_ranks_of_stuck_operation(data, hang, stuck, stream, most);
}

static void write_stuck_operation_list(struct nccl_data *data,
				       const struct nccl_hang_findings *hang, FILE *stream,
				       unsigned most)
{
	uint32_t communicator = NCCL_INDEX_NONE;

	for (size_t i = 0; i < hang->stuck_operation_count; i++) {
		const struct nccl_stuck_operation *stuck = &hang->stuck_operations[i];

		if (stuck->communicator != communicator)
			nccl_print_wrapped_line(
				stream, 2, "communicator %s, %u rank%s%s",
				nccl_format_communicator_label(data, stuck->communicator).text,
				data->communicators[stuck->communicator].rank_count,
				plural_suffix(data->communicators[stuck->communicator].rank_count),
				data->communicators[stuck->communicator].is_rank_count_inferred
					? " (inferred)"
					: "");
		communicator = stuck->communicator;
		write_stuck_operation(data, hang, stuck, stream, most);
	}
}

int nccl_write_stuck_operations(struct nccl_data *data, const struct nccl_hang_findings *hang,
				FILE *stream, unsigned most)
{
	struct nccl_hang_roots roots;
	int result = nccl_find_hang_roots(data, hang, &roots);

	if (result < 0)
		return result;
	nccl_write_hang_roots(data, hang, &roots, stream, most);
	nccl_write_differing_calls(data, 2, most ? most : SIZE_MAX, stream);
	nccl_hang_roots_deinit(&roots);
	write_stuck_operation_list(data, hang, stream, most);
	return 0;
}
