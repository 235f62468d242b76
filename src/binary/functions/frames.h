/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What .eh_frame says about functions: their ranges, their landing pads' tables, and where the
 * canonical frame address (CFA) is at each instruction. DWARF 5, 6.4; LSB Core, 10.6.
 */
#ifndef KYMO_BINARY_FUNCTIONS_FRAMES_H
#define KYMO_BINARY_FUNCTIONS_FRAMES_H

#include "binary/cursor.h"
#include "binary/elf.h"

#define CFA_REMEMBERED_ROWS_MAX 8
#define EH_FRAME_REGISTER_RSP   7
#define EH_FRAME_REGISTER_RBP   6

struct eh_frame_cie { /* a CIE */
	uint32_t offset;
	uint32_t cfa_program_offset, cfa_program_size; /* of its instructions in the section */
	uint32_t code_align;
	int32_t data_align;
	uint8_t pointer_encoding, lsda_encoding;
	uint64_t personality_vaddr; /* where the CIE holds it itself; 0: none, or elsewhere */
	uint8_t return_register;
	bool has_augmentation_size; /* of the augmentation data of FDEs */
	bool signal;
};

struct eh_frame_fde { /* an FDE */
	uint64_t vaddr, size;
	uint64_t lsda_vaddr; /* 0: none */
	uint32_t cie_index;
	uint32_t cfa_program_offset, cfa_program_size;
};

struct eh_frame_table {
	uint8_t *bytes;
	size_t size;
	uint64_t vaddr;
	struct eh_frame_fde *list; /* by address */
	size_t count, capacity;
	struct eh_frame_cie *cies; /* by offset */
	size_t cie_count, cie_capacity;
};

/* No .eh_frame is no error. */
int eh_frame_table_read(const struct elf_file *file, struct eh_frame_table *ret);
void eh_frame_table_deinit(struct eh_frame_table *frames);

/* A pointer of the encoding at the cursor, which stands at `vaddr`. */
uint64_t eh_frame_read_encoded_pointer(struct byte_cursor *cursor, uint8_t encoding,
				       uint64_t vaddr);

struct cfa_row {
	bool known;                       /* CFA = register + offset */
	bool is_return_address_undefined; /* the return address is undefined */
	bool is_return_address_moved;     /* the return address is not at CFA - 8 */
	uint8_t base;                     /* DWARF number */
	int64_t offset;
};

/* Goes through the rows of a frame. */
struct cfa_walk_state {
	const struct eh_frame_cie *cie;
	struct byte_cursor cursor;
	uint64_t next; /* where the next row begins; UINT64_MAX: none follows */
	uint64_t location;
	struct cfa_row row, initial, remembered[CFA_REMEMBERED_ROWS_MAX];
	unsigned depth;
	bool has_several_rows; /* had more than one row */
};

/* The row of its first byte. */
void cfa_walk_begin_at_frame(struct cfa_walk_state *walk, const struct eh_frame_table *frames,
			     const struct eh_frame_fde *frame);
void cfa_walk_to_next_row(struct cfa_walk_state *walk);

/* Brings the row of `vaddr`; addresses must not fall. */
static inline void cfa_walk_to_address(struct cfa_walk_state *walk, uint64_t vaddr)
{
	while (walk->next <= vaddr && walk->next != UINT64_MAX)
		cfa_walk_to_next_row(walk);
}

#endif
