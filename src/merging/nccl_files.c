/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See nccl_files.h.
 */
#include "merging/nccl_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/foreign_file.h"
#include "common/trusted_path.h"
#include "console/message.h"

#define COPY_CHUNK_BYTES (8u << 20)

#define MERGE_NCCL_FILE_SUFFIX          ".nccl"
#define MERGE_GPU_FILE_SUFFIX           ".gpu"
#define MERGE_SUFFIX_ADDED_TO_GPU_FILES ".kernels" /* what is behind .gpu in a merged result */

static int merge_copy_file(struct merge_nccl_files *merge, int in, const char *from, const char *to,
			   struct problem *problem)
{
	int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666), error = 0;
	ssize_t sent = 0;

	if (out < 0)
		error = -errno;
	while (!error && (sent = sendfile(out, in, NULL, COPY_CHUNK_BYTES)) != 0) {
		if (sent < 0)
			error = -errno;
		else
			merge->bytes_copied += (size_t)sent;
	}
	if (out >= 0 && close(out) && !error)
		error = -errno;
	if (error && out >= 0)
		unlink(to);
	return error ? problem_set(problem, error, "cannot copy '%s' to '%s': %s", from, to,
				   strerror(-error))
		     : 0;
}

/* The same directory named twice, or once by itself and once by its `latest`. */
static bool merge_was_file_seen_else_mark_seen(struct merge_nccl_files *merge,
					       const struct stat *status)
{
	uint64_t key = id_map_hash_key((uint64_t)status->st_dev) ^ (uint64_t)status->st_ino;

	if (id_map_get(&merge->seen, key) != ID_MAP_NONE)
		return true;
	return id_map_set(&merge->seen, key, 1) < 0; /* without memory nothing else will work */
}

static bool merge_name_ends_with(const char *name, const char *end)
{
	size_t length = strlen(name), end_length = strlen(end);

	return length > end_length && !strcmp(name + length - end_length, end);
}

/* What cannot be read is one rank's fault, and the others are joined. A descriptor, or negative. */
static int merge_open_input_file(struct merge_nccl_files *merge, const char *path, struct stat *ret)
{
	int file = foreign_open_file(&foreign_policy_of_result_files, path, ret);

	if (file >= 0)
		return file;
	message_error("cannot join '%s': %s", path, foreign_error_to_text(file));
	merge->unusable_count++;
	return file;
}

