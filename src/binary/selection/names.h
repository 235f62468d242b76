/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * All names of the functions of a file with linkage and visibility, for rules and lists: unlike
 * binary/symbols/symbols.h, which keeps one name an address. Read from the symbol tables of the
 * file, of its separate debug file, and of .gnu_debugdata.
 */
#ifndef KYMO_BINARY_SELECTION_NAMES_H
#define KYMO_BINARY_SELECTION_NAMES_H

#include "binary/elf.h"

enum selection_linkage {
	LINKAGE_NONE, /* no symbol */
	LINKAGE_GLOBAL,
	LINKAGE_WEAK,
	LINKAGE_LOCAL,
	LINKAGE_UNIQUE
};

enum selection_visibility {
	VISIBILITY_NONE,
	VISIBILITY_DEFAULT,
	VISIBILITY_INTERNAL,
	VISIBILITY_HIDDEN,
	VISIBILITY_PROTECTED
};

struct selection_symbol_name {
	uint64_t vaddr;
	const char *mangled; /* owned by the table, without version */
	uint8_t linkage, visibility;
	uint8_t rank; /* the lowest one is the name that a person would use */
};

struct selection_symbol_names;

/* `debug_path` as for debugfile_find(). -ENOMEM; damaged tables are skipped. */
int selection_symbol_names_load(const struct elf_file *file, const char *debug_path,
				struct selection_symbol_names **ret);
void selection_symbol_names_destroy(struct selection_symbol_names *names);
/* The names of the function that begins there, the best one first; *ret_count may be 0. `names` may
 * be NULL: nothing has a name. */
const struct selection_symbol_name *
selection_symbol_names_find_at(const struct selection_symbol_names *names, uint64_t vaddr,
			       size_t *ret_count);

/* All of them, by address; NULL behind the last one. */
const struct selection_symbol_name *
selection_symbol_names_get_nth(const struct selection_symbol_names *names, size_t index);

/* "foo::bar" of "foo::bar(int) const"; malloc'ed; NULL: out of memory. */
char *selection_copy_plain_name(const char *demangled);
/* The name's part of a plain name: instances of templates have their return type in front of it. */
const char *selection_skip_return_type(const char *plain);
const char *selection_linkage_to_word(unsigned linkage);
const char *selection_visibility_to_word(unsigned visibility);

#endif
