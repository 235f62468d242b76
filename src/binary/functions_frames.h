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

#define FRAME_REMEMBER_MAX 8
#define FRAME_RSP          7
#define FRAME_RBP          6

struct frame_common { /* a CIE */
	uint32_t offset;
	uint32_t program, program_size; /* of its instructions in the section */
	uint32_t code_align;
	int32_t data_align;
	uint8_t pointer_encoding, lsda_encoding;
	uint8_t return_register;
	bool has_size; /* of the augmentation data of FDEs */
	bool signal;
};

struct frame { /* an FDE */
	uint64_t vaddr, size;
	uint64_t lsda; /* 0: none */
	uint32_t common;
	uint32_t program, program_size;
};

struct frames {
	uint8_t *bytes;
	size_t size;
	uint64_t vaddr;
	struct frame *list; /* by address */
	size_t count, capacity;
	struct frame_common *commons; /* by offset */
	size_t common_count, common_capacity;
};

/* No .eh_frame is no error. */
int frames_read(const struct elf_file *file, struct frames *ret);
void frames_deinit(struct frames *frames);

/* A pointer of the encoding at the cursor, which stands at `vaddr`. */
uint64_t frame_pointer(struct cursor *cursor, uint8_t encoding, uint64_t vaddr);

struct frame_row {
	bool known;   /* CFA = register + offset */
	bool orphan;  /* the return address is undefined */
	bool moved;   /* the return address is not at CFA - 8 */
	uint8_t base; /* DWARF number */
	int64_t offset;
};

/* Goes through the rows of a frame. */
struct frame_walk {
	const struct frame_common *common;
	struct cursor cursor;
	uint64_t next; /* where the next row begins; UINT64_MAX: none follows */
	uint64_t location;
	struct frame_row row, initial, remembered[FRAME_REMEMBER_MAX];
	unsigned depth;
	bool moved_on; /* had more than one row */
};

/* The row of its first byte. */
void frame_walk_start(struct frame_walk *walk, const struct frames *frames,
		      const struct frame *frame);
void frame_walk_on(struct frame_walk *walk);

/* Brings the row of `vaddr`; addresses must not fall. */
static inline void frame_walk_to(struct frame_walk *walk, uint64_t vaddr)
{
	while (walk->next <= vaddr && walk->next != UINT64_MAX)
		frame_walk_on(walk);
}

#endif
