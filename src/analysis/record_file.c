/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 */
#include "analysis/record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int record_file_open(const char *path, int *ret_descriptor, uint64_t *ret_size,
		     struct problem *problem)
{
	struct stat status;

	*ret_descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (*ret_descriptor < 0)
		return problem_set(problem, -errno, "cannot open %s: %s", path, strerror(errno));
	if (fstat(*ret_descriptor, &status) != 0)
		return problem_set(problem, -errno, "cannot read %s: %s", path, strerror(errno));
	if (!S_ISREG(status.st_mode))
		return problem_set(problem, -ENODATA, "%s: not a regular file", path);
	*ret_size = (uint64_t)status.st_size;
	return 0;
}

ssize_t record_file_read(int descriptor, void *buffer, size_t size, uint64_t offset)
{
	size_t done = 0;

	while (done < size) {
		ssize_t got = pread(descriptor, (char *)buffer + done, size - done,
				    (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		done += (size_t)got;
	}
	return (ssize_t)done;
}
