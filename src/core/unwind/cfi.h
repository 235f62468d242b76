/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Call frame instructions to rules: parsing of CIEs and FDEs, execution of their programs. A sink
 * takes the rows; compile.c is it.
 */
#ifndef KYMO_CORE_UNWIND_CFI_H
#define KYMO_CORE_UNWIND_CFI_H

#include <stdbool.h>
#include <stdint.h>

#include "core/unwind/table.h"
#include "core/unwind/vector.h"

/* .eh_frame under compilation. */
struct cfi_section {
	const uint8_t *bytes;
	uint64_t size;
	uint64_t address;              /* as linked */
	uint64_t eh_frame_hdr_address; /* base of data-relative pointers */
	uint64_t budget;               /* instructions that may still run: bounds malicious input */
	struct unwind_vector
		expression_ops; /* of struct unwind_expression_operation: expressions met so far */
	uint32_t expression_op_count;
};

struct cfi_cie {
	uint64_t position; /* in the section */
	uint64_t code_alignment_factor;
	int64_t data_alignment_factor;
	uint64_t program, program_end; /* positions */
	uint8_t fde_pointer_encoding;  /* of pc begin */
	bool has_augmentation, signal;
	struct unwind_rule initial_rule;
};

struct cfi_fde {
	uint64_t cie;          /* position */
	uint64_t begin, range; /* addresses as linked; range bytes */
	uint64_t program, program_end;
};

/* One length-prefixed entry. */
struct cfi_entry {
	uint64_t position, body_position, end; /* next entry at end */
	uint64_t id;                           /* raw CIE pointer; 0: a CIE */
	uint64_t id_position;
};

/* Receives the rule in force in [begin, end); calls come in rising order within one FDE. */
struct cfi_row_sink {
	bool (*row)(void *context, uint64_t begin, const struct unwind_rule *rule);
	void *context;
};

/* False at the end of the section: terminator, or bytes that make no entry. */
bool cfi_parse_entry_at(const struct cfi_section *section, uint64_t position,
			struct cfi_entry *ret);
/* 0 or -EINVAL, -ENOTSUP. Runs the CIE's program too. */
int cfi_cie_parse(struct cfi_section *section, uint64_t position, struct cfi_cie *ret);
/* Reads begin and range; `cie` must be the entry's. */
int cfi_fde_parse(const struct cfi_section *section, const struct cfi_entry *entry,
		  const struct cfi_cie *cie, struct cfi_fde *ret);
/* Emits the rows of one FDE. 0, -ENOMEM, -E2BIG when the budget is used up. Malformed programs give
 * an UNWIND_LOCATION_UNSUPPORTED row for the rest of the function. */
int cfi_fde_emit_rows(struct cfi_section *section, const struct cfi_cie *cie,
		      const struct cfi_fde *fde, const struct cfi_row_sink *sink);

/* Translates a DWARF expression; *ret is the index of its first operation. False when it has
 * operations that have no place in unwind rules (branches, calls, pieces), or no room is left. */
bool cfi_translate_expression(struct cfi_section *section, const uint8_t *bytes, uint64_t size,
			      bool push_cfa, uint32_t *ret);

#endif
