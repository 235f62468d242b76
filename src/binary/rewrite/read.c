/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The file that is to be rewritten: its tables, and whether it is one that can be.
 */
#include "binary/rewrite/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The kernel takes 64 KB of program headers, before 5.18 a page. */
#define SEGMENTS_MAX          (4096u / sizeof(Elf64_Phdr))
#define SEGMENT_COUNT_MESSAGE "%s: no program headers, or more than can grow"
#define SECTIONS_MAX          (1u << 20)
#define ADDRESS_LIMIT         (UINT64_C(1) << 46) /* half of what user space has */
#define STATIC_LINK_MESSAGE   "nothing would load kymo's library into it; link it dynamically"

static bool is_inside_file(const struct rewrite_job *rewrite, uint64_t offset, uint64_t size)
{
	return offset <= rewrite->size && size <= rewrite->size - offset;
}

bool rewrite_vaddr_to_offset(const struct rewrite_job *rewrite, uint64_t vaddr, uint64_t size,
			     uint64_t *ret)
{
	for (size_t i = 0; i < rewrite->segment_count; i++) {
		const Elf64_Phdr *segment = &rewrite->segments[i];

		if (segment->p_type != PT_LOAD || vaddr < segment->p_vaddr)
			continue;
		uint64_t at = vaddr - segment->p_vaddr;

		if (at < segment->p_filesz && size <= segment->p_filesz - at) {
			*ret = segment->p_offset + at;
			return true;
		}
	}
	return false;
}

size_t rewrite_find_section_at(const struct rewrite_job *rewrite, uint64_t vaddr)
{
	for (size_t i = 1; i < rewrite->old_section_count; i++) {
		const Elf64_Shdr *section = &rewrite->sections[i];

		if (section->sh_flags & SHF_ALLOC && section->sh_addr == vaddr &&
		    section->sh_size > 0 && section->sh_type != SHT_NOBITS)
			return i;
	}
	return 0;
}

struct new_segment_piece *rewrite_add_piece(struct rewrite_job *rewrite, size_t section,
					    uint64_t size)
{
	if (rewrite->piece_count == REWRITE_PIECES_MAX)
		return NULL;
	struct new_segment_piece *piece = &rewrite->pieces[rewrite->piece_count++];

	*piece = (struct new_segment_piece){.section = section, .size = size};
	if (section > 0 && section < rewrite->old_section_count) {
		const Elf64_Shdr *header = &rewrite->sections[section];

		piece->old_vaddr = header->sh_addr;
		piece->old_offset = header->sh_offset;
		piece->old_size = header->sh_size;
	}
	return piece;
}

static int read_elf_header(struct rewrite_job *rewrite)
{
	Elf64_Ehdr *header = &rewrite->header;

	if (rewrite->size < sizeof(*header) || memcmp(rewrite->bytes, ELFMAG, SELFMAG) != 0)
		return problem_set(rewrite->problem, -ENOEXEC, "%s is not an ELF file",
				   rewrite->name);
	memcpy(header, rewrite->bytes, sizeof(*header));
	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
	    header->e_machine != EM_X86_64)
		return problem_set(rewrite->problem, -ENOTSUP, "%s is not for x86-64",
				   rewrite->name);
	if (header->e_type != ET_EXEC && header->e_type != ET_DYN)
		return problem_set(rewrite->problem, -ENOTSUP,
				   "%s is neither an executable nor a shared library",
				   rewrite->name);
	/* The kernel allows it; but a table that changes would change the header under it. */
	if (header->e_phoff < sizeof(*header))
		return problem_set(rewrite->problem, -ENOTSUP,
				   "%s: the program headers overlap the file header",
				   rewrite->name);
	return 0;
}

static bool is_segment_valid(const struct rewrite_job *rewrite, const Elf64_Phdr *segment)
{
	return is_inside_file(rewrite, segment->p_offset, segment->p_filesz) &&
	       segment->p_filesz <= segment->p_memsz && segment->p_vaddr < ADDRESS_LIMIT &&
	       segment->p_memsz < ADDRESS_LIMIT &&
	       (segment->p_vaddr - segment->p_offset) % PLAN_PAGE == 0;
}

