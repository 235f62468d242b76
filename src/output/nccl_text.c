/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * nccl/summary.txt: what stood still first, then what took the time, then whether to believe it.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "output/nccl.h"
#include "output/nccl_rows.h"
#include "output/nccl_text_join.h"
#include "output/stream.h"
#include "output/writers.h"

#define ROWS 20 /* in a table, unless said otherwise */

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

struct cell {
	char text[32];
};

static struct cell bandwidth_cell(double gigabytes)
{
	struct cell cell;

	if (gigabytes > 0)
		snprintf(cell.text, sizeof(cell.text), gigabytes < 10 ? "%.3f" : "%.1f", gigabytes);
	else
		snprintf(cell.text, sizeof(cell.text), "-");
	return cell;
}

static struct cell time_cell(uint64_t ns)
{
	struct cell cell;

	snprintf(cell.text, sizeof(cell.text), "%s", ns ? quantity_time(ns).text : "-");
	return cell;
}

/* ---- functions ---- */

/* What numbers of the row do not say: of how many operations they are. */
static void write_marks(const struct nccl_tally *tally, bool inferred, FILE *stream)
{
	const char *separator = "  ";

	if (inferred) {
		fprintf(stream, "%sranks inferred", separator);
		separator = ", ";
	}
	if (tally->by_network) {
		fprintf(stream, "%s%" PRIu64 " by network", separator, tally->by_network);
		separator = ", ";
	}
	if (tally->batched) {
		fprintf(stream, "%s%" PRIu64 " batched", separator, tally->batched);
		separator = ", ";
	}
	if (tally->aliased) {
		fprintf(stream, "%s%" PRIu64 " aliased", separator, tally->aliased);
		separator = ", ";
	}
	if (tally->enqueue_only) {
		fprintf(stream, "%s%" PRIu64 " enqueue-only", separator, tally->enqueue_only);
		separator = ", ";
	}
	if (tally->incomplete) {
		fprintf(stream, "%s%" PRIu64 " incomplete", separator, tally->incomplete);
		separator = ", ";
	}
	if (tally->in_flight)
		fprintf(stream, "%s%" PRIu64 " in flight", separator, tally->in_flight);
}

static void write_row(const struct nccl_data *data, const struct nccl_row *row, FILE *stream)
{
	const struct nccl_tally *tally = row->tally;
	bool inferred = row->team != NCCL_NONE && data->teams[row->team].ranks_inferred;

	fputs("  ", stream);
	if (row->team != NCCL_NONE) {
		format_fitted(stream, nccl_team_label(data, row->team).text, 18);
		fprintf(stream, " %5u ", data->teams[row->team].ranks);
	}
	format_fitted(stream, data->functions[row->function].name, 13);
	fprintf(stream, " %9s %9s %9s %9s %9s %9s %8s %8s", quantity_count(tally->operations).text,
		tally->operations > tally->unsized
			? quantity_bytes(tally->bytes / (tally->operations - tally->unsized)).text
			: "-",
		time_cell(tally->ns).text,
		time_cell(tally->timed ? tally->ns / tally->timed : 0).text,
		time_cell(nccl_tally_quantile(tally, 0.5)).text,
		time_cell(nccl_tally_quantile(tally, 0.99)).text,
		bandwidth_cell(nccl_algorithm_bandwidth(tally->timed_bytes, tally->sized_ns)).text,
		bandwidth_cell(nccl_bus_bandwidth(tally->bus_bytes, tally->sized_ns)).text);
	write_marks(tally, inferred, stream);
	fputc('\n', stream);
}

static void write_rows(const struct nccl_data *data, const struct nccl_rows *rows, unsigned top,
		       FILE *stream)
{
	size_t shown = top && rows->count > top ? top : rows->count;
	bool by_team = rows->count && rows->rows[0].team != NCCL_NONE;

	if (by_team)
		fprintf(stream, "  %-18s %5s ", "communicator", "ranks");
	else
		fputs("  ", stream);
	fprintf(stream, "%-13s %9s %9s %9s %9s %9s %9s %8s %8s\n", "function", "ops", "mean size",
		"time", "mean", "median", "99 %", "algbw", "busbw");
	for (size_t i = 0; i < shown; i++)
		write_row(data, &rows->rows[i], stream);
	if (shown < rows->count)
		fprintf(stream, "  … and %zu more (--top 0 shows all)\n", rows->count - shown);
}

