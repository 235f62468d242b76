/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where results go: path keys (%p, %rank%, …), the directory of a run, the `latest` link.
 */
#ifndef KYMO_LAUNCH_RESULT_PATH_H
#define KYMO_LAUNCH_RESULT_PATH_H

#include <stdbool.h>
#include <time.h>

#include "common/trusted_path.h"
#include "settings/effective.h"

/* What keys stand for. */
struct result_key_values {
	const char *program; /* as given on the command line */
	struct timespec start;
	long pid;
};

/* Replaces the keys of `pattern`; *ret is malloc'ed. Slashes in values become `_`, so that a key
 * never adds a directory. -EINVAL for unknown keys. */
int result_path_expand_keys(const char *pattern, const struct result_key_values *keys, char **ret,
			    struct problem *problem);
/* One line a key, for help; NULL-terminated pairs of key and meaning. */
extern const char *const result_path_key_help_texts[][2];

/* Where results are written. The directory is this user's. Where somebody else can exchange a
 * directory on the way to it, `path` goes by a descriptor (/proc/self/fd/N), and processes of the
 * program must not be told to write there by its name. */
struct result_place {
	char *path;     /* malloc'ed, absolute */
	char *shown;    /* its name, for people; malloc'ed */
	int descriptor; /* -1 where `path` is its name */
	struct untrusted_path_part_info
		untrusted_part; /* who could exchange what, where there is a descriptor */
};

/* Beside `latest`, in a parallel job: a link a rank, with its number behind this. */
#define RESULT_LATEST_OF_RANK "latest-rank"

/* Makes the directory for this run (with parents) as OUTPUT_PATH, TIME_OUTPUT and FORCE say, and
 * the `latest` link beside it. */
int result_directory_create(const struct effective_settings *settings,
			    const struct result_key_values *keys, struct result_place *ret,
			    struct problem *problem);
/* A directory that the user named for output: it is made where it is missing. */
int result_directory_open_or_create(const char *path, struct result_place *ret,
				    struct problem *problem);
void result_place_deinit(struct result_place *place);
/* Removes the directory if it is empty, and `latest` if that led to it. */
void result_place_remove_if_empty(const struct result_place *place);
/* mkdir -p; 0 or -errno. */
int result_make_directories(const char *path);
/* The directory of a result that the person named: itself, its `latest`, or, with NULL, the newest
 * kymo-*-output/latest here. *ret is malloc'ed. */
int result_directory_find_existing(const char *named, char **ret, struct problem *problem);

#endif
