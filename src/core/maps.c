/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See maps.h.
 */
#include "core/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>

#include "common/syscalls.h"

static bool take_number(char **at, unsigned base, uint64_t *ret)
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

static bool take_character(char **at, char c)
{
	if (**at != c)
		return false;
	++*at;
	return true;
}

/* "start-end perms offset major:minor inode   path" */
static bool parse(char *at, struct maps_line *line)
{
	uint64_t major, minor;

	if (!take_number(&at, 16, &line->start) || !take_character(&at, '-') ||
	    !take_number(&at, 16, &line->end) || !take_character(&at, ' '))
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
	if (!take_character(&at, ' ') || !take_number(&at, 16, &line->offset) ||
	    !take_character(&at, ' ') || !take_number(&at, 16, &major) ||
	    !take_character(&at, ':') || !take_number(&at, 16, &minor) ||
	    !take_character(&at, ' ') || !take_number(&at, 10, &line->inode))
		return false;
	line->device = major << 20 | minor;
	while (*at == ' ')
		at++;
	line->path = at;
	return true;
}

bool maps_next(char **text, struct maps_line *ret)
{
	while (**text) {
		char *line = *text, *end = line;
		while (*end && *end != '\n')
			end++;
		*text = *end ? end + 1 : end;
		*end = 0;
		if (parse(line, ret))
			return true;
	}
	return false;
}

static long read_all(int fd, char *buffer, uint64_t size)
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

void maps_free(char **memory, uint64_t size)
{
	char *old = *memory;

	*memory = NULL;
	__asm__ volatile("" : : : "memory");
	if (old)
		sys_munmap(old, size);
}

long maps_read(const char *path, char **buffer, uint64_t *size)
{
	for (;;) {
		long length = 0, fd;
		void *fresh;
		if (*buffer) {
			fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
			if (fd < 0)
				return fd;
			length = read_all((int)fd, *buffer, *size);
			sys_close((int)fd);
			if (length < 0 || (uint64_t)length + 1 < *size)
				return length;
			maps_free(buffer, *size);
		}
		*size = *size ? *size * 2 : 64u << 10;
		fresh = sys_mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				 -1, 0);
		*buffer = sys_failed(fresh) ? NULL : fresh;
		if (!*buffer)
			return -ENOMEM;
	}
}
