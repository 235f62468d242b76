/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See report.h. The part file has the whole job, and all of its files are made of that.
 */
#include "merging/report.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/settings_value.h"
#include "files/atomic_file.h"
#include "job/results/results.h"
#include "merging/output.h"
#include "merging/ranks.h"

struct job_report {
	const char *directory, *format;
	unsigned top;
};

static int write_report(const void *context, FILE *stream, struct problem *problem)
{
	const struct job_report *report = context;

	return merge_output_report_job(report->directory, report->format, report->top, stream,
				       problem);
}

static bool is_binary(const char *name)
{
	for (size_t i = 0; i < JOB_FORMAT_COUNT; i++) {
		if (!strcmp(name, job_formats[i].name))
			return job_formats[i].is_binary;
	}
	return false;
}

static int write_to_output(const struct job_report *report,
			   const struct merge_report_request *request, struct problem *problem)
{
	bool to_stdout = !request->output || !strcmp(request->output, "-");

	if (to_stdout && is_binary(report->format) && isatty(STDOUT_FILENO))
		return problem_set(problem, -EINVAL,
				   "%s is a binary format: redirect it, or use -o FILE",
				   report->format);
	if (to_stdout)
		return write_report(report, stdout, problem);
	if (!request->force && !access(request->output, F_OK))
		return problem_set(problem, -EEXIST, "'%s' exists; --force overwrites it",
				   request->output);
	return atomic_file_write_by_callback(request->output, write_report, report, NULL, problem);
}

/* NULL: it is none of a job's formats. Names and file names are taken, as for other results. */
static const char *find_format(const char *name)
{
	for (size_t i = 0; i < JOB_FORMAT_COUNT; i++) {
		if (!strcmp(name, job_formats[i].name) || !strcmp(name, job_formats[i].file_name))
			return job_formats[i].name;
	}
	return NULL;
}

int merge_report_job(const char *directory, const struct merge_report_request *request,
		     struct problem *problem)
{
	struct job_report report = {directory, "text", request->top};
	bool has_records;
	int error;

	if (!merge_output_has_job(directory))
		return 1;
	has_records = merge_directory_has_records(directory, ".nccl");
	if (request->formats)
		report.format = find_format(request->formats);
	if (request->wants_records || !report.format) {
		error = merge_output_check_has_records(directory, problem);
		return error ? error : 1;
	}
	error = write_to_output(&report, request, problem);
	return error || request->formats || request->output ? error : has_records;
}
