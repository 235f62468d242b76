/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The summary's part about NCCL: what is in flight, and the heaviest functions.
 */
#include <errno.h>
#include <inttypes.h>

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

	if (bus > 0)
		snprintf(bandwidth, sizeof(bandwidth), ", bus %.3g GB/s", bus);
	summary_line(summary, "%s in %s: %s operations, %s, mean %s, 99 %% %s%s",
		     data->functions[row->function].name, nccl_team_label(data, row->team).text,
		     quantity_count(tally->operations).text, quantity_time(tally->ns).text,
		     quantity_time(tally->timed ? tally->ns / tally->timed : 0).text,
		     quantity_time(nccl_tally_quantile(tally, 0.99)).text, bandwidth);
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
	write_missing(summary, data);
	return 0;
}
