/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The file that a process says it has mapped, as kymo can open it. A process is believed in
 * nothing: it must be the same device and inode, or the same build-id.
 */
#ifndef KYMO_LAUNCH_MAPPED_FILE_H
#define KYMO_LAUNCH_MAPPED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct mapped_file {
	uint32_t pid;
	uint64_t device, inode; /* as /proc/PID/maps has them */
	const char *path;
	const uint8_t *build_id;
	size_t build_id_size; /* 0: has none */
};

/* Puts the path into `ret`: the process's own, or in its root directory. False: it is another file
 * by now. */
bool mapped_file_find_reachable_path(const struct mapped_file *file, char *ret, size_t size,
				     struct stat *status);
/* Is it the program that the process runs? */
bool mapped_file_is_program(uint32_t pid, const struct stat *status);

#endif
