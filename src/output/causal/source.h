/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Source with what its lines would gain: stretches around targets, of files that can be read.
 */
#ifndef KYMO_OUTPUT_CAUSAL_SOURCE_H
#define KYMO_OUTPUT_CAUSAL_SOURCE_H

#include <stdio.h>

#include "analysis/causal/causal.h"

/* A line of source; text is NULL between stretches. */
struct causal_source_line {
	char *text;
	uint32_t number;
	double self_share, total_share;             /* of the session's CPU time; 0: none */
	const struct causal_prediction *prediction; /* of the line's target; may be NULL */
};

struct causal_source_file {
	const char *path;
	struct causal_source_line *lines;
	size_t count;
};

struct causal_source_excerpts {
	struct causal_source_file *files; /* those with most CPU time first */
	size_t count;
	size_t missing; /* files with targets that could not be read */
};

/* Gains are those of the first progress point. 0 or -ENOMEM. */
int causal_source_excerpts_read(const struct causal_data *data,
				const struct causal_fit_result *result,
				struct causal_source_excerpts *ret);
void causal_source_excerpts_deinit(struct causal_source_excerpts *source);

/* As a part of report.txt. 0 or -ENOMEM. */
int causal_source_excerpts_write(const struct causal_data *data,
				 const struct causal_fit_result *result, FILE *stream);

#endif
