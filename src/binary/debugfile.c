/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Conventions: "Debugging Information in Separate Files" of the GDB manual; debuginfod-find(1) for
 * its cache.
 */
#include "binary/debugfile.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct debug_file_search_state {
	const struct elf_file *file;
	const char *debug_search_path;
	const uint8_t *wanted_build_id; /* that the found file must carry; size 0: check the CRC */
	uint32_t wanted_build_id_size;
	uint32_t wanted_crc;
	struct elf_file *found_file;
};

static bool debug_file_matches_id_or_crc(const struct debug_file_search_state *search,
					 const struct elf_file *candidate)
{
	if (search->wanted_build_id_size > 0)
		return candidate->build_id_size == search->wanted_build_id_size &&
		       memcmp(candidate->build_id, search->wanted_build_id,
			      search->wanted_build_id_size) == 0;
	uint32_t crc;
	return elf_compute_file_crc(candidate, &crc) == 0 && crc == search->wanted_crc;
}

/* 0: found; -ENOENT: look on; -ENOMEM. */
static int try_debug_file(struct debug_file_search_state *search, const char *path)
{
	struct elf_file *candidate;
	int error = elf_open(path, &candidate, NULL);
	if (error)
		return error == -ENOMEM ? error : -ENOENT;
	if (!debug_file_matches_id_or_crc(search, candidate)) {
		elf_close(candidate);
		return -ENOENT;
	}
	search->found_file = candidate;
	return 0;
}

__attribute__((format(printf, 2, 3))) static int
try_formatted_path(struct debug_file_search_state *search, const char *format, ...)
{
	char path[PATH_MAX];
	va_list arguments;
	va_start(arguments, format);
	int length = vsnprintf(path, sizeof(path), format, arguments);
	va_end(arguments);
	if (length < 0 || (size_t)length >= sizeof(path))
		return -ENOENT;
	return try_debug_file(search, path);
}

/* Calls `try` for every directory of the path until it answers anything but -ENOENT. */
static int try_each_debug_directory(struct debug_file_search_state *search,
				    int (*try)(struct debug_file_search_state *,
					       const char *directory, const void *),
				    const void *context)
{
	const char *at =
		search->debug_search_path ? search->debug_search_path : DEBUGFILE_DEFAULT_DIRECTORY;
	while (*at) {
		size_t length = strcspn(at, ":");
		char directory[PATH_MAX];
		if (length > 0 && length < sizeof(directory)) {
			memcpy(directory, at, length);
			directory[length] = 0;
			int error = try(search, directory, context);
			if (error != -ENOENT)
				return error;
		}
		at += length + (at[length] == ':');
	}
	return -ENOENT;
}

static void format_bytes_as_hex(const uint8_t *bytes, size_t size, char *to)
{
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < size; i++) {
		*to++ = digits[bytes[i] >> 4];
		*to++ = digits[bytes[i] & 15];
	}
	*to = 0;
}

static int try_build_id_path(struct debug_file_search_state *search, const char *directory,
			     const void *id)
{
	const char *text = id;
	return try_formatted_path(search, "%s/.build-id/%.2s/%s.debug", directory, text, text + 2);
}

static int try_debuginfod_cache(struct debug_file_search_state *search, const char *id)
{
	const char *own = getenv("DEBUGINFOD_CACHE_PATH");
	const char *xdg = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");
	int error = -ENOENT;
	if (own && *own)
		error = try_formatted_path(search, "%s/%s/debuginfo", own, id);
	if (error == -ENOENT && xdg && *xdg)
		error = try_formatted_path(search, "%s/debuginfod_client/%s/debuginfo", xdg, id);
	if (error == -ENOENT && home && *home)
		error = try_formatted_path(search, "%s/.cache/debuginfod_client/%s/debuginfo", home,
					   id);
	return error;
}

struct debug_link_directory_and_name {
	const char *directory; /* of the file, absolute where its path is */
	const char *name;
};

static int try_debug_link_in_directory(struct debug_file_search_state *search,
				       const char *directory, const void *context)
{
	const struct debug_link_directory_and_name *link = context;
	return try_formatted_path(search, "%s%s/%s", directory, link->directory, link->name);
}

static int try_debug_link_paths(struct debug_file_search_state *search)
{
	char *name;
	int error = elf_read_debuglink(search->file, &name, &search->wanted_crc);
	if (error)
		return error == -ENOMEM ? error : -ENOENT;
	char directory[PATH_MAX] = ".";
	const char *slash = strrchr(search->file->path, '/');
	size_t length = slash ? (size_t)(slash - search->file->path) : 0;
	if (slash && length < sizeof(directory)) {
		memcpy(directory, search->file->path, length);
		directory[length] = 0;
	}
	error = -ENOENT;
	/* A file that names itself (debug link left in after merging) is no separate file. */
	if (!slash || strcmp(slash + 1, name) != 0)
		error = try_formatted_path(search, "%s/%s", directory, name);
	if (error == -ENOENT)
		error = try_formatted_path(search, "%s/.debug/%s", directory, name);
	if (error == -ENOENT)
		error = try_each_debug_directory(
			search, try_debug_link_in_directory,
			&(struct debug_link_directory_and_name){directory, name});
	free(name);
	return error;
}

int debugfile_find(const struct elf_file *file, const char *debug_path, struct elf_file **ret)
{
	struct debug_file_search_state search = {.file = file,
						 .debug_search_path = debug_path,
						 .wanted_build_id = file->build_id,
						 .wanted_build_id_size = file->build_id_size};
	char id[2 * ELF_BUILD_ID_SIZE_MAX + 1];
	format_bytes_as_hex(file->build_id, file->build_id_size, id);
	int error = -ENOENT;
	if (file->build_id_size > 1)
		error = try_each_debug_directory(&search, try_build_id_path, id);
	if (error == -ENOENT)
		error = try_debug_link_paths(&search);
	if (error == -ENOENT && file->build_id_size > 1)
		error = try_debuginfod_cache(&search, id);
	if (!error)
		*ret = search.found_file;
	return error;
}

int debugfile_find_dwz_shared(const struct elf_file *file, const char *debug_path,
			      struct elf_file **ret)
{
	char *name;
	uint8_t build_id[ELF_BUILD_ID_SIZE_MAX];
	struct debug_file_search_state search = {
		.file = file, .debug_search_path = debug_path, .wanted_build_id = build_id};
	int error = elf_read_debugaltlink(file, &name, build_id, &search.wanted_build_id_size);
	if (error)
		return error == -ENOMEM ? error : -ENOENT;
	char id[2 * ELF_BUILD_ID_SIZE_MAX + 1];
	format_bytes_as_hex(build_id, search.wanted_build_id_size, id);
	const char *slash = strrchr(file->path, '/');
	if (name[0] == '/')
		error = try_debug_file(&search, name);
	else
		error = try_formatted_path(&search, "%.*s/%s",
					   slash ? (int)(slash - file->path) : 1,
					   slash ? file->path : ".", name);
	if (error == -ENOENT)
		error = try_each_debug_directory(&search, try_build_id_path, id);
	free(name);
	if (!error)
		*ret = search.found_file;
	return error;
}
