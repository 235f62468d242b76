/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Reading the loaded segments of a file, and which of their bytes are code: the executable
 * sections, or, where a file has no section headers, whole executable segments (which then may hold
 * data as well).
 */
#include <errno.h>
#include <stdlib.h>

#include "binary/functions_internal.h"

#define CODE_MAX   (1ull << 31) /* beyond that nothing reaches */
#define RANGES_MAX 4096u

static int load_segment(struct finder *finder, const Elf64_Phdr *header)
{
	struct functions *functions = finder->functions;
	struct code_range *range = &functions->loaded[functions->loaded_count];
	uint8_t *bytes;

	if (header->p_memsz > CODE_MAX || header->p_vaddr > UINT64_MAX - 2 * CODE_MAX ||
	    header->p_filesz > finder->file->size || header->p_filesz > header->p_memsz)
		return -EBADMSG;
	if (header->p_vaddr < functions->low || !functions->high)
		functions->low = header->p_vaddr;
	if (header->p_vaddr + header->p_memsz > functions->high)
		functions->high = header->p_vaddr + header->p_memsz;
	/* Room behind it, so that decoding and table reads may look ahead. */
	bytes = malloc(header->p_filesz + 16);
	if (!bytes)
		return -ENOMEM;
	*range = (struct code_range){header->p_vaddr, header->p_filesz, bytes};
	functions->loaded_count++;
	memset(bytes + header->p_filesz, 0, 16);
	return elf_read(finder->file, header->p_offset, bytes, header->p_filesz);
}

static void add_code(struct functions *functions, uint64_t vaddr, uint64_t size)
{
	size_t left;
	const uint8_t *bytes = functions_data(functions, vaddr, &left);

	if (!bytes || !size)
		return;
	if (size > left)
		size = left;
	functions->code[functions->code_count++] = (struct code_range){vaddr, size, bytes};
}

static bool is_executable(const struct elf_file *file, uint64_t vaddr)
{
	for (size_t i = 0; i < file->segment_count; i++) {
		const Elf64_Phdr *header = &file->segments[i];
		if (header->p_type == PT_LOAD && header->p_flags & PF_X &&
		    vaddr - header->p_vaddr < header->p_filesz)
			return true;
	}
	return false;
}

static int range_compare(const void *left, const void *right)
{
	const struct code_range *a = left, *b = right;

	return a->vaddr < b->vaddr ? -1 : a->vaddr > b->vaddr;
}

static int find_code(struct finder *finder)
{
	const struct elf_file *file = finder->file;
	struct functions *functions = finder->functions;
	size_t most = file->segment_count + file->section_count;

	functions->code = calloc(most + 1, sizeof(*functions->code));
	if (!functions->code)
		return -ENOMEM;
	for (size_t i = 0; i < file->section_count && functions->code_count < RANGES_MAX; i++) {
		const struct elf_section *section = &file->sections[i];
		if (section->type == SHT_PROGBITS && section->flags & SHF_EXECINSTR &&
		    section->flags & SHF_ALLOC && is_executable(file, section->address))
			add_code(functions, section->address, section->size);
	}
	for (size_t i = 0; !functions->code_count && i < file->segment_count; i++) {
		const Elf64_Phdr *header = &file->segments[i];
		if (header->p_type == PT_LOAD && header->p_flags & PF_X)
			add_code(functions, header->p_vaddr, header->p_filesz);
	}
	qsort(functions->code, functions->code_count, sizeof(*functions->code), range_compare);
	return 0;
}

/* Ranges that overlap are cut, so that each byte belongs to one. */
static void limit_code(struct functions *functions)
{
	size_t kept = 0;

	for (size_t i = 0; i < functions->code_count; i++) {
		struct code_range range = functions->code[i];
		uint64_t end =
			kept ? functions->code[kept - 1].vaddr + functions->code[kept - 1].size
			     : range.vaddr;
		if (range.vaddr < end) {
			uint64_t skip = end - range.vaddr;
			if (skip >= range.size)
				continue;
			range.vaddr += skip;
			range.bytes += skip;
			range.size -= skip;
		}
		functions->code[kept++] = range;
	}
	functions->code_count = kept;
	if (kept) {
		functions->targets_low = functions->code[0].vaddr;
		functions->targets_high =
			functions->code[kept - 1].vaddr + functions->code[kept - 1].size;
	}
}

int finder_load(struct finder *finder, struct problem *problem)
{
	const struct elf_file *file = finder->file;
	struct functions *functions = finder->functions;
	Elf64_Ehdr header;
	int error = -ENOMEM;

	if (file->machine != EM_X86_64 || (file->type != ET_EXEC && file->type != ET_DYN) ||
	    elf_read(file, 0, &header, sizeof(header)))
		return problem_set(problem, -ENOTSUP, "%s: not a program or library for x86-64",
				   file->path);
	functions->entry = header.e_entry;
	finder->absolute = file->type == ET_EXEC;
	functions->loaded = calloc(file->segment_count + 1, sizeof(*functions->loaded));
	if (functions->loaded)
		error = 0;
	for (size_t i = 0; !error && i < file->segment_count; i++) {
		if (file->segments[i].p_type == PT_LOAD && file->segments[i].p_memsz)
			error = load_segment(finder, &file->segments[i]);
	}
	if (!error && functions->high - functions->low > CODE_MAX)
		error = -EBADMSG;
	if (!error)
		error = find_code(finder);
	if (error)
		return problem_set(problem, error, "%s: its code cannot be read: %s", file->path,
				   strerror(-error));
	limit_code(functions);
	finder->code_low = functions->targets_low;
	finder->code_size = functions->targets_high - functions->targets_low;
	return 0;
}
