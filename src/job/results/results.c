/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See results.h.
 */
#include "job/results/results.h"

#include <errno.h>
#include <limits.h>

#include "files/atomic_file.h"
#include "job/part.h"

#define TABLE_ROWS 20

static int write_part(const struct job *job, unsigned top, FILE *stream, struct problem *problem)
{
	(void)top;
	return job_part_write(job, stream, problem);
}

const struct job_format job_formats[JOB_FORMAT_COUNT] = {
	{"text", "job.txt", false, job_write_text},
	{"json", "job.json", false, job_write_json},
	{"folded", "samples.folded", false, job_write_folded},
	{"pprof", "profile.pb.gz", true, job_write_pprof},
	{"part", JOB_PART_FILE_NAME, true, write_part},
};

struct file_to_write {
	const struct job *job;
	const struct job_format *format;
};

static int write_file(const void *context, FILE *stream, struct problem *problem)
{
	const struct file_to_write *file = context;

	return file->format->write(file->job, TABLE_ROWS, stream, problem);
}

int job_write_all_files(const struct job *job, const char *directory, struct problem *problem)
{
	int error = 0;

	for (size_t i = 0; !error && i < JOB_FORMAT_COUNT; i++) {
		struct file_to_write file = {job, &job_formats[i]};
		char path[PATH_MAX];

		if (snprintf(path, sizeof(path), "%s/%s", directory, job_formats[i].file_name) >=
		    (int)sizeof(path))
			return problem_set(problem, -ENAMETOOLONG, "'%s' is too long a path",
					   directory);
		error = atomic_file_write_by_callback(path, write_file, &file, NULL, problem);
	}
	return error;
}
