/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions of other files that a hooked caller must be careful with, and what leads to them: words
 * of the GOT and of data, by relocations, and stubs of procedure linkage tables, by those words.
 */
#include <errno.h>
#include <stdlib.h>

#include "binary/functions/private.h"
#include "common/array.h"

struct known_import {
	const char *name;
	enum finder_import_kind kind;
};

/* Sorted by strcmp. Who calls them decides what dlsym finds (RTLD_NEXT), where dlopen looks and
 * what dl_iterate_phdr goes through (namespaces): dlopen(3), dlsym(3). */
static const struct known_import known_imports[] = {
	{"_Unwind_GetCFA", IMPORT_FRAME_ADDRESS}, {"__libc_dlopen_mode", IMPORT_READS_CALLER},
	{"__libc_dlsym", IMPORT_READS_CALLER},    {"__memcpy_chk", IMPORT_COPIES_MEMORY},
	{"__memmove_chk", IMPORT_COPIES_MEMORY},  {"__mempcpy_chk", IMPORT_COPIES_MEMORY},
	{"dl_iterate_phdr", IMPORT_READS_CALLER}, {"dlmopen", IMPORT_READS_CALLER},
	{"dlopen", IMPORT_READS_CALLER},          {"dlsym", IMPORT_READS_CALLER},
	{"dlvsym", IMPORT_READS_CALLER},          {"memcpy", IMPORT_COPIES_MEMORY},
	{"memmove", IMPORT_COPIES_MEMORY},        {"mempcpy", IMPORT_COPIES_MEMORY},
	{"pwrite", IMPORT_COPIES_MEMORY},         {"pwrite64", IMPORT_COPIES_MEMORY},
	{"write", IMPORT_COPIES_MEMORY},
};

static int compare_known_import_by_name(const void *key, const void *element)
{
	return strcmp(key, ((const struct known_import *)element)->name);
}

enum finder_import_kind finder_get_import_kind_by_name(const char *name)
{
	const struct known_import *known =
		bsearch(name, known_imports, ARRAY_SIZE(known_imports), sizeof(known_imports[0]),
			compare_known_import_by_name);

	if (known)
		return known->kind;
	return finder_get_plan_reason_by_name(name) == PLAN_RETURNS_TWICE ? IMPORT_RETURNS_TWICE
									  : IMPORT_OTHER;
}

static int add_import_place(struct finder_import_list *imports, uint64_t vaddr,
			    enum finder_import_kind kind)
{
	if (imports->count == imports->capacity) {
		size_t wanted = imports->capacity ? 2 * imports->capacity : 16;
		void *list = realloc(imports->list, wanted * sizeof(*imports->list));

		if (!list)
			return -ENOMEM;
		imports->list = list;
		imports->capacity = wanted;
	}
	imports->list[imports->count++] = (struct finder_import_place){vaddr, kind};
	return 0;
}

int finder_add_import_slot(struct function_finder *finder, const char *name, uint64_t slot)
{
	enum finder_import_kind kind = finder_get_import_kind_by_name(name);

	return kind == IMPORT_OTHER ? 0 : add_import_place(&finder->import_slots, slot, kind);
}

void finder_find_got(struct function_finder *finder)
{
	const struct elf_file *file = finder->file;

	for (size_t i = 0; i < file->section_count && finder->got_count < GOT_SECTIONS_MAX; i++) {
		const struct elf_section *section = &file->sections[i];

		if (!strncmp(section->name, ".got", 4))
			finder->got[finder->got_count++] =
				(struct finder_got_section){section->address, section->size};
	}
}

static bool is_in_got(const struct function_finder *finder, uint64_t vaddr)
{
	for (unsigned i = 0; i < finder->got_count; i++) {
		if (vaddr - finder->got[i].vaddr < finder->got[i].size)
			return true;
	}
	return false;
}

int finder_add_code_slot_if_in_got(struct function_finder *finder, uint64_t slot, uint64_t target)
{
	if (!finder_is_in_code(finder, target) || !is_in_got(finder, slot))
		return 0;
	if (finder->code_slot_count == finder->code_slot_capacity) {
		size_t wanted = finder->code_slot_capacity ? 2 * finder->code_slot_capacity : 64;
		void *list = realloc(finder->code_slots, wanted * sizeof(*finder->code_slots));

		if (!list)
			return -ENOMEM;
		finder->code_slots = list;
		finder->code_slot_capacity = wanted;
	}
	finder->code_slots[finder->code_slot_count++] = (struct finder_code_slot){slot, target};
	return 0;
}

