/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Finds .eh_frame in an ELF image. PT_GNU_EH_FRAME is preferred, because it survives stripping of
 * section headers and is there in an image in memory; sections are the fall-back for files linked
 * without --eh-frame-hdr. Everything read is checked against the image's size first.
 */
#include "core/unwind/image.h"

#include <elf.h>
#include <errno.h>

#include "core/unwind/dwarf.h"

/* Bytes [offset, offset + size) of the image, or NULL. */
static const uint8_t *fetch_image_bytes(const struct unwind_image *image, uint64_t offset,
					uint64_t size)
{
	if (offset > image->size || size > image->size - offset)
		return NULL;
	if (image->fetch && !image->fetch(image->context, offset, size))
		return NULL;
	return image->bytes + offset;
}

static const struct unwind_image_segment *find_segment_of_address(const struct unwind_image *image,
								  uint64_t address)
{
	for (uint32_t i = 0; i < image->segment_count; i++) {
		const struct unwind_image_segment *segment = &image->segments[i];

		if (address >= segment->address && address - segment->address < segment->size)
			return segment;
	}
	return NULL;
}

bool unwind_image_find_file_offset_of_code(const struct unwind_image *image, uint64_t address,
					   uint64_t *ret_offset, uint64_t *ret_size)
{
	const struct unwind_image_segment *segment = find_segment_of_address(image, address);

	if (!segment || !segment->executable)
		return false;
	*ret_offset = segment->offset + (address - segment->address);
	*ret_size = segment->size - (address - segment->address);
	return true;
}

static void add_image_segment(struct unwind_image *image, const Elf64_Phdr *program,
			      uint64_t lowest)
{
	struct unwind_image_segment *segment;
	uint64_t offset = image->mapped ? program->p_vaddr - lowest : program->p_offset;

	if (image->segment_count == UNWIND_IMAGE_SEGMENTS_MAX || offset >= image->size)
		return;
	segment = &image->segments[image->segment_count++];
	segment->address = program->p_vaddr;
	segment->offset = offset;
	segment->size = program->p_filesz;
	if (segment->size > image->size - offset)
		segment->size = image->size - offset;
	segment->executable = (program->p_flags & PF_X) != 0;
}

/* .eh_frame through the pointer in .eh_frame_hdr (LSB Core, 10.6.2). */
static bool find_eh_frame_by_header(struct unwind_image *image, uint64_t address, uint64_t size)
{
	const struct unwind_image_segment *segment = find_segment_of_address(image, address);
	struct dwarf_cursor cursor;
	uint64_t inside, frame;
	uint8_t encoding;

	if (!segment)
		return false;
	inside = address - segment->address;
	if (size > segment->size - inside)
		size = segment->size - inside;
	image->eh_frame_hdr = fetch_image_bytes(image, segment->offset + inside, size);
	if (!image->eh_frame_hdr || size < 4 || image->eh_frame_hdr[0] != 1)
		goto without;
	image->eh_frame_hdr_address = address;
	image->eh_frame_hdr_size = size;
	encoding = image->eh_frame_hdr[1];
	cursor = dwarf_cursor_init(image->eh_frame_hdr + 4, size - 4);
	frame = dwarf_read_encoded_pointer(&cursor, encoding, address + 4, address, false);
	segment = find_segment_of_address(image, frame);
	if (cursor.bad || !segment)
		goto without;
	inside = frame - segment->address;
	image->eh_frame_address = frame;
	image->eh_frame_size_max = segment->size - inside;
	image->eh_frame =
		fetch_image_bytes(image, segment->offset + inside, image->eh_frame_size_max);
	if (image->eh_frame)
		return true;
without:
	image->eh_frame_hdr = NULL;
	return false;
}

static bool section_name_is(const uint8_t *names, uint64_t size, uint64_t at, const char *name)
{
	for (; at < size; at++, name++) {
		if (names[at] != (uint8_t)*name)
			return false;
		if (!*name)
			return true;
	}
	return false;
}

const uint8_t *unwind_image_find_section(const struct unwind_image *image, const char *name,
					 uint64_t *ret_address, uint64_t *ret_size)
{
	const Elf64_Ehdr *elf =
		(const Elf64_Ehdr *)(const void *)fetch_image_bytes(image, 0, sizeof(*elf));
	const Elf64_Shdr *sections;
	const uint8_t *names;
	Elf64_Shdr strings;

	if (!elf || image->mapped || elf->e_shentsize != sizeof(Elf64_Shdr) ||
	    elf->e_shoff % 8 != 0 || elf->e_shstrndx >= elf->e_shnum)
		return NULL;
	sections = (const Elf64_Shdr *)(const void *)fetch_image_bytes(
		image, elf->e_shoff, (uint64_t)elf->e_shnum * sizeof(Elf64_Shdr));
	if (!sections)
		return NULL;
	strings = sections[elf->e_shstrndx];
	names = fetch_image_bytes(image, strings.sh_offset, strings.sh_size);
	if (!names)
		return NULL;
	for (uint32_t i = 0; i < elf->e_shnum; i++) {
		const Elf64_Shdr *section = &sections[i];

		if (section->sh_type == SHT_NOBITS || !(section->sh_flags & SHF_ALLOC) ||
		    !section_name_is(names, strings.sh_size, section->sh_name, name))
			continue;
		*ret_address = section->sh_addr;
		*ret_size = section->sh_size;
		return fetch_image_bytes(image, section->sh_offset, section->sh_size);
	}
	return NULL;
}

int unwind_image_parse(struct unwind_image *image)
{
	const Elf64_Ehdr *elf =
		(const Elf64_Ehdr *)(const void *)fetch_image_bytes(image, 0, sizeof(*elf));
	const Elf64_Phdr *programs, *header = NULL;
	uint64_t lowest = UINT64_MAX;

	if (!elf || elf->e_ident[EI_MAG0] != ELFMAG0 || elf->e_ident[EI_MAG1] != ELFMAG1 ||
	    elf->e_ident[EI_MAG2] != ELFMAG2 || elf->e_ident[EI_MAG3] != ELFMAG3 ||
	    elf->e_ident[EI_CLASS] != ELFCLASS64 || elf->e_ident[EI_DATA] != ELFDATA2LSB ||
	    elf->e_machine != EM_X86_64 || elf->e_phentsize != sizeof(Elf64_Phdr) ||
	    elf->e_phoff % 8 != 0)
		return -ENOEXEC;
	programs = (const Elf64_Phdr *)(const void *)fetch_image_bytes(
		image, elf->e_phoff, (uint64_t)elf->e_phnum * sizeof(Elf64_Phdr));
	if (!programs)
		return -ENOEXEC;
	for (uint32_t i = 0; i < elf->e_phnum; i++)
		if (programs[i].p_type == PT_LOAD && programs[i].p_vaddr < lowest)
			lowest = programs[i].p_vaddr;
	for (uint32_t i = 0; i < elf->e_phnum; i++) {
		if (programs[i].p_type == PT_LOAD)
			add_image_segment(image, &programs[i], lowest);
		else if (programs[i].p_type == PT_GNU_EH_FRAME)
			header = &programs[i];
	}
	if (header && find_eh_frame_by_header(image, header->p_vaddr, header->p_filesz))
		return 0;
	image->eh_frame = unwind_image_find_section(image, ".eh_frame", &image->eh_frame_address,
						    &image->eh_frame_size_max);
	return image->eh_frame ? 0 : -ENODATA;
}
