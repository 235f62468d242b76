/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Files of a job. Each writer takes a sorted job; what it writes depends on nothing else.
 */
#ifndef KYMO_JOB_RESULTS_RESULTS_H
#define KYMO_JOB_RESULTS_RESULTS_H

#include <stdio.h>

#include "job/job.h"

struct job_format {
	const char *name; /* as in kymo report --format */
	const char *file_name;
	bool is_binary; /* not for terminals */
	/* `top`: rows in tables of texts; 0: all. */
	int (*write)(const struct job *job, unsigned top, FILE *stream, struct problem *problem);
};

#define JOB_FORMAT_COUNT 5
extern const struct job_format job_formats[JOB_FORMAT_COUNT];

int job_write_text(const struct job *job, unsigned top, FILE *stream, struct problem *problem);
int job_write_json(const struct job *job, unsigned top, FILE *stream, struct problem *problem);
int job_write_folded(const struct job *job, unsigned top, FILE *stream, struct problem *problem);
int job_write_pprof(const struct job *job, unsigned top, FILE *stream, struct problem *problem);
/* All files into the directory. */
int job_write_all_files(const struct job *job, const char *directory, struct problem *problem);

/* "rank 3", "ranks 3, 5-7 and 2 more"; those that the job has and that are not here. */
struct job_rank_range {
	uint32_t first, last;
};
/* The next range of missing ranks from *next on. False: there is none. */
bool job_next_missing_range(const struct job *job, uint32_t *next, struct job_rank_range *ret);

#endif
