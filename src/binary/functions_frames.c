/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Reading .eh_frame: CIEs and FDEs. Damaged entries are passed over.
 */
#include "binary/functions_frames.h"

#include <errno.h>
#include <stdlib.h>

#define SECTION_MAX (1u << 31)

enum { /* LSB Core, 10.5.1 */
       POINTER_OMIT = 0xff,
       POINTER_ULEB = 1,
       POINTER_DATA2 = 2,
       POINTER_DATA4 = 3,
       POINTER_DATA8 = 4,
       POINTER_SIGNED = 8,
       POINTER_SLEB = 9,
       POINTER_PCREL = 0x10,
       POINTER_INDIRECT = 0x80
};

static uint64_t pointer_value(struct cursor *cursor, uint8_t format)
{
	switch (format) {
	case POINTER_ULEB:
		return cursor_uleb(cursor);
	case POINTER_SLEB:
		return (uint64_t)cursor_sleb(cursor);
	case POINTER_DATA2:
		return cursor_fixed(cursor, 2);
	case POINTER_DATA2 | POINTER_SIGNED:
		return (uint64_t)(int64_t)(int16_t)cursor_fixed(cursor, 2);
	case POINTER_DATA4:
		return cursor_fixed(cursor, 4);
	case POINTER_DATA4 | POINTER_SIGNED:
		return (uint64_t)(int64_t)(int32_t)cursor_fixed(cursor, 4);
	case 0:
	case POINTER_DATA8:
	case POINTER_DATA8 | POINTER_SIGNED:
	case POINTER_SIGNED:
		return cursor_fixed(cursor, 8);
	default:
		cursor->failed = true;
		return 0;
	}
}

uint64_t frame_pointer(struct cursor *cursor, uint8_t encoding, uint64_t vaddr)
{
	uint64_t value;

	if (encoding == POINTER_OMIT)
		return 0;
	value = pointer_value(cursor, encoding & 0x0f);
	if (!value || encoding & POINTER_INDIRECT)
		return 0;
	return (encoding & 0x70) == POINTER_PCREL ? vaddr + value : value;
}

static struct cursor cursor_in(const struct frames *frames, size_t offset, size_t size)
{
	return (struct cursor){.at = frames->bytes + offset, .end = frames->bytes + offset + size};
}

static uint32_t offset_of(const struct frames *frames, const struct cursor *cursor)
{
	return (uint32_t)(cursor->at - frames->bytes);
}

static void *grown(void *list, size_t count, size_t *capacity, size_t size)
{
	void *larger = list;

	if (count == *capacity) {
		size_t wanted = *capacity ? 2 * *capacity : 256;
		larger = realloc(list, wanted * size);
		if (larger)
			*capacity = wanted;
	}
	return larger;
}

static void read_augmentation(const struct frames *frames, struct cursor *cursor, const char *text,
			      struct frame_common *common)
{
	if (*text != 'z')
		return;
	common->has_size = true;
	cursor_uleb(cursor);
	while (*++text) {
		if (*text == 'R')
			common->pointer_encoding = cursor_byte(cursor);
		else if (*text == 'L')
			common->lsda_encoding = cursor_byte(cursor);
		else if (*text == 'P') {
			uint8_t encoding = cursor_byte(cursor);
			frame_pointer(cursor, encoding, frames->vaddr);
		} else if (*text == 'S')
			common->signal = true;
		else if (*text != 'B')
			cursor->failed = true;
	}
}

static int add_common(struct frames *frames, uint32_t offset, struct cursor cursor)
{
	struct frame_common common = {.offset = offset, .lsda_encoding = POINTER_OMIT};
	uint8_t version = cursor_byte(&cursor);
	const char *text = cursor_string(&cursor);
	void *list;

	if (!text || (version != 1 && version != 3))
		return 0;
	common.code_align = (uint32_t)cursor_uleb(&cursor);
	common.data_align = (int32_t)cursor_sleb(&cursor);
	common.return_register =
		version == 1 ? cursor_byte(&cursor) : (uint8_t)cursor_uleb(&cursor);
	uint64_t size = 0;
	struct cursor after = cursor;
	if (*text == 'z') {
		size = cursor_uleb(&after);
		cursor_skip(&after, size);
	}
	read_augmentation(frames, &cursor, text, &common);
	if (cursor.failed || after.failed || (*text && *text != 'z'))
		return 0;
	common.program = offset_of(frames, &after);
	common.program_size = (uint32_t)cursor_left(&after);
	list = grown(frames->commons, frames->common_count, &frames->common_capacity,
		     sizeof(common));
	if (!list)
		return -ENOMEM;
	frames->commons = list;
	frames->commons[frames->common_count++] = common;
	return 0;
}

static int common_compare(const void *key, const void *element)
{
	uint32_t offset = *(const uint32_t *)key;
	const struct frame_common *common = element;

	return offset < common->offset ? -1 : offset > common->offset;
}

