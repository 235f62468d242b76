/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Function symbols out of .symtab, .dynsym and .gnu_debugdata.
 *
 * A file's .symtab holds everything its .dynsym holds, so the latter is read only where the former
 * is missing. .gnu_debugdata (Fedora's "mini debug info") is an xz-compressed ELF file with a
 * .symtab of the functions that .dynsym lacks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/minidebug.h"
#include "binary/symbols/private.h"
#include "common/array.h"

/* Parts that the compiler split off a function or made beside it; their names are the worse choice
 * where another one stands at the same address. */
static bool name_is_part_or_clone(const char *name)
{
	static const char *const marks[] = {".cold",      ".part.",      ".isra.", ".constprop.",
					    ".lto_priv.", ".localalias", ".llvm."};
	const char *dot = strchr(name + 1, '.');
	for (size_t i = 0; dot && i < ARRAY_SIZE(marks); i++) {
		if (strstr(dot, marks[i]))
			return true;
	}
	return false;
}

static uint32_t compute_symbol_rank(const Elf64_Sym *symbol, const char *name)
{
	uint32_t rank = symbol->st_size ? 0 : SYMBOL_RANK_UNSIZED;
	if (ELF64_ST_TYPE(symbol->st_info) == STT_NOTYPE)
		rank += SYMBOL_RANK_NOTYPE;
	if (ELF64_ST_BIND(symbol->st_info) == STB_LOCAL)
		rank += SYMBOL_RANK_LOCAL;
	if (ELF64_ST_BIND(symbol->st_info) == STB_WEAK)
		rank += SYMBOL_RANK_WEAK;
	if (name_is_part_or_clone(name))
		rank += SYMBOL_RANK_CLONE;
	if (name[0] == '_' && name[1] != 'Z' && name[1] != 'R')
		rank += SYMBOL_RANK_UNDERSCORE *
			(1u + (name[1] == '_') + (name[1] && name[2] == '_'));
	return rank;
}

static bool symbol_is_wanted(const Elf64_Sym *symbol, const char *name)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);
	if (name[0] == 0)
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	/* Labels of assembly; but not mapping symbols ($x, $d) and the assembler's own. */
	return type == STT_NOTYPE && name[0] != '$' && name[0] != '.';
}

static int add_symbol_if_wanted(struct symbol_table *symbols, const struct elf_file *file,
				const Elf64_Sym *symbol, const char *name)
{
	if (!symbol_is_wanted(symbol, name) || symbol->st_shndx == SHN_UNDEF ||
	    symbol->st_shndx >= file->section_count)
		return 0;
	const struct elf_section *section = &file->sections[symbol->st_shndx];
	/* Ends of sections (_etext) and damaged values are outside their section. */
	if (!(section->flags & SHF_EXECINSTR) || symbol->st_value < section->address ||
	    symbol->st_value - section->address >= section->size ||
	    section->size > UINT64_MAX - section->address)
		return 0;
	uint64_t limit = section->address + section->size;
	uint64_t size = symbol->st_size;
	if (size > limit - symbol->st_value)
		size = limit - symbol->st_value;
	return symbols_append_candidate(symbols, &(struct symbol_candidate){
							 .symbol = {symbol->st_value, size, name},
							 .limit = limit,
							 .rank = compute_symbol_rank(symbol, name),
							 .has_no_size = symbol->st_size == 0,
						 });
}

static int add_wanted_symbols_of_table(struct symbol_table *symbols, const struct elf_file *file,
				       const struct elf_section_data *table,
				       const struct elf_section_data *names, bool *ret_any)
{
	size_t before = symbols->count;
	for (size_t at = 0; table->size - at >= sizeof(Elf64_Sym); at += sizeof(Elf64_Sym)) {
		Elf64_Sym symbol;
		memcpy(&symbol, table->bytes + at, sizeof(symbol));
		if (symbol.st_name >= names->size)
			continue;
		int error = add_symbol_if_wanted(symbols, file, &symbol,
						 (const char *)names->bytes + symbol.st_name);
		if (error)
			return error;
	}
	*ret_any = symbols->count > before;
	return 0;
}

static const struct elf_section *find_section_with_link_of_type(const struct elf_file *file,
								uint32_t type)
{
	for (size_t i = 0; i < file->section_count; i++) {
		if (file->sections[i].type == type && file->sections[i].link < file->section_count)
			return &file->sections[i];
	}
	return NULL;
}

/* Cuts version suffixes (name@VERSION) in our own copy of the string table, all in one sweep. */
static void cut_version_suffixes(struct elf_section_data *names)
{
	uint8_t *end = names->bytes + names->size;
	for (uint8_t *at = names->bytes; (at = memchr(at, '@', (size_t)(end - at))); at++) {
		if (at > names->bytes && at[-1] != 0)
			*at = 0;
	}
}

/* Damage is not an error here: there is just nothing to add. */
static int add_symbol_table(struct symbol_table *symbols, const struct elf_file *file,
			    uint32_t type, bool *ret_any)
{
	*ret_any = false;
	const struct elf_section *section = find_section_with_link_of_type(file, type);
	if (!section || file->type == ET_REL)
		return 0;
	struct elf_section_data table, names;
	int error = elf_section_read(file, section, &table);
	if (error)
		return error == -ENOMEM ? error : 0;
	error = elf_section_read(file, &file->sections[section->link], &names);
	if (error) {
		elf_section_data_deinit(&table);
		return error == -ENOMEM ? error : 0;
	}
	cut_version_suffixes(&names);
	error = symbols_adopt_name_buffer(symbols, names.bytes);
	if (!error)
		error = add_wanted_symbols_of_table(symbols, file, &table, &names, ret_any);
	elf_section_data_deinit(&table);
	return error;
}

static int add_minidebug_symbols(struct symbol_table *symbols, const struct elf_file *file)
{
	struct elf_file *inner;
	int error = minidebug_open(file, &inner);
	if (error)
		return error == -ENOMEM ? error : 0;
	error = add_symbol_table(symbols, inner, SHT_SYMTAB, &symbols->has_minidebug);
	elf_close(inner);
	return error;
}

int symbols_add_file(struct symbol_table *symbols, const struct elf_file *file)
{
	bool any;
	int error = add_symbol_table(symbols, file, SHT_SYMTAB, &any);
	if (error)
		return error;
	if (any) {
		symbols->has_symtab = true;
	} else {
		error = add_symbol_table(symbols, file, SHT_DYNSYM, &any);
		symbols->has_dynsym |= any;
		if (!error)
			error = add_minidebug_symbols(symbols, file);
		if (error)
			return error;
	}
	return symbols_add_plt_entries(symbols, file);
}
