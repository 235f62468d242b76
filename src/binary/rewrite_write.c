/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The new file: the old one, the arena, the pieces, the names and headers of sections.
 *
 * Pieces lie in the order of their sections' numbers, for strip(1) takes sections of a segment in
 * that order to be in the order of their addresses.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/rewrite_internal.h"

static const char *const added_names[ADDED_COUNT] = {
	[ADDED_DATA] = ".kymo.data",      [ADDED_TEXT] = ".kymo.text",
	[ADDED_NOTE] = ".note.kymo.plan", [ADDED_PLAN] = ".kymo.plan",
	[ADDED_MODES] = ".kymo.modes",
};

#define NAMES_NAME ".shstrtab"

/* ---- new pieces ---- */

struct note {
	Elf64_Nhdr head;
	char name[8];
	uint8_t content[sizeof(struct plan_note)]; /* not aligned: notes are to four bytes */
};
PLAN_STATIC_ASSERT(sizeof(struct note) == 20 + sizeof(struct plan_note), "note has no gaps");

static struct rewrite_piece *add_piece(struct rewrite *rewrite, enum rewrite_added which,
				       uint64_t size)
{
	struct rewrite_piece *piece =
		rewrite_piece_add(rewrite, rewrite->old_section_count + (size_t)which, size);

	rewrite->added[which] = piece;
	if (piece)
		piece->bytes = calloc(1, (size_t)size + 1);
	return piece && piece->bytes ? piece : NULL;
}

static int add_pieces(struct rewrite *rewrite)
{
	const struct plan_header *plan = rewrite->plan->header;
	struct rewrite_piece *note = add_piece(rewrite, ADDED_NOTE, sizeof(struct note));
	struct rewrite_piece *copy = add_piece(rewrite, ADDED_PLAN, plan->plan_size);
	struct rewrite_piece *modes = add_piece(rewrite, ADDED_MODES, plan->functions.count);

	if (!note || !copy || !modes)
		return -ENOMEM;
	memcpy(copy->bytes, plan, (size_t)plan->plan_size);
	memcpy(modes->bytes, rewrite->modes, (size_t)plan->functions.count);
	if (rewrite->result->table_moved) {
		uint64_t count = rewrite->segment_count + REWRITE_SEGMENTS_ADDED;

		rewrite->table = rewrite_piece_add(rewrite, 0, count * sizeof(Elf64_Phdr));
		if (!rewrite->table)
			return -ENOMEM;
	}
	return 0;
}

static uint64_t first_site(const struct rewrite *rewrite)
{
	const struct plan_header *plan = rewrite->plan->header;

	for (uint64_t i = 0; i < plan->functions.count; i++) {
		const struct plan_function *function = plan_functions(rewrite->plan) + i;

		if (rewrite->modes[i] != PLAN_MODE_OFF && function->reason == PLAN_PATCHABLE &&
		    function->stub != 0 && function->site < plan->sites.count)
			return plan_sites(rewrite->plan)[function->site].vaddr;
	}
	return 0;
}

static void fill_note(struct rewrite *rewrite)
{
	const struct plan_header *plan = rewrite->plan->header;
	struct plan_note content = {
		.arena_vaddr = plan->arena_vaddr,
		.arena_size = plan->arena_size,
		.plan_vaddr = rewrite->added[ADDED_PLAN]->vaddr,
		.plan_size = plan->plan_size,
		.modes_vaddr = rewrite->added[ADDED_MODES]->vaddr,
		.site_vaddr = first_site(rewrite),
		.function_count = (uint32_t)plan->functions.count,
	};
	struct note note = {
		.head = {sizeof(PLAN_NOTE_NAME), sizeof(content), PLAN_NOTE_TYPE},
		.name = PLAN_NOTE_NAME,
	};

	memcpy(note.content, &content, sizeof(content));
	memcpy(rewrite->added[ADDED_NOTE]->bytes, &note, sizeof(note));
}

/* ---- where everything comes ---- */

static int compare_pieces(const void *a, const void *b)
{
	const struct rewrite_piece *const *one = a, *const *other = b;

	/* Those without a section (0) first. */
	return ((*one)->section > (*other)->section) - ((*one)->section < (*other)->section);
}

