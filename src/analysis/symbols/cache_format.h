/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Layout of a cache file of the symbolizer: header, chains in ascending order of offset, frames,
 * strings. Integers as this machine has them; a cache never leaves it.
 */
#ifndef KYMO_ANALYSIS_SYMBOLS_CACHE_FORMAT_H
#define KYMO_ANALYSIS_SYMBOLS_CACHE_FORMAT_H

#include <limits.h>
#include <stdint.h>

#include "analysis/symbols/cache.h"
#include "binary/elf.h"

#define CACHE_FILE_MAGIC    "KYMOSYM"
#define CACHE_FILE_VERSION  2u
#define CACHE_FILE_SIZE_MAX (512u << 20)
#define CACHE_FILE_SUFFIX   ".sym"

struct cache_file_header {
	char magic[8];
	uint32_t version;
	uint32_t checksum; /* CRC-32 of all bytes, with 0 here */
	uint64_t source_files_hash;
	uint8_t build_id[ELF_BUILD_ID_SIZE_MAX];
	uint32_t build_id_size;
	uint32_t status;
	uint32_t function_count;
	uint32_t reserved;
	uint64_t chain_count, frame_count, strings_size;
};

struct cache_file_frame_chain_entry {
	uint64_t offset, vaddr;
	uint32_t first, count;
};

/* Strings by their offset; 0 is the empty string and stands for NULL. */
struct cache_file_frame {
	uint32_t function, linkage_name, file;
	uint32_t line, function_line;
	uint32_t function_id; /* bit 31: inlined */
};

#define CACHE_FRAME_INLINED_BIT 0x80000000u

/* The checksum's beginning: of the header; the rest of the file follows. */
uint32_t cache_file_compute_header_checksum(const struct cache_file_header *header);

/* The module's file in the cache, whose directory is made; -ENOENT: there is no place for it. */
int symbolizer_cache_make_path(const struct symbolizer_cache_key *key, char path[PATH_MAX]);

#endif
