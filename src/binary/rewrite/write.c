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

#include "binary/rewrite/private.h"

static const char *const added_section_names[ADDED_SECTION_COUNT] = {
	[ADDED_SECTION_DATA] = ".kymo.data",      [ADDED_SECTION_TEXT] = ".kymo.text",
	[ADDED_SECTION_NOTE] = ".note.kymo.plan", [ADDED_SECTION_PLAN] = ".kymo.plan",
	[ADDED_SECTION_MODES] = ".kymo.modes",
};

#define SECTION_NAMES_SECTION_NAME ".shstrtab"

/* ---- new pieces ---- */

struct plan_elf_note_bytes {
	Elf64_Nhdr note_header;
	char name[8];
	uint8_t content[sizeof(struct plan_note)]; /* not aligned: notes are to four bytes */
};
PLAN_STATIC_ASSERT(sizeof(struct plan_elf_note_bytes) == 20 + sizeof(struct plan_note),
		   "note has no gaps");

static struct new_segment_piece *
add_piece_of_new_section(struct rewrite_job *rewrite, enum added_section_kind which, uint64_t size)
{
	struct new_segment_piece *piece =
		rewrite_add_piece(rewrite, rewrite->old_section_count + (size_t)which, size);

	rewrite->added_section_pieces[which] = piece;
	if (piece)
		piece->bytes = calloc(1, (size_t)size + 1);
	return piece && piece->bytes ? piece : NULL;
}

static int add_pieces_of_new_sections(struct rewrite_job *rewrite)
{
	const struct plan_header *plan = rewrite->plan->header;
	struct new_segment_piece *note = add_piece_of_new_section(
		rewrite, ADDED_SECTION_NOTE, sizeof(struct plan_elf_note_bytes));
	struct new_segment_piece *copy =
		add_piece_of_new_section(rewrite, ADDED_SECTION_PLAN, plan->plan_size);
	struct new_segment_piece *modes =
		add_piece_of_new_section(rewrite, ADDED_SECTION_MODES, plan->functions.count);

	if (!note || !copy || !modes)
		return -ENOMEM;
	memcpy(copy->bytes, plan, (size_t)plan->plan_size);
	memcpy(modes->bytes, rewrite->modes, (size_t)plan->functions.count);
	if (rewrite->result->has_moved_program_headers) {
		uint64_t count = rewrite->segment_count + REWRITE_SEGMENTS_ADDED_COUNT;

		rewrite->table = rewrite_add_piece(rewrite, 0, count * sizeof(Elf64_Phdr));
		if (!rewrite->table)
			return -ENOMEM;
	}
	return 0;
}

static uint64_t get_first_patched_site_vaddr(const struct rewrite_job *rewrite)
{
	const struct plan_header *plan = rewrite->plan->header;

	for (uint64_t i = 0; i < plan->functions.count; i++) {
		const struct plan_function *function = plan_get_functions(rewrite->plan) + i;

		if (rewrite->modes[i] != PLAN_MODE_OFF && function->reason == PLAN_PATCHABLE &&
		    function->stub != 0 && function->site < plan->sites.count)
			return plan_get_sites(rewrite->plan)[function->site].vaddr;
	}
	return 0;
}

static void fill_plan_note_section(struct rewrite_job *rewrite)
{
	const struct plan_header *plan = rewrite->plan->header;
	struct plan_note content = {
		.arena_vaddr = plan->arena_vaddr,
		.arena_size = plan->arena_size,
		.plan_vaddr = rewrite->added_section_pieces[ADDED_SECTION_PLAN]->vaddr,
		.plan_size = plan->plan_size,
		.modes_vaddr = rewrite->added_section_pieces[ADDED_SECTION_MODES]->vaddr,
		.site_vaddr = get_first_patched_site_vaddr(rewrite),
		.function_count = (uint32_t)plan->functions.count,
		.flags = rewrite->is_arena_made_at_start ? PLAN_NOTE_ARENA_IS_MADE_AT_START : 0,
	};
	struct plan_elf_note_bytes note = {
		.note_header = {sizeof(PLAN_NOTE_NAME), sizeof(content), PLAN_NOTE_TYPE},
		.name = PLAN_NOTE_NAME,
	};

	memcpy(note.content, &content, sizeof(content));
	memcpy(rewrite->added_section_pieces[ADDED_SECTION_NOTE]->bytes, &note, sizeof(note));
}

/* ---- where everything comes ---- */

static int compare_piece_by_section(const void *a, const void *b)
{
	const struct new_segment_piece *const *one = a, *const *other = b;

	/* Those without a section (0) first. */
	return ((*one)->section > (*other)->section) - ((*one)->section < (*other)->section);
}