static void place(struct rewrite *rewrite)
{
	const struct plan_header *plan = rewrite->plan->header;
	struct rewrite_piece *order[REWRITE_PIECES_MAX];
	uint64_t at;

	rewrite->data_offset = rewrite_align(rewrite->size, PLAN_PAGE);
	rewrite->text_offset = rewrite->data_offset + PLAN_DATA_SIZE;
	rewrite->more_offset = rewrite->data_offset + plan->arena_size;
	rewrite->more_vaddr = at = plan->arena_vaddr + plan->arena_size;
	for (size_t i = 0; i < rewrite->piece_count; i++)
		order[i] = &rewrite->pieces[i];
	qsort(order, rewrite->piece_count, sizeof(void *), compare_pieces);
	for (size_t i = 0; i < rewrite->piece_count; i++) {
		at += (order[i]->old_vaddr - at) & (REWRITE_ALIGN - 1);
		order[i]->vaddr = at;
		at += order[i]->size;
	}
	rewrite->more_size = at - rewrite->more_vaddr;
}

static const struct rewrite_piece *piece_of(const struct rewrite *rewrite, uint64_t vaddr,
					    uint64_t size)
{
	for (size_t i = 0; i < rewrite->piece_count; i++) {
		const struct rewrite_piece *piece = &rewrite->pieces[i];

		if (piece->old_size > 0 && vaddr >= piece->old_vaddr &&
		    vaddr - piece->old_vaddr < piece->old_size && size <= piece->size)
			return piece;
	}
	return NULL;
}

/* ---- segments ---- */

static uint64_t more_offset_of(const struct rewrite *rewrite, uint64_t vaddr)
{
	return rewrite->more_offset + (vaddr - rewrite->more_vaddr);
}

static void move_segment(const struct rewrite *rewrite, Elf64_Phdr *segment)
{
	const struct rewrite_piece *piece = piece_of(rewrite, segment->p_vaddr, 0);
	uint64_t vaddr;

	if (segment->p_type == PT_LOAD || segment->p_type == PT_GNU_RELRO ||
	    segment->p_type == PT_GNU_STACK || segment->p_type == PT_TLS)
		return;
	if (segment->p_type == PT_PHDR) {
		segment->p_filesz = segment->p_memsz =
			(rewrite->segment_count + REWRITE_SEGMENTS_ADDED) * sizeof(*segment);
		if (!rewrite->table)
			return;
		vaddr = rewrite->table->vaddr;
	} else if (piece) {
		vaddr = piece->vaddr + (segment->p_vaddr - piece->old_vaddr);
		if (piece == rewrite->dynamic || piece == rewrite->frames)
			segment->p_filesz = segment->p_memsz = piece->size;
	} else
		return;
	segment->p_vaddr = segment->p_paddr = vaddr;
	segment->p_offset = more_offset_of(rewrite, vaddr);
}

static Elf64_Phdr loaded(uint64_t offset, uint64_t vaddr, uint64_t size, uint32_t flags)
{
	return (Elf64_Phdr){PT_LOAD, flags, offset, vaddr, vaddr, size, size, PLAN_PAGE};
}

/* Those that are loaded come behind the others that are, as the loader wants. */
static void put_segments(struct rewrite *rewrite)
{
	const struct plan_header *plan = rewrite->plan->header;
	const struct rewrite_piece *note = rewrite->added[ADDED_NOTE];
	size_t count = rewrite->segment_count, last = 0;
	Elf64_Phdr *segments = rewrite->segments;

	for (size_t i = 0; i < count; i++) {
		move_segment(rewrite, &segments[i]);
		if (segments[i].p_type == PT_LOAD)
			last = i + 1;
	}
	memmove(segments + last + 3, segments + last, (count - last) * sizeof(*segments));
	segments[last] =
		loaded(rewrite->data_offset, plan->arena_vaddr, PLAN_DATA_SIZE, PF_R | PF_W);
	segments[last + 1] = loaded(rewrite->text_offset, plan->arena_vaddr + PLAN_DATA_SIZE,
				    plan->arena_size - PLAN_DATA_SIZE, PF_R | PF_X);
	/* The loader writes to the dynamic section. */
	segments[last + 2] = loaded(rewrite->more_offset, rewrite->more_vaddr, rewrite->more_size,
				    rewrite->dynamic ? PF_R | PF_W : PF_R);
	segments[count + 3] = (Elf64_Phdr){PT_NOTE,
					   PF_R,
					   more_offset_of(rewrite, note->vaddr),
					   note->vaddr,
					   note->vaddr,
					   note->size,
					   note->size,
					   4};
	rewrite->segment_count += REWRITE_SEGMENTS_ADDED;
}

