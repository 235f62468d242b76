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
#include "core/base/text.h"

#define MODULE_FILES_MAX    (1u << 14)
#define PROGRAM_HEADERS_MAX 64
#define ELF_NOTES_SIZE_MAX  4096

static struct module_file *known_module_files; /* reserved address space */
static uint32_t known_module_file_count;

/* Reads `size` bytes at an offset of the image: from the file, or from memory for the vDSO. */
struct image_reader {
	int fd;
	const uint8_t *memory;
	size_t memory_size;
};

static bool image_read_at(const struct image_reader *reader, uint64_t offset, void *buffer,
			  size_t size)
{
	if (!reader->memory)
		return sys_pread(reader->fd, buffer, size, offset) == (long)size;
	if (offset > reader->memory_size || size > reader->memory_size - offset)
		return false;
	memcpy(buffer, reader->memory + offset, size);
	return true;
}

static void copy_build_id_from_notes(struct module_file *file, const uint8_t *notes, size_t size)
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

static bool check_elf_and_read_build_id(struct module_file *file, const struct image_reader *reader)
{
	Elf64_Ehdr header;
	Elf64_Phdr program;
	uint8_t notes[ELF_NOTES_SIZE_MAX];

	if (!image_read_at(reader, 0, &header, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_phentsize != sizeof(program))
		return false;
	for (unsigned i = 0; i < header.e_phnum && i < PROGRAM_HEADERS_MAX; i++) {
		if (!image_read_at(reader, header.e_phoff + i * sizeof(program), &program,
				   sizeof(program)))
			return false;
		if (program.p_type == PT_NOTE && !file->build_id_size) {
			size_t size = program.p_filesz < ELF_NOTES_SIZE_MAX ? program.p_filesz
									    : ELF_NOTES_SIZE_MAX;
			if (image_read_at(reader, program.p_offset, notes, size))
				copy_build_id_from_notes(file, notes, size);
		}
	}
	return true;
}

static struct module_file *get_next_free_module_file_slot(void)
{
	if (!known_module_files) {
		void *memory = sys_mmap(NULL, MODULE_FILES_MAX * sizeof(*known_module_files),
					PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (sys_mmap_failed(memory))
			return NULL;
		known_module_files = memory;
	}
	return known_module_file_count < MODULE_FILES_MAX
		       ? &known_module_files[known_module_file_count]
		       : NULL;
}

static const struct module_file *find_known_module_file(const struct module_file *key)
{
	for (uint32_t i = 0; i < known_module_file_count; i++) {
		const struct module_file *file = &known_module_files[i];
		if (file->inode == key->inode && file->device == key->device &&
		    file->size == key->size &&
		    file->change_time_seconds == key->change_time_seconds &&
		    file->change_time_subsecond_ns == key->change_time_subsecond_ns)
			return file;
	}
	return NULL;
}

static const struct module_file *find_or_add_vdso_file(const struct maps_line *line)
{
	struct image_reader reader = {-1, (const uint8_t *)line->start, line->end - line->start};
	struct module_file key = {.size = line->start}, *file;
	const struct module_file *known = find_known_module_file(&key);
	struct unwind_table *table;

	if (known)
		return known;
	file = get_next_free_module_file_slot();
	if (!file)
		return NULL;
	*file = key;
	if (!check_elf_and_read_build_id(file, &reader))
		return NULL;
	if (!unwind_compile_table_of_mapped_image(reader.memory, reader.memory_size, &table,
						  &file->unwind_table_bytes))
		file->table = table;
	known_module_file_count++;
	return file;
}

/* The vDSO has no file: its image is mapped whole (vdso(7)). */
static bool maps_line_is_vdso(const struct maps_line *line)
{
	return !strcmp(line->path, "[vdso]");
}

/* Files without a build-id are known to the cache by what tells them from all others on this
 * machine. */
static void get_build_id_or_file_key(const struct module_file *file, uint8_t *id,
				     uint32_t *ret_size)
{
	uint64_t words[4] = {file->device, file->inode, file->size,
			     (uint64_t)file->change_time_seconds * 1000000000u +
				     (uint64_t)file->change_time_subsecond_ns};

	*ret_size = file->build_id_size ? file->build_id_size : (uint32_t)sizeof(words);
	memcpy(id, file->build_id_size ? (const void *)file->build_id : words, *ret_size);
}

static const struct module_file *find_or_add_file_of_descriptor(int fd, const char *path,
								const struct maps_line *line,
								const char *cache_directory)
{
	struct image_reader reader = {.fd = fd};
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
	key.change_time_seconds = status.st_ctim.tv_sec;
	key.change_time_subsecond_ns = status.st_ctim.tv_nsec;
	known = find_known_module_file(&key);
	if (known)
		return known;
	file = get_next_free_module_file_slot();
	if (!file)
		return NULL;
	*file = key;
	if (!check_elf_and_read_build_id(file, &reader))
		return NULL;
	get_build_id_or_file_key(file, id, &id_size);
	unwind_table_load_or_compile(cache_directory, id, id_size, path, status.st_dev,
				     status.st_ino, &file->table, &file->unwind_table_bytes,
				     &cached);
	interpreters_inspect_file(fd, line->path, &file->interpreter);
	known_module_file_count++;
	return file;
}

/* Opening the file of a device that is mapped may act on the device. */
static bool path_is_device(const char *path)
{
	return !strncmp(path, "/dev/", 5) && strncmp(path, "/dev/shm/", 9);
}

static const struct module_file *find_or_add_file_at_path(const char *path,
							  const struct maps_line *line,
							  const char *cache_directory)
{
	long fd = sys_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	const struct module_file *file;

	if (fd < 0)
		return NULL;
	file = find_or_add_file_of_descriptor((int)fd, path, line, cache_directory);
	sys_close((int)fd);
	return file;
}

static void append_hexadecimal(struct text_buffer *text, uint64_t value)
{
	int shift = 60;

	while (shift && !(value >> shift))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		text_append_character(text, "0123456789abcdef"[value >> shift & 15]);
}

static void format_map_files_path(char *path, size_t size, const struct maps_line *line)
{
	struct text_buffer text = text_buffer_init(path, size);

	text_append_string(&text, "/proc/self/map_files/");
	append_hexadecimal(&text, line->start);
	text_append_character(&text, '-');
	append_hexadecimal(&text, line->end);
}

const struct module_file *module_file_find_or_add(const struct maps_line *line,
						  const char *cache_directory)
{
	const struct module_file *file;
	char path[64];

	if (maps_line_is_vdso(line))
		return find_or_add_vdso_file(line);
	if (line->path[0] != '/' || !line->inode || path_is_device(line->path))
		return NULL;
	file = find_or_add_file_at_path(line->path, line, cache_directory);
	if (file)
		return file;
	/* Deleted, or replaced: what is mapped is there still (proc(5)). */
	format_map_files_path(path, sizeof(path), line);
	file = find_or_add_file_at_path(path, line, cache_directory);
	return file ? file : find_or_add_file_at_path("/proc/self/exe", line, cache_directory);
}
