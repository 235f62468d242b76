/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The summary's part about NCCL: what is in flight, the heaviest functions, and who is late.
 */
#include <errno.h>
#include <inttypes.h>

#include "analysis/nccl_join.h"
#include "output/nccl.h"
#include "output/nccl_rows.h"
#include "output/summary.h"

#define HANG_LINES 8
#define ROWS       6

static int write_hang(const struct summary *summary, struct nccl_data *data)
{
	struct problem problem;
	struct nccl_hang hang;
	int result = nccl_hang_find(data, &hang, &problem);

	if (result < 0)
		return result;
	if (hang.stuck_count) {
		summary_heading(summary, "NCCL operations in flight when the records end");
		nccl_write_hang(data, &hang, summary->stream, HANG_LINES);
	}
	nccl_hang_deinit(&hang);
	return 0;
}

static void write_row(const struct summary *summary, const struct nccl_data *data,
		      const struct nccl_row *row)
{
	const struct nccl_tally *tally = row->tally;
	double bus = nccl_bus_bandwidth(tally->bus_bytes, tally->sized_ns);
	char bandwidth[64] = "";

	if (!tally->timed) {
		summary_line(summary, "%s in %s: %s operations, no durations",
			     data->functions[row->function].name,
			     nccl_team_label(data, row->team).text,
			     quantity_count(tally->operations).text);
		return;
	}
	if (bus > 0)
		snprintf(bandwidth, sizeof(bandwidth), ", bus %.3g GB/s", bus);
	summary_line(summary, "%s in %s: %s operations, %s, mean %s, 99 %% %s%s",
		     data->functions[row->function].name, nccl_team_label(data, row->team).text,
		     quantity_count(tally->operations).text, quantity_time(tally->ns).text,
		     quantity_time(tally->ns / tally->timed).text,
		     quantity_time(nccl_tally_quantile(tally, 0.99)).text, bandwidth);
}

/* The process that others waited for the longest, over all of its communicators. */
static uint64_t find_worst(const struct nccl_data *data, const struct nccl_joined *joined,
			   uint32_t *ret_process, uint64_t *ret_last)
{
	uint64_t worst = 0;

	for (uint32_t i = 0; i < data->process_count; i++) {
		const struct nccl_process *process = &data->processes[i];
		uint64_t caused = 0, last = 0;

		for (uint32_t k = 0; k < process->member_count; k++) {
			caused += joined->ranks[process->first_member + k].caused_ns;
			last += joined->ranks[process->first_member + k].last;
		}
		if (caused <= worst)
			continue;
		worst = caused;
		*ret_process = i;
		*ret_last = last;
	}
	return worst;
}

static void write_ranks(const struct summary *summary, const struct nccl_data *data,
			const struct nccl_joined *joined)
{
	uint64_t all = joined->waiting_ns + joined->transfer_ns, last = 0, worst;
	uint32_t process = 0;

	if (all)
		summary_line(summary,
			     "%s of the time in collectives is waiting for ranks that are late",
			     quantity_share(joined->waiting_ns, all).text);
	worst = find_worst(data, joined, &process, &last);
	if (worst)
		summary_line(summary,
			     "rank %d on %s was the last into %s collective%s: others waited %s",
			     data->processes[process].rank,
			     data->processes[process].file.header.host, quantity_count(last).text,
			     last == 1 ? "" : "s", quantity_time(worst).text);
	if (joined->left_out)
		summary_warning(summary, "%s rank%s to have skipped a collective",
				quantity_count(joined->left_out).text,
				joined->left_out == 1 ? " seems" : "s seem");
	if (joined->mismatched)
		summary_warning(summary,
				"%s collective%s called with different sizes, types or roots",
				quantity_count(joined->mismatched).text,
				joined->mismatched == 1 ? " was" : "s were");
}

static int write_between_ranks(const struct summary *summary, struct nccl_data *data)
{
	struct nccl_joined joined;
	struct problem problem;
	bool several = false;
	int result;

	for (uint32_t i = 0; i < data->team_count; i++)
		several |= data->teams[i].member_count > 1;
	if (!several)
		return 0;
	result = nccl_join(data, &joined, &problem);
	if (result < 0)
		return result;
	write_ranks(summary, data, &joined);
	nccl_join_deinit(&joined);
	return 0;
}

/* A ring that is full is no loss: it has the newest, and the sums are those of all. */
static void write_kept(const struct summary *summary, const struct nccl_data *data)
{
	uint64_t gone = nccl_loss_sum(data, NCCL_LOSS_RING_OPERATIONS), kept = 0;

	for (uint32_t i = 0; i < data->process_count; i++)
		kept += data->processes[i].operations;
	if (gone)
		summary_line(summary,
			     "the newest %s operations are kept one by one, %s older ones only in "
			     "the sums (%s)",
			     quantity_count(kept).text, quantity_count(gone).text,
			     nccl_loss_sum(data, NCCL_LOSS_DISK_FULL) ? "the disk was full"
								      : "NCCL_SIZE keeps more");
}

static void write_missing(const struct summary *summary, const struct nccl_data *data)
{
	for (unsigned i = 0; i < NCCL_LOSS_COUNT; i++) {
		uint64_t count = nccl_loss_sum(data, (enum nccl_loss)i);

		if (count && nccl_loss_is_data((enum nccl_loss)i))
			summary_warning(summary, "%s %s", quantity_count(count).text,
					nccl_loss_explained((enum nccl_loss)i));
	}
	for (size_t i = 0; i < data->problem_count && i < ROWS; i++)
		summary_warning(summary, "%s", data->problems[i]);
}

int summary_nccl(const struct summary *summary)
{
	struct nccl_data *data = summary->session->nccl;
	struct nccl_rows rows;
	int result;

	if (!data)
		return 0;
	result = write_hang(summary, data);
	if (result == 0)
		result = nccl_rows_make(data, true, &rows);
	if (result < 0)
		return result;
	summary_heading(summary, "NCCL");
	summary_line(summary, "%u communicator%s in %u process%s on %u host%s", data->team_count,
		     data->team_count == 1 ? "" : "s", data->process_count,
		     data->process_count == 1 ? "" : "es", data->host_count,
		     data->host_count == 1 ? "" : "s");
	for (size_t i = 0; i < rows.count && i < ROWS; i++)
		write_row(summary, data, &rows.rows[i]);
	if (rows.count > ROWS)
		summary_line(summary, "and %zu more, see nccl/summary.txt", rows.count - ROWS);
	nccl_rows_deinit(&rows);
	result = write_between_ranks(summary, data);
	write_kept(summary, data);
	write_missing(summary, data);
	return result;
}