/* `offset`: of the word that leads back to the CIE. */
static int add_frame(struct frames *frames, uint32_t offset, uint32_t back, struct cursor cursor)
{
	struct frame frame = {0};
	const struct frame_common *common;
	uint32_t key = offset - back;
	uint64_t vaddr;
	void *list;

	if (back > offset || !frames->common_count)
		return 0;
	common = &frames->commons[frames->common_count - 1];
	if (common->offset != key)
		common = bsearch(&key, frames->commons, frames->common_count, sizeof(*common),
				 common_compare);
	if (!common)
		return 0;
	frame.common = (uint32_t)(common - frames->commons);
	vaddr = frames->vaddr + offset_of(frames, &cursor);
	frame.vaddr = frame_pointer(&cursor, common->pointer_encoding, vaddr);
	frame.size = pointer_value(&cursor, common->pointer_encoding & 0x07);
	if (common->has_size) {
		uint64_t size = cursor_uleb(&cursor);
		struct cursor lsda = cursor;
		cursor_skip(&cursor, size);
		vaddr = frames->vaddr + offset_of(frames, &lsda);
		if (size)
			frame.lsda = frame_pointer(&lsda, common->lsda_encoding, vaddr);
	}
	/* Without a size: functions that the linker dropped. */
	if (cursor.failed || !frame.size || frame.size > UINT32_MAX ||
	    frame.vaddr > UINT64_MAX - frame.size)
		return 0;
	frame.program = offset_of(frames, &cursor);
	frame.program_size = (uint32_t)cursor_left(&cursor);
	list = grown(frames->list, frames->count, &frames->capacity, sizeof(frame));
	if (!list)
		return -ENOMEM;
	frames->list = list;
	frames->list[frames->count++] = frame;
	return 0;
}

static int read_entries(struct frames *frames)
{
	struct cursor cursor = cursor_in(frames, 0, frames->size);

	while (cursor_left(&cursor) >= 8) {
		uint32_t start = offset_of(frames, &cursor), id_at;
		uint64_t length = cursor_fixed(&cursor, 4);
		struct cursor entry;
		uint32_t back;
		int error;

		if (!length) /* ends of single object files stand in the middle, too */
			continue;
		if (length == UINT32_MAX)
			length = cursor_fixed(&cursor, 8);
		id_at = offset_of(frames, &cursor);
		entry = cursor;
		if (!cursor_skip(&cursor, length))
			break;
		entry.end = cursor.at;
		back = (uint32_t)cursor_fixed(&entry, 4);
		error = back ? add_frame(frames, id_at, back, entry)
			     : add_common(frames, start, entry);
		if (error)
			return error;
	}
	return 0;
}

static int frame_compare(const void *left, const void *right)
{
	const struct frame *a = left, *b = right;

	if (a->vaddr != b->vaddr)
		return a->vaddr < b->vaddr ? -1 : 1;
	return a->size > b->size ? -1 : a->size < b->size;
}

static void frames_sort(struct frames *frames)
{
	for (size_t i = 1; i < frames->count; i++) {
		if (frame_compare(&frames->list[i - 1], &frames->list[i]) > 0) {
			qsort(frames->list, frames->count, sizeof(*frames->list), frame_compare);
			return;
		}
	}
}

/* By .eh_frame_hdr, which programs without section headers have: from there to the segment's end;
 * a zero length ends it for whoever wrote it, and garbage behind that is passed over. */
static bool find_by_header(const struct elf_file *file, uint64_t *ret_vaddr, uint64_t *ret_size)
{
	uint8_t head[12];
	uint64_t offset, vaddr;

	for (size_t i = 0; i < file->segment_count; i++) {
		const Elf64_Phdr *header = &file->segments[i];
		struct cursor cursor = {.at = head + 4, .end = head + sizeof(head)};
		if (header->p_type != PT_GNU_EH_FRAME ||
		    elf_read(file, header->p_offset, head, sizeof(head)))
			continue;
		vaddr = frame_pointer(&cursor, head[1], header->p_vaddr + 4);
		for (size_t k = 0; k < file->segment_count; k++) {
			const Elf64_Phdr *load = &file->segments[k];
			if (load->p_type != PT_LOAD || vaddr < load->p_vaddr ||
			    vaddr - load->p_vaddr >= load->p_filesz)
				continue;
			*ret_vaddr = vaddr;
			*ret_size = load->p_filesz - (vaddr - load->p_vaddr);
			return elf_vaddr_to_offset(file, vaddr, &offset);
		}
	}
	return false;
}

int frames_read(const struct elf_file *file, struct frames *ret)
{
	const struct elf_section *section = elf_section_find(file, ".eh_frame");
	uint64_t offset, size;
	int error;

	memset(ret, 0, sizeof(*ret));
	if (section && section->type != SHT_NOBITS) {
		ret->vaddr = section->address;
		size = section->size;
		offset = section->offset;
	} else if (!find_by_header(file, &ret->vaddr, &size) ||
		   !elf_vaddr_to_offset(file, ret->vaddr, &offset)) {
		return 0;
	}
	if (size > SECTION_MAX || offset > file->size || size > file->size - offset)
		return 0;
	ret->bytes = malloc(size + 1);
	if (!ret->bytes)
		return -ENOMEM;
	ret->size = size;
	if (elf_read(file, offset, ret->bytes, size)) {
		frames_deinit(ret);
		return 0;
	}
	error = read_entries(ret);
	if (error)
		frames_deinit(ret);
	else
		frames_sort(ret);
	return error;
}

void frames_deinit(struct frames *frames)
{
	free(frames->bytes);
	free(frames->list);
	free(frames->commons);
	memset(frames, 0, sizeof(*frames));
}
