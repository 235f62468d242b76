/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See maps.h.
 */
#include "core/process/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/syscalls.h"

#define PIECE_BYTES 8192u /* more than a line, whose path has 4096 bytes */

static bool parse_number(char **at, unsigned base, uint64_t *ret)
{
	uint64_t value = 0;
	char *start = *at;

	for (;; ++*at) {
		unsigned char c = (unsigned char)**at;
		unsigned digit = c >= '0' && c <= '9'   ? c - (unsigned)'0'
				 : c >= 'a' && c <= 'f' ? c - 'a' + 10u
							: 99u;
		if (digit >= base)
			break;
		value = value * base + digit;
	}
	*ret = value;
	return *at != start;
}

static bool skip_expected_character(char **at, char c)
{
	if (**at != c)
		return false;
	++*at;
	return true;
}

/* "start-end perms offset major:minor inode   path" */
static bool parse_maps_line(char *at, struct maps_line *line)
{
	uint64_t major, minor;

	if (!parse_number(&at, 16, &line->start) || !skip_expected_character(&at, '-') ||
	    !parse_number(&at, 16, &line->end) || !skip_expected_character(&at, ' '))
		return false;
	for (int i = 0; i < 4; i++) {
		if (!at[i])
			return false;
	}
	line->readable = at[0] == 'r';
	line->writable = at[1] == 'w';
	line->executable = at[2] == 'x';
	line->shared = at[3] == 's';
	at += 4;
	if (!skip_expected_character(&at, ' ') || !parse_number(&at, 16, &line->offset) ||
	    !skip_expected_character(&at, ' ') || !parse_number(&at, 16, &major) ||
	    !skip_expected_character(&at, ':') || !parse_number(&at, 16, &minor) ||
	    !skip_expected_character(&at, ' ') || !parse_number(&at, 10, &line->inode))
		return false;
	line->device = major << 20 | minor;
	while (*at == ' ')
		at++;
	line->path = at;
	return true;
}

bool maps_parse_next_line(char **text, struct maps_line *ret)
{
	while (**text) {
		char *line = *text, *end = line;
		while (*end && *end != '\n')
			end++;
		*text = *end ? end + 1 : end;
		*end = 0;
		if (parse_maps_line(line, ret))
			return true;
	}
	return false;
}

static long read_whole_file(int fd, char *buffer, uint64_t size)
{
	uint64_t length = 0;

	while (length + 1 < size) {
		long count = sys_read(fd, buffer + length, size - length - 1);
		if (count == -EINTR)
			continue;
		if (count < 0)
			return count;
		if (count == 0)
			break;
		length += (uint64_t)count;
	}
	buffer[length] = 0;
	return (long)length;
}

void maps_free_buffer(char **memory, uint64_t size)
{
	char *old = *memory;

	*memory = NULL;
	__asm__ volatile("" : : : "memory");
	if (old)
		sys_munmap(old, size);
}

static void copy_path(char *path, uint32_t size, const char *from)
{
	uint32_t length = 0;

	while (from[length] && length + 1 < size) {
		path[length] = from[length];
		length++;
	}
	path[length] = 0;
}

/* Whole lines of the text; what is left of the last one moves to the front. True: it is found. */
static bool find_line_in_piece(char *text, uint64_t *length, uint64_t address,
			       struct maps_line *ret)
{
	char *at = text, *end = text + *length;
	uint64_t rest = 0;

	while (rest < *length && end[-1 - (long)rest] != '\n')
		rest++;
	end -= rest;
	if (end == text)
		return false;
	end[-1] = 0;
	while (maps_parse_next_line(&at, ret)) {
		if (ret->end > address)
			return true;
	}
	for (uint64_t i = 0; i < rest; i++)
		text[i] = end[i];
	*length = rest;
	return false;
}

int maps_read_up_to_address(int fd, uint64_t address, char *path, uint32_t size,
			    struct maps_line *ret)
{
	char *text = sys_mmap(NULL, PIECE_BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t length = 0;
	bool found = false;
	long count;

	if (sys_mmap_failed(text))
		return -ENOMEM;
	count = sys_call3(SYS_lseek, fd, 0, SEEK_SET);
	while (count >= 0 && !found && length < PIECE_BYTES) {
		count = sys_read(fd, text + length, PIECE_BYTES - length);
		if (count == -EINTR) {
			count = 0;
			continue;
		}
		if (count <= 0)
			break;
		length += (uint64_t)count;
		found = find_line_in_piece(text, &length, address, ret);
	}
	if (found) {
		if (path)
			copy_path(path, size, ret->path);
		ret->path = path;
	}
	sys_munmap(text, PIECE_BYTES);
	return found ? 0 : count < 0 ? (int)count : -ENOENT;
}

/* linux/fs.h of Linux 6.11; not in the headers of older ones. */
#define MAPPING_QUERY_COVERING_OR_NEXT 0x10u
#define MAPPING_QUERY_READABLE         0x1u
#define MAPPING_QUERY_WRITABLE         0x2u
#define MAPPING_QUERY_EXECUTABLE       0x4u
#define MAPPING_QUERY_SHARED           0x8u

struct mapping_query {
	uint64_t size, wanted, address;
	uint64_t start, end, flags, page_size, offset, inode;
	uint32_t device_major, device_minor, name_size, build_id_size;
	uint64_t name, build_id;
};

#define MAPPING_QUERY_IOCTL _IOWR('f', 17, struct mapping_query)

int maps_query_address(int fd, uint64_t address, char *path, uint32_t size, struct maps_line *ret)
{
	struct mapping_query mapping_query = {.size = sizeof(mapping_query),
					      .wanted = MAPPING_QUERY_COVERING_OR_NEXT,
					      .address = address,
					      .name_size = path ? size : 0,
					      .name = (uint64_t)(uintptr_t)path};
	long error = sys_call3(SYS_ioctl, fd, (long)MAPPING_QUERY_IOCTL, (long)&mapping_query);

	if (error == -ENOTTY || error == -EINVAL)
		return maps_read_up_to_address(fd, address, path, size, ret);
	if (error)
		return (int)error;
	if (path && !mapping_query.name_size)
		path[0] = 0;
	*ret = (struct maps_line){
		.start = mapping_query.start,
		.end = mapping_query.end,
		.offset = mapping_query.offset,
		.device = (uint64_t)mapping_query.device_major << 20 | mapping_query.device_minor,
		.inode = mapping_query.inode,
		.readable = (mapping_query.flags & MAPPING_QUERY_READABLE) != 0,
		.writable = (mapping_query.flags & MAPPING_QUERY_WRITABLE) != 0,
		.executable = (mapping_query.flags & MAPPING_QUERY_EXECUTABLE) != 0,
		.shared = (mapping_query.flags & MAPPING_QUERY_SHARED) != 0,
		.path = path};
	return 0;
}

long maps_read_whole_file(const char *path, char **buffer, uint64_t *size)
{
	for (;;) {
		long length = 0, fd;
		void *fresh;
		if (*buffer) {
			fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
			if (fd < 0)
				return fd;
			length = read_whole_file((int)fd, *buffer, *size);
			sys_close((int)fd);
			if (length < 0 || (uint64_t)length + 1 < *size)
				return length;
			maps_free_buffer(buffer, *size);
		}
		*size = *size ? *size * 2 : 64u << 10;
		/* The size before the buffer: a fork may come between. */
		__asm__ volatile("" : : : "memory");
		fresh = sys_mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				 -1, 0);
		*buffer = sys_mmap_failed(fresh) ? NULL : fresh;
		if (!*buffer)
			return -ENOMEM;
	}
}
