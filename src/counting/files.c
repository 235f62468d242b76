/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See files.h.
 */
#include "counting/files.h"
#include "common/foreign_file.h"
#include "launch/parts.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFINITIONS_FILE_BYTES_MAX (64u << 20)

int counter_definitions_read_file(const char *path, char **text, size_t *size,
				  struct problem *problem)
{
	size_t room = 1u << 16;
	FILE *stream = foreign_open_user_named_stream(path);

	*size = 0;
	*text = NULL;
	if (!stream)
		return problem_set(problem, -errno, "cannot read '%s': %s", path,
				   foreign_error_to_text(errno));
	for (;;) {
		char *larger = room <= DEFINITIONS_FILE_BYTES_MAX ? realloc(*text, room) : NULL;
		size_t got;

		if (!larger)
			break;
		*text = larger;
		got = fread(*text + *size, 1, room - *size, stream);
		*size += got;
		if (*size < room && !ferror(stream)) {
			fclose(stream);
			return 0;
		}
		if (ferror(stream))
			break;
		room *= 2;
	}
	problem_set(problem, -EIO, "cannot read '%s': %s", path,
		    ferror(stream) ? strerror(errno) : "it is too large");
	fclose(stream);
	free(*text);
	*text = NULL;
	return -EIO;
}

int counter_definitions_read_shipped(char **text, size_t *size)
{
	char path[PATH_MAX];

	*text = NULL;
	*size = 0;
	if (!part_find_path(PART_COUNTER_DEFINITIONS, path))
		return -ENOENT;
	return counter_definitions_read_file(path, text, size, NULL);
}
