/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Fuzzes the ELF reader and the symbol table: whatever the bytes are, everything that can be asked
 * of them is asked.
 */
#include <stdint.h>
#include <stdlib.h>

#include "binary/elf.h"
#include "binary/symbols/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask_sections(const struct elf_file *file)
{
	for (size_t i = 0; i < file->section_count; i++) {
		struct elf_section_data contents;
		if (elf_section_read(file, &file->sections[i], &contents) == 0)
			elf_section_data_deinit(&contents);
	}
}

static void ask_links(const struct elf_file *file)
{
	char *name;
	uint32_t crc, build_id_size;
	uint8_t build_id[ELF_BUILD_ID_SIZE_MAX];
	if (elf_read_debuglink(file, &name, &crc) == 0)
		free(name);
	if (elf_read_debugaltlink(file, &name, build_id, &build_id_size) == 0)
		free(name);
	elf_compute_file_crc(file, &crc);
}

static void ask_symbols(const struct elf_file *file)
{
	struct symbol_table *symbols;
	if (symbols_create(&symbols))
		return;
	if (symbols_add_file(symbols, file) == 0 && symbols_sort_and_flatten(symbols) == 0) {
		for (size_t i = 0; i < symbols_get_count(symbols); i++) {
			const struct symbol *symbol = symbols_get_nth(symbols, i);
			const struct symbol *found =
				symbols_find_at_address(symbols, symbol->address);
			if (found && (found->address > symbol->address ||
				      symbol->address - found->address >= found->size))
				abort();
		}
	}
	symbols_destroy(symbols);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_file *file;
	struct problem problem;
	if (elf_open_memory(data, size, "input", &file, &problem))
		return 0;
	for (uint64_t offset = 0; offset < size; offset += 64) {
		uint64_t address, back;
		if (elf_offset_to_vaddr(file, offset, &address))
			elf_vaddr_to_offset(file, address, &back);
	}
	ask_sections(file);
	ask_links(file);
	ask_symbols(file);
	elf_close(file);
	return 0;
}
