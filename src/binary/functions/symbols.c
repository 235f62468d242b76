/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the symbol tables of a file say about addresses of its code: that a function begins there,
 * that others can see it, that it is an IFUNC resolver, or that its name tells it must be left
 * alone. All names of an address count, not only the nicest (which is what binary/symbols/symbols.h
 * keeps).
 */
#include <errno.h>
#include <stdlib.h>

#include "binary/functions/private.h"
#include "binary/minidebug.h"

static int append_finder_symbol(struct function_finder *finder, const struct finder_symbol *symbol)
{
	if (finder->address_symbol_count == finder->address_symbol_capacity) {
		size_t capacity = finder->address_symbol_capacity
					  ? 2 * finder->address_symbol_capacity
					  : 1024;
		void *names = realloc(finder->address_symbols,
				      capacity * sizeof(*finder->address_symbols));
		if (!names)
			return -ENOMEM;
		finder->address_symbols = names;
		finder->address_symbol_capacity = capacity;
	}
	finder->address_symbols[finder->address_symbol_count++] = *symbol;
	return 0;
}

static int add_function_symbol(struct function_finder *finder, const Elf64_Sym *symbol,
			       const char *name)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);
	bool function = type == STT_FUNC || type == STT_GNU_IFUNC;
	char plain[64] = "";
	size_t length = strcspn(name, "@");
	struct finder_symbol found = {.vaddr = symbol->st_value, .size = symbol->st_size};

	if (symbol->st_shndx != SHN_UNDEF && finder_name_is_of_run_time_image(name))
		finder->functions->is_run_time_image = true;
	if (symbol->st_shndx == SHN_UNDEF || !finder_is_in_code(finder, symbol->st_value) ||
	    (!function && type != STT_NOTYPE))
		return 0;
	/* Without its version; longer ones are none that we know. */
	if (length < sizeof(plain) && name[length]) {
		memcpy(plain, name, length);
		plain[length] = 0;
		name = plain;
	}
	found.is_function = function;
	found.is_global = function && ELF64_ST_BIND(symbol->st_info) != STB_LOCAL;
	found.is_part = function && finder_name_is_cold_part(name);
	found.is_called_by_v8 = finder_name_is_called_by_v8(name);
	if (function && finder_name_is_v8_resolver_setter(name))
		finder->functions->v8_set_resolver_vaddr = symbol->st_value;
	if (finder_name_is_of_own_unwinder(name))
		finder->functions->unwinds_by_itself = true;
	found.reason = (uint8_t)(type == STT_GNU_IFUNC ? PLAN_RESOLVER
						       : finder_get_plan_reason_by_name(name));
	if (!function && !found.reason)
		return 0;
	return append_finder_symbol(finder, &found);
}

static int add_symbol_table(struct function_finder *finder, const struct elf_file *file,
			    const struct elf_section *section)
{
	struct elf_section_data table, names;
	int error = 0;

	if (section->link >= file->section_count || elf_section_read(file, section, &table))
		return 0;
	if (elf_section_read(file, &file->sections[section->link], &names)) {
		elf_section_data_deinit(&table);
		return 0;
	}
	for (size_t at = 0; !error && table.size - at >= sizeof(Elf64_Sym);
	     at += sizeof(Elf64_Sym)) {
		Elf64_Sym symbol;
		memcpy(&symbol, table.bytes + at, sizeof(symbol));
		if (symbol.st_name < names.size)
			error = add_function_symbol(finder, &symbol,
						    (const char *)names.bytes + symbol.st_name);
	}
	elf_section_data_deinit(&table);
	elf_section_data_deinit(&names);
	return error;
}

static int add_symbol_tables(struct function_finder *finder, const struct elf_file *file)
{
	int error = 0;

	for (size_t i = 0; !error && i < file->section_count; i++) {
		const struct elf_section *section = &file->sections[i];
		if (section->type == SHT_SYMTAB || section->type == SHT_DYNSYM)
			error = add_symbol_table(finder, file, section);
	}
	return error;
}

static int compare_symbol_by_address(const void *left, const void *right)
{
	const struct finder_symbol *a = left, *b = right;

	return a->vaddr < b->vaddr ? -1 : a->vaddr > b->vaddr;
}

static void merge_symbols_by_address(struct function_finder *finder)
{
	size_t kept = 0;

	if (!finder->address_symbol_count)
		return;
	qsort(finder->address_symbols, finder->address_symbol_count,
	      sizeof(*finder->address_symbols), compare_symbol_by_address);
	for (size_t i = 1; i < finder->address_symbol_count; i++) {
		const struct finder_symbol *symbol = &finder->address_symbols[i];
		struct finder_symbol *last = &finder->address_symbols[kept];
		if (symbol->vaddr != last->vaddr) {
			finder->address_symbols[++kept] = *symbol;
			continue;
		}
		if (symbol->size > last->size)
			last->size = symbol->size;
		if (symbol->reason > last->reason)
			last->reason = symbol->reason;
		/* A part and a function at one place: a function. */
		last->is_part = last->is_function && symbol->is_function
					? last->is_part && symbol->is_part
					: last->is_part || symbol->is_part;
		last->is_function |= symbol->is_function;
		last->is_global |= symbol->is_global;
		last->is_called_by_v8 |= symbol->is_called_by_v8;
	}
	finder->address_symbol_count = kept + 1;
}

/* Whoever looks up return addresses must be told where they are. */
static void set_plan_reason_of_v8_callees(struct function_finder *finder)
{
	for (size_t i = 0;
	     !finder->functions->v8_set_resolver_vaddr && i < finder->address_symbol_count; i++) {
		if (finder->address_symbols[i].is_called_by_v8 &&
		    !finder->address_symbols[i].reason)
			finder->address_symbols[i].reason = PLAN_READS_RETURN;
	}
}

int finder_read_symbols(struct function_finder *finder)
{
	struct elf_file *inner;
	int error = add_symbol_tables(finder, finder->file);

	if (!error && minidebug_open(finder->file, &inner) == 0) {
		error = add_symbol_tables(finder, inner);
		elf_close(inner);
	}
	if (error)
		return error;
	merge_symbols_by_address(finder);
	set_plan_reason_of_v8_callees(finder);
	return 0;
}
