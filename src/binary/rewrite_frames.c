/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The table by which unwinders find their way (PT_GNU_EH_FRAME; Linux Standard Base 5.0, 10.6.2):
 * sorted pairs of a function's address and that of its description. A file has one, so the new one
 * holds the entries of the old one and those of stubs. Their descriptions stay where they are.
 *
 * Only the encoding that all linkers use is understood; with another the table stays as it is.
 */
#include "binary/rewrite_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_SIZE 12u

struct table {
	const uint8_t *bytes;
	uint64_t vaddr, count;
	uint64_t frames; /* address of .eh_frame */
};

struct entry {
	uint64_t code, frame;
};

/* version 1, pointer relative to itself, count of four bytes, entries relative to the table */
static const uint8_t table_encoding[4] = {1, 0x1b, 0x03, 0x3b};

static uint64_t relative(const uint8_t *at, uint64_t base)
{
	int32_t distance;

	memcpy(&distance, at, sizeof(distance));
	return base + (uint64_t)(int64_t)distance;
}

static bool table_read(const uint8_t *bytes, uint64_t size, uint64_t vaddr, struct table *ret)
{
	uint32_t count;

	if (size < HEAD_SIZE || memcmp(bytes, table_encoding, sizeof(table_encoding)) != 0)
		return false;
	memcpy(&count, bytes + 8, sizeof(count));
	if (count > (size - HEAD_SIZE) / 8)
		return false;
	*ret = (struct table){bytes, vaddr, count, relative(bytes + 4, vaddr + 4)};
	return true;
}

static const Elf64_Phdr *table_segment(const struct rewrite *rewrite)
{
	for (size_t i = 0; i < rewrite->segment_count; i++) {
		if (rewrite->segments[i].p_type == PT_GNU_EH_FRAME)
			return &rewrite->segments[i];
	}
	return NULL;
}

static bool table_of_file(const struct rewrite *rewrite, struct table *ret)
{
	const Elf64_Phdr *segment = table_segment(rewrite);
	uint64_t offset;

	return segment && rewrite_offset(rewrite, segment->p_vaddr, segment->p_filesz, &offset) &&
	       table_read(rewrite->bytes + offset, segment->p_filesz, segment->p_vaddr, ret);
}

static bool table_of_plan(const struct rewrite *rewrite, struct table *ret)
{
	const struct plan_header *plan = rewrite->plan->header;
	const struct plan_table *frames = &plan->frames, *stubs = &plan->stubs;

	if (frames->count == 0 || frames->offset < stubs->offset ||
	    frames->offset - stubs->offset > stubs->count ||
	    frames->count > stubs->count - (frames->offset - stubs->offset))
		return false;
	return table_read((const uint8_t *)plan + frames->offset, frames->count,
			  plan->arena_vaddr + PLAN_STUBS + (frames->offset - stubs->offset), ret);
}

int rewrite_frames_add(struct rewrite *rewrite)
{
	struct table file, stubs;

	if (!table_of_file(rewrite, &file) || !table_of_plan(rewrite, &stubs))
		return 0;
	const Elf64_Phdr *segment = table_segment(rewrite);
	size_t section = rewrite_section_at(rewrite, segment->p_vaddr);
	struct rewrite_piece *piece =
		rewrite_piece_add(rewrite, section, HEAD_SIZE + 8 * (file.count + stubs.count));

	if (!piece)
		return 0;
	piece->old_vaddr = segment->p_vaddr;
	rewrite_offset(rewrite, segment->p_vaddr, segment->p_filesz, &piece->old_offset);
	piece->old_size = segment->p_filesz;
	piece->bytes = calloc(1, (size_t)piece->size);
	if (!piece->bytes)
		return -ENOMEM;
	rewrite->frames = piece;
	return 0;
}

static bool put_relative(uint8_t *at, uint64_t target, uint64_t base)
{
	int64_t distance = (int64_t)(target - base);
	int32_t stored = (int32_t)distance;

	memcpy(at, &stored, sizeof(stored));
	return stored == distance;
}

static struct entry entry_get(const struct table *table, uint64_t index)
{
	const uint8_t *at = table->bytes + HEAD_SIZE + 8 * index;

	return (struct entry){relative(at, table->vaddr), relative(at + 4, table->vaddr)};
}

/* Both are sorted: the next of the two that comes first. */
static struct entry entry_next(const struct table *one, uint64_t *one_at, const struct table *other,
			       uint64_t *other_at)
{
	if (*one_at == one->count)
		return entry_get(other, (*other_at)++);
	if (*other_at == other->count)
		return entry_get(one, (*one_at)++);
	struct entry first = entry_get(one, *one_at), second = entry_get(other, *other_at);

	if (first.code <= second.code) {
		++*one_at;
		return first;
	}
	++*other_at;
	return second;
}

/* When something is too far away the old table stays in use. */
void rewrite_frames_fill(struct rewrite *rewrite)
{
	struct rewrite_piece *piece = rewrite->frames;
	struct table file, stubs;
	uint64_t file_at = 0, stubs_at = 0;
	bool reached;

	if (!piece || !table_of_file(rewrite, &file) || !table_of_plan(rewrite, &stubs))
		return;
	uint32_t count = (uint32_t)(file.count + stubs.count);

	memcpy(piece->bytes, table_encoding, sizeof(table_encoding));
	reached = put_relative(piece->bytes + 4, file.frames, piece->vaddr + 4);
	memcpy(piece->bytes + 8, &count, sizeof(count));
	for (uint32_t i = 0; i < count; i++) {
		struct entry entry = entry_next(&file, &file_at, &stubs, &stubs_at);
		uint8_t *at = piece->bytes + HEAD_SIZE + 8 * (size_t)i;

		reached &= put_relative(at, entry.code, piece->vaddr) &&
			   put_relative(at + 4, entry.frame, piece->vaddr);
	}
	rewrite->result->unwind_merged = reached;
	if (!reached) {
		piece->section = 0;
		piece->old_vaddr = piece->old_size = 0;
	}
}
