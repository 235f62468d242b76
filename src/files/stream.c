/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See stream.h. What failed before fails again: that is how the reason is found out.
 */
#include "files/stream.h"

#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>

int stream_flush(FILE *stream)
{
	bool failed = ferror(stream) != 0;
	struct statvfs status;

	errno = 0;
	if (fflush(stream) != 0 && errno)
		return -errno;
	if (!failed && !ferror(stream))
		return 0;
	/* The failed bytes are gone, so another one has to try. */
	errno = 0;
	if ((fputc('\n', stream) == EOF || fflush(stream) != 0) && errno)
		return -errno;
	if (fileno(stream) >= 0 && fstatvfs(fileno(stream), &status) == 0 && status.f_blocks &&
	    status.f_bavail == 0)
		return -ENOSPC;
	return -EIO;
}

int stream_flush_or_set_problem(FILE *stream, const char *what, struct problem *problem)
{
	int result = stream_flush(stream);

	if (result < 0)
		problem_set(problem, result, "cannot write %s: %s", what, strerror(-result));
	return result;
}
