/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Symbols that an ELF file exports, found by its own hash table: a few reads a file, and only one
 * for nearly all that have none of them.
 */
#ifndef KYMO_CORE_INTERPRETERS_EXPORTS_H
#define KYMO_CORE_INTERPRETERS_EXPORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORTS_SEGMENTS_MAX 16

struct elf_exports {
	int fd;
	struct {
		uint64_t address, offset, size;
	} segments[EXPORTS_SEGMENTS_MAX];
	uint32_t segment_count;
	bool has_code;
	uint64_t hash_offset, symbols_offset, strings_offset; /* in the file */
	uint64_t code_bias; /* of the first executable segment: address minus offset */
	uint32_t bucket_count, first_symbol, bloom_words, bloom_shift;
};

/* False: no ELF file of this machine, or it exports nothing that can be found. */
bool elf_exports_open(struct elf_exports *exports, int fd);
/* The address as linked and the size of a symbol that is defined in the file. */
bool elf_exports_find(const struct elf_exports *exports, const char *name, uint64_t *ret_address,
		      uint64_t *ret_size);
/* Bytes of the file that are loaded at an address as linked. */
bool elf_exports_read_address(const struct elf_exports *exports, uint64_t address, void *to,
			      size_t size);

#endif
