/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See whole_file.h: the one place that opens files of results.
 */
#include "output/whole_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output/stream.h"

static int file_problem(struct problem *problem, const char *doing, const char *path, int error)
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
static void apply_umask(int file)
{
	mode_t mask = umask(0);

	umask(mask);
	(void)!fchmod(file, 0666 & ~mask);
}

typedef int write_function(const void *context, FILE *stream, struct problem *problem);

static int write_and_sync(const char *path, write_function *write, const void *context,
			  FILE *stream, uint64_t *bytes, struct problem *problem)
{
	struct stat status;
	int result = write(context, stream, problem);

	if (result == -ENOSPC || result == -EDQUOT || result == -EFBIG)
		return file_problem(problem, "write", path, -result);
	if (result < 0)
		return result;
	result = stream_flush(stream);
	if (result < 0)
		return file_problem(problem, "write", path, -result);
	if (fsync(fileno(stream)) != 0 && errno != EINVAL)
		return file_problem(problem, "write", path, errno);
	if (bytes && fstat(fileno(stream), &status) == 0)
		*bytes = (uint64_t)status.st_size;
	return 0;
}

static int write_temporary(const char *path, char *temporary, write_function *write,
			   const void *context, uint64_t *bytes, struct problem *problem)
{
	int file = mkstemp(temporary);
	FILE *stream;
	int result;

	if (file < 0)
		return file_problem(problem, "create", path, errno);
	apply_umask(file);
	stream = fdopen(file, "w");
	if (!stream) {
		result = file_problem(problem, "create", path, errno);
		close(file);
	} else {
		result = write_and_sync(path, write, context, stream, bytes, problem);
		if (fclose(stream) != 0 && result == 0)
			result = file_problem(problem, "write", path, errno);
	}
	if (result == 0 && rename(temporary, path) != 0)
		result = file_problem(problem, "create", path, errno);
	if (result < 0)
		unlink(temporary);
	return result;
}

int whole_file_write(const char *path, write_function *write, const void *context, uint64_t *bytes,
		     struct problem *problem)
{
	char *temporary;
	int result;

	if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
		return problem_set(problem, -ENOMEM, "out of memory writing %s", path);
	result = write_temporary(path, temporary, write, context, bytes, problem);
	free(temporary);
	return result;
}
