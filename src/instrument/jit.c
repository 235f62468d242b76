/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See jit.h. The debugger reads an ELF image from memory. It is made of headers and a symbol, which
 * stand in the trampoline pages behind the unwind tables of the trampoline, and of the stubs'
 * .eh_frame where it is: its offset in the image leads there.
 *
 * The names are gdb's. They are not exported: a program's own run-time compiler must not find ours
 * in place of its own. Debuggers find them in the symbol table of libkymo.so.
 */
#include "instrument/jit.h"

#include <elf.h>
#include <stddef.h>

struct jit_code_entry {
	struct jit_code_entry *next_entry, *prev_entry;
	const uint8_t *symfile_addr;
	uint64_t symfile_size;
};

struct jit_descriptor {
	uint32_t version, action_flag;
	struct jit_code_entry *relevant_entry, *first_entry;
};

extern struct jit_descriptor __jit_debug_descriptor;
void __jit_debug_register_code(void);

/* Debuggers read it, which no optimiser sees. */
__attribute__((used)) struct jit_descriptor __jit_debug_descriptor = {.version = 1};

static struct jit_code_entry jit_entries[ARENAS_MAX];
static uint32_t jit_entry_count;

/* A debugger stops here. */
__attribute__((noinline, used)) void __jit_debug_register_code(void)
{
	__asm__ volatile("" ::: "memory");
}

enum {
	SECTION_INDEX_NONE,
	SECTION_INDEX_TEXT,
	SECTION_INDEX_EH_FRAME,
	SECTION_INDEX_SYMBOL_TABLE,
	SECTION_INDEX_STRING_TABLE,
	SECTION_COUNT
};

#define SECTION_AND_SYMBOL_NAME_STRINGS "\0.text\0.eh_frame\0.symtab\0.strtab\0kymo:stub"

struct jit_debugger_elf_image {
	Elf64_Ehdr header;
	Elf64_Shdr sections[SECTION_COUNT];
	Elf64_Sym symbols[2];
	char names[sizeof(SECTION_AND_SYMBOL_NAME_STRINGS)];
	bool is_made;
};

/* In the trampoline pages, behind what trampoline_frames.c puts there. */
#define JIT_DEBUGGER_ELF_IMAGE_OFFSET (PLAN_DATA_SIZE + PLAN_PAGE + 2048)
_Static_assert(JIT_DEBUGGER_ELF_IMAGE_OFFSET + sizeof(struct jit_debugger_elf_image) <=
		       PLAN_TRAMPOLINE_CONSTANTS,
	       "room for the image");

static struct jit_debugger_elf_image *get_debugger_elf_image_of_arena(uint8_t *start)
{
	return (struct jit_debugger_elf_image *)(start + JIT_DEBUGGER_ELF_IMAGE_OFFSET);
}

static void write_elf_header(struct jit_debugger_elf_image *image)
{
	Elf64_Ehdr *header = &image->header;

	__builtin_memcpy(header->e_ident, ELFMAG, SELFMAG);
	header->e_ident[EI_CLASS] = ELFCLASS64;
	header->e_ident[EI_DATA] = ELFDATA2LSB;
	header->e_ident[EI_VERSION] = EV_CURRENT;
	header->e_type = ET_EXEC;
	header->e_machine = EM_X86_64;
	header->e_version = EV_CURRENT;
	header->e_ehsize = sizeof(*header);
	header->e_shoff = offsetof(struct jit_debugger_elf_image, sections);
	header->e_shentsize = sizeof(Elf64_Shdr);
	header->e_shnum = SECTION_COUNT;
	header->e_shstrndx = SECTION_INDEX_STRING_TABLE;
}

static Elf64_Shdr *write_section_header(struct jit_debugger_elf_image *image, unsigned number,
					uint32_t name, uint32_t type, uint64_t offset,
					uint64_t size)
{
	Elf64_Shdr *section = &image->sections[number];

	section->sh_name = name;
	section->sh_type = type;
	section->sh_offset = offset;
	section->sh_size = size;
	section->sh_addralign = 1;
	return section;
}

void jit_write_stub_image_for_debuggers(uint8_t *start, const struct plan_header *plan)
{
	struct jit_debugger_elf_image *image = get_debugger_elf_image_of_arena(start);
	uint8_t *stubs = start + PLAN_STUBS;
	uint64_t frames = plan->frames.offset - plan->stubs.offset, size = plan->frames.count;
	uint32_t table;
	Elf64_Shdr *section;

	if (size < 12)
		return;
	/* Behind the header and its table, whose length it knows (binary/plan/stub_frames.c). */
	__builtin_memcpy(&table, stubs + frames + 4, sizeof(table));
	if (table + 4 > size)
		return;
	write_elf_header(image);
	section = write_section_header(image, SECTION_INDEX_TEXT, 1, SHT_NOBITS, 0, frames);
	section->sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	section->sh_addr = (uint64_t)(uintptr_t)stubs;
	section = write_section_header(image, SECTION_INDEX_EH_FRAME, 7, SHT_PROGBITS,
				       (uint64_t)(stubs + frames + 4 + table - (uint8_t *)image),
				       size - 4 - table);
	section->sh_flags = SHF_ALLOC;
	section->sh_addr = (uint64_t)(uintptr_t)(stubs + frames + 4 + table);
	section = write_section_header(image, SECTION_INDEX_SYMBOL_TABLE, 17, SHT_SYMTAB,
				       offsetof(struct jit_debugger_elf_image, symbols),
				       sizeof(image->symbols));
	section->sh_entsize = sizeof(Elf64_Sym);
	section->sh_link = SECTION_INDEX_STRING_TABLE;
	section->sh_info = 1;
	write_section_header(image, SECTION_INDEX_STRING_TABLE, 25, SHT_STRTAB,
			     offsetof(struct jit_debugger_elf_image, names),
			     sizeof(SECTION_AND_SYMBOL_NAME_STRINGS));
	__builtin_memcpy(image->names, SECTION_AND_SYMBOL_NAME_STRINGS,
			 sizeof(SECTION_AND_SYMBOL_NAME_STRINGS));
	image->symbols[1] = (Elf64_Sym){.st_name = 33,
					.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					.st_shndx = SECTION_INDEX_TEXT,
					.st_value = (uint64_t)(uintptr_t)stubs,
					.st_size = frames};
	image->is_made = true;
}

void jit_register_arena(const struct arena *arena)
{
	uint8_t *start = (uint8_t *)arena->data;
	struct jit_debugger_elf_image *image = get_debugger_elf_image_of_arena(start);
	struct jit_code_entry *entry;

	if (!image->is_made || jit_entry_count == ARENAS_MAX)
		return;
	entry = &jit_entries[jit_entry_count++];
	entry->symfile_addr = (const uint8_t *)image;
	entry->symfile_size = arena->size - JIT_DEBUGGER_ELF_IMAGE_OFFSET;
	entry->next_entry = __jit_debug_descriptor.first_entry;
	if (entry->next_entry)
		entry->next_entry->prev_entry = entry;
	__jit_debug_descriptor.first_entry = entry;
	__jit_debug_descriptor.relevant_entry = entry;
	__jit_debug_descriptor.action_flag = 1;
	__jit_debug_register_code();
	__jit_debug_descriptor.action_flag = 0;
}
