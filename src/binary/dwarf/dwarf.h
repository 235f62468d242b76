/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Source lines and inlined functions for many addresses of one file at once.
 *
 * Debug information is made to be read from front to back, and a profile has thousands of
 * addresses: so sort the addresses, read each compilation unit that holds any of them once, and
 * note for each address the innermost scope while passing by. Asking for one address after the
 * other (libdwfl, dwarf_getscopes) costs milliseconds each; this costs less than a second for
 * 100,000.
 *
 * The result refers to scopes, which form trees by `parent`: an inlined call inside an inlined call
 * inside a function. Lines: of the innermost scope `places[i].line`; of each scope around it the
 * line of the call, which stands in the inner scope.
 */
#ifndef KYMO_BINARY_DWARF_DWARF_H
#define KYMO_BINARY_DWARF_DWARF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "binary/elf.h"
#include "binary/string_pool.h"

#define DWARF_SCOPE_NONE UINT32_MAX

struct dwarf_function {
	const char *name;         /* as in the source, unqualified; NULL: none */
	const char *linkage_name; /* mangled; NULL: none */
	uint32_t line;            /* of its declaration or definition; 0: unknown */
};

struct dwarf_function_scope {
	uint32_t
		parent; /* scope that this one is inlined into; DWARF_SCOPE_NONE: a real function */
	uint32_t function;     /* index into functions */
	const char *call_file; /* where the call is that was inlined; NULL: unknown */
	uint32_t call_line;
};

struct dwarf_source_location {
	const char *file; /* NULL: unknown */
	uint32_t line;    /* 0: unknown, or made by the compiler */
	uint32_t scope;   /* innermost; DWARF_SCOPE_NONE: no function here */
};

struct dwarf_lookup_result_lists {
	struct dwarf_source_location *places; /* one for each address */
	struct dwarf_function_scope *scopes;
	struct dwarf_function *functions;
	uint32_t scope_count, function_count;
};

/* Does the file have debug information of its own (not moved to a separate file)? */
bool dwarf_file_has_debug_info(const struct elf_file *file);

/* Looks up `count` link-time addresses, ascending, without duplicates. `shared` is the file that
 * dwz moved common parts to, or NULL. Strings are put into `pool`. -ENODATA: no debug information
 * that libdw can read; -ENOMEM. The caller frees *ret with dwarf_lookup_result_lists_deinit. */
int dwarf_lookup_addresses(const struct elf_file *file, const struct elf_file *shared,
			   const uint64_t *addresses, size_t count, struct string_pool *pool,
			   struct dwarf_lookup_result_lists *ret);
void dwarf_lookup_result_lists_deinit(struct dwarf_lookup_result_lists *result);

#endif
