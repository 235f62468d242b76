/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The summary's part about NCCL: what is in flight, the heaviest functions, and who is late.
 */
#include <errno.h>
#include <inttypes.h>

#include "analysis/nccl/join.h"
#include "output/nccl/nccl.h"
#include "output/nccl/rows.h"
#include "output/summary/private.h"

#define HANG_LINES_MAX    8
#define FUNCTION_ROWS_MAX 6

static int write_operations_in_flight_warning(const struct summary_writer *summary,
					      struct nccl_data *data)
{
	struct problem problem;
	struct nccl_hang_findings hang;
	int result = nccl_find_stuck_operations(data, &hang, &problem);

	if (result < 0)
		return result;
	if (hang.stuck_operation_count) {
		summary_write_heading(summary, "NCCL operations in flight when the records end");
		result = nccl_write_stuck_operations(data, &hang, summary->stream, HANG_LINES_MAX);
	}
	nccl_hang_findings_deinit(&hang);
	return result;
}

static void write_function_sum_line(const struct summary_writer *summary,
				    const struct nccl_data *data,
				    const struct nccl_function_sum_row *row)
{
	const struct nccl_operation_tally *tally = row->tally;
	double bus = nccl_compute_bus_bandwidth(tally->bus_bytes, tally->known_size_duration_ns);
	char bandwidth[64] = "";

	if (!tally->timed) {
		summary_write_line(summary, "%s in %s: %s operations, no durations",
				   data->functions[row->function].name,
				   nccl_format_communicator_label(data, row->communicator).text,
				   quantity_from_count(tally->operations).text);
		return;
	}
	if (bus > 0)
		snprintf(bandwidth, sizeof(bandwidth), ", bus %.3g GB/s", bus);
	summary_write_line(
		summary, "%s in %s: %s operations, %s, mean %s, 99 %% %s%s",
		data->functions[row->function].name,
		nccl_format_communicator_label(data, row->communicator).text,
		quantity_from_count(tally->operations).text, quantity_from_ns(tally->ns).text,
		quantity_from_ns(tally->ns / tally->timed).text,
		quantity_from_ns(nccl_tally_find_duration_quantile(tally, 0.99)).text, bandwidth);
}

/* "3 collectives and 1 transfer" */
static const char *format_late_entries(const struct nccl_rank_wait_sums *sum, char *text,
				       size_t size)
{
	size_t used = 0;

	*text = '\0';
	if (sum->last)
		used = (size_t)snprintf(text, size, "%s collective%s",
					quantity_from_count(sum->last).text,
					sum->last == 1 ? "" : "s");
	if (sum->last_transfers)
		snprintf(text + used, size - used, "%s%s transfer%s", used ? " and " : "",
			 quantity_from_count(sum->last_transfers).text,
			 sum->last_transfers == 1 ? "" : "s");
	return text;
}

/* As the communicator has it that others waited for it the longest in. */
static struct nccl_label_text format_late_rank(const struct nccl_data *data,
					       const struct nccl_joined_collectives *joined,
					       uint32_t job_rank)
{
	uint32_t worst = data->job_ranks[job_rank].first_member;

	for (uint32_t i = 0; i < data->member_count; i++) {
		if (data->members[i].job_rank_index == job_rank &&
		    joined->ranks[i].caused_wait_ns > joined->ranks[worst].caused_wait_ns)
			worst = i;
	}
	return nccl_format_rank_label(data, worst);
}

/* The ranks that waited for it come late as well, and others wait for those. */
static void write_passed_lateness(const struct summary_writer *summary,
				  const struct nccl_data *data,
				  const struct nccl_joined_collectives *joined, uint32_t job_rank)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < joined->passed_wait_count; i++) {
		const struct nccl_passed_wait *wait = &joined->passed_waits[i];

		if (data->members[wait->member].job_rank_index != job_rank &&
		    nccl_find_root_of_passed_wait(data, joined, wait) == job_rank)
			ns += wait->ns;
	}
	if (ns)
		summary_write_line(summary,
				   "ranks that waited for it came late elsewhere: others waited "
				   "%s for those",
				   quantity_from_ns(ns).text);
}

static int write_late_ranks(const struct summary_writer *summary, const struct nccl_data *data,
			    const struct nccl_joined_collectives *joined)
{
	struct nccl_late_ranks late;
	char entries[96];

	if (nccl_find_late_ranks(data, joined, &late) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < late.count; i++) {
		const struct nccl_late_rank *rank = &late.ranks[i];
		uint32_t process = data->job_ranks[rank->job_rank].process;

		summary_write_line(summary, "%s on %s was the last into %s: others waited %s%s",
				   format_late_rank(data, joined, rank->job_rank).text,
				   data->processes[process].file.header.host,
				   format_late_entries(&rank->sum, entries, sizeof(entries)),
				   quantity_from_ns(rank->sum.caused_wait_ns).text,
				   rank->sum.last_transfers > rank->sum.last
					   ? " (filling and emptying a pipeline counts)"
					   : "");
		write_passed_lateness(summary, data, joined, rank->job_rank);
	}
	if (!late.count && late.longest_caused_wait_ns)
		summary_write_line(summary,
				   "no rank stands out as late; for none did the others wait more "
				   "than %s",
				   quantity_from_ns(late.longest_caused_wait_ns).text);
	return 0;
}

