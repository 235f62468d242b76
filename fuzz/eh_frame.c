/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The whole way from bytes to a walk: an ELF image (as a file and as mapped), a bare .eh_frame
 * section (wrapped into an image here), or a table as a cache file holds it. Whatever compiles must
 * be valid, and whatever is valid must be walkable from every row over a stack of plausible words.
 */
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/unwind/table.h"
#include "core/unwind/unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_TEXT   0x1000u /* code of a wrapped section: file offset and address */
#define FUZZ_FRAMES 0x200000u
#define FUZZ_WORDS  512

static uint64_t stack[FUZZ_WORDS];

static void fill_stack(uint64_t first_pc)
{
	for (uint32_t i = 0; i < FUZZ_WORDS; i++)
		stack[i] = i % 3 == 0 ? (uint64_t)(uintptr_t)&stack[i + 4 < FUZZ_WORDS ? i + 4 : i]
				      : first_pc + i;
}

static void walk_rows(const struct unwind_table *table)
{
	static struct unwind_scratch scratch;
	static struct unwind_cache *cache;
	static uint64_t generation;
	struct unwind_table_array_pointers arrays = unwind_table_find_arrays(table);
	uint64_t bias = 0x10000000, frames[64], gregs[23];
	static uint64_t
		storage[(sizeof(struct unwind_all_modules_view) + sizeof(struct unwind_module)) /
			8];
	struct unwind_all_modules_view *view = (struct unwind_all_modules_view *)storage;
	struct unwind_stack_bounds bounds = {(uint64_t)(uintptr_t)stack,
					     (uint64_t)(uintptr_t)(stack + FUZZ_WORDS)};
	uint32_t rows = table->rows < 64 ? table->rows : 64;

	if (!cache)
		cache = unwind_cache_create();
	view->generation = ++generation;
	view->count = 1;
	view->modules[0] = (struct unwind_module){
		.start = bias, .end = bias + UINT32_MAX, .bias = bias, .table = table};
	for (uint32_t i = 0; i < rows; i++) {
		struct unwind_start_registers registers = {
			.ip = bias + arrays.offsets[i],
			.sp = bounds.low + 8 * (i % 16),
			.bp = bounds.low + 8 * (i % 32),
			.gregs = gregs,
		};
		enum spool_stack_end end;

		fill_stack(registers.ip);
		for (uint32_t r = 0; r < 23; r++)
			gregs[r] = bounds.low + 8 * r;
		if (unwind_walk_stack(view, cache, &registers, &bounds, i & 1 ? &scratch : NULL,
				      frames, 64, &end) < 1 ||
		    end >= SPOOL_STACK_END_COUNT)
			abort();
	}
}

static void check(int status, const struct unwind_table *table, size_t size)
{
	if (status)
		return;
	if (!unwind_table_is_valid(table, size))
		abort();
	walk_rows(table);
	unwind_table_free(table, size);
}

/* An image of one executable segment and one with .eh_frame_hdr (without search table) before the
 * section. */
static void wrap(const uint8_t *data, size_t size)
{
	size_t total = FUZZ_FRAMES + 16 + size;
	uint8_t *bytes = calloc(1, total);
	Elf64_Ehdr *elf = (Elf64_Ehdr *)(void *)bytes;
	Elf64_Phdr *programs = (Elf64_Phdr *)(void *)(bytes + sizeof(*elf));
	struct unwind_table *table = NULL;
	size_t table_size = 0;
	int status;

	if (!bytes)
		return;
	memcpy(elf->e_ident, ELFMAG, SELFMAG);
	elf->e_ident[EI_CLASS] = ELFCLASS64;
	elf->e_ident[EI_DATA] = ELFDATA2LSB;
	elf->e_machine = EM_X86_64;
	elf->e_phoff = sizeof(*elf);
	elf->e_phentsize = sizeof(*programs);
	elf->e_phnum = 3;
	programs[0] = (Elf64_Phdr){.p_type = PT_LOAD,
				   .p_flags = PF_R | PF_X,
				   .p_offset = FUZZ_TEXT,
				   .p_vaddr = FUZZ_TEXT,
				   .p_filesz = FUZZ_FRAMES - FUZZ_TEXT};
	programs[1] = (Elf64_Phdr){.p_type = PT_LOAD,
				   .p_flags = PF_R,
				   .p_offset = FUZZ_FRAMES,
				   .p_vaddr = FUZZ_FRAMES,
				   .p_filesz = 16 + size};
	programs[2] = (Elf64_Phdr){.p_type = PT_GNU_EH_FRAME,
				   .p_offset = FUZZ_FRAMES,
				   .p_vaddr = FUZZ_FRAMES,
				   .p_filesz = 8};
	/* version 1, pointer pcrel sdata4: 12 bytes on from its own place; no table */
	memcpy(bytes + FUZZ_FRAMES, "\x01\x1b\xff\xff\x0c\x00\x00\x00", 8);
	memcpy(bytes + FUZZ_FRAMES + 16, data, size);
	status = unwind_compile_table_of_file_bytes(bytes, total, &table, &table_size);
	check(status, table, table_size);
	free(bytes);
}

static void load(const uint8_t *data, size_t size)
{
	void *copy = aligned_alloc(64, (size + 63) / 64 * 64);

	if (!copy)
		return;
	memcpy(copy, data, size);
	if (unwind_table_is_valid(copy, size))
		walk_rows(copy);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct unwind_table *table = NULL;
	size_t table_size = 0;
	int status;

	if (size >= 8 && memcmp(data, UNWIND_TABLE_MAGIC, 8) == 0) {
		load(data, size);
	} else if (size >= SELFMAG && memcmp(data, ELFMAG, SELFMAG) == 0) {
		status = unwind_compile_table_of_file_bytes(data, size, &table, &table_size);
		check(status, table, table_size);
		status = unwind_compile_table_of_mapped_image(data, size, &table, &table_size);
		check(status, table, table_size);
	} else {
		wrap(data, size);
	}
	return 0;
}
