/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the parts of the rewriter share: the file that is being rewritten, and the *pieces* of the
 * new read-only segment: sections that moved there from elsewhere, and new ones.
 *
 * All pieces are found first (how large), then placed (where), then filled, then written, because
 * what is in some depends on where others are.
 */
#ifndef KYMO_BINARY_REWRITE_PRIVATE_H
#define KYMO_BINARY_REWRITE_PRIVATE_H

#include <elf.h>

#include "binary/rewrite/rewrite.h"

#define REWRITE_SEGMENTS_ADDED_COUNT 4u /* data, code, the rest; the note */
#define REWRITE_SECTIONS_ADDED_MAX                                                                 \
	7u /* five of ours; without any: the empty one and the names too */
#define REWRITE_PIECES_MAX 64u
/* Pieces keep their address modulo this, so that notes of one segment stay together. */
#define REWRITE_PIECE_ALIGN_BYTES 64u

enum added_section_kind {
	ADDED_SECTION_DATA,
	ADDED_SECTION_TEXT,
	ADDED_SECTION_NOTE,
	ADDED_SECTION_PLAN,
	ADDED_SECTION_MODES,
	ADDED_SECTION_COUNT
};

struct new_segment_piece {
	size_t section; /* index; 0: it has none */
	/* Where it was: vaddr 0 if nowhere. */
	uint64_t old_vaddr, old_offset, old_size;
	uint8_t *bytes; /* new contents, malloc'ed; NULL: the old ones */
	uint64_t size;
	uint64_t vaddr; /* where it comes */
};

struct rewrite_job {
	const char *name;
	const struct plan *plan;
	const uint8_t *modes;
	const struct rewrite_options *options;
	struct rewrite_result *result;
	struct problem *problem;

	uint8_t *bytes; /* the file as it was, with patches and new symbol values */
	size_t size;
	Elf64_Ehdr header;
	Elf64_Phdr *segments;
	size_t segment_count;
	Elf64_Shdr *sections;
	size_t section_count, old_section_count;
	size_t section_names_index;  /* index */
	uint64_t low, high;          /* link-time addresses of the file */
	bool is_arena_made_at_start; /* it is not in the file (PLAN_NOTE_ARENA_IS_MADE_AT_START) */

	const Elf64_Phdr *dynamic_segment, *interpreter_segment;
	uint64_t dynamic_offset;
	size_t dynamic_entry_count,
		dynamic_entry_capacity; /* entries in use without the last; that fit */
	uint64_t dynstr_vaddr, dynstr_offset, dynstr_size;
	struct new_segment_piece *dynamic, *dynstr, *frames; /* NULL: it stays */

	uint64_t arena_data_offset, arena_text_offset, moved_pieces_offset, moved_pieces_vaddr,
		moved_pieces_size;
	struct new_segment_piece *table; /* of program headers, when they move */
	struct new_segment_piece pieces[REWRITE_PIECES_MAX];
	size_t piece_count;
	struct new_segment_piece *added_section_pieces[ADDED_SECTION_COUNT];
};

/* read.c */
int rewrite_read_headers(struct rewrite_job *rewrite);
/* `size` bytes of the file at a link-time address, or false. */
bool rewrite_vaddr_to_offset(const struct rewrite_job *rewrite, uint64_t vaddr, uint64_t size,
			     uint64_t *ret);
/* The section that is loaded at an address, or 0. */
size_t rewrite_find_section_at(const struct rewrite_job *rewrite, uint64_t vaddr);
struct new_segment_piece *rewrite_add_piece(struct rewrite_job *rewrite, size_t section,
					    uint64_t size);

/* patch.c: the sites of all functions that are on. */
int rewrite_apply_patches(struct rewrite_job *rewrite);
/* The code of the arena, PLAN_TRAMPOLINE_SIZE and on, to `to`. */
void rewrite_write_arena_code(const struct rewrite_job *rewrite, uint8_t *to);

/* room.c: program headers grow. */
int rewrite_grow_program_headers(struct rewrite_job *rewrite);

/* dynamic.c: what the loader reads. */
int rewrite_read_dynamic_section(struct rewrite_job *rewrite);
int rewrite_grow_dynamic_section(struct rewrite_job *rewrite);
int rewrite_fill_dynamic_section(struct rewrite_job *rewrite);

/* frames.c: one table of unwind entries for the file's code and for stubs. */
int rewrite_reserve_merged_eh_frame_hdr(struct rewrite_job *rewrite);
void rewrite_fill_merged_eh_frame_hdr(struct rewrite_job *rewrite);

/* write.c: the new file, from all that. */
int rewrite_build_output(struct rewrite_job *rewrite, uint8_t **ret, size_t *ret_size);

static inline uint64_t rewrite_align_up(uint64_t value, uint64_t alignment)
{
	return (value + alignment - 1) & ~(alignment - 1);
}

#endif
