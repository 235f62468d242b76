/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What dwarf.c (units and lines) and dwarf_scopes.c (functions and inlined calls) share. libdw is
 * included by these two files only.
 */
#ifndef KYMO_BINARY_DWARF_INTERNAL_H
#define KYMO_BINARY_DWARF_INTERNAL_H

#include <elfutils/libdw.h>

#include "binary/dwarf.h"

/* Function by the address (in libdw's memory) of the DIE that names it; open addressing. */
struct dwarf_function_slot {
	const void *die;
	uint32_t function;
};

struct dwarf_reader {
	const uint64_t *addresses;
	size_t count;
	struct string_pool *pool;
	struct dwarf_result result;
	size_t scope_capacity, function_capacity;
	struct dwarf_function_slot *slots;
	size_t slot_capacity; /* power of two */
};

/* One compilation unit that holds wanted addresses. */
struct dwarf_unit {
	Dwarf_Die *root;
	Dwarf_Files *files; /* NULL: none */
	size_t file_count;
	const char **file_names; /* interned on first use; file_count entries, or NULL */
	bool functions_nest;     /* the language has functions inside functions */
	bool types_hold_code;    /* functions are defined inside the DIEs of types */
};

/* Index of the first wanted address that is not below `address`. */
size_t dwarf_first_address(const struct dwarf_reader *reader, uint64_t address);
/* Interned path of a file of the unit, or NULL. -ENOMEM through *error. */
const char *dwarf_file_name(struct dwarf_reader *reader, struct dwarf_unit *unit, size_t index,
			    int *error);
/* Notes the innermost scope of every wanted address of the unit. */
int dwarf_read_scopes(struct dwarf_reader *reader, struct dwarf_unit *unit);

#endif
