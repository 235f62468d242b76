/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Files that say which counters to count in which runs, in the forms that rocprofv3 reads: text
 * (a line `pmc: A B` a run, # begins a comment), and YAML or JSON with a list `jobs`.
 */
#ifndef KYMO_COUNTING_INPUT_H
#define KYMO_COUNTING_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/problem.h"

/* One run of the program. Texts are malloc'ed, NULL where the file does not say. */
struct counter_pass {
	char *counters; /* separated by commas */
	char *kernel_include_regex, *kernel_exclude_regex, *kernel_iteration_range;
	unsigned line; /* where it begins */
};

struct counter_input_file {
	struct counter_pass *passes;
	size_t count;
	bool is_text_format; /* rocprofv3 names results pmc_N then, else pass_N */
};

/* 0 or a negative errno; problem says FILE:LINE:COLUMN. What rocprofv3 knows and kymo does not need
 * is a warning. */
int counter_input_file_read(const char *path, struct counter_input_file *ret,
			    struct problem *problem);
/* The same of a text; `path` for messages, its ending for the form. */
int counter_input_file_parse(const char *path, const char *text, size_t size,
			     struct counter_input_file *ret, struct problem *problem);
void counter_input_file_deinit(struct counter_input_file *input);

#endif
