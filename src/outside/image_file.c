/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See image_file.h. Files are identified by device, inode, size and change time, since inodes are
 * reused.
 */
#include "outside/image_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/go_note.h"

#define OPEN_FILES_MAX      256u /* others have their code read from the process */
#define NOTES_BYTES_MAX     4096u
#define PROGRAM_HEADERS_MAX 64u
#define VDSO_HEAD_BYTES     4096u /* its headers and notes are in its first page */

static void read_notes(struct outside_image *image, const uint8_t *notes, size_t size)
{
	size_t at = 0;

	while (at + sizeof(Elf64_Nhdr) <= size) {
		size_t description;
		Elf64_Nhdr note;

		memcpy(&note, notes + at, sizeof(note));
		if (note.n_namesz > size || note.n_descsz > size)
			return;
		description = at + sizeof(note) + ((note.n_namesz + 3u) & ~3u);
		if (description + note.n_descsz > size)
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    !memcmp(notes + at + sizeof(note), "GNU", 4) &&
		    note.n_descsz <= OUTSIDE_BUILD_ID_MAX) {
			memcpy(image->build_id, notes + description, note.n_descsz);
			image->build_id_size = note.n_descsz;
		}
		at = description + ((note.n_descsz + 3u) & ~3u);
	}
}

/* From an open file, or from memory where `file` is -1. */
static bool read_image_at(int file, const uint8_t *memory, uint64_t offset, void *buffer,
			  size_t size)
{
	if (file >= 0)
		return pread(file, buffer, size, (off_t)offset) == (ssize_t)size;
	if (offset > VDSO_HEAD_BYTES || size > VDSO_HEAD_BYTES - offset)
		return false;
	memcpy(buffer, memory + offset, size);
	return true;
}

static bool read_headers(struct outside_image *image, int file, const uint8_t *memory)
{
	uint8_t notes[NOTES_BYTES_MAX];
	Elf64_Ehdr header;
	Elf64_Phdr program;

	if (!read_image_at(file, memory, 0, &header, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_phentsize != sizeof(program))
		return false;
	for (unsigned i = 0; i < header.e_phnum && i < PROGRAM_HEADERS_MAX; i++) {
		size_t size;

		if (!read_image_at(file, memory, header.e_phoff + i * sizeof(program), &program,
				   sizeof(program)))
			return false;
		size = program.p_filesz < sizeof(notes) ? program.p_filesz : sizeof(notes);
		if (program.p_type == PT_NOTE &&
		    read_image_at(file, memory, program.p_offset, notes, size)) {
			read_notes(image, notes, size);
			image->is_go |= go_note_is_among(notes, size);
		}
	}
	return true;
}

static const struct outside_image *add_image(struct outside_images *images,
					     struct outside_image *image)
{
	image->next = images->list;
	images->list = image;
	return image;
}

/* The same in all processes, kymo included (vdso(7)). */
static const struct outside_image *find_or_add_vdso(struct outside_images *images, size_t size)
{
	const uint8_t *memory = (const uint8_t *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	struct outside_image *image = images->list;
	struct unwind_table *table;

	while (image && image->inode)
		image = image->next;
	if (image || !memory)
		return image;
	image = calloc(1, sizeof(*image));
	if (!image)
		return NULL;
	image->file = -1;
	if (!read_headers(image, -1, memory)) {
		free(image);
		return NULL;
	}
	if (!unwind_compile_table_of_mapped_image(memory, size, &table, &image->table_size))
		image->table = table;
	return add_image(images, image);
}

static bool path_leads_elsewhere(const char *path, const struct outside_image *image)
{
	struct stat status;

	return stat(path, &status) || status.st_ino != image->inode ||
	       status.st_dev != image->device;
}

/* `path` is the process's. */
static const struct outside_image *find_or_add_file(struct outside_images *images, int file,
						    const char *path, uint64_t inode)
{
	struct outside_image key = {0}, *image;
	struct stat status;
	char own_path[32];
	bool cached;

	if (fstat(file, &status) || !S_ISREG(status.st_mode) || status.st_ino != inode)
		return NULL; /* the path leads to another file by now */
	key.device = status.st_dev;
	key.inode = status.st_ino;
	key.size = (uint64_t)status.st_size;
	key.change_ns = status.st_ctim.tv_sec * INT64_C(1000000000) + status.st_ctim.tv_nsec;
	for (image = images->list; image; image = image->next) {
		if (image->inode == key.inode && image->device == key.device &&
		    image->size == key.size && image->change_ns == key.change_ns)
			return image;
	}
	image = calloc(1, sizeof(*image));
	if (!image)
		return NULL;
	*image = key;
	image->file = -1;
	if (!read_headers(image, file, NULL)) {
		free(image);
		return NULL;
	}
	snprintf(own_path, sizeof(own_path), "/proc/self/fd/%d", file);
	unwind_table_load_or_compile(images->cache_directory, image->build_id, image->build_id_size,
				     path, 0, 0, &image->table, &image->table_size, &cached);
	if (images->open_files < OPEN_FILES_MAX) {
		image->file = fcntl(file, F_DUPFD_CLOEXEC, 0);
		images->open_files += image->file >= 0;
	}
	image->is_elsewhere = path_leads_elsewhere(path, image);
	return add_image(images, image);
}

/* Opening the file of a device that is mapped may act on the device. */
static bool path_may_be_opened(const char *path)
{
	return path[0] == '/' && (strncmp(path, "/dev/", 5) || !strncmp(path, "/dev/shm/", 9));
}

static const struct outside_image *find_or_add_path(struct outside_images *images, const char *path,
						    const struct outside_mapping *mapping)
{
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	const struct outside_image *image;

	if (file < 0)
		return NULL;
	image = find_or_add_file(images, file, mapping->path, mapping->inode);
	close(file);
	return image;
}

const struct outside_image *outside_images_find(struct outside_images *images, pid_t pid,
						const struct outside_mapping *mapping)
{
	const struct outside_image *image;
	char path[PATH_MAX + 64];

	if (!strcmp(mapping->path, "[vdso]"))
		return find_or_add_vdso(images, mapping->end - mapping->start);
	if (!mapping->inode || !path_may_be_opened(mapping->path))
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, mapping->path);
	image = find_or_add_path(images, path, mapping);
	if (image)
		return image;
	/* Deleted or replaced: what is mapped is there still (proc(5)). */
	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid,
		 mapping->start, mapping->end);
	image = find_or_add_path(images, path, mapping);
	return image ? image : find_or_add_path(images, mapping->path, mapping);
}

void outside_images_deinit(struct outside_images *images)
{
	while (images->list) {
		struct outside_image *image = images->list;

		images->list = image->next;
		if (image->file >= 0)
			close(image->file);
		unwind_table_free(image->table, image->table_size);
		free(image);
	}
}
