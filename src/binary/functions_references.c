/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Addresses of code that stand in data: relocations, tables of constructors, landing pads, and in
 * programs that are not relocated any word that could be one.
 *
 * A table of labels (computed gotos, jump tables of absolute addresses) is told from a pointer to a
 * function by its neighbours: those of a table lead into the middle of functions.
 */
#include <errno.h>
#include <stdlib.h>

#include "binary/functions_internal.h"

#ifndef SHT_RELR
#define SHT_RELR 19
#endif

static bool is_label(const struct finder *finder, uint64_t value)
{
	return finder_in_code(finder, value) && !finder_is(finder, MARK_START, value);
}

static void mark_word(struct finder *finder, uint64_t value, uint64_t before, uint64_t after)
{
	if (!finder_in_code(finder, value))
		return;
	finder_mark(finder, MARK_TARGET, value);
	if (is_label(finder, before) || is_label(finder, after))
		finder_mark(finder, MARK_SUSPECT, value);
	else
		finder_mark(finder, MARK_ENTRY, value);
}

static uint64_t word_at(const struct finder *finder, uint64_t vaddr)
{
	size_t left;
	const uint8_t *bytes = functions_data(finder->functions, vaddr, &left);
	uint64_t value = 0;

	if (bytes && left >= sizeof(value))
		memcpy(&value, bytes, sizeof(value));
	return value;
}

/* ---- relocations ---- */

struct relocations {
	struct elf_data table, symbols, names;
};

static bool symbol_of(const struct relocations *relocations, uint64_t index, Elf64_Sym *ret)
{
	if (index >= relocations->symbols.size / sizeof(*ret))
		return false;
	memcpy(ret, relocations->symbols.bytes + index * sizeof(*ret), sizeof(*ret));
	return true;
}

