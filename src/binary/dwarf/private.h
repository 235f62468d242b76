/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What dwarf.c (units and lines), scopes.c (functions and inlined calls) and qualify.c
 * (full names) share. libdw is used by these files only.
 */
#ifndef KYMO_BINARY_DWARF_PRIVATE_H
#define KYMO_BINARY_DWARF_PRIVATE_H

#include <elfutils/libdw.h>

#include "binary/dwarf/dwarf.h"
#include "binary/dwarf/lines.h"

/* Function by the address (in libdw's memory) of the DIE that names it; open addressing. */
struct dwarf_function_slot {
	const void *die;
	uint32_t function;
};

/* A function that has no linkage name (static, or a lambda's): its name is only the last part. */
struct dwarf_unqualified_function {
	const void *die; /* that the name was taken from */
	uint32_t function;
};

struct dwarf_reader {
	const uint64_t *addresses;
	size_t count;
	uint32_t *owner_unit_by_address; /* of each address: number of the unit whose ranges hold
					    it, 0: none */
	struct string_pool *string_pool;
	struct dwarf_line_sections sections;
	struct dwarf_lookup_result_lists result;
	size_t scope_capacity, function_capacity;
	struct dwarf_function_slot *slots;
	size_t slot_capacity;                                     /* power of two */
	struct dwarf_unqualified_function *unqualified_functions; /* of the unit being read */
	size_t unqualified_function_count, unqualified_function_capacity;
};

/* One compilation unit that holds wanted addresses. */
struct dwarf_unit {
	uint32_t number;
	struct dwarf_line_table_header lines; /* empty: none */
	Dwarf_Files *split_files; /* that a split unit's calls refer to; NULL: those of `lines` */
	size_t split_file_count;
	bool search_inside_functions; /* look for functions inside functions */
	bool search_inside_types;     /* look for functions inside types */
};

/* Index of the first wanted address that is not below `address`. */
size_t dwarf_find_wanted_address_index(const struct dwarf_reader *reader, uint64_t address);
/* Interned path of a file of the unit, or NULL. -ENOMEM through *error. */
const char *dwarf_unit_get_file_path(struct dwarf_reader *reader, struct dwarf_unit *unit,
				     uint64_t index, int *error);
/* Notes the innermost scope of every wanted address of the unit that has none yet. */
int dwarf_assign_scopes_to_addresses(struct dwarf_reader *reader, struct dwarf_unit *unit,
				     Dwarf_Die *root);
/* Puts namespaces, classes and functions before the names in reader->unqualified. */
int dwarf_qualify_names(struct dwarf_reader *reader, Dwarf_Die *root);

#endif
