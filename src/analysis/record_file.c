/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 */
#include "analysis/record_file.h"
#include "common/foreign_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int record_file_open_and_get_size(const char *path, int *ret_descriptor, uint64_t *ret_size,
				  struct problem *problem)
{
	struct stat status;

	*ret_descriptor = foreign_open_file(&foreign_policy_of_result_files, path, &status);
	if (*ret_descriptor == -ENODEV || *ret_descriptor == -EISDIR || *ret_descriptor == -ELOOP) {
		int error = *ret_descriptor;

		*ret_descriptor = -1;
		return problem_set(problem, -ENODATA, "cannot read %s: %s", path,
				   foreign_error_to_text(error));
	}
	if (*ret_descriptor < 0)
		return problem_set(problem, *ret_descriptor, "cannot open %s: %s", path,
				   foreign_error_to_text(*ret_descriptor));
	*ret_size = (uint64_t)status.st_size;
	return 0;
}

ssize_t record_file_read_at_offset(int descriptor, void *buffer, size_t size, uint64_t offset)
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
