/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Coverage as outputs write it: of a session, or of several together.
 */
#ifndef KYMO_OUTPUT_COVERAGE_H
#define KYMO_OUTPUT_COVERAGE_H

#include "analysis/coverage.h"
#include "output/output.h"

/* Of the session and options->others. -ENODATA: nothing in it was instrumented. */
int coverage_of(struct session *session, const struct output_options *options, struct coverage *ret,
		struct problem *problem);

/* Functions and lines of one source file, in all modules. */
struct coverage_file {
	const char *path; /* NULL: functions whose source is not known */
	struct coverage_share functions, blocks, code_lines;
	const struct coverage_unit **units; /* by line, then name */
	size_t unit_count;
	const struct coverage_line **lines; /* by line */
	size_t line_count;
};

struct coverage_files {
	struct coverage_file *files; /* by path, the unknown one last */
	size_t count;
	const struct coverage_unit **units;
	const struct coverage_line **lines;
};

int coverage_files_make(const struct coverage *coverage, struct coverage_files *ret);
void coverage_files_deinit(struct coverage_files *files);

#endif
