/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Calls of MPI by function, communicator and peer, over all processes: the most time first.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/format.h"
#include "output/json/mpi.h"
#include "output/summary/private.h"

static int compare_rows(const void *left, const void *right)
{
	const struct model_mpi_row *a = *(const struct model_mpi_row *const *)left;
	const struct model_mpi_row *b = *(const struct model_mpi_row *const *)right;

	if (a->time_ns != b->time_ns)
		return a->time_ns > b->time_ns ? -1 : 1;
	return a < b ? -1 : a > b;
}

static bool is_about_messages(const struct model_mpi_row *row)
{
	return row->peer != MPI_NO_RANK || row->sent_messages || row->received_messages ||
	       *row->communicator;
}

static void write_row(const struct summary_writer *summary, const struct model_mpi_row *row)
{
	char process[32], name[512], peer[32] = "", calls[40], communicator[128] = "";

	mpi_format_process(process, sizeof(process), summary->session, row->process);
	if (row->peer != MPI_NO_RANK)
		snprintf(peer, sizeof(peer), " with rank %" PRId64, row->peer);
	if (*row->communicator)
		snprintf(communicator, sizeof(communicator), " (%s)", row->communicator);
	snprintf(name, sizeof(name), "%s: %s%s%s", process, row->function, peer, communicator);
	snprintf(calls, sizeof(calls), "%s%s", quantity_from_count(row->calls).text,
		 row->open ? "+" : "");
	summary_write_row(
		summary,
		(const struct summary_cell[]){
			{quantity_from_ns(row->time_ns).text, 11, 0},
			{calls, 10, 1},
			{row->sent_bytes ? quantity_from_bytes(row->sent_bytes).text : "-", 11, 2},
			{row->received_bytes ? quantity_from_bytes(row->received_bytes).text : "-",
			 11, 3}},
		4, name);
}

static void write_rows(const struct summary_writer *summary, const struct model_mpi_row **rows,
		       uint32_t count)
{
	qsort(rows, count, sizeof(void *), compare_rows);
	summary_write_heading(summary, "Calls of MPI by communicator and peer (real time)");
	summary_write_row(
		summary,
		(const struct summary_cell[]){
			{"time", 11, 0}, {"calls", 10, 1}, {"sent", 11, 2}, {"received", 11, 3}},
		4, "function");
	for (uint32_t i = 0; i < count && i < summary->top; i++)
		write_row(summary, rows[i]);
	if (count > summary->top)
		summary_write_line(summary, "all %u rows are in profile.txt and profile.json",
				   count);
	if (session_get_mpi(summary->session)->were_rows_cut)
		summary_write_line(summary,
				   "there are too many peers and communicators: some share a row");
}

int summary_write_mpi(const struct summary_writer *summary)
{
	const struct model_mpi *mpi = session_get_mpi(summary->session);
	const struct model_mpi_row **rows;
	uint32_t count = 0;

	if (!mpi->row_count)
		return 0;
	rows = calloc(mpi->row_count, sizeof(void *));
	if (!rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < mpi->row_count; i++) {
		if (is_about_messages(&mpi->rows[i]))
			rows[count++] = &mpi->rows[i];
	}
	if (count)
		write_rows(summary, rows, count);
	free((void *)rows);
	return 0;
}
