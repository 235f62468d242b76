/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Room for more program headers: the sections behind them move away, if all of them are of kinds
 * that nothing refers to but the program headers and the dynamic section: the interpreter's name,
 * notes, hash tables, dynamic symbols, versions. Otherwise the table moves.
 */
#include "binary/rewrite/private.h"

#include <errno.h>
#include <string.h>

static bool ranges_overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
	return a_size > 0 && b_size > 0 && a < b + b_size && b < a + a_size;
}

static bool section_is_interpreter(const struct rewrite_job *rewrite, const Elf64_Shdr *section)
{
	const Elf64_Phdr *interpreter = rewrite->interpreter_segment;

	return interpreter && section->sh_offset == interpreter->p_offset &&
	       section->sh_size == interpreter->p_filesz;
}

static bool section_can_move(const struct rewrite_job *rewrite, const Elf64_Shdr *section)
{
	uint64_t offset;

	if (!(section->sh_flags & SHF_ALLOC) || section->sh_flags & (SHF_WRITE | SHF_EXECINSTR) ||
	    !rewrite_vaddr_to_offset(rewrite, section->sh_addr, section->sh_size, &offset) ||
	    offset != section->sh_offset)
		return false;
	switch (section->sh_type) {
	case SHT_NOTE:
	case SHT_HASH:
	case SHT_GNU_HASH:
	case SHT_DYNSYM:
	case SHT_GNU_versym:
	case SHT_GNU_verneed:
	case SHT_GNU_verdef:
		return true;
	case SHT_STRTAB: /* it is a piece already: it grows */
		return rewrite->dynstr && rewrite->dynstr->old_offset == section->sh_offset;
	default:
		return section_is_interpreter(rewrite, section);
	}
}

static bool has_piece_for_section(const struct rewrite_job *rewrite, size_t section)
{
	for (size_t i = 0; i < rewrite->piece_count; i++) {
		if (rewrite->pieces[i].section == section)
			return true;
	}
	return false;
}

static bool add_section_move(struct rewrite_job *rewrite, size_t index)
{
	const Elf64_Shdr *section = &rewrite->sections[index];

	if (has_piece_for_section(rewrite, index))
		return true;
	return section_can_move(rewrite, section) &&
	       rewrite_add_piece(rewrite, index, section->sh_size) != NULL;
}

/* All sections in [offset, offset + size). */
static bool add_moves_of_sections(struct rewrite_job *rewrite, uint64_t offset, uint64_t size)
{
	for (size_t i = 1; i < rewrite->old_section_count; i++) {
		const Elf64_Shdr *section = &rewrite->sections[i];

		if (section->sh_type != SHT_NOBITS && section->sh_type != SHT_NULL &&
		    ranges_overlap(section->sh_offset, section->sh_size, offset, size) &&
		    !add_section_move(rewrite, i))
			return false;
	}
	return true;
}

/* Segments that lie in moved sections move as a whole: notes, properties, the interpreter. */
static bool add_moves_of_touched_segments(struct rewrite_job *rewrite)
{
	for (size_t i = 0; i < rewrite->segment_count; i++) {
		const Elf64_Phdr *segment = &rewrite->segments[i];
		bool touched = false;

		if (segment->p_type == PT_LOAD || segment->p_type == PT_PHDR)
			continue;
		for (size_t j = 0; j < rewrite->piece_count; j++)
			touched |= ranges_overlap(rewrite->pieces[j].old_offset,
						  rewrite->pieces[j].old_size, segment->p_offset,
						  segment->p_filesz);
		if (!touched || segment->p_type == PT_GNU_EH_FRAME ||
		    segment->p_type == PT_DYNAMIC || segment->p_type == PT_GNU_RELRO)
			continue;
		if ((segment->p_type != PT_NOTE && segment->p_type != PT_INTERP &&
		     segment->p_type != PT_GNU_PROPERTY) ||
		    !add_moves_of_sections(rewrite, segment->p_offset, segment->p_filesz))
			return false;
	}
	return true;
}

/* The table and what it grows by are loaded by one segment, which is what its address relies on. */
static bool is_range_loaded_by_segment(const struct rewrite_job *rewrite, uint64_t offset,
				       uint64_t size)
{
	for (size_t i = 0; i < rewrite->segment_count; i++) {
		const Elf64_Phdr *segment = &rewrite->segments[i];

		if (segment->p_type == PT_LOAD && offset >= segment->p_offset &&
		    offset - segment->p_offset < segment->p_filesz &&
		    size <= segment->p_filesz - (offset - segment->p_offset))
			return true;
	}
	return false;
}

/* Without section headers nobody knows what is behind the table. */
static bool make_room_behind_program_headers(struct rewrite_job *rewrite)
{
	uint64_t offset = rewrite->header.e_phoff;
	uint64_t old = rewrite->segment_count * sizeof(Elf64_Phdr);
	uint64_t added = REWRITE_SEGMENTS_ADDED_COUNT * sizeof(Elf64_Phdr);

	if (rewrite->old_section_count < 2 ||
	    !is_range_loaded_by_segment(rewrite, offset, old + added) ||
	    ranges_overlap(rewrite->header.e_shoff, rewrite->old_section_count * sizeof(Elf64_Shdr),
			   offset + old, added))
		return false;
	return add_moves_of_sections(rewrite, offset + old, added) &&
	       add_moves_of_touched_segments(rewrite);
}

/* Pieces that were found in vain are forgotten. */
int rewrite_grow_program_headers(struct rewrite_job *rewrite)
{
	size_t pieces = rewrite->piece_count;

	if (make_room_behind_program_headers(rewrite))
		return 0;
	rewrite->piece_count = pieces;
	rewrite->result->has_moved_program_headers = true;
	return 0;
}
