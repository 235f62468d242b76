/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See rewrite.h. The file is read as a whole and written as a whole, under another name first.
 */
#include "binary/rewrite/rewrite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "binary/rewrite/private.h"
#include "common/foreign_file.h"

#define FILE_SIZE_MAX (UINT64_C(8) << 30)

static void free_pieces_and_headers(struct rewrite_job *rewrite)
{
	for (size_t i = 0; i < rewrite->piece_count; i++)
		free(rewrite->pieces[i].bytes);
	free(rewrite->segments);
	free(rewrite->sections);
}

static int build_rewritten_file(struct rewrite_job *rewrite, uint8_t **ret, size_t *ret_size)
{
	int error = rewrite_read_headers(rewrite);

	if (!error)
		error = rewrite_read_dynamic_section(rewrite);
	if (!error)
		error = rewrite_apply_patches(rewrite);
	if (!error)
		error = rewrite_grow_dynamic_section(rewrite);
	if (!error)
		error = rewrite_reserve_merged_eh_frame_hdr(rewrite);
	if (!error)
		error = rewrite_grow_program_headers(rewrite);
	return error ? error : rewrite_build_output(rewrite, ret, ret_size);
}

int rewrite_elf_in_memory(const char *name, uint8_t **bytes, size_t *size, const struct plan *plan,
			  const uint8_t *modes, const struct rewrite_options *options,
			  struct rewrite_result *ret, struct problem *problem)
{
	struct rewrite_job rewrite = {.name = name,
				      .plan = plan,
				      .modes = modes,
				      .options = options,
				      .result = ret,
				      .problem = problem,
				      .bytes = *bytes,
				      .size = *size};
	uint8_t *made;
	size_t made_size;

	memset(ret, 0, sizeof(*ret));
	problem_set(problem, 0, "%s: no memory to rewrite it", name);
	int error = build_rewritten_file(&rewrite, &made, &made_size);

	free_pieces_and_headers(&rewrite);
	if (error)
		return error;
	free(*bytes);
	*bytes = made;
	*size = made_size;
	ret->size = made_size;
	return 0;
}

/* ---- files ---- */

static int read_all_bytes(int descriptor, const struct stat *status, uint8_t **ret)
{
	size_t size = (size_t)status->st_size, at = 0;
	uint8_t *bytes = malloc(size + 1);

	if (!bytes)
		return -ENOMEM;
	while (at < size) {
		ssize_t got = pread(descriptor, bytes + at, size - at, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			int error = got < 0 ? -errno : -EBADMSG;

			free(bytes);
			return error;
		}
		at += (size_t)got;
	}
	*ret = bytes;
	return 0;
}

static int read_whole_file(const char *path, struct stat *status, uint8_t **ret,
			   struct problem *problem)
{
	static const struct foreign_open_policy how = {.directory = AT_FDCWD};
	int descriptor = foreign_open_file(&how, path, status), error = 0;

	if (descriptor == -ENODEV || descriptor == -EISDIR)
		return problem_set(problem, -EINVAL, "cannot read %s: it is not a regular file",
				   path);
	if (descriptor < 0)
		return problem_set(problem, descriptor, "cannot read %s: %s", path,
				   foreign_error_to_text(descriptor));
	if ((uint64_t)status->st_size > FILE_SIZE_MAX)
		error = -EINVAL;
	if (!error)
		error = read_all_bytes(descriptor, status, ret);
	close(descriptor);
	return error ? problem_set(problem, error, "cannot read %s: %s", path, strerror(-error))
		     : 0;
}

static int write_all_bytes(int descriptor, const uint8_t *bytes, size_t size)
{
	while (size > 0) {
		ssize_t put = write(descriptor, bytes, size);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return -errno;
		bytes += put;
		size -= (size_t)put;
	}
	return 0;
}

/* A file of another owner must not get that one's rights (set-user-ID) as ours. */
static int copy_owner_and_mode(int descriptor, const struct stat *status)
{
	mode_t mode = status->st_mode & 07777;

	if (fchown(descriptor, status->st_uid, status->st_gid))
		mode &= ~(mode_t)(S_ISUID | S_ISGID);
	return fchmod(descriptor, mode) ? -errno : 0;
}

static int replace_file_atomically(const char *path, const struct stat *status,
				   const uint8_t *bytes, size_t size, struct problem *problem)
{
	char *temporary;

	if (asprintf(&temporary, "%s.kymo-XXXXXX", path) < 0)
		return -ENOMEM;
	int descriptor = mkostemp(temporary, O_CLOEXEC);
	int error = descriptor < 0 ? -errno : write_all_bytes(descriptor, bytes, size);

	if (!error)
		error = copy_owner_and_mode(descriptor, status);
	if (descriptor >= 0 && close(descriptor) && !error)
		error = -errno;
	if (!error && rename(temporary, path))
		error = -errno;
	if (error && descriptor >= 0)
		unlink(temporary);
	free(temporary);
	return error ? problem_set(problem, error, "cannot write %s: %s", path, strerror(-error))
		     : 0;
}

int rewrite_elf_file(const char *in, const char *out, const struct plan *plan, const uint8_t *modes,
		     const struct rewrite_options *options, struct rewrite_result *ret,
		     struct problem *problem)
{
	struct stat status;
	uint8_t *bytes;
	int error = read_whole_file(in, &status, &bytes, problem);

	if (error)
		return error;
	size_t size = (size_t)status.st_size;

	error = rewrite_elf_in_memory(in, &bytes, &size, plan, modes, options, ret, problem);
	if (!error)
		error = replace_file_atomically(out, &status, bytes, size, problem);
	free(bytes);
	return error;
}
