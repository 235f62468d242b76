/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a user can do about addresses without names: one sentence a module.
 *
 * On Debian the package that holds the missing symbols follows from the one that owns the file:
 * <package>-dbgsym, except that a few packages (libc6) have a -dbg of their own. The owner is found
 * in dpkg's file lists, as `dpkg -S` does.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/symbols/private.h"
#include "common/array.h"

#define DPKG_LISTS_DIRECTORY  "/var/lib/dpkg/info"
#define PACKAGE_LIST_SIZE_MAX (16u << 20)
#define PACKAGE_NAME_SIZE_MAX 256u
#define ADVICE_TEXT_SIZE_MAX  1536u

/* Is `path`, or "/usr" and it, a line of the list? `buffer` holds PACKAGE_LIST_SIZE_MAX + 2 bytes.
 */
static bool package_list_has_path(int directory, const char *list, const char *path, char *buffer)
{
	int descriptor = openat(directory, list, O_RDONLY | O_CLOEXEC);
	if (descriptor < 0)
		return false;
	buffer[0] = '\n';
	ssize_t size = read(descriptor, buffer + 1, PACKAGE_LIST_SIZE_MAX);
	close(descriptor);
	if (size <= 0)
		return false;
	size_t length = strlen(path);
	const char *end = buffer + 1 + size;
	for (const char *at = buffer; (at = memmem(at, (size_t)(end - at), path, length)); at++) {
		bool whole =
			at[-1] == '\n' || (at - buffer >= 5 && memcmp(at - 5, "\n/usr", 5) == 0);
		if (whole && at + length < end && at[length] == '\n')
			return true;
	}
	return false;
}

/* The Debian package that owns the file, without its architecture. */
static bool find_owner_package(const char *path, char package[PACKAGE_NAME_SIZE_MAX])
{
	/* Lists hold the path of before or after the merging of / and /usr. */
	if (strncmp(path, "/usr/", 5) == 0)
		path += 4;
	DIR *lists = opendir(DPKG_LISTS_DIRECTORY);
	char *buffer = lists ? malloc(PACKAGE_LIST_SIZE_MAX + 2) : NULL;
	bool found = false;
	struct dirent *entry;
	while (buffer && !found && (entry = readdir(lists))) {
		size_t length = strcspn(entry->d_name, ":");
		const char *suffix = strstr(entry->d_name, ".list");
		if (!suffix || suffix[5] != 0)
			continue;
		if (length > (size_t)(suffix - entry->d_name))
			length = (size_t)(suffix - entry->d_name);
		if (length >= PACKAGE_NAME_SIZE_MAX)
			continue;
		found = package_list_has_path(dirfd(lists), entry->d_name, path, buffer);
		if (found) {
			memcpy(package, entry->d_name, length);
			package[length] = 0;
		}
	}
	free(buffer);
	if (lists)
		closedir(lists);
	return found;
}

static void format_bytes_as_hex(const uint8_t *bytes, size_t size, char *to)
{
	for (size_t i = 0; i < size; i++)
		snprintf(to + 2 * i, 3, "%02x", bytes[i]);
}

static void format_install_advice(const struct symbolizer_request *request, char *text)
{
	char id[2 * ELF_BUILD_ID_SIZE_MAX + 1] = "";
	char package[PACKAGE_NAME_SIZE_MAX];
	if (request->build_id_size <= ELF_BUILD_ID_SIZE_MAX)
		format_bytes_as_hex(request->build_id, request->build_id_size, id);
	int length;
	if (find_owner_package(request->path, package))
		length = snprintf(text, ADVICE_TEXT_SIZE_MAX, "install %s%s for its names", package,
				  strcmp(package, "libc6") == 0 ? "-dbg" : "-dbgsym");
	else
		length = snprintf(text, ADVICE_TEXT_SIZE_MAX,
				  "it is stripped; install its debug symbols or build it with -g");
	if (id[0] && length > 0 && (size_t)length < ADVICE_TEXT_SIZE_MAX)
		snprintf(text + length, ADVICE_TEXT_SIZE_MAX - (size_t)length,
			 " (or fetch them: debuginfod-find debuginfo %s)", id);
}

int symbolizer_set_advice(const struct symbolizer_request *request,
			  struct symbolizer_request_result *result)
{
	char text[ADVICE_TEXT_SIZE_MAX] = "";
	switch (result->status) {
	case SYMBOLIZER_LINES_AND_NAMES:
	case SYMBOLIZER_NAMES_ONLY:
		break;
	case SYMBOLIZER_EXPORTS_ONLY:
	case SYMBOLIZER_NO_SYMBOLS:
		if (result->unresolved_chain_count > 0 && !request->skip_advice &&
		    request->path[0] == '/')
			format_install_advice(request, text);
		break;
	case SYMBOLIZER_NO_FILE:
		snprintf(text, sizeof(text),
			 "the file is gone or unreadable; run kymo report on the machine where the "
			 "program ran, before the file is removed");
		break;
	case SYMBOLIZER_FILE_REPLACED:
		snprintf(text, sizeof(text),
			 "the file was replaced since it ran; its names are known while the "
			 "process that "
			 "ran it lives, or record again");
		break;
	case SYMBOLIZER_BAD_FILE:
		snprintf(text, sizeof(text), "it is not an ELF file that kymo can read");
		break;
	}
	result->advice = NULL;
	if (!text[0])
		return 0;
	if (!result->string_storage)
		result->string_storage = calloc(1, sizeof(struct symbolizer_storage));
	struct symbolizer_storage *storage = result->string_storage;
	if (!storage)
		return -ENOMEM;
	storage->advice = strdup(text);
	result->advice = storage->advice;
	return storage->advice ? 0 : -ENOMEM;
}

const char *symbolizer_status_get_name(enum symbolizer_status_kind status)
{
	static const char *const names[] = {
		[SYMBOLIZER_LINES_AND_NAMES] = "full", [SYMBOLIZER_NAMES_ONLY] = "names",
		[SYMBOLIZER_EXPORTS_ONLY] = "exports", [SYMBOLIZER_NO_SYMBOLS] = "no_symbols",
		[SYMBOLIZER_NO_FILE] = "no_file",      [SYMBOLIZER_FILE_REPLACED] = "replaced",
		[SYMBOLIZER_BAD_FILE] = "bad_file",
	};
	return (size_t)status < ARRAY_SIZE(names) ? names[status] : "unknown";
}