static int read_segments(struct rewrite_job *rewrite)
{
	const Elf64_Ehdr *header = &rewrite->header;
	size_t count = header->e_phnum;
	uint64_t last = 0;

	if (count == 0 || count > SEGMENTS_MAX || header->e_phentsize != sizeof(Elf64_Phdr) ||
	    !is_inside_file(rewrite, header->e_phoff, count * sizeof(Elf64_Phdr)))
		return problem_set(rewrite->problem, -ENOTSUP, SEGMENT_COUNT_MESSAGE,
				   rewrite->name);
	rewrite->segments = calloc(count + REWRITE_SEGMENTS_ADDED_COUNT, sizeof(Elf64_Phdr));
	if (!rewrite->segments)
		return -ENOMEM;
	memcpy(rewrite->segments, rewrite->bytes + header->e_phoff, count * sizeof(Elf64_Phdr));
	rewrite->segment_count = count;
	rewrite->low = UINT64_MAX;
	for (size_t i = 0; i < count; i++) {
		const Elf64_Phdr *segment = &rewrite->segments[i];

		if (segment->p_type == PT_INTERP)
			rewrite->interpreter_segment = segment;
		if (segment->p_type == PT_DYNAMIC)
			rewrite->dynamic_segment = segment;
		if (segment->p_type != PT_LOAD)
			continue;
		if (!is_segment_valid(rewrite, segment) || segment->p_vaddr < last)
			return problem_set(rewrite->problem, -EBADMSG,
					   "%s: program header %zu is damaged", rewrite->name, i);
		last = segment->p_vaddr + segment->p_memsz;
		if (rewrite->low == UINT64_MAX)
			rewrite->low = segment->p_vaddr;
		rewrite->high = last;
	}
	if (rewrite->high == 0)
		return problem_set(rewrite->problem, -EBADMSG, "%s: nothing in it is loaded",
				   rewrite->name);
	return 0;
}

/* Files without section headers, or with damaged ones, get a table with ours alone. */
static int read_sections(struct rewrite_job *rewrite)
{
	const Elf64_Ehdr *header = &rewrite->header;
	Elf64_Shdr first;
	uint64_t count = 0, names = 0;

	if (header->e_shoff && header->e_shentsize == sizeof(first) &&
	    is_inside_file(rewrite, header->e_shoff, sizeof(first))) {
		memcpy(&first, rewrite->bytes + header->e_shoff, sizeof(first));
		count = header->e_shnum ? header->e_shnum : first.sh_size;
		names = header->e_shstrndx == SHN_XINDEX ? first.sh_link : header->e_shstrndx;
		if (count > SECTIONS_MAX ||
		    !is_inside_file(rewrite, header->e_shoff, count * sizeof(first)))
			count = 0;
	}
	rewrite->sections = calloc(count + REWRITE_SECTIONS_ADDED_MAX, sizeof(first));
	if (!rewrite->sections)
		return -ENOMEM;
	if (count > 0)
		memcpy(rewrite->sections, rewrite->bytes + header->e_shoff, count * sizeof(first));
	for (uint64_t i = 0; i < count; i++) {
		const Elf64_Shdr *section = &rewrite->sections[i];

		if (i > 0 && section->sh_type != SHT_NOBITS && section->sh_type != SHT_NULL &&
		    !is_inside_file(rewrite, section->sh_offset, section->sh_size))
			count = 0;
	}
	if (names == 0 || names >= count || rewrite->sections[names].sh_type != SHT_STRTAB ||
	    rewrite->sections[names].sh_flags & SHF_ALLOC)
		count = 0;
	if (count == 0)
		memset(rewrite->sections, 0, sizeof(first));
	rewrite->section_count = rewrite->old_section_count = count ? (size_t)count : 1;
	rewrite->section_names_index = count ? (size_t)names : 0;
	return 0;
}

static int refuse_by_file_kind(struct rewrite_job *rewrite)
{
	static const char packer[] = "UPX!";
	const Elf64_Phdr *dynamic = rewrite->dynamic_segment;
	size_t head = rewrite->size < 4096 ? rewrite->size : 4096;

	if (!dynamic && memmem(rewrite->bytes, head, packer, sizeof(packer) - 1))
		return problem_set(rewrite->problem, -ENOTSUP, "%s is packed: unpack it (upx -d)",
				   rewrite->name);
	if (!dynamic)
		return problem_set(rewrite->problem, -ENOTSUP,
				   "%s is statically linked: " STATIC_LINK_MESSAGE, rewrite->name);
	for (size_t i = 1; i < rewrite->section_count; i++) {
		if (rewrite->sections[i].sh_type == SHT_NOBITS &&
		    rewrite->sections[i].sh_addr == dynamic->p_vaddr &&
		    rewrite->sections[i].sh_size > 0)
			return problem_set(rewrite->problem, -ENOTSUP,
					   "%s holds debug information alone", rewrite->name);
	}
	if (!rewrite_vaddr_to_offset(rewrite, dynamic->p_vaddr, dynamic->p_filesz,
				     &rewrite->dynamic_offset))
		return problem_set(rewrite->problem, -EBADMSG,
				   "%s: its dynamic section is not loaded", rewrite->name);
	return 0;
}

