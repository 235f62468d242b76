/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Layout of a cache file of the symbolizer: header, chains in ascending order of offset, frames,
 * strings. Integers as this machine has them; a cache never leaves it.
 */
#ifndef KYMO_ANALYSIS_SYMBOLIZE_CACHE_FORMAT_H
#define KYMO_ANALYSIS_SYMBOLIZE_CACHE_FORMAT_H

#include <limits.h>
#include <stdint.h>

#include "analysis/symbolize_cache.h"
#include "binary/elf.h"

#define CACHE_MAGIC    "KYMOSYM"
#define CACHE_VERSION  1u
#define CACHE_SIZE_MAX (512u << 20)
#define CACHE_SUFFIX   ".sym"

struct cache_header {
	char magic[8];
	uint32_t version;
	uint32_t checksum; /* CRC-32 of what follows the header */
	uint64_t stamp;
	uint8_t build_id[ELF_BUILD_ID_SIZE_MAX];
	uint32_t build_id_size;
	uint32_t status;
	uint32_t function_count;
	uint32_t reserved;
	uint64_t chain_count, frame_count, string_size;
};

struct cache_chain {
	uint64_t offset, vaddr;
	uint32_t first, count;
};

/* Strings by their offset; 0 is the empty string and stands for NULL. */
struct cache_frame {
	uint32_t function, linkage_name, file;
	uint32_t line, function_line;
	uint32_t function_id; /* bit 31: inlined */
};

#define FRAME_INLINED 0x80000000u

/* The module's file in the cache; -ENOENT: there is no place for it. */
int symbolize_cache_path(const struct symbolize_cache_key *key, char path[PATH_MAX]);

#endif
