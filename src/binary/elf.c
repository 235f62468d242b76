/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Opening an ELF file: headers, segments, sections and build-id. Layout: System V gABI, chapters 4
 * and 5; elf(5).
 */
#include "binary/elf.h"
#include "common/foreign_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* More of either than any linker writes: the kernel refuses more than 64 KB of program headers, and
 * -ffunction-sections objects of a million functions are not executables. */
#define SEGMENTS_MAX         4096u
#define SECTIONS_MAX         (1u << 20)
#define NOTES_READ_BYTES_MAX (1u << 16)

int elf_read_bytes(const struct elf_file *file, uint64_t offset, void *buffer, size_t size)
{
	if (offset > file->size || size > file->size - offset)
		return -EBADMSG;
	if (file->image) {
		memcpy(buffer, file->image + offset, size);
		return 0;
	}
	uint8_t *to = buffer;
	while (size > 0) {
		ssize_t got = pread(file->descriptor, to, size, (off_t)offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return -EBADMSG; /* truncated since we opened it */
		to += got;
		offset += (uint64_t)got;
		size -= (size_t)got;
	}
	return 0;
}

/* A malloc'ed copy of a piece of the file with a zero byte after it. */
static int read_file_piece(const struct elf_file *file, uint64_t offset, uint64_t size, void **ret)
{
	if (offset > file->size || size > file->size - offset)
		return -EBADMSG;
	uint8_t *bytes = malloc((size_t)size + 1);
	if (!bytes)
		return -ENOMEM;
	int error = elf_read_bytes(file, offset, bytes, (size_t)size);
	if (error) {
		free(bytes);
		return error;
	}
	bytes[size] = 0;
	*ret = bytes;
	return 0;
}

static int read_segments(struct elf_file *file, const Elf64_Ehdr *header, uint64_t count)
{
	if (count == 0)
		return 0;
	if (header->e_phentsize != sizeof(Elf64_Phdr) || count > SEGMENTS_MAX)
		return -EBADMSG;
	void *segments;
	int error = read_file_piece(file, header->e_phoff, count * sizeof(Elf64_Phdr), &segments);
	if (error)
		return error;
	file->segments = segments;
	file->segment_count = (size_t)count;
	return 0;
}

static void fill_section_from_header(struct elf_file *file, struct elf_section *to,
				     const Elf64_Shdr *from)
{
	to->name =
		from->sh_name < file->section_names_size ? file->section_names + from->sh_name : "";
	to->type = from->sh_type;
	to->link = from->sh_link;
	to->info = from->sh_info;
	to->flags = from->sh_flags;
	to->address = from->sh_addr;
	to->offset = from->sh_offset;
	to->size = from->sh_size;
	to->entry_size = from->sh_entsize;
}

static int read_section_names(struct elf_file *file, const Elf64_Shdr *headers, uint64_t index)
{
	if (index == SHN_UNDEF || index >= file->section_count ||
	    headers[index].sh_type == SHT_NOBITS)
		return 0;
	void *names;
	int error = read_file_piece(file, headers[index].sh_offset, headers[index].sh_size, &names);
	if (error)
		return error == -ENOMEM ? error : 0; /* sections without names still have types */
	file->section_names = names;
	file->section_names_size = (size_t)headers[index].sh_size;
	return 0;
}

/* Section headers are optional (sstrip, vDSO on some kernels): a damaged table counts as none, so
 * that segments can still be used. */
static int read_sections(struct elf_file *file, const Elf64_Ehdr *header, uint64_t *segment_count)
{
	Elf64_Shdr first;
	if (header->e_shoff == 0 || header->e_shentsize != sizeof(Elf64_Shdr) ||
	    elf_read_bytes(file, header->e_shoff, &first, sizeof(first)))
		return 0;
	/* Numbers that do not fit the header stand in section 0. */
	uint64_t count = header->e_shnum ? header->e_shnum : first.sh_size;
	uint64_t names = header->e_shstrndx == SHN_XINDEX ? first.sh_link : header->e_shstrndx;
	if (header->e_phnum == PN_XNUM)
		*segment_count = first.sh_info;
	if (count == 0 || count > SECTIONS_MAX)
		return 0;
	void *headers;
	int error = read_file_piece(file, header->e_shoff, count * sizeof(Elf64_Shdr), &headers);
	if (error)
		return error == -ENOMEM ? error : 0;
	file->sections = calloc((size_t)count, sizeof(*file->sections));
	if (!file->sections) {
		free(headers);
		return -ENOMEM;
	}
	file->section_count = (size_t)count;
	error = read_section_names(file, headers, names);
	for (size_t i = 0; i < file->section_count; i++)
		fill_section_from_header(file, &file->sections[i], (const Elf64_Shdr *)headers + i);
	free(headers);
	return error;
}

/* Looks through a sequence of notes for the build-id. `alignment` is that of the segment: notes of
 * 8-byte-aligned segments (.note.gnu.property) pad to 8. */
static bool find_build_id_in_notes(struct elf_file *file, const uint8_t *notes, size_t size,
				   size_t alignment)
{
	size_t at = 0;
	while (size - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		memcpy(&note, notes + at, sizeof(note));
		size_t name = at + sizeof(note);
		size_t pad = alignment - 1;
		size_t content = (name + note.n_namesz + pad) & ~pad;
		if (note.n_namesz > size - name || content > size || note.n_descsz > size - content)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    memcmp(notes + name, "GNU", 4) == 0 && note.n_descsz > 0 &&
		    note.n_descsz <= ELF_BUILD_ID_SIZE_MAX) {
			memcpy(file->build_id, notes + content, note.n_descsz);
			file->build_id_size = note.n_descsz;
			return true;
		}
		at = (content + note.n_descsz + pad) & ~pad;
		if (at > size)
			return false;
	}
	return false;
}

