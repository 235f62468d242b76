/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A file of records that a profiled process keeps in memory and writes: never mapped, because who
 * shortens a mapped file, or a disk that fails, ends the program by SIGBUS. The program may close
 * descriptors that are not its own and open others by the same number, and somebody may put another
 * file in the place of this one: both are found before anything is written.
 *
 * Raw system calls alone, so that tasks without libc can use it. Signal-safe.
 */
#ifndef KYMO_COMMON_OWN_FILE_H
#define KYMO_COMMON_OWN_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct own_file {
	char path[PATH_MAX];
	uint64_t device, inode; /* what is written to must be it */
};

/* Notes which file was made by the descriptor at `path`, which the caller filled in. */
void own_file_identify(struct own_file *file, int descriptor);
/* The file's size, or -ESTALE: the descriptor is another file's (or nobody's). */
int64_t own_file_get_size(const struct own_file *file, int descriptor);
/* Opens it again: a descriptor, -ESTALE where another file has its name, or a negative errno. */
int own_file_reopen(const struct own_file *file);
/* Bytes written from the first on; fewer than `size` where the disk is full or the limit of file
 * sizes is reached, without the signal of that. */
size_t own_file_write(int descriptor, const void *bytes, size_t size, uint64_t offset);

#endif