/* A file of our own need not be copied; that of somebody else could change under the result. */
static int merge_hard_link_file_if_owner_trusted(int file, const struct stat *status,
						 const char *to)
{
	char from[32];

	if (!is_trusted_file_status(status))
		return -EPERM;
	snprintf(from, sizeof(from), "/proc/self/fd/%d", file);
	return linkat(AT_FDCWD, from, AT_FDCWD, to, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

/* Names begin with the number of the directory: the first one is the first one read, and its host's
 * clock is that of the result. */
static int merge_add_input_file(struct merge_nccl_files *merge, const char *from, const char *name,
				size_t input, struct problem *problem)
{
	bool is_gpu = merge_name_ends_with(name, MERGE_GPU_FILE_SUFFIX);
	struct stat status;
	char to[PATH_MAX];
	int in = merge_open_input_file(merge, from, &status), error = 0;

	if (in < 0)
		return 0;
	if (merge_was_file_seen_else_mark_seen(merge, &status)) {
		merge->duplicate_count += !is_gpu;
		close(in);
		return 0;
	}
	if (snprintf(to, sizeof(to), "%s/spool/%06zu-%s%s", merge->output_directory, input, name,
		     is_gpu ? MERGE_SUFFIX_ADDED_TO_GPU_FILES : "") >= (int)sizeof(to))
		error = problem_set(problem, -ENAMETOOLONG, "'%s' is too long a path", from);
	else if (merge_hard_link_file_if_owner_trusted(in, &status, to))
		error = merge_copy_file(merge, in, from, to, problem);
	close(in);
	merge->file_count += !error && merge_name_ends_with(name, MERGE_NCCL_FILE_SUFFIX);
	return error;
}

static int merge_is_nccl_record_file(const struct dirent *entry)
{
	return merge_name_ends_with(entry->d_name, MERGE_NCCL_FILE_SUFFIX);
}

static int merge_is_gpu_record_file(const struct dirent *entry)
{
	return merge_name_ends_with(entry->d_name, MERGE_GPU_FILE_SUFFIX) ||
	       merge_name_ends_with(entry->d_name, MERGE_SUFFIX_ADDED_TO_GPU_FILES);
}

static int merge_is_earlier_output_file(const struct dirent *entry)
{
	return merge_is_nccl_record_file(entry) ||
	       merge_name_ends_with(entry->d_name, MERGE_SUFFIX_ADDED_TO_GPU_FILES);
}

static int merge_add_matching_files(struct merge_nccl_files *merge, const char *spool, size_t input,
				    int (*is_wanted)(const struct dirent *entry), size_t *ret_files,
				    struct problem *problem)
{
	struct dirent **names;
	int count = scandir(spool, &names, is_wanted, alphasort), error = 0;

	if (count < 0)
		return problem_set(problem, -errno, "cannot read '%s': %s", spool, strerror(errno));
	for (int i = 0; i < count; i++) {
		char path[PATH_MAX];

		if (snprintf(path, sizeof(path), "%s/%s", spool, names[i]->d_name) >=
		    (int)sizeof(path))
			error = problem_set(problem, -ENAMETOOLONG, "'%s' is too long a path",
					    spool);
		if (!error)
			error = merge_add_input_file(merge, path, names[i]->d_name, input, problem);
		free(names[i]);
	}
	free(names);
	*ret_files = (size_t)count;
	return error;
}

/* GPUs' records tell how long NCCL's kernels took, and are taken for that alone. */
static int merge_add_nccl_and_gpu_record_files(struct merge_nccl_files *merge, const char *spool,
					       size_t input, size_t *ret_files,
					       struct problem *problem)
{
	int error = merge_add_matching_files(merge, spool, input, merge_is_nccl_record_file,
					     ret_files, problem);
	size_t kernels;

	if (!error && *ret_files)
		error = merge_add_matching_files(merge, spool, input, merge_is_gpu_record_file,
						 &kernels, problem);
	return error;
}

int merge_nccl_files_add(struct merge_nccl_files *merge, const char *directory, size_t *ret_files,
			 struct problem *problem)
{
	char spool[PATH_MAX];
	int error;

	*ret_files = 0;
	if (snprintf(spool, sizeof(spool), "%s/spool", directory) >= (int)sizeof(spool))
		return problem_set(problem, -ENAMETOOLONG, "'%s' is too long a path", directory);
	if (access(spool, R_OK | X_OK))
		return 0;
	error = merge_add_nccl_and_gpu_record_files(merge, spool, merge->directory_count, ret_files,
						    problem);
	merge->directory_count += *ret_files > 0;
	return error;
}

/* Records of an earlier merge would be taken for part of this one. */
static void merge_remove_earlier_output(const char *spool)
{
	struct dirent **names;
	int count = scandir(spool, &names, merge_is_earlier_output_file, alphasort);

	for (int i = 0; i < count; i++) {
		char path[PATH_MAX];

		if (snprintf(path, sizeof(path), "%s/%s", spool, names[i]->d_name) <
		    (int)sizeof(path))
			unlink(path);
		free(names[i]);
	}
	if (count >= 0)
		free(names);
}

void merge_nccl_files_restart(struct merge_nccl_files *merge)
{
	char spool[PATH_MAX];

	if (snprintf(spool, sizeof(spool), "%s/spool", merge->output_directory) <
	    (int)sizeof(spool))
		merge_remove_earlier_output(spool);
	merge_nccl_files_deinit(merge);
}

void merge_nccl_files_deinit(struct merge_nccl_files *merge)
{
	id_map_deinit(&merge->seen);
	*merge = (struct merge_nccl_files){.output_directory = merge->output_directory};
}