static int read_build_id_from_notes_at(struct elf_file *file, uint64_t offset, uint64_t size,
				       uint64_t alignment)
{
	void *notes;
	if (size > NOTES_READ_BYTES_MAX)
		return 0;
	int error = read_file_piece(file, offset, size, &notes);
	if (error)
		return error == -ENOMEM ? error : 0;
	find_build_id_in_notes(file, notes, (size_t)size, alignment == 8 ? 8 : 4);
	free(notes);
	return 0;
}

/* Sections first: in files made by objcopy --only-keep-debug the note segments may point at bytes
 * that are gone, while the note sections are kept. */
static int read_build_id(struct elf_file *file)
{
	for (size_t i = 0; i < file->section_count && !file->build_id_size; i++) {
		const struct elf_section *section = &file->sections[i];
		if (section->type != SHT_NOTE)
			continue;
		uint64_t alignment = strcmp(section->name, ".note.gnu.property") == 0 ? 8 : 4;
		int error = read_build_id_from_notes_at(file, section->offset, section->size,
							alignment);
		if (error)
			return error;
	}
	for (size_t i = 0; i < file->segment_count && !file->build_id_size; i++) {
		const Elf64_Phdr *segment = &file->segments[i];
		if (segment->p_type != PT_NOTE)
			continue;
		int error = read_build_id_from_notes_at(file, segment->p_offset, segment->p_filesz,
							segment->p_align);
		if (error)
			return error;
	}
	return 0;
}