static void assign_piece_addresses(struct rewrite_job *rewrite)
{
	const struct plan_header *plan = rewrite->plan->header;
	struct new_segment_piece *order[REWRITE_PIECES_MAX];
	uint64_t at;

	rewrite->arena_data_offset = rewrite_align_up(rewrite->size, PLAN_PAGE);
	rewrite->arena_text_offset = rewrite->arena_data_offset + PLAN_DATA_SIZE;
	rewrite->moved_pieces_offset = rewrite->arena_data_offset + plan->arena_size;
	rewrite->moved_pieces_vaddr = plan->arena_vaddr + plan->arena_size;
	if (rewrite->is_arena_made_at_start) {
		rewrite->moved_pieces_offset = rewrite->arena_data_offset;
		rewrite->moved_pieces_vaddr = rewrite_align_up(rewrite->high, PLAN_PAGE);
	}
	at = rewrite->moved_pieces_vaddr;
	for (size_t i = 0; i < rewrite->piece_count; i++)
		order[i] = &rewrite->pieces[i];
	qsort(order, rewrite->piece_count, sizeof(void *), compare_piece_by_section);
	for (size_t i = 0; i < rewrite->piece_count; i++) {
		at += (order[i]->old_vaddr - at) & (REWRITE_PIECE_ALIGN_BYTES - 1);
		order[i]->vaddr = at;
		at += order[i]->size;
	}
	rewrite->moved_pieces_size = at - rewrite->moved_pieces_vaddr;
}

static const struct new_segment_piece *find_piece_at_old_address(const struct rewrite_job *rewrite,
								 uint64_t vaddr, uint64_t size)
{
	for (size_t i = 0; i < rewrite->piece_count; i++) {
		const struct new_segment_piece *piece = &rewrite->pieces[i];

		if (piece->old_size > 0 && vaddr >= piece->old_vaddr &&
		    vaddr - piece->old_vaddr < piece->old_size && size <= piece->size)
			return piece;
	}
	return NULL;
}

/* ---- segments ---- */

static uint64_t piece_vaddr_to_offset(const struct rewrite_job *rewrite, uint64_t vaddr)
{
	return rewrite->moved_pieces_offset + (vaddr - rewrite->moved_pieces_vaddr);
}

static void update_moved_segment_header(const struct rewrite_job *rewrite, Elf64_Phdr *segment)
{
	const struct new_segment_piece *piece =
		find_piece_at_old_address(rewrite, segment->p_vaddr, 0);
	uint64_t vaddr;

	if (segment->p_type == PT_LOAD || segment->p_type == PT_GNU_RELRO ||
	    segment->p_type == PT_GNU_STACK || segment->p_type == PT_TLS)
		return;
	if (segment->p_type == PT_PHDR) {
		segment->p_filesz = segment->p_memsz =
			(rewrite->segment_count + REWRITE_SEGMENTS_ADDED_COUNT) * sizeof(*segment);
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
	segment->p_offset = piece_vaddr_to_offset(rewrite, vaddr);
}

static Elf64_Phdr create_load_segment_header(uint64_t offset, uint64_t vaddr, uint64_t size,
					     uint32_t flags)
{
	return (Elf64_Phdr){PT_LOAD, flags, offset, vaddr, vaddr, size, size, PLAN_PAGE};
}

/* Those that are loaded come behind the others that are, as the loader wants. */
static void update_and_add_segment_headers(struct rewrite_job *rewrite)
{
	const struct plan_header *plan = rewrite->plan->header;
	const struct new_segment_piece *note = rewrite->added_section_pieces[ADDED_SECTION_NOTE];
	size_t count = rewrite->segment_count, last = 0;
	Elf64_Phdr *segments = rewrite->segments;

	for (size_t i = 0; i < count; i++) {
		update_moved_segment_header(rewrite, &segments[i]);
		if (segments[i].p_type == PT_LOAD)
			last = i + 1;
	}
	memmove(segments + last + 3, segments + last, (count - last) * sizeof(*segments));
	segments[last] = segments[last + 1] = (Elf64_Phdr){.p_type = PT_NULL};
	if (!rewrite->is_arena_made_at_start) {
		segments[last] = create_load_segment_header(
			rewrite->arena_data_offset, plan->arena_vaddr, PLAN_DATA_SIZE, PF_R | PF_W);
		segments[last + 1] = create_load_segment_header(
			rewrite->arena_text_offset, plan->arena_vaddr + PLAN_DATA_SIZE,
			plan->arena_size - PLAN_DATA_SIZE, PF_R | PF_X);
	}
	/* The loader writes to the dynamic section. */
	segments[last + 2] = create_load_segment_header(
		rewrite->moved_pieces_offset, rewrite->moved_pieces_vaddr,
		rewrite->moved_pieces_size, rewrite->dynamic ? PF_R | PF_W : PF_R);
	segments[count + 3] = (Elf64_Phdr){PT_NOTE,
					   PF_R,
					   piece_vaddr_to_offset(rewrite, note->vaddr),
					   note->vaddr,
					   note->vaddr,
					   note->size,
					   note->size,
					   4};
	rewrite->segment_count += REWRITE_SEGMENTS_ADDED_COUNT;
}

/* ---- sections ---- */

/* Symbols stay where they are in their section. */
static void update_moved_symbols_of_table(struct rewrite_job *rewrite, const Elf64_Shdr *table)
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
			const struct new_segment_piece *piece = &rewrite->pieces[j];

			if (piece->section != symbol.st_shndx || piece->old_vaddr == 0)
				continue;
			symbol.st_value += piece->vaddr - piece->old_vaddr;
			memcpy(at, &symbol, sizeof(symbol));
		}
	}
}

