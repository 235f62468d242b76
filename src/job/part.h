/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Part files: a job, or some of its ranks, between two merges (docs/reference/job.md). A result of
 * `kymo merge` has one as well (job.part), from which all of its files can be made again.
 *
 * Little-endian. Header, then the tables in the order of the header's counts, then the strings,
 * each with a zero behind it. Texts are offsets into the strings, the first of which is "". All
 * tables are sorted as job_sort() does, and every string is there once, in the order in which the
 * tables name them, so that one job has one file. The checksum is over all that follows the header.
 *
 * The reader trusts nothing: sizes must add up to the file's, every offset and index must lead into
 * its table, and moments must be those of as many ranks as there are.
 */
#ifndef KYMO_JOB_PART_H
#define KYMO_JOB_PART_H

#include <stdint.h>
#include <stdio.h>

#include "job/job.h"

#define JOB_PART_MAGIC       "KYMOPART"
#define JOB_PART_VERSION     2 /* readers refuse any other */
#define JOB_PART_FILE_NAME   "job.part"
#define JOB_PART_BYTES_MAX   ((size_t)4 << 30)
#define JOB_PART_STRINGS_MAX UINT32_MAX
#define JOB_PART_NONE        UINT32_MAX

struct job_part_header {
	uint8_t magic[8];
	uint32_t version, header_bytes;
	uint64_t checksum; /* common/checksum.h */
	uint32_t job_size; /* ranks of the job; 0: unknown */
	uint32_t rank_count, refused_count, name_count, path_count, row_count;
	uint32_t event_count, reserved;
	uint64_t string_bytes;
};
_Static_assert(sizeof(struct job_part_header) == 64, "job_part_header");

struct job_part_rank {
	uint32_t rank, size, pid, flags;
	int32_t wait_status;
	uint32_t processes;
	uint64_t cpu_ns, cpu_in_mpi_ns, wall_ns, samples, lost;
	uint64_t mpi_ns[JOB_MPI_CLASS_COUNT];
	uint64_t events, unknown_events;
	uint32_t host, directory, command, reserved;
};
_Static_assert(sizeof(struct job_part_rank) == 144, "job_part_rank");

struct job_part_refused {
	uint32_t directory, reason;
};

struct job_part_name {
	uint32_t kind, name, group, file;
};

struct job_part_path {
	uint32_t parent; /* an earlier path, or JOB_PART_NONE */
	uint32_t name;
};

struct job_part_row {
	uint32_t owner;
	uint16_t is_of_path, quantity;
	uint64_t sum[2], sum_of_squares[2]; /* the lower half first */
	uint64_t minimum, maximum;
	uint32_t minimum_rank, maximum_rank, count;
	uint32_t lowest_rank_without; /* JOB_PART_NONE: none */
};
_Static_assert(sizeof(struct job_part_row) == 72, "job_part_row");

struct job_part_event {
	uint64_t context, begin_ns, wait_ns, end_ns;
	uint32_t rank, peer; /* peer: JOB_PART_NONE: no root */
	int32_t tag;
	uint32_t order, begin_name, name, call, size;
	uint16_t kind, is_mixed;
	uint32_t reserved;
};
_Static_assert(sizeof(struct job_part_event) == 72, "job_part_event");

/* The job must be sorted. 0 or a negative errno. */
int job_part_write(const struct job *job, FILE *stream, struct problem *problem);
/* Adds what the bytes hold to `job`, which is initialised and empty; it is of no use after an
 * error. `name` is for messages. -EBADMSG: damaged, -EPROTONOSUPPORT: of another version. */
int job_part_read(struct job *job, const void *bytes, size_t size, const char *name,
		  struct problem *problem);
int job_part_read_file(struct job *job, const char *path, struct problem *problem);

#endif
