/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * job.txt, for people: first which ranks it is about, then who waits for whom, then tables. What is
 * missing stands at the top and under the heading of every table.
 */
#include "job/results/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "files/stream.h"
#include "job/results/results.h"
#include "job/results/words.h"
#include "output/format.h"

#define RANKS_NAMED_MAX  6
#define TROUBLES_MAX     20
#define HOST_COLUMNS     24
#define PATH_FUNCTIONS   6 /* shown of a path: its innermost ones */
#define NOTE_COLUMNS     120
#define FUNCTION_COLUMNS 60

/* ---- what is missing ---- */

static void append_text(char *buffer, size_t size, const char *text)
{
	size_t length = strlen(buffer);

	if (length < size)
		snprintf(buffer + length, size - length, "%s", text);
}

static void append_missing_ranks(const struct job *job, char *buffer, size_t size)
{
	struct job_rank_range range;
	uint32_t next = 0, named = 0;
	char text[48];

	while (job_next_missing_range(job, &next, &range)) {
		if (named++ == RANKS_NAMED_MAX) {
			append_text(buffer, size, ", …");
			return;
		}
		snprintf(text, sizeof(text), range.first == range.last ? "%s%u" : "%s%u-%u",
			 named > 1 ? ", " : "", range.first, range.last);
		append_text(buffer, size, text);
	}
}

static void append_incomplete_ranks(const struct job *job, char *buffer, size_t size)
{
	uint32_t named = 0;
	char text[48];

	for (uint32_t i = 0; i < job->rank_count; i++) {
		if (!(job->ranks[i].flags & JOB_RANK_INCOMPLETE))
			continue;
		if (named++ == RANKS_NAMED_MAX) {
			append_text(buffer, size, ", …");
			return;
		}
		snprintf(text, sizeof(text), "%s%u", named > 1 ? ", " : "", job->ranks[i].rank);
		append_text(buffer, size, text);
	}
}

static void describe_hole(struct job_text *text)
{
	uint32_t missing = job_count_missing_ranks(text->job),
		 incomplete = job_count_incomplete_ranks(text->job);
	size_t size = sizeof(text->hole);
	char number[96];

	if (missing) {
		snprintf(number, sizeof(number), "%u of %u ranks %s missing (", missing,
			 text->job->size, missing == 1 ? "is" : "are");
		append_text(text->hole, size, number);
		append_missing_ranks(text->job, text->hole, size);
		append_text(text->hole, size, ")");
	}
	if (incomplete) {
		snprintf(number, sizeof(number), "%s%u rank%s incomplete (", missing ? "; " : "",
			 incomplete, incomplete == 1 ? " is" : "s are");
		append_text(text->hole, size, number);
		append_incomplete_ranks(text->job, text->hole, size);
		append_text(text->hole, size, ")");
	}
}

void job_text_write_heading(const struct job_text *text, const char *heading)
{
	fprintf(text->stream, "\n%s\n", heading);
	if (*text->hole)
		fprintf(text->stream, "  ! %s\n", text->hole);
}

/* ---- the head ---- */

static uint32_t count_hosts(const struct job *job)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < job->rank_count; i++) {
		bool is_new = true;

		/* Texts of a job are interned. Ranks of a host are near each other. */
		for (uint32_t k = i; is_new && k-- > 0;)
			is_new = job->ranks[k].host != job->ranks[i].host;
		count += is_new;
	}
	return count;
}

static void write_troubles(const struct job_text *text)
{
	const struct job *job = text->job;
	uint32_t written = 0, more = 0;
	char troubles[256];

	for (uint32_t i = 0; i < job->rank_count; i++) {
		job_rank_format_troubles(&job->ranks[i], troubles, sizeof(troubles));
		if (!*troubles)
			continue;
		if (text->top && written == TROUBLES_MAX) {
			more++;
			continue;
		}
		fprintf(text->stream, "  ! rank %u: %s\n", job->ranks[i].rank, troubles);
		written++;
	}
	if (more)
		fprintf(text->stream, "  ! and %u more ranks; job.json has all\n", more);
}

static void write_refused(const struct job_text *text)
{
	for (uint32_t i = 0; i < text->job->refused_count; i++) {
		const struct job_refused *refused = &text->job->refused[i];

		if (!*refused->reason)
			continue;
		fputs("  ! ", text->stream);
		format_write_printable_text(text->stream, refused->reason, strlen(refused->reason));
		fputc('\n', text->stream);
	}
}

static void write_head(const struct job_text *text)
{
	const struct job *job = text->job;
	uint32_t hosts = count_hosts(job);

	fputs("Job", text->stream);
	if (job->rank_count && *job->ranks[0].command) {
		fputs(": ", text->stream);
		format_write_cut_to_width(text->stream, job->ranks[0].command, NOTE_COLUMNS);
	}
	fputc('\n', text->stream);
	if (job->size)
		fprintf(text->stream, "  %u of %u ranks", job->rank_count, job->size);
	else
		fprintf(text->stream, "  %u ranks (how many the job had is unknown)",
			job->rank_count);
	fprintf(text->stream, ", on %u host%s\n", hosts, hosts == 1 ? "" : "s");
	if (*text->hole)
		fprintf(text->stream, "  ! %s\n", text->hole);
	write_troubles(text);
	write_refused(text);
}

