/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which result directories are merged: those that the user named, and those in directories that
 * hold results of ranks. Sorted by their real paths, each of them once, so that nothing depends on
 * how they were named.
 */
#ifndef KYMO_MERGING_INPUTS_H
#define KYMO_MERGING_INPUTS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/problem.h"

struct merge_input {
	char *directory; /* absolute, where it exists */
	char *reason;    /* why it cannot be read; NULL: it may be */
	bool by_link;    /* it was named by a symbolic link, as `latest` */
};

struct merge_inputs {
	struct merge_input *list;
	size_t count, capacity;
	size_t named_twice; /* that were named more than once, and not by a link */
};

/* Of a directory that holds results, the `output` of the merge and results of earlier merges are
 * left out. 0 or -ENOMEM; deinit is needed after either. */
int merge_inputs_find(char *const *named, size_t count, const char *output,
		      struct merge_inputs *ret, struct problem *problem);
void merge_inputs_deinit(struct merge_inputs *inputs);
/* Copies `directory`, and `reason` unless that is NULL. 0 or -ENOMEM. */
int merge_inputs_add(struct merge_inputs *inputs, const char *directory, const char *reason);
void merge_inputs_sort(struct merge_inputs *inputs);
/* `b` may be NULL, and either may be missing. */
bool merge_is_same_directory(const char *a, const char *b);

#endif