static int write_late_rank_lines(const struct summary_writer *summary, const struct nccl_data *data,
				 const struct nccl_joined_collectives *joined)
{
	uint64_t all = joined->waiting_ns + joined->transfer_ns;
	int result;

	if (all)
		summary_write_line(summary,
				   "%s of the time in collectives is spent waiting for late ranks",
				   quantity_from_share(joined->waiting_ns, all).text);
	result = write_late_ranks(summary, data, joined);
	if (joined->incomplete_collective_count)
		summary_write_warning(summary,
				      "nothing is concluded from %s collective%s: some rank has no "
				      "record of %s and may be the late one",
				      quantity_from_count(joined->incomplete_collective_count).text,
				      joined->incomplete_collective_count == 1 ? "" : "s",
				      joined->incomplete_collective_count == 1 ? "it" : "them");
	if (joined->left_out)
		summary_write_warning(summary, "%s rank%s to have skipped a collective",
				      quantity_from_count(joined->left_out).text,
				      joined->left_out == 1 ? " seems" : "s seem");
	if (joined->mismatched_collective_count)
		summary_write_warning(summary,
				      "%s collective%s called with different sizes, types or roots",
				      quantity_from_count(joined->mismatched_collective_count).text,
				      joined->mismatched_collective_count == 1 ? " was" : "s were");
	return result;
}

static int write_rank_comparison(const struct summary_writer *summary, struct nccl_data *data)
{
	struct nccl_joined_collectives joined;
	struct problem problem;
	bool several = false;
	int result;

	for (uint32_t i = 0; i < data->communicator_count; i++)
		several |= data->communicators[i].member_count > 1;
	if (!several)
		return 0;
	result = nccl_join_collectives(data, &joined, &problem);
	if (result < 0)
		return result;
	result = write_late_rank_lines(summary, data, &joined);
	nccl_joined_collectives_deinit(&joined);
	return result;
}

/* A ring that is full is no loss: it has the newest, and the sums are those of all. */
static void write_ring_overwrite_note(const struct summary_writer *summary,
				      const struct nccl_data *data)
{
	uint64_t gone = nccl_sum_one_loss_of_all_processes(data, NCCL_LOSS_RING_OPERATIONS),
		 kept = 0;

	for (uint32_t i = 0; i < data->process_count; i++)
		kept += data->processes[i].operations;
	if (gone)
		summary_write_line(
			summary,
			"the newest %s operations are kept in full; %s older ones are only in "
			"the sums (%s)",
			quantity_from_count(kept).text, quantity_from_count(gone).text,
			nccl_sum_one_loss_of_all_processes(data, NCCL_LOSS_DISK_FULL)
				? "the disk was full"
				: "raise NCCL_SIZE to keep more");
}

static void write_nccl_loss_warnings(const struct summary_writer *summary,
				     const struct nccl_data *data)
{
	for (unsigned i = 0; i < NCCL_LOSS_COUNT; i++) {
		uint64_t count = nccl_sum_one_loss_of_all_processes(data, (enum nccl_loss)i);

		if (count && nccl_loss_means_missing_data((enum nccl_loss)i))
			summary_write_warning(summary, "%s %s", quantity_from_count(count).text,
					      nccl_get_loss_text((enum nccl_loss)i));
	}
	for (size_t i = 0; i < data->problem_count && i < FUNCTION_ROWS_MAX; i++)
		summary_write_warning(summary, "%s", data->problems[i]);
}

static void write_incomplete_input_warning(const char *line, void *context)
{
	summary_write_warning(context, "%s", line);
}

int summary_write_nccl(const struct summary_writer *summary)
{
	struct nccl_data *data = session_get_nccl_data(summary->session);
	struct nccl_function_sum_rows rows;
	int result;

	if (!data)
		return 0;
	result = write_operations_in_flight_warning(summary, data);
	if (result == 0)
		result = nccl_function_sum_rows_build(data, true, &rows);
	if (result < 0)
		return result;
	summary_write_heading(summary, "NCCL");
	nccl_visit_incomplete_input_lines(data, write_incomplete_input_warning, (void *)summary);
	summary_write_line(summary, "%u communicator%s in %u process%s on %u host%s",
			   data->communicator_count, data->communicator_count == 1 ? "" : "s",
			   data->process_count, data->process_count == 1 ? "" : "es",
			   data->host_count, data->host_count == 1 ? "" : "s");
	for (size_t i = 0; i < rows.count && i < FUNCTION_ROWS_MAX; i++)
		write_function_sum_line(summary, data, &rows.rows[i]);
	if (rows.count > FUNCTION_ROWS_MAX)
		summary_write_line(summary, "and %zu more, see nccl/summary.txt",
				   rows.count - FUNCTION_ROWS_MAX);
	nccl_function_sum_rows_deinit(&rows);
	result = write_rank_comparison(summary, data);
	write_ring_overwrite_note(summary, data);
	write_nccl_loss_warnings(summary, data);
	return result;
}