static int read_elf_headers(struct elf_file *file, struct problem *problem)
{
	Elf64_Ehdr header;
	if (elf_read_bytes(file, 0, &header, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
		return problem_set(problem, -ENOEXEC, "%s is not an ELF file", file->path);
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
		return problem_set(problem, -ENOEXEC,
				   "%s is not a 64-bit little-endian ELF file, the only kind kymo "
				   "reads",
				   file->path);
	file->type = header.e_type;
	file->machine = header.e_machine;
	uint64_t segment_count = header.e_phnum;
	int error = read_sections(file, &header, &segment_count);
	if (!error)
		error = read_segments(file, &header, segment_count);
	if (!error)
		error = read_build_id(file);
	if (error == -ENOMEM)
		return problem_set(problem, error, "no memory to read %s", file->path);
	if (error)
		return problem_set(problem, error,
				   "%s is damaged: its header tables lie outside it", file->path);
	return 0;
}

static struct elf_file *allocate_elf_file_object(const char *path)
{
	struct elf_file *file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->descriptor = -1;
	file->path = strdup(path);
	if (!file->path) {
		free(file);
		return NULL;
	}
	return file;
}

void elf_close(struct elf_file *file)
{
	if (!file)
		return;
	if (file->descriptor >= 0)
		close(file->descriptor);
	if (file->owns_image)
		free((void *)(uintptr_t)file->image);
	free(file->segments);
	free(file->sections);
	free(file->section_names);
	free(file->path);
	free(file);
}

static int read_headers_or_close(struct elf_file *file, struct elf_file **ret,
				 struct problem *problem)
{
	int error = read_elf_headers(file, problem);
	if (error) {
		elf_close(file);
		return error;
	}
	*ret = file;
	return 0;
}

int elf_open(const char *path, struct elf_file **ret, struct problem *problem)
{
	struct elf_file *file = allocate_elf_file_object(path);
	if (!file)
		return problem_set(problem, -ENOMEM, "no memory to read %s", path);
	/* A recorded path may by now lead to a pipe or a device. */
	static const struct foreign_open_policy how = {.directory = AT_FDCWD};
	struct stat status;
	file->descriptor = foreign_open_file(&how, path, &status);
	if (file->descriptor < 0) {
		int error = file->descriptor;
		if (error == -ENODEV || error == -EISDIR)
			error = -ENOEXEC;
		file->descriptor = -1;
		elf_close(file);
		return problem_set(problem, error, "cannot read %s: %s", path,
				   error == -ENOEXEC ? "not a regular file" : strerror(-error));
	}
	file->size = (uint64_t)status.st_size;
	return read_headers_or_close(file, ret, problem);
}

static int open_memory_image(const void *image, bool owned, size_t size, const char *name,
			     struct elf_file **ret, struct problem *problem)
{
	struct elf_file *file = allocate_elf_file_object(name);
	if (!file) {
		if (owned)
			free((void *)(uintptr_t)image);
		return problem_set(problem, -ENOMEM, "no memory to read %s", name);
	}
	file->image = image;
	file->owns_image = owned;
	file->size = size;
	return read_headers_or_close(file, ret, problem);
}

int elf_open_memory(const void *image, size_t size, const char *name, struct elf_file **ret,
		    struct problem *problem)
{
	return open_memory_image(image, false, size, name, ret, problem);
}

int elf_open_owned_memory(void *image, size_t size, const char *name, struct elf_file **ret,
			  struct problem *problem)
{
	return open_memory_image(image, true, size, name, ret, problem);
}

bool elf_offset_to_vaddr(const struct elf_file *file, uint64_t offset, uint64_t *ret)
{
	for (size_t i = 0; i < file->segment_count; i++) {
		const Elf64_Phdr *segment = &file->segments[i];
		if (segment->p_type == PT_LOAD && offset >= segment->p_offset &&
		    offset - segment->p_offset < segment->p_filesz) {
			*ret = segment->p_vaddr + (offset - segment->p_offset);
			return true;
		}
	}
	return false;
}

bool elf_vaddr_to_offset(const struct elf_file *file, uint64_t vaddr, uint64_t *ret)
{
	for (size_t i = 0; i < file->segment_count; i++) {
		const Elf64_Phdr *segment = &file->segments[i];
		if (segment->p_type == PT_LOAD && vaddr >= segment->p_vaddr &&
		    vaddr - segment->p_vaddr < segment->p_filesz) {
			*ret = segment->p_offset + (vaddr - segment->p_vaddr);
			return true;
		}
	}
	return false;
}
