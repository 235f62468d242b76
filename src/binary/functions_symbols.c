/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the symbol tables of a file say about addresses of its code: that a function begins there,
 * that others can see it, that it is an IFUNC resolver, or that its name tells it must be left
 * alone. All names of an address count, not only the nicest (which is what symbols.h keeps).
 */
#include <errno.h>
#include <stdlib.h>

#include "binary/functions_internal.h"
#include "binary/minidebug.h"

static int append(struct finder *finder, const struct finder_symbol *symbol)
{
	if (finder->name_count == finder->name_capacity) {
		size_t capacity = finder->name_capacity ? 2 * finder->name_capacity : 1024;
		void *names = realloc(finder->names, capacity * sizeof(*finder->names));
		if (!names)
			return -ENOMEM;
		finder->names = names;
		finder->name_capacity = capacity;
	}
	finder->names[finder->name_count++] = *symbol;
	return 0;
}

static int add_symbol(struct finder *finder, const Elf64_Sym *symbol, const char *name)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);
	bool function = type == STT_FUNC || type == STT_GNU_IFUNC;
	char plain[64] = "";
	size_t length = strcspn(name, "@");
	struct finder_symbol found = {.vaddr = symbol->st_value, .size = symbol->st_size};

	if (symbol->st_shndx == SHN_UNDEF || !finder_in_code(finder, symbol->st_value) ||
	    (!function && type != STT_NOTYPE))
		return 0;
	/* Without its version; longer ones are none that we know. */
	if (length < sizeof(plain) && name[length]) {
		memcpy(plain, name, length);
		plain[length] = 0;
		name = plain;
	}
	found.function = function;
	found.global = function && ELF64_ST_BIND(symbol->st_info) != STB_LOCAL;
	found.part = function && finder_name_is_part(name);
	found.called = finder_name_is_called(name);
	if (function && finder_name_sets_resolver(name))
		finder->functions->set_resolver = symbol->st_value;
	found.reason = (uint8_t)(type == STT_GNU_IFUNC ? PLAN_RESOLVER : finder_name_reason(name));
	if (!function && !found.reason)
		return 0;
	return append(finder, &found);
}

static int add_table(struct finder *finder, const struct elf_file *file,
		     const struct elf_section *section)
{
	struct elf_data table, names;
	int error = 0;

	if (section->link >= file->section_count || elf_section_read(file, section, &table))
		return 0;
	if (elf_section_read(file, &file->sections[section->link], &names)) {
		elf_data_deinit(&table);
		return 0;
	}
	for (size_t at = 0; !error && table.size - at >= sizeof(Elf64_Sym);
	     at += sizeof(Elf64_Sym)) {
		Elf64_Sym symbol;
		memcpy(&symbol, table.bytes + at, sizeof(symbol));
		if (symbol.st_name < names.size)
			error = add_symbol(finder, &symbol,
					   (const char *)names.bytes + symbol.st_name);
	}
	elf_data_deinit(&table);
	elf_data_deinit(&names);
	return error;
}

static int add_tables(struct finder *finder, const struct elf_file *file)
{
	int error = 0;

	for (size_t i = 0; !error && i < file->section_count; i++) {
		const struct elf_section *section = &file->sections[i];
		if (section->type == SHT_SYMTAB || section->type == SHT_DYNSYM)
			error = add_table(finder, file, section);
	}
	return error;
}

static int symbol_compare(const void *left, const void *right)
{
	const struct finder_symbol *a = left, *b = right;

	return a->vaddr < b->vaddr ? -1 : a->vaddr > b->vaddr;
}

static void merge(struct finder *finder)
{
	size_t kept = 0;

	if (!finder->name_count)
		return;
	qsort(finder->names, finder->name_count, sizeof(*finder->names), symbol_compare);
	for (size_t i = 1; i < finder->name_count; i++) {
		const struct finder_symbol *symbol = &finder->names[i];
		struct finder_symbol *last = &finder->names[kept];
		if (symbol->vaddr != last->vaddr) {
			finder->names[++kept] = *symbol;
			continue;
		}
		if (symbol->size > last->size)
			last->size = symbol->size;
		if (symbol->reason > last->reason)
			last->reason = symbol->reason;
		/* A part and a function at one place: a function. */
		last->part = last->function && symbol->function ? last->part && symbol->part
								: last->part || symbol->part;
		last->function |= symbol->function;
		last->global |= symbol->global;
		last->called |= symbol->called;
	}
	finder->name_count = kept + 1;
}

/* Whoever looks up return addresses must be told where they are. */
static void decide_called(struct finder *finder)
{
	for (size_t i = 0; !finder->functions->set_resolver && i < finder->name_count; i++) {
		if (finder->names[i].called && !finder->names[i].reason)
			finder->names[i].reason = PLAN_READS_RETURN;
	}
}

int finder_read_symbols(struct finder *finder)
{
	struct elf_file *inner;
	int error = add_tables(finder, finder->file);

	if (!error && minidebug_open(finder->file, &inner) == 0) {
		error = add_tables(finder, inner);
		elf_close(inner);
	}
	if (error)
		return error;
	merge(finder);
	decide_called(finder);
	return 0;
}
