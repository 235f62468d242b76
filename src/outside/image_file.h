/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What one ELF file contributes to the mappings of all processes: build-id, unwind table, and the
 * bytes of its code. A file is opened through the process that maps it, so that those of other
 * mount namespaces, and deleted ones, are found.
 */
#ifndef KYMO_OUTSIDE_IMAGE_FILE_H
#define KYMO_OUTSIDE_IMAGE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/unwind/unwind.h"

#define OUTSIDE_BUILD_ID_MAX 32

struct outside_image {
	struct outside_image *next;
	uint64_t device, inode, size;
	int64_t change_ns;
	uint8_t build_id[OUTSIDE_BUILD_ID_MAX];
	uint32_t build_id_size;
	bool is_go;                       /* compiled by Go */
	const struct unwind_table *table; /* NULL: it has no unwind information */
	size_t table_size;
	int file;          /* -1: not kept open */
	bool is_elsewhere; /* its path leads kymo to another file, or to none: another root */
};

/* A mapping as the kernel reports it. */
struct outside_mapping {
	uint64_t start, end, offset, device, inode;
	const char *path;
};

struct outside_images {
	struct outside_image *list;
	const char *cache_directory; /* of unwind tables, or NULL */
	uint32_t open_files;
};

/* The file behind a mapping of a process; NULL when it is no ELF file that can be read. */
const struct outside_image *outside_images_find(struct outside_images *images, pid_t pid,
						const struct outside_mapping *mapping);
void outside_images_deinit(struct outside_images *images);

#endif