/* ---- sizes ---- */

static void write_sizes(const struct nccl_data *data, const struct nccl_row *row, FILE *stream)
{
	uint64_t most = 1;

	for (unsigned i = 0; i < NCCL_SIZE_CLASSES; i++) {
		if (row->tally->sizes[i].operations > most)
			most = row->tally->sizes[i].operations;
	}
	for (unsigned i = 0; i < NCCL_SIZE_CLASSES; i++) {
		const struct nccl_size_class *sizes = &row->tally->sizes[i];
		uint64_t from = i ? (uint64_t)1 << (i - 1) : 0;

		if (!sizes->operations)
			continue;
		fputs("  ", stream);
		format_fitted(stream, data->functions[row->function].name, 13);
		fprintf(stream, " %9s %9s %9s %8s %8s  ", quantity_bytes(from).text,
			quantity_count(sizes->operations).text,
			time_cell(sizes->timed ? sizes->ns / sizes->timed : 0).text,
			bandwidth_cell(nccl_algorithm_bandwidth(sizes->timed_bytes, sizes->ns))
				.text,
			bandwidth_cell(nccl_bus_bandwidth(sizes->bus_bytes, sizes->ns)).text);
		for (uint64_t k = 0; k < 1 + sizes->operations * 29 / most; k++)
			fputc('#', stream);
		fputc('\n', stream);
	}
}

/* ---- clocks, and what is missing ---- */

static void write_error(FILE *stream, uint64_t error_ns)
{
	if (error_ns == UINT64_MAX)
		fputs("error unknown", stream);
	else
		fprintf(stream, "± %s", quantity_time(error_ns).text);
}

static void write_hosts(const struct nccl_data *data, FILE *stream)
{
	for (uint32_t i = 1; i < data->host_count; i++) {
		struct nccl_offset offset = nccl_align_at(&data->align, i, data->start_ns);

		fputs("  host ", stream);
		format_limited(stream, data->hosts[i].name, 40);
		fprintf(stream, " against %.40s: ", data->hosts[0].name);
		write_error(stream, offset.error_ns);
		fprintf(stream, ", by %s%s\n",
			offset.basis == NCCL_ALIGN_COLLECTIVES
				? "the collectives that both took part in"
				: "CLOCK_REALTIME alone (NTP or PTP)",
			offset.contradicted ? "; the bounds contradict each other, a clock was set"
					    : "");
	}
}

static void write_gpu_clocks(const struct nccl_data *data, FILE *stream)
{
	uint64_t worst = 0, known = 0, unknown = 0;

	for (uint32_t i = 0; i < data->member_count; i++) {
		const struct nccl_member *member = &data->members[i];

		if (!member->gpu.window_count)
			continue;
		if (member->worst_gpu_error_ns == UINT64_MAX) {
			unknown++;
			continue;
		}
		known++;
		if (member->worst_gpu_error_ns > worst)
			worst = member->worst_gpu_error_ns;
	}
	if (known)
		fprintf(stream,
			"  GPU times are on the host's clock to ± %s at worst (bounded by launches "
			"and stops; %" PRIu64 " rank%s)\n",
			quantity_time(worst).text, known, plural(known));
	if (unknown)
		fprintf(stream,
			"  GPU times of %" PRIu64
			" rank%s are bounded from one side only: error unknown\n",
			unknown, plural(unknown));
	if (!known && !unknown)
		fputs("  no GPU times: kernel channel events were not recorded\n", stream);
}

static uint64_t write_losses(const struct nccl_data *data, FILE *stream)
{
	uint64_t lines = 0;

	for (unsigned i = 0; i < NCCL_LOSS_COUNT; i++) {
		uint64_t count = nccl_loss_sum(data, (enum nccl_loss)i);

		if (!count)
			continue;
		lines++;
		if (nccl_loss_explained((enum nccl_loss)i))
			fprintf(stream, "  %12s  %s\n", quantity_count(count).text,
				nccl_loss_explained((enum nccl_loss)i));
		else
			fprintf(stream, "  %12s  for reason %u, which this kymo does not know\n",
				quantity_count(count).text, i);
	}
	return lines;
}

