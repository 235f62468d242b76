/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Reading .eh_frame: CIEs and FDEs. Damaged entries are passed over.
 */
#include "binary/functions/frames.h"

#include <errno.h>
#include <stdlib.h>

#define EH_FRAME_BYTES_MAX (1u << 31)

enum { /* LSB Core, 10.5.1 */
       EH_POINTER_OMIT = 0xff,
       EH_POINTER_ULEB128 = 1,
       EH_POINTER_DATA2 = 2,
       EH_POINTER_DATA4 = 3,
       EH_POINTER_DATA8 = 4,
       EH_POINTER_SIGNED = 8,
       EH_POINTER_SLEB128 = 9,
       EH_POINTER_PCREL = 0x10,
       EH_POINTER_INDIRECT = 0x80
};

static uint64_t read_raw_pointer_by_format(struct byte_cursor *cursor, uint8_t format)
{
	switch (format) {
	case EH_POINTER_ULEB128:
		return cursor_read_uleb128(cursor);
	case EH_POINTER_SLEB128:
		return (uint64_t)cursor_read_sleb128(cursor);
	case EH_POINTER_DATA2:
		return cursor_read_fixed_uint(cursor, 2);
	case EH_POINTER_DATA2 | EH_POINTER_SIGNED:
		return (uint64_t)(int64_t)(int16_t)cursor_read_fixed_uint(cursor, 2);
	case EH_POINTER_DATA4:
		return cursor_read_fixed_uint(cursor, 4);
	case EH_POINTER_DATA4 | EH_POINTER_SIGNED:
		return (uint64_t)(int64_t)(int32_t)cursor_read_fixed_uint(cursor, 4);
	case 0:
	case EH_POINTER_DATA8:
	case EH_POINTER_DATA8 | EH_POINTER_SIGNED:
	case EH_POINTER_SIGNED:
		return cursor_read_fixed_uint(cursor, 8);
	default:
		cursor->failed = true;
		return 0;
	}
}

uint64_t eh_frame_read_encoded_pointer(struct byte_cursor *cursor, uint8_t encoding, uint64_t vaddr)
{
	uint64_t value;

	if (encoding == EH_POINTER_OMIT)
		return 0;
	value = read_raw_pointer_by_format(cursor, encoding & 0x0f);
	if (!value || encoding & EH_POINTER_INDIRECT)
		return 0;
	return (encoding & 0x70) == EH_POINTER_PCREL ? vaddr + value : value;
}

static struct byte_cursor create_eh_frame_cursor(const struct eh_frame_table *frames, size_t offset,
						 size_t size)
{
	return (struct byte_cursor){.at = frames->bytes + offset,
				    .end = frames->bytes + offset + size};
}

static uint32_t get_cursor_section_offset(const struct eh_frame_table *frames,
					  const struct byte_cursor *cursor)
{
	return (uint32_t)(cursor->at - frames->bytes);
}

static void *grow_list_if_full(void *list, size_t count, size_t *capacity, size_t size)
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

static void read_cie_augmentation(const struct eh_frame_table *frames, struct byte_cursor *cursor,
				  const char *text, struct eh_frame_cie *common)
{
	if (*text != 'z')
		return;
	common->has_augmentation_size = true;
	cursor_read_uleb128(cursor);
	while (*++text) {
		if (*text == 'R')
			common->pointer_encoding = cursor_read_byte(cursor);
		else if (*text == 'L')
			common->lsda_encoding = cursor_read_byte(cursor);
		else if (*text == 'P') {
			uint8_t encoding = cursor_read_byte(cursor);
			uint64_t at = frames->vaddr + get_cursor_section_offset(frames, cursor);
			common->personality_vaddr =
				eh_frame_read_encoded_pointer(cursor, encoding, at);
		} else if (*text == 'S')
			common->signal = true;
		else if (*text != 'B')
			cursor->failed = true;
	}
}

static int add_cie(struct eh_frame_table *frames, uint32_t offset, struct byte_cursor cursor)
{
	struct eh_frame_cie common = {.offset = offset, .lsda_encoding = EH_POINTER_OMIT};
	uint8_t version = cursor_read_byte(&cursor);
	const char *text = cursor_read_string(&cursor);
	void *list;

	if (!text || (version != 1 && version != 3))
		return 0;
	common.code_align = (uint32_t)cursor_read_uleb128(&cursor);
	common.data_align = (int32_t)cursor_read_sleb128(&cursor);
	common.return_register =
		version == 1 ? cursor_read_byte(&cursor) : (uint8_t)cursor_read_uleb128(&cursor);
	uint64_t size = 0;
	struct byte_cursor after = cursor;
	if (*text == 'z') {
		size = cursor_read_uleb128(&after);
		cursor_skip_bytes(&after, size);
	}
	read_cie_augmentation(frames, &cursor, text, &common);
	if (cursor.failed || after.failed || (*text && *text != 'z'))
		return 0;
	common.cfa_program_offset = get_cursor_section_offset(frames, &after);
	common.cfa_program_size = (uint32_t)cursor_remaining_bytes(&after);
	list = grow_list_if_full(frames->cies, frames->cie_count, &frames->cie_capacity,
				 sizeof(common));
	if (!list)
		return -ENOMEM;
	frames->cies = list;
	frames->cies[frames->cie_count++] = common;
	return 0;
}

static int compare_cie_by_offset(const void *key, const void *element)
{
	uint32_t offset = *(const uint32_t *)key;
	const struct eh_frame_cie *common = element;

	return offset < common->offset ? -1 : offset > common->offset;
}

/* `offset`: of the word that leads back to the CIE. */
static int add_fde(struct eh_frame_table *frames, uint32_t offset, uint32_t back,
		   struct byte_cursor cursor)
{
	struct eh_frame_fde frame = {0};
	const struct eh_frame_cie *common;
	uint32_t key = offset - back;
	uint64_t vaddr;
	void *list;

