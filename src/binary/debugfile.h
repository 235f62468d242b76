/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where the debug information of a stripped file is: in a file of its own, found as GDB finds it.
 *
 * Order: the build-id directory, the name in .gnu_debuglink, then what debuginfod-find has already
 * fetched. Nothing is fetched from here: no network.
 */
#ifndef KYMO_BINARY_DEBUGFILE_H
#define KYMO_BINARY_DEBUGFILE_H

#include "binary/elf.h"

#define DEBUGFILE_DEFAULT_DIRECTORY "/usr/lib/debug"

/* Finds the separate debug file of `file` over the directories in `debug_path` (colon-separated;
 * NULL: the default). It must carry the same build-id, or, without one, the checksum that the link
 * asks for. The caller closes *ret. -ENOENT: none; -ENOMEM. */
int debugfile_find(const struct elf_file *file, const char *debug_path, struct elf_file **ret);
/* The same for the file that dwz shares among debug files (.gnu_debugaltlink of `file`). */
int debugfile_find_dwz_shared(const struct elf_file *file, const char *debug_path,
			      struct elf_file **ret);

#endif
