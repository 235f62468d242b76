/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See module_file.h. Files are identified by device, inode, size and change time, since inodes are
 * reused.
 */
#include "core/module_file.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/syscalls.h"

#define FILES_MAX   (1u << 14)
#define HEADERS_MAX 64
#define NOTES_MAX   4096

static struct module_file *files; /* reserved address space */
static uint32_t file_count;

/* Reads `size` bytes at an offset of the image: from the file, or from memory for the vDSO. */
struct reader {
	int fd;
	const uint8_t *memory;
	size_t memory_size;
};

static bool read_at(const struct reader *reader, uint64_t offset, void *buffer, size_t size)
{
	if (!reader->memory)
		return sys_pread(reader->fd, buffer, size, offset) == (long)size;
	if (offset > reader->memory_size || size > reader->memory_size - offset)
		return false;
	memcpy(buffer, reader->memory + offset, size);
	return true;
}

static void find_build_id(struct module_file *file, const uint8_t *notes, size_t size)
{
	size_t at = 0;

	while (at + sizeof(Elf64_Nhdr) <= size) {
		Elf64_Nhdr note;
		size_t name = at + sizeof(note), description;
		memcpy(&note, notes + at, sizeof(note));
		if (note.n_namesz > size || note.n_descsz > size)
			return;
		description = name + ((note.n_namesz + 3u) & ~3u);
		if (description + note.n_descsz > size)
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    !memcmp(notes + name, "GNU", 4) && note.n_descsz <= MODULE_BUILD_ID_MAX) {
			memcpy(file->build_id, notes + description, note.n_descsz);
			file->build_id_size = note.n_descsz;
			return;
		}
		at = description + ((note.n_descsz + 3u) & ~3u);
	}
}

static bool read_headers(struct module_file *file, const struct reader *reader)
{
	Elf64_Ehdr header;
	Elf64_Phdr program;
	uint8_t notes[NOTES_MAX];

	if (!read_at(reader, 0, &header, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_phentsize != sizeof(program))
		return false;
	for (unsigned i = 0; i < header.e_phnum && i < HEADERS_MAX; i++) {
		if (!read_at(reader, header.e_phoff + i * sizeof(program), &program,
			     sizeof(program)))
			return false;
		if (program.p_type == PT_NOTE && !file->build_id_size) {
			size_t size = program.p_filesz < NOTES_MAX ? program.p_filesz : NOTES_MAX;
			if (read_at(reader, program.p_offset, notes, size))
				find_build_id(file, notes, size);
		}
	}
	return true;
}

static struct module_file *add_file(void)
{
	if (!files) {
		void *memory = sys_mmap(NULL, FILES_MAX * sizeof(*files), PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (sys_failed(memory))
			return NULL;
		files = memory;
	}
	return file_count < FILES_MAX ? &files[file_count] : NULL;
}

static const struct module_file *find_file(const struct module_file *key)
{
	for (uint32_t i = 0; i < file_count; i++) {
		const struct module_file *file = &files[i];
		if (file->inode == key->inode && file->device == key->device &&
		    file->size == key->size && file->changed_seconds == key->changed_seconds &&
		    file->changed_ns == key->changed_ns)
			return file;
	}
	return NULL;
}

static const struct module_file *add_virtual(const struct maps_line *line)
{
	struct reader reader = {-1, (const uint8_t *)line->start, line->end - line->start};
	struct module_file key = {.size = line->start}, *file;
	const struct module_file *known = find_file(&key);
	struct unwind_table *table;

	if (known)
		return known;
	file = add_file();
	if (!file)
		return NULL;
	*file = key;
	if (!read_headers(file, &reader))
		return NULL;
	if (!unwind_compile_mapped(reader.memory, reader.memory_size, &table, &file->table_size))
		file->table = table;
	file_count++;
	return file;
}

/* The vDSO has no file: its image is mapped whole (vdso(7)). */
static bool is_virtual(const struct maps_line *line)
{
	return !strcmp(line->path, "[vdso]");
}

/* Files without a build-id are known to the cache by what tells them from all others on this
 * machine. */
static void name_for_cache(const struct module_file *file, uint8_t *id, uint32_t *ret_size)
{
	uint64_t words[4] = {file->device, file->inode, file->size,
			     (uint64_t)file->changed_seconds * 1000000000u +
				     (uint64_t)file->changed_ns};

	*ret_size = file->build_id_size ? file->build_id_size : (uint32_t)sizeof(words);
	memcpy(id, file->build_id_size ? (const void *)file->build_id : words, *ret_size);
}

static const struct module_file *add_from(int fd, const struct maps_line *line,
					  const char *cache_directory)
{
	struct reader reader = {.fd = fd};
	struct stat status;
	struct module_file key = {0}, *file;
	const struct module_file *known;
	uint8_t id[MODULE_BUILD_ID_MAX];
	uint32_t id_size;
	bool cached;

	if (sys_call2(SYS_fstat, fd, (long)&status) || status.st_ino != line->inode)
		return NULL; /* the path leads to another file by now */
	key.device = status.st_dev;
	key.inode = status.st_ino;
	key.size = (uint64_t)status.st_size;
	key.changed_seconds = status.st_ctim.tv_sec;
	key.changed_ns = status.st_ctim.tv_nsec;
	known = find_file(&key);
	if (known)
		return known;
	file = add_file();
	if (!file)
		return NULL;
	*file = key;
	if (!read_headers(file, &reader))
		return NULL;
	name_for_cache(file, id, &id_size);
	unwind_table_load(cache_directory, id, id_size, line->path, status.st_dev, status.st_ino,
			  &file->table, &file->table_size, &cached);
	file_count++;
	return file;
}

const struct module_file *module_file_get(const struct maps_line *line, const char *cache_directory)
{
	const struct module_file *file;
	long fd;

	if (is_virtual(line))
		return add_virtual(line);
	if (line->path[0] != '/' || !line->inode)
		return NULL;
	fd = sys_open(line->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	if (fd < 0)
		return NULL;
	file = add_from((int)fd, line, cache_directory);
	sys_close((int)fd);
	return file;
}