	if (back > offset || !frames->cie_count)
		return 0;
	common = &frames->cies[frames->cie_count - 1];
	if (common->offset != key)
		common = bsearch(&key, frames->cies, frames->cie_count, sizeof(*common),
				 compare_cie_by_offset);
	if (!common)
		return 0;
	frame.cie_index = (uint32_t)(common - frames->cies);
	vaddr = frames->vaddr + get_cursor_section_offset(frames, &cursor);
	frame.vaddr = eh_frame_read_encoded_pointer(&cursor, common->pointer_encoding, vaddr);
	frame.size = read_raw_pointer_by_format(&cursor, common->pointer_encoding & 0x07);
	if (common->has_augmentation_size) {
		uint64_t size = cursor_read_uleb128(&cursor);
		struct byte_cursor lsda = cursor;
		cursor_skip_bytes(&cursor, size);
		vaddr = frames->vaddr + get_cursor_section_offset(frames, &lsda);
		if (size)
			frame.lsda_vaddr =
				eh_frame_read_encoded_pointer(&lsda, common->lsda_encoding, vaddr);
	}
	/* Without a size: functions that the linker dropped. */
	if (cursor.failed || !frame.size || frame.size > UINT32_MAX ||
	    frame.vaddr > UINT64_MAX - frame.size)
		return 0;
	frame.cfa_program_offset = get_cursor_section_offset(frames, &cursor);
	frame.cfa_program_size = (uint32_t)cursor_remaining_bytes(&cursor);
	list = grow_list_if_full(frames->list, frames->count, &frames->capacity, sizeof(frame));
	if (!list)
		return -ENOMEM;
	frames->list = list;
	frames->list[frames->count++] = frame;
	return 0;
}

static int read_cies_and_fdes(struct eh_frame_table *frames)
{
	struct byte_cursor cursor = create_eh_frame_cursor(frames, 0, frames->size);

	while (cursor_remaining_bytes(&cursor) >= 8) {
		uint32_t start = get_cursor_section_offset(frames, &cursor), id_at;
		uint64_t length = cursor_read_fixed_uint(&cursor, 4);
		struct byte_cursor entry;
		uint32_t back;
		int error;

		if (!length) /* ends of single object files stand in the middle, too */
			continue;
		if (length == UINT32_MAX)
			length = cursor_read_fixed_uint(&cursor, 8);
		id_at = get_cursor_section_offset(frames, &cursor);
		entry = cursor;
		if (!cursor_skip_bytes(&cursor, length))
			break;
		entry.end = cursor.at;
		back = (uint32_t)cursor_read_fixed_uint(&entry, 4);
		error = back ? add_fde(frames, id_at, back, entry) : add_cie(frames, start, entry);
		if (error)
			return error;
	}
	return 0;
}

static int compare_fde_by_address(const void *left, const void *right)
{
	const struct eh_frame_fde *a = left, *b = right;

	if (a->vaddr != b->vaddr)
		return a->vaddr < b->vaddr ? -1 : 1;
	return a->size > b->size ? -1 : a->size < b->size;
}

static void sort_fdes_by_address(struct eh_frame_table *frames)
{
	for (size_t i = 1; i < frames->count; i++) {
		if (compare_fde_by_address(&frames->list[i - 1], &frames->list[i]) > 0) {
			qsort(frames->list, frames->count, sizeof(*frames->list),
			      compare_fde_by_address);
			return;
		}
	}
}

/* By .eh_frame_hdr, which programs without section headers have: from there to the segment's end;
 * a zero length ends it for whoever wrote it, and garbage behind that is passed over. */
static bool find_eh_frame_by_header(const struct elf_file *file, uint64_t *ret_vaddr,
				    uint64_t *ret_size)
{
	uint8_t head[12];
	uint64_t offset, vaddr;

	for (size_t i = 0; i < file->segment_count; i++) {
		const Elf64_Phdr *header = &file->segments[i];
		struct byte_cursor cursor = {.at = head + 4, .end = head + sizeof(head)};
		if (header->p_type != PT_GNU_EH_FRAME ||
		    elf_read_bytes(file, header->p_offset, head, sizeof(head)))
			continue;
		vaddr = eh_frame_read_encoded_pointer(&cursor, head[1], header->p_vaddr + 4);
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

int eh_frame_table_read(const struct elf_file *file, struct eh_frame_table *ret)
{
	const struct elf_section *section = elf_section_find(file, ".eh_frame");
	uint64_t offset, size;
	int error;

	memset(ret, 0, sizeof(*ret));
	if (section && section->type != SHT_NOBITS) {
		ret->vaddr = section->address;
		size = section->size;
		offset = section->offset;
	} else if (!find_eh_frame_by_header(file, &ret->vaddr, &size) ||
		   !elf_vaddr_to_offset(file, ret->vaddr, &offset)) {
		return 0;
	}
	if (size > EH_FRAME_BYTES_MAX || offset > file->size || size > file->size - offset)
		return 0;
	ret->bytes = malloc(size + 1);
	if (!ret->bytes)
		return -ENOMEM;
	ret->size = size;
	if (elf_read_bytes(file, offset, ret->bytes, size)) {
		eh_frame_table_deinit(ret);
		return 0;
	}
	error = read_cies_and_fdes(ret);
	if (error)
		eh_frame_table_deinit(ret);
	else
		sort_fdes_by_address(ret);
	return error;
}

void eh_frame_table_deinit(struct eh_frame_table *frames)
{
	free(frames->bytes);
	free(frames->list);
	free(frames->cies);
	memset(frames, 0, sizeof(*frames));
}