static int add_twice_slot(struct finder *finder, const struct relocations *relocations,
			  const Elf64_Sym *symbol, uint64_t slot)
{
	uint64_t *slots;

	if (symbol->st_name >= relocations->names.size ||
	    finder_name_reason((const char *)relocations->names.bytes + symbol->st_name) !=
		    PLAN_RETURNS_TWICE)
		return 0;
	slots = realloc(finder->twice_slots, (finder->twice_slot_count + 1) * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	finder->twice_slots = slots;
	finder->twice_slots[finder->twice_slot_count++] = slot;
	return 0;
}

static Elf64_Rela relocation_at(const struct relocations *relocations, size_t index)
{
	Elf64_Rela relocation;

	memcpy(&relocation, relocations->table.bytes + index * sizeof(relocation),
	       sizeof(relocation));
	return relocation;
}

/* What a neighbouring word holds, when a relocation beside it says. */
static uint64_t neighbour(const struct relocations *relocations, size_t index, uint64_t offset)
{
	if (index >= relocations->table.size / sizeof(Elf64_Rela))
		return 0;
	Elf64_Rela relocation = relocation_at(relocations, index);
	return ELF64_R_TYPE(relocation.r_info) == R_X86_64_RELATIVE && relocation.r_offset == offset
		       ? (uint64_t)relocation.r_addend
		       : 0;
}

static int mark_relocation(struct finder *finder, const struct relocations *relocations,
			   size_t index)
{
	Elf64_Rela relocation = relocation_at(relocations, index);
	uint64_t addend = (uint64_t)relocation.r_addend;
	struct function *function;
	Elf64_Sym symbol = {0};

	switch (ELF64_R_TYPE(relocation.r_info)) {
	case R_X86_64_RELATIVE:
		mark_word(finder, addend,
			  neighbour(relocations, index - 1, relocation.r_offset - 8),
			  neighbour(relocations, index + 1, relocation.r_offset + 8));
		break;
	case R_X86_64_IRELATIVE:
		function = finder_function_at(finder, addend);
		if (function)
			function->reason = PLAN_RESOLVER;
		finder_mark_taken(finder, addend);
		break;
	case R_X86_64_64:
	case R_X86_64_GLOB_DAT:
	case R_X86_64_JUMP_SLOT:
		if (!symbol_of(relocations, ELF64_R_SYM(relocation.r_info), &symbol))
			break;
		if (symbol.st_shndx != SHN_UNDEF)
			finder_mark_taken(finder, symbol.st_value + addend);
		return add_twice_slot(finder, relocations, &symbol, relocation.r_offset);
	default:
		break;
	}
	return 0;
}

static int mark_relocations(struct finder *finder, const struct elf_section *section)
{
	const struct elf_file *file = finder->file;
	struct relocations relocations = {0};
	int error = 0;

	if (elf_section_read(file, section, &relocations.table))
		return 0;
	if (section->link < file->section_count &&
	    file->sections[section->link].type == SHT_DYNSYM) {
		const struct elf_section *symbols = &file->sections[section->link];
		if (elf_section_read(file, symbols, &relocations.symbols) == 0 &&
		    symbols->link < file->section_count &&
		    elf_section_read(file, &file->sections[symbols->link], &relocations.names))
			memset(&relocations.names, 0, sizeof(relocations.names));
	}
	for (size_t i = 0; !error && i < relocations.table.size / sizeof(Elf64_Rela); i++)
		error = mark_relocation(finder, &relocations, i);
	elf_data_deinit(&relocations.table);
	elf_data_deinit(&relocations.symbols);
	elf_data_deinit(&relocations.names);
	return error;
}

static void mark_packed_word(struct finder *finder, uint64_t vaddr)
{
	mark_word(finder, word_at(finder, vaddr), word_at(finder, vaddr - 8),
		  word_at(finder, vaddr + 8));
}

/* RELR: an address, then bit sets of the 63 words behind it. */
static void mark_packed(struct finder *finder, const struct elf_section *section)
{
	struct elf_data table;
	uint64_t where = 0;

	if (elf_section_read(finder->file, section, &table))
		return;
	for (size_t at = 0; table.size - at >= 8; at += 8) {
		uint64_t entry;
		memcpy(&entry, table.bytes + at, sizeof(entry));
		if (!(entry & 1)) {
			mark_packed_word(finder, entry);
			where = entry + 8;
			continue;
		}
		for (unsigned bit = 1; bit < 64; bit++) {
			if (entry >> bit & 1)
				mark_packed_word(finder, where + (bit - 1) * 8);
		}
		where += 63 * 8;
	}
	elf_data_deinit(&table);
}

/* ---- words of data ---- */

/* Without relocations at hand, every aligned word of data counts. In files of position-independent
 * code without section headers, the addends are in the (read-only) relocation tables, which are
 * data, too. */
static void mark_data(struct finder *finder)
{
	const struct functions *functions = finder->functions;

	for (size_t i = 0; i < functions->loaded_count; i++) {
		const struct code_range *range = &functions->loaded[i];
		uint64_t skip = -range->vaddr & 7, before, value, after;
		for (uint64_t at = skip; range->size >= 8 && at <= range->size - 8; at += 8) {
			memcpy(&value, range->bytes + at, sizeof(value));
			if (!finder_in_code(finder, value))
				continue;
			before = after = 0;
			if (at >= skip + 8)
				memcpy(&before, range->bytes + at - 8, sizeof(before));
			if (at + 16 <= range->size)
				memcpy(&after, range->bytes + at + 8, sizeof(after));
			mark_word(finder, value, before, after);
		}
	}
}

/* ---- landing pads ---- */

/* Itanium C++ ABI, exception handling tables (as GCC's unwind-pe.h and unwind-c.c read them). */
static void mark_landing_pads(struct finder *finder, const struct frame *frame)
{
	size_t left;
	const uint8_t *bytes = functions_data(finder->functions, frame->lsda, &left);
	struct cursor cursor = {.at = bytes, .end = bytes + (bytes ? left : 0)};
	uint64_t base = frame->vaddr, size;
	uint8_t encoding;

	if (!bytes)
		return;
	encoding = cursor_byte(&cursor);
	if (encoding != 0xff)
		base = frame_pointer(&cursor, encoding,
				     frame->lsda + (uint64_t)(cursor.at - bytes));
	if (cursor_byte(&cursor) != 0xff)
		cursor_uleb(&cursor);
	encoding = cursor_byte(&cursor);
	size = cursor_uleb(&cursor);
	if (cursor.failed || size > cursor_left(&cursor))
		return;
	cursor.end = cursor.at + size;
	while (cursor_left(&cursor)) {
		uint64_t pad;
		frame_pointer(&cursor, encoding & 0x0f, 0);
		frame_pointer(&cursor, encoding & 0x0f, 0);
		pad = frame_pointer(&cursor, encoding & 0x0f, 0);
		cursor_uleb(&cursor);
		if (pad && !cursor.failed) {
			finder_mark(finder, MARK_TARGET, base + pad);
			finder_mark(finder, MARK_SUSPECT, base + pad);
		}
	}
}

static int slot_compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

int finder_mark_references(struct finder *finder)
{
	const struct elf_file *file = finder->file;
	int error = 0;

	for (size_t i = 0; !error && i < file->section_count; i++) {
		const struct elf_section *section = &file->sections[i];
		if (!(section->flags & SHF_ALLOC))
			continue;
		if (section->type == SHT_RELA)
			error = mark_relocations(finder, section);
		else if (section->type == SHT_RELR)
			mark_packed(finder, section);
	}
	if (finder->absolute || !file->section_count)
		mark_data(finder);
	for (size_t i = 0; i < finder->frames.count; i++) {
		if (finder->frames.list[i].lsda)
			mark_landing_pads(finder, &finder->frames.list[i]);
	}
	for (size_t i = 0; i < finder->functions->count; i++)
		finder_mark(finder, MARK_TARGET, finder->functions->list[i].vaddr);
	finder_mark_taken(finder, finder->functions->entry);
	if (finder->twice_slot_count)
		qsort(finder->twice_slots, finder->twice_slot_count, sizeof(uint64_t),
		      slot_compare);
	return error;
}
