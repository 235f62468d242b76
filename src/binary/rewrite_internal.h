/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the parts of the rewriter share: the file that is being rewritten, and the *pieces* of the
 * new read-only segment: sections that moved there from elsewhere, and new ones.
 *
 * All pieces are found first (how large), then placed (where), then filled, then written, because
 * what is in some depends on where others are.
 */
#ifndef KYMO_BINARY_REWRITE_INTERNAL_H
#define KYMO_BINARY_REWRITE_INTERNAL_H

#include <elf.h>

#include "binary/rewrite.h"

#define REWRITE_SEGMENTS_ADDED 4u /* data, code, the rest; the note */
#define REWRITE_SECTIONS_ADDED 7u /* five of ours; without any: the empty one and the names too */
#define REWRITE_PIECES_MAX     64u
/* Pieces keep their address modulo this, so that notes of one segment stay together. */
#define REWRITE_ALIGN 64u

enum rewrite_added { ADDED_DATA, ADDED_TEXT, ADDED_NOTE, ADDED_PLAN, ADDED_MODES, ADDED_COUNT };

struct rewrite_piece {
	size_t section; /* index; 0: it has none */
	/* Where it was: vaddr 0 if nowhere. */
	uint64_t old_vaddr, old_offset, old_size;
	uint8_t *bytes; /* new contents, malloc'ed; NULL: the old ones */
	uint64_t size;
	uint64_t vaddr; /* where it comes */
};

struct rewrite {
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
	size_t section_names; /* index */
	uint64_t low, high;   /* link-time addresses of the file */

	const Elf64_Phdr *dynamic_segment, *interpreter;
	uint64_t dynamic_offset;
	size_t dynamic_count, dynamic_room; /* entries in use without the last; that fit */
	uint64_t strings_vaddr, strings_offset, strings_size;
	struct rewrite_piece *dynamic, *strings, *frames; /* NULL: it stays */

	uint64_t data_offset, text_offset, more_offset, more_vaddr, more_size;
	struct rewrite_piece *table; /* of program headers, when they move */
	struct rewrite_piece pieces[REWRITE_PIECES_MAX];
	size_t piece_count;
	struct rewrite_piece *added[ADDED_COUNT];
};

/* rewrite_read.c */
int rewrite_read(struct rewrite *rewrite);
/* `size` bytes of the file at a link-time address, or false. */
bool rewrite_offset(const struct rewrite *rewrite, uint64_t vaddr, uint64_t size, uint64_t *ret);
/* The section that is loaded at an address, or 0. */
size_t rewrite_section_at(const struct rewrite *rewrite, uint64_t vaddr);
struct rewrite_piece *rewrite_piece_add(struct rewrite *rewrite, size_t section, uint64_t size);

/* rewrite_patch.c: the sites of all functions that are on. */
int rewrite_patch(struct rewrite *rewrite);
/* The code of the arena, PLAN_GATE_SIZE and on, to `to`. */
void rewrite_put_code(const struct rewrite *rewrite, uint8_t *to);

/* rewrite_room.c: program headers grow. */
int rewrite_make_room(struct rewrite *rewrite);

/* rewrite_dynamic.c: what the loader is told. */
int rewrite_dynamic_read(struct rewrite *rewrite);
int rewrite_dynamic_grow(struct rewrite *rewrite);
int rewrite_dynamic_fill(struct rewrite *rewrite);

/* rewrite_frames.c: one table of unwind entries for the file's code and for stubs. */
int rewrite_frames_add(struct rewrite *rewrite);
void rewrite_frames_fill(struct rewrite *rewrite);

/* rewrite_write.c: the new file, from all that. */
int rewrite_write(struct rewrite *rewrite, uint8_t **ret, size_t *ret_size);

static inline uint64_t rewrite_align(uint64_t value, uint64_t alignment)
{
	return (value + alignment - 1) & ~(alignment - 1);
}

#endif