static void update_moved_symbols_of_all_tables(struct rewrite_job *rewrite)
{
	for (size_t i = 1; i < rewrite->old_section_count; i++) {
		const Elf64_Shdr *section = &rewrite->sections[i];

		if (section->sh_type == SHT_SYMTAB || section->sh_type == SHT_DYNSYM)
			update_moved_symbols_of_table(rewrite, section);
	}
}

static void update_moved_section_headers(struct rewrite_job *rewrite)
{
	for (size_t i = 0; i < rewrite->piece_count; i++) {
		const struct new_segment_piece *piece = &rewrite->pieces[i];

		if (piece->section == 0 || piece->section >= rewrite->old_section_count)
			continue;
		Elf64_Shdr *section = &rewrite->sections[piece->section];

		section->sh_addr = piece->vaddr;
		section->sh_offset = piece_vaddr_to_offset(rewrite, piece->vaddr);
		section->sh_size = piece->size;
	}
}

static void fill_added_section_headers(struct rewrite_job *rewrite,
				       const uint32_t names[ADDED_SECTION_COUNT])
{
	const struct plan_header *plan = rewrite->plan->header;
	Elf64_Shdr *added = rewrite->sections + rewrite->old_section_count;

	for (size_t i = 0; i < ADDED_SECTION_COUNT; i++) {
		const struct new_segment_piece *piece = rewrite->added_section_pieces[i];

		added[i] =
			(Elf64_Shdr){.sh_name = names[i],
				     .sh_type = i == ADDED_SECTION_NOTE ? SHT_NOTE : SHT_PROGBITS,
				     .sh_flags = SHF_ALLOC,
				     .sh_addralign = i == ADDED_SECTION_NOTE ? 4 : 8};
		if (!piece)
			continue;
		added[i].sh_addr = piece->vaddr;
		added[i].sh_offset = piece_vaddr_to_offset(rewrite, piece->vaddr);
		added[i].sh_size = piece->size;
	}
	rewrite->section_count += ADDED_SECTION_COUNT;
	if (rewrite->is_arena_made_at_start) {
		added[ADDED_SECTION_DATA] = added[ADDED_SECTION_TEXT] = (Elf64_Shdr){0};
		return;
	}
	added[ADDED_SECTION_DATA].sh_flags |= SHF_WRITE;
	added[ADDED_SECTION_DATA].sh_addr = plan->arena_vaddr;
	added[ADDED_SECTION_DATA].sh_offset = rewrite->arena_data_offset;
	added[ADDED_SECTION_DATA].sh_size = PLAN_DATA_SIZE;
	added[ADDED_SECTION_TEXT].sh_flags |= SHF_EXECINSTR;
	added[ADDED_SECTION_TEXT].sh_addr = plan->arena_vaddr + PLAN_DATA_SIZE;
	added[ADDED_SECTION_TEXT].sh_offset = rewrite->arena_text_offset;
	added[ADDED_SECTION_TEXT].sh_size = plan->arena_size - PLAN_DATA_SIZE;
	added[ADDED_SECTION_DATA].sh_addralign = added[ADDED_SECTION_TEXT].sh_addralign = PLAN_PAGE;
}

/* ---- the file ---- */

struct output_layout {
	uint8_t *bytes;
	uint64_t section_names_offset, section_names_size, section_headers_offset, size;
};