/* ---- sections ---- */

/* Symbols stay where they are in their section. */
static void move_symbols(struct rewrite *rewrite, const Elf64_Shdr *table)
{
	uint64_t count = table->sh_size / sizeof(Elf64_Sym);

	if (table->sh_entsize != sizeof(Elf64_Sym))
		return;
	for (uint64_t i = 0; i < count; i++) {
		uint8_t *at = rewrite->bytes + table->sh_offset + i * sizeof(Elf64_Sym);
		Elf64_Sym symbol;

		memcpy(&symbol, at, sizeof(symbol));
		if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= SHN_LORESERVE)
			continue;
		for (size_t j = 0; j < rewrite->piece_count; j++) {
			const struct rewrite_piece *piece = &rewrite->pieces[j];

			if (piece->section != symbol.st_shndx || piece->old_vaddr == 0)
				continue;
			symbol.st_value += piece->vaddr - piece->old_vaddr;
			memcpy(at, &symbol, sizeof(symbol));
		}
	}
}

static void move_all_symbols(struct rewrite *rewrite)
{
	for (size_t i = 1; i < rewrite->old_section_count; i++) {
		const Elf64_Shdr *section = &rewrite->sections[i];

		if (section->sh_type == SHT_SYMTAB || section->sh_type == SHT_DYNSYM)
			move_symbols(rewrite, section);
	}
}

static void put_moved_sections(struct rewrite *rewrite)
{
	for (size_t i = 0; i < rewrite->piece_count; i++) {
		const struct rewrite_piece *piece = &rewrite->pieces[i];

		if (piece->section == 0 || piece->section >= rewrite->old_section_count)
			continue;
		Elf64_Shdr *section = &rewrite->sections[piece->section];

		section->sh_addr = piece->vaddr;
		section->sh_offset = more_offset_of(rewrite, piece->vaddr);
		section->sh_size = piece->size;
	}
}

static void put_added_sections(struct rewrite *rewrite, const uint32_t names[ADDED_COUNT])
{
	const struct plan_header *plan = rewrite->plan->header;
	Elf64_Shdr *added = rewrite->sections + rewrite->old_section_count;

	for (size_t i = 0; i < ADDED_COUNT; i++) {
		const struct rewrite_piece *piece = rewrite->added[i];

		added[i] = (Elf64_Shdr){.sh_name = names[i],
					.sh_type = i == ADDED_NOTE ? SHT_NOTE : SHT_PROGBITS,
					.sh_flags = SHF_ALLOC,
					.sh_addralign = i == ADDED_NOTE ? 4 : 8};
		if (!piece)
			continue;
		added[i].sh_addr = piece->vaddr;
		added[i].sh_offset = more_offset_of(rewrite, piece->vaddr);
		added[i].sh_size = piece->size;
	}
	added[ADDED_DATA].sh_flags |= SHF_WRITE;
	added[ADDED_DATA].sh_addr = plan->arena_vaddr;
	added[ADDED_DATA].sh_offset = rewrite->data_offset;
	added[ADDED_DATA].sh_size = PLAN_DATA_SIZE;
	added[ADDED_TEXT].sh_flags |= SHF_EXECINSTR;
	added[ADDED_TEXT].sh_addr = plan->arena_vaddr + PLAN_DATA_SIZE;
	added[ADDED_TEXT].sh_offset = rewrite->text_offset;
	added[ADDED_TEXT].sh_size = plan->arena_size - PLAN_DATA_SIZE;
	added[ADDED_DATA].sh_addralign = added[ADDED_TEXT].sh_addralign = PLAN_PAGE;
	rewrite->section_count += ADDED_COUNT;
}

/* ---- the file ---- */

struct output {
	uint8_t *bytes;
	uint64_t names_offset, names_size, sections_offset, size;
};

static void lay_out(struct rewrite *rewrite, struct output *output)
{
	size_t sections = rewrite->old_section_count + ADDED_COUNT;
	uint64_t names = 1 + sizeof(NAMES_NAME);

	if (rewrite->section_names)
		names = rewrite->sections[rewrite->section_names].sh_size + 1;
	else
		sections++;
	for (size_t i = 0; i < ADDED_COUNT; i++)
		names += strlen(added_names[i]) + 1;
	output->names_offset = rewrite->more_offset + rewrite->more_size;
	output->names_size = names;
	output->sections_offset = rewrite_align(output->names_offset + names, 8);
	output->size = output->sections_offset + sections * sizeof(Elf64_Shdr);
}

