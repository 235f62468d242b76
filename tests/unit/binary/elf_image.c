/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Layout: file header, one program header, section headers, text, symbols, strings.
 */
#include "elf_image.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum section { SECTION_NULL, SECTION_TEXT, SECTION_SYMTAB, SECTION_STRTAB, SECTION_COUNT };

struct layout {
	size_t segments, sections, text, symbols, strings, size;
};

static struct layout layout_of(const struct image_symbol *symbols, size_t count)
{
	struct layout layout = {.segments = sizeof(Elf64_Ehdr)};
	layout.sections = layout.segments + sizeof(Elf64_Phdr);
	layout.text = layout.sections + SECTION_COUNT * sizeof(Elf64_Shdr);
	layout.symbols = layout.text + IMAGE_TEXT_SIZE;
	layout.strings = layout.symbols + (count + 1) * sizeof(Elf64_Sym);
	layout.size = layout.strings + 1;
	for (size_t i = 0; i < count; i++)
		layout.size += strlen(symbols[i].name) + 1;
	return layout;
}

static void fill_headers(uint8_t *image, const struct layout *layout)
{
	Elf64_Ehdr *header = (Elf64_Ehdr *)image;
	memcpy(header->e_ident, ELFMAG, SELFMAG);
	header->e_ident[EI_CLASS] = ELFCLASS64;
	header->e_ident[EI_DATA] = ELFDATA2LSB;
	header->e_ident[EI_VERSION] = EV_CURRENT;
	header->e_type = ET_DYN;
	header->e_machine = EM_X86_64;
	header->e_phoff = layout->segments;
	header->e_phentsize = sizeof(Elf64_Phdr);
	header->e_phnum = 1;
	header->e_shoff = layout->sections;
	header->e_shentsize = sizeof(Elf64_Shdr);
	header->e_shnum = SECTION_COUNT;
	Elf64_Phdr *segment = (Elf64_Phdr *)(image + layout->segments);
	segment->p_type = PT_LOAD;
	segment->p_flags = PF_R | PF_X;
	segment->p_offset = layout->text;
	segment->p_vaddr = IMAGE_TEXT;
	segment->p_filesz = segment->p_memsz = IMAGE_TEXT_SIZE;
	Elf64_Shdr *sections = (Elf64_Shdr *)(image + layout->sections);
	sections[SECTION_TEXT] = (Elf64_Shdr){.sh_type = SHT_PROGBITS,
					      .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
					      .sh_addr = IMAGE_TEXT,
					      .sh_offset = layout->text,
					      .sh_size = IMAGE_TEXT_SIZE};
	sections[SECTION_SYMTAB] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
						.sh_link = SECTION_STRTAB,
						.sh_offset = layout->symbols,
						.sh_size = layout->strings - layout->symbols,
						.sh_entsize = sizeof(Elf64_Sym)};
	sections[SECTION_STRTAB] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
						.sh_offset = layout->strings,
						.sh_size = layout->size - layout->strings};
}

uint8_t *elf_image(const struct image_symbol *symbols, size_t count, size_t *ret_size)
{
	struct layout layout = layout_of(symbols, count);
	uint8_t *image = calloc(1, layout.size);
	if (!image)
		abort();
	fill_headers(image, &layout);
	size_t name = 1;
	for (size_t i = 0; i < count; i++) {
		Elf64_Sym symbol = {
			.st_name = (Elf64_Word)name,
			.st_info =
				(unsigned char)ELF64_ST_INFO(symbols[i].binding, symbols[i].type),
			.st_shndx = symbols[i].section ? symbols[i].section : SECTION_TEXT,
			.st_value = symbols[i].address,
			.st_size = symbols[i].size,
		};
		memcpy(image + layout.symbols + (i + 1) * sizeof(symbol), &symbol, sizeof(symbol));
		size_t length = strlen(symbols[i].name) + 1;
		memcpy(image + layout.strings + name, symbols[i].name, length);
		name += length;
	}
	*ret_size = layout.size;
	return image;
}
