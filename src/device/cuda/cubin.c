/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names of the kernels in device code, which is an ELF file: functions in its symbol table that can
 * be entered from outside (STO_CUDA_ENTRY in st_other). Every number is checked; what is not such a
 * file has no names.
 */
#include <elf.h>
#include <string.h>

#include "device/cuda/cuda.h"

#define STO_CUDA_ENTRY 0x10

struct cubin_image {
	const unsigned char *bytes;
	size_t size;
};

static bool copy_from_image(const struct cubin_image *image, uint64_t offset, void *to, size_t size)
{
	if (offset > image->size || size > image->size - offset)
		return false;
	memcpy(to, image->bytes + offset, size);
	return true;
}

static bool read_section_header(const struct cubin_image *image, const Elf64_Ehdr *header,
				uint32_t number, Elf64_Shdr *section)
{
	return number < header->e_shnum && header->e_shentsize == sizeof(*section) &&
	       copy_from_image(image, header->e_shoff + (uint64_t)number * sizeof(*section),
			       section, sizeof(*section));
}

static bool section_lies_inside_image(const struct cubin_image *image, const Elf64_Shdr *section)
{
	return section->sh_offset <= image->size &&
	       section->sh_size <= image->size - section->sh_offset;
}

static void for_each_kernel_in_symbol_table(const struct cubin_image *image,
					    const Elf64_Shdr *table, const Elf64_Shdr *strings,
					    void (*each)(void *context, const char *name),
					    void *context)
{
	const char *text = (const char *)image->bytes + strings->sh_offset;

	for (uint64_t i = 0; i < table->sh_size / sizeof(Elf64_Sym); i++) {
		Elf64_Sym symbol;

		if (!copy_from_image(image, table->sh_offset + i * sizeof(symbol), &symbol,
				     sizeof(symbol)))
			return;
		if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC ||
		    (symbol.st_other & STO_CUDA_ENTRY) == 0 || symbol.st_name >= strings->sh_size ||
		    memchr(text + symbol.st_name, '\0', strings->sh_size - symbol.st_name) == NULL)
			continue;
		if (text[symbol.st_name] != '\0')
			each(context, text + symbol.st_name);
	}
}

void cubin_for_each_kernel(const void *bytes, size_t size,
			   void (*each)(void *context, const char *name), void *context)
{
	struct cubin_image image = {bytes, size};
	Elf64_Ehdr header;

	if (!copy_from_image(&image, 0, &header, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
		return;
	for (uint32_t i = 0; i < header.e_shnum; i++) {
		Elf64_Shdr table, strings;

		if (!read_section_header(&image, &header, i, &table) ||
		    table.sh_type != SHT_SYMTAB ||
		    !read_section_header(&image, &header, table.sh_link, &strings) ||
		    strings.sh_type != SHT_STRTAB || !section_lies_inside_image(&image, &strings))
			continue;
		for_each_kernel_in_symbol_table(&image, &table, &strings, each, context);
	}
}
