/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The table by which unwinders find their way (PT_GNU_EH_FRAME; Linux Standard Base 5.0, 10.6.2):
 * sorted pairs of a function's address and that of its description. A file has one, so the new one
 * holds the entries of the old one and those of stubs. Their descriptions stay where they are.
 *
 * Only the encoding that all linkers use is understood; with another the table stays as it is.
 */
#include "binary/rewrite/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define EH_FRAME_HDR_BYTES 12u

struct eh_frame_hdr_table {
	const uint8_t *bytes;
	uint64_t vaddr, count;
	uint64_t frames; /* address of .eh_frame */
};

struct eh_frame_hdr_entry {
	uint64_t code_vaddr, fde_vaddr;
};

/* version 1, pointer relative to itself, count of four bytes, entries relative to the table */
static const uint8_t expected_eh_frame_hdr_start[4] = {1, 0x1b, 0x03, 0x3b};

static uint64_t read_relative_address(const uint8_t *at, uint64_t base)
{
	int32_t distance;

	memcpy(&distance, at, sizeof(distance));
	return base + (uint64_t)(int64_t)distance;
}

static bool read_eh_frame_hdr_table(const uint8_t *bytes, uint64_t size, uint64_t vaddr,
				    struct eh_frame_hdr_table *ret)
{
	uint32_t count;

	if (size < EH_FRAME_HDR_BYTES ||
	    memcmp(bytes, expected_eh_frame_hdr_start, sizeof(expected_eh_frame_hdr_start)) != 0)
		return false;
	memcpy(&count, bytes + 8, sizeof(count));
	if (count > (size - EH_FRAME_HDR_BYTES) / 8)
		return false;
	*ret = (struct eh_frame_hdr_table){bytes, vaddr, count,
					   read_relative_address(bytes + 4, vaddr + 4)};
	return true;
}

static const Elf64_Phdr *find_eh_frame_hdr_segment(const struct rewrite_job *rewrite)
{
	for (size_t i = 0; i < rewrite->segment_count; i++) {
		if (rewrite->segments[i].p_type == PT_GNU_EH_FRAME)
			return &rewrite->segments[i];
	}
	return NULL;
}

static bool read_eh_frame_hdr_of_file(const struct rewrite_job *rewrite,
				      struct eh_frame_hdr_table *ret)
{
	const Elf64_Phdr *segment = find_eh_frame_hdr_segment(rewrite);
	uint64_t offset;

	return segment &&
	       rewrite_vaddr_to_offset(rewrite, segment->p_vaddr, segment->p_filesz, &offset) &&
	       read_eh_frame_hdr_table(rewrite->bytes + offset, segment->p_filesz, segment->p_vaddr,
				       ret);
}

static bool read_eh_frame_hdr_of_plan(const struct rewrite_job *rewrite,
				      struct eh_frame_hdr_table *ret)
{
	const struct plan_header *plan = rewrite->plan->header;
	const struct plan_table *frames = &plan->frames, *stubs = &plan->stubs;

	if (frames->count == 0 || frames->offset < stubs->offset ||
	    frames->offset - stubs->offset > stubs->count ||
	    frames->count > stubs->count - (frames->offset - stubs->offset))
		return false;
	return read_eh_frame_hdr_table(
		(const uint8_t *)plan + frames->offset, frames->count,
		plan->arena_vaddr + PLAN_STUBS + (frames->offset - stubs->offset), ret);
}

int rewrite_reserve_merged_eh_frame_hdr(struct rewrite_job *rewrite)
{
	struct eh_frame_hdr_table file, stubs;

	if (rewrite->is_arena_made_at_start || !read_eh_frame_hdr_of_file(rewrite, &file) ||
	    !read_eh_frame_hdr_of_plan(rewrite, &stubs))
		return 0;
	const Elf64_Phdr *segment = find_eh_frame_hdr_segment(rewrite);
	size_t section = rewrite_find_section_at(rewrite, segment->p_vaddr);
	struct new_segment_piece *piece = rewrite_add_piece(
		rewrite, section, EH_FRAME_HDR_BYTES + 8 * (file.count + stubs.count));

	if (!piece)
		return 0;
	piece->old_vaddr = segment->p_vaddr;
	rewrite_vaddr_to_offset(rewrite, segment->p_vaddr, segment->p_filesz, &piece->old_offset);
	piece->old_size = segment->p_filesz;
	piece->bytes = calloc(1, (size_t)piece->size);
	if (!piece->bytes)
		return -ENOMEM;
	rewrite->frames = piece;
	return 0;
}

static bool write_relative_address(uint8_t *at, uint64_t target, uint64_t base)
{
	int64_t distance = (int64_t)(target - base);
	int32_t stored = (int32_t)distance;

	memcpy(at, &stored, sizeof(stored));
	return stored == distance;
}

static struct eh_frame_hdr_entry get_eh_frame_hdr_entry(const struct eh_frame_hdr_table *table,
							uint64_t index)
{
	const uint8_t *at = table->bytes + EH_FRAME_HDR_BYTES + 8 * index;

	return (struct eh_frame_hdr_entry){read_relative_address(at, table->vaddr),
					   read_relative_address(at + 4, table->vaddr)};
}

/* Both are sorted: the next of the two that comes first. */
static struct eh_frame_hdr_entry
read_next_merged_eh_frame_hdr_entry(const struct eh_frame_hdr_table *one, uint64_t *one_at,
				    const struct eh_frame_hdr_table *other, uint64_t *other_at)
{
	if (*one_at == one->count)
		return get_eh_frame_hdr_entry(other, (*other_at)++);
	if (*other_at == other->count)
		return get_eh_frame_hdr_entry(one, (*one_at)++);
	struct eh_frame_hdr_entry first = get_eh_frame_hdr_entry(one, *one_at),
				  second = get_eh_frame_hdr_entry(other, *other_at);

	if (first.code_vaddr <= second.code_vaddr) {
		++*one_at;
		return first;
	}
	++*other_at;
	return second;
}

/* When something is too far away the old table stays in use. */
void rewrite_fill_merged_eh_frame_hdr(struct rewrite_job *rewrite)
{
	struct new_segment_piece *piece = rewrite->frames;
	struct eh_frame_hdr_table file, stubs;
	uint64_t file_at = 0, stubs_at = 0;
	bool reached;

	if (!piece || !read_eh_frame_hdr_of_file(rewrite, &file) ||
	    !read_eh_frame_hdr_of_plan(rewrite, &stubs))
		return;
	uint32_t count = (uint32_t)(file.count + stubs.count);

	memcpy(piece->bytes, expected_eh_frame_hdr_start, sizeof(expected_eh_frame_hdr_start));
	reached = write_relative_address(piece->bytes + 4, file.frames, piece->vaddr + 4);
	memcpy(piece->bytes + 8, &count, sizeof(count));
	for (uint32_t i = 0; i < count; i++) {
		struct eh_frame_hdr_entry entry =
			read_next_merged_eh_frame_hdr_entry(&file, &file_at, &stubs, &stubs_at);
		uint8_t *at = piece->bytes + EH_FRAME_HDR_BYTES + 8 * (size_t)i;

		reached &= write_relative_address(at, entry.code_vaddr, piece->vaddr) &&
			   write_relative_address(at + 4, entry.fde_vaddr, piece->vaddr);
	}
	rewrite->result->has_merged_unwind_tables = reached;
	if (!reached) {
		piece->section = 0;
		piece->old_vaddr = piece->old_size = 0;
	}
}
