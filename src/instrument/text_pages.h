/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The code of a module in this process: written to where no thread executes it.
 */
#ifndef KYMO_INSTRUMENT_TEXT_PAGES_H
#define KYMO_INSTRUMENT_TEXT_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "instrument/arena.h"

/* Writes the patches of all functions whose mode is not OFF. Places whose bytes are not what the
 * plan says are left alone and counted. 0 or negative errno: nothing was changed. */
int text_pages_write_patches(const struct arena *arena);
/* Puts the original bytes back. */
int text_pages_restore_original(const struct arena *arena);
/* The file that is mapped at an address: its path, and its device and inode as /proc/self/maps has
 * them. */
bool text_pages_find_mapped_file(uint64_t address, char *path, size_t size, uint64_t *device,
				 uint64_t *inode);

#endif
