/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The dynamic symbols of an object in memory, found by name as the loader finds them (ELF gABI,
 * chapter 5, "Hash Table"; DT_GNU_HASH as binutils and glibc have it).
 */
#ifndef KYMO_COMMON_SYMBOL_HASH_H
#define KYMO_COMMON_SYMBOL_HASH_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct symbol_hash_tables {
	const Elf64_Sym *symbols;
	const char *strings;
	const Elf64_Half *versions; /* one a symbol; NULL: the object has no versions */
	const uint32_t *gnu_hash, *sysv_hash;
};

enum symbol_hash_symbol_kind {
	SYMBOL_HASH_FUNCTIONS,          /* and what has no type */
	SYMBOL_HASH_FUNCTIONS_AND_DATA, /* functions and data */
	SYMBOL_HASH_THREAD_DATA,
};

/* The tables that the dynamic section of an object in memory names; the second takes what
 * dl_iterate_phdr(3) says. False: it has none. */
bool symbol_hash_read_dynamic_section(struct symbol_hash_tables *ret, uint64_t base,
				      const Elf64_Dyn *entry);
bool symbol_hash_read_object(struct symbol_hash_tables *ret, const struct dl_phdr_info *info);

uint32_t symbol_hash_compute_gnu_hash(const char *name);

/* The definition that a look-up by this name finds in the object (the default version), or NULL. */
const Elf64_Sym *symbol_hash_find_symbol(const struct symbol_hash_tables *object,
					 enum symbol_hash_symbol_kind kind, const char *name,
					 uint32_t hash);

#endif
