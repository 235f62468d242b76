/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Call paths as people count them: by function, whatever process of a program they were in, and
 * with recursion counted once: a path that goes on by repeating its end (f > f, or f > g > f > g)
 * is the path without the repetition. Of the C library they have the leaf alone.
 */
#ifndef KYMO_OUTPUT_CALL_PATHS_H
#define KYMO_OUTPUT_CALL_PATHS_H

#include "analysis/views.h"

struct call_path {
	uint64_t self;
	uint32_t caller_path_index; /* MODEL_ENTRY_INDEX_NONE at the root */
	uint32_t frame;             /* a representative one */
	uint32_t program;
};

struct call_paths {
	struct call_path *paths;
	uint32_t count;
	uint64_t total;
};

/* 0 or -ENOMEM; *paths is to be given back only after 0. */
int call_paths_build(struct call_paths *paths, const struct session *session,
		     enum view_measure_kind measure);
void call_paths_deinit(struct call_paths *paths);

#endif
