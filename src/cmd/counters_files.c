/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See counters_files.h.
 */
#include "cmd/counters_files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX_SIZE (64u << 20)
#define FOLDERS_UP    5

int counters_file_read(const char *path, char **text, size_t *size, struct problem *problem)
{
	size_t room = 1u << 16;
	FILE *stream = fopen(path, "re");

	*size = 0;
	*text = NULL;
	if (!stream)
		return problem_set(problem, -errno, "cannot read '%s': %s", path, strerror(errno));
	for (;;) {
		char *larger = room <= FILE_MAX_SIZE ? realloc(*text, room) : NULL;
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

/* .../share/kymo/counter_defs.yaml, some folders up from the binary: as the tool library looks for
 * it, in the build tree and where it is installed. */
int counters_file_read_own(char **text, size_t *size)
{
	char path[PATH_MAX], file[PATH_MAX + 64];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

	path[length > 0 ? length : 0] = '\0';
	for (int up = 0; up < FOLDERS_UP; up++) {
		char *slash = strrchr(path, '/');

		if (!slash)
			break;
		*slash = '\0';
		snprintf(file, sizeof(file), "%s/share/kymo/counter_defs.yaml", path);
		if (!counters_file_read(file, text, size, NULL))
			return 0;
	}
	*text = NULL;
	*size = 0;
	return -ENOENT;
}