static void compute_output_layout(struct rewrite_job *rewrite, struct output_layout *output)
{
	size_t sections = rewrite->old_section_count + ADDED_SECTION_COUNT;
	uint64_t names = 1 + sizeof(SECTION_NAMES_SECTION_NAME);

	if (rewrite->section_names_index)
		names = rewrite->sections[rewrite->section_names_index].sh_size + 1;
	else
		sections++;
	for (size_t i = 0; i < ADDED_SECTION_COUNT; i++)
		names += strlen(added_section_names[i]) + 1;
	output->section_names_offset = rewrite->moved_pieces_offset + rewrite->moved_pieces_size;
	output->section_names_size = names;
	output->section_headers_offset = rewrite_align_up(output->section_names_offset + names, 8);
	output->size = output->section_headers_offset + sections * sizeof(Elf64_Shdr);
}

/* Copies the old names and adds ours; where the file had none, a section for them. */
static void write_section_names(struct rewrite_job *rewrite, struct output_layout *output,
				uint32_t names[ADDED_SECTION_COUNT])
{
	char *base = (char *)output->bytes + output->section_names_offset, *at = base + 1;
	size_t index = rewrite->section_names_index;

	if (index) {
		const Elf64_Shdr *old = &rewrite->sections[index];

		memcpy(base, rewrite->bytes + old->sh_offset, (size_t)old->sh_size);
		at = base + old->sh_size + 1;
	} else {
		index = rewrite->old_section_count + ADDED_SECTION_COUNT;
		rewrite->sections[index] =
			(Elf64_Shdr){.sh_name = 1, .sh_type = SHT_STRTAB, .sh_addralign = 1};
		rewrite->section_names_index = index;
		rewrite->section_count++;
		at = stpcpy(at, SECTION_NAMES_SECTION_NAME) + 1;
	}
	for (size_t i = 0; i < ADDED_SECTION_COUNT; i++) {
		names[i] = (uint32_t)(at - base);
		at = stpcpy(at, added_section_names[i]) + 1;
	}
	rewrite->sections[index].sh_offset = output->section_names_offset;
	rewrite->sections[index].sh_size = output->section_names_size;
}

static void write_all_elf_headers(struct rewrite_job *rewrite, const struct output_layout *output)
{
	Elf64_Ehdr *header = &rewrite->header;
	Elf64_Shdr *first = &rewrite->sections[0];
	size_t count = rewrite->section_count, names = rewrite->section_names_index;

	if (rewrite->table)
		header->e_phoff = piece_vaddr_to_offset(rewrite, rewrite->table->vaddr);
	header->e_phnum = (uint16_t)rewrite->segment_count;
	header->e_shoff = output->section_headers_offset;
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

static void copy_all_pieces_to_image(const struct rewrite_job *rewrite, uint8_t *bytes)
{
	for (size_t i = 0; i < rewrite->piece_count; i++) {
		const struct new_segment_piece *piece = &rewrite->pieces[i];
		uint8_t *to = bytes + piece_vaddr_to_offset(rewrite, piece->vaddr);

		if (piece->bytes)
			memcpy(to, piece->bytes, (size_t)piece->size);
		else if (piece->old_size)
			memcpy(to, rewrite->bytes + piece->old_offset, (size_t)piece->size);
	}
}

int rewrite_build_output(struct rewrite_job *rewrite, uint8_t **ret, size_t *ret_size)
{
	struct output_layout output;
	uint32_t names[ADDED_SECTION_COUNT];
	int error = add_pieces_of_new_sections(rewrite);

	if (error)
		return error;
	assign_piece_addresses(rewrite);
	rewrite_fill_merged_eh_frame_hdr(rewrite);
	error = rewrite_fill_dynamic_section(rewrite);
	if (error)
		return error;
	fill_plan_note_section(rewrite);
	compute_output_layout(rewrite, &output);
	output.bytes = calloc(1, (size_t)output.size);
	if (!output.bytes)
		return -ENOMEM;
	update_moved_symbols_of_all_tables(rewrite);
	memcpy(output.bytes, rewrite->bytes, rewrite->size);
	if (!rewrite->is_arena_made_at_start)
		rewrite_write_arena_code(rewrite, output.bytes + rewrite->arena_text_offset);
	copy_all_pieces_to_image(rewrite, output.bytes);
	update_and_add_segment_headers(rewrite);
	update_moved_section_headers(rewrite);
	write_section_names(rewrite, &output, names);
	fill_added_section_headers(rewrite, names);
	write_all_elf_headers(rewrite, &output);
	*ret = output.bytes;
	*ret_size = (size_t)output.size;
	return 0;
}