static uint64_t write_damage(const struct nccl_data *data, FILE *stream)
{
	uint64_t records = 0;

	for (uint32_t i = 0; i < data->process_count; i++)
		records += data->processes[i].file.torn_records;
	if (records)
		fprintf(stream, "  %12s  damaged records left out\n", quantity_count(records).text);
	if (data->unreadable_files)
		fprintf(stream, "  %12s  files that could not be read\n",
			quantity_count(data->unreadable_files).text);
	for (size_t i = 0; i < data->problem_count && i < 20; i++)
		nccl_line(stream, 2, "%s", data->problems[i]);
	if (data->problem_count > 20)
		fprintf(stream, "  … and %zu more\n", data->problem_count - 20);
	return records + data->problem_count;
}

/* ---- the whole ---- */

static void write_title(const struct nccl_data *data, FILE *stream)
{
	uint64_t operations = 0;

	for (uint32_t i = 0; i < data->process_count; i++)
		operations += data->processes[i].operations;
	fprintf(stream, "NCCL: %s operation%s of %u communicator%s in %u process%s on %u host%s\n",
		quantity_count(operations).text, plural(operations), data->team_count,
		plural(data->team_count), data->process_count, data->process_count == 1 ? "" : "es",
		data->host_count, plural(data->host_count));
}

static int write_tables(const struct nccl_data *data, unsigned top, FILE *stream)
{
	struct nccl_rows rows;
	int result = nccl_rows_make(data, true, &rows);

	if (result < 0)
		return result;
	fputs("\nBy communicator and function (GB/s as in nccl-tests; times are those of each "
	      "rank)\n",
	      stream);
	write_rows(data, &rows, top, stream);
	nccl_rows_deinit(&rows);
	result = nccl_rows_make(data, false, &rows);
	if (result < 0)
		return result;
	fprintf(stream, "\nBy size of message\n  %-13s %9s %9s %9s %8s %8s\n", "function", "from",
		"ops", "mean", "algbw", "busbw");
	for (size_t i = 0; i < rows.count; i++)
		write_sizes(data, &rows.rows[i], stream);
	nccl_rows_deinit(&rows);
	return 0;
}

static int write_between_ranks(struct nccl_data *data, unsigned top, FILE *stream,
			       struct problem *problem)
{
	struct nccl_joined joined;
	int result = nccl_join(data, &joined, problem);

	if (result < 0)
		return result;
	if (nccl_write_joined(data, &joined, top, stream) < 0)
		result = problem_set(problem, -ENOMEM, "out of memory");
	nccl_join_deinit(&joined);
	return result;
}

int output_nccl_text(struct session *session, const struct output_options *options, FILE *stream,
		     struct problem *problem)
{
	struct nccl_data *data = session->nccl;
	unsigned top = options->top_given ? options->top : ROWS;
	struct nccl_hang hang;
	int result = nccl_check(session, problem);

	if (result == 0)
		result = nccl_hang_find(data, &hang, problem);
	if (result < 0)
		return result;
	write_title(data, stream);
	if (hang.stuck_count) {
		fputs("\nIn flight when the records end\n", stream);
		nccl_write_hang(data, &hang, stream, top);
	}
	nccl_hang_deinit(&hang);
	result = write_tables(data, top, stream);
	if (result < 0)
		return problem_set(problem, result, "out of memory");
	result = write_between_ranks(data, top, stream, problem);
	if (result < 0)
		return result;
	fputs("\nClocks\n", stream);
	write_hosts(data, stream);
	write_gpu_clocks(data, stream);
	fputs("\nMissing or odd\n", stream);
	if (write_losses(data, stream) + write_damage(data, stream) == 0)
		fputs("  nothing\n", stream);
	return stream_check(stream, "the NCCL summary", problem);
}
