/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See process.h.
 */
#include "inject/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAPS_FILE_BYTES_MAX (256u << 20)

ssize_t process_read_proc_file(const char *path, char *buffer, size_t size)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	size_t length = 0;
	ssize_t count = 0;

	buffer[0] = '\0';
	if (file < 0)
		return -errno;
	while (length + 1 < size && (count = read(file, buffer + length, size - length - 1)) > 0)
		length += (size_t)count;
	if (count < 0)
		count = -errno;
	close(file);
	buffer[length] = '\0';
	return count < 0 ? count : (ssize_t)length;
}

bool process_read_status_field(const char *status, const char *field, char *ret, size_t size)
{
	size_t length = strlen(field);

	for (const char *line = status; line && *line;
	     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		if (strncmp(line, field, length) || line[length] != ':')
			continue;
		line += length + 1;
		line += strspn(line, " \t");
		snprintf(ret, size, "%.*s", (int)strcspn(line, "\n"), line);
		return true;
	}
	ret[0] = '\0';
	return false;
}

/* ---- mappings ---- */

static char *read_whole_file(const char *path, int *ret_error)
{
	size_t size = 64u << 10;
	char *text = NULL;

	for (;; size *= 2) {
		char *larger = size <= MAPS_FILE_BYTES_MAX ? realloc(text, size) : NULL;
		ssize_t length;

		if (!larger) {
			free(text);
			*ret_error = -ENOMEM;
			return NULL;
		}
		text = larger;
		length = process_read_proc_file(path, text, size);
		if (length < 0) {
			free(text);
			*ret_error = (int)length;
			return NULL;
		}
		if ((size_t)length + 1 < size)
			return text;
	}
}

/* "start-end perms offset major:minor inode   path", terminated. */
static bool parse_maps_line(char *line, struct process_mapping *ret)
{
	unsigned major, minor;
	char permissions[5];
	int at = 0;

	*ret = (struct process_mapping){0};
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n",
		   &ret->start, &ret->end, permissions, &ret->offset, &major, &minor, &ret->inode,
		   &at) < 7)
		return false;
	ret->device = makedev(major, minor);
	ret->executable = permissions[2] == 'x';
	ret->path = line + at;
	return true;
}

int process_maps_read(pid_t pid, struct process_maps *ret)
{
	size_t capacity = 0;
	char path[64], *line, *next;
	int error = 0;

	memset(ret, 0, sizeof(*ret));
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	ret->text = read_whole_file(path, &error);
	if (!ret->text)
		return error;
	for (line = ret->text; *line; line = next) {
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		if (ret->count == capacity) {
			struct process_mapping *larger;

			capacity = capacity ? capacity * 2 : 256;
			larger = realloc(ret->list, capacity * sizeof(*larger));
			if (!larger) {
				process_maps_free(ret);
				return -ENOMEM;
			}
			ret->list = larger;
		}
		if (parse_maps_line(line, &ret->list[ret->count]))
			ret->count++;
	}
	return 0;
}

void process_maps_free(struct process_maps *maps)
{
	free(maps->list);
	free(maps->text);
	memset(maps, 0, sizeof(*maps));
}

const struct process_mapping *process_maps_find_by_address(const struct process_maps *maps,
							   uint64_t address)
{
	size_t low = 0, high = maps->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (maps->list[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < maps->count && maps->list[low].start <= address ? &maps->list[low] : NULL;
}

/* A file can be mapped more than once: the first bytes that count are the nearest below. */
const struct process_mapping *
process_maps_find_start_of_file_below(const struct process_maps *maps,
				      const struct process_mapping *part)
{
	for (const struct process_mapping *at = part; at >= maps->list; at--) {
		if (at->inode == part->inode && at->device == part->device && at->offset == 0)
			return at;
	}
	return NULL;
}

const char *process_path_to_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool base_name_begins_with(const char *path, const char *prefix)
{
	return path[0] == '/' && !strncmp(process_path_to_base_name(path), prefix, strlen(prefix));
}

bool process_path_is_loader(const char *path)
{
	return base_name_begins_with(path, "ld-linux") || base_name_begins_with(path, "ld-2.") ||
	       base_name_begins_with(path, "ld.so");
}

bool process_path_is_libc(const char *path)
{
	return base_name_begins_with(path, "libc.so.6") || base_name_begins_with(path, "libc-2.");
}

/* ---- memory ---- */

bool process_read_memory_by_vm_readv(pid_t pid, int memory, uint64_t address, void *buffer,
				     size_t size)
{
	struct iovec here = {buffer, size}, there = {(void *)(uintptr_t)address, size};

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)size ||
	       process_read_memory(memory, address, buffer, size);
}

bool process_read_memory(int memory, uint64_t address, void *buffer, size_t size)
{
	return pread(memory, buffer, size, (off_t)address) == (ssize_t)size;
}

bool process_write_memory(int memory, uint64_t address, const void *buffer, size_t size)
{
	return pwrite(memory, buffer, size, (off_t)address) == (ssize_t)size;
}
