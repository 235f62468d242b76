/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include "output/source_file.h"

#include <unistd.h>

#include "common/foreign_file.h"

#define SOURCE_FILE_BYTES_MAX (16 << 20)

FILE *source_file_open(const char *path, struct stat *ret_status)
{
	static const struct foreign_open_policy how = {.directory = AT_FDCWD};
	struct stat status;
	int file = foreign_open_file(&how, path, &status);
	FILE *stream;

	if (file < 0)
		return NULL;
	if (status.st_size > SOURCE_FILE_BYTES_MAX ||
	    (geteuid() == 0 && !(status.st_mode & S_IROTH))) {
		close(file);
		return NULL;
	}
	stream = fdopen(file, "r");
	if (!stream)
		close(file);
	else if (ret_status)
		*ret_status = status;
	return stream;
}