/* ---- who is late ---- */

static uint64_t difference(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void job_text_write_path(const struct job_text *text, uint32_t path)
{
	const struct job *job = text->job;
	uint32_t names[PATH_FUNCTIONS], depth = 0;

	for (; path != JOB_NO_PATH; path = job->paths[path].parent) {
		if (depth < PATH_FUNCTIONS)
			names[depth] = job->paths[path].name;
		depth++;
		/* What is above it is the same in every program. */
		if (!strcmp(job->names[job->paths[path].name].name, "main"))
			break;
	}
	if (depth > PATH_FUNCTIONS)
		fputs("… > ", text->stream);
	for (uint32_t i = depth < PATH_FUNCTIONS ? depth : PATH_FUNCTIONS; i-- > 0;) {
		format_write_cut_to_width(text->stream, job->names[names[i]].name,
					  FUNCTION_COLUMNS);
		fputs(i ? " > " : "\n", text->stream);
	}
}

static void write_paths_of_late_rank(const struct job_text *text, const struct job_late *late)
{
	const struct job *job = text->job;

	fputs("  call paths outside MPI in which it has the most above the mean of all ranks:\n",
	      text->stream);
	for (uint32_t i = 0; i < late->path_count; i++) {
		struct job_statistics statistics =
			job_moments_get_statistics(&late->paths[i]->moments, job->rank_count);

		fprintf(text->stream, "    %9s %s above the mean of %9s  ",
			quantity_from_ns(statistics.lost).text,
			late->paths[i]->quantity == JOB_CPU_OUTSIDE_MPI ? "of CPU time" : "blocked",
			quantity_from_ns(statistics.mean).text);
		job_text_write_path(text, late->paths[i]->owner);
	}
}

/* What it did while the others waited: it computed, or it did not run at all, or both. */
static void write_cause(const struct job_text *text, const struct job_late *late)
{
	bool is_explained = job_late_is_explained_by_work(late);

	fprintf(text->stream, "  outside MPI it used %s of CPU time, the others %s (median)%s\n",
		quantity_from_ns(late->work_ns).text, quantity_from_ns(late->others_work_ns).text,
		is_explained ? ": it computes longer" : "");
	if (late->path_count)
		write_paths_of_late_rank(text, late);
	if (!is_explained)
		fprintf(text->stream,
			"  ! its CPU time explains %s of the %s. In the rest it was blocked or "
			"waited for a CPU, or\n    the others waited for a CPU%s\n",
			quantity_from_ns(difference(late->work_ns, late->others_work_ns)).text,
			quantity_from_ns(late->others_wait_ns - late->wait_ns).text,
			late->was_real_time_sampled ? "" : "; kymo sample --realtime shows where");
}

static void write_found_late_rank(const struct job_text *text, const struct job_late *late)
{
	const struct job *job = text->job;

	fprintf(text->stream,
		"  rank %u waits least: %s, the others %s (median). So the others wait for it, "
		"about %s each.\n",
		job->ranks[late->rank].rank, quantity_from_ns(late->wait_ns).text,
		quantity_from_ns(late->others_wait_ns).text,
		quantity_from_ns(difference(late->others_wait_ns, late->wait_ns)).text);
	if (late->late_count > 1) {
		fprintf(text->stream, "  %u ranks wait about as little:", late->late_count);
		for (uint32_t i = 0; i < late->late_count && i < JOB_LATE_RANKS_MAX; i++)
			fprintf(text->stream, "%s %u", i ? "," : "",
				job->ranks[late->late[i]].rank);
		fputs(late->late_count > JOB_LATE_RANKS_MAX ? ", …\n" : "\n", text->stream);
	}
	write_cause(text, late);
	fputs("  its own result: ", text->stream);
	format_write_printable_text(text->stream, job->ranks[late->rank].directory,
				    strlen(job->ranks[late->rank].directory));
	fputc('\n', text->stream);
}

static bool job_has_samples_in_mpi(const struct job *job)
{
	for (uint32_t i = 0; i < job->rank_count; i++) {
		if (job->ranks[i].cpu_in_mpi_ns)
			return true;
	}
	return false;
}

static int write_late_rank(const struct job_text *text)
{
	struct job_late late;
	int error = job_find_late_rank(text->job, &late);

	if (error || late.verdict == JOB_LATE_ONE_RANK ||
	    (late.verdict == JOB_LATE_NO_CALLS && !job_has_samples_in_mpi(text->job)))
		return error;
	job_text_write_heading(text, "Waiting in MPI");
	if (late.verdict == JOB_LATE_NO_CALLS)
		fputs("  calls of MPI were not recorded (--mpi=off), so nothing is known of "
		      "waiting\n",
		      text->stream);
	else if (late.verdict == JOB_LATE_FOUND)
		write_found_late_rank(text, &late);
	else if (late.verdict == JOB_LATE_NOBODY)
		fprintf(text->stream,
			"  no rank waits much less than the others: the least is %s (rank %u), "
			"most wait %s\n",
			quantity_from_ns(late.wait_ns).text, text->job->ranks[late.rank].rank,
			quantity_from_ns(late.others_wait_ns).text);
	else
		fputs("  which rank the others wait for cannot be concluded: it may be one whose "
		      "data are missing\n",
		      text->stream);
	return 0;
}

/* ---- ranks ---- */

static int compare_by_waiting(const void *left, const void *right)
{
	const struct job_rank *a = left, *b = right;
	uint64_t a_ns = job_rank_get_waiting_ns(a), b_ns = job_rank_get_waiting_ns(b);

	if (a_ns != b_ns)
		return a_ns < b_ns ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static void write_rank(const struct job_text *text, const struct job_rank *rank)
{
	const uint64_t *mpi_ns = rank->mpi_ns;
	char troubles[256];

	fprintf(text->stream, "  %8u %10s %10s %10s", rank->rank,
		quantity_from_ns(rank->wall_ns).text, quantity_from_ns(rank->cpu_ns).text,
		quantity_from_ns(job_rank_get_work_ns(rank)).text);
	if (rank->flags & JOB_RANK_HAS_MPI)
		fprintf(text->stream, " %10s %10s %10s %10s %10s",
			quantity_from_ns(job_rank_get_waiting_ns(rank)).text,
			quantity_from_ns(mpi_ns[JOB_MPI_BARRIER]).text,
			quantity_from_ns(mpi_ns[JOB_MPI_COLLECTIVE]).text,
			quantity_from_ns(mpi_ns[JOB_MPI_POINT_TO_POINT]).text,
			quantity_from_ns(mpi_ns[JOB_MPI_INIT] + mpi_ns[JOB_MPI_OTHER]).text);
	else
		fprintf(text->stream, " %10s %10s %10s %10s %10s", "-", "-", "-", "-", "-");
	fputs("  ", text->stream);
	format_write_cut_to_width(text->stream, rank->host, HOST_COLUMNS);
	job_rank_format_troubles(rank, troubles, sizeof(troubles));
	fprintf(text->stream, "%s%s\n", *troubles ? "  ! " : "", troubles);
}

static bool job_has_mpi_calls(const struct job *job)
{
	for (uint32_t i = 0; i < job->rank_count; i++) {
		if (job->ranks[i].flags & JOB_RANK_HAS_MPI)
			return true;
	}
	return false;
}

/* Those that wait least, which the others wait for, and those that wait most. */
static int write_ranks(const struct job_text *text)
{
	const struct job *job = text->job;
	uint32_t shown = text->top && job->rank_count > text->top ? text->top : job->rank_count;
	struct job_rank *ranks = calloc((size_t)job->rank_count + 1, sizeof(*ranks));

	if (!ranks)
		return -ENOMEM;
	for (uint32_t i = 0; i < job->rank_count; i++)
		ranks[i] = job->ranks[i];
	qsort(ranks, job->rank_count, sizeof(*ranks), compare_by_waiting);
	job_text_write_heading(text, job_has_mpi_calls(job)
					     ? "Ranks, the one that waits least in MPI first"
					     : "Ranks");
	fprintf(text->stream, "  %8s %10s %10s %10s %10s %10s %10s %10s %10s  %s\n", "rank", "wall",
		"CPU", "not in MPI", "waiting", "barrier", "collective", "to a rank", "init, rest",
		"host");
	for (uint32_t i = 0; i < job->rank_count; i++) {
		if (i == (shown + 1) / 2 && shown < job->rank_count) {
			i += job->rank_count - shown;
			fprintf(text->stream, "  … %u ranks between\n", job->rank_count - shown);
		}
		if (i < job->rank_count)
			write_rank(text, &ranks[i]);
	}
	free(ranks);
	return 0;
}

int job_write_text(const struct job *job, unsigned top, FILE *stream, struct problem *problem)
{
	struct job_text text = {.job = job, .stream = stream, .top = top};
	int error;

	for (uint32_t i = 0; i < job->rank_count; i++)
		text.mean_wall_ns += job->ranks[i].wall_ns / job->rank_count;
	describe_hole(&text);
	write_head(&text);
	error = write_late_rank(&text);
	if (!error)
		error = job_text_write_waits(&text);
	if (!error)
		error = write_ranks(&text);
	if (!error)
		error = job_text_write_tables(&text);
	return error ? problem_set(problem, error, "out of memory")
		     : stream_flush_or_set_problem(stream, "the text of the job", problem);
}
