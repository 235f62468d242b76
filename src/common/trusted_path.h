/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Who can exchange what lies at a path? Its owner, who can write to it, and the same for every
 * directory on the way. A path is trusted where that is the effective user or root alone. Out of
 * process only.
 */
#ifndef KYMO_COMMON_TRUSTED_PATH_H
#define KYMO_COMMON_TRUSTED_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* The effective user or root. */
bool is_trusted_owner(uid_t owner);
/* Owned so, and written by nobody else. */
bool is_trusted_file_status(const struct stat *status);

/* What somebody else can exchange. */
struct untrusted_path_part_info {
	char path[PATH_MAX];
	uid_t owner;
	bool writable; /* others can write to it; else it is theirs */
};

/* A directory, reached step by step. */
struct opened_directory_with_trust {
	int descriptor;                        /* of it (O_PATH); the caller closes it */
	char path[PATH_MAX];                   /* without links */
	bool trusted;                          /* nobody else can exchange it */
	struct untrusted_path_part_info doubt; /* where not */
};

/* Opens a directory; what is missing of it is made with this mode, or, with mode 0, -ENOENT. No
 * link of another user is followed: -ELOOP (`ret->doubt` says which). */
int trusted_path_open_or_make_directory(const char *path, mode_t mode,
					struct opened_directory_with_trust *ret);

/* The path without links into `resolved` (PATH_MAX bytes), if it exists and is trusted from the
 * root on. 0, -EPERM (`doubt`, which may be NULL, says where), or another negative errno. */
int trusted_path_resolve_and_check(const char *path, char *resolved,
				   struct untrusted_path_part_info *doubt);
/* The same, but what is missing of the path is made, as directories with this mode. */
int trusted_path_make_directories(const char *path, mode_t mode, char *resolved,
				  struct untrusted_path_part_info *doubt);
/* "belongs to user 2001" or "can be written by others". */
const char *trusted_path_describe_untrusted_part(const struct untrusted_path_part_info *doubt,
						 char *text, size_t size);

#endif
