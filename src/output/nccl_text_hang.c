/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What was in flight, for somebody who has a job that stands still: the operation, who is missing,
 * which channels and peers those that are there wait for, and for how long.
 */
#include <inttypes.h>
#include <string.h>

#include "output/nccl.h"

#define LONG_BEFORE_NS UINT64_C(300000000) /* the plugin's own thread looks more often */

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static struct nccl_label place_of(const struct nccl_data *data, const struct nccl_process *process)
{
	struct nccl_label label;

	snprintf(label.text, sizeof(label.text), "process %u%s%.48s", process->file.header.pid,
		 data->host_count > 1 ? " on " : "",
		 data->host_count > 1 ? process->file.header.host : "");
	return label;
}

/* Where others went on, when it was heard of last says when it died. */
static struct nccl_label ended_text(const struct nccl_data *data,
				    const struct nccl_process *process)
{
	struct nccl_label label = {.text = "still runs"};
	uint64_t latest = 0;

	for (uint32_t i = 0; i < data->process_count; i++) {
		if (data->processes[i].until_ns > latest)
			latest = data->processes[i].until_ns;
	}
	if (process->ended == NCCL_ENDED_EXITED)
		snprintf(label.text, sizeof(label.text), "has exited");
	else if (process->ended == NCCL_ENDED_SILENT && latest > process->until_ns + LONG_BEFORE_NS)
		snprintf(label.text, sizeof(label.text),
			 "ended without a word %s before the last of the others",
			 quantity_time(latest - process->until_ns).text);
	else if (process->ended == NCCL_ENDED_SILENT)
		snprintf(label.text, sizeof(label.text),
			 "ended without a word: killed, crashed or aborted");
	return label;
}

/* ---- ranks that are in it ---- */

static void write_transfer(struct nccl_data *data, const struct nccl_open_transfer *transfer,
			   FILE *stream)
{
	uint32_t process = data->members[transfer->member].process;

	nccl_line(stream, 8,
		  "channel %u %s rank %d: %u of %d steps done, waits for %s, quiet for %s",
		  transfer->channel, transfer->sends ? "sends to" : "receives from", transfer->peer,
		  transfer->steps_done, transfer->steps, nccl_wait_text(transfer->wait),
		  quantity_time(nccl_quiet_ns(data, process, transfer->last_ticks)).text);
}

static void write_transfers(struct nccl_data *data, const struct nccl_hang *hang, uint32_t member,
			    uint64_t operation, FILE *stream, unsigned most)
{
	uint64_t left_out = 0;
	unsigned written = 0;

	for (size_t i = 0; i < hang->transfer_count; i++) {
		const struct nccl_open_transfer *transfer = &hang->transfers[i];

		if (transfer->member != member || transfer->operation != operation)
			continue;
		if (most && written == most) {
			left_out++;
			continue;
		}
		write_transfer(data, transfer, stream);
		written++;
	}
	if (left_out)
		nccl_line(stream, 8, "… and %" PRIu64 " more open transfer%s", left_out,
			  plural(left_out));
}

static void describe_channels(const struct nccl_operation *record, char *ret, size_t size)
{
	uint64_t open = record->channels_started & ~record->channels_stopped;
	unsigned done = (unsigned)__builtin_popcountll(record->channels_stopped);

	if (!record->stop)
		snprintf(ret, size, "NCCL is still enqueuing it");
	else if (open)
		snprintf(ret, size, "channels %s open, %u done", nccl_channels_text(open).text,
			 done);
	else if (record->channels_started)
		snprintf(ret, size, "its %u channel%s are done, a transfer is not", done,
			 plural(done));
	else if (record->networks_started)
		snprintf(ret, size, "%u of %u transfers done", record->networks_stopped,
			 record->networks_started);
	else
		snprintf(ret, size, "enqueued, nothing of it seen to run");
}

static void write_waiting_rank(struct nccl_data *data, const struct nccl_hang *hang,
			       const struct nccl_stuck_rank *rank, FILE *stream, unsigned most)
{
	const struct nccl_member *member = &data->members[rank->member];
	const struct nccl_process *process = &data->processes[member->process];
	const struct nccl_operation *record = &member->waiting[0].record;
	char channels[400];

	describe_channels(record, channels, sizeof(channels));
	nccl_line(stream, 6, "rank %d (%s, %s): in it for %s, quiet for %s; %s", rank->rank,
		  place_of(data, process).text, ended_text(data, process).text,
		  quantity_time(nccl_quiet_ns(data, member->process, record->start)).text,
		  quantity_time(rank->quiet_ns).text, channels);
	if (record->kind == NCCL_KIND_P2P)
		nccl_line(stream, 8, "it waits for rank %d", record->peer);
	write_transfers(data, hang, rank->member, record->id, stream, most);
	if (member->waiting_count > 1)
		nccl_line(stream, 8, "%" PRIu64 " more enqueued behind it",
			  member->waiting_count - 1);
}

/* ---- ranks that are not ---- */

