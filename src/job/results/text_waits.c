/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The part of job.txt about what ranks waited for in MPI.
 */
#include <inttypes.h>
#include <string.h>

#include "job/results/text.h"
#include "job/results/waits.h"
#include "output/format.h"

#define SITE_COLUMNS 56

static void write_site(const struct job_text *text, uint32_t name)
{
	const struct job_name *site = &text->job->names[name];

	format_write_cut_to_width(text->stream, site->name, SITE_COLUMNS);
	if (*site->group) {
		fputs(" in ", text->stream);
		format_write_cut_to_width(text->stream, site->group, SITE_COLUMNS);
	}
	if (*site->file) {
		fputs(" (", text->stream);
		format_write_cut_to_width(text->stream, site->file, SITE_COLUMNS);
		fputc(')', text->stream);
	}
}

static void write_state_name(const struct job_text *text, enum job_wait_state state)
{
	char name[32];

	snprintf(name, sizeof(name), "%s", job_wait_state_get_key(state));
	for (char *c = name; *c; c++)
		*c = *c == '_' ? ' ' : *c;
	fprintf(text->stream, "%-18s", name);
}

static void write_states(const struct job_text *text, const struct job_waits *waits)
{
	for (unsigned i = 0; i < JOB_WAIT_STATE_COUNT; i++) {
		if (!waits->state_calls[i])
			continue;
		fprintf(text->stream, "  %10s  ", quantity_from_ns(waits->state_ns[i]).text);
		write_state_name(text, (enum job_wait_state)i);
		fprintf(text->stream, "  in %s calls\n",
			quantity_from_count(waits->state_calls[i]).text);
	}
}

static void write_row(const struct job_text *text, const struct job_wait_row *row)
{
	fprintf(text->stream, "  %10s %9s  ", quantity_from_ns(row->wait_ns).text,
		quantity_from_count(row->calls).text);
	write_state_name(text, row->state);
	fputs("  ", text->stream);
	write_site(text, row->name);
	fprintf(text->stream, "\n  %41s by rank %u: ", "", row->cause_rank);
	write_site(text, row->cause_name);
	fprintf(text->stream, "; longest %s in rank %u\n", quantity_from_ns(row->longest_ns).text,
		row->longest_rank);
}

/* What the figures leave out. */
static void write_limits(const struct job_text *text, const struct job_waits *waits)
{
	if (waits->cut)
		fprintf(text->stream,
			"  ! %s sends, receives and collectives are not compared: only the first "
			"%s of each rank are\n",
			quantity_from_count(waits->cut).text,
			quantity_from_count(job_get_event_limit(text->job->size)).text);
	if (waits->unknown)
		fprintf(text->stream,
			"  ! %s are not compared: kymo cannot tell their communicator or peer "
			"across ranks\n",
			quantity_from_count(waits->unknown).text);
	if (waits->unmatched)
		fprintf(text->stream, "  ! %s have no counterpart\n",
			quantity_from_count(waits->unmatched).text);
	if (waits->hosts_without_clock)
		fprintf(text->stream,
			"  ! the clocks of %u hosts cannot be aligned: what their ranks and others "
			"waited for each other is not told\n",
			waits->hosts_without_clock);
	if (waits->hosts > 1)
		fprintf(text->stream,
			"  clocks of hosts are aligned to within %s by messages in both "
			"directions; %s shorter waits are left out\n",
			quantity_from_ns(waits->clock_error_ns).text,
			quantity_from_count(waits->below_clock_error).text);
}

static void write_found(const struct job_text *text, const struct job_waits *waits)
{
	uint32_t shown = text->top && waits->row_count > text->top ? text->top : waits->row_count;

	write_states(text, waits);
	if (!waits->row_count)
		fputs("  no rank waited for another one\n", text->stream);
	write_limits(text, waits);
	if (!shown)
		return;
	job_text_write_heading(text, "What waited in MPI, and for whom");
	fprintf(text->stream, "  %10s %9s  %-18s  %s\n", "time", "calls", "state",
		"call that waited, and what it waited for");
	for (uint32_t i = 0; i < shown; i++)
		write_row(text, &waits->rows[i]);
	if (shown < waits->row_count)
		fprintf(text->stream, "  … %u more rows\n", waits->row_count - shown);
}

int job_text_write_waits(const struct job_text *text)
{
	struct job_waits waits;
	int error = job_find_waits(text->job, &waits);

	if (error || waits.verdict == JOB_WAITS_NO_EVENTS)
		return error;
	job_text_write_heading(text, "Waiting in MPI by its cause, all ranks together");
	if (waits.verdict == JOB_WAITS_INCOMPLETE)
		fputs("  who waited for whom cannot be concluded: messages of ranks whose data are "
		      "missing, or whose calls were left out (THROTTLE_COUNT), have no "
		      "counterpart\n",
		      text->stream);
	else
		write_found(text, &waits);
	job_waits_deinit(&waits);
	return 0;
}
