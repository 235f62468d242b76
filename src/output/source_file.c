/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include "output/source_file.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "common/foreign_file.h"

#define SOURCE_FILE_BYTES_MAX (16 << 20)

bool source_file_has_source_name(const char *path)
{
	static const char *const endings[] = {
		"c",   "h",   "cc",    "cpp", "cxx", "c++",  "hh",  "hpp",   "hxx", "inl",
		"ipp", "tcc", "cu",    "cuh", "hip", "cl",   "py",  "pyx",   "pyi", "rs",
		"go",  "f",   "f90",   "f95", "f03", "f08",  "for", "s",     "asm", "d",
		"zig", "nim", "swift", "m",   "mm",  "java", "kt",  "scala", "js",  "ts",
		"jl",  "lua", "ml",    "hs",  "ada", "adb",  "pas", "cr"};
	const char *ending = strrchr(path, '.');
	char small[8] = "";

	for (size_t i = 0; ending != NULL && i + 1 < sizeof(small) && ending[i + 1] != 0; i++)
		small[i] = (char)tolower((unsigned char)ending[i + 1]);
	for (size_t i = 0; ending != NULL && i < ARRAY_SIZE(endings); i++) {
		if (strcmp(small, endings[i]) == 0)
			return true;
	}
	return false;
}

FILE *source_file_open(const char *path, struct stat *ret_status)
{
	static const struct foreign_open_policy how = {.directory = AT_FDCWD};
	struct stat status;
	int file = foreign_open_file(&how, path, &status);
	FILE *stream;

	if (file < 0) {
		errno = -file;
		return NULL;
	}
	if (status.st_size > SOURCE_FILE_BYTES_MAX ||
	    (geteuid() == 0 && !(status.st_mode & S_IROTH))) {
		close(file);
		errno = status.st_size > SOURCE_FILE_BYTES_MAX ? EFBIG : EACCES;
		return NULL;
	}
	stream = fdopen(file, "r");
	if (!stream)
		close(file);
	else if (ret_status)
		*ret_status = status;
	return stream;
}
