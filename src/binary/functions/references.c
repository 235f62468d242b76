/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Addresses of code that stand in data: relocations, tables of constructors, landing pads, and in
 * programs that are not relocated any word that could be one.
 *
 * A table of labels (computed gotos, jump tables of absolute addresses) is distinguished from a
 * pointer to a function by its neighbours: those of a table lead into the middle of functions.
 */
#include "binary/functions/private.h"

#ifndef SHT_RELR
#define SHT_RELR 19
#endif

static bool is_code_address_inside_function(const struct function_finder *finder, uint64_t value)
{
	return finder_is_in_code(finder, value) &&
	       !finder_has_mark(finder, MARK_FUNCTION_START, value);
}

static void mark_code_address_in_data(struct function_finder *finder, uint64_t value,
				      uint64_t before, uint64_t after)
{
	if (!finder_is_in_code(finder, value))
		return;
	finder_mark_address(finder, MARK_CONTROL_TARGET, value);
	if (is_code_address_inside_function(finder, before) ||
	    is_code_address_inside_function(finder, after))
		finder_mark_address(finder, MARK_PROBABLE_FUNCTION_PART, value);
	else
		finder_mark_address(finder, MARK_CALLED_OR_ADDRESS_TAKEN, value);
}

static uint64_t read_data_word(const struct function_finder *finder, uint64_t vaddr)
{
	size_t left;
	const uint8_t *bytes = functions_get_loaded_bytes_at(finder->functions, vaddr, &left);
	uint64_t value = 0;

	if (bytes && left >= sizeof(value))
		memcpy(&value, bytes, sizeof(value));
	return value;
}

/* ---- relocations ---- */

struct relocation_table {
	struct elf_section_data table, symbols, symbol_strings;
};

static bool read_relocation_symbol(const struct relocation_table *relocations, uint64_t index,
				   Elf64_Sym *ret)
{
	if (index >= relocations->symbols.size / sizeof(*ret))
		return false;
	memcpy(ret, relocations->symbols.bytes + index * sizeof(*ret), sizeof(*ret));
	return true;
}

static int add_import_slot_of_symbol(struct function_finder *finder,
				     const struct relocation_table *relocations,
				     const Elf64_Sym *symbol, uint64_t slot)
{
	if (symbol->st_name >= relocations->symbol_strings.size)
		return 0;
	return finder_add_import_slot(
		finder, (const char *)relocations->symbol_strings.bytes + symbol->st_name, slot);
}

static Elf64_Rela copy_relocation_at(const struct relocation_table *relocations, size_t index)
{
	Elf64_Rela relocation;

	memcpy(&relocation, relocations->table.bytes + index * sizeof(relocation),
	       sizeof(relocation));
	return relocation;
}

/* What a neighbouring word holds, when a relocation beside it says. */
static uint64_t get_neighbour_relocation_addend(const struct relocation_table *relocations,
						size_t index, uint64_t offset)
{
	if (index >= relocations->table.size / sizeof(Elf64_Rela))
		return 0;
	Elf64_Rela relocation = copy_relocation_at(relocations, index);
	return ELF64_R_TYPE(relocation.r_info) == R_X86_64_RELATIVE && relocation.r_offset == offset
		       ? (uint64_t)relocation.r_addend
		       : 0;
}

static int mark_target_of_relocation(struct function_finder *finder,
				     const struct relocation_table *relocations, size_t index)
{
	Elf64_Rela relocation = copy_relocation_at(relocations, index);
	uint64_t addend = (uint64_t)relocation.r_addend;
	struct function *function;
	Elf64_Sym symbol = {0};

	switch (ELF64_R_TYPE(relocation.r_info)) {
	case R_X86_64_RELATIVE:
		mark_code_address_in_data(finder, addend,
					  get_neighbour_relocation_addend(relocations, index - 1,
									  relocation.r_offset - 8),
					  get_neighbour_relocation_addend(relocations, index + 1,
									  relocation.r_offset + 8));
		return finder_add_code_slot_if_in_got(finder, relocation.r_offset, addend);
	case R_X86_64_IRELATIVE:
		function = finder_get_function_starting_at(finder, addend);
		if (function)
			function->reason = PLAN_RESOLVER;
		finder_mark_address_taken(finder, addend);
		break;
	case R_X86_64_64:
	case R_X86_64_GLOB_DAT:
	case R_X86_64_JUMP_SLOT:
		if (!read_relocation_symbol(relocations, ELF64_R_SYM(relocation.r_info), &symbol))
			break;
		if (symbol.st_shndx != SHN_UNDEF) {
			int error = finder_add_code_slot_if_in_got(finder, relocation.r_offset,
								   symbol.st_value + addend);

			if (error)
				return error;
			finder_mark_address_taken(finder, symbol.st_value + addend);
		}
		return add_import_slot_of_symbol(finder, relocations, &symbol, relocation.r_offset);
	default:
		break;
	}
	return 0;
}

static int mark_targets_of_relocations(struct function_finder *finder,
				       const struct elf_section *section)
{
	const struct elf_file *file = finder->file;
	struct relocation_table relocations = {0};
	int error = 0;

	if (elf_section_read(file, section, &relocations.table))
		return 0;
	if (section->link < file->section_count &&
	    file->sections[section->link].type == SHT_DYNSYM) {
		const struct elf_section *symbols = &file->sections[section->link];
		if (elf_section_read(file, symbols, &relocations.symbols) == 0 &&
		    symbols->link < file->section_count &&
		    elf_section_read(file, &file->sections[symbols->link],
				     &relocations.symbol_strings))
			memset(&relocations.symbol_strings, 0, sizeof(relocations.symbol_strings));
	}
	for (size_t i = 0; !error && i < relocations.table.size / sizeof(Elf64_Rela); i++)
		error = mark_target_of_relocation(finder, &relocations, i);
	elf_section_data_deinit(&relocations.table);
	elf_section_data_deinit(&relocations.symbols);
	elf_section_data_deinit(&relocations.symbol_strings);
	return error;
}

