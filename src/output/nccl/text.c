/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * nccl/summary.txt: what stood still first, then what took the time, then whether to believe it.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "files/stream.h"
#include "output/nccl/nccl.h"
#include "output/nccl/rows.h"
#include "output/nccl/text_join.h"
#include "output/output.h"

#define TABLE_ROWS_DEFAULT_MAX 20 /* in a table, unless said otherwise */

static const char *get_plural_suffix(uint64_t count)
{
	return count == 1 ? "" : "s";
}

struct table_cell_text {
	char text[32];
};

static struct table_cell_text format_bandwidth_cell(double gigabytes)
{
	struct table_cell_text cell;

	if (gigabytes > 0)
		snprintf(cell.text, sizeof(cell.text), gigabytes < 10 ? "%.3f" : "%.1f", gigabytes);
	else
		snprintf(cell.text, sizeof(cell.text), "-");
	return cell;
}

static struct table_cell_text format_time_cell(uint64_t ns)
{
	struct table_cell_text cell;

	snprintf(cell.text, sizeof(cell.text), "%s", ns ? quantity_from_ns(ns).text : "-");
	return cell;
}

/* ---- functions ---- */

/* What numbers of the row do not say: of how many operations they are. */
static void write_row_exception_counts(const struct nccl_operation_tally *tally, bool inferred,
				       FILE *stream)
{
	const char *separator = "  ";

	if (inferred) {
		fprintf(stream, "%sranks inferred", separator);
		separator = ", ";
	}
	if (tally->timed_by_network_count) {
		fprintf(stream, "%s%" PRIu64 " by network", separator,
			tally->timed_by_network_count);
		separator = ", ";
	}
	if (tally->batched_operation_count) {
		fprintf(stream, "%s%" PRIu64 " batched", separator, tally->batched_operation_count);
		separator = ", ";
	}
	if (tally->aliased_operation_count) {
		fprintf(stream, "%s%" PRIu64 " aliased", separator, tally->aliased_operation_count);
		separator = ", ";
	}
	if (tally->enqueue_only_operation_count) {
		fprintf(stream, "%s%" PRIu64 " enqueue-only", separator,
			tally->enqueue_only_operation_count);
		separator = ", ";
	}
	if (tally->incomplete) {
		fprintf(stream, "%s%" PRIu64 " incomplete", separator, tally->incomplete);
		separator = ", ";
	}
	if (tally->in_flight_operation_count)
		fprintf(stream, "%s%" PRIu64 " in flight", separator,
			tally->in_flight_operation_count);
}

static void write_function_sum_row(const struct nccl_data *data,
				   const struct nccl_function_sum_row *row, FILE *stream)
{
	const struct nccl_operation_tally *tally = row->tally;
	bool inferred = row->communicator != NCCL_INDEX_NONE &&
			data->communicators[row->communicator].is_rank_count_inferred;

	fputs("  ", stream);
	if (row->communicator != NCCL_INDEX_NONE) {
		format_write_padded_to_width(
			stream, nccl_format_communicator_label(data, row->communicator).text, 18);
		fprintf(stream, " %5u ", data->communicators[row->communicator].rank_count);
	}
	format_write_padded_to_width(stream, data->functions[row->function].name, 13);
	fprintf(stream, " %9s %9s %9s %9s %9s %9s %8s %8s",
		quantity_from_count(tally->operations).text,
		tally->operations > tally->unsized
			? quantity_from_bytes(tally->bytes / (tally->operations - tally->unsized))
				  .text
			: "-",
		format_time_cell(tally->ns).text,
		format_time_cell(tally->timed ? tally->ns / tally->timed : 0).text,
		format_time_cell(nccl_tally_find_duration_quantile(tally, 0.5)).text,
		format_time_cell(nccl_tally_find_duration_quantile(tally, 0.99)).text,
		format_bandwidth_cell(nccl_compute_algorithm_bandwidth(
					      tally->timed_bytes, tally->known_size_duration_ns))
			.text,
		format_bandwidth_cell(
			nccl_compute_bus_bandwidth(tally->bus_bytes, tally->known_size_duration_ns))
			.text);
	write_row_exception_counts(tally, inferred, stream);
	fputc('\n', stream);
}

static void write_function_sum_table(const struct nccl_data *data,
				     const struct nccl_function_sum_rows *rows, unsigned top,
				     FILE *stream)
{
	size_t shown = top && rows->count > top ? top : rows->count;
	bool by_communicator = rows->count && rows->rows[0].communicator != NCCL_INDEX_NONE;

	if (by_communicator)
		fprintf(stream, "  %-18s %5s ", "communicator", "ranks");
	else
		fputs("  ", stream);
	fprintf(stream, "%-13s %9s %9s %9s %9s %9s %9s %8s %8s\n", "function", "ops", "mean size",
		"time", "mean", "median", "99 %", "algbw", "busbw");
	for (size_t i = 0; i < shown; i++)
		write_function_sum_row(data, &rows->rows[i], stream);
	if (shown < rows->count)
		fprintf(stream, "  … and %zu more (--top 0 shows all)\n", rows->count - shown);
}

