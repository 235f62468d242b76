/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The NCCL records of the ranks of a job in one result directory: they are linked (or copied, to
 * another file system), so `kymo report` and every format work on it as on any other, and what is
 * written there can be made again. Nothing is read into memory at once: files are opened one after
 * the other, however many ranks there are.
 */
#ifndef KYMO_MERGING_NCCL_FILES_H
#define KYMO_MERGING_NCCL_FILES_H

#include <stddef.h>

#include "analysis/id_map.h"
#include "common/problem.h"

struct merge_nccl_files {
	const char *output_directory; /* which has spool/ */
	size_t directory_count;       /* that had records */
	size_t file_count, bytes_copied, duplicate_count, unusable_count;
	struct id_map seen; /* device and inode -> file */
};

/* Adds the records in `directory`, if it has any: *ret_files. 0 or a negative errno. */
int merge_nccl_files_add(struct merge_nccl_files *merge, const char *directory, size_t *ret_files,
			 struct problem *problem);
/* Before they are added again: removes them from the output, and forgets them. */
void merge_nccl_files_restart(struct merge_nccl_files *merge);
void merge_nccl_files_deinit(struct merge_nccl_files *merge);

#endif
