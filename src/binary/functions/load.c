/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Reading the loaded segments of a file, and which of their bytes are code: the executable
 * sections, or, where a file has no section headers, whole executable segments (which then may hold
 * data as well).
 */
#include <errno.h>
#include <stdlib.h>

#include "binary/functions/private.h"

#define CODE_BYTES_MAX  (1ull << 31) /* beyond that nothing reaches */
#define DATA_BYTES_MAX  (1ull << 45)
#define CODE_RANGES_MAX 4096u

static int read_loaded_segment(struct function_finder *finder, const Elf64_Phdr *header)
{
	struct functions *functions = finder->functions;
	struct loaded_byte_range *range = &functions->loaded_ranges[functions->loaded_range_count];
	uint8_t *bytes;

	if (header->p_memsz > DATA_BYTES_MAX || header->p_vaddr > DATA_BYTES_MAX ||
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
	*range = (struct loaded_byte_range){header->p_vaddr, header->p_filesz, bytes};
	functions->loaded_range_count++;
	memset(bytes + header->p_filesz, 0, 16);
	return elf_read_bytes(finder->file, header->p_offset, bytes, header->p_filesz);
}

static void add_code_range(struct functions *functions, uint64_t vaddr, uint64_t size)
{
	size_t left;
	const uint8_t *bytes = functions_get_loaded_bytes_at(functions, vaddr, &left);

	if (!bytes || !size)
		return;
	if (size > left)
		size = left;
	functions->code_ranges[functions->code_range_count++] =
		(struct loaded_byte_range){vaddr, size, bytes};
}

static bool address_is_executable(const struct elf_file *file, uint64_t vaddr)
{
	for (size_t i = 0; i < file->segment_count; i++) {
		const Elf64_Phdr *header = &file->segments[i];
		if (header->p_type == PT_LOAD && header->p_flags & PF_X &&
		    vaddr - header->p_vaddr < header->p_filesz)
			return true;
	}
	return false;
}

static int compare_range_by_address(const void *left, const void *right)
{
	const struct loaded_byte_range *a = left, *b = right;

	return a->vaddr < b->vaddr ? -1 : a->vaddr > b->vaddr;
}

static int find_code_ranges(struct function_finder *finder)
{
	const struct elf_file *file = finder->file;
	struct functions *functions = finder->functions;
	size_t most = file->segment_count + file->section_count;

	functions->code_ranges = calloc(most + 1, sizeof(*functions->code_ranges));
	if (!functions->code_ranges)
		return -ENOMEM;
	for (size_t i = 0; i < file->section_count && functions->code_range_count < CODE_RANGES_MAX;
	     i++) {
		const struct elf_section *section = &file->sections[i];
		if (section->type == SHT_PROGBITS && section->flags & SHF_EXECINSTR &&
		    section->flags & SHF_ALLOC && address_is_executable(file, section->address))
			add_code_range(functions, section->address, section->size);
	}
	for (size_t i = 0; !functions->code_range_count && i < file->segment_count; i++) {
		const Elf64_Phdr *header = &file->segments[i];
		if (header->p_type == PT_LOAD && header->p_flags & PF_X)
			add_code_range(functions, header->p_vaddr, header->p_filesz);
	}
	qsort(functions->code_ranges, functions->code_range_count, sizeof(*functions->code_ranges),
	      compare_range_by_address);
	return 0;
}

/* Ranges that overlap are cut, so that each byte belongs to one. */
static void cut_overlapping_code_ranges(struct functions *functions)
{
	size_t kept = 0;

	for (size_t i = 0; i < functions->code_range_count; i++) {
		struct loaded_byte_range range = functions->code_ranges[i];
		uint64_t end = kept ? functions->code_ranges[kept - 1].vaddr +
					       functions->code_ranges[kept - 1].size
				    : range.vaddr;
		if (range.vaddr < end) {
			uint64_t skip = end - range.vaddr;
			if (skip >= range.size)
				continue;
			range.vaddr += skip;
			range.bytes += skip;
			range.size -= skip;
		}
		functions->code_ranges[kept++] = range;
	}
	functions->code_range_count = kept;
	if (kept) {
		functions->targets_low = functions->code_ranges[0].vaddr;
		functions->targets_high = functions->code_ranges[kept - 1].vaddr +
					  functions->code_ranges[kept - 1].size;
	}
}

int finder_read_loaded_segments(struct function_finder *finder, struct problem *problem)
{
	const struct elf_file *file = finder->file;
	struct functions *functions = finder->functions;
	Elf64_Ehdr header;
	int error = -ENOMEM;

	if (file->machine != EM_X86_64 || (file->type != ET_EXEC && file->type != ET_DYN) ||
	    elf_read_bytes(file, 0, &header, sizeof(header)))
		return problem_set(problem, -ENOTSUP, "%s: not a program or library for x86-64",
				   file->path);
	functions->entry = header.e_entry;
	finder->has_absolute_addresses = file->type == ET_EXEC;
	functions->loaded_ranges =
		calloc(file->segment_count + 1, sizeof(*functions->loaded_ranges));
	if (functions->loaded_ranges)
		error = 0;
	for (size_t i = 0; !error && i < file->segment_count; i++) {
		if (file->segments[i].p_type == PT_LOAD && file->segments[i].p_memsz)
			error = read_loaded_segment(finder, &file->segments[i]);
	}
	if (!error)
		error = find_code_ranges(finder);
	if (error)
		return problem_set(problem, error, "%s: its code cannot be read: %s", file->path,
				   strerror(-error));
	cut_overlapping_code_ranges(functions);
	if (functions->targets_high - functions->targets_low > CODE_BYTES_MAX)
		return problem_set(problem, -EBADMSG, "%s: its code takes more than 2 GiB",
				   file->path);
	finder->code_low = functions->targets_low;
	finder->code_size = functions->targets_high - functions->targets_low;
	return 0;
}
