/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * MPI in profile.txt: calls and messages by function, communicator and peer, and the communicators.
 */
#include "output/text/mpi.h"

#include <inttypes.h>

#include "output/format.h"
#include "output/json/mpi.h"

#define PROCESS_COLUMNS      10
#define FUNCTION_COLUMNS     26
#define COMMUNICATOR_COLUMNS 24

static void write_row(FILE *stream, const struct session *session, const struct model_mpi_row *row)
{
	char process[32], peer[32] = "-";

	mpi_format_process(process, sizeof(process), session, row->process);
	if (row->peer != MPI_NO_RANK)
		snprintf(peer, sizeof(peer), "%" PRId64, row->peer);
	fputs("  ", stream);
	format_write_padded_to_width(stream, process, PROCESS_COLUMNS);
	fputc(' ', stream);
	format_write_padded_to_width(stream, row->function, FUNCTION_COLUMNS);
	fputc(' ', stream);
	format_write_padded_to_width(stream, *row->communicator ? row->communicator : "-",
				     COMMUNICATOR_COLUMNS);
	fprintf(stream,
		" %6s %10" PRIu64 "%s %12.6f %10" PRIu64 " %16" PRIu64 " %10" PRIu64 " %16" PRIu64
		"\n",
		peer, row->calls, row->open ? "+" : " ", (double)row->time_ns * 1e-9,
		row->sent_messages, row->sent_bytes, row->received_messages, row->received_bytes);
}

static void write_communicators(FILE *stream, const struct session *session,
				const struct model_mpi *mpi)
{
	fputs("\nCOMMUNICATORS OF MPI (size, ranks in MPI_COMM_WORLD)\n", stream);
	for (uint32_t i = 0; i < mpi->communicator_count; i++) {
		const struct model_mpi_communicator *it = &mpi->communicators[i];
		char process[32];

		mpi_format_process(process, sizeof(process), session, it->process);
		fputs("  ", stream);
		format_write_padded_to_width(stream, process, PROCESS_COLUMNS);
		fputc(' ', stream);
		format_write_padded_to_width(stream, it->name, COMMUNICATOR_COLUMNS);
		fprintf(stream, " %6" PRIu64 "  %s\n", it->size,
			*it->world_ranks ? it->world_ranks : "not known");
	}
}

void text_write_mpi(const struct session *session, const struct output_options *options,
		    FILE *stream)
{
	const struct model_mpi *mpi = session_get_mpi(session);
	uint32_t shown = mpi->row_count;

	if (!mpi->row_count)
		return;
	if (options->top && options->top < shown)
		shown = (uint32_t)options->top;
	fprintf(stream,
		"\nCALLS OF MPI (%u of %u rows; +: calls that were open when the data ended)\n  ",
		shown, mpi->row_count);
	format_write_padded_to_width(stream, "RANK", PROCESS_COLUMNS);
	fputc(' ', stream);
	format_write_padded_to_width(stream, "FUNCTION", FUNCTION_COLUMNS);
	fputc(' ', stream);
	format_write_padded_to_width(stream, "COMMUNICATOR", COMMUNICATOR_COLUMNS);
	fprintf(stream, " %6s %10s  %12s %10s %16s %10s %16s\n", "PEER", "CALLS", "SECONDS", "SENT",
		"BYTES", "RECEIVED", "BYTES");
	for (uint32_t i = 0; i < shown; i++)
		write_row(stream, session, &mpi->rows[i]);
	if (mpi->were_rows_cut)
		fputs("  there are too many peers and communicators: some share a row\n", stream);
	write_communicators(stream, session, mpi);
}
