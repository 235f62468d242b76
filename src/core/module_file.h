/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What one ELF file contributes to all its mappings: build-id and unwind table. Kept
 * for the life of the process, so that a library opened and closed a thousand times is read once.
 */
#ifndef KYMO_CORE_MODULE_FILE_H
#define KYMO_CORE_MODULE_FILE_H

#include "core/maps.h"
#include "core/modules.h"

struct module_file {
	uint64_t device, inode, size;
	int64_t changed_seconds, changed_ns;
	uint8_t build_id[MODULE_BUILD_ID_MAX];
	uint32_t build_id_size;
	const struct unwind_table *table;
	size_t table_size;
};

/* The file behind a mapping; NULL when it is no ELF file that can be read. Background thread only.
 */
const struct module_file *module_file_get(const struct maps_line *line,
					  const char *cache_directory);

#endif
