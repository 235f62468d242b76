/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where results go: path keys (%p, %rank%, …), the directory of a run, the `latest` link.
 */
#ifndef KYMO_CMD_RESULT_PATH_H
#define KYMO_CMD_RESULT_PATH_H

#include <stdbool.h>
#include <time.h>

#include "cmd/resolved.h"

/* What keys stand for. */
struct result_keys {
	const char *program; /* as given on the command line */
	struct timespec start;
	long pid;
};

/* Replaces the keys of `pattern`; *ret is malloc'ed. Slashes in values become `_`, so that a key
 * never adds a directory. -EINVAL for unknown keys. */
int result_path_expand(const char *pattern, const struct result_keys *keys, char **ret,
		       struct problem *problem);
/* One line a key, for help; NULL-terminated pairs of key and meaning. */
extern const char *const result_path_keys[][2];

/* Makes the directory for this run (with parents) as OUTPUT_PATH, TIME_OUTPUT and FORCE say, and
 * the `latest` link beside it. *ret is malloc'ed, absolute. */
int result_directory_create(const struct resolved *settings, const struct result_keys *keys,
			    char **ret, struct problem *problem);
/* mkdir -p; 0 or -errno. */
int result_make_directories(const char *path);
/* The directory of a result that the person named: itself, its `latest`, or, with NULL, the newest
 * kymo-*-output/latest here. *ret is malloc'ed. */
int result_directory_find(const char *named, char **ret, struct problem *problem);

#endif
