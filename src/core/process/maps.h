/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Lines of /proc/PID/maps (proc(5)), parsed in place without libc. No state.
 */
#ifndef KYMO_CORE_PROCESS_MAPS_H
#define KYMO_CORE_PROCESS_MAPS_H

#include <stdbool.h>
#include <stdint.h>

struct maps_line {
	uint64_t start, end, offset, device, inode;
	bool readable, writable, executable, shared;
	char *path; /* terminated in place; empty for anonymous memory */
};

/* Takes one line off *text (terminated, writable); false at the end. Malformed lines are skipped.
 */
bool maps_parse_next_line(char **text, struct maps_line *ret);
/* Reads the whole file into a buffer that grows by mmap; returns its length or negative errno. */
long maps_read_whole_file(const char *path, char **buffer, uint64_t *size);
/* The mapping that holds an address, or else the next one above it, from the open maps file of a
 * process: without a look at those before it (PROCMAP_QUERY, Linux 6.11), else without one at those
 * behind it. The path goes to a buffer of `size` bytes; NULL: it is not wanted. 0, or negative
 * errno: -ENOENT where there is none. */
int maps_query_address(int fd, uint64_t address, char *path, uint32_t size, struct maps_line *ret);
/* The same by reading the file, as far as that mapping. What is mapped last lies lowest, among the
 * first. */
int maps_read_up_to_address(int fd, uint64_t address, char *path, uint32_t size,
			    struct maps_line *ret);
/* Forgets memory and then gives it back, so that a child that another thread forks meanwhile does
 * not give back what has come to lie there. */
void maps_free_buffer(char **memory, uint64_t size);

#endif