static void mark_code_address_in_relocated_word(struct function_finder *finder, uint64_t vaddr)
{
	mark_code_address_in_data(finder, read_data_word(finder, vaddr),
				  read_data_word(finder, vaddr - 8),
				  read_data_word(finder, vaddr + 8));
}

/* RELR: an address, then bit sets of the 63 words behind it. */
static void mark_targets_of_relr_section(struct function_finder *finder,
					 const struct elf_section *section)
{
	struct elf_section_data table;
	uint64_t where = 0;

	if (elf_section_read(finder->file, section, &table))
		return;
	for (size_t at = 0; table.size - at >= 8; at += 8) {
		uint64_t entry;
		memcpy(&entry, table.bytes + at, sizeof(entry));
		if (!(entry & 1)) {
			mark_code_address_in_relocated_word(finder, entry);
			where = entry + 8;
			continue;
		}
		for (unsigned bit = 1; bit < 64; bit++) {
			if (entry >> bit & 1)
				mark_code_address_in_relocated_word(finder, where + (bit - 1) * 8);
		}
		where += 63 * 8;
	}
	elf_section_data_deinit(&table);
}

/* ---- words of data ---- */

/* Without relocations at hand, every aligned word of data counts. In files of position-independent
 * code without section headers, the addends are in the (read-only) relocation tables, which are
 * data, too. */
static void mark_code_addresses_in_all_data(struct function_finder *finder)
{
	const struct functions *functions = finder->functions;

	for (size_t i = 0; i < functions->loaded_range_count; i++) {
		const struct loaded_byte_range *range = &functions->loaded_ranges[i];
		uint64_t skip = -range->vaddr & 7, before, value, after;
		for (uint64_t at = skip; range->size >= 8 && at <= range->size - 8; at += 8) {
			memcpy(&value, range->bytes + at, sizeof(value));
			if (!finder_is_in_code(finder, value))
				continue;
			before = after = 0;
			if (at >= skip + 8)
				memcpy(&before, range->bytes + at - 8, sizeof(before));
			if (at + 16 <= range->size)
				memcpy(&after, range->bytes + at + 8, sizeof(after));
			mark_code_address_in_data(finder, value, before, after);
		}
	}
}

/* ---- landing pads ---- */

/* Itanium C++ ABI, exception handling tables (as GCC's unwind-pe.h and unwind-c.c read them). */
static void mark_landing_pads(struct function_finder *finder, const struct eh_frame_fde *frame)
{
	size_t left;
	const uint8_t *bytes =
		functions_get_loaded_bytes_at(finder->functions, frame->lsda_vaddr, &left);
	struct byte_cursor cursor = {.at = bytes, .end = bytes + (bytes ? left : 0)};
	uint64_t base = frame->vaddr, size;
	uint8_t encoding;

	if (!bytes)
		return;
	encoding = cursor_read_byte(&cursor);
	if (encoding != 0xff)
		base = eh_frame_read_encoded_pointer(
			&cursor, encoding, frame->lsda_vaddr + (uint64_t)(cursor.at - bytes));
	if (cursor_read_byte(&cursor) != 0xff)
		cursor_read_uleb128(&cursor);
	encoding = cursor_read_byte(&cursor);
	size = cursor_read_uleb128(&cursor);
	if (cursor.failed || size > cursor_remaining_bytes(&cursor))
		return;
	cursor.end = cursor.at + size;
	while (cursor_remaining_bytes(&cursor)) {
		uint64_t pad;
		eh_frame_read_encoded_pointer(&cursor, encoding & 0x0f, 0);
		eh_frame_read_encoded_pointer(&cursor, encoding & 0x0f, 0);
		pad = eh_frame_read_encoded_pointer(&cursor, encoding & 0x0f, 0);
		cursor_read_uleb128(&cursor);
		if (pad && !cursor.failed) {
			finder_mark_address(finder, MARK_CONTROL_TARGET, base + pad);
			finder_mark_address(finder, MARK_PROBABLE_FUNCTION_PART, base + pad);
		}
	}
}

int finder_mark_references(struct function_finder *finder)
{
	const struct elf_file *file = finder->file;
	int error = 0;

	for (size_t i = 0; !error && i < file->section_count; i++) {
		const struct elf_section *section = &file->sections[i];
		if (!(section->flags & SHF_ALLOC))
			continue;
		if (section->type == SHT_RELA)
			error = mark_targets_of_relocations(finder, section);
		else if (section->type == SHT_RELR)
			mark_targets_of_relr_section(finder, section);
	}
	if (finder->has_absolute_addresses || !file->section_count)
		mark_code_addresses_in_all_data(finder);
	for (size_t i = 0; i < finder->frames.count; i++) {
		if (finder->frames.list[i].lsda_vaddr)
			mark_landing_pads(finder, &finder->frames.list[i]);
	}
	for (size_t i = 0; i < finder->functions->count; i++)
		finder_mark_address(finder, MARK_CONTROL_TARGET, finder->functions->list[i].vaddr);
	finder_mark_address_taken(finder, finder->functions->entry);
	return error ? error : finder_find_stubs_of_imports(finder);
}
