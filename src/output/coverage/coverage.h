/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Coverage as outputs write it: of a session, or of several together.
 */
#ifndef KYMO_OUTPUT_COVERAGE_COVERAGE_H
#define KYMO_OUTPUT_COVERAGE_COVERAGE_H

#include "analysis/coverage/coverage.h"
#include "output/output.h"

/* The coverage of the session and of options->others. -ENODATA: nothing in it was instrumented. */
int coverage_compute_over_sessions(struct session *session, const struct output_options *options,
				   struct coverage *ret, struct problem *problem);

/* Functions and lines of one source file, in all modules. */
struct coverage_source_file {
	const char *path; /* NULL: functions whose source is not known */
	struct coverage_share_counts function_counts, block_counts, code_line_counts;
	const struct coverage_code_range **code_ranges; /* by line, then name */
	size_t code_range_count;
	const struct coverage_line **lines; /* by line */
	size_t line_count;
};

struct coverage_source_files {
	struct coverage_source_file *files; /* by path, the unknown one last */
	size_t count;
	const struct coverage_code_range **code_ranges;
	const struct coverage_line **lines;
};

int coverage_source_files_build(const struct coverage *coverage, struct coverage_source_files *ret);
void coverage_source_files_deinit(struct coverage_source_files *files);

#endif
