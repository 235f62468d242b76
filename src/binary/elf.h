/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Our own reader of 64-bit little-endian ELF files that trusts nothing in them.
 *
 * The file is read with pread into memory of our own, piece by piece, and never mapped: a package
 * upgrade or a compiler may truncate it while we look, which would be SIGBUS in a mapping and is a
 * short read here; and what has been checked cannot change afterwards. The pieces are small:
 * headers at elf_open(), the symbol tables and notes on demand.
 *
 * Every offset, size and index is checked against the file's size when it is used. Sizes that only
 * a hostile file would have (counts beyond the file, expansion beyond what zlib can do) are errors.
 *
 * Threads: one elf_file may be used by one thread at a time. Errors: negative errno; -ENOEXEC for
 * what is no ELF file of our kind, -EBADMSG for a damaged one, -ENOTSUP for an unknown compression.
 */
#ifndef KYMO_BINARY_ELF_H
#define KYMO_BINARY_ELF_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/problem.h"

#define ELF_BUILD_ID_SIZE_MAX 32u

struct elf_section {
	const char *name; /* "" where the file gives none */
	uint32_t type, link, info;
	uint64_t flags, address, offset, size, entry_size;
};

struct elf_file {
	char *path;
	int descriptor;       /* -1: in memory */
	const uint8_t *image; /* in memory: borrowed, or owned if owns_image */
	bool owns_image;
	uint64_t size;
	uint16_t type, machine;
	Elf64_Phdr *segments;
	size_t segment_count;
	struct elf_section *sections;
	size_t section_count;
	char *section_names;
	size_t section_names_size;
	uint8_t build_id[ELF_BUILD_ID_SIZE_MAX];
	uint32_t build_id_size; /* 0: none */
};

/* A section's contents, expanded. `bytes` has a zero byte after its end, so that a string that
 * begins inside ends inside. */
struct elf_section_data {
	uint8_t *bytes;
	size_t size;
};

int elf_open(const char *path, struct elf_file **ret, struct problem *problem);
/* An image that is already in memory (vDSO, embedded ELF); it must outlive the elf_file. `name` is
 * for messages. */
int elf_open_memory(const void *image, size_t size, const char *name, struct elf_file **ret,
		    struct problem *problem);
/* The same, and elf_close() frees the image (also when opening fails). */
int elf_open_owned_memory(void *image, size_t size, const char *name, struct elf_file **ret,
			  struct problem *problem);
void elf_close(struct elf_file *file);

/* Exactly `size` bytes at `offset`, or -EBADMSG. */
int elf_read_bytes(const struct elf_file *file, uint64_t offset, void *buffer, size_t size);

/* The first section of that name, or NULL. A section that a debug file has emptied (SHT_NOBITS) is
 * found as well. */
const struct elf_section *elf_section_find(const struct elf_file *file, const char *name);
/* Reads and, where it is compressed (SHF_COMPRESSED or .zdebug), expands a section. The caller
 * frees with elf_section_data_deinit. SHT_NOBITS gives -ENODATA. */
int elf_section_read(const struct elf_file *file, const struct elf_section *section,
		     struct elf_section_data *ret);
void elf_section_data_deinit(struct elf_section_data *data);

/* Link-time address of a byte of the file, by the PT_LOAD segments. */
bool elf_offset_to_vaddr(const struct elf_file *file, uint64_t offset, uint64_t *ret);
bool elf_vaddr_to_offset(const struct elf_file *file, uint64_t vaddr, uint64_t *ret);

/* .gnu_debuglink: the debug file's name (malloc'ed) and CRC. -ENODATA: there is none. */
int elf_read_debuglink(const struct elf_file *file, char **ret_name, uint32_t *ret_crc);
/* .gnu_debugaltlink: name (malloc'ed) and build-id of the file that dwz moved common parts to. */
int elf_read_debugaltlink(const struct elf_file *file, char **ret_name,
			  uint8_t build_id[ELF_BUILD_ID_SIZE_MAX], uint32_t *ret_build_id_size);
/* CRC of the whole file as .gnu_debuglink counts it. */
int elf_compute_file_crc(const struct elf_file *file, uint32_t *ret);

#endif
