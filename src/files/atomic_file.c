/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See atomic_file.h: the one place that opens files of results.
 */
#include "files/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "files/stream.h"

#define STREAM_BUFFER_BYTES 65536u

static int set_file_problem(struct problem *problem, const char *doing, const char *path, int error)
{
	const char *remedy = "check the directory's permissions, or name another with -o";

	if (error == ENOSPC || error == EDQUOT)
		remedy = "free some space, then run `kymo report` on the results";
	else if (error == EFBIG)
		remedy = "raise the limit of file sizes (ulimit -f), then run `kymo report` on the "
			 "results";
	return problem_set(problem, -error, "cannot %s %s: %s; %s", doing, path, strerror(error),
			   remedy);
}

/* mkstemp makes files private to the user; results follow the umask like any other file. */
static void set_mode_by_umask(int file)
{
	mode_t mask = umask(0);

	umask(mask);
	(void)!fchmod(file, 0666 & ~mask);
}

typedef int atomic_file_write_callback(const void *context, FILE *stream, struct problem *problem);

static int write_stream_and_sync(const char *path, atomic_file_write_callback *write,
				 const void *context, FILE *stream, uint64_t *bytes,
				 struct problem *problem)
{
	struct stat status;
	int result = write(context, stream, problem);

	if (result == -ENOSPC || result == -EDQUOT || result == -EFBIG)
		return set_file_problem(problem, "write", path, -result);
	if (result < 0)
		return result;
	result = stream_flush(stream);
	if (result < 0)
		return set_file_problem(problem, "write", path, -result);
	if (fsync(fileno(stream)) != 0 && errno != EINVAL)
		return set_file_problem(problem, "write", path, errno);
	if (bytes && fstat(fileno(stream), &status) == 0)
		*bytes = (uint64_t)status.st_size;
	return 0;
}

static int write_and_rename_temporary(const char *path, char *temporary,
				      atomic_file_write_callback *write, const void *context,
				      uint64_t *bytes, struct problem *problem)
{
	int file = mkstemp(temporary);
	FILE *stream;
	int result;

	if (file < 0)
		return set_file_problem(problem, "create", path, errno);
	set_mode_by_umask(file);
	stream = fdopen(file, "w");
	if (!stream) {
		result = set_file_problem(problem, "create", path, errno);
		close(file);
	} else {
		/* No other thread writes to it: a lock for each number takes longer than the
		 * number. */
		__fsetlocking(stream, FSETLOCKING_BYCALLER);
		setvbuf(stream, NULL, _IOFBF, STREAM_BUFFER_BYTES);
		result = write_stream_and_sync(path, write, context, stream, bytes, problem);
		if (fclose(stream) != 0 && result == 0)
			result = set_file_problem(problem, "write", path, errno);
	}
	if (result == 0 && rename(temporary, path) != 0)
		result = set_file_problem(problem, "create", path, errno);
	if (result < 0)
		unlink(temporary);
	return result;
}

int atomic_file_write_by_callback(const char *path, atomic_file_write_callback *write,
				  const void *context, uint64_t *bytes, struct problem *problem)
{
	_cleanup_(cleanup_free) char *temporary = NULL;

	if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
		return problem_set(problem, -ENOMEM, "out of memory writing %s", path);
	return write_and_rename_temporary(path, temporary, write, context, bytes, problem);
}

static int write_all_bytes_of_file_part(int file, const struct atomic_file_part *part)
{
	const char *from = part->bytes;

	for (size_t done = 0; done < part->size;) {
		ssize_t written = write(file, from + done, part->size - done);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written < 0 ? -errno : -EIO;
		done += (size_t)written;
	}
	return 0;
}

int atomic_file_write_parts(const char *path, mode_t mode, const struct atomic_file_part *parts,
			    size_t count)
{
	_cleanup_(cleanup_free) char *temporary = NULL;
	int file, error = 0;

	if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
		return -ENOMEM;
	file = mkostemp(temporary, O_CLOEXEC);
	if (file < 0)
		return -errno;
	if (mode == ATOMIC_FILE_MODE_BY_UMASK)
		set_mode_by_umask(file);
	else if (fchmod(file, mode) != 0)
		error = -errno;
	for (size_t i = 0; i < count && error == 0; i++)
		error = write_all_bytes_of_file_part(file, &parts[i]);
	if (close(file) != 0 && error == 0)
		error = -errno;
	if (error == 0 && rename(temporary, path) != 0)
		error = -errno;
	if (error != 0)
		unlink(temporary);
	return error;
}
