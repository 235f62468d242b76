/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Lines of /proc/PID/maps (proc(5)), parsed in place without libc. No state.
 */
#ifndef KYMO_CORE_MAPS_H
#define KYMO_CORE_MAPS_H

#include <stdbool.h>
#include <stdint.h>

struct maps_line {
	uint64_t start, end, offset, device, inode;
	bool readable, writable, executable, shared;
	char *path; /* terminated in place; empty for anonymous memory */
};

/* Takes one line off *text (terminated, writable); false at the end. Malformed lines are skipped.
 */
bool maps_next(char **text, struct maps_line *ret);
/* Reads the whole file into a buffer that grows by mmap; returns its length or negative errno. */
long maps_read(const char *path, char **buffer, uint64_t *size);
/* Forgets memory and then gives it back, so that a child that another thread forks meanwhile does
 * not give back what has come to lie there. */
void maps_free(char **memory, uint64_t size);

#endif