static int compare_code_slot_by_address(const void *left, const void *right)
{
	uint64_t a = ((const struct finder_code_slot *)left)->vaddr,
		 b = ((const struct finder_code_slot *)right)->vaddr;

	return a < b ? -1 : a > b;
}

static int compare_code_slot_to_address(const void *key, const void *element)
{
	uint64_t a = *(const uint64_t *)key, b = ((const struct finder_code_slot *)element)->vaddr;

	return a < b ? -1 : a > b;
}

uint64_t finder_get_code_address_in_slot(const struct function_finder *finder, uint64_t vaddr)
{
	const struct finder_code_slot *slot =
		finder->code_slot_count
			? bsearch(&vaddr, finder->code_slots, finder->code_slot_count,
				  sizeof(*finder->code_slots), compare_code_slot_to_address)
			: NULL;

	return slot ? slot->target : 0;
}

static int compare_import_place_by_address(const void *left, const void *right)
{
	uint64_t a = ((const struct finder_import_place *)left)->vaddr,
		 b = ((const struct finder_import_place *)right)->vaddr;

	return a < b ? -1 : a > b;
}

static void sort_import_places(struct finder_import_list *imports)
{
	if (imports->count)
		qsort(imports->list, imports->count, sizeof(*imports->list),
		      compare_import_place_by_address);
}

enum finder_import_kind finder_get_import_at(const struct finder_import_list *imports,
					     uint64_t vaddr)
{
	size_t low = 0, high = imports->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (imports->list[middle].vaddr < vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < imports->count && imports->list[low].vaddr == vaddr ? imports->list[low].kind
									 : IMPORT_OTHER;
}

enum finder_import_kind finder_get_import_of_branch(const struct function_finder *finder,
						    const struct instruction *instruction)
{
	switch (instruction->flow) {
	case INSTRUCTION_JUMP:
	case INSTRUCTION_BRANCH:
	case INSTRUCTION_CALL:
		return finder_get_import_at(&finder->import_stubs, instruction->target);
	case INSTRUCTION_JUMP_INDIRECT:
	case INSTRUCTION_CALL_INDIRECT:
		return instruction->is_rip_relative
			       ? finder_get_import_at(&finder->import_slots, instruction->target)
			       : IMPORT_OTHER;
	default:
		return IMPORT_OTHER;
	}
}

/* Stubs are entered at their first instruction, or at their second behind endbr64. */
static int find_stubs_in_section(struct function_finder *finder, const struct elf_section *section)
{
	struct instruction instruction;
	size_t left = 0;
	const uint8_t *bytes =
		functions_get_code_bytes_at(finder->functions, section->address, &left);
	int error = 0;

	for (size_t at = 0; !error && bytes && at < left && at < section->size;
	     at += instruction.length) {
		uint64_t vaddr = section->address + at, first = vaddr & ~(uint64_t)15;
		enum finder_import_kind kind;

		if (!instruction_decode(bytes + at, left - at, vaddr, &instruction)) {
			instruction.length = 1;
			continue;
		}
		if (instruction.flow != INSTRUCTION_JUMP_INDIRECT || !instruction.is_rip_relative)
			continue;
		kind = finder_get_import_at(&finder->import_slots, instruction.target);
		if (kind == IMPORT_OTHER)
			continue;
		error = add_import_place(&finder->import_stubs, vaddr, kind);
		if (!error && first != vaddr)
			error = add_import_place(&finder->import_stubs, first, kind);
	}
	return error;
}

int finder_find_stubs_of_imports(struct function_finder *finder)
{
	const struct elf_file *file = finder->file;
	int error = 0;

	sort_import_places(&finder->import_slots);
	if (finder->code_slot_count)
		qsort(finder->code_slots, finder->code_slot_count, sizeof(*finder->code_slots),
		      compare_code_slot_by_address);
	for (size_t i = 0; !error && finder->import_slots.count && i < file->section_count; i++) {
		if (!strncmp(file->sections[i].name, ".plt", 4))
			error = find_stubs_in_section(finder, &file->sections[i]);
	}
	sort_import_places(&finder->import_stubs);
	return error;
}
