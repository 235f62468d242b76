/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A loaded object as its dynamic section describes it (ELF gABI, chapter 5; the GNU additions:
 * LSB, "Symbol Versioning"; DT_GNU_HASH as binutils and glibc have it). Reads memory of the object,
 * so it is used only while the object cannot go away: inside dl_iterate_phdr.
 */
#ifndef KYMO_WRAPPERS_GOT_OBJECT_H
#define KYMO_WRAPPERS_GOT_OBJECT_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct got_object {
	const char *name; /* path; empty for the program */
	uint64_t base, dynamic_section_address;
	const Elf64_Sym *symbols;
	const char *strings;
	const Elf64_Half *symbol_versions; /* one a symbol; NULL: the object has no versions */
	const uint8_t *version_needs, *version_definitions;
	const uint32_t *gnu_hash_table, *sysv_hash_table;
	const Elf64_Rela *plt_relocations, *relocations;
	size_t plt_relocation_count, relocation_count, relative_relocation_count;
	uint64_t low, high;             /* of what is loaded */
	uint64_t relro_low, relro_high; /* read-only once the loader is done with the object */
	const Elf64_Phdr *program_headers;
	size_t program_header_count;
	bool is_symbolic;     /* its own definitions come first */
	bool has_rpath;       /* DT_RPATH, which objects that it loads inherit */
	bool has_search_path; /* either of DT_RPATH and DT_RUNPATH */
};

/* False for objects without a dynamic symbol table. */
bool got_object_read(struct got_object *ret, const struct dl_phdr_info *info);

/* The last component of the object's path. */
const char *got_object_get_file_name(const struct got_object *object);
/* Is a file of this name part of libc, or its loader? */
bool got_file_is_libc_or_loader(const char *file);
bool got_file_is_libc(const char *file);
bool got_file_name_has_any_prefix(const char *file, const char *const *prefixes, size_t count);

uint32_t got_hash_name(const char *name);

/* Most undefined symbols stand below this index; linkers leave it at 1 in objects that define none.
 */
size_t got_object_get_first_defined_index(const struct got_object *object);

/* The definition that a look-up by this name finds in the object (the default version), or NULL. */
const Elf64_Sym *got_object_find_definition(const struct got_object *object, const char *name,
					    uint32_t hash);

/* Version that symbol `index` has in the object (of a definition) or wants (of a reference); NULL:
 * none. */
const char *got_object_get_symbol_version(const struct got_object *object, size_t index);

/* May the program write here, once the loader is done? Read-only relocated data counts. */
bool got_object_is_writable_at(const struct got_object *object, uint64_t address);

#endif
