/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Frame sizes of Go's functions. The Go linker leaves no .eh_frame, but a table that its runtime
 * cannot do without, in stripped programs too: .gopclntab, which says for each pc how far the stack
 * pointer is from where it was at the function's start (golang.org/s/go12symtab;
 * runtime/symtab.go). Formats of Go 1.16, 1.18 and 1.20, which are in use up to now.
 */
#ifndef KYMO_CORE_UNWIND_GO_H
#define KYMO_CORE_UNWIND_GO_H

#include <stdbool.h>
#include <stdint.h>

#include "core/unwind/cfi.h"
#include "core/unwind/image.h"

struct unwind_go_table {
	const uint8_t *bytes; /* NULL: there is none */
	uint64_t size;
	uint64_t function_count;
	uint64_t text_address;                /* that addresses in the table count from */
	uint64_t pc_values, functions;        /* positions */
	uint32_t address_size;                /* of addresses in the list of functions */
	uint32_t sp_values_field, flag_field; /* positions in the description of a function */
};

/* False: the image has no such table, or one of a format that is not known. */
bool unwind_go_find_table(const struct unwind_image *image, struct unwind_go_table *ret);
/* Where the n-th function begins and is described; n may be the count: the end of the last one. */
bool unwind_go_get_function(const struct unwind_go_table *table, uint64_t index,
			    uint64_t *ret_address, uint64_t *ret_position);
/* Emits the rows of a function described at a position. False: out of memory. */
bool unwind_go_emit_rows(const struct unwind_go_table *table, uint64_t position, uint64_t begin,
			 uint64_t end, const struct cfi_row_sink *sink);

#endif