/* ---- sizes ---- */

static void write_size_histogram(const struct nccl_data *data,
				 const struct nccl_function_sum_row *row, FILE *stream)
{
	uint64_t most = 1;

	for (unsigned i = 0; i < NCCL_SIZE_CLASS_COUNT; i++) {
		if (row->tally->sizes[i].operations > most)
			most = row->tally->sizes[i].operations;
	}
	for (unsigned i = 0; i < NCCL_SIZE_CLASS_COUNT; i++) {
		const struct nccl_size_class_sums *sizes = &row->tally->sizes[i];
		uint64_t from = i ? (uint64_t)1 << (i - 1) : 0;

		if (!sizes->operations)
			continue;
		fputs("  ", stream);
		format_write_padded_to_width(stream, data->functions[row->function].name, 13);
		fprintf(stream, " %9s %9s %9s %8s %8s  ", quantity_from_bytes(from).text,
			quantity_from_count(sizes->operations).text,
			format_time_cell(sizes->timed ? sizes->ns / sizes->timed : 0).text,
			format_bandwidth_cell(
				nccl_compute_algorithm_bandwidth(sizes->timed_bytes, sizes->ns))
				.text,
			format_bandwidth_cell(
				nccl_compute_bus_bandwidth(sizes->bus_bytes, sizes->ns))
				.text);
		for (uint64_t k = 0; k < 1 + sizes->operations * 29 / most; k++)
			fputc('#', stream);
		fputc('\n', stream);
	}
}

/* ---- clocks, and what is missing ---- */

static void write_clock_error(FILE *stream, uint64_t error_ns)
{
	if (error_ns == UINT64_MAX)
		fputs("error unknown", stream);
	else
		fprintf(stream, "± %s", quantity_from_ns(error_ns).text);
}

static void write_host_clock_errors(const struct nccl_data *data, FILE *stream)
{
	for (uint32_t i = 1; i < data->host_count; i++) {
		struct nccl_host_clock_offset offset =
			nccl_align_get_offset_at_time(&data->clock_alignment, i, data->start_ns);

		fputs("  host ", stream);
		format_write_cut_to_width(stream, data->hosts[i].name, 40);
		fprintf(stream, " against %.40s: ", data->hosts[0].name);
		write_clock_error(stream, offset.error_ns);
		fprintf(stream, ", by %s%s\n",
			offset.alignment_basis == NCCL_ALIGN_BY_COLLECTIVES
				? "the collectives that both took part in"
				: "CLOCK_REALTIME alone (NTP or PTP)",
			offset.is_contradicted
				? "; the bounds contradict each other, a clock was set"
				: "");
	}
}

static void write_gpu_clock_errors(const struct nccl_data *data, FILE *stream)
{
	uint64_t worst = 0, known = 0, unknown = 0;

	for (uint32_t i = 0; i < data->member_count; i++) {
		const struct nccl_communicator_rank *member = &data->members[i];

		if (!member->gpu_clock.window_count)
			continue;
		if (member->worst_gpu_clock_error_ns == UINT64_MAX) {
			unknown++;
			continue;
		}
		known++;
		if (member->worst_gpu_clock_error_ns > worst)
			worst = member->worst_gpu_clock_error_ns;
	}
	if (known)
		fprintf(stream,
			"  GPU times are on the host's clock to ± %s at worst (bounded by launches "
			"and stops; %" PRIu64 " rank%s)\n",
			quantity_from_ns(worst).text, known, get_plural_suffix(known));
	if (unknown)
		fprintf(stream,
			"  GPU times of %" PRIu64
			" rank%s are bounded from one side only: error unknown\n",
			unknown, get_plural_suffix(unknown));
	if (!known && !unknown)
		fputs("  no GPU times: kernel channel events were not recorded\n", stream);
}

static uint64_t write_nccl_losses(const struct nccl_data *data, FILE *stream)
{
	uint64_t lines = 0;

	for (unsigned i = 0; i < NCCL_LOSS_COUNT; i++) {
		uint64_t count = nccl_sum_one_loss_of_all_processes(data, (enum nccl_loss)i);

		if (!count || nccl_loss_is_usual((enum nccl_loss)i))
			continue;
		lines++;
		if (nccl_get_loss_text((enum nccl_loss)i))
			fprintf(stream, "  %12s  %s\n", quantity_from_count(count).text,
				nccl_get_loss_text((enum nccl_loss)i));
		else
			fprintf(stream, "  %12s  for reason %u, which this kymo does not know\n",
				quantity_from_count(count).text, i);
	}
	return lines;
}

static uint64_t write_unreadable_records_and_files(const struct nccl_data *data, FILE *stream)
{
	uint64_t records = 0;

	for (uint32_t i = 0; i < data->process_count; i++)
		records += data->processes[i].file.torn_record_count;
	if (records)
		fprintf(stream, "  %12s  damaged records left out\n",
			quantity_from_count(records).text);
	if (data->unreadable_files)
		fprintf(stream, "  %12s  files that could not be read\n",
			quantity_from_count(data->unreadable_files).text);
	for (size_t i = 0; i < data->problem_count && i < 20; i++)
		nccl_print_wrapped_line(stream, 2, "%s", data->problems[i]);
	if (data->problem_count > 20)
		fprintf(stream, "  … and %zu more\n", data->problem_count - 20);
	return records + data->problem_count;
}

