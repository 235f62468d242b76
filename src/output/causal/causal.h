/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Outputs of causal profiling: one writer a file, from the experiments (data) and what they predict
 * (result). docs/reference/causal-format.md says what is in them.
 */
#ifndef KYMO_OUTPUT_CAUSAL_CAUSAL_H
#define KYMO_OUTPUT_CAUSAL_CAUSAL_H

#include <stdbool.h>
#include <stdio.h>

#include "analysis/causal/causal.h"

/* All of these: 0 or negative errno with problem set. */

/* experiments.json: everything, for programs. */
int causal_write_json(const struct causal_data *data, const struct causal_fit_result *result,
		      FILE *stream, struct problem *problem);
/* profile.coz: for the viewer of Coz. */
int causal_write_coz(const struct causal_data *data, const struct causal_fit_result *result,
		     FILE *stream, struct problem *problem);
/* report.txt: for people. */
int causal_write_text(const struct causal_data *data, const struct causal_fit_result *result,
		      FILE *stream, struct problem *problem);
/* report.html: the same, in one page that needs no network. */
int causal_write_html(const struct causal_data *data, const struct causal_fit_result *result,
		      FILE *stream, struct problem *problem);

/* All of them, whole or not at all, into a directory that is there. */
int causal_write_all_files(const struct causal_data *data, const struct causal_fit_result *result,
			   const char *directory, struct problem *problem);

/* The leading targets of each progress point, and what to think of them: some lines. */
void causal_print_summary(const struct causal_data *data, const struct causal_fit_result *result,
			  FILE *stream, bool colour);

/* What is to be said of a point that is not counted any more; false: nothing. */
bool causal_format_given_up_point(const struct causal_data_progress_point *point, char *buffer,
				  size_t size);

#endif