/* Copies the old names and adds ours; where the file had none, a section for them. */
static void put_names(struct rewrite *rewrite, struct output *output, uint32_t names[ADDED_COUNT])
{
	char *base = (char *)output->bytes + output->names_offset, *at = base + 1;
	size_t index = rewrite->section_names;

	if (index) {
		const Elf64_Shdr *old = &rewrite->sections[index];

		memcpy(base, rewrite->bytes + old->sh_offset, (size_t)old->sh_size);
		at = base + old->sh_size + 1;
	} else {
		index = rewrite->old_section_count + ADDED_COUNT;
		rewrite->sections[index] =
			(Elf64_Shdr){.sh_name = 1, .sh_type = SHT_STRTAB, .sh_addralign = 1};
		rewrite->section_names = index;
		rewrite->section_count++;
		at = stpcpy(at, NAMES_NAME) + 1;
	}
	for (size_t i = 0; i < ADDED_COUNT; i++) {
		names[i] = (uint32_t)(at - base);
		at = stpcpy(at, added_names[i]) + 1;
	}
	rewrite->sections[index].sh_offset = output->names_offset;
	rewrite->sections[index].sh_size = output->names_size;
}

static void put_header(struct rewrite *rewrite, const struct output *output)
{
	Elf64_Ehdr *header = &rewrite->header;
	Elf64_Shdr *first = &rewrite->sections[0];
	size_t count = rewrite->section_count, names = rewrite->section_names;

	if (rewrite->table)
		header->e_phoff = more_offset_of(rewrite, rewrite->table->vaddr);
	header->e_phnum = (uint16_t)rewrite->segment_count;
	header->e_shoff = output->sections_offset;
	header->e_shentsize = sizeof(*first);
	/* Numbers that do not fit stand in section 0. */
	first->sh_size = count < SHN_LORESERVE ? 0 : count;
	first->sh_link = names < SHN_LORESERVE ? 0 : (uint32_t)names;
	header->e_shnum = count < SHN_LORESERVE ? (uint16_t)count : 0;
	header->e_shstrndx = names < SHN_LORESERVE ? (uint16_t)names : SHN_XINDEX;
	memcpy(output->bytes, header, sizeof(*header));
	memcpy(output->bytes + header->e_phoff, rewrite->segments,
	       rewrite->segment_count * sizeof(Elf64_Phdr));
	memcpy(output->bytes + header->e_shoff, rewrite->sections, count * sizeof(*first));
}

static void put_pieces(const struct rewrite *rewrite, uint8_t *bytes)
{
	for (size_t i = 0; i < rewrite->piece_count; i++) {
		const struct rewrite_piece *piece = &rewrite->pieces[i];
		uint8_t *to = bytes + more_offset_of(rewrite, piece->vaddr);

		if (piece->bytes)
			memcpy(to, piece->bytes, (size_t)piece->size);
		else if (piece->old_size)
			memcpy(to, rewrite->bytes + piece->old_offset, (size_t)piece->size);
	}
}

int rewrite_write(struct rewrite *rewrite, uint8_t **ret, size_t *ret_size)
{
	struct output output;
	uint32_t names[ADDED_COUNT];
	int error = add_pieces(rewrite);

	if (error)
		return error;
	place(rewrite);
	rewrite_frames_fill(rewrite);
	error = rewrite_dynamic_fill(rewrite);
	if (error)
		return error;
	fill_note(rewrite);
	lay_out(rewrite, &output);
	output.bytes = calloc(1, (size_t)output.size);
	if (!output.bytes)
		return -ENOMEM;
	move_all_symbols(rewrite);
	memcpy(output.bytes, rewrite->bytes, rewrite->size);
	rewrite_put_code(rewrite, output.bytes + rewrite->text_offset);
	put_pieces(rewrite, output.bytes);
	put_segments(rewrite);
	put_moved_sections(rewrite);
	put_names(rewrite, &output, names);
	put_added_sections(rewrite, names);
	put_header(rewrite, &output);
	*ret = output.bytes;
	*ret_size = (size_t)output.size;
	return 0;
}