/* ---- the whole ---- */

static void write_incomplete_input_line(const char *line, void *stream)
{
	nccl_print_wrapped_line(stream, 2, "INCOMPLETE: %s", line);
}

static void write_basis_of_ranks(const struct nccl_data *data, FILE *stream)
{
	if (data->job_ranks_basis == NCCL_JOB_RANKS_UNKNOWN)
		nccl_print_wrapped_line(
			stream, 2,
			"Ranks are those of their communicators: no launcher's variable and no "
			"communicator of all processes says which rank of the job a process is.");
	else if (data->job_ranks_basis == NCCL_JOB_RANKS_BY_COMMUNICATOR)
		nccl_print_wrapped_line(
			stream, 2, "Ranks of the job are those of %s, the widest communicator.",
			nccl_format_communicator_label(data, data->widest_communicator).text);
}

static void write_report_title(const struct nccl_data *data, FILE *stream)
{
	uint64_t operations = 0;

	for (uint32_t i = 0; i < data->process_count; i++)
		operations += data->processes[i].operations;
	fprintf(stream, "NCCL: %s operation%s of %u communicator%s in %u process%s on %u host%s\n",
		quantity_from_count(operations).text, get_plural_suffix(operations),
		data->communicator_count, get_plural_suffix(data->communicator_count),
		data->process_count, data->process_count == 1 ? "" : "es", data->host_count,
		get_plural_suffix(data->host_count));
	write_basis_of_ranks(data, stream);
	nccl_visit_incomplete_input_lines(data, write_incomplete_input_line, stream);
}

static int write_function_and_size_tables(const struct nccl_data *data, unsigned top, FILE *stream)
{
	struct nccl_function_sum_rows rows;
	int result = nccl_function_sum_rows_build(data, true, &rows);

	if (result < 0)
		return result;
	fputs("\nBy communicator and function (GB/s as in nccl-tests; times are those of each "
	      "rank)\n",
	      stream);
	write_function_sum_table(data, &rows, top, stream);
	nccl_function_sum_rows_deinit(&rows);
	result = nccl_function_sum_rows_build(data, false, &rows);
	if (result < 0)
		return result;
	fprintf(stream, "\nBy size of message\n  %-13s %9s %9s %9s %8s %8s\n", "function", "from",
		"ops", "mean", "algbw", "busbw");
	for (size_t i = 0; i < rows.count; i++)
		write_size_histogram(data, &rows.rows[i], stream);
	nccl_function_sum_rows_deinit(&rows);
	return 0;
}

static int join_and_write_rank_comparison(struct nccl_data *data, unsigned top, FILE *stream,
					  struct problem *problem)
{
	struct nccl_joined_collectives joined;
	int result = nccl_join_collectives(data, &joined, problem);

	if (result < 0)
		return result;
	if (nccl_write_rank_comparison(data, &joined, top, stream) < 0)
		result = problem_set(problem, -ENOMEM, "out of memory");
	nccl_joined_collectives_deinit(&joined);
	return result;
}

static int output_write_nccl_summary(struct session *session, const struct output_options *options,
				     FILE *stream, struct problem *problem)
{
	struct nccl_data *data = session_get_nccl_data(session);
	unsigned top = options->is_top_given ? options->top : TABLE_ROWS_DEFAULT_MAX;
	struct nccl_hang_findings hang;
	int result = nccl_require_records(session, problem);

	if (result == 0)
		result = nccl_find_stuck_operations(data, &hang, problem);
	if (result < 0)
		return result;
	write_report_title(data, stream);
	if (hang.stuck_operation_count) {
		fputs("\nIn flight when the records end\n", stream);
		result = nccl_write_stuck_operations(data, &hang, stream, top);
	}
	nccl_hang_findings_deinit(&hang);
	if (result == 0)
		result = write_function_and_size_tables(data, top, stream);
	if (result < 0)
		return problem_set(problem, result, "out of memory");
	result = join_and_write_rank_comparison(data, top, stream, problem);
	if (result < 0)
		return result;
	fputs("\nClocks\n", stream);
	write_host_clock_errors(data, stream);
	write_gpu_clock_errors(data, stream);
	fputs("\nMissing or odd\n", stream);
	if (write_nccl_losses(data, stream) + write_unreadable_records_and_files(data, stream) == 0)
		fputs("  nothing\n", stream);
	return stream_flush_or_set_problem(stream, "the NCCL summary", problem);
}

const struct output_format output_format_nccl = {
	.name = "nccl",
	.file_name = "nccl/summary.txt",
	.description = "NCCL: operations in flight, functions, bandwidths, losses",
	.has_whole_run_only = true,
	.write = output_write_nccl_summary,
};