static bool is_kymo_plan_note_segment(const struct rewrite_job *rewrite, const Elf64_Phdr *segment)
{
	Elf64_Nhdr note;

	if (segment->p_type != PT_NOTE || segment->p_filesz < sizeof(note) + 8 ||
	    !is_inside_file(rewrite, segment->p_offset, segment->p_filesz))
		return false;
	memcpy(&note, rewrite->bytes + segment->p_offset, sizeof(note));
	return note.n_namesz == sizeof(PLAN_NOTE_NAME) && note.n_type == PLAN_NOTE_TYPE &&
	       memcmp(rewrite->bytes + segment->p_offset + sizeof(note), PLAN_NOTE_NAME,
		      sizeof(PLAN_NOTE_NAME)) == 0;
}

static int check_not_rewritten_before(const struct rewrite_job *rewrite)
{
	for (size_t i = 0; i < rewrite->segment_count; i++) {
		if (is_kymo_plan_note_segment(rewrite, &rewrite->segments[i]))
			return problem_set(rewrite->problem, -EEXIST,
					   "%s is rewritten already: take the file it was made of",
					   rewrite->name);
	}
	if (rewrite->segment_count > SEGMENTS_MAX - REWRITE_SEGMENTS_ADDED_COUNT)
		return problem_set(rewrite->problem, -ENOTSUP, SEGMENT_COUNT_MESSAGE,
				   rewrite->name);
	return 0;
}

static int check_plan_fits_file(struct rewrite_job *rewrite)
{
	const struct plan_header *plan = rewrite->plan->header;

	if (plan->file_size != rewrite->size)
		return problem_set(rewrite->problem, -ESTALE,
				   "%s is not the file that its plan was made of", rewrite->name);
	/* Modulo 2^64: before the file. */
	rewrite->is_arena_made_at_start = (int64_t)plan->arena_vaddr < (int64_t)rewrite->low;
	if (rewrite->is_arena_made_at_start)
		return 0;
	if (plan->arena_vaddr % PLAN_PAGE || plan->arena_size % PLAN_PAGE ||
	    plan->arena_size < PLAN_STUBS || plan->arena_vaddr < rewrite->high ||
	    plan->arena_vaddr >= ADDRESS_LIMIT || plan->arena_size >= ADDRESS_LIMIT ||
	    plan->arena_vaddr + plan->arena_size >= ADDRESS_LIMIT ||
	    plan->stubs.count > plan->arena_size - PLAN_STUBS)
		return problem_set(rewrite->problem, -EINVAL,
				   "%s: its plan has the stubs where no file can have them",
				   rewrite->name);
	return 0;
}

/* What lies behind the ELF file and may be looked for from the end: archives of self-extracting
 * programs, signatures. */
static uint64_t count_trailing_bytes(const struct rewrite_job *rewrite)
{
	const Elf64_Ehdr *header = &rewrite->header;
	uint64_t end = header->e_phoff + rewrite->segment_count * sizeof(Elf64_Phdr);

	if (rewrite->old_section_count > 1) {
		uint64_t table = header->e_shoff + rewrite->old_section_count * sizeof(Elf64_Shdr);
		end = table > end ? table : end;
	}
	for (size_t i = 0; i < rewrite->segment_count; i++) {
		const Elf64_Phdr *segment = &rewrite->segments[i];

		if (segment->p_type == PT_LOAD && segment->p_offset + segment->p_filesz > end)
			end = segment->p_offset + segment->p_filesz;
	}
	for (size_t i = 1; i < rewrite->old_section_count; i++) {
		const Elf64_Shdr *section = &rewrite->sections[i];

		if (section->sh_type != SHT_NOBITS && section->sh_type != SHT_NULL &&
		    section->sh_offset + section->sh_size > end)
			end = section->sh_offset + section->sh_size;
	}
	return rewrite->size > end ? rewrite->size - end : 0;
}

int rewrite_read_headers(struct rewrite_job *rewrite)
{
	int error = read_elf_header(rewrite);

	if (!error)
		error = read_segments(rewrite);
	if (!error)
		error = read_sections(rewrite);
	/* First of all that may be wrong: what came out of here is refused for that reason. */
	if (!error)
		error = check_not_rewritten_before(rewrite);
	if (!error)
		error = refuse_by_file_kind(rewrite);
	if (!error)
		error = check_plan_fits_file(rewrite);
	if (!error)
		rewrite->result->trailing_bytes = count_trailing_bytes(rewrite);
	return error;
}