static void write_absent_rank(struct nccl_data *data, const struct nccl_stuck_rank *rank,
			      FILE *stream)
{
	const struct nccl_member *member = &data->members[rank->member];
	const struct nccl_process *process = &data->processes[member->process];
	const char *unsure = rank->standing == NCCL_STANDING_UNKNOWN
				     ? " as far as its records go, some of which are lost"
				     : "";

	if (!member->has_last) {
		nccl_line(stream, 6, "rank %d (%s, %s) has NOT ENTERED it%s, nor any other",
			  rank->rank, place_of(data, process).text, ended_text(data, process).text,
			  unsure);
		return;
	}
	nccl_line(stream, 6,
		  "rank %d (%s, %s) has NOT ENTERED it%s; its last was %s, %s, enqueued %s %s",
		  rank->rank, place_of(data, process).text, ended_text(data, process).text, unsure,
		  nccl_operation_label(data, member->last_function, &member->last).text,
		  member->waiting_count ? "not done" : "done", quantity_time(rank->quiet_ns).text,
		  process->ended == NCCL_ENDED_RUNNING ? "ago" : "before the end of its records");
}

/* "2, 5-7": ranks of one standing. */
static void list_ranks(const struct nccl_stuck *stuck, enum nccl_standing standing, char *ret,
		       size_t size)
{
	size_t used = 0;

	*ret = '\0';
	for (uint32_t i = 0; i < stuck->rank_count && used + 32 < size; i++) {
		uint32_t last = i;

		if (stuck->ranks[i].standing != standing)
			continue;
		while (last + 1 < stuck->rank_count &&
		       stuck->ranks[last + 1].standing == standing &&
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

static void write_list(const struct nccl_stuck *stuck, enum nccl_standing standing,
		       const char *text, FILE *stream)
{
	char ranks[512];

	if (!stuck->standing_counts[standing])
		return;
	list_ranks(stuck, standing, ranks, sizeof(ranks));
	nccl_line(stream, 6, "rank%s %s %s", plural(stuck->standing_counts[standing]), ranks, text);
}

static void write_ranks(struct nccl_data *data, const struct nccl_hang *hang,
			const struct nccl_stuck *stuck, FILE *stream, unsigned most)
{
	unsigned absent = 0, waiting = 0;

	for (uint32_t i = 0; i < stuck->rank_count; i++) {
		const struct nccl_stuck_rank *rank = &stuck->ranks[i];

		if (rank->standing != NCCL_STANDING_ABSENT &&
		    rank->standing != NCCL_STANDING_UNKNOWN)
			continue;
		if (!most || absent++ < most)
			write_absent_rank(data, rank, stream);
	}
	if (most && absent > most)
		write_list(stuck, NCCL_STANDING_ABSENT, "have NOT ENTERED it, with those above",
			   stream);
	for (uint32_t i = 0; i < stuck->rank_count; i++) {
		if (stuck->ranks[i].standing != NCCL_STANDING_WAITS)
			continue;
		if (!most || waiting++ < most)
			write_waiting_rank(data, hang, &stuck->ranks[i], stream, most);
	}
	if (most && waiting > most)
		nccl_line(stream, 6, "… and %u more that wait in it", waiting - most);
	write_list(stuck, NCCL_STANDING_QUEUED, "enqueued it behind another that is not done",
		   stream);
	write_list(stuck, NCCL_STANDING_THROUGH, "through with it", stream);
	write_list(stuck, NCCL_STANDING_NO_DATA,
		   "unknown: no records here (kymo merge joins the results of all ranks)", stream);
}

static void write_stuck(struct nccl_data *data, const struct nccl_hang *hang,
			const struct nccl_stuck *stuck, FILE *stream, unsigned most)
{
	const struct nccl_operation *record = &stuck->waiting->record;
	uint32_t process = data->members[stuck->first_member].process;
	uint32_t waiting = stuck->standing_counts[NCCL_STANDING_WAITS];
	char size[64] = "";

	if (record->bytes)
		snprintf(size, sizeof(size), ", %s", quantity_bytes(record->bytes).text);
	nccl_line(stream, 4, "%s (%s%s%s%s %s): %u rank%s wait%s, for up to %s",
		  nccl_operation_label(data, stuck->function, record).text,
		  nccl_text_of(data, process, record->data_type), size,
		  record->algorithm ? ", " : "", nccl_text_of(data, process, record->algorithm),
		  nccl_text_of(data, process, record->protocol), waiting, plural(waiting),
		  waiting == 1 ? "s" : "", quantity_time(stuck->longest_ns).text);
	if (stuck->mismatch)
		nccl_line(stream, 6,
			  "MISMATCH: ranks of this communicator wait in different functions");
	write_ranks(data, hang, stuck, stream, most);
}

void nccl_write_hang(struct nccl_data *data, const struct nccl_hang *hang, FILE *stream,
		     unsigned most)
{
	uint32_t team = NCCL_NONE;

	for (size_t i = 0; i < hang->stuck_count; i++) {
		const struct nccl_stuck *stuck = &hang->stuck[i];

		if (stuck->team != team)
			nccl_line(stream, 2, "communicator %s, %u rank%s%s",
				  nccl_team_label(data, stuck->team).text,
				  data->teams[stuck->team].ranks,
				  plural(data->teams[stuck->team].ranks),
				  data->teams[stuck->team].ranks_inferred ? " (inferred)" : "");
		team = stuck->team;
		write_stuck(data, hang, stuck, stream, most);
	}
}
