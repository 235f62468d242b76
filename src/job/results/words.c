/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See words.h.
 */
#include "job/results/words.h"

#include <string.h>

#include "output/format.h"

const char *job_mpi_class_get_key(enum job_mpi_class class)
{
	static const char *const keys[JOB_MPI_CLASS_COUNT] = {[JOB_MPI_BARRIER] = "barrier",
							      [JOB_MPI_COLLECTIVE] = "collective",
							      [JOB_MPI_POINT_TO_POINT] =
								      "point_to_point",
							      [JOB_MPI_FINALIZE] = "finalize",
							      [JOB_MPI_INIT] = "init",
							      [JOB_MPI_OTHER] = "other"};

	return keys[class];
}

const char *job_quantity_get_key(enum job_quantity quantity)
{
	static const char *const keys[JOB_QUANTITY_COUNT] = {
		[JOB_CPU_OUTSIDE_MPI] = "cpu_outside_mpi_ns",
		[JOB_CPU_INSIDE_MPI] = "cpu_inside_mpi_ns",
		[JOB_CPU_TOTAL] = "cpu_total_ns",
		[JOB_BLOCKED_OUTSIDE_MPI] = "blocked_outside_mpi_ns",
		[JOB_BLOCKED_INSIDE_MPI] = "blocked_inside_mpi_ns",
		[JOB_EVENTS] = "events",
		[JOB_DEVICE] = "device_ns",
		[JOB_CALLS] = "calls",
		[JOB_TIME] = "time_ns",
		[JOB_SELF_TIME] = "self_ns"};

	return keys[quantity];
}

const char *job_rank_get_end_key(const struct job_rank *rank)
{
	return rank->flags & JOB_RANK_KILLED       ? "killed"
	       : rank->flags & JOB_RANK_FAILED     ? "failed"
	       : rank->flags & JOB_RANK_UNFINISHED ? "unfinished"
						   : "exited";
}

static void append(char *buffer, size_t size, const char *text)
{
	size_t length = strlen(buffer);

	snprintf(buffer + length, size - length, "%s%s", length ? "; " : "", text);
}

void job_rank_format_troubles(const struct job_rank *rank, char *buffer, size_t size)
{
	char text[128];

	*buffer = '\0';
	if (rank->flags & (JOB_RANK_KILLED | JOB_RANK_FAILED)) {
		format_wait_status(text, sizeof(text), rank->wait_status);
		append(buffer, size, text);
	}
	if (rank->flags & JOB_RANK_UNFINISHED)
		append(buffer, size, "ended without exiting (killed, or still running)");
	if (rank->flags & JOB_RANK_LOST_RECORDS) {
		snprintf(text, sizeof(text), "%s records are lost",
			 quantity_from_count(rank->lost).text);
		append(buffer, size, text);
	}
	if (rank->flags & JOB_RANK_UNREADABLE)
		append(buffer, size, "a part of its data cannot be read");
	if (rank->flags & JOB_RANK_OVERWRITTEN)
		append(buffer, size, "its oldest records were overwritten (SPOOL_LIMIT)");
	if (rank->flags & JOB_RANK_CALLS_LEFT_OUT)
		append(buffer, size,
		       "calls of short or deeply nested regions were left out (THROTTLE_COUNT, "
		       "MAX_DEPTH)");
	if (rank->flags & JOB_RANK_COLLECTED_PART)
		append(buffer, size, "collection was off for some of the time");
	if (!(rank->flags & JOB_RANK_HAS_SAMPLES))
		append(buffer, size, "no samples");
}
