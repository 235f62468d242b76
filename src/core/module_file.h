/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What one ELF file contributes to all its mappings: build-id, unwind table, and what
 * finds the interpreter in it. Kept
 * for the life of the process, so that a library opened and closed a thousand times is read once.
 */
#ifndef KYMO_CORE_MODULE_FILE_H
#define KYMO_CORE_MODULE_FILE_H

#include "core/interpreters/interpreters.h"
#include "core/modules.h"
#include "core/process/maps.h"

struct module_file {
	uint64_t device, inode, size;
	int64_t change_time_seconds, change_time_subsecond_ns;
	uint8_t build_id[MODULE_BUILD_ID_MAX];
	uint32_t build_id_size;
	const struct unwind_table *table;
	size_t unwind_table_bytes;
	struct interpreter_file interpreter; /* kind NULL: it contains none */
};

/* The file behind a mapping; NULL when it is no ELF file that can be read. Background thread only.
 */
const struct module_file *module_file_find_or_add(const struct maps_line *line,
						  const char *cache_directory);

#endif
