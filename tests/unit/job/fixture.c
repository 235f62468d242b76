/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See fixture.h.
 */
#include "unit/job/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/splitmix64.h"
#include "job/part.h"

static void require(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "fixture: %s\n", what);
	abort();
}

struct fixture_values fixture_make_values(uint64_t seed, uint32_t rank)
{
	uint64_t state = splitmix64_mix(seed * 1000003 + rank);
	struct fixture_values values = {0};

	for (unsigned i = 0; i < FIXTURE_FUNCTIONS; i++) {
		uint64_t number = splitmix64_next(&state);

		/* Some of the largest that there may be, so that sums need their 128 bits. */
		if (number % 4 == 0)
			values.cpu[i] = 0;
		else if (number % 16 == 1)
			values.cpu[i] = JOB_VALUE_MAX;
		else
			values.cpu[i] = 1 + (number >> 8) % 1000000;
	}
	return values;
}

static void add_function(struct job *job, unsigned function, uint64_t value, uint32_t rank)
{
	char name[32], file[32];
	struct job_name program = {JOB_NAME_PROGRAM, "prog", "", ""};
	struct job_name key = {JOB_NAME_FUNCTION, name, function % 3 ? "libwork.so" : "prog", file};
	struct job_moments moments = job_moments_from_value(value, rank);
	uint32_t program_index, index, root, path;

	snprintf(name, sizeof(name), "function_%u", function % 5);
	snprintf(file, sizeof(file), "file_%u.c", function);
	require(!job_find_or_add_name(job, &program, &program_index), "name");
	require(!job_find_or_add_name(job, &key, &index), "name");
	require(!job_find_or_add_path(job, JOB_NO_PATH, program_index, &root), "path");
	require(!job_find_or_add_path(job, root, index, &path), "path");
	/* A path below it that the function calls itself on. */
	if (function % 2)
		require(!job_find_or_add_path(job, path, index, &path), "path");
	require(!job_add_moments(job, index, false, JOB_CPU_OUTSIDE_MPI, &moments), "row");
	require(!job_add_moments(job, path, true, JOB_CPU_OUTSIDE_MPI, &moments), "row");
}

/* A message to the next rank and from the one before, and a barrier of all. */
static void add_events(struct job *job, uint64_t seed, uint32_t rank, uint32_t size)
{
	struct job_name send = {JOB_NAME_SITE, "MPI_Isend", "exchange", "halo.c:1"};
	struct job_name wait = {JOB_NAME_SITE, "MPI_Waitall", "exchange", "halo.c:2"};
	uint64_t begin_ns = ((uint64_t)1 << 57) + splitmix64_mix(seed + rank) % 1000000;
	struct job_event event = {.context = 1,
				  .begin_ns = begin_ns,
				  .wait_ns = begin_ns + 10,
				  .end_ns = begin_ns + 2000000,
				  .rank = rank,
				  .peer = (rank + 1) % size,
				  .kind = JOB_EVENT_SEND};

	require(!job_find_or_add_name(job, &wait, &event.name), "site");
	require(!job_find_or_add_name(job, &send, &event.begin_name), "site");
	require(!job_add_event(job, &event), "event");
	event.kind = JOB_EVENT_RECEIVE;
	event.peer = (rank + size - 1) % size;
	event.call = 1;
	require(!job_add_event(job, &event), "event");
	event.kind = JOB_EVENT_BARRIER;
	event.peer = JOB_NO_RANK;
	event.size = size;
	event.call = 2;
	require(!job_add_event(job, &event), "event");
}

void fixture_make_rank(struct job *job, uint64_t seed, uint32_t rank, uint32_t size)
{
	struct fixture_values values = fixture_make_values(seed, rank);
	char directory[32];
	struct job_rank record = {.rank = rank,
				  .size = size,
				  .pid = 1000 + rank,
				  .flags = JOB_RANK_HAS_SAMPLES,
				  .cpu_ns = 5 * rank,
				  .host = rank % 2 ? "left" : "right",
				  .directory = directory,
				  .command = "prog"};
	struct problem problem;

	snprintf(directory, sizeof(directory), "/results/%u", rank);
	job_init(job);
	require(!job_add_rank(job, &record, &problem), "rank");
	for (unsigned i = 0; i < FIXTURE_FUNCTIONS; i++) {
		unsigned function = (i * 7 + rank) % FIXTURE_FUNCTIONS;

		if (values.cpu[function])
			add_function(job, function, values.cpu[function], rank);
	}
	add_events(job, seed, rank, size);
	if (rank % 5 == 3)
		require(!job_add_refused(job, "/results/lost", "it is empty"), "refused");
}

char *fixture_write_part(struct job *job, size_t *ret_size)
{
	char *bytes = NULL;
	FILE *stream = open_memstream(&bytes, ret_size);
	struct problem problem;

	require(stream && !job_sort(job), "sort");
	require(!job_part_write(job, stream, &problem), "write");
	require(!fclose(stream), "close");
	return bytes;
}
